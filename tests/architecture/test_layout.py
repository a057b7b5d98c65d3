"""Layout: folders stay small enough to be read at a glance, and tests mirror the package."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.architecture.source import PACKAGE, REPOSITORY, modules, parsed

MOST_MODULES = 12
MIRRORED_ELSEWHERE = {"architecture", "benchmarks"}
"""Folders of tests about the repository as a whole, and about what lives beside the package."""


def test_no_folder_holds_more_than_a_dozen_modules() -> None:
    sizes = Counter(path.parent for path in modules() if path.name != "__init__.py")
    assert not {str(folder.relative_to(PACKAGE)): size for folder, size in sizes.items() if size > MOST_MODULES}


def test_tests_mirror_the_package() -> None:
    """`tests/planning/rules` tests `adalook.planning.rules`, and so on for every folder of either tree."""
    tests = REPOSITORY / "tests"
    packages = {path.parent.relative_to(PACKAGE) for path in modules()}
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")} | {Path()}
    folders = {folder for folder in folders if not MIRRORED_ELSEWHERE & set(folder.parts[:1])}
    strays = sorted(f"tests/{folder}" for folder in folders - packages)
    assert not strays, f"{strays}: no package of adalook has this name"
    with_code = {path.parent.relative_to(PACKAGE) for path in modules() if path.name != "__init__.py"}
    untested = sorted(f"adalook/{package}" for package in with_code - folders)
    assert not untested, f"{untested}: no folder of tests has this name"


OPENS_FILES = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "memmap", "fromfile", "FileIO"}
MAY_OPEN_FILES = {
    "cli/main.py": "the null device, in the place of closed streams",
    "experiments/learning/runs.py": "/proc/cpuinfo",
    "experiments/learning/training.py": "/proc/self/statm",
    "experiments/store.py": "its own method of that name",
    "engines/session.py": "/proc",
    "learning/replay/buffer.py": "/proc/meminfo and memory limits",
    "mdp/builders/streamed.py": "its own temporary files",
    "mdp/files/mapped.py": "a member of an archive",
    "mdp/files/npz.py": "sizes and kinds are checked first",
    "mdp/files/umb.py": "sizes and kinds are checked first",
    "planning/checkpoint.py": "what storage opened",
    "report/pages/document.py": "files of the package itself, and figures just drawn",
}


def test_files_are_opened_by_storage_alone() -> None:
    """A pipe in the place of a file would hang whoever opens it: `storage.files` refuses it, and so must all others."""
    strays = []
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("storage/") or name in MAY_OPEN_FILES:
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in OPENS_FILES:
                    strays.append(f"{name}:{node.lineno} {called}")
    assert not strays, f"{strays}: use open_to_read, read_file, open_to_append or atomic_write of adalook.storage.files"
