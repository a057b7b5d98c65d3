"""Solution files: `solution.npz` with what there is per state, `solution.json` with everything else.

Both are plain data: no pickle, so reading them cannot run code. Each is written to a temporary file, synced and then
moved into place, so a failure leaves the previous file whole; the JSON is written last and carries the checksum of its
arrays, so a reader notices two files that do not belong together.

    solution.npz   values, policy, lower, upper          (S,)
                   depth, last_depth                     (S,) deepest lookahead over all passes, and in the last pass
                                                         that looked further than one step; only if the trace kept them
                   layout_cells (S, 2), layout_walls     only if the model can be drawn
    trace.npz      only if asked for, and the trace kept states: values, policy, depth (frames, S), of the passes that
                   frames (frames,) names; the policy is the one that the pass started from, whose values these are
    solution.json  see `describe`; a number that is not finite is null; names of states and actions, where there are any
    model.npz      only if asked for: the model itself, so that `al.Solution.load` has all it needs
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adalook import __version__
from adalook._arrays import FloatArray, IntArray
from adalook.errors import ArgumentError, FileError
from adalook.mdp.model import MDP
from adalook.planning.certificate import Certificate
from adalook.planning.evaluation.base import Forecast
from adalook.planning.queries import Counts, Queries
from adalook.planning.solution import Iteration, Solution, Status
from adalook.planning.solve import starting_policy
from adalook.storage.arrays import pack_arrays, unpack_arrays
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import atomic_write, checked_path, make_directory, read_file

MODEL_FILE = "model.npz"
SAVE_ONE = "save one with solution.save(directory), or with: adalook solve SOURCE --out DIRECTORY"
FORMAT = "adalook solution"
FORMAT_VERSION = 2

MAX_STATES = 20_000
"""Counting trees below every state can take far longer than solving, so larger models leave it to whoever asks …"""
MAX_TREE_LEVELS, MAX_TREE_NODES = 500, 2_000_000
"""… and so do deep trees, whose counts outgrow 64 bits: (S · depth) big integers have to fit in memory …"""
MAX_ROOT_WORK = 1e9
"""… and graphs that are reached in a few steps: S times the number of transitions, some three seconds."""

MAX_TRACED_STATES = 300_000
"""A saved trace holds at most this many states, over all its passes: enough to look at, small enough to send."""

NOT_COUNTED = (
    "tree and root are null because counting them would take longer than the solve; "
    'to count them all the same, ask solution.queries.improvement["tree"] or ["root"] in Python'
)


def save_solution(
    solution: Solution,
    mdp: MDP,
    directory: str | Path,
    *,
    source: str = "",
    prior: Mapping[str, Any] | None = None,
    with_trace: bool = False,
    with_model: bool = False,
    initial_policy: Any = None,
) -> list[Path]:
    """Write `solution.npz` and `solution.json` into a directory, which is made if need be.

    Args:
        solution: the answer of `al.solve(mdp, …)`.
        mdp: the model it answers.
        directory: where to; files of an earlier solution are replaced only when the new ones are safe.
        source: what the model is called or came from, for whoever reads the files.
        prior: what is to be known about the prior of a method that had one, as plain data.
        with_trace: also write `trace.npz`, for `adalook.report`, if the solution's trace kept states. Of a trace that
            is too long it holds the first pass, the last and some between.
        with_model: also write `model.npz`, for `Solution.load`.
        initial_policy: what `solve` was given, for the first pass of the trace.

    Returns:
        the files.

    >>> import tempfile, adalook as al
    >>> from adalook.planning.solution_files import save_solution
    >>> mdp = al.zoo.maze(size=30, seed=0)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [path.name for path in save_solution(al.solve(mdp), mdp, directory)]
    ['solution.npz', 'solution.json']
    """
    if solution.values.shape != (mdp.num_states,):
        raise ArgumentError(
            "the solution is not of this model", expected=f"{mdp.num_states} states", got=len(solution.values)
        )
    target = checked_path(directory)
    arrays = pack_arrays(_arrays(solution, mdp), compress=False)
    states = _trace_states(solution, mdp, initial_policy) if with_trace else {}
    traced = pack_arrays(states, compress=False) if states else None
    text = describe(solution, mdp, source=source, prior=prior)
    text["names"] = {"states": list(mdp.state_names), "actions": list(mdp.action_names)}
    counted = _countable(solution, mdp)
    text |= {"layout": _layout(mdp), "trace": _trace(solution, counted)}
    text["omitted"] = None if solution.omitted is None else _queries(solution.omitted, counted)
    text["arrays_sha256"] = hashlib.sha256(arrays).hexdigest()
    text["trace_sha256"] = None if traced is None else hashlib.sha256(traced).hexdigest()
    contents = {"solution.npz": arrays} | ({} if traced is None else {"trace.npz": traced})
    contents["solution.json"] = json.dumps(with_digest(text), indent=1, allow_nan=False).encode()
    make_directory(target)
    if with_model:
        mdp.save(target / MODEL_FILE)
    for name, content in contents.items():
        with atomic_write(target / name) as file:
            file.write(content)
    return [target / name for name in ([MODEL_FILE] if with_model else []) + list(contents)]


def read_solution(directory: str | Path) -> Solution:
    """Read what `Solution.save` wrote; the passes come back without what there is per state."""
    place = checked_path(directory)
    path = place / "solution.json"
    try:
        about = parse_json(read_file(path))
        content = read_file(place / "solution.npz")
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read the solution in {place}", got=error, remedy=SAVE_ONE) from error
    if not isinstance(about, dict) or (about.get("format"), about.get("format_version")) != (FORMAT, FORMAT_VERSION):
        raise FileError(f"{path} is no solution that this version reads", remedy=SAVE_ONE)
    about = check_document(about, path)
    if hashlib.sha256(content).hexdigest() != about.get("arrays_sha256"):
        raise FileError(f"{place}/solution.npz does not belong to the solution.json beside it", remedy=SAVE_ONE)
    arrays = unpack_arrays(content, place / "solution.npz")
    if not (place / MODEL_FILE).exists():
        raise FileError(f"{place} holds a solution without its model", remedy=SAVE_ONE)
    mdp = MDP.load(place / MODEL_FILE)
    try:
        return _solution(about, arrays, mdp)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FileError(f"{place} holds a damaged solution", got=repr(error), remedy=SAVE_ONE) from error


def _solution(about: dict[str, Any], arrays: dict[str, np.ndarray], mdp: MDP) -> Solution:
    """Return the solution that files describe; raises KeyError, TypeError or ValueError if they do not fit."""
    values, lower, upper = (arrays[name].astype(float) for name in ("values", "lower", "upper"))
    policy = arrays["policy"]
    if {part.shape for part in (values, lower, upper, policy)} != {(mdp.num_states,)} or policy.dtype.kind not in "iu":
        raise ValueError(f"the arrays are not of a model with {mdp.num_states} states")
    loss = math.inf if about["policy_loss"] is None else float(about["policy_loss"])
    for part in (values, policy):
        part.flags.writeable = False
    return Solution(
        mdp=mdp,
        method=str(about["method"]),
        values=values,
        policy=policy,
        certificate=StoredCertificate(values, lower - values, upper - values, loss, lower, upper),
        status=Status[about["status"]],
        message=str(about["message"]),
        tolerance=float(about.get("tolerance", 0.0)),
        iterations=int(about["iterations"]),
        trace=tuple(_iteration(entry) for entry in about["trace"]),
        seconds=float(about["seconds"]),
        certificate_seconds=float(about["certificate_seconds"]),
        passes=int(about["passes"]),
        omitted=_stored(about["omitted"]) if about.get("omitted") else None,
    )


def _stored(queries: dict[str, Any]) -> Queries:
    """Return queries that were counted before they were saved."""
    return Queries(StoredCounts(queries["improvement"]), StoredCounts(queries["evaluation"]))


def _iteration(entry: dict[str, Any]) -> Iteration:
    """Return one pass as it was described."""
    predicted = entry.get("predicted_seconds")
    return Iteration(
        queries=_stored(entry["queries"]),
        evaluation_seconds=float(entry.get("evaluation_seconds", 0.0)),
        forecast=None if predicted is None else Forecast(float(predicted), str(entry["reason"])),
        policy_loss=math.inf if entry["policy_loss"] is None else float(entry["policy_loss"]),
        **{
            name: entry[name]
            for name in (
                "evaluation",
                "exact",
                "backups",
                "sweeps",
                "improvement",
                "changed",
                "max_depth",
                "mean_depth",
                "seconds",
                "fallback",
            )
        },
    )


class StoredCertificate(Certificate):
    """Bounds that were computed before, and come back as they were."""

    def __init__(
        self, values: FloatArray, low: FloatArray, high: FloatArray, loss: float, lower: FloatArray, upper: FloatArray
    ) -> None:
        super().__init__(values, low, high, loss)
        self.__dict__ |= {"lower": lower, "upper": upper}  # as if they had been asked for before


class StoredCounts(Counts):
    """Queries that were counted before they were saved."""

    def __init__(self, counts: dict[str, int | None]) -> None:
        self.counts, self.conventions = counts, tuple(counts)

    def is_cheap(self, convention: str) -> bool:
        """Return whether the count was saved."""
        return self.counts[convention] is not None

    def count(self, convention: str) -> int:
        """Return a saved count, or raise if it was not counted then."""
        found = self.counts[convention]
        if found is None:
            raise ArgumentError(f"{convention} queries were not counted when the solution was saved")
        return int(found)


def describe(
    solution: Solution, mdp: MDP, *, source: str = "", prior: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The solution as plain data, but for what there is per state and per pass.

    >>> import adalook as al
    >>> from adalook.planning.solution_files import describe
    >>> mdp = al.zoo.chain(n=9)
    >>> describe(al.solve(mdp), mdp, source="a chain")["model"]
    {'source': 'a chain', 'states': 11, 'actions': 2, 'discount': 0.9, 'deterministic': True}
    """
    counted = _countable(solution, mdp)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "adalook_version": __version__,
        "method": solution.method,
        "prior": None if prior is None else dict(prior),
        "status": solution.status.name,
        "message": solution.message,
        "iterations": solution.iterations,
        "passes": solution.passes or len(solution.trace),
        "tolerance": solution.tolerance,
        "policy_loss": _number(solution.policy_loss),
        "certified": bool(solution.certified),
        "value_range": [_number(solution.values.min()), _number(solution.values.max())],
        "seconds": solution.seconds,
        "certificate_seconds": solution.certificate_seconds,
        "model": {
            "source": source,
            "states": mdp.num_states,
            "actions": mdp.num_actions,
            "discount": mdp.discount,
            "deterministic": mdp.deterministic,
        },
        "queries": _queries(solution.queries, counted) | ({} if counted else {"note": NOT_COUNTED}),
    }


