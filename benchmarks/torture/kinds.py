"""Every kind of file that is read: a sound one of each, what reads it, and what it means."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al
from adalook.cli.main import main
from adalook.experiments.engines.base import FinishedJob, run_timed
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.runner import reproduce
from adalook.experiments.store import _line
from adalook.experiments.store import _read as read_journal
from adalook.experiments.trial import Trial
from adalook.learning.runs.directory import load_newest, read_run_config
from adalook.learning.runs.options import read_options
from adalook.planning.checkpoint import SolveCheckpoint
from adalook.planning.solution_files import save_solution
from adalook.report.data.experiment import load_experiment
from adalook.report.data.learning import learning_summary, load_learning
from adalook.report.data.solution import load_solution
from adalook.report.data.training_run import _read_lines, read_run_log
from adalook.report.figures.search_view import load_figure, load_searches
from adalook.storage.serializer import Segment, add_digest, check_digest, deserialize, serialize
from benchmarks.torture.directories import make_run
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY

ALL_BAD = frozenset({DIFFERENT, FOREIGN, HANG, MEMORY})
NO_DIGEST = frozenset({FOREIGN, HANG, MEMORY})


@dataclass
class Kind:
    """A kind of file: one that is sound, what reads it, and what it means."""

    name: str
    path: Path
    read: Callable[[], Any]
    meaning: Callable[[Any], Any]
    bad: frozenset[str] = ALL_BAD
    note: str = "has a digest: nothing different may be read"
    forge: bool = False
    """Also forge it, with a digest that fits: then only foreign exceptions, hangs and memory are bad."""
    seal: Callable[[bytes], None] | None = None
    """Makes another file vouch for forged content, where the digest is in that."""
    share: float = 1.0
    """Of the number of files of other kinds, where each takes long."""


def _model_meaning(mdp: al.MDP) -> bytes:
    parts = (mdp.rewards, mdp.codes, *mdp.rows[:3])
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts) + str(mdp.discount).encode()


def _array_meaning(value: Any) -> bytes:
    return serialize(value)


def kinds(place: Path) -> list[Kind]:
    """Write a sound file of every kind into a directory."""
    maze, garnet = al.zoo.maze(size=8, seed=0), al.zoo.garnet(6, 2, 3, seed=1)
    found = []
    for name, mdp, loaded in (
        ("maze.npz", maze, {}),
        ("garnet.npz", garnet, {}),
        ("garnet.umb", garnet, {"discount": 0.9}),
    ):
        path = place / name
        mdp.save(path)
        umb = name.endswith(".umb")
        found.append(
            Kind(
                f"model {name}",
                path,
                lambda path=path, loaded=loaded: al.MDP.load(path, **loaded),
                _model_meaning,
                NO_DIGEST if umb else ALL_BAD,
                "the format, shared with Storm, has no digest: another model may be read" if umb else Kind.note,
            )
        )
    solution = place / "solution"
    save_solution(al.solve(maze), maze, solution, with_trace=True)

    def solution_meaning(saved: Any) -> Any:
        return repr(sorted(saved.about.items())), saved.values.tobytes(), saved.policy.tobytes(), saved.lower.tobytes()

    found += [
        Kind(name, solution / name, lambda: load_solution(solution), solution_meaning, forge=name.endswith("json"))
        for name in ("solution.json", "solution.npz")
    ]
    run = place / "run"
    state = {
        "agent": {"weights": np.arange(40.0), "text": "abc", "rows": [1, (2.5, None)]},
        "full": Segment(np.arange(99)),
    }
    checkpoint = make_run(run, state)
    found.append(Kind("config.json of a run", run / "config.json", lambda: read_run_config(run), dict, forge=True))
    found.append(Kind("options.json of a run", run / "options.json", lambda: read_options(run), repr, forge=True))

    def saved_state() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_newest(run)

    def state_meaning(found_checkpoint: Any) -> Any:
        content = found_checkpoint.state
        return serialize(content["agent"]), content["full"].payload.tobytes(), found_checkpoint.step

    segment = next((run / "segments").iterdir())
    for name, path in (
        ("manifest of a checkpoint", checkpoint / "manifest.json"),
        ("state of a checkpoint", checkpoint / "state.bin"),
        ("segment of a replay buffer", segment),
    ):
        found.append(Kind(name, path, saved_state, state_meaning, forge=path.name == "manifest.json"))
    exported = place / "exported"
    agent = al.DQN("zoo:chain?n=5", seed=1)
    agent.export(exported, score=1.5)

    def weights(loaded: Any) -> bytes:
        return serialize(loaded.policy_state())

    for name in ("agent.json", "policy.safetensors"):
        path = exported / name
        found.append(
            Kind(f"{name} of an agent", path, lambda: al.DQN.load(exported), weights, forge=name.endswith("json"))
        )
    lines = [json.dumps({"kind": "progress", "step": step, "loss": 0.5}) for step in range(20)]
    log = place / "log.jsonl"
    log.write_text("\n".join(lines) + "\n")
    found.append(
        Kind(
            "log of a run", log, lambda: _read_lines(log), repr, NO_DIGEST, "lines of JSON without a digest, for people"
        )
    )
    body = {"job": "a", "record": {"x": 1.5}, "run": {"format": 2}}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    journal = place / "journal.jsonl"
    journal.write_bytes(_line(json.loads(text)) * 5)

    def journal_lines(read: Any) -> Any:
        good, torn = read
        return "same" if torn == 0 and len(good) == 5 else "fewer" if all(line == body for line in good) else "other"

    found.append(
        Kind(
            "journal of an experiment", journal, lambda: read_journal(journal), lambda read: _fewer(journal_lines(read))
        )
    )
    packed = place / "packed.bin"
    content = (1, [2.5, None, "text"], {"a": b"x", 3: np.arange(12).reshape(3, 4)}, float("inf"))
    packed.write_bytes(add_digest(serialize(content), "torture"))
    found.append(
        Kind(
            "packed state of a simulator",
            packed,
            lambda: deserialize(check_digest(packed.read_bytes(), "torture")),
            _array_meaning,
        )
    )
    bare = place / "bare.bin"
    bare.write_bytes(serialize(content))
    found.append(
        Kind(
            "bytes of the serialiser",
            bare,
            lambda: deserialize(bare.read_bytes()),
            _array_meaning,
            NO_DIGEST,
            "without the digest that files have around them",
        )
    )
    return found + _results(place) + _planning(place) + _others(place)


def _fewer(found: str) -> str:
    """A journal whose torn lines are left out is resumed from the others: as good as the same."""
    return "other" if found == "other" else "same"


def _arrays_of(*arrays: np.ndarray) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _planning(place: Path) -> list[Kind]:
    """Return the files of planning beside models and solutions: mapped models, checkpoints, solutions in shards."""
    maze, mapped = al.zoo.maze(size=8, seed=0), place / "mapped.npz"
    maze.save(mapped)
    checkpoint = place / "solve.ckpt"
    al.solve(maze, checkpoint=checkpoint)
    reader = SolveCheckpoint(checkpoint, maze, al.Auto(), al.solve(maze).tolerance)

    def walk(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left, right = np.maximum(states - 1, 0), np.minimum(states + 1, 39)
        return np.stack([states == 0, states == 39], axis=1).astype(float), np.stack([left, right], axis=1)

    sharded = place / "sharded"
    al.ShardedMDP.from_function(walk, 40, 2, discount=0.9, shards=2).solve().save(sharded)

    def sharded_meaning(found: Any) -> Any:
        looked = found.lookup(np.arange(found.num_states))
        return repr(found), found.trace, _arrays_of(*looked)

    def load_sharded() -> Any:
        return al.ShardedSolution.load(sharded)

    def jumps(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cross from shard to shard, so that one round is not enough."""
        return np.stack([np.sin(states), np.cos(states)], axis=1), np.stack([7 * states + 3, 11 * states + 5], 1) % 40

    begun, resumed = place / "begun", place / "resumed"
    model = al.ShardedMDP.from_function(jumps, 40, 2, discount=0.99, shards=2)
    model.solve(max_rounds=2, checkpoint=begun)

    def resume() -> Any:
        """Go on from a copy, since a solve that has converged removes its checkpoint."""
        shutil.rmtree(resumed, ignore_errors=True)
        shutil.copytree(begun, resumed)
        return model.solve(checkpoint=resumed, max_rounds=200)

    def resumed_meaning(found: Any) -> Any:
        assert not found.converged or found.policy_loss <= found.tolerance
        return found.status, found.lookup(np.arange(40))[1].tobytes()

    return [
        Kind("checkpoint of a solve in shards", begun / "checkpoint.npz", resume, resumed_meaning),
        Kind(
            "values in a checkpoint of a solve in shards",
            next(begun.glob("state-*/values-0.npy")),
            resume,
            resumed_meaning,
            NO_DIGEST,
            "mapped, and where the solve goes on from: types and sizes are checked, and what converges is certified",
        ),
        Kind("model that is mapped", mapped, lambda: al.MDP.load(mapped, mmap=True), _model_meaning),
        Kind("checkpoint of a solve", checkpoint, reader.read, lambda saved: repr(saved)),
        Kind("summary of a solution in shards", sharded / "sharded.json", load_sharded, sharded_meaning, forge=True),
        Kind(
            "values of a solution in shards",
            sharded / "values-0.npy",
            load_sharded,
            sharded_meaning,
            NO_DIGEST,
            "mapped, not read: types and sizes are checked, values are not",
        ),
    ]


