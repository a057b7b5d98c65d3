"""Which random generators a simulator holds, and which of them have moved: for messages that name the culprit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_DEEPEST = 4
_OWN_BUSINESS = ("_scratch", "_made_with", "_tree")
"""What a simulator keeps for trees: moving it moves no live world."""


def states_of(sim: Any) -> dict[str, str]:
    """Name to state, of each generator that can be found in the attributes of `sim` and of the two global ones."""
    found = global_states()
    for path, generator in _walk(sim, "self", 0, set()):
        found[path] = _state(generator)
    return found


def global_states() -> dict[str, str]:
    """Name to state, of the two generators that everybody shares."""
    return {
        "the global generator of NumPy (np.random)": _state(np.random.mtrand._rand),
        "the global generator of Python (random)": repr(random.getstate()),
    }


def moved(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The names of the generators whose states differ."""
    return [name for name, state in after.items() if before.get(name, state) != state]


def _state(generator: Any) -> str:
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    kind, words, *rest = generator.get_state()
    return repr((kind, words.tobytes(), rest))


def _walk(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.random.Generator | np.random.RandomState | random.Random):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, f"{path}[{key!r}]", depth + 1, seen)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _walk(item, f"{path}[{i}]", depth + 1, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType | FunctionType):
        for name, item in vars(value).items():
            if name not in _OWN_BUSINESS:
                yield from _walk(item, f"{path}.{name}", depth + 1, seen)
