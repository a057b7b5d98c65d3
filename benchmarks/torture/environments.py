"""Odd environments: other users, no home, closed streams, ignored signals, small limits, one core, odd names."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT
from benchmarks.torture.outcome import Row, Scale

BAD = frozenset({"failed", "hang", "traceback", "another answer"})
SOLVE = [sys.executable, "-m", "adalook", "solve", "zoo:maze?size=8&seed=1", "--json"]
TRAIN = [sys.executable, "-m", "adalook", "train", "zoo:chain?n=5", "--steps", "64", "--evaluation-episodes", "1"]
TRAIN += ["--out"]
NOBODY = 65534
"""The user without rights, as most systems number it."""
READS_ALL = "dac_read_search"
"""The capability to read whatever there is: Python may lie in a home that others cannot enter."""


@dataclass
class Surroundings:
    """How a command is started, and what it may answer."""

    name: str
    command: list[str] = field(default_factory=lambda: list(SOLVE))
    variables: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    codes: tuple[int, ...] = (0,)
    silent: bool = False
    """Whether nothing can be read from it."""
    bytes_name: bytes | None = None
    trains: bool = False
    """Whether training is tried here, too."""


def _limit(kind: int, amount: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (amount, amount))


def _close(*descriptors: int) -> Callable[[], None]:
    return lambda: [os.close(descriptor) for descriptor in descriptors] and None  # type: ignore[func-returns-value]


def _ignore(*numbers: int) -> Callable[[], None]:
    return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers] and None


def surroundings(place: Path, package: Path) -> list[Surroundings]:
    """List the environments that are tried."""
    home = place / "home"
    home.mkdir()
    home.chmod(0o555)
    odd = os.fsencode(place) + b"/\xff\xfe odd"
    text = Surroundings
    found = [
        text("as it is"),
        text("no HOME", without=("HOME",), trains=True),
        text("HOME that does not exist", variables={"HOME": "/nowhere"}),
        text("no TERM", without=("TERM",)),
        text("dumb terminal", variables={"TERM": "dumb"}),
        text("C locale", variables={"LC_ALL": "C", "LANG": "C"}),
        text(
            "POSIX locale, no UTF-8 mode", variables={"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        ),
        text("ASCII output", variables={"PYTHONIOENCODING": "ascii"}, trains=True),
        text("no PATH", without=("PATH",)),
        text("TMPDIR that does not exist", variables={"TMPDIR": "/nowhere"}),
        text("Python -O", command=[sys.executable, "-OO", *SOLVE[1:]]),
        text("warnings are errors", command=[sys.executable, "-W", "error", *SOLVE[1:]]),
        text("another hash seed", variables={"PYTHONHASHSEED": "1"}),
        text("a third hash seed", variables={"PYTHONHASHSEED": "2"}),
        text("one thread of ours", variables={"ADALOOK_THREADS": "1"}),
        text("many threads of ours", variables={"ADALOOK_THREADS": "16"}),
        text("one thread of BLAS", variables={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}),
        text("one core", prepare=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}), trains=True),
        text("stdin closed", prepare=_close(0)),
        text("stdout closed", prepare=_close(1), silent=True),
        text("stderr closed", prepare=_close(2)),
        text("stdout and stderr closed", prepare=_close(1, 2), silent=True),
        text("everything closed", prepare=_close(0, 1, 2), silent=True, trains=True),
        text("SIGINT ignored", prepare=_ignore(signal.SIGINT), trains=True),
        text("SIGINT, SIGTERM and SIGHUP ignored", prepare=_ignore(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
        text("SIGPIPE as in C", prepare=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL) and None),
        text("32 open files", prepare=_limit(resource.RLIMIT_NOFILE, 32)),
        text("nothing may be written", prepare=_limit(resource.RLIMIT_FSIZE, 0), silent=True, codes=(0, 1, 2)),
        text("3 GB of memory", prepare=_limit(resource.RLIMIT_AS, 3 * 2**30)),
        text("no core files", prepare=_limit(resource.RLIMIT_CORE, 0)),
        text("umask 077", prepare=lambda: os.umask(0o077) and None),
        text(
            "stdout is full",
            command=["sh", "-c", f"{' '.join(map(_quoted, SOLVE))} >/dev/full"],
            silent=True,
            codes=(1, 2),
        ),
        text("reader gone", command=["sh", "-c", f"{' '.join(map(_quoted, SOLVE))} | true"], silent=True, codes=(0,)),
        text("names that are no UTF-8", command=[*SOLVE, "--out"], bytes_name=odd),
        text("names that are no UTF-8, with a page", command=[*SOLVE, "--report", "--out"], bytes_name=odd + b"2"),
        text("a very long path", command=[*SOLVE, "--out", str(place / ("x" * 200) / ("y" * 200))]),
    ]
    if os.getuid() == 0 and shutil.which("setpriv"):
        other = {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
        found += [
            text("another user, package read-only, no HOME", as_nobody(SOLVE), other, without=("HOME",)),
            text("another user, HOME read-only", as_nobody(SOLVE), other | {"HOME": str(home)}),
            text("another user, nowhere to write", as_nobody(SOLVE), other | {"HOME": "/", "TMPDIR": "/proc"}),
        ]
    if os.getuid() == 0 and shutil.which("unshare"):
        cache = place / "cache"
        cache.mkdir()
        small = f"mount -t tmpfs -o size=64k none {_quoted(str(cache))} && exec {' '.join(map(_quoted, SOLVE))}"
        on_it = {"NUMBA_CACHE_DIR": str(cache)}
        found.append(text("a full disk for compiled code", ["unshare", "-m", "sh", "-c", small], on_it))
    return found


def as_nobody(command: list[str]) -> list[str]:
    """Return a command that runs as a user who may read everything and write nothing of others."""
    who = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *who, f"--inh-caps=+{READS_ALL}", f"--ambient-caps=+{READS_ALL}", *command]


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _answer(text: str) -> Any:
    """Return what must not depend on the environment."""
    about = json.loads(text.strip().splitlines()[-1])
    return {key: about[key] for key in ("status", "iterations", "policy_loss", "value_range", "model", "queries")}


def _run(about: Surroundings, command: list[Any]) -> subprocess.CompletedProcess[bytes]:
    variables = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])} | about.variables
    environment = {key: value for key, value in (os.environ | variables).items() if key not in about.without}
    return subprocess.run(command, env=environment, capture_output=True, timeout=600, cwd="/", preexec_fn=about.prepare)


def _verdict(about: Surroundings, done: subprocess.CompletedProcess[bytes]) -> tuple[str, str] | None:
    """Return what went wrong; None: nothing."""
    errors = done.stderr.decode(errors="replace")
    if "Traceback" in errors:
        return "traceback", f"{about.name}: {errors[-300:]}"
    if done.returncode not in about.codes:
        return "failed", f"{about.name}: exit code {done.returncode}, {errors[-300:]}"
    return None


def rows(scale: Scale) -> Iterator[Row]:
    """Solve the same model and train the same agent everywhere."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        package = place / "package"
        shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
        every = surroundings(place, package)
        step = max(1, round(1 / scale.factor))
        yield _solving(every[::step])
        yield _training([about for about in every if about.trains][::step], place)
        (place / "home").chmod(0o755)