def _arrays(solution: Solution, mdp: MDP) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "values": solution.values,
        "policy": solution.policy,
        "lower": solution.lower,
        "upper": solution.upper,
    }
    deepest = last = None
    for iteration in solution.trace:
        if iteration.depth is None:
            break
        deepest = iteration.depth if deepest is None else np.maximum(deepest, iteration.depth)
        last = iteration.depth if last is None or iteration.max_depth > 1 else last
    else:
        if deepest is not None and last is not None:
            arrays |= {"depth": _short(deepest), "last_depth": _short(last)}
    if mdp.layout is not None:
        arrays |= {"layout_cells": mdp.layout.cells, "layout_walls": mdp.layout.walls}
    return arrays


def _trace_states(solution: Solution, mdp: MDP, initial_policy: Any) -> dict[str, Any]:
    """The arrays of `trace.npz`; none if there is nowhere to draw them, or states were not kept or are too many."""
    trace, most_frames = solution.trace, MAX_TRACED_STATES // mdp.num_states
    if mdp.layout is None or not trace or trace[-1].values is None or not most_frames:
        return {}
    start = starting_policy(mdp, initial_policy)
    frames = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), most_frames)).round().astype(np.int64))
    return {
        "frames": frames,
        "values": np.array([trace[frame].values for frame in frames]),
        "policy": np.array([trace[frame - 1].policy if frame else start for frame in frames], np.int32),
        "depth": np.array([trace[frame].depth for frame in frames], np.uint16),
    }