def _results(place: Path) -> list[Kind]:
    """Return the files of experiments: those that are planned, and those that learn."""
    source = Path(__file__).parents[2] / "results"
    chain = place / "chain"
    chain.mkdir()
    index, all_records = (
        json.loads((source / "chain" / name).read_text()) for name in ("experiment.json", "records.json")
    )
    few = all_records["records"][:3]

    def seal(content: bytes) -> None:
        """Let the index vouch for records."""
        sums = {"records.json": hashlib.sha256(content).hexdigest()}
        (chain / "experiment.json").write_text(json.dumps(index | {"sha256": sums, "jobs": len(few)}))

    (chain / "records.json").write_text(json.dumps({"records": few}))
    (chain / "times.json").write_text(json.dumps({record["job"]: 1.5 for record in few}))
    seal((chain / "records.json").read_bytes())

    def chain_meaning(data: Any) -> str:
        return repr((data.name, data.settings, data.records, data.times))

    found = []
    for name in ("experiment.json", "records.json", "times.json"):
        said = {"bad": NO_DIGEST, "note": "without a digest: it holds those of the others"} if name[0] == "e" else {}
        if name == "times.json":
            said = {"bad": NO_DIGEST, "note": "seconds, without a digest"}
        found.append(
            Kind(
                f"{name} of an experiment",
                chain / name,
                lambda: load_experiment(chain),
                chain_meaning,
                forge=name != "times.json",
                seal=seal if name == "records.json" else None,
                **said,  # type: ignore[arg-type]
            )
        )
    found += _traced(place / "maze")
    learning = place / "learning"
    (learning / "runs").mkdir(parents=True)
    source /= "minatar"
    plan = json.loads((source / "experiment.json").read_text())
    runs = sorted((source / "runs").glob("*.json"))[:2]
    plan |= {"runs": [path.stem for path in runs], "missing": []}
    (learning / "experiment.json").write_text(json.dumps(plan))
    for path in runs:
        record = json.loads(path.read_text())
        timeline = record["timeline"]
        record["timeline"] = {name: column[:3] for name, column in timeline.items() if name != "depths"} | {
            "depths": {depth: column[:3] for depth, column in timeline["depths"].items()}
        }
        record["definition"], record["interim"] = {}, []
        (learning / "runs" / path.name).write_text(json.dumps(record))
    return found + [
        Kind(
            f"{what} of a learning experiment",
            learning / name,
            lambda: learning_summary(load_learning(learning)),
            repr,
            NO_DIGEST,
            "JSON without a digest",
            forge=True,
        )
        for what, name in (("index", "experiment.json"), ("run", f"runs/{runs[0].name}"))
    ]


