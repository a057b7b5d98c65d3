"""The objects that a simulator holds, and the random generators among them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_LEAVES = (type, ModuleType, int, float, complex, str, bytes, type(None))
_TREE_ATTRIBUTES = ("_scratch", "_made_with", "_tree")
"""What a simulator keeps for trees: changing it changes nothing in the live env."""


def reachable(value: Any, path: str, skip: Collection[str] = (), max_depth: int = 8) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) of `value` and of what its attributes, items and methods lead to, each object once.

    Attributes named in `skip` are not followed, nor is what functions close over.
    """
    seen: set[int] = set()
    waiting = deque([(path, value, 0)])
    while waiting:
        path, value, depth = waiting.popleft()
        if isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        yield path, value
        if depth < max_depth:
            waiting.extend((way, part, depth + 1) for way, part in _parts(value, path, skip))


def _parts(value: Any, path: str, skip: Collection[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, MethodType):
        yield path, value.__self__
    elif not isinstance(value, FunctionType):
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in skip and hasattr(value, name):
                    yield f"{path}.{name}", getattr(value, name)
        for name, item in getattr(value, "__dict__", {}).items():
            if name not in skip:
                yield f"{path}.{name}", item


def generator_states(sim: Any) -> dict[str, str]:
    """Return the state, by name, of each generator in the attributes of `sim` and of the two global ones."""
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    held = reachable(sim, "self", skip=_TREE_ATTRIBUTES, max_depth=4)
    return global_states() | {path: generator_state(value) for path, value in held if isinstance(value, kinds)}


def global_states() -> dict[str, str]:
    """Return the states, by name, of the global generators of NumPy and Python."""
    return {
        "the global generator of NumPy (np.random)": generator_state(np.random.mtrand._rand),
        "the global generator of Python (random)": repr(random.getstate()),
    }


def moved(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return the names of the generators whose states differ."""
    return [name for name, state in after.items() if before.get(name, state) != state]


def generator_state(generator: Any) -> str:
    """Return the state of a random generator as text."""
    if isinstance(generator, np.random.BitGenerator):
        return repr(generator.state)
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    kind, words, *rest = generator.get_state()
    return repr((kind, words.tobytes(), rest))
