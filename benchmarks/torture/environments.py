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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT
from benchmarks.torture.outcome import Row, Scale

BAD = frozenset({"failed", "hang", "traceback", "another answer"})
SOLVE = [sys.executable, "-m", "adalook", "solve", "zoo:maze?size=8&seed=1", "--json"]
NOBODY = 65534
"""The user without rights, as most systems number it."""


@dataclass
class Surroundings:
    """How a command is started, and what it may answer."""

    name: str
    command: list[str] = field(default_factory=lambda: list(SOLVE))
    variables: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    user: int | None = None
    codes: tuple[int, ...] = (0,)
    silent: bool = False
    """Whether nothing can be read from it."""
    bytes_name: bytes | None = None


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
        text("no HOME", without=("HOME",)),
        text("HOME that does not exist", variables={"HOME": "/nowhere"}),
        text("no TERM", without=("TERM",)),
        text("dumb terminal", variables={"TERM": "dumb"}),
        text("C locale", variables={"LC_ALL": "C", "LANG": "C"}),
        text(
            "POSIX locale, no UTF-8 mode", variables={"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        ),
        text("ASCII output", variables={"PYTHONIOENCODING": "ascii"}),
        text("no PATH", without=("PATH",)),
        text("TMPDIR that does not exist", variables={"TMPDIR": "/nowhere"}),
        text("Python -O", command=[sys.executable, "-OO", *SOLVE[1:]]),
        text("warnings are errors", command=[sys.executable, "-W", "error", *SOLVE[1:]]),
        text("another hash seed", variables={"PYTHONHASHSEED": "1"}),
        text("a third hash seed", variables={"PYTHONHASHSEED": "2"}),
        text("one thread of ours", variables={"ADALOOK_THREADS": "1"}),
        text("many threads of ours", variables={"ADALOOK_THREADS": "16"}),
        text("one thread of BLAS", variables={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}),
        text("one core", prepare=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})),
        text("stdin closed", prepare=_close(0)),
        text("stdout closed", prepare=_close(1), silent=True),
        text("stderr closed", prepare=_close(2)),
        text("stdout and stderr closed", prepare=_close(1, 2), silent=True),
        text("everything closed", prepare=_close(0, 1, 2), silent=True),
        text("SIGINT ignored", prepare=_ignore(signal.SIGINT)),
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
    if os.getuid() == 0:
        other = {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
        found += [
            text("another user, package read-only, no HOME", variables=other, without=("HOME",), user=NOBODY),
            text("another user, HOME read-only", variables=other | {"HOME": str(home)}, user=NOBODY),
            text("another user, nowhere to write", variables=other | {"HOME": "/", "TMPDIR": "/proc"}, user=NOBODY),
        ]
    return found


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _answer(text: str) -> Any:
    """Return what must not depend on the environment."""
    about = json.loads(text.strip().splitlines()[-1])
    return {key: about[key] for key in ("status", "iterations", "policy_loss", "value_range", "model", "queries")}


def rows(scale: Scale) -> list[Row]:
    """Solve the same model everywhere: the same answer, or a clear refusal where there is none to give."""
    row = Row("environments", "adalook solve", BAD, "one answer, everywhere")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        package = place / "package"
        shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
        every = surroundings(place, package)
        wanted: Any = None
        for about in every[:: max(1, round(1 / scale.factor))]:
            variables = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])} | about.variables
            environment = {key: value for key, value in (os.environ | variables).items() if key not in about.without}
            command: list[Any] = list(about.command)
            if about.bytes_name is not None:
                command.append(about.bytes_name)
            try:
                done = subprocess.run(
                    command,
                    env=environment,
                    capture_output=True,
                    timeout=400,
                    cwd="/",
                    preexec_fn=about.prepare,
                    user=about.user,
                )
            except subprocess.TimeoutExpired:
                row.add("hang", about.name)
                continue
            except PermissionError:
                row.add("not tried: that user may not run this Python", about.name)
                continue
            errors = done.stderr.decode(errors="replace")
            if "Traceback" in errors:
                row.add("traceback", f"{about.name}: {errors[-300:]}")
            elif done.returncode not in about.codes:
                row.add("failed", f"{about.name}: exit code {done.returncode}, {errors[-300:]}")
            elif about.silent:
                row.add("ended well")
            else:
                answer = _answer(done.stdout.decode(errors="replace"))
                wanted = answer if wanted is None else wanted
                row.add("the same answer" if answer == wanted else "another answer", f"{about.name}: {answer}")
        home = place / "home"
        home.chmod(0o755)
    return [row]
