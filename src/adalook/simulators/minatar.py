"""MinAtar's five games, saved and restored field by field.

Observations are (channels, 10, 10) uint8 of zeros and ones: MinAtar's own (10, 10, channels) with the channels first.
The id ending in -v1 has the actions that matter in its game, -v0 all six, as in MinAtar's own registration.

A live state carries the state of MinAtar's generator, so the live env plays exactly as `minatar.Environment` does with
the same seed. A reseeded state carries a `RandomStream` instead. Expanding a state that was not reseeded is allowed and
foresees what the live env would draw: good for tests, wrong for search.
"""

from __future__ import annotations

import importlib.util
import marshal
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adalook._validation import fraction
from adalook.errors import ArgumentError, MissingExtraError
from adalook.simulators.arguments import check_actions, check_states, checked_action
from adalook.simulators.base import Children, Observations, Simulator, Transition
from adalook.simulators.randomness import RandomStream, checked_seed
from adalook.storage.serializer import add_digest, check_digest, damaged_error, deserialize, serialize

GAMES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}
"""Names in ids, and the modules that play them."""


_RANDOM_STEPS = frozenset({"asterix", "freeway", "seaquest"})
"""Games whose steps draw random numbers; those of the others do only where actions are sticky."""


def minatar_ids() -> list[str]:
    """Return the ids of all games."""
    return [f"MinAtar/{name}-{version}" for version in ("v1", "v0") for name in GAMES]


MersenneTwister: TypeAlias = tuple[bytes, int, int, float]
"""The state of the live generator: 624 words, position, and the normal number that was drawn ahead, if any."""

_ACTION_NAMES = ("none", "left", "up", "right", "down", "fire")
_ALL_ACTIONS = len(_ACTION_NAMES)
_NUMBERS = (int, np.integer)
_CONSTANT = {"channels", "action_map", "ramping", "random"}
"""Attributes of every game that are not part of its state; the generator is saved apart."""


class MinAtarState(NamedTuple):
    """A saved state of a game, in values that nobody changes."""

    numbers: tuple[Any, ...]
    maps: tuple[np.ndarray[Any, Any], ...]
    """(10, 10) arrays"""
    entities: tuple[tuple[Any, ...], ...]
    """Lists of entities, each a tuple of numbers, or None for a free slot."""
    last_action: int
    randomness: RandomStream | MersenneTwister
    owner: str
    """The name of the game."""


