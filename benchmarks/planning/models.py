"""The models of the planning benchmark, each known by a kind and a few numbers so that a child process can build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import adalook as al
from benchmarks.planning import families


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
    Case("garnet-10k", "garnet", {"num_states": 10_000, "discount": 0.95}, goal=2.0, quick=True),
    Case("garnet-1m", "garnet", {"num_states": 1_000_000, "discount": 0.99}, goal=2.0),
    Case("frozenlake-50", "frozenlake", {"size": 50, "discount": 0.99}, goal=2.0),
    Case("frozenlake-200", "frozenlake", {"size": 200, "discount": 0.99}, goal=2.0),
    Case("taxi-rainy", "taxi", {"discount": 0.99}, goal=2.0, quick=True),
    Case("forest-1k", "forest", {"num_states": 1_000, "discount": 0.99}, goal=2.0, quick=True),
    Case("forest-100k", "forest", {"num_states": 100_000, "discount": 0.99}, goal=2.0),
    Case("queue-5k", "queue", {"num_states": 5_000, "discount": 0.9999}, goal=2.0, quick=True),
    Case("queue-100k", "queue", {"num_states": 100_000, "discount": 0.9999}, goal=2.0),
    Case("slippery-100", "slippery", {"size": 100, "discount": 0.999}, goal=2.0),
    Case("slippery-300", "slippery", {"size": 300, "discount": 0.999}, goal=3.0),
    Case("lattice-15", "lattice", {"side": 15, "slip": 0.2, "discount": 0.99}, goal=2.0),
    Case("lattice-45", "lattice", {"side": 45, "slip": 0.2, "discount": 0.995}, goal=2.0),
    Case("dense-300", "dense", {"num_states": 300, "num_actions": 8, "discount": 0.95}, goal=2.0, quick=True),
    Case("dense-1k", "dense", {"num_states": 1_000, "num_actions": 12, "discount": 0.99}, goal=2.0),
    Case("actions-200", "many_actions", {"num_states": 200, "num_actions": 50, "discount": 0.95}, goal=2.0, quick=True),
    Case("actions-500", "many_actions", {"num_states": 500, "num_actions": 100, "discount": 0.99}, goal=2.0),
    Case("layered-5k", "layered", {"layers": 50, "width": 100, "discount": 0.99}, goal=4.0, quick=True),
    Case("layered-100k", "layered", {"layers": 100, "width": 1_000, "discount": 0.99}, goal=4.0),
    Case("dag-5k", "shuffled_dag", {"num_states": 5_000, "discount": 0.99}, goal=2.0),
    Case("dag-200k", "shuffled_dag", {"num_states": 200_000, "discount": 0.999}, goal=2.0),
    Case("transient-4k", "transient", {"num_states": 4_000, "classes": 4, "discount": 0.99}, goal=2.0),
    Case("transient-200k", "transient", {"num_states": 200_000, "classes": 40, "discount": 0.999}, goal=2.0),
    Case("option-100", "option", {"steps": 100, "discount": 0.999}, goal=2.0),
    Case("option-600", "option", {"steps": 600, "discount": 0.9999}, goal=2.0),
    Case("blocks-5k", "blocks", {"num_blocks": 50, "size": 100, "discount": 0.9995}, goal=2.0),
    Case("blocks-100k", "blocks", {"num_blocks": 500, "size": 200, "discount": 0.9995}, goal=2.0),
    Case("pendulum-50", "pendulum", {"side": 50, "discount": 0.99}, goal=2.0),
    Case("pendulum-200", "pendulum", {"side": 200, "discount": 0.99}, goal=2.0),
    Case("car-50", "mountain_car", {"side": 50, "discount": 0.99}, goal=2.0),
    Case("car-200", "mountain_car", {"side": 200, "discount": 0.999}, goal=2.0),
    Case("inventory-50", "inventory", {"capacity": 50, "demand": 12.0, "discount": 0.99}, goal=2.0),
    Case("inventory-300", "inventory", {"capacity": 300, "demand": 60.0, "discount": 0.995}, goal=2.0),
    Case("replacement-1k", "replacement", {"num_states": 1_000, "discount": 0.99}, goal=2.0),
    Case("replacement-100k", "replacement", {"num_states": 100_000, "discount": 0.9999}, goal=2.0),
    Case("gambler-1k", "gambler", {"goal": 1_000, "num_actions": 20, "discount": 0.9999}, goal=2.0),
    Case("gambler-50k", "gambler", {"goal": 50_000, "num_actions": 20, "discount": 0.9999}, goal=2.0),
    Case("rental-10", "car_rental", {"cars": 10, "discount": 0.9}, goal=2.0),
    Case("rental-20", "car_rental", {"cars": 20, "discount": 0.95}, goal=2.0),
    Case("tandem-40", "tandem", {"size": 40, "discount": 0.999}, goal=2.0),
    Case("tandem-200", "tandem", {"size": 200, "discount": 0.999}, goal=2.0),
    Case("swim-1k", "river_swim", {"num_states": 1_000, "discount": 0.9999}, goal=2.0),
    Case("swim-100k", "river_swim", {"num_states": 100_000, "discount": 0.99999}, goal=2.0),
    Case("lazy-3k", "lazy", {"num_states": 3_000, "stay": 0.95, "discount": 0.999}, goal=2.0),
    Case("lazy-100k", "lazy", {"num_states": 100_000, "stay": 0.95, "discount": 0.999}, goal=2.0),
    Case("web-5k", "web", {"num_states": 5_000, "discount": 0.99}, goal=2.0),
    Case("web-200k", "web", {"num_states": 200_000, "discount": 0.99}, goal=2.0),
    Case("restart-200", "restart", {"num_states": 200, "discount": 0.99}, goal=2.0),
    Case("restart-1k", "restart", {"num_states": 1_000, "discount": 0.99}, goal=2.0),
    Case("admission-1k", "admission", {"classes": 5, "room": 200, "discount": 0.999}, goal=2.0),
    Case("admission-20k", "admission", {"classes": 10, "room": 2_000, "discount": 0.9999}, goal=2.0),
    Case("band-5k", "band", {"num_states": 5_000, "width": 10, "discount": 0.999}, goal=2.0),
    Case("band-200k", "band", {"num_states": 200_000, "width": 50, "discount": 0.999}, goal=2.0),
    Case("torus-40", "torus", {"side": 40, "discount": 0.99}, goal=2.0),
    Case("torus-300", "torus", {"side": 300, "discount": 0.999}, goal=2.0),
    Case("windy-40", "windy", {"side": 40, "discount": 0.99}, goal=2.0),
    Case("windy-300", "windy", {"side": 300, "discount": 0.999}, goal=2.0),
    Case("repair-3", "repair", {"machines": 3, "levels": 8, "discount": 0.99}, goal=2.0),
    Case("repair-5", "repair", {"machines": 5, "levels": 7, "discount": 0.995}, goal=2.0),
    Case("branching-11", "branching", {"depth": 11, "discount": 0.99}, goal=2.0),
    Case("branching-17", "branching", {"depth": 17, "discount": 0.999}, goal=2.0),
    Case("project-3k", "project", {"num_states": 3_000, "discount": 0.99}, goal=2.0),
    Case("project-200k", "project", {"num_states": 200_000, "discount": 0.999}, goal=2.0),
    Case("schedule-2k", "schedule", {"period": 200, "modes": 10, "discount": 0.999}, goal=2.0),
    Case("schedule-100k", "schedule", {"period": 5_000, "modes": 20, "discount": 0.9999}, goal=2.0),
    Case("scales-2k", "two_scales", {"clusters": 20, "size": 100, "discount": 0.9999}, goal=2.0),
    Case("scales-100k", "two_scales", {"clusters": 100, "size": 1_000, "discount": 0.9999}, goal=2.0),
    Case("star-2k", "star", {"arms": 50, "length": 40, "discount": 0.99}, goal=2.0),
    Case("star-100k", "star", {"arms": 500, "length": 200, "discount": 0.9999}, goal=2.0),
    Case("bandits-4", "bandits", {"arms": 4, "levels": 6, "discount": 0.9999}, goal=2.0),
    Case("bandits-6", "bandits", {"arms": 6, "levels": 6, "discount": 0.9999}, goal=2.0),
    Case("rooms-2k", "rooms", {"num_rooms": 20, "side": 10, "discount": 0.999}, goal=2.0),
    Case("rooms-50k", "rooms", {"num_rooms": 50, "side": 32, "discount": 0.999}, goal=2.0),
    Case("sailing-20", "sailing", {"side": 20, "discount": 0.99}, goal=2.0),
    Case("sailing-60", "sailing", {"side": 60, "discount": 0.999}, goal=2.0),
    Case("elevator-8", "elevator", {"floors": 8, "discount": 0.99}, goal=2.0),
    Case("elevator-11", "elevator", {"floors": 11, "discount": 0.999}, goal=2.0),
    Case("sticky-2k", "sticky", {"num_states": 2_000, "discount": 0.999}, goal=2.0),
    Case("sticky-5k", "sticky", {"num_states": 5_000, "discount": 0.9999}, goal=2.0),
    Case("stages-4k", "stages", {"count": 20, "size": 200, "discount": 0.9999}, goal=2.0),
    Case("stages-50k", "stages", {"count": 50, "size": 1_000, "discount": 0.9999}, goal=2.0),
    Case("fishery-2k", "fishery", {"num_states": 2_000, "num_actions": 20, "discount": 0.98}, goal=2.0),
    Case("fishery-20k", "fishery", {"num_states": 20_000, "num_actions": 20, "discount": 0.99}, goal=2.0),
    Case("keys-20", "keys", {"side": 20, "count": 3, "discount": 0.99}, goal=2.0),
    Case("keys-60", "keys", {"side": 60, "count": 4, "discount": 0.999}, goal=2.0),
    Case("pursuit-8", "pursuit", {"side": 8, "discount": 0.99}, goal=2.0),
    Case("pursuit-14", "pursuit", {"side": 14, "discount": 0.99}, goal=2.0),
    Case("epidemic-60", "epidemic", {"size": 60, "discount": 0.99}, goal=2.0),
    Case("epidemic-200", "epidemic", {"size": 200, "discount": 0.999}, goal=2.0),
    Case("hypercube-12", "hypercube", {"bits": 12, "discount": 0.99}, goal=2.0),
    Case("hypercube-16", "hypercube", {"bits": 16, "discount": 0.99}, goal=2.0),
    Case("lock-2k", "lock", {"num_states": 2_000, "num_actions": 5, "discount": 0.999}, goal=2.0),
    Case("lock-50k", "lock", {"num_states": 50_000, "num_actions": 5, "discount": 0.9999}, goal=2.0),
    Case("citations-5k", "citations", {"num_states": 5_000, "discount": 0.99}, goal=2.0),
    Case("citations-100k", "citations", {"num_states": 100_000, "discount": 0.999}, goal=2.0),
    Case("calls-40", "call_centre", {"size": 40, "discount": 0.999}, goal=2.0),
    Case("calls-150", "call_centre", {"size": 150, "discount": 0.9999}, goal=2.0),
    Case("ageing-5k", "ageing", {"ages": 200, "conditions": 25, "discount": 0.99}, goal=2.0),
    Case("ageing-100k", "ageing", {"ages": 1_000, "conditions": 100, "discount": 0.999}, goal=2.0),
    Case("dam-4k", "dam", {"levels": 400, "weather": 10, "discount": 0.99}, goal=2.0),
    Case("dam-40k", "dam", {"levels": 4_000, "weather": 10, "discount": 0.999}, goal=2.0),
    Case("routing-4k", "routing", {"size": 16, "servers": 3, "discount": 0.999}, goal=2.0),
    Case("routing-60k", "routing", {"size": 16, "servers": 4, "discount": 0.999}, goal=2.0),
    Case("battery-3k", "battery", {"levels": 200, "prices": 15, "discount": 0.99}, goal=2.0),
    Case("battery-50k", "battery", {"levels": 2_000, "prices": 25, "discount": 0.999}, goal=2.0),
    Case("obstacles-4k", "obstacles", {"side": 16, "period": 16, "discount": 0.99}, goal=2.0),
    Case("obstacles-80k", "obstacles", {"side": 50, "period": 32, "discount": 0.999}, goal=2.0),
    Case("knapsack-4k", "knapsack", {"room": 50, "items": 20, "discount": 0.99}, goal=2.0),
    Case("knapsack-80k", "knapsack", {"room": 400, "items": 50, "discount": 0.999}, goal=2.0),
    Case("doors-2k", "doors", {"side": 8, "rooms": 6, "discount": 0.999}, goal=2.0),
    Case("doors-60k", "doors", {"side": 25, "rooms": 10, "discount": 0.9999}, goal=2.0),
    Case("lead-2k", "lead_time", {"room": 20, "delay": 2, "orders": 10, "discount": 0.99}, goal=2.0),
    Case("lead-40k", "lead_time", {"room": 39, "delay": 3, "orders": 10, "discount": 0.999}, goal=2.0),
    Case("seasons-3k", "seasons", {"stock": 50, "periods": 60, "discount": 0.99}, goal=2.0),
    Case("seasons-20k", "seasons", {"stock": 150, "periods": 150, "discount": 0.999}, goal=2.0),
    Case("engine-1k", "engine", {"num_states": 1_000, "discount": 0.999}, goal=2.0),
    Case("engine-50k", "engine", {"num_states": 50_000, "discount": 0.9999}, goal=2.0),
)


@dataclass(frozen=True)
class Series:
    """Mazes of 10⁴, 10⁵, … 10⁸ states: how time and memory grow with the number of states."""

    sizes: tuple[int, ...] = (103, 319, 1_003, 3_165, 10_003)
    quick_sizes: tuple[int, ...] = (103, 319)
    discount: float = 0.999
    memory_goal: float = 24 * 2**30
    """Bytes within which every process must stay: its limit of address space."""

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
    small: dict[str, dict[str, Any]] = {
        "maze": {"size": 12},
        "garnet": {"num_states": 50},
        "forest": {"num_states": 10},
        "frozenlake": {"size": 4},
        "queue": {"num_states": 50},
        "slippery": {"size": 8},
        "lattice": {"side": 4},
        "dense": {"num_states": 20, "num_actions": 3},
        "many_actions": {"num_states": 20, "num_actions": 5},
        "layered": {"layers": 4, "width": 10},
        "shuffled_dag": {"num_states": 50},
        "transient": {"num_states": 60, "classes": 2},
        "option": {"steps": 8},
        "blocks": {"num_blocks": 3, "size": 10},
        "pendulum": {"side": 8},
        "mountain_car": {"side": 8},
        "inventory": {"capacity": 8, "demand": 3.0},
        "replacement": {"num_states": 20},
        "gambler": {"goal": 20, "num_actions": 3},
        "car_rental": {"cars": 3},
        "tandem": {"size": 6},
        "river_swim": {"num_states": 10},
        "lazy": {"num_states": 30},
        "web": {"num_states": 50},
        "restart": {"num_states": 10},
        "admission": {"classes": 3, "room": 5},
        "band": {"num_states": 60, "width": 3},
        "torus": {"side": 8},
        "windy": {"side": 12},
        "repair": {"machines": 2, "levels": 4},
        "branching": {"depth": 4},
        "project": {"num_states": 60},
        "schedule": {"period": 10, "modes": 4},
        "two_scales": {"clusters": 4, "size": 10},
        "star": {"arms": 4, "length": 6},
        "bandits": {"arms": 2, "levels": 4},
        "rooms": {"num_rooms": 3, "side": 4},
        "sailing": {"side": 4},
        "elevator": {"floors": 3},
        "sticky": {"num_states": 30},
        "stages": {"count": 3, "size": 10},
        "fishery": {"num_states": 30, "num_actions": 3},
        "keys": {"side": 4, "count": 2},
        "pursuit": {"side": 3},
        "epidemic": {"size": 6},
        "hypercube": {"bits": 4},
        "lock": {"num_states": 20},
        "citations": {"num_states": 40},
        "call_centre": {"size": 6},
        "ageing": {"ages": 8, "conditions": 5},
        "dam": {"levels": 30, "weather": 3},
        "routing": {"size": 4, "servers": 2},
        "battery": {"levels": 6, "prices": 4},
        "obstacles": {"side": 4, "period": 4},
        "knapsack": {"room": 6, "items": 4},
        "doors": {"side": 4, "rooms": 2},
        "lead_time": {"room": 5, "delay": 2, "orders": 3},
        "seasons": {"stock": 5, "periods": 6},
        "engine": {"num_states": 40},
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


def _slippery(size: int, discount: float) -> al.MDP:
    """The zoo's grid without holes, where every step costs 1 and the last cell is left never."""
    mdp = al.zoo.gridworld(size, size, slip=0.2, seed=0, discount=discount, holes=0.0)
    rewards = np.full_like(mdp.rewards, -1.0)
    rewards[-1] = 0.0
    return al.MDP._adopt(rewards, mdp.codes, mdp.rows, discount)