class InThisProcess:
    """An engine of experiments without processes."""

    def run(self, jobs: Sequence[Trial]) -> Generator[FinishedJob]:
        """Run one job after the other."""
        yield from map(run_timed, jobs)


def _traced(folder: Path) -> list[Kind]:
    """Return the files of an experiment that has kept traces, and the mazes they were on."""
    reproduce(MazeExperiment(seeds=1, size=8, depths=(1, 2), few=(2,), squares=(2,)), folder, InThisProcess())
    index = json.loads((folder / "experiment.json").read_text())

    def meaning(data: Any) -> bytes:
        traces = [array for trace in data.traces.values() for array in vars(trace).values()]
        return _arrays_of(*traces) + repr(sorted(data.models)).encode() + repr(list(data.models.values())).encode()

    def sealed(name: str) -> Callable[[bytes], None]:
        def seal(content: bytes) -> None:
            sums = index["sha256"] | {name: hashlib.sha256(content).hexdigest()}
            (folder / "experiment.json").write_text(json.dumps(index | {"sha256": sums}))

        return seal

    return [
        Kind(
            f"{name} of an experiment",
            folder / name,
            lambda: load_experiment(folder),
            meaning,
            forge=name.endswith("json"),
            seal=sealed(name),
        )
        for name in ("models.json", "traces.npz")
    ]


def _others(place: Path) -> list[Kind]:
    """Return saved searches, settings in TOML, and the log of a run as the report reads it."""
    searches = place / "searches"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["search", "zoo:maze?size=8", "--depth", "2", "--out", str(searches)]) == 0

    settings = place / "settings.toml"
    al.Config().save(settings)
    logged = place / "logged"
    logged.mkdir()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        words = ["train", "zoo:chain?n=5", "--steps", "64", "--evaluation-episodes", "1", "--out", str(logged)]
        assert main([*words, "--no-tensorboard"]) == 0
    settled = Kind("settings in TOML", settings, lambda: al.Config.load(settings), repr, NO_DIGEST, "written by people")
    logs = [
        Kind(
            f"{name}, as a report reads it",
            logged / name,
            lambda: read_run_log(logged),
            repr,
            NO_DIGEST,
            "lines of JSON without a digest, for people",
        )
        for name in ("log.jsonl", "clock.jsonl")
    ]

    def searches_meaning(read: Any) -> Any:
        about, arrays = read
        return repr(about), _arrays_of(*(arrays[name] for name in sorted(arrays)))

    reads: dict[str, tuple[Any, Any, float]] = {
        "": (lambda: load_searches(searches), searches_meaning, 1.0),
        ", drawn": (lambda: load_figure(searches), lambda figure: len(figure.axes), 0.05),
    }
    saved = [
        Kind(
            name + how,
            searches / name,
            read,
            meaning,
            NO_DIGEST,
            "without a digest, for a figure",
            forge=name.endswith("json"),
            share=share,
        )
        for how, (read, meaning, share) in reads.items()
        for name in ("search.json", "search.npz")
    ]
    return [settled, *logs, *saved]
