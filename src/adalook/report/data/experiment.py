"""The results folder of `adalook reproduce`, read and checked: records, traces, models and times.

    experiment.json   settings, groups, versions and checksums; written last: without it nothing is read
    records.json      one record per job
    traces.npz        values, policy and depth per pass of the jobs that kept them, and the mazes they were on
    models.json       the words that belong to those mazes
    times.json        seconds per job

Nothing is trusted before it is checked: an error names the file and what is wrong in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import FileError
from adalook.report.data.files import ResultFormat
from adalook.report.data.records import Damage, GroupStyle, Record, natural_number, read_group, read_record
from adalook.report.data.solution import SavedLayout

MAKE_ONE = "make one with: adalook reproduce chain|maze|sweep --out DIRECTORY"
FORMAT = ResultFormat("experiment", 2, "experiment.json", MAKE_ONE, "run the experiment again into an empty directory")


@dataclass(frozen=True)
class Trace:
    """The values, policy and depths of one job, pass by pass; row t is the policy that pass t started from."""

    values: FloatArray  # (passes, S)
    policy: IntArray  # (passes, S)
    depth: IntArray  # (passes, S) lookahead used in that pass


@dataclass(frozen=True)
class SavedModel:
    """A maze that traced jobs were run on."""

    layout: SavedLayout
    values: FloatArray  # (S,) V*
    action_names: tuple[str, ...]
    discount: float


@dataclass(frozen=True)
class ExperimentData:
    """Everything in one results folder."""

    name: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    records: tuple[Record, ...]
    times: Mapping[str, float]
    """Seconds per job; empty where they were not kept."""
    models: Mapping[str, SavedModel]
    traces: Mapping[str, Trace]

    def trace(self, record: Record) -> Trace | None:
        """Return the trace of a record's job, or None if it kept none."""
        return None if record.trace is None else self.traces[record.trace]

    def model(self, record: Record) -> SavedModel | None:
        """Return the maze that a record was made on, or None if it was not kept."""
        return None if record.model_key is None else self.models.get(record.model_key)

    def select(self, group: str, **parameters: Any) -> list[Record]:
        """Return the records of a group whose parameters have these values, by seed.

        >>> from pathlib import Path
        >>> empty = ExperimentData("maze", {}, {}, (), {}, {}, {})
        >>> empty.select("hpi", depth=3)
        []
        """

        def fits(record: Record) -> bool:
            return record.group == group and all(
                record.parameters.get(name) == wanted for name, wanted in parameters.items()
            )

        return sorted(filter(fits, self.records), key=lambda record: record.seed)


def load_experiment(directory: str | Path) -> ExperimentData:
    """Read and check a results folder.

    >>> load_experiment("no/such/place")
    Traceback (most recent call last):
        ...
    adalook.errors.FileError: cannot read no/such/place/experiment.json: got No such file or directory. Make one ...
    """
    folder = Path(directory)
    about = _read_about(folder)
    sums = about["sha256"]
    groups = {
        name: _within(folder / "experiment.json", f"group {name}", partial(read_group, number, raw))
        for number, (name, raw) in enumerate(about["groups"].items())
    }
    records = _read_records(folder / "records.json", sums, groups)
    if about["jobs"] != len(records):
        raise FileError(
            f"{folder / 'records.json'} is not complete", expected=f"{about['jobs']} records", got=len(records)
        )
    arrays = FORMAT.read_arrays(folder / "traces.npz", sums) if "traces.npz" in sums else {}
    described = FORMAT.read_object(folder / "models.json", sums) if (folder / "models.json").exists() else {}
    models = {
        key: _within(folder / "models.json", key, partial(_model, key, words, arrays))
        for key, words in described.items()
    }
    traces = {
        record.trace: _within(folder / "traces.npz", record.trace, partial(_trace, record, arrays))
        for record in records
        if record.trace is not None
    }
    return ExperimentData(
        name=about["experiment"],
        settings=about["settings"],
        versions={"adalook": about["adalook_version"], **about["versions"]},
        records=records,
        times=_read_times(folder / "times.json"),
        models=models,
        traces=traces,
    )


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / FORMAT.index
    unfinished = not path.exists() and (folder / "journal.jsonl").exists()
    about = FORMAT.read_index(folder, "that run has not ended: start it again and it goes on" if unfinished else "")
    kinds: dict[str, type] = dict.fromkeys(("settings", "groups", "versions", "sha256"), dict)
    kinds |= {"experiment": str, "adalook_version": str, "jobs": int}
    for name, kind in kinds.items():
        if not isinstance(about.get(name), kind):
            raise FileError(f"{path} is damaged", expected=f"{name!r} to be {kind.__name__}", got=repr(about.get(name)))
    if "records.json" not in about["sha256"]:
        raise FileError(f"{path} is damaged", expected="the sha256 of records.json", got=list(about["sha256"]))
    return about


