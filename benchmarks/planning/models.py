"""The models of the planning benchmark, each known by a kind and a few numbers so that a child process can build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import adalook as al


@dataclass(frozen=True)
class Case:
    """A model that is solved side by side, and how much faster than the fastest peer we want to be on it."""

    name: str
    kind: str
    numbers: dict[str, Any]
    goal: float
    quick: bool = False
    """Whether `--quick` includes it."""

    @property
    def spec(self) -> dict[str, Any]:
        """What `build` needs."""
        return {"kind": self.kind, **self.numbers}


CASES = (
    Case("maze-100", "maze", {"size": 100, "discount": 0.999}, goal=10.0, quick=True),
    Case("maze-300", "maze", {"size": 300, "discount": 0.999}, goal=10.0),
    Case("garnet-10k", "garnet", {"num_states": 10_000, "discount": 0.95}, goal=1.0, quick=True),
    Case("garnet-1m", "garnet", {"num_states": 1_000_000, "discount": 0.99}, goal=1.5),
    Case("frozenlake-200", "frozenlake", {"size": 200, "discount": 0.99}, goal=1.0),
    Case("taxi-rainy", "taxi", {"discount": 0.99}, goal=1.0, quick=True),
    Case("forest-1k", "forest", {"num_states": 1_000, "discount": 0.99}, goal=1.0, quick=True),
    Case("forest-100k", "forest", {"num_states": 100_000, "discount": 0.99}, goal=1.0),
)


@dataclass(frozen=True)
class Series:
    """Mazes of growing size: how time and memory grow with the number of states."""

    sizes: tuple[int, ...] = (100, 300, 1000, 2000, 3000)
    quick_sizes: tuple[int, ...] = (100, 300)
    discount: float = 0.999
    memory_goal: float = 3.0
    """Peak memory of the largest, in multiples of the model's own arrays."""

    def spec(self, size: int) -> dict[str, Any]:
        return {"kind": "maze", "size": size, "discount": self.discount}


GROWTH = Series()


@dataclass(frozen=True)
class CertificateCost:
    """Models of 100,000 states on which the certificate may take at most `goal` of a solve."""

    specs: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "maze-320": {"kind": "maze", "size": 320, "discount": 0.999},
            "garnet-100k": {"kind": "garnet", "num_states": 100_000, "discount": 0.99},
        }
    )
    goal: float = 0.01


CERTIFICATE = CertificateCost()


def build(spec: dict[str, Any]) -> al.MDP:
    """The model of a spec.

    >>> build({"kind": "forest", "num_states": 10, "discount": 0.9}).num_states
    10
    """
    numbers = {key: value for key, value in spec.items() if key != "kind"}
    return BUILDERS[spec["kind"]](**numbers)


def tiny(spec: dict[str, Any]) -> al.MDP:
    """A small model of the same kind, to compile on."""
    small = {
        "maze": {"size": 12},
        "garnet": {"num_states": 50},
        "forest": {"num_states": 10},
        "frozenlake": {"size": 4},
    }
    return build({**spec, **small.get(spec["kind"], {})})


def _maze(size: int, discount: float) -> al.MDP:
    return al.zoo.maze(size, seed=0, discount=discount)


def _garnet(num_states: int, discount: float) -> al.MDP:
    return al.zoo.garnet(num_states, 4, 5, seed=0, discount=discount)


def _forest(num_states: int, discount: float) -> al.MDP:
    return al.zoo.forest(num_states, discount=discount)


def _frozenlake(size: int, discount: float) -> al.MDP:
    import gymnasium
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    env = gymnasium.make("FrozenLake-v1", desc=generate_random_map(size, seed=0), is_slippery=True)
    return al.MDP.from_gymnasium(env, discount)


def _taxi(discount: float) -> al.MDP:
    import gymnasium

    return al.MDP.from_gymnasium(gymnasium.make("Taxi-v4", is_rainy=True), discount)


BUILDERS: dict[str, Callable[..., al.MDP]] = {
    "maze": _maze,
    "garnet": _garnet,
    "forest": _forest,
    "frozenlake": _frozenlake,
    "taxi": _taxi,
}
