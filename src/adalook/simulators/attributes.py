"""The state of a Python object and of the objects it wraps, read from and written to their attributes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from adalook.errors import SimulatorError
from adalook.simulators.randomness import Randomness

Attributes = dict[str, Any]

NOT_STATE = frozenset(
    {"env", "spec", "_cached_spec", "metadata", "_metadata", "observation_space", "action_space"}
    | {"_observation_space", "_action_space", "render_mode", "P"}
)
"""What steps never change. `P` is the transition table of toy text, which takes milliseconds to copy."""

ONLY_DRAWN = frozenset({"lastaction"})
"""What toy text keeps for `render` alone: no future depends on it."""

_IMMUTABLE = frozenset({int, float, bool, str, bytes, type(None), complex})


class Snapshot(NamedTuple):
    """The attributes of a stack of objects, outermost first; nobody changes them."""

    layers: tuple[Attributes, ...]
    """immutable values and arrays"""
    others: dict[tuple[int, str], Any]
    """(layer, name) to a copy of whatever else there is, copied together so that what they share stays shared"""
    generators: dict[tuple[int, str], dict[str, Any]]
    """(layer, name) to the state of a NumPy bit generator"""

    def plain(self, with_generators: bool = True, for_key: bool = False) -> Any:
        """All of it as plain data, in an order that depends on the names alone."""
        skip = ONLY_DRAWN if for_key else frozenset()
        layers = tuple({name: layer[name] for name in sorted(layer) if name not in skip} for layer in self.layers)
        others = {place: self.others[place] for place in sorted(self.others)}
        generators = {place: self.generators[place] for place in sorted(self.generators)} if with_generators else None
        return layers, others, generators

    @classmethod
    def from_plain(cls, plain: Any) -> Snapshot:
        """What `plain` gave; raises ValueError or TypeError if it did not."""
        layers, others, generators = plain
        if not all(isinstance(layer, dict) for layer in layers) or not isinstance(others, dict):
            raise ValueError("attributes by name expected")
        return cls(tuple(layers), others, generators)


def layers_of(env: Any) -> Iterator[Any]:
    """The object and what it wraps, outermost first."""
    while env is not None:
        yield env
        env = vars(env).get("env")


def read(env: Any, name: str) -> Snapshot:
    """The state of `env`, sharing nothing with it that changes; `name` is for messages."""
    layers: list[Attributes] = []
    others: dict[tuple[int, str], Any] = {}
    generators: dict[tuple[int, str], dict[str, Any]] = {}
    for depth, layer in enumerate(layers_of(env)):
        values: Attributes = {}
        for key, value in vars(layer).items():
            kind = type(value)
            if key in NOT_STATE:
                continue
            if kind in _IMMUTABLE or isinstance(value, np.generic):
                values[key] = value
            elif kind is np.ndarray and value.dtype != object:
                values[key] = value.copy()
            elif kind is np.random.Generator:
                generators[depth, key] = value.bit_generator.state
            else:
                others[depth, key] = value
        layers.append(values)
    return Snapshot(tuple(layers), _copied(others, name) if others else others, generators)


def _copied(values: dict[tuple[int, str], Any], name: str) -> dict[tuple[int, str], Any]:
    try:
        return copy.deepcopy(values)
    except Exception as error:  # copying runs anybody's code
        kinds = ", ".join(f"{key} ({type(value).__name__})" for (_, key), value in values.items())
        raise SimulatorError(
            f"{name} cannot be simulated: its state cannot be copied",
            got=f"{type(error).__name__}: {error}, in one of {kinds}",
            remedy="write a Simulator with `save` and `restore` of its own, see docs/simulators.md",
        ) from error


def write(env: Any, snapshot: Snapshot) -> None:
    """Put `env` into a state; the snapshot stays good."""
    others = copy.deepcopy(snapshot.others) if snapshot.others else snapshot.others
    for depth, (layer, values) in enumerate(zip(layers_of(env), snapshot.layers, strict=True)):
        attributes = vars(layer)
        for key in [key for key in attributes if key not in NOT_STATE and key not in values]:
            if (depth, key) not in snapshot.generators and (depth, key) not in others:
                del attributes[key]  # made by a later step
        for key, value in values.items():
            attributes[key] = value.copy() if type(value) is np.ndarray else value
        for (where, key), state in snapshot.generators.items():
            if where == depth:
                _write_generator(attributes, key, state)
    for (where, key), value in others.items():
        vars(list(layers_of(env))[where])[key] = value


def _write_generator(attributes: Attributes, key: str, state: dict[str, Any]) -> None:
    generator = attributes.get(key)
    kind = state["bit_generator"]
    if type(generator) is not np.random.Generator or type(generator.bit_generator).__name__ != kind:
        generator = attributes[key] = np.random.Generator(getattr(np.random, kind)(0))
    generator.bit_generator.state = state


def seeded(snapshot: Snapshot, randomness: Randomness) -> Snapshot:
    """The same with generators that draw what `randomness` says."""
    if not snapshot.generators:
        return snapshot
    draws = randomness.draws()
    generators = {}
    for place, state in sorted(snapshot.generators.items()):
        seed = [draws.randint(2**32) for _ in range(4)]
        generators[place] = getattr(np.random, state["bit_generator"])(seed).state
    return snapshot._replace(generators=generators)
