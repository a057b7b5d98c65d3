"""Curves of training runs by time or by steps, from their timelines, and what several seeds and games say together.

A timeline has counts and sums for each hundredth of the budget; a point of a curve is the mean over several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray
from adalook.report.data import statistics

JsonDict = dict[str, Any]
Curve = tuple[FloatArray, FloatArray]
"""Where, in seconds or steps, and how much."""
CurveFunction = Callable[[JsonDict, str], Curve]
"""From a run and an axis, "seconds" or "steps", to its curve."""

SMOOTH_BINS = 9
"""Parts of the budget that a point of a curve is the mean of."""
POINTS = 200
BOOTSTRAP_POINTS = 40
"""Points of a curve whose intervals are bootstrapped one by one."""


class Band(NamedTuple):
    """A curve with a band around it, (points,) each."""

    x: FloatArray
    centre: FloatArray
    low: FloatArray
    high: FloatArray


NOTHING = Band(*(np.empty(0),) * 4)


# ---- of one run


def score_curve(record: JsonDict, axis: str) -> Curve:
    """Return the smoothed score of training episodes, from the first on; it stays where none is over for long."""
    timeline = record["timeline"]
    episodes, scores = _rolling(np.array(timeline["episodes"], float)), _rolling(np.array(timeline["scores"], float))
    last_there = np.maximum.accumulate(np.where(episodes > 0.0, np.arange(len(episodes)), -1))
    begun = last_there >= 0
    last_there = last_there[begun]
    return _bin_ends(record, axis)[begun], scores[last_there] / episodes[last_there]


def tie_curve(record: JsonDict, axis: str) -> Curve:
    """Return the smoothed share of decisions whose best first actions were equal; empty if they were not counted."""
    timeline = record["timeline"]
    if "ties" not in timeline:
        return np.empty(0), np.empty(0)
    ties, decisions = _rolling(np.array(timeline["ties"], float)), _rolling(np.array(timeline["steps"], float))
    there = decisions > 0.0
    return _bin_ends(record, axis)[there], ties[there] / decisions[there]


def depth_shares(record: JsonDict, axis: str) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Return where, and the smoothed share of each depth among training decisions, without the prior's."""
    timeline = record["timeline"]
    counts = {int(depth): np.array(count, float) for depth, count in timeline["depths"].items()}
    prior = np.array(timeline["prior_steps"], float)
    if prior.any():
        counts[0] = counts[0] - prior  # the prior's decisions have depth 0
    own = np.array(timeline["steps"], float) - prior
    there, decisions = own > 0.0, _rolling(own)
    shares = {depth: (_rolling(count)[there] / decisions[there]) for depth, count in sorted(counts.items())}
    return _bin_ends(record, axis)[there], {depth: share for depth, share in shares.items() if share.any()}


def _rolling(sums: FloatArray) -> FloatArray:
    """Return sums over a window of bins around each; at the ends over fewer."""
    return np.convolve(sums, np.ones(SMOOTH_BINS), mode="same")


def _bin_ends(record: JsonDict, axis: str) -> FloatArray:
    """Return where each bin of a run's timeline ends, (bins,), in "steps" or "seconds" of training."""
    if axis == "steps":
        return np.cumsum(record["timeline"]["steps"]).astype(np.float64)
    if record["definition"].get("steps") is not None:  # the budget was one of steps
        return np.cumsum(record["timeline"]["seconds"]).astype(np.float64)
    bins = len(record["timeline"]["steps"])
    return np.linspace(0.0, record["definition"]["seconds"], bins + 1)[1:]


# ---- of several


def on_common_grid(curves: Sequence[Curve], points: int = POINTS) -> tuple[FloatArray, FloatArray]:
    """Return x and all curves there, (curves, points), from where all of them have begun to where the first ends."""
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if first > last:
        return np.empty(0), np.empty((len(curves), 0))
    grid = np.linspace(first, last, points)
    return grid, np.array([np.interp(grid, x, y) for x, y in curves])


def mean_and_spread(curves: Sequence[Curve]) -> Band:
    """Return the mean of curves, plus and minus a standard deviation of a sample; one curve has no spread."""
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return NOTHING
    grid, values = on_common_grid(curves)
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(grid))
    return Band(grid, mean, mean - spread, mean + spread)


def normalised_iqm(games: Sequence[Sequence[Curve]], scales: Sequence[tuple[float, float]]) -> Band:
    """Return the interquartile mean over games and seeds of normalised curves, with 95 % intervals point by point.

    Args:
        games: for each game the curves of an agent's seeds.
        scales: for each game the scores that 0 and 1 stand for.
    """
    if not games or any(not len(x) for curves in games for x, _ in curves):
        return NOTHING
    grid, values = on_common_grid([curve for curves in games for curve in curves], BOOTSTRAP_POINTS)
    estimates = []
    for point in range(len(grid)):
        seeds = iter(values[:, point])
        strata = [
            np.array([(next(seeds) - low) / (high - low) for _ in curves])
            for curves, (low, high) in zip(games, scales, strict=True)
        ]
        estimates.append(statistics.stratified(strata))
    columns = ([getattr(estimate, name) for estimate in estimates] for name in ("value", "low", "high"))
    return Band(grid, *(np.array(column, np.float64) for column in columns))


def mean_shares(records: Sequence[JsonDict]) -> tuple[FloatArray, Mapping[int, FloatArray]]:
    """Return where, by seconds, and the mean over runs of the share of each depth."""
    curves = [(at, shares) for at, shares in (depth_shares(record, "seconds") for record in records) if len(at)]
    if not curves:
        return np.empty(0), {}
    depths = sorted({depth for _, shares in curves for depth in shares})
    grids = [on_common_grid([(at, shares.get(depth, np.zeros(len(at)))) for at, shares in curves]) for depth in depths]
    return grids[0][0], {depth: values.mean(axis=0) for depth, (_, values) in zip(depths, grids, strict=True)}