class MinAtarSimulator(Simulator):
    """A simulator of one of MinAtar's games.

    Args:
        game: such as "MinAtar/Breakout-v1"; the plain name "Breakout" means the same.
        sticky: probability that the last action is repeated whatever is asked for.
        ramping: whether the game gets harder with time.

    >>> sim = MinAtarSimulator("MinAtar/Breakout-v1")
    >>> sim.reset(seed=0).shape, sim.num_actions
    ((4, 10, 10), 3)
    >>> root = sim.reseed(sim.save(), seed=1)
    >>> sim.expand([root] * 3, range(3)).rewards.tolist()
    [0.0, 0.0, 0.0]
    """

    observation_dtype = np.dtype(np.uint8)
    binary_observations = True

    def __init__(self, game: str, sticky: float = 0.0, ramping: bool = True) -> None:
        name, all_actions = _parse(game)
        self._owner = f"the MinAtar game {name}"
        module = _load(name)
        self._sticky = fraction.validate("sticky", sticky)
        self.stochastic = name in _RANDOM_STEPS or self._sticky > 0.0
        self._live = module.Env(ramping=ramping)
        self._tree = module.Env(ramping=ramping)
        self._live.random = np.random.RandomState(np.random.MT19937())
        self._fields = _Fields(self._live, self._owner)
        self._actions: list[int] = list(range(_ALL_ACTIONS)) if all_actions else self._live.minimal_action_set()
        self._last_action = 0
        self._randomness: RandomStream | None = None  # None while the live env draws from MinAtar's own generator
        self.num_actions = len(self._actions)
        self.action_names = tuple(_ACTION_NAMES[action] for action in self._actions)
        height, width, channels = self._live.state_shape()
        self.observation_shape = (channels, height, width)
        self._live.reset()

    def reset(self, seed: int | None = None) -> np.ndarray[Any, Any]:
        """Begin an episode; as in MinAtar the last action stays from one to the next, unless a seed is given."""
        if seed is not None:
            self._last_action = 0
            self._live.random = np.random.RandomState(checked_seed(seed) % 2**32)
            self._randomness = None
        elif self._randomness is not None:
            self._live.random = self._randomness.draws()
            self._randomness = self._randomness.next()
        self._live.reset()
        return self.observe()

    def step(self, action: int) -> Transition:
        action = checked_action(action, self.num_actions)
        if self._randomness is not None:
            self._live.random = self._randomness.draws()
            self._randomness = self._randomness.next()
        reward, terminated, self._last_action = self._act(self._live, action, self._last_action)
        return Transition(self.observe(), reward, reward, terminated=terminated, episode_over=terminated)

    def _act(self, game: Any, action: int, last_action: int) -> tuple[float, bool, int]:
        """Play one step as `minatar.Environment.act` does; return reward, end and the action that was really played."""
        played = last_action if game.random.rand() < self._sticky else self._actions[action]
        reward, terminated = game.act(played)
        return float(reward), bool(terminated), played

    def save(self) -> MinAtarState:
        randomness = _twister(self._live.random) if self._randomness is None else self._randomness
        state = self._fields.read(self._live, self._last_action, randomness)
        return state._replace(maps=tuple(map(np.copy, state.maps)))  # the live game goes on to change its maps

    def restore(self, state: MinAtarState) -> None:
        check_states([state], MinAtarState, self._owner)
        self._last_action = state.last_action
        self._fields.write(self._live, state)
        if isinstance(state.randomness, RandomStream):
            self._randomness = state.randomness
        else:
            self._randomness = None
            self._live.random = _generator(state.randomness)

    def observe(self) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self._live.state().transpose(2, 0, 1)).view(np.uint8)

    def reseed(self, state: MinAtarState, seed: int) -> MinAtarState:
        check_states([state], MinAtarState, self._owner)
        return state._replace(randomness=RandomStream.for_tree(seed))

    def expand_leaves(
        self, states: Sequence[MinAtarState], actions: Sequence[int], out: Observations | None = None
    ) -> Children:
        return self.expand(states, actions, out, leaves=True)

    def expand(
        self,
        states: Sequence[MinAtarState],
        actions: Sequence[int],
        out: Observations | None = None,
        *,
        leaves: bool = False,
    ) -> Children:
        """Take `actions[i]` in `states[i]`, for every i; `leaves` have neither states nor keys."""
        check_actions(actions, self.num_actions)
        check_states(states, MinAtarState, self._owner)
        n = len(states)
        observations = np.empty((n, *self.observation_shape), np.uint8) if out is None else out
        images = observations.transpose(0, 2, 3, 1)  # channels last, as the games draw
        rewards, terminated = np.empty(n), np.empty(n, bool)
        children: list[MinAtarState] = []
        game, fields = self._tree, self._fields
        for i, (state, action) in enumerate(zip(states, actions, strict=True)):
            fields.write(game, state)
            before = state.randomness
            game.random = before.draws() if isinstance(before, RandomStream) else _generator(before)
            rewards[i], terminated[i], played = self._act(game, int(action), state.last_action)
            images[i] = game.state()
            if not leaves:
                after = before.next() if isinstance(before, RandomStream) else _twister(game.random)
                # The maps are the tree's own arrays: the next write replaces them.
                children.append(fields.read(game, played, after))
        return Children(children, observations, rewards, terminated, [self.key(child) for child in children])

    def key(self, state: MinAtarState) -> bytes:
        """Return all that a state's future depends on; the last action only if actions are sticky."""
        last_action = state.last_action if self._sticky else 0
        plain = (state.numbers, state.entities, last_action, *state.randomness)
        return b"".join([marshal.dumps(plain, 2), *[grid.tobytes() for grid in state.maps]])

    def pack(self, state: MinAtarState) -> bytes:
        check_states([state], MinAtarState, self._owner)
        kind = "tree" if isinstance(state.randomness, RandomStream) else "live"
        return add_digest(serialize((*state[:4], kind, tuple(state.randomness))), self._owner)

    def unpack(self, data: bytes) -> MinAtarState:
        content = check_digest(data, self._owner)
        try:
            numbers, maps, entities, last_action, kind, randomness = deserialize(content)
            if kind not in ("tree", "live") or type(last_action) is not int or not 0 <= last_action < _ALL_ACTIONS:
                raise ValueError("a last action expected")
            stream = RandomStream.checked(randomness) if kind == "tree" else _checked_twister(randomness)
            state = MinAtarState(numbers, maps, entities, last_action, stream, self._owner)
            self._fields.check(state)
            self._try_out(state)
        except (TypeError, ValueError, IndexError) as error:
            raise damaged_error(self._owner, "what pack made", str(error)) from error
        return state

    def _try_out(self, state: MinAtarState) -> None:
        """Render a state and play on from it in the tree's game, where numbers out of bounds raise errors."""
        self._fields.write(self._tree, state)
        self._tree.random = RandomStream.for_live(0).draws()
        self._tree.state()
        self._tree.act(state.last_action)
        self._tree.state()