def _solving(every: list[Surroundings]) -> Row:
    """Solve the same model: the same answer, or a clear refusal where there is none to give."""
    row = Row("environments", "adalook solve", BAD, "one answer, everywhere")
    wanted: Any = None
    for about in every:
        command: list[Any] = list(about.command)
        if about.bytes_name is not None:
            command.append(about.bytes_name)
        try:
            done = _run(about, command)
        except subprocess.TimeoutExpired:
            row.add("hang", about.name)
            continue
        wrong = _verdict(about, done)
        if wrong is not None:
            row.add(*wrong)
        elif about.silent:
            row.add("ended well")
        else:
            answer = _answer(done.stdout.decode(errors="replace"))
            wanted = answer if wanted is None else wanted
            row.add("the same answer" if answer == wanted else "another answer", f"{about.name}: {answer}")
    return row


def _training(every: list[Surroundings], place: Path) -> Row:
    """Train the same agent: the same log, to the byte."""
    row = Row("environments", "adalook train", BAD, "one log, everywhere")
    wanted: bytes | None = None
    for number, about in enumerate([Surroundings("as it is"), *every]):
        out = place / f"run-{number}"
        try:
            wrong = _verdict(about, _run(about, [*TRAIN, str(out)]))
        except subprocess.TimeoutExpired:
            wrong = "hang", about.name
        if wrong is not None:
            row.add(*wrong)
            continue
        log = (out / "log.jsonl").read_bytes()
        wanted = log if wanted is None else wanted
        row.add("the same answer" if log == wanted else "another answer", about.name)
    return row
