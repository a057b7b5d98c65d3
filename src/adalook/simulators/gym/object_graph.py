"""All that an object's attributes lead to, with the way there in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

_DEEPEST = 8
_LEAVES = (type, ModuleType, int, float, complex, str, bytes, type(None))


def reachable(value: Any, path: str, skip: Collection[str] = (), seen: set[int] | None = None) -> Iterator[Any]:
    """(way, object) of `value` and of what its attributes, items and bound objects lead to, each object once.

    Attributes called as in `skip` are not followed, nor is what functions close over: see `closed_over`.
    """
    seen = set() if seen is None else seen
    waiting = deque([(path, value, 0)])
    while waiting:
        path, value, depth = waiting.popleft()
        if isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        yield path, value
        if depth < _DEEPEST:
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


def closed_over(function: Any) -> list[Any]:
    """What a function holds on to, and a copy of it would hold on to as well, since functions are never copied."""
    if isinstance(function, FunctionType):
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if isinstance(function, BuiltinFunctionType) and not isinstance(function.__self__, ModuleType | None):
        return [function.__self__]
    return []


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading it is the question
    except ValueError:
        return False
    return True
