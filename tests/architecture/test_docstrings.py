"""Docstrings: everything public has one, and its first line is a sentence that stands alone."""

from __future__ import annotations

import ast
import re

from tests.architecture.source import definitions, modules, parsed


def test_first_lines_are_sentences() -> None:
    wrong = []
    for path in modules():
        for place, node in definitions(path):
            text = ast.get_docstring(node)
            if text is None:
                continue
            first, *rest = text.splitlines()
            if not first.endswith(".") or first.endswith("..") or (rest and rest[0].strip()):
                wrong.append(f"{place}: {first!r}")
    assert not wrong, "\n".join(wrong)


def test_first_lines_are_no_relative_clauses() -> None:
    """Say "Return the ends of the bins.", not "Where the bins end."; "Whether …" is welcome where a flag is meant."""
    relative = re.compile(r"(What|Where|When|Who|Whose|Those|How|Why|Which)\b")
    wrong = []
    for path in modules():
        for place, node in definitions(path):
            text = ast.get_docstring(node)
            if text is not None and relative.match(text):
                wrong.append(f"{place}: {text.splitlines()[0]!r}")
    assert not wrong, "\n".join(wrong)


def test_everything_public_has_a_docstring() -> None:
    """Modules, classes and functions; a method whose name says it all, or that a protocol describes, needs none."""
    missing = []
    for path in modules():
        public = [
            node
            for node in parsed(path).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            and not node.name.startswith("_")
            and not any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
        ]
        for place, node in definitions(path):
            if (node in public or isinstance(node, ast.Module)) and ast.get_docstring(node) is None:
                missing.append(place)
    assert not missing, "\n".join(missing)