def _inventory(capacity: int, demand: float, discount: float) -> al.MDP:
    """The zoo's, with what is not offered there at a price that nobody pays: the peers are fed full models only."""
    mdp = al.zoo.inventory(capacity, demand, discount=discount)
    order = np.minimum(np.arange(capacity + 1), capacity - np.arange(capacity + 1)[:, None])
    rewards = np.where(mdp.offered, mdp.rewards, -1e3)
    codes = np.take_along_axis(mdp.codes, order, axis=1)
    return al.MDP._adopt(rewards, codes, mdp.rows, discount)


BUILDERS: dict[str, Callable[..., al.MDP]] = {
    "maze": _maze,
    "garnet": _garnet,
    "forest": _forest,
    "frozenlake": _frozenlake,
    "taxi": _taxi,
    "slippery": _slippery,
    "inventory": _inventory,
    "queue": al.zoo.queue,
    "layered": al.zoo.layered,
    "blocks": al.zoo.blocks,
    **{
        family.__name__: family
        for family in (
            families.admission,
            families.ageing,
            families.band,
            families.bandits,
            families.battery,
            families.branching,
            families.call_centre,
            families.car_rental,
            families.citations,
            families.dam,
            families.dense,
            families.doors,
            families.elevator,
            families.epidemic,
            families.fishery,
            families.gambler,
            families.hypercube,
            families.keys,
            families.knapsack,
            families.lattice,
            families.lazy,
            families.lead_time,
            families.seasons,
            families.engine,
            families.lock,
            families.many_actions,
            families.mountain_car,
            families.obstacles,
            families.option,
            families.pendulum,
            families.project,
            families.pursuit,
            families.repair,
            families.replacement,
            families.restart,
            families.river_swim,
            families.rooms,
            families.routing,
            families.sailing,
            families.schedule,
            families.shuffled_dag,
            families.stages,
            families.star,
            families.sticky,
            families.tandem,
            families.torus,
            families.transient,
            families.two_scales,
            families.web,
            families.windy,
        )
    },
}
