"""Snapshots of an environment and its wrappers, read from and written to their attributes.

`AttributeTypes` remembers what the attributes of an environment look like, so that bytes from a file cannot give it
others.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adalook._extras import import_extra
from adalook.errors import SimulatorError
from adalook.simulators.gym.generators import (
    SOURCES,
    GeneratorState,
    checked_state,
    get_state,
    has_plain_state,
    reseed,
    set_state,
)
from adalook.simulators.gym.objects import (
    Classes,
    Place,
    check_attribute_name,
    flatten,
    generator_of,
    layer_of,
    unflatten,
)
from adalook.simulators.randomness import RandomStream

Attributes = dict[str, Any]
NOT_STATE = frozenset(
    {"env", "spec", "_cached_spec", "metadata", "_metadata", "observation_space", "action_space"}
    | {"_observation_space", "_action_space", "render_mode", "P"}
)
"""Attributes that steps never change; `env` and `P` only where Gymnasium defines them, see `_is_state`."""

WRITE_YOUR_OWN = "write a Simulator with `save` and `restore` of its own, see docs/simulators.md"
REPLAY_IT = (
    "have its episodes replayed, which is slower: add ?replay=true to its name, or pass what makes it, "
    f"al.make_simulator(lambda: MyEnv(), replay=True); or {WRITE_YOUR_OWN}"
)
"""What to do about an environment that cannot be copied."""

_TOY_TEXT = "gymnasium.envs.toy_text."
_RENDER_ONLY = "lastaction"
"""What toy text keeps for `render` alone: no future depends on it."""

_IMMUTABLE = frozenset({int, float, bool, str, bytes, type(None), complex})


class Snapshot(NamedTuple):
    """The attributes of an environment and its wrappers, outermost first; never changed."""

    layers: tuple[Attributes, ...]
    """Immutable values and arrays."""
    others: dict[Place, Any]
    """Copies of all else, copied together so that what they share stays shared."""
    generators: dict[Place, GeneratorState | Place]
    """The state of each generator; or a place, for the same generator as there."""

    def plain(self, classes: Classes, with_generators: bool = True, without: Collection[Place] = ()) -> Any:
        """Return all of it but the places in `without`, as plain data in an order that the names alone decide.

        `classes` gets those of the objects in it. Raises `ArgumentError` for what cannot be plain data.
        """
        layers = tuple(
            {name: layer[name] for name in sorted(layer) if (depth, name) not in without}
            for depth, layer in enumerate(self.layers)
        )
        others = flatten({place: self.others[place] for place in sorted(self.others)}, classes) if self.others else {}
        generators = {place: self.generators[place] for place in sorted(self.generators)} if with_generators else None
        return layers, others, generators

    @classmethod
    def from_plain(cls, plain: Any, classes: Classes) -> Snapshot:
        """Return the snapshot of which `plain` returned this; raise ValueError, TypeError or LookupError otherwise."""
        layers, others, generators = plain
        if not isinstance(others, dict):  # earlier versions wrote plain data alone, as it is
            others = unflatten(others, classes, len(layers), generators)
        if not all(isinstance(layer, dict) and all(type(name) is str for name in layer) for layer in layers):
            raise ValueError("attributes by name expected")
        if not all(isinstance(places, dict) and all(map(_is_place, places)) for places in (others, generators)):
            raise ValueError("attributes by place expected")
        if any(depth >= len(layers) for depth, _ in (*others, *generators)):
            raise ValueError("an attribute belongs to no wrapper")
        owners = {place for place, state in generators.items() if not _is_place(state)}
        for state in generators.values():
            if not (_is_place(state) and state in owners):
                checked_state(state)
        return cls(tuple(layers), others, generators)


def _is_place(place: Any) -> bool:
    """Return whether a value from a file is a (layer, name)."""
    return (
        type(place) is tuple and len(place) == 2 and type(place[0]) is int and place[0] >= 0 and type(place[1]) is str
    )


@cache
def gymnasium_package() -> Any:
    """Return the package gymnasium, or raise `MissingExtraError`."""
    return import_extra("gymnasium", extra="search", purpose="a Gymnasium environment")


def layers_of(env: Any) -> Iterator[Any]:
    """Yield the environment and what it wraps, outermost first."""
    kind = gymnasium_package().Env
    while isinstance(env, kind):
        yield env
        env = vars(env).get("env")


def _is_state(layer: Any, key: str, value: Any) -> bool:
    """Return whether steps may change an attribute whose name is among `NOT_STATE`."""
    if key == "env":
        return not isinstance(value, gymnasium_package().Env)
    if key == "P":  # a transition table takes milliseconds to copy; under this name others keep what they like
        return not (
            isinstance(value, dict) and any(kind.__module__.startswith(_TOY_TEXT) for kind in type(layer).__mro__)
        )
    return False


TransitionTable = dict[int, dict[int, list[tuple[float, int, float, bool]]]]
"""P[state][action] of a toy-text environment: (probability, next state, reward, terminated)."""


def toy_text_table(env: Any) -> TransitionTable | None:
    """Return the transition table of one of Gymnasium's own toy-text environments, if that is all its steps go by."""
    table = getattr(env, "P", None)
    if not type(env).__module__.startswith(_TOY_TEXT) or not isinstance(table, dict):
        return None
    return None if getattr(env, "fickle_passenger", False) else table  # whose mind is not in the table


