"""Layout: folders stay small enough to be read at a glance, and tests mirror the package."""

from __future__ import annotations

from collections import Counter

from tests.architecture.source import PACKAGE, REPOSITORY, modules

MOST_MODULES = 12
MIRRORED_ELSEWHERE = {"architecture", "benchmarks"}
"""Folders of tests about the repository as a whole, and about what lives beside the package."""


def test_no_folder_holds_more_than_a_dozen_modules() -> None:
    sizes = Counter(path.parent for path in modules() if path.name != "__init__.py")
    assert not {str(folder.relative_to(PACKAGE)): size for folder, size in sizes.items() if size > MOST_MODULES}


def test_tests_mirror_the_package() -> None:
    packages = {path.parent.relative_to(PACKAGE) for path in modules()}
    tests = REPOSITORY / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert not {str(one) for one in folders - packages if one.parts[0] not in MIRRORED_ELSEWHERE}
    untested = {one.parts[0] for one in packages if one.parts} - {one.parts[0] for one in folders if one.parts}
    assert untested <= {"cli"}, "the command line is tested in tests/test_cli.py and beside what its commands do"
