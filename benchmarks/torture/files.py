"""Damaged files of every kind that is read: each is refused or means what it meant, never anything else."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al
from adalook.experiments.store import _read as read_journal
from adalook.learning.runs.directory import load_newest, read_run_config
from adalook.learning.runs.options import read_options
from adalook.planning.solution_files import save_solution
from adalook.report.data.solution import load_solution
from adalook.report.data.training_run import _read_lines
from adalook.storage.documents import DIGEST, with_digest
from adalook.storage.serializer import Segment, add_digest, check_digest, deserialize, serialize
from benchmarks.torture.directories import make_run
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY, Row, Scale, attempt

ALL_BAD = frozenset({DIFFERENT, FOREIGN, HANG, MEMORY})
NO_DIGEST = frozenset({FOREIGN, HANG, MEMORY})
FILES = 20_000
"""Of each kind, in the full torture."""
NASTY = (
    "null",
    "true",
    "[]",
    "{}",
    "-1",
    "1e999",
    "NaN",
    '""',
    "1" * 400,
    "[" * 3_000,
    '"' + "x" * 500 + '"',
    "0.5",
    "[1,2]",
)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file's content with some damage: bits, bytes, cuts, copies, other tokens."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, max(1, len(data))))
        length = int(rng.integers(1, 65))
        match int(rng.integers(0, 8)):
            case 0 if data:
                data[at] ^= 1 << int(rng.integers(0, 8))
            case 1 if data:
                data[at] = int(rng.integers(0, 256))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = rng.bytes(length)
            case 5:
                data[at:at] = data[at : at + length]
            case 6:
                data[at : at + length] = bytes(length)
            case _:
                data[at : at + int(rng.integers(0, 9))] = str(rng.choice(NASTY)).encode()
    return bytes(data)


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return JSON with another value somewhere, and the digest that fits it: what a forger writes."""
    document = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list) and node[key]:
                walk(node[key])

    walk(document)
    node, key = places[int(rng.integers(len(places)))]
    value: Any = [None, True, -1, 0.5, "x", [], {}, 10**200, [[1]], {"a": 1}, "../../etc", 2**64][int(rng.integers(12))]
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    else:
        node[key] = value
    if "run_config" in document:
        card = {name: part for name, part in document.items() if name != "sha256"}
        text = json.dumps(card, sort_keys=True, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    elif "body" in document and "sha256" in document:
        body = json.dumps(document["body"], sort_keys=True, separators=(",", ":")).encode()
        document["sha256"] = hashlib.sha256(body).hexdigest()
    elif DIGEST in document:
        document = with_digest({name: part for name, part in document.items() if name != DIGEST})
    return json.dumps(document).encode()


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
    from adalook.experiments.store import _line

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
    return found


def _fewer(found: str) -> str:
    """A journal whose torn lines are left out is resumed from the others: as good as the same."""
    return "other" if found == "other" else "same"


def rows(scale: Scale) -> list[Row]:
    """Damage every kind of file, many times, and see what reading it does."""
    result = []
    with tempfile.TemporaryDirectory() as name:
        for number, kind in enumerate(kinds(Path(name))):
            whole = kind.path.read_bytes()
            wanted = kind.meaning(kind.read())
            rng = np.random.default_rng([scale.seed, 2, number])
            row = Row("damaged files", kind.name, kind.bad, kind.note)
            makers = [(row, damaged)]
            if kind.forge:
                note = "another value, and the digest that fits: the forger's values may be read"
                makers.append((Row("forged files", kind.name, NO_DIGEST, note), forged))
            for target, change in makers:
                for _ in range(scale.count(FILES)):
                    content = change(whole, rng)
                    kind.path.write_bytes(content)
                    outcome, what = attempt(
                        kind.read, lambda read, kind=kind, wanted=wanted: kind.meaning(read) == wanted
                    )
                    if content == whole:
                        continue
                    target.add(outcome, what)
                result.append(target)
            kind.path.write_bytes(whole)
    return result