def is_random(table: TransitionTable) -> bool:
    """Return whether some state and action of a table have several outcomes."""
    return any(len({o[1:] for o in outcomes}) > 1 for actions in table.values() for outcomes in actions.values())


def render_only(env: Any) -> frozenset[Place]:
    """Return what may be left out of keys; only where all is Gymnasium's own, since a wrapper could look at it."""
    layers = list(layers_of(env))
    if not all(type(layer).__module__.startswith("gymnasium.") for layer in layers):
        return frozenset()
    return frozenset(
        (i, _RENDER_ONLY) for i, layer in enumerate(layers) if type(layer).__module__.startswith(_TOY_TEXT)
    )


def read(env: Any, name: str) -> Snapshot:
    """Return the state of `env`, sharing nothing with it that changes; `name` is for messages."""
    layers: list[Attributes] = []
    others: dict[Place, Any] = {}
    generators: dict[Place, GeneratorState | Place] = {}
    stand_ins: dict[int, Any] = {}
    for depth, layer in enumerate(layers_of(env)):
        values: Attributes = {}
        stand_ins[id(layer)] = layer_of(depth)
        for key, value in vars(layer).items():
            kind = type(value)
            if key in NOT_STATE and not _is_state(layer, key, value):
                continue
            if kind in _IMMUTABLE or isinstance(value, np.generic):
                values[key] = value
            elif kind is np.ndarray and value.dtype != object:
                values[key] = value.copy()
            elif isinstance(value, SOURCES) and has_plain_state(value):
                owner = stand_ins.setdefault(id(value), generator_of(depth, key))
                same = (owner.depth, owner.name)
                generators[depth, key] = get_state(value) if same == (depth, key) else same
            else:
                others[depth, key] = value
        layers.append(values)
    return Snapshot(tuple(layers), _deep_copy(others, stand_ins, name) if others else others, generators)


def _deep_copy(values: dict[Place, Any], stand_ins: dict[int, Any], name: str) -> dict[Place, Any]:
    """Copy attributes together; `stand_ins` (by id) take the place of layers and generators."""
    try:
        return copy.deepcopy(values, stand_ins)
    except Exception as error:  # copying runs anybody's code
        kinds = ", ".join(f"{key} ({type(value).__name__})" for (_, key), value in values.items())
        raise SimulatorError(
            f"{name} cannot be simulated: its state cannot be copied",
            got=f"{type(error).__name__}: {error}, in one of {kinds}",
            remedy=REPLAY_IT,
        ) from error


def write(env: Any, snapshot: Snapshot, randomness: RandomStream | None = None) -> None:
    """Put `env` into a state; the snapshot stays valid. With `randomness` all generators are seeded from that."""
    sources: list[Any] = []
    layers = list(layers_of(env))
    for depth, (layer, values) in enumerate(zip(layers, snapshot.layers, strict=True)):
        attributes = vars(layer)
        for key in [key for key in attributes if key not in values]:
            if (depth, key) in snapshot.generators or (depth, key) in snapshot.others:
                continue
            if key not in NOT_STATE or _is_state(layer, key, attributes[key]):
                del attributes[key]  # made by a later step
        for key, value in values.items():
            attributes[key] = value.copy() if type(value) is np.ndarray else value
    if snapshot.generators:
        sources += _write_generators(layers, snapshot)
    if snapshot.others:
        sources += _write_others(layers, snapshot)
    if randomness is not None and sources:
        reseed(sources, randomness.draws())


