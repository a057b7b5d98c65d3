"""Objects, sets, deques and shared lists that an environment holds, as plain data.

States go into checkpoints and keys without pickle. So an object becomes the name of its class and its attributes, and
what several places share is written once. Nothing is imported when it is read back, and no method runs: a class must be
one that the environment has shown, or be defined in a module of such a class, and its objects must be made of their
attributes alone.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.simulators.gym.generators import SOURCES, checked_state, get_state, has_plain_state, set_state
from adalook.storage.serializer import serialize

PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_COPYING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__deepcopy__", "__copy__", "__new__")
"""A class with one of these of its own is not made of its attributes alone."""
Place = tuple[int, str]
"""(layer, name) of an attribute; layer 0 is the outermost wrapper."""


class Layer:
    """A stand-in for the object of some layer, where another attribute refers back to it."""

    def __init__(self, depth: int) -> None:
        self.depth = depth


class LayerGenerator(Layer):
    """A stand-in for the generator in an attribute of a layer, where other attributes share it."""

    def __init__(self, depth: int, name: str) -> None:
        super().__init__(depth)
        self.name = name


layer_of, generator_of = cache(Layer), cache(LayerGenerator)  # one object for each: they are recognised by identity


class Classes:
    """The classes of an environment's own objects, by name.

    >>> classes = Classes([])
    >>> classes.add(ArgumentError)
    >>> classes.find("adalook.errors:FileError").__name__  # of a module that is known
    'FileError'
    """

    def __init__(self, layers: list[Any]) -> None:
        self._known: dict[str, type] = {}
        for layer in layers:
            for kind in type(layer).__mro__:
                if kind.__module__.partition(".")[0] not in ("builtins", "gymnasium", "typing", "abc"):
                    self.add(kind)

    def add(self, kind: type) -> None:
        """Make a class known, and its module."""
        self._known[class_name(kind)] = kind

    def find(self, name: str) -> type:
        """Return the class of this name; raise ValueError if the environment has nothing to do with it."""
        if name in self._known:
            return self._known[name]
        module, _, path = name.partition(":")
        found: Any = None
        if any(kind.__module__ == module for kind in self._known.values()):
            found = sys.modules.get(module)
            for part in path.split("."):
                found = vars(found).get(part) if found is not None and hasattr(found, "__dict__") else None
        if not isinstance(found, type) or class_name(found) != name:
            raise ValueError(f"the environment has no class {name}")
        return found


def class_name(kind: type) -> str:
    """Return the module and the name of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def _slots(kind: type) -> list[str]:
    """Return the names of the attributes that objects of a class keep in slots."""
    listed = [vars(base).get("__slots__", ()) for base in kind.__mro__]
    names = [name for slots in listed for name in ((slots,) if isinstance(slots, str) else slots)]
    return sorted(set(names) - {"__dict__", "__weakref__"})


def _is_record(kind: type) -> bool:
    """Return whether objects of a class are made of their attributes alone, and copied as such."""
    builtin = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    return builtin is object and all(getattr(kind, name, None) is getattr(object, name, None) for name in _COPYING)


def flatten(value: Any, classes: Classes) -> tuple[Any, list[Any]]:
    """Return a value as plain data: itself, with numbers in the place of what can change, and the list of that.

    >>> unflatten(flatten({"seen": {(1, 2)}}, Classes([])), Classes([]))
    {'seen': {(1, 2)}}

    Args:
        value: what an environment may hold.
        classes: gets the classes of all objects.

    Raises:
        ArgumentError: something is neither plain data nor an object that is made of its attributes.
    """
    return _Flattener(classes).run(value)


