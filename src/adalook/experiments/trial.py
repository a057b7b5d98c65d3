"""One job of an experiment: solve one model once by one method, and write down everything that happened.

A trial is a small frozen object, so it can be sent to another process or machine. Running it gives the same outcome
bit for bit wherever that is: nothing in it depends on time, order or neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.experiments.engines.base import JobResult
from adalook.experiments.methods import TrialMethod
from adalook.experiments.models import ModelRecipe
from adalook.experiments.priors import PriorSource
from adalook.mdp.model import MDP
from adalook.planning import priors
from adalook.planning.lookahead.levels import backup
from adalook.planning.priors import Prior
from adalook.planning.queries import CONVENTIONS, Queries
from adalook.planning.rules.base import Method
from adalook.planning.rules.spec import MethodGroup, ObservedRun
from adalook.planning.solution import Iteration, Solution, Status
from adalook.planning.solve import solve

EVALUATIONS = ("exact", "simulated")
LOOKAHEAD_EDGES = tuple(range(21))
"""Effective lookaheads are counted in [0, 1), [1, 2), …, [19, 20) and [20, ∞)."""
GUARD = 1e-9
"""κ = γ^h belongs to the bin that begins at h, although its logarithm may come out a little below."""


@dataclass(frozen=True)
class Trial:
    """One solve: a model, a method, and its prior."""

    name: str
    """Unique within its experiment; also the order of the records."""
    model: ModelRecipe
    method: TrialMethod
    prior: PriorSource | None = None
    keep_trace: bool = False
    """Keep values, policy and depth of every pass, for the explorer."""
    histogram: bool = False
    """Count the effective lookahead of every state in every pass."""

    def run(self) -> JobResult:
        """Solve, and write down what happened."""
        return run_trial(self)

    @property
    def group(self) -> MethodGroup:
        """The group that figures draw it with: that of its method or, where that says more, of its prior."""
        return self.method.group if self.prior is None or self.prior.group is None else self.prior.group


def run_trial(trial: Trial) -> JobResult:
    """Solve a model until no action can be improved, and return the record of what happened."""
    mdp = trial.model.build()
    start = trial.model.initial_policy(mdp)
    best = priors.exact(mdp).values
    prior = trial.prior.make(mdp, start) if trial.prior is not None else None
    method = trial.method.make(mdp, prior)
    solution = solve(mdp, method, initial_policy=start, tolerance=0.0, keep_states=True)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # half a run must not pass for a whole one
    record = _about(trial, mdp) | _course(solution, best)
    record["prior"] = None if trial.prior is None or prior is None else _price(trial.prior, prior)
    record["predicted"] = _predicted(trial, method, mdp, solution, best)
    record["effective_lookahead"] = _effective_lookahead(mdp, solution, best) if trial.histogram else None
    record["trace"] = trial.name if trial.keep_trace else None
    if not trial.keep_trace:
        return JobResult(record)
    arrays = _trace_arrays(trial.name, start, solution) | _model_arrays(trial.model.key, mdp, best)
    return JobResult(record, arrays, {trial.model.key: _drawing(mdp)})


def _about(trial: Trial, mdp: MDP) -> dict[str, Any]:
    method, source = trial.method, trial.prior
    named = source is not None and source.suffix
    return {
        "job": trial.name,
        "group": trial.group.name,
        "label": f"{method.short_label or method.label}, {source.suffix}" if source and named else method.label,
        "method": method.name,
        "parameters": method.parameters | ({} if source is None else source.parameters),
        "model": trial.model.describe() | {"states": mdp.num_states, "actions": mdp.num_actions},
        "model_key": trial.model.key,
        "seed": trial.model.seed,
    }


def _course(solution: Solution, best: FloatArray) -> dict[str, Any]:
    """Return what happened, pass by pass."""
    trace = solution.trace
    return {
        "status": solution.status.name,
        "iterations": int(solution.iterations),
        "passes": len(trace),
        "policy_loss": float(solution.policy_loss) if math.isfinite(solution.policy_loss) else None,
        "fell_back": any(item.fallback for item in trace),
        "distance": [_distance(item, best) for item in trace],
        "changed": [int(item.changed) for item in trace],
        "max_depth": [int(item.max_depth) for item in trace],
        "deep_states": [_deep_states(item) for item in trace],
        "queries": {
            "improvement": {name: [int(item.queries.improvement[name]) for item in trace] for name in CONVENTIONS},
            "evaluation": {name: [int(item.queries.evaluation[name]) for item in trace] for name in EVALUATIONS},
        },
    }


def _price(source: PriorSource, prior: Prior) -> dict[str, Any]:
    return {
        "kind": source.kind,
        "counted": source.counted,
        "queries": _counts(prior.queries),
        "model_reads": int(prior.model_reads),
    }


def _counts(queries: Queries) -> dict[str, Any]:
    return {
        "improvement": {name: int(queries.improvement[name]) for name in CONVENTIONS},
        "evaluation": {name: int(queries.evaluation[name]) for name in EVALUATIONS},
    }


def _predicted(trial: Trial, method: Method, mdp: MDP, solution: Solution, best: FloatArray) -> dict[str, Any]:
    """Return what theorems bound: at most ⌈S (A − 1) log(1/(1−γ)) / log(1/κ)⌉ iterations of at most such a cost."""
    deepest = max(_deep_states(item) for item in solution.trace)
    bound = trial.method.bound(method, mdp, ObservedRun(deepest, _induced_contraction(mdp, solution, best)))
    return {
        **trial.model.updates(trial.method.depth),
        "iteration_bound": None if bound is None else _most_iterations(mdp, bound.contraction),
        "table_iteration_bound": None if bound is None else _most_iterations(mdp, bound.table_contraction),
        "cost_per_iteration": None if bound is None else bound.cost_per_iteration,
        **({} if bound is None else bound.measured),
    }


def _most_iterations(mdp: MDP, contraction: float | None) -> int | None:
    if contraction is None or not 0.0 < contraction < 1.0:
        return None
    pairs = mdp.num_states * (mdp.num_actions - 1)
    return math.ceil(pairs * math.log(1.0 / (1.0 - mdp.discount)) / math.log(1.0 / contraction))


def _induced_contraction(mdp: MDP, solution: Solution, best: FloatArray) -> float:
    """Return κ(θ) over the passes that changed the policy; in the last one there is nothing left to contract."""
    worst = 0.0
    for item in solution.trace:
        if item.changed == 0:
            continue
        values, depth = _kept(item.values), _kept(item.depth)
        reached = np.empty(mdp.num_states)
        level = values
        for h in range(1, item.max_depth + 1):
            level = backup(mdp, level, solution.policy).values
            reached[depth == h] = level[depth == h]
        worst = max(worst, float(np.abs(best - reached).max() / np.abs(best - values).max()))
    return worst


def _effective_lookahead(mdp: MDP, solution: Solution, best: FloatArray) -> list[list[float]]:
    """Return the shares of states by effective lookahead, for each pass that changed the policy.

    h = log_γ κ_s with κ_s = |V*(s) − T V(s)| / ‖V* − V‖∞
    """
    result = []
    for item in solution.trace:
        if item.changed == 0:
            continue
        values = _kept(item.values)
        kappa = np.abs(best - backup(mdp, values, solution.policy).values) / np.abs(best - values).max()
        reached = kappa > 0.0
        h = np.full(len(kappa), math.inf)
        h[reached] = np.log(kappa[reached]) / math.log(mdp.discount)
        bins = np.clip(np.floor(np.minimum(h, LOOKAHEAD_EDGES[-1]) + GUARD), 0, LOOKAHEAD_EDGES[-1]).astype(int)
        result.append((np.bincount(bins, minlength=len(LOOKAHEAD_EDGES)) / len(bins)).tolist())
    return result


def _trace_arrays(prefix: str, start: IntArray, solution: Solution) -> dict[str, np.ndarray]:
    trace = solution.trace
    policies = [start, *(_kept(item.policy) for item in trace)][: len(trace)]
    return {
        f"{prefix}/values": np.stack([_kept(item.values) for item in trace]),
        f"{prefix}/policy": np.stack(policies).astype(np.uint8),
        f"{prefix}/depth": np.stack([_kept(item.depth) for item in trace]).astype(np.uint16),
    }


def _model_arrays(key: str, mdp: MDP, best: FloatArray) -> dict[str, np.ndarray]:
    assert mdp.layout is not None, "only models that can be drawn keep traces"
    return {
        f"model/{key}/cells": mdp.layout.cells.astype(np.int16),
        f"model/{key}/walls": mdp.layout.walls,
        f"model/{key}/values": best,
    }


def _drawing(mdp: MDP) -> dict[str, Any]:
    layout = mdp.layout
    assert layout is not None, "only models that can be drawn keep traces"
    return {
        "rows": layout.shape[0],
        "columns": layout.shape[1],
        "discount": mdp.discount,
        "moves": [list(move) for move in layout.moves],
        "action_names": list(layout.action_names),
        "start": None if layout.start is None else list(layout.start),
        "goals": [list(cell) for cell in layout.goals],
        "traps": [list(cell) for cell in layout.traps],
    }


def _distance(item: Iteration, best: FloatArray) -> float:
    return float(np.abs(best - _kept(item.values)).max())


def _deep_states(item: Iteration) -> int:
    return int((_kept(item.depth) > 1).sum())


def _kept(array: Any) -> Any:
    assert array is not None, "trials keep the states of every pass"
    return array