def _short(depth: IntArray) -> np.ndarray:
    return np.ascontiguousarray(depth, np.uint16)


def _trace(solution: Solution, counted: bool) -> list[dict[str, Any]]:
    return [_pass(iteration, counted) for iteration in solution.trace]


def _pass(iteration: Iteration, counted: bool) -> dict[str, Any]:
    return {
        "evaluation": iteration.evaluation,
        "exact": bool(iteration.exact),
        "backups": int(iteration.backups),
        "evaluation_seconds": iteration.evaluation_seconds,
        "predicted_seconds": None if iteration.forecast is None else iteration.forecast.seconds,
        "reason": None if iteration.forecast is None else iteration.forecast.reason,
        "sweeps": float(iteration.sweeps),
        "improvement": iteration.improvement,
        "changed": int(iteration.changed),
        "policy_loss": _number(iteration.policy_loss),
        "max_depth": int(iteration.max_depth),
        "mean_depth": float(iteration.mean_depth),
        "queries": _queries(iteration.queries, counted),
        "distance": None if iteration.distance is None else _number(iteration.distance),
        "seconds": float(iteration.seconds),
        "fallback": bool(iteration.fallback),
    }


def _queries(queries: Queries, counted: bool) -> dict[str, Any]:
    improvement = {
        name: int(queries.improvement[name]) if counted or name == "shared" else None for name in queries.improvement
    }
    return {"improvement": improvement, "evaluation": {name: int(n) for name, n in queries.evaluation.items()}}


def _countable(solution: Solution, mdp: MDP) -> bool:
    """True if `tree` and `root` can be counted in seconds."""
    n, deepest = mdp.num_states, max((iteration.max_depth for iteration in solution.trace), default=1)
    if n > MAX_STATES:
        return False
    if deepest == 1:
        return True
    transitions = mdp.num_pairs + len(mdp.rows.data)
    return deepest <= MAX_TREE_LEVELS and n * deepest <= MAX_TREE_NODES and n * transitions <= MAX_ROOT_WORK


def _layout(mdp: MDP) -> dict[str, Any] | None:
    layout = mdp.layout
    if layout is None:
        return None
    return {
        "shape": list(layout.shape),
        "moves": [list(move) for move in layout.moves],
        "start": None if layout.start is None else list(layout.start),
        "goals": [list(cell) for cell in layout.goals],
        "traps": [list(cell) for cell in layout.traps],
        "action_names": list(layout.action_names),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
