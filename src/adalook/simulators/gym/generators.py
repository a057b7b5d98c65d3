"""The states of NumPy's and Python's random generators as plain data, checked before use, and new seeds for them.

States may come from a file, so nothing here looks a name up in a module, and places in a generator's buffer, which
NumPy takes as they are, are kept within it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from adalook.simulators.randomness import RandomDraws

GeneratorState: TypeAlias = dict[str, Any]
"""What NumPy calls the state of a bit generator; "holder" says what draws from it, if not an `np.random.Generator`."""

SOURCES = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
"""Every class that random numbers come from."""

_BIT_GENERATORS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}
_BUFFER_PLACES = {"MT19937": (("state", "pos"), 624), "Philox": (("buffer_pos",), 4)}
"""Which entry of a state says what number of a buffer comes next, and its largest value."""
_PYTHON = "random.Random"
_LEGACY = "RandomState"


def has_plain_state(generator: Any) -> bool:
    """Return whether a generator's state can be plain data: it is of one of the usual classes, not of a subclass."""
    kind = type(generator)
    if kind is np.random.Generator:
        return type(generator.bit_generator) in _BIT_GENERATORS.values()
    return kind is random.Random or (
        kind is np.random.RandomState and type(generator._bit_generator) is np.random.MT19937
    )


def get_state(generator: Any) -> GeneratorState:
    """Return the state of a generator that `has_plain_state`."""
    if type(generator) is np.random.Generator:
        return dict(generator.bit_generator.state)
    if type(generator) is np.random.RandomState:
        return {"holder": _LEGACY, **generator.get_state(legacy=False)}
    return {"holder": _PYTHON, "state": generator.getstate()}


def set_state(generator: Any, state: GeneratorState) -> Any:
    """Return a generator in this state: the given one if it is of the right class, else a new one."""
    holder = state.get("holder")
    if holder == _PYTHON:
        mine = generator if type(generator) is random.Random else random.Random()
        mine.setstate(state["state"])
        return mine
    if holder == _LEGACY:
        legacy = generator if type(generator) is np.random.RandomState else np.random.RandomState()
        legacy.set_state(state)
        return legacy
    kind = _BIT_GENERATORS[state["bit_generator"]]
    if type(generator) is not np.random.Generator or type(generator.bit_generator) is not kind:
        generator = np.random.Generator(kind(0))
    generator.bit_generator.state = state
    return generator


def reseed(generators: Iterable[Any], draws: RandomDraws) -> None:
    """Seed each generator from `draws`; numbers that were drawn ahead are forgotten."""
    done: set[int] = set()
    for generator in generators:
        source = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
        if id(source) in done:
            continue
        done.add(id(source))
        seed = [draws.randint(2**32) for _ in range(4)]
        if isinstance(source, random.Random):
            source.seed(sum(word << 32 * i for i, word in enumerate(seed)))
        elif isinstance(source, np.random.RandomState):
            fresh = type(source._bit_generator)(seed).state
            source.set_state({**fresh, "has_gauss": 0, "gauss": 0.0})
            done.add(id(source._bit_generator))
        else:
            source.state = type(source)(seed).state


def checked_state(state: Any) -> GeneratorState:
    """Return the state if some generator can be in it; else raise ValueError."""
    if not isinstance(state, dict):
        raise ValueError("the state of a generator expected")
    try:
        _check_form(state)
        if not _alike(get_state(set_state(None, state)), state):
            raise ValueError("a generator does not keep it")
    except (TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"no state of a generator: {error}") from error
    return state


def _check_form(state: GeneratorState) -> None:
    """Raise ValueError unless the state has the form that its generator's class needs."""
    if state.get("holder") == _PYTHON:
        version, words, gauss = state["state"]
        *numbers, place = words
        if version != 3 or len(numbers) != 624 or not all(type(n) is int and 0 <= n < 2**32 for n in numbers):
            raise ValueError("624 words expected")
        if type(place) is not int or not 0 <= place <= 624 or not isinstance(gauss, float | None):
            raise ValueError("a place from 0 to 624 expected")
        return
    kind = state["bit_generator"]
    if kind not in _BIT_GENERATORS:
        raise ValueError(f"no generator is called {kind!r}")
    if state.get("holder") == _LEGACY and kind != "MT19937":
        raise ValueError("RandomState draws from MT19937")
    if kind in _BUFFER_PLACES:
        path, largest = _BUFFER_PLACES[kind]
        place = state
        for name in path:
            place = place[name]
        if type(place) is not int or not 0 <= place <= largest:
            raise ValueError(f"a place from 0 to {largest} expected")


def _alike(one: Any, other: Any) -> bool:
    """Return whether two states are equal in content and in type."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)