class _Fields:
    """The attributes that make up the state of a game, by type."""

    def __init__(self, game: Any, owner: str) -> None:
        self._owner = owner
        fields = {name: value for name, value in vars(game).items() if name not in _CONSTANT}
        self.maps = tuple(name for name, value in fields.items() if isinstance(value, np.ndarray))
        self.entities = tuple(name for name, value in fields.items() if isinstance(value, list))
        self.numbers = tuple(name for name in fields if name not in self.maps + self.entities)
        self._map_types = tuple(fields[name].dtype for name in self.maps)
        self._get_numbers = attrgetter(*self.numbers)

    def read(self, game: Any, last_action: int, randomness: RandomStream | MersenneTwister) -> MinAtarState:
        """Return the state of `game`; the maps are the game's own arrays."""
        attributes = vars(game)
        return MinAtarState(
            self._get_numbers(game),
            tuple([attributes[name] for name in self.maps]),
            tuple([tuple([_frozen(entity) for entity in attributes[name]]) for name in self.entities]),
            last_action,
            randomness,
            self._owner,
        )

    def write(self, game: Any, state: MinAtarState) -> None:
        """Put `game` into a state, with maps and lists of its own, since games change theirs in place."""
        attributes = vars(game)
        attributes.update(zip(self.numbers, state.numbers, strict=True))
        for name, grid in zip(self.maps, state.maps, strict=True):
            attributes[name] = grid.copy()
        for name, entities in zip(self.entities, state.entities, strict=True):
            attributes[name] = [None if entity is None else list(entity) for entity in entities]

    def check(self, state: MinAtarState) -> None:
        """Raise ValueError unless a state can be one of this game."""
        sizes = len(state.numbers), len(state.maps), len(state.entities)
        wanted = len(self.numbers), len(self.maps), len(self.entities)
        if sizes != wanted:
            raise ValueError(f"{wanted} numbers, maps and lists expected, {sizes} found")
        if not all(type(part) is tuple for part in (state.numbers, state.maps, state.entities, *state.entities)):
            raise ValueError("tuples expected")
        if not all(isinstance(number, _NUMBERS) for number in state.numbers):
            raise ValueError("numbers expected")
        for grid, dtype in zip(state.maps, self._map_types, strict=True):
            if type(grid) is not np.ndarray or grid.shape != (10, 10) or grid.dtype != dtype:
                raise ValueError(f"a map is not 10x10 of {dtype}")
        for entity in [entity for entities in state.entities for entity in entities]:
            if entity is not None and not (type(entity) is tuple and all(isinstance(x, _NUMBERS) for x in entity)):
                raise ValueError("an entity is not made of numbers")


def _frozen(entity: list[Any] | None) -> tuple[Any, ...] | None:
    """Return an entity as a tuple of Python's ints; Freeway's speeds are NumPy's, which would not go into a key."""
    return None if entity is None else tuple([x if type(x) in (int, bool) else int(x) for x in entity])


def _twister(random: Any) -> MersenneTwister:
    """Return the state of a live generator."""
    _, words, position, has_gauss, gauss = random.get_state()
    return words.tobytes(), int(position), int(has_gauss), float(gauss)


def _checked_twister(twister: Any) -> MersenneTwister:
    """Return the state of a live generator from a file; raise ValueError if it is none.

    NumPy itself would take a position outside the words.
    """
    words, position, has_gauss, gauss = twister
    if type(words) is not bytes or len(words) != 4 * 624 or type(position) is not int or not 0 <= position <= 624:
        raise ValueError("624 words and a position in them expected")
    if type(has_gauss) is not int or has_gauss not in (0, 1) or type(gauss) is not float:
        raise ValueError("a number drawn ahead expected")
    return words, position, has_gauss, gauss


def _generator(twister: MersenneTwister) -> Any:
    """Return a live generator in this state."""
    words, position, has_gauss, gauss = twister
    random = np.random.RandomState(np.random.MT19937())
    random.set_state(("MT19937", np.frombuffer(words, np.uint32), position, has_gauss, gauss))
    return random


def _parse(game: str) -> tuple[str, bool]:
    """Return the name of the game's module, and whether all six actions are asked for."""
    name = str(game).removeprefix("MinAtar/")
    name, _, version = name.partition("-")
    if name not in GAMES or version not in ("", "v0", "v1"):
        raise ArgumentError(f"MinAtar has no game '{game}'", expected=f"one of {', '.join(minatar_ids())}")
    return GAMES[name], version == "v0"


def _load(name: str) -> ModuleType:
    """Return the module of one game, without importing MinAtar's package, which imports pyplot and warns of seaborn."""
    package = importlib.util.find_spec("minatar")
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError("minatar", "search", "a MinAtar game")
    file = Path(package.submodule_search_locations[0]) / "environments" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"adalook_minatar_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
