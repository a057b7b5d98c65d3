"""Names: one class name has one meaning, and all names are words of the field."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.architecture.source import PACKAGE, REPOSITORY, definitions, modules, parsed

PRIVATE_WORDS = {
    "world": "env, environment or simulator",
    "habit": "run options",
    "by_hand": "backprop",
    "at_once": "InlineExecutor",
    "quick_turns": "gil switch interval",
    "slopes": "q-gradients",
    "tally": "progress statistics",
    "consumer": "callback",
    "sinks": "loggers",
    "numbered": "discrete observations",
    "heed": "update",
    "plant": "load roots",
    "foresight": "rng isolation",
    "promise": "contract check or TheoryBound",
    "spending": "timing",
    "main_module": "spawn main",
    "rough": "in-place modified policy iteration",
    "hub": "shared row",
    "contender": "method run",
    "judgement": "verdict",
    "sketch": "figure spec",
    "album": "state gallery",
    "catalogue": "registry",
    "dust": "switch_tol",
    "descend": "backward",
    "square_decay": "second_moment_decay",
    "momentum_decay": "first_moment_decay",
}
"""Words that earlier versions used privately, each with what the field says."""
NEVER_MEANT_OTHERWISE = ("world", "habit", "by_hand", "quick_turns", "tally", "heed", "hub", "sketch", "album")
"""Those without an everyday meaning here: they are unwelcome in tests, benchmarks, docstrings and messages, too."""
OWN_FOLDER = Path(__file__).parent


def words_of(identifier: str) -> list[str]:
    """Return an identifier's words in small letters: `SharedRows` and `shared_rows` are the same two."""
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower())


def identifiers(tree: ast.Module) -> set[str]:
    """Return every name that a module defines, uses or passes."""
    names = set[str]()
    for node in ast.walk(tree):
        for field in ("name", "id", "attr", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.add(value)
    return names


def defined_types(node: ast.stmt) -> list[tuple[str, str]]:
    """Return the types that a statement defines, each with its meaning: a class, or CamelCase that is assigned to."""
    if isinstance(node, ast.ClassDef):
        return [(node.name, "a class")]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return [(name, ast.unparse(node.value)) for name in names if re.match(r"_?[A-Z][a-z]", name)]


def texts(tree: ast.Module) -> list[tuple[int, str]]:
    """Return every string of a module with its line: docstrings, messages, keys."""
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_one_class_name_has_one_meaning() -> None:
    places = defaultdict[str, list[str]](list)
    for path in modules():
        for place, node in definitions(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_one_type_alias_has_one_meaning() -> None:
    """A name such as `FloatArray = …` at the top of a module stands for nothing else, and for no class, elsewhere."""
    meanings = defaultdict[str, set[str]](set)
    for path in modules():
        for node in parsed(path).body:
            for name, meaning in defined_types(node):
                meanings[name].add(meaning)
    assert not {name: found for name, found in meanings.items() if len(found) > 1}


def test_names_are_words_of_the_field() -> None:
    found = []
    for path in modules():
        place = path.relative_to(PACKAGE)
        for name in sorted({*identifiers(parsed(path)), *place.with_suffix("").parts}):
            text = "_".join(words_of(name))
            for private, word in PRIVATE_WORDS.items():
                if re.search(rf"(^|_){private}(s|es)?($|_)", text):
                    found.append(f"{place}: {name} (say {word})")
    assert not found, "\n".join(found)


def test_private_words_come_back_nowhere() -> None:
    """Neither in names of tests and benchmarks nor in any text that a reader or user sees."""
    found = []
    words = "|".join(NEVER_MEANT_OTHERWISE)
    mentioned = re.compile(words.replace("_", "_?"), re.IGNORECASE)
    in_a_name, in_a_text = re.compile(rf"(^|_)({words})s?($|_)"), re.compile(rf"\b({words})s?\b", re.IGNORECASE)
    for path in (path for folder in ("src", "tests", "benchmarks") for path in (REPOSITORY / folder).rglob("*.py")):
        if path.parent == OWN_FOLDER:
            continue
        if not mentioned.search(source := path.read_text(encoding="utf-8")):  # parsing all of them takes seconds
            continue
        place, tree = path.relative_to(REPOSITORY), ast.parse(source)
        names = ["_".join(words_of(name)) for name in sorted(identifiers(tree))]
        found += [f"{place}: {name}" for name in names if in_a_name.search(name)]
        found += [f"{place}:{line} in a text: {said[:60]!r}" for line, said in texts(tree) if in_a_text.search(said)]
    assert not found, "\n".join(found)
