"""Hostile run directories: links, pipes, devices, foreign code and forged settings, as others might send them."""

from __future__ import annotations

import copy
import json
import math
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import adalook as al
from adalook.learning.runs.directory import RunDirectory, load_newest, read_run_config, write_run_config
from adalook.learning.runs.loggers import JsonlLogger, TensorBoardLogger
from adalook.learning.runs.options import RunOptions, read_options, write_options
from adalook.learning.runs.run import load_agent, resume_run, start_run
from adalook.storage.serializer import Segment
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY, Row, Scale, attempt

ESCAPED, IMPORTED = "wrote elsewhere", "imported code"
BAD = frozenset({FOREIGN, HANG, MEMORY, ESCAPED, IMPORTED, DIFFERENT})
FILES = ("config.json", "options.json", "lock", "log.jsonl", "clock.jsonl", "segments", "checkpoints", "tensorboard")
ROUNDS = 10
"""Of all directories, in the full torture."""
FORGED = 2_000
"""Checkpoints with a value changed, in the full torture."""


SMALL_STATE = {"agent": {"kind": "dqn", "weights": np.arange(9.0)}, "full": Segment(np.arange(50))}


def make_run(place: Path, state: Any = SMALL_STATE) -> Path:
    """Make a sound run directory with one checkpoint; returns the checkpoint."""
    with RunDirectory(place) as run:
        checkpoint = run.save(3, state)
    config = {
        "format": 5,
        "agent": "dqn",
        "env": "CartPole-v1",
        "seed": 0,
        "depth": 0,
        "config": al.Config().to_plain(),
    }
    write_run_config(place, config)
    write_options(place, RunOptions())
    return checkpoint


def _use(place: Path) -> str:
    """Do what resuming a run does with its directory, short of training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_run_config(place)
        read_options(place)
        with RunDirectory(place) as run:
            run.load_newest()
            write_options(place, RunOptions())
            log = JsonlLogger(place)
            log.load_state({"log": 0, "clock": 0})
            log.close()
            TensorBoardLogger(place / "tensorboard").close()
            run.save(4, {"agent": {"kind": "dqn", "weights": np.arange(9.0)}, "full": Segment(np.arange(60))})
        load_newest(place)
    return "used"


def _replace(target: Path, make: Callable[[Path], None]) -> None:
    """Put something else in the place of a file or directory."""
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    make(target)


def rows(scale: Scale) -> Iterator[Row]:
    """Use directories in which something is not what it seems."""
    links = Row("run directories", "links, pipes and devices in place of files", BAD, "nothing outside may be touched")
    code = Row("run directories", "code that config.json names", BAD, "refused unless the user names it again")
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        precious = base / "precious"
        precious.mkdir()
        (precious / "file").write_bytes(b"mine" * 100)
        makers: dict[str, Callable[[Path], None]] = {
            "a link to a file": lambda path: path.symlink_to(precious / "file"),
            "a link to a directory": lambda path: path.symlink_to(precious),
            "a link to nothing": lambda path: path.symlink_to(precious / "new"),
            "a pipe": os.mkfifo,
            "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
            "a link to itself": lambda path: path.symlink_to(path),
            "a directory": lambda path: path.mkdir(),
            "an empty file": lambda path: path.touch(),
        }
        for round_ in range(scale.count(ROUNDS)):
            for target in FILES:
                for what, make in makers.items():
                    place = base / f"run-{round_}"
                    shutil.rmtree(place, ignore_errors=True)
                    make_run(place)
                    _replace(place / target, make)
                    outcome, said = attempt(lambda place=place: _use(place), lambda done: done == "used")
                    if sorted(os.listdir(precious)) != ["file"] or (precious / "file").read_bytes() != b"mine" * 100:
                        outcome = ESCAPED
                        shutil.rmtree(precious)
                        precious.mkdir()
                        (precious / "file").write_bytes(b"mine" * 100)
                    links.add(outcome, f"{target} is {what}: {said}")
        yield links
        for round_ in range(scale.count(ROUNDS)):
            module = f"torture_evil_{round_}"
            (base / f"{module}.py").write_text(f"open({str(base / 'ran')!r}, 'w').close()\n")
            sys.path.insert(0, str(base))
            place = base / f"code-{round_}"
            make_run(place)
            for env in (f"{module}:Evil-v0", f"{module}:", f"zoo:{module}", f"gym:{module}:x"):
                content: Any = read_run_config(place)
                write_run_config(place, dict(content) | {"env": env})
                for use in (load_agent, lambda where: resume_run(where, steps=1)):
                    outcome, said = attempt(lambda use=use, place=place: use(place))
                    code.add(IMPORTED if (base / "ran").exists() else outcome, f"{env}: {said}")
            sys.path.remove(str(base))
    yield code
    yield _swapped(scale)
    yield _forged_states(scale)


NASTY_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**40, 10**30, -(2**70), 0.5, math.nan, math.inf, "x", b"x", [], {}, [[1]], {"a": 1}),
    *(np.zeros(0), np.full(3, math.nan), np.zeros((2, 2, 2)), np.arange(5), np.array(5), np.zeros(3, bool)),
)


def _forged_states(scale: Scale) -> Row:
    """Put another value into a checkpoint, with digests that fit: refused, or trained from as if it were meant."""
    row = Row(
        "run directories", "forged states of checkpoints", frozenset({FOREIGN, HANG, MEMORY}), "may be trained from"
    )
    rng = np.random.default_rng([scale.seed, 6])
    options = RunOptions(tensorboard=False, progress=False, evaluation_episodes=1, report_period_steps=20)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sound, place = Path(name) / "sound", Path(name) / "forged"
        settings = {"learning_starts_steps": 16, "buffer_transitions": 200, "ranked_transitions": 4}
        start_run(sound, al.QLDQN("zoo:chain?n=5", seed=1, **settings))
        resume_run(sound, steps=40, options=options)
        saved = load_newest(sound)
        assert saved is not None
        for _ in range(scale.count(FORGED)):
            state = copy.deepcopy(saved.state)
            node, key = _places(state)[int(rng.integers(len(_places(state))))]
            value = NASTY_VALUES[int(rng.integers(len(NASTY_VALUES)))]
            if isinstance(node, dict) and rng.random() < 0.2:
                del node[key]
            else:
                node[key] = value
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(sound, place)
            with RunDirectory(place) as run:
                run.save(41, state)
            outcome, said = attempt(lambda: resume_run(place, steps=64))
            row.add(outcome, f"{key} is {value!r}: {said}")
    return row


def _places(state: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of nested dicts and lists."""
    keys = state if isinstance(state, dict) else range(len(state)) if isinstance(state, list) else ()
    return [place for key in keys for place in ((state, key), *_places(state[key]))]


def _swapped(scale: Scale) -> Row:
    """Change settings in JSON by hand, without the digest: a run must not go on with them in silence."""
    row = Row("run directories", "settings changed by hand", BAD, "the digest tells")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "run"
        make_run(place)
        for file, read in (("config.json", read_run_config), ("options.json", read_options)):
            whole = json.loads((place / file).read_text())
            inner = whole["config"] if file == "config.json" else whole
            for key in list(inner):
                changed = json.loads(json.dumps(whole))
                part = changed["config"] if file == "config.json" else changed
                part[key] = 1 if part[key] != 1 else 2
                (place / file).write_text(json.dumps(changed))
                outcome, said = attempt(lambda read=read: read(place))
                row.add(outcome, f"{file}: {key}: {said}")
            (place / file).write_text(json.dumps(whole))
    return row
