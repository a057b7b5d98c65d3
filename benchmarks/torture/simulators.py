"""Simulators and environments that answer nonsense: each is refused by our own error, whoever steps it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import adalook as al
from adalook.search import Budget, FixedDepth, Root, search
from adalook.simulators.base import Simulator, Transition
from adalook.storage.serializer import deserialize, serialize
from benchmarks.torture.outcome import DIFFERENT, EQUAL, FOREIGN, HANG, MEMORY, Row, Scale, attempt

SIMULATORS, ENVIRONMENTS = 2_000, 1_000
"""In the full torture."""

NO_REWARDS: list[Any] = [math.nan, math.inf, -math.inf, 1e308, 10**400, None, "1", b"1", 1j, [1.0], {}, object()]
NO_REWARDS += [Decimal(1), np.array([1.0, 2.0]), np.float32("nan"), np.ma.masked, np.datetime64("2026-01-01")]
NO_OBSERVATIONS: list[Any] = [None, 5, "ab", {}, [0.0], np.zeros(0, np.float32), np.zeros(3, np.float32), object()]
NO_OBSERVATIONS += [np.full(2, math.nan, np.float32), np.full(2, -math.inf, np.float32), np.zeros(2, object)]
NO_OBSERVATIONS += [np.zeros(2, complex), np.array(["a", "b"]), np.ma.masked_array(np.zeros(2, np.float32), [1, 0])]
OTHER_ARRAYS: list[Any] = [[0.0, 1.0], np.zeros((1, 2), np.float32), np.zeros(2), np.zeros(2, np.int32)]
"""Not as declared; what is easily meant is taken from Gymnasium environments, whose answers are converted anyway."""
NO_FLAGS: list[Any] = [None, "yes", 2, math.nan, [], [True], np.array([True, False])]
NO_STEPS: list[Any] = [None, (), (1, 2, 3), "x", 5, object(), {}]
WRONG: dict[str, list[Any]] = {
    "reward": NO_REWARDS,
    "observation": NO_OBSERVATIONS,
    "terminated": NO_FLAGS,
    "result": NO_STEPS,
}
ATTRIBUTES: dict[str, list[Any]] = {
    "num_actions": [0, -1, 2.5, None, True, "3", 10**9, math.nan],
    "observation_shape": [None, [2], (0,), (-1,), "a", (2.5,), 2, (10**12,)],
    "observation_dtype": [None, "float32", object, np.dtype(object), np.dtype("U3"), np.float32],
}


class Walk(Simulator):
    """A walk along a line of which one field of its steps, or one attribute, is wrong from some step on."""

    num_actions = 3
    observation_shape = (2,)
    observation_dtype = np.dtype(np.float32)
    stochastic = False

    def __init__(self, field: str = "", value: Any = None, at: int = 1, stochastic: bool = False) -> None:
        self._field, self._value, self._at = field, value, at
        self._place = self._steps = self._seed = 0
        self.stochastic = stochastic
        if field in ATTRIBUTES:
            setattr(self, field, value)

    def reset(self, seed: int | None = None) -> Any:
        self._place, self._steps, self._seed = 0, 0, seed or 0
        return self.observe()

    def observe(self) -> Any:
        return np.array([self._place, self._steps], np.float32)

    def step(self, action: int) -> Any:
        self._steps += 1
        self._place += int(action) - (1 + self._seed * self._steps) % 2
        over = self._steps >= 12
        transition = Transition(self.observe(), float(self._place), float(self._place), over, over)
        if self._steps < self._at or self._field in ("", *ATTRIBUTES):
            return transition
        return self._value if self._field == "result" else replace(transition, **{self._field: self._value})

    def save(self) -> Any:
        return self._place, self._steps, self._seed

    def restore(self, state: Any) -> None:
        self._place, self._steps, self._seed = state

    def reseed(self, state: Any, seed: int) -> Any:
        return (*state[:2], seed % 1_000) if self.stochastic else state

    def pack(self, state: Any) -> bytes:
        return serialize(state)

    def unpack(self, data: bytes) -> Any:
        return deserialize(data)


class WalkEnv(gymnasium.Env[Any, Any]):
    """The same as a Gymnasium environment."""

    def __init__(self, field: str = "", value: Any = None, at: int = 1) -> None:
        self._field, self._value, self._at = field, value, at
        self._place = self._steps = 0
        self.action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._place = self._steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        self._place += int(action) - 1
        observation = np.array([self._place, self._steps], np.float32)
        answer = {"observation": observation, "reward": float(self._place), "terminated": self._steps >= 12}
        if self._steps >= self._at and self._field == "result":
            return self._value
        if self._steps >= self._at and self._field:
            answer[self._field] = self._value
        return (*answer.values(), False, {})


def _tree(sim: Simulator, **options: Any) -> Any:
    sim.reset(seed=0)
    return search(sim, Root.of(sim), lambda leaves, _: np.zeros(len(leaves)), FixedDepth(3), discount=0.9, **options)


def _trained(agent: Any, sim: Simulator, **settings: Any) -> Any:
    small = {"num_envs": 2, "hidden_units": 8, "buffer_transitions": 100, "learning_starts_steps": 16}
    small |= {"batch_transitions": 4, "ranked_transitions": 8, "max_episode_steps": 20}
    return agent(sim, al.Config.for_env(sim, **small), **settings).learn(steps=24, progress=False)


def _looked_ahead(sim: Simulator, outputs: tuple[int, ...], **options: Any) -> Any:
    model = al.Lookahead(lambda seen: np.zeros((len(seen), *outputs)), sim, correction=False, discount=0.9, **options)
    return model.evaluate(1, max_episode_steps=20)


USES: dict[str, Callable[[Simulator], Any]] = {
    "tree": _tree,
    "beam": lambda sim: _tree(sim, width=2),
    "budget": lambda sim: _tree(sim, budget=Budget(nodes=60)),
    "samples": lambda sim: _tree(sim, samples=2),
    "check": lambda sim: al.check_simulator(sim, steps=8),
    "lookahead by rollouts": lambda sim: _looked_ahead(sim, (3,), nodes=20),
    "lookahead by trees": lambda sim: _looked_ahead(sim, (), depth=2),
    "DQN": lambda sim: _trained(al.DQN, sim),
    "DQN of depth 1": lambda sim: _trained(al.DQN, sim, depth=1),
    "QL-DQN": lambda sim: _trained(al.QLDQN, sim),
    "QL-DQN by rollouts": lambda sim: _trained(al.QLDQN, sim, search_shape="rollouts", nodes_per_step=8.0),
}
BAD = frozenset({EQUAL, DIFFERENT, FOREIGN, HANG, MEMORY})


def _drawn(rng: np.random.Generator, choices: dict[str, list[Any]]) -> tuple[str, Any, str]:
    """Draw a field with a wrong value for it, and a use."""
    field = str(rng.choice(list(choices)))
    value = choices[field][rng.integers(len(choices[field]))]
    return field, value, str(rng.choice(list(USES)))


def _used(use: str, make: Callable[[], Simulator]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return USES[use](make())


def _simulators(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("simulators", "steps, observations and attributes that are none", BAD, f"refused, in {len(USES)} uses")
    choices = WRONG | {"raw_reward": NO_REWARDS, "episode_over": NO_FLAGS} | ATTRIBUTES
    choices["observation"] = [*NO_OBSERVATIONS, *OTHER_ARRAYS]
    for _ in range(scale.count(SIMULATORS, least=20)):
        field, value, use = _drawn(rng, choices)
        at, chance = int(rng.integers(1, 3)), bool(rng.integers(2))
        outcome, what = attempt(partial(_used, use, partial(Walk, field, value, at, chance)))
        row.add(outcome, f"{use}, {field} {value!r}: {what}")
    return row


def _environments(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row("simulators", "Gymnasium environments whose answers are none", BAD, f"refused, in {len(USES)} uses")
    for _ in range(scale.count(ENVIRONMENTS, least=10)):
        field, value, use = _drawn(rng, WRONG)
        make_env, replay = partial(WalkEnv, field, value, int(rng.integers(1, 3))), bool(rng.random() < 0.3)
        outcome, what = attempt(partial(_used, use, partial(al.make_simulator, make_env, replay=replay)))
        row.add(outcome, f"{use}, {field} {value!r}: {what}")
    return row


def rows(scale: Scale) -> Iterator[Row]:
    """Step simulators whose answers are wrong."""
    rng = np.random.default_rng([scale.seed, 7])
    yield _simulators(scale, rng)
    yield _environments(scale, rng)
