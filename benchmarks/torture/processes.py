"""Company: threads, forks, signals, full disks, readers beside writers, a cache of compiled code that many write."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import adalook as al
from adalook.errors import AdalookError, FileError
from adalook.learning.runs.directory import RunDirectory, load_newest
from adalook.planning.solution_files import save_solution
from adalook.storage.lock import DirectoryLock
from adalook.storage.serializer import Segment
from benchmarks.results import ROOT
from benchmarks.torture.outcome import DIFFERENT, EQUAL, FOREIGN, HANG, REFUSED, Row, Scale

BAD = frozenset({DIFFERENT, FOREIGN, HANG, "lost", "spoilt", "ended badly", "several warnings"})
THREADS, FORKS, SIGNALS, FULL, READERS, CACHES, STARTS = 400, 100, 300, 300, 2_000, 30, 20
"""In the full torture."""
DEADLINE_SECONDS = 300.0


def _child(work: Callable[[], object]) -> int:
    """Fork a child that does some work and ends with 0, or with 1 if it raised; returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    with contextlib.suppress(BaseException):
        work()
        code = 0
    os._exit(code)


def _ended(pid: int) -> int | None:
    """Return how a child ended, as `waitpid` says; None if it had to be killed."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _models() -> list[al.MDP]:
    return [
        al.zoo.maze(size=8, seed=1),
        al.zoo.garnet(120, 3, 5, seed=2, discount=0.99),
        al.zoo.chain(30),
        al.zoo.gridworld(5, 5, slip=0.2),
    ]


def _answer(sol: al.Solution) -> bytes:
    return sol.values.tobytes() + sol.policy.tobytes() + repr(sol.policy_loss).encode()


def _threads(scale: Scale) -> Row:
    row = Row("company", "solves in eight threads at once", BAD, "the same bits as alone")
    models = _models()
    wanted = [_answer(al.solve(mdp)) for mdp in models]
    count = scale.count(THREADS, least=16)

    def work(number: int) -> None:
        for turn in range(number, count, 8):
            try:
                found = _answer(al.solve(models[turn % len(models)]))
                row.add(EQUAL if found == wanted[turn % len(models)] else DIFFERENT, f"model {turn % len(models)}")
            except Exception as error:
                row.add(FOREIGN, repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        if thread.is_alive():
            row.add(HANG)
    return row


def _forks(scale: Scale) -> Row:
    row = Row("company", "solves in processes forked after others", BAD, "the same bits as the parent's")
    models = _models()
    wanted = [_answer(al.solve(mdp)) for mdp in models]

    def work(number: int) -> None:
        assert _answer(al.solve(models[number])) == wanted[number]

    for turn in range(scale.count(FORKS, least=4)):
        number = turn % len(models)
        status = _ended(_child(lambda number=number: work(number)))
        row.add(HANG if status is None else EQUAL if status == 0 else DIFFERENT, f"model {number}")
    return row


def _signals(scale: Scale, rng: np.random.Generator) -> Row:
    """Send SIGINT, SIGTERM and SIGHUP to a child that solves again and again; none may break an answer."""
    row = Row(
        "company",
        "signals at random moments of a solve",
        BAD,
        "the best policy so far with its certificate, or the signal's own end",
    )
    mdp = al.zoo.garnet(400, 4, 6, seed=3, discount=0.9999)
    optimal = al.solve(mdp, tolerance=1e-6)

    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):  # a process started by nohup ignores them
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                sol = al.solve(mdp, al.ValueIteration(), max_iterations=20_000)
                assert (sol.lower <= optimal.upper + 1e-9).all()
                assert (sol.upper >= optimal.lower - 1e-9).all()
                assert sol.certified or not sol.converged
                if sol.status.value == "interrupted":
                    return

    for _ in range(scale.count(SIGNALS, least=4)):
        number = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP][int(rng.integers(3))]
        pid = _child(work)
        time.sleep(float(rng.uniform(0.0, 0.5)))
        os.kill(pid, number)
        status = _ended(pid)
        by_signal = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
        fine = status == 0 or by_signal
        row.add(
            HANG if status is None else ("ended by the signal" if by_signal else "answered") if fine else "ended badly",
            f"{number.name}: {status}",
        )
    return row


@contextlib.contextmanager
def _small_disk(kilobytes: int) -> Iterator[Path | None]:
    """Mount a file system in memory of some kilobytes; None where that is not allowed."""
    place = Path(tempfile.mkdtemp())
    options = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)]
    mounted = shutil.which("mount") and subprocess.run(options, capture_output=True, check=False).returncode == 0
    try:
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
        place.rmdir()


def _full_disks(scale: Scale, rng: np.random.Generator) -> Row:
    """Save models, solutions and runs, again and again, until a small disk is full: what was there before stays."""
    row = Row("company", "saves to a full disk", BAD, "refused, and what was saved before is still there")
    small, large = al.zoo.chain(5), al.zoo.garnet(300, 3, 5, seed=1)
    solution = al.solve(small)
    for _ in range(scale.count(FULL // 3, least=1)):
        with _small_disk(int(rng.integers(64, 300))) as place:
            if place is None:
                return row
            saves: dict[str, Callable[[], object]] = {
                "model": lambda place=place: large.save(place / "model.npz"),
                "solution": lambda place=place: save_solution(solution, small, place / "solution", with_trace=True),
                "run": lambda place=place: _save_run(place / "run", rng),
            }
            with contextlib.suppress(OSError):
                small.save(place / "model.npz")
                save_solution(solution, small, place / "solution", with_trace=True)
                _save_run(place / "run", rng)
                (place / "filler").write_bytes(bytes(int(rng.integers(1, 40)) * 4096))
            with contextlib.suppress(OSError), open(place / "filler", "ab") as filler:
                while rng.random() < 0.97:
                    filler.write(bytes(4096))
                    filler.flush()
            before = _readable(place)
            for name, save in saves.items():
                try:
                    save()
                    outcome, what = "saved", ""
                except FileError as error:
                    outcome, what = REFUSED, str(error)
                except Exception as error:
                    outcome, what = FOREIGN, repr(error)
                if not before <= _readable(place):
                    outcome, what = "lost", f"{before} before, {_readable(place)} after"
                row.add(outcome, f"{name}: {what}")
    return row


def _save_run(place: Path, rng: np.random.Generator) -> None:
    with RunDirectory(place) as run:
        found = load_newest(place)
        step = 1 + (0 if found is None else found.step)
        run.save(step, {"agent": np.arange(200), "full": Segment(np.frombuffer(rng.bytes(8_000), np.uint8))})


def _readable(place: Path) -> set[str]:
    """Return which of the saved things can be read."""
    readers: dict[str, Callable[[], object]] = {
        "model": lambda: al.MDP.load(place / "model.npz"),
        "solution": lambda: al.Solution.load(place / "solution"),
        "run": lambda: load_newest(place / "run"),
    }
    found = set()
    for name, read in readers.items():
        with contextlib.suppress(AdalookError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if read() is not None:
                found.add(name)
    return found


def _readers(scale: Scale) -> Row:
    """Read a run while another process saves it: always whole, and never older than before."""
    row = Row("company", "a run read while it is written", BAD, "whole, never older than before; a second writer waits")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "run"

        def write() -> None:
            with RunDirectory(place) as run:
                for step in range(1, 1_000_000):
                    full = [Segment(np.full(500, number)) for number in range(step, step + 3)]
                    run.save(step, {"agent": np.full(100, step), "full": full})

        pid = _child(write)
        try:
            deadline, newest = time.monotonic() + DEADLINE_SECONDS, 0
            while not list(place.glob("checkpoints/[!.]*/manifest.json")) and time.monotonic() < deadline:
                time.sleep(0.01)
            for turn in range(scale.count(READERS, least=20)):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        found = load_newest(place)
                    assert found is not None
                    whole = bool((found.state["agent"] == found.step).all())
                    row.add(EQUAL if whole and found.step >= newest else "lost", f"{found.step} after {newest}")
                    newest = found.step
                except Exception as error:
                    row.add(FOREIGN, repr(error))
                if turn % 50 == 0:
                    try:
                        DirectoryLock(place).release()
                        row.add("spoilt", "two writers at once")
                    except FileError:
                        row.add(REFUSED)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return row


KERNEL = """
    import numpy as np
    from adalook._jit import compiled

    @compiled
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result
"""
USE = (
    "import kernel, numpy as np; assert kernel.total(np.arange(5.0)) == 10.0; assert kernel.total(np.arange(5)) == 10.0"
)


def _caches(scale: Scale, rng: np.random.Generator) -> Row:
    """Compile with a cache that others write, and that is cut off at random moments."""
    row = Row(
        "company",
        "the cache of compiled code: several at once, killed, damaged",
        BAD,
        "the same answer, with one warning at most",
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "kernel.py").write_text(textwrap.dedent(KERNEL))
        path = os.pathsep.join([str(place), str(ROOT / "src")])
        environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(place / "cache")}

        def start() -> subprocess.Popen[str]:
            return subprocess.Popen([sys.executable, "-c", USE], env=environment, stderr=subprocess.PIPE, text=True)

        def finish(process: subprocess.Popen[str], how: str) -> None:
            try:
                errors = process.communicate(timeout=DEADLINE_SECONDS)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                row.add(HANG, how)
                return
            if process.returncode:
                row.add("ended badly", f"{how}: {errors[-300:]}")
            else:
                row.add("several warnings" if errors.count("Warning") > 1 else EQUAL, f"{how}: {errors[-300:]}")

        for turn in range(scale.count(CACHES, least=2)):
            shutil.rmtree(place / "cache", ignore_errors=True)
            if turn % 2:
                for process in [start() for _ in range(3)]:
                    finish(process, "three at once")
            else:
                process = start()
                deadline = time.monotonic() + DEADLINE_SECONDS
                while not list((place / "cache").rglob("*.nb*")) and process.poll() is None:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.001)
                time.sleep(float(rng.uniform(0.0, 0.05)))
                process.kill()
                process.communicate()
                finish(start(), "after a kill")
            cached = sorted((place / "cache").rglob("*.nb*"))
            for victim in cached:
                content = victim.read_bytes()
                kind = int(rng.integers(4))
                if kind == 0:
                    victim.write_bytes(content[: int(rng.integers(len(content) + 1))])
                elif kind == 1 and victim.suffix == ".nbi":
                    victim.write_bytes(rng.bytes(len(content)))
                elif kind == 2:
                    victim.unlink()
            finish(start(), "damaged")
            finish(start(), "healed")
    return row


def rows(scale: Scale) -> Iterator[Row]:
    """Try adalook in company."""
    rng = np.random.default_rng([scale.seed, 7])
    yield _threads(scale)
    if hasattr(os, "fork"):
        yield _forks(scale)
        yield _signals(scale, rng)
        yield _readers(scale)
    yield _full_disks(scale, rng)
    yield _caches(scale, rng)
