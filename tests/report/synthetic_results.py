"""Synthetic results for which every claim holds, as plain data that can be altered, written to disk or loaded.

The numbers are chosen, not measured: small, and with room on the right side of every threshold.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import group_styles
from adalook.planning.rules.spec import tree_nodes
from adalook.report.claims.table import check_claims
from adalook.report.claims.verdicts import CheckedClaim
from adalook.report.data.experiment import ExperimentData, SavedModel, Trace
from adalook.report.data.records import read_group, read_record
from adalook.report.data.solution import SavedLayout

Raw = dict[str, Any]
RawResults = dict[str, list[Raw]]
SEEDS = 6
BUDGETS = ((0.3, 0.2, 0.1), (0.1, 0.05, 0.02))
GROUPS = group_styles(MazeExperiment(seeds=1).jobs())
MAZE_KEY = "size=5,discount=0.98,seed=0"


def record(
    group: str,
    label: str,
    parameters: Raw,
    model: Raw,
    seed: int,
    *,
    iterations: int,
    lookahead: int,
    improvement: dict[str, float] | float,
    deep_states: int = 0,
    prior: Raw | None = None,
) -> Raw:
    """A run of `iterations` + 1 passes that all cost the same, the distance shrinking by γ^lookahead in each."""
    passes, states, discount = iterations + 1, model["states"], model["discount"]
    each = improvement if isinstance(improvement, dict) else dict.fromkeys(("tree", "root", "shared"), improvement)
    distance = [5.0 * discount ** (lookahead * t) for t in range(iterations)] + [0.0]
    horizon = math.ceil(1.0 / (1.0 - discount) - 1e-9)
    place = ",".join(f"{name}={model[name]}" for name in ("n", "size", "discount") if name in model)
    return {
        "job": f"{place}/{label}/seed={seed}",
        "group": group,
        "label": label,
        "parameters": parameters,
        "model": model,
        "model_key": None,
        "seed": seed,
        "status": "CONVERGED",
        "iterations": iterations,
        "passes": passes,
        "policy_loss": 1e-12,
        "distance": distance,
        "changed": [1] * iterations + [0],
        "max_depth": [lookahead] * passes,
        "deep_states": [deep_states] * passes,
        "queries": {
            "improvement": {name: [int(cost)] * passes for name, cost in each.items()},
            "evaluation": {"exact": [states] * passes, "simulated": [horizon * states] * passes},
        },
        "prior": prior,
        "predicted": {"cost_per_iteration": cost_bound(group, parameters, model, deep_states)}
        | ({"kappa_theta": discount**lookahead} if group == "qlpi" else {}),
        "effective_lookahead": None,
        "trace": None,
    }


def cost_bound(group: str, parameters: Raw, model: Raw, deep_states: int) -> int | None:
    """The most queries of an iteration by the theorem about a method; None for methods without one."""
    states, actions = model["states"], model["actions"]
    match group:
        case "hpi":
            return states * tree_nodes(actions, parameters["depth"])
        case "tlpi":
            return states * actions + deep_states * tree_nodes(actions, parameters["kappa_power"])
        case "qlpi" if "budgets" in parameters:
            shares = {int(depth): math.ceil(share * states - 1e-9) for depth, share in parameters["budgets"].items()}
        case "qlpi":
            shares = dict.fromkeys(range(2, parameters["depth"] + 1), parameters["states_per_depth"])
        case _:
            return None
    return states * actions + sum(count * tree_nodes(actions, depth) for depth, count in shares.items())


def _prior(kind: str, counted: bool, queries: int = 10) -> Raw:
    return {
        "kind": kind,
        "counted": counted,
        "queries": {
            "improvement": dict.fromkeys(("tree", "root", "shared"), queries),
            "evaluation": dict.fromkeys(("exact", "simulated"), queries),
        },
    }


def chain() -> list[Raw]:
    records = []
    for n in (12, 20):
        model = {"kind": "chain", "n": n, "discount": 0.9, "states": n + 2, "actions": 2}
        states = n + 2
        for h in (1, 2, 3):
            run = {"iterations": math.ceil(n / h), "lookahead": h}
            depth = {"depth": h}
            cost = cost_bound("hpi", depth, model, states)
            records.append(record("hpi", f"{h}-PI", depth, model, 0, improvement=cost, **run))
            if h == 1:
                continue
            power = {"kappa_power": h}
            cost = cost_bound("tlpi", power, model, h)
            records.append(record("tlpi", f"TLPI γ^{h}", power, model, 0, improvement=cost, deep_states=h, **run))
            single = {"depth": h, "states_per_depth": 1}
            cost = cost_bound("qlpi", single, model, h - 1)
            records.append(record("qlpi", f"QLPI {h}", single, model, 0, improvement=cost, deep_states=h - 1, **run))
        records.append(record("wlpi", "WLPI", {}, model, 0, iterations=2, lookahead=1, improvement=2 * states + 3))
    return records


def maze() -> list[Raw]:
    model = {"kind": "maze", "size": 30, "discount": 0.98, "states": 700, "actions": 4}
    fixed = {1: (12, 4.0), 2: (8, 5.0), 3: (6, 40.0), 4: (5, 200.0)}  # depth: iterations, queries per state and pass
    records = []

    def add(group: str, label: str, parameters: Raw, iterations: int, lookahead: int, cost: float, **more: Any) -> None:
        for seed in range(SEEDS):
            run = {"iterations": iterations + seed % 2, "lookahead": lookahead, "improvement": 700 * cost}
            records.append(record(group, label, parameters, model, seed, **run, **more))

    for h, (iterations, cost) in fixed.items():
        add("hpi", f"{h}-PI" if h > 1 else "PI", {"depth": h}, iterations, h, cost)
        if h > 1:
            add("tlpi", f"TLPI γ^{h}", {"kappa_power": h}, iterations, h, 4.2, deep_states=70)
    for shares in BUDGETS:
        budgets = dict(zip("248", shares, strict=True))
        add("qlpi", f"QLPI {shares}", {"budgets": budgets}, 5, 2, 4.3, deep_states=70)
    budgets = dict(zip("248", BUDGETS[-1], strict=True))
    for k in (2, 3):
        label = f"QLPI, {k}×{k} squares"
        add("aggregated", label, {"budgets": budgets, "k": k}, 6, 2, 4.3, prior=_prior("aggregation", True))
    for few in (2, 3):
        parameters = {"budgets": budgets, "few": few}
        add("few", f"QLPI, prior of {few} PI passes", parameters, 6, 2, 4.3, prior=_prior("few_iterations", True))
    add("similar", "QLPI, similar task", {"budgets": budgets}, 6, 2, 4.3, prior=_prior("similar task", False, 10**9))
    add("wlpi", "WLPI", {}, 3, 1, 4.4)
    for run in records:
        if run["label"] == "PI":
            run["effective_lookahead"] = [[0.0, 0.02, 0.08] + [0.05] * 18] * run["iterations"]
    return records


def sweep() -> list[Raw]:
    records = []
    for (size, discount), best in {(10, 0.9): 1, (10, 0.98): 2, (20, 0.9): 3, (20, 0.98): 2}.items():
        model = {"kind": "maze", "size": size, "discount": discount, "states": 100, "actions": 4}
        for seed in (0, 1, 2):
            for h in (1, 2, 3):
                cost = 1000 * (1.0 + 0.5 * abs(h - best))
                parameters = {"depth": h}
                run = {"iterations": 3, "lookahead": h, "improvement": cost}
                records.append(record("hpi", f"{h}-PI", parameters, model, seed, **run))
            run = {"iterations": 3, "lookahead": 2, "improvement": 450, "deep_states": 10}
            records.append(record("tlpi", "TLPI γ^2", {"kappa_power": 2}, model, seed, **run))
            records.append(record("wlpi", "WLPI", {}, model, seed, iterations=2, lookahead=1, improvement=420))
    return records


def raw_results() -> RawResults:
    return {"chain": chain(), "maze": maze(), "sweep": sweep()}


def alter(made: RawResults, fits: Callable[[Raw], bool], change: Callable[[Raw], None], *names: str) -> RawResults:
    """A copy with some records changed in place; at least one must fit, or the test would test nothing."""
    altered = copy.deepcopy(made)
    touched = 0
    for name in names or tuple(altered):
        for run in filter(fits, altered[name]):
            change(run)
            touched += 1
    assert touched, "no record was altered"
    return altered


def load(made: RawResults) -> dict[str, ExperimentData]:
    """As if read from disk, the maze with one model and the traces of its first run of PI."""
    styles = {name: read_group(place, raw) for place, (name, raw) in enumerate(GROUPS.items())}
    experiments = {
        name: ExperimentData(name, {"seeds": SEEDS}, {}, tuple(read_record(raw, styles) for raw in records), {}, {}, {})
        for name, records in made.items()
    }
    if "maze" in experiments:
        found = experiments["maze"]
        experiments["maze"] = ExperimentData(
            "maze", found.settings, {}, found.records, {}, {MAZE_KEY: small_maze()}, {}
        )
    return experiments


def small_maze() -> SavedModel:
    walls = np.ones((5, 5), bool)
    walls[1:4, 1:4] = False
    cells = np.array([(row, column) for row in (1, 2, 3) for column in (1, 2, 3)], np.int16)[:-1]
    layout = SavedLayout(cells, walls, ((-1, 0), (1, 0), (0, 1), (0, -1)), (1, 1), ((3, 3),), ((2, 2),))
    return SavedModel(layout, np.linspace(0.0, 1.0, 8), ("up", "down", "right", "left"), 0.98)


def traced_run() -> Raw:
    model = {"kind": "maze", "size": 5, "discount": 0.98, "states": 8, "actions": 4}
    run = record("hpi", "PI", {"depth": 1}, model, 0, iterations=2, lookahead=1, improvement=32)
    return run | {"trace": run["job"], "model_key": MAZE_KEY}


def trace() -> Trace:
    policy = np.tile(np.arange(8, dtype=np.uint8) % 4, (3, 1))
    return Trace(np.arange(24.0).reshape(3, 8), policy, np.ones((3, 8), np.uint16))


def arrays(prefix: str) -> dict[str, np.ndarray]:
    steps, model = trace(), small_maze()
    return {
        f"{prefix}/values": steps.values,
        f"{prefix}/policy": steps.policy,
        f"{prefix}/depth": steps.depth,
        f"model/{MAZE_KEY}/cells": model.layout.cells,
        f"model/{MAZE_KEY}/walls": model.layout.walls,
        f"model/{MAZE_KEY}/values": model.values,
    }


def write(
    directory: Path, name: str, records: list[Raw], traces: dict[str, np.ndarray] | None = None, **about: Any
) -> Path:
    """A results folder, with right checksums even where its content is wrong."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {"records.json": json.dumps({"records": records}).encode()}
    if traces is not None:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **traces)
        files["traces.npz"] = buffer.getvalue()
        words = {"moves": [[-1, 0], [1, 0], [0, 1], [0, -1]], "action_names": ["up", "down", "right", "left"]}
        words |= {"start": [1, 1], "goals": [[3, 3]], "traps": [[2, 2]], "rows": 5, "columns": 5, "discount": 0.98}
        files["models.json"] = json.dumps({MAZE_KEY: words}).encode()
    for file, content in files.items():
        (directory / file).write_bytes(content)
    (directory / "times.json").write_text(json.dumps({run["job"]: 0.1 for run in records}))
    head = {
        "format": "adalook experiment",
        "format_version": 2,
        "experiment": name,
        "adalook_version": "0.1.0",
        "versions": {"numpy": "2"},
        "settings": {"seeds": SEEDS},
        "groups": GROUPS,
        "jobs": len(records),
        "sha256": {file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
    }
    (directory / "experiment.json").write_text(json.dumps(head | about))
    return directory


def checked(made: RawResults) -> dict[str, CheckedClaim]:
    return {claim.id: claim for claim in check_claims(load(made)) if not claim.id.startswith("learning-")}


def of(*groups: str, depth: int | None = None, deeper_than: int = 0, label: str = "") -> Callable[[Raw], bool]:
    """Records of some groups, of one depth or of greater depths, or with one label."""

    def fits(run: Raw) -> bool:
        own = run["parameters"].get("depth", run["parameters"].get("kappa_power", 9))
        return (
            run["group"] in groups
            and (depth is None or own == depth)
            and own > deeper_than
            and (not label or run["label"] == label)
        )

    return fits


def dearer(factor: float, *kinds: str) -> Callable[[Raw], None]:
    """Multiply queries of some kinds, such as 'tree' or 'simulated'; none: of all."""

    def change(run: Raw) -> None:
        for counted in run["queries"].values():
            for kind, numbers in counted.items():
                if not kinds or kind in kinds:
                    counted[kind] = [int(factor * number) for number in numbers]

    return change


def induced(power_short: float) -> Callable[[Raw], None]:
    """κ(θ) that misses γ^h by so many powers of γ."""

    def change(run: Raw) -> None:
        run["predicted"]["kappa_theta"] = run["model"]["discount"] ** (run["parameters"]["depth"] - power_short)

    return change