class _Flattener:
    """The walk through a value, and what it has met."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._nodes: list[Any] = []
        self._numbers: dict[int, int] = {}

    def run(self, value: Any) -> tuple[Any, list[Any]]:
        return self._value(value, "its state"), self._nodes

    def _value(self, value: Any, place: str) -> Any:
        """Return what cannot change as it is, and the number of a node for all else."""
        kind = type(value)
        if kind in PLAIN or isinstance(value, np.generic):
            return value
        if kind is tuple:
            return ("tuple", [self._value(item, place) for item in value])
        if kind is complex:
            return ("complex", value.real, value.imag)
        if isinstance(value, LayerGenerator):
            return ("generator of", value.depth, value.name)
        if isinstance(value, Layer):
            return ("layer", value.depth)
        if isinstance(value, Enum):
            self._classes.add(kind)
            return ("enum", class_name(kind), value.name)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            self._classes.add(kind)
            return ("named tuple", class_name(kind), [self._value(item, place) for item in value])
        if kind is frozenset:
            return ("frozenset", self._members(value, place))
        if isinstance(value, type):
            self._classes.add(value)
            return ("class", class_name(value))
        if id(value) not in self._numbers:
            number = self._numbers[id(value)] = len(self._nodes)
            self._nodes.append(None)  # it may contain itself
            self._nodes[number] = self._node(value, place)
        return ("node", self._numbers[id(value)])

    def _node(self, value: Any, place: str) -> Any:
        kind = type(value)
        if kind is list:
            return ("list", [self._value(item, f"{place}[…]") for item in value])
        if kind is dict:
            return (
                "dict",
                [(self._key(key, place), self._value(item, f"{place}[{key!r}]")) for key, item in value.items()],
            )
        if kind is set:
            return ("set", self._members(value, place))
        if kind is deque:
            return ("deque", value.maxlen, [self._value(item, f"{place}[…]") for item in value])
        if kind is np.ndarray:
            return ("array", value) if value.dtype != object else self._refuse(value, place)
        if isinstance(value, SOURCES) and has_plain_state(value):
            return ("generator", get_state(value))
        if kind.__module__ != "builtins" and _is_record(kind):
            self._classes.add(kind)
            attributes = vars(value) if hasattr(value, "__dict__") else {}
            in_slots = {name: getattr(value, name) for name in _slots(kind) if hasattr(value, name)}
            named = sorted({**in_slots, **attributes}.items())
            return ("object", class_name(kind), [(name, self._value(item, f"{place}.{name}")) for name, item in named])
        return self._refuse(value, place)

    def _key(self, key: Any, place: str) -> Any:
        """Return a key or a member of a set, which must not be something that can change."""
        before = len(self._nodes)
        found = self._value(key, place)
        if len(self._nodes) != before or (type(found) is tuple and found[0] == "node"):
            self._refuse(key, f"a key of {place}")
        return found

    def _members(self, values: Any, place: str) -> list[Any]:
        """Return the members of a set in an order that they alone decide, so that equal sets are equal bytes."""
        members = [self._key(value, place) for value in values]
        try:
            return sorted(members)
        except TypeError:  # of several types
            return sorted(members, key=serialize)

    def _refuse(self, value: Any, place: str) -> Any:
        kind = type(value)
        raise ArgumentError(
            f"{place} cannot be written down",
            expected="plain data, arrays, or objects that are made of their attributes",
            got=class_name(kind).replace(":", "."),
        )


def unflatten(flat: Any, classes: Classes, layers: int = 0, generators: Collection[Place] = ()) -> Any:
    """Return the value that `flatten` was given; raise ValueError, TypeError or LookupError for anything else.

    Args:
        flat: what `flatten` returned.
        classes: those whose objects may be made.
        layers: how many layers stand-ins may stand for.
        generators: where they have generators that stand-ins may stand for.
    """
    root, nodes = flat
    made = [_blank(node, classes) for node in nodes]

    def value(item: Any) -> Any:
        match item:
            case ("tuple", list() as items):
                return tuple(map(value, items))
            case ("frozenset", list() as items):
                return frozenset(map(value, items))
            case ("node", int() as number) if 0 <= number < len(made):
                return made[number]
            case ("complex", float() as real, float() as imaginary):
                return complex(real, imaginary)
            case ("layer", int() as depth) if 0 <= depth < layers:
                return layer_of(depth)
            case ("generator of", depth, name) if (depth, name) in generators:
                return generator_of(depth, name)
            case ("class", str() as name):
                return classes.find(name)
            case ("enum", str() as name, str() as member):
                return _member(classes.find(name), member)
            case ("named tuple", str() as name, list() as items):
                return _named_tuple(classes.find(name), list(map(value, items)))
        if type(item) not in PLAIN and not isinstance(item, np.generic):
            raise ValueError("a value expected")
        return item

    for node, target in zip(nodes, made, strict=True):
        _fill(node, target, value)
    return value(root)


def _named_tuple(kind: Any, items: list[Any]) -> Any:
    if not (issubclass(kind, tuple) and len(getattr(kind, "_fields", ())) == len(items)):
        raise ValueError("a named tuple expected")
    return tuple.__new__(kind, items)


def _member(kind: Any, name: Any) -> Any:
    if not issubclass(kind, Enum):
        raise ValueError("an Enum expected")
    return kind[name]


def _blank(node: Any, classes: Classes) -> Any:
    """Return what a node will be, still empty: others may refer to it before it is filled."""
    match node:
        case ("list", list()):
            return []
        case ("dict", list()):
            return {}
        case ("set", list()):
            return set()
        case ("deque", int() | None as most, list()):
            return deque(maxlen=most)
        case ("array", np.ndarray() as array):
            return array
        case ("generator", state):
            return set_state(None, checked_state(state))
        case ("object", str() as name, list()):
            kind = classes.find(name)
            if issubclass(kind, Enum) or not _is_record(kind):
                raise ValueError(f"{name} has no objects that are made of their attributes")
            return object.__new__(kind)
    raise ValueError("a node expected")


def _fill(node: Any, target: Any, value: Callable[[Any], Any]) -> None:
    """Put its content into an empty node."""
    match node:
        case ("list" | "deque", *_, items):
            target.extend(map(value, items))
        case ("dict", items):
            target.update((value(key), value(item)) for key, item in items)
        case ("set", items):
            target.update(map(value, items))
        case ("object", _, attributes):
            slots = _slots(type(target))
            for name, item in attributes:
                if name in slots:
                    object.__setattr__(target, name, value(item))
                else:
                    check_attribute_name(type(target), name)
                    vars(target)[name] = value(item)


def check_attribute_name(kind: type, name: Any) -> None:
    """Raise ValueError if an attribute of this name could change how objects of a class work."""
    inherited = getattr(kind, name, None) if isinstance(name, str) else None
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or name.startswith("__")
        or callable(inherited)
        or hasattr(type(inherited), "__get__")
    ):
        raise ValueError(f"the environment has no attribute {name!r}")
