"""The content of a page's explorer: models with a layout and runs on them, packed to be put into the page.

Arrays are the saved ones bit for bit, deflated and written in base64: what the page shows is what is on disk.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.report.data.experiment import ExperimentData, SavedModel, Trace
from adalook.report.data.method_runs import method_runs
from adalook.report.data.records import PriorCost, Record
from adalook.report.data.solution import SavedLayout

MOST_BYTES = 3_500_000
"""Of packed traces in one page: with figures and text it stays below 5 MB."""


@dataclass(frozen=True)
class GridModel:
    """A model on a grid: the positions of its states, and their optimal values."""

    name: str
    layout: SavedLayout
    values: FloatArray  # (S,) V*, or whatever else distances are measured to
    action_names: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One method on one model. Lists have an entry per pass that is shown; arrays have a row per frame.

    `numbers` are the numbers of those passes; `frames` says which entries have arrays; `queries` and `prior` are as in
    a record on disk.
    """

    model: str
    method: str
    """What the page's address calls it."""
    group: str
    label: str
    status: str
    numbers: Sequence[int]
    distance: Sequence[float | None]
    changed: Sequence[int | None]
    max_depth: Sequence[int | None]
    queries: Mapping[str, Any]
    prior: Mapping[str, Any] | None
    frames: Sequence[int]
    values: FloatArray  # (frames, S)
    policy: IntArray  # (frames, S) the policy that these are the values of
    depth: IntArray  # (frames, S) lookahead of the improvement that follows
    returned: bool = False
    """The last frame is the policy that was returned, which no pass started from."""


@dataclass(frozen=True)
class Meaning:
    """Labels for the numbers of an explorer: what the values are, and what distances are measured to."""

    values: str = "value of the policy"
    target: str = "V*"
    """What distances are measured to."""
    distance: str = "distance"
    optimal: bool = True
    """Whether the models' values are V*."""


@dataclass(frozen=True)
class ExplorerData:
    """The data and labels of an explorer, and notes for its readers."""

    text: str
    omitted: str = ""
    """What was left out."""
    warning: str = ""
    meaning: Meaning = Meaning()


def experiment_explorer(experiment: ExperimentData, most_bytes: int = MOST_BYTES) -> ExplorerData | None:
    """Return the explorer of all traced runs of an experiment; if they are too large, of the first seeds.

    Returns:
        None if no run kept its trace.
    """
    keys = _traced_models(experiment)
    models: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    size = 0
    for key, name in keys.items():
        more = [_pack_run(run) for run in _runs_on(experiment, key, name)]
        size += sum(len(run["packed"]["data"]) for run in more)
        if size > most_bytes and models:
            break
        models.append(_pack_model(_grid_model(name, experiment.models[key])))
        runs += more
    if not models:
        return None
    left = len(keys) - len(models)
    omitted = f"To keep the page small it shows {len(models)} of {len(keys)} seeds." if left else ""
    return ExplorerData(_content(models, runs, Meaning()), omitted)


def run_explorer(model: GridModel, run: Run, meaning: Meaning, *, omitted: str = "", warning: str = "") -> ExplorerData:
    """Return the explorer of a single run."""
    return ExplorerData(_content([_pack_model(model)], [_pack_run(run)], meaning), omitted, warning, meaning)


def pack(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Pack arrays one after the other, little-endian, deflated, in base64; see `unpack` in numbers.js.

    Typed arrays must start at a multiple of their items' size, so the widest come first.

    >>> pack({"ones": np.ones(1000)})["arrays"]
    [['ones', 'float64', 1000]]
    """
    wide_first = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    content = b"".join(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for _, array in wide_first)
    return {
        "arrays": [[name, array.dtype.name, int(array.size)] for name, array in wide_first],
        "data": base64.b64encode(zlib.compress(content, 9)).decode(),
    }


def _traced_models(experiment: ExperimentData) -> dict[str, str]:
    """Return the keys of traced models by seed, each with a name: its seed if that is unique."""
    seeds = {
        record.model_key: record.seed
        for record in sorted(experiment.records, key=lambda record: record.seed)
        if record.trace is not None and record.model_key is not None
    }
    unique = len(set(seeds.values())) == len(seeds)
    return {key: str(seed) if unique else key for key, seed in seeds.items()}


def _runs_on(experiment: ExperimentData, key: str, name: str) -> list[Run]:
    records = [record for record in experiment.records if record.model_key == key and record.trace is not None]
    runs = []
    for method in method_runs(records):
        for record in method.runs.values():
            trace = experiment.trace(record)
            if trace is not None:
                runs.append(_run(record, trace, name))
    return runs


def _run(record: Record, trace: Trace, model: str) -> Run:
    return Run(
        model=model,
        method=f"{record.group}/{record.label}",
        group=record.style.description,
        label=record.label,
        status=record.status,
        numbers=range(record.passes),
        distance=record.distance.tolist(),
        changed=record.changed,
        max_depth=record.max_depth,
        queries={"improvement": dict(record.improvement), "evaluation": dict(record.evaluation)},
        prior=None if record.prior is None else _prior(record.prior),
        frames=range(record.passes),
        values=trace.values,
        policy=trace.policy,
        depth=trace.depth,
    )


def _prior(prior: PriorCost) -> dict[str, Any]:
    queries = {"improvement": dict(prior.improvement), "evaluation": dict(prior.evaluation)}
    return {"kind": prior.kind, "counted": prior.counted, "queries": queries}


def _grid_model(name: str, model: SavedModel) -> GridModel:
    return GridModel(name, model.layout, model.values, model.action_names)


def _pack_model(model: GridModel) -> dict[str, Any]:
    layout = model.layout
    places = {"start": layout.start, "goal": layout.goals, "trap": layout.traps, "wall": layout.walls.any()}
    return {
        "name": model.name,
        "rows": layout.shape[0],
        "columns": layout.shape[1],
        "moves": layout.moves,
        "start": layout.start,
        "goals": layout.goals,
        "traps": layout.traps,
        "action_names": model.action_names,
        "places": [name for name, there in places.items() if there],
        "packed": pack(
            {
                "values": model.values,
                "cells": layout.cells.astype(np.int32),
                "walls": layout.walls.astype(np.uint8),
            }
        ),
    }


def _pack_run(run: Run) -> dict[str, Any]:
    return {
        "model": run.model,
        "method": run.method,
        "group": run.group,
        "label": run.label,
        "status": run.status,
        "numbers": list(run.numbers),
        "distance": run.distance,
        "changed": run.changed,
        "max_depth": run.max_depth,
        "queries": run.queries,
        "prior": run.prior,
        "frames": list(run.frames),
        "returned": run.returned,
        "packed": pack(
            {
                "values": run.values,
                "depth": run.depth.astype(np.uint16),
                "policy": run.policy.astype(np.uint8 if run.policy.max(initial=0) < 256 else np.int32),
            }
        ),
    }


def _content(models: list[dict[str, Any]], runs: list[dict[str, Any]], meaning: Meaning) -> str:
    """Return JSON that can stand inside a <script> element, whatever names are in it."""
    data = {"models": models, "runs": runs, "meaning": asdict(meaning)}
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
