"""Searches along a trajectory of the live env, as `adalook search` shows and saves them.

Each search begins in the current state; then the env takes the action that the search chose. Leaves have the value 0:
this is lookahead by rewards alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule
from adalook.search.rules.fixed import FixedDepth
from adalook.search.rules.quantile import RecentDistances
from adalook.search.search import Budget, Root, search
from adalook.search.workers.base import Expander
from adalook.simulators.base import Observations, Simulator
from adalook.storage.arrays import pack_arrays
from adalook.storage.files import atomic_write, make_directory

FORMAT, FORMAT_VERSION = "adalook search", 1


@dataclass(frozen=True)
class TrajectoryPlan:
    """A plan of which states of a trajectory to search, and how."""

    rule: DepthRule
    distances: RecentDistances
    """Gets the distances of every search, for rules that compare with them."""
    discount: float = 0.99
    width: int | None = None
    budget: Budget | None = None
    states: int = 8
    every: int = 10
    """Steps from one searched state to the next: the action that the search chose, then random ones."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class SearchedState:
    """One search of a trajectory. The best path has n steps."""

    step: int
    """Of the trajectory."""
    result: SearchResult
    observation: np.ndarray[Any, Any]
    """(*observation_shape) of the root"""
    path: Observations
    """(n, *observation_shape) the observations along the best path"""
    path_rewards: FloatArray
    """(n,)"""
    seconds: float

    def summary(self) -> dict[str, Any]:
        """Return the search as plain data; actions that a beam dropped have the value None."""
        result = self.result
        return {
            "step": self.step,
            "action": result.action,
            "value": result.value,
            "action_values": [value if np.isfinite(value) else None for value in result.action_values.tolist()],
            "depth": result.depth,
            "status": result.status.value,
            "path": list(result.path),
            "path_rewards": self.path_rewards.tolist(),
            "nodes": result.nodes,
            "tree_nodes": result.tree_nodes,
            "saved": result.saved,
            "seconds": self.seconds,
            "expansion_seconds": result.seconds.expansion,
        }


def search_along(sim: Simulator, plan: TrajectoryPlan, expander: Expander | None = None) -> Iterator[SearchedState]:
    """Search some states of a trajectory, one after the other."""
    rng = np.random.default_rng(plan.seed)
    sim.reset(seed=plan.seed)
    # One search before time is measured: worker processes take a second to start.
    search(sim, Root.of(sim), _zero, FixedDepth(1), discount=plan.discount, expander=expander)
    for number in range(plan.states):
        root, seed = Root.of(sim), int(rng.integers(2**32))
        begin = time.perf_counter()
        result = search(
            sim,
            root,
            _zero,
            plan.rule,
            discount=plan.discount,
            seed=seed,
            width=plan.width,
            budget=plan.budget,
            expander=expander,
        )
        seconds = time.perf_counter() - begin
        plan.distances.add_result(result)
        path, rewards = _follow(sim, sim.reseed(root.state, seed), result.path)
        yield SearchedState(number * plan.every, result, root.observation, path, rewards, seconds)
        for action in [result.action, *rng.integers(sim.num_actions, size=plan.every - 1).tolist()]:
            if sim.step(action).episode_over:
                sim.reset()


def _zero(observations: Observations, depth: int) -> FloatArray:
    """Return the value 0 (n,) for every leaf."""
    return np.zeros(len(observations))


def _follow(sim: Simulator, state: Any, actions: Sequence[int]) -> tuple[Observations, FloatArray]:
    """Return the observations (n, *observation_shape) and rewards (n,) of a path of the tree."""
    observations, rewards = [], []
    for action in actions:
        children = sim.expand([state], [action])
        (state,) = children.states
        observations.append(children.observations[0])
        rewards.append(children.rewards[0])
    return np.stack(observations), np.array(rewards)


def save_searches(directory: Path, about: dict[str, Any], searches: Sequence[SearchedState]) -> list[Path]:
    """Write `search.json` (numbers) and `search.npz` (observations), which `report.figures.search_view` reads."""
    make_directory(directory)
    arrays: dict[str, Any] = {}
    for number, searched in enumerate(searches):
        arrays[f"root_{number}"], arrays[f"path_{number}"] = searched.observation, searched.path
    summaries = [searched.summary() for searched in searches]
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **about, "searches": summaries}
    files = {"search.npz": pack_arrays(arrays), "search.json": (json.dumps(content, indent=1) + "\n").encode()}
    for name, data in files.items():
        with atomic_write(directory / name) as file:
            file.write(data)
    return [directory / name for name in files]