def _write_generators(layers: list[Any], snapshot: Snapshot) -> list[Any]:
    """Put the generators in place, those that are one in the snapshot as one, and return them."""
    written: dict[Place, Any] = {}
    for (depth, key), state in sorted(snapshot.generators.items(), key=lambda item: item[0]):
        if isinstance(state, dict):
            present = vars(layers[depth]).get(key)
            taken = any(present is other for other in written.values())
            written[depth, key] = vars(layers[depth])[key] = set_state(None if taken else present, state)
    for (depth, key), state in snapshot.generators.items():
        if not isinstance(state, dict):
            vars(layers[depth])[key] = written[state]
    return list(written.values())


def _write_others(layers: list[Any], snapshot: Snapshot) -> list[Any]:
    """Copy what is neither immutable, array nor generator into place, and return the generators within."""
    memo: dict[int, Any] = {id(layer_of(depth)): layer for depth, layer in enumerate(layers)}
    memo |= {id(generator_of(depth, key)): vars(layers[depth])[key] for depth, key in snapshot.generators}
    known = set(memo)
    ordered = {place: snapshot.others[place] for place in sorted(snapshot.others)}
    for (depth, key), value in copy.deepcopy(ordered, memo).items():
        vars(layers[depth])[key] = value
    return [value for original, value in memo.items() if original not in known and isinstance(value, SOURCES)]


_NUMBERS = (bool, int, float, complex, np.bool_, np.number)


def _describe_type(value: Any) -> str:
    """Say what type of value an attribute has; all numbers are one type."""
    if isinstance(value, _NUMBERS):
        return "a number"
    if type(value) is np.ndarray:
        return f"an array of {value.ndim} dimensions"
    return f"a {type(value).__name__}"


class AttributeTypes:
    """The names and types of the attributes that an environment has had."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._layers = len(list(layers_of(env)))
        self._types: dict[Place, set[str]] = {}
        self._always: set[Place] | None = None

    def observe(self, snapshot: Snapshot) -> None:
        """Add a state that the environment came to by itself."""
        attributes = _all(snapshot)
        for place, value in attributes.items():
            self._types.setdefault(place, set()).add(_describe_type(value))
        self._always = set(attributes) if self._always is None else self._always & set(attributes)

    def check(self, snapshot: Snapshot) -> None:
        """Raise ValueError unless the environment could be in such a state.

        New attributes are allowed, since an environment may make some late, but never one that takes the place of a
        method. So is None, for "not yet".
        """
        if len(snapshot.layers) != self._layers:
            raise ValueError("as many wrappers as the environment has expected")
        attributes = _all(snapshot)
        if missing := (self._always or set()) - set(attributes):
            raise ValueError(f"no attribute {min(missing)[1]!r}")
        layers = list(layers_of(self._env))
        for (depth, name), value in attributes.items():
            seen = self._types.get((depth, name), set())
            if not seen:
                _check_new_name(layers[depth], name)
            elif value is not None and seen != {"a NoneType"} and _describe_type(value) not in seen:
                raise ValueError(f"attribute {name!r} is {_describe_type(value)}")


def _all(snapshot: Snapshot) -> dict[Place, Any]:
    """Return every attribute of a snapshot by its place."""
    plain = {(depth, name): value for depth, layer in enumerate(snapshot.layers) for name, value in layer.items()}
    generators = dict.fromkeys(snapshot.generators, np.random)  # their states are checked elsewhere
    return {**plain, **snapshot.others, **generators}


def _check_new_name(layer: Any, name: str) -> None:
    """Raise ValueError if an attribute of this name could change how the environment works."""
    check_attribute_name(type(layer), name)
    if name in NOT_STATE and name not in ("env", "P"):
        raise ValueError(f"attribute {name!r} never changes")
