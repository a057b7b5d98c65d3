"""The package's own source, parsed: what the architecture tests look at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import adalook

PACKAGE = Path(adalook.__file__).parent
REPOSITORY = Path(__file__).parents[2]


def modules() -> list[Path]:
    """Return the paths of all modules of the package."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def definitions(path: Path) -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]]:
    """Yield a module and everything that it defines, each with the place to name in a message."""
    name = path.relative_to(PACKAGE).as_posix()
    yield name, parsed(path)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield f"{name}:{node.lineno} {node.name}", node
