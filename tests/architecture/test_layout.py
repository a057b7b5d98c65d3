"""Layout: folders stay small enough to be read at a glance, and tests mirror the package."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.architecture.source import PACKAGE, REPOSITORY, modules

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