def _read_records(path: Path, sums: Mapping[str, Any], groups: Mapping[str, GroupStyle]) -> tuple[Record, ...]:
    found = FORMAT.read_object(path, sums).get("records")
    if not isinstance(found, list):
        raise FileError(f"{path} is damaged", expected="a list of records", got=type(found).__name__)
    records = tuple(
        _within(path, f"record {number}", partial(read_record, raw, groups)) for number, raw in enumerate(found)
    )
    names = [record.job for record in records]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"{path} holds a job twice", got=repr(twice))
    return records


def _read_times(path: Path) -> dict[str, float]:
    if not path.exists():
        return {}
    times = FORMAT.read_object(path)
    for job, seconds in times.items():
        if not isinstance(seconds, int | float) or not 0.0 <= seconds < float("inf"):
            raise FileError(f"{path} is damaged", expected="seconds per job", got=f"{seconds!r} for {job!r}")
    return times


def _within(path: Path, part: str, read: Callable[[], Any]) -> Any:
    """Read a part of a file; whatever goes wrong is an error that names the file and the part."""
    try:
        return read()
    except Damage as damage:
        raise FileError(f"{path} is damaged in {part}", expected=damage.expected, got=damage.got) from damage
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FileError(f"{path} is damaged in {part}", got=repr(error), remedy=MAKE_ONE) from error


def _numbers(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], kinds: str) -> np.ndarray:
    if name not in arrays:
        raise Damage(f"an array {name!r}", "none")
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds:
        raise Damage(f"{name!r} of shape {shape}", f"{array.dtype} {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Damage(f"finite numbers in {name!r}", "infinity or NaN")
    return array


def _trace(record: Record, arrays: Mapping[str, np.ndarray]) -> Trace:
    shape = (record.passes, record.num_states)
    policy = _numbers(arrays, f"{record.trace}/policy", shape, "iu")
    if policy.size and not 0 <= int(policy.min()) <= int(policy.max()) < record.num_actions:
        raise Damage(f"actions below {record.num_actions}", int(policy.max()))
    return Trace(
        values=_numbers(arrays, f"{record.trace}/values", shape, "f"),
        policy=policy,
        depth=_numbers(arrays, f"{record.trace}/depth", shape, "iu"),
    )


def _model(key: str, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SavedModel:
    rows, columns = natural_number(about["rows"]), natural_number(about["columns"])
    values = arrays.get(f"model/{key}/values", np.empty(0))
    num_states = len(np.atleast_1d(values))
    cells = _numbers(arrays, f"model/{key}/cells", (num_states, 2), "iu")
    if num_states and not ((cells >= -1).all() and (cells < (rows, columns)).all()):
        raise Damage(f"cells inside {rows} × {columns}", "one outside")
    layout = SavedLayout(
        cells=cells,
        walls=_numbers(arrays, f"model/{key}/walls", (rows, columns), "b"),
        moves=tuple((int(row), int(column)) for row, column in about["moves"]),
        start=None if about["start"] is None else next(_checked_cells([about["start"]], rows, columns)),
        goals=tuple(_checked_cells(about["goals"], rows, columns)),
        traps=tuple(_checked_cells(about["traps"], rows, columns)),
    )
    return SavedModel(
        layout=layout,
        values=_numbers(arrays, f"model/{key}/values", (num_states,), "f"),
        action_names=tuple(str(name) for name in about["action_names"]),
        discount=float(about["discount"]),
    )


def _checked_cells(pairs: list[list[int]], rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Yield (row, column) pairs of a grid, or raise `Damage` for one outside of it."""
    for row, column in pairs:
        if not (0 <= natural_number(row) < rows and 0 <= natural_number(column) < columns):
            raise Damage(f"cells inside {rows} × {columns}", [row, column])
        yield row, column
