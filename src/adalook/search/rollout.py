"""Searches along a rollout, for people to look at: `adalook search`.

Each search begins where the world stands; then the world takes the action that the search chose. Leaves are worth
nothing, so what is seen is lookahead by rewards alone.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook.errors import ArgumentError
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule
from adalook.search.rules.fixed import FixedDepth
from adalook.search.rules.gap import GapDepth
from adalook.search.rules.quantile import DistanceRecord, QuantileDepth
from adalook.search.search import Budget, Root, search
from adalook.search.workers.expander import Expander
from adalook.simulators.base import Observations, Simulator
from adalook.storage.files import atomic_write, make_directory

FORMAT, FORMAT_VERSION = "adalook search", 1
FEWEST_DISTANCES = 5
"""A rollout is short, so ranks are taken seriously early."""


@dataclass(frozen=True)
class Plan:
    """What to search, and how."""

    rule: DepthRule
    record: DistanceRecord
    """Gets the distances of every search, for rules that go by them."""
    discount: float = 0.99
    width: int | None = None
    budget: Budget | None = None
    states: int = 8
    every: int = 10
    """Steps from one searched state to the next: random ones, but the first, which the search chose."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Searched:
    """One search of a rollout. The best path has n steps; A is the number of actions."""

    step: int
    """Of the rollout."""
    result: SearchResult
    root: np.ndarray[Any, Any]
    """(*observation_shape)"""
    path: Observations
    """(n, *observation_shape) what the best path shows"""
    path_rewards: FloatArray
    """(n,)"""
    seconds: float


def build_rule(text: str, depth: int, record: DistanceRecord) -> DepthRule:
    """The rule that --rule stands for.

    >>> build_rule("gap:0.5", 3, DistanceRecord())
    GapDepth(gap=0.5, max_depth=3)
    """
    kind, _, details = text.partition(":")
    try:
        if kind == "fixed" and not details:
            return FixedDepth(depth)
        if kind == "gap":
            return GapDepth(float(details), depth)
        if kind == "quantile":
            pairs = [part.split("=") for part in details.split(",")]
            return QuantileDepth({int(level): float(share) for level, share in pairs}, record)
    except ArgumentError:
        raise
    except ValueError:
        pass
    raise ArgumentError("the rule is wrong", expected="fixed, gap:GAP or quantile:2=SHARE,3=SHARE,…", got=repr(text))


def searches_along(sim: Simulator, plan: Plan, expander: Expander | None = None) -> Iterator[Searched]:
    """Search some states of a rollout, one after the other."""
    rng = np.random.default_rng(plan.seed)
    sim.reset(seed=plan.seed)
    # One step ahead before the clock runs: worker processes take a second to wake up.
    search(sim, Root.of(sim), _no_value, FixedDepth(1), discount=plan.discount, expander=expander)
    for number in range(plan.states):
        root, seed = Root.of(sim), int(rng.integers(2**32))
        begin = time.perf_counter()
        result = search(
            sim,
            root,
            _no_value,
            plan.rule,
            discount=plan.discount,
            seed=seed,
            width=plan.width,
            budget=plan.budget,
            expander=expander,
        )
        seconds = time.perf_counter() - begin
        plan.record.add_result(result)
        path, rewards = _follow(sim, sim.reseed(root.state, seed), result.path)
        yield Searched(number * plan.every, result, root.observation, path, rewards, seconds)
        for action in [result.action, *rng.integers(sim.num_actions, size=plan.every - 1).tolist()]:
            if sim.step(action).episode_over:
                sim.reset()


def _no_value(observations: Observations, depth: int) -> FloatArray:
    return np.zeros(len(observations))


def _follow(sim: Simulator, state: Any, actions: Sequence[int]) -> tuple[Observations, FloatArray]:
    """What a path of the tree shows and pays."""
    shown, rewards = [], []
    for action in actions:
        children = sim.expand([state], [action])
        (state,) = children.states
        shown.append(children.observations[0])
        rewards.append(children.rewards[0])
    return np.stack(shown), np.array(rewards)


def describe(searched: Searched) -> dict[str, Any]:
    """A search as plain data; actions that a beam dropped have no value."""
    result = searched.result
    return {
        "step": searched.step,
        "action": result.action,
        "value": result.value,
        "action_values": [value if np.isfinite(value) else None for value in result.action_values.tolist()],
        "depth": result.depth,
        "status": result.status.value,
        "path": list(result.path),
        "path_rewards": searched.path_rewards.tolist(),
        "nodes": result.nodes,
        "tree_nodes": result.tree_nodes,
        "saved": result.saved,
        "seconds": searched.seconds,
        "expansion_seconds": result.seconds.expansion,
    }


def save_searches(directory: Path, about: dict[str, Any], searches: Sequence[Searched]) -> list[Path]:
    """Write `search.json`, the figures, and `search.npz`, what was seen, for `adalook.report.figures.search_view`."""
    make_directory(directory)
    arrays: dict[str, Any] = {}
    for number, searched in enumerate(searches):
        arrays[f"root_{number}"], arrays[f"path_{number}"] = searched.root, searched.path
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **about, "searches": list(map(describe, searches))}
    files = {"search.npz": buffer.getvalue(), "search.json": (json.dumps(content, indent=1) + "\n").encode()}
    for name, data in files.items():
        with atomic_write(directory / name) as file:
            file.write(data)
    return [directory / name for name in files]
