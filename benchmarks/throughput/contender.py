"""A contender as the benchmark sees it: a process that trains when it has its turn, and waits else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.results import ROOT
from benchmarks.throughput.job import Job

CLEANRL = "CleanRL"
CLEANRL_PYTHON = ROOT / ".venv" / "cleanrl" / "bin" / "python"
PATIENCE_SECONDS = 600.0
Record = dict[str, Any]


class Contender:
    """Started at once; whatever happens to it, a record comes back. What failed once fails ever after.

    Args:
        cleanrl_python: that has CleanRL, which cannot live with ours.
    """

    def __init__(self, job: Job, cleanrl_python: Path = CLEANRL_PYTHON) -> None:
        self.job = job
        self._failure: str | None = None
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  (closed with the contender)
        self._process: subprocess.Popen[str] | None = None
        if job.contender == CLEANRL and not cleanrl_python.exists():
            self._failure = "not set up (make .venv/cleanrl/ready)"
            return
        try:
            self._process = subprocess.Popen(
                _command(job, cleanrl_python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                cwd=ROOT,
            )
        except OSError as error:
            self._failure = f"{type(error).__name__}: {error}"
            return
        self._send(json.dumps(job.plain()))

    def ready(self) -> Record:
        """Wait until it learns."""
        return self._answer()

    def turn(self) -> Record:
        """Steps, seconds and processor seconds of a stretch of training."""
        self._send("")
        return self._answer()

    def end(self) -> Record:
        """No more turns: what it has to say at last, {} if nothing."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        last = self._answer()
        if self._process is not None:
            self._process.wait()  # it tidies up after itself
        return {} if "failure" in last else last

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):
                    assert pipe is not None
                    pipe.close()
        self._errors.close()

    def _send(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with suppress(BrokenPipeError, ValueError):  # it has ended, or was told to: the answer says why
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _answer(self) -> Record:
        """The next line that is a record; contenders may print other things."""
        if self._failure is not None or self._process is None or self._process.stdout is None:
            return {"failure": self._failure}
        late = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        late.start()
        try:
            for line in self._process.stdout:
                if line.startswith("{"):
                    record: Record = json.loads(line)
                    return record
        finally:
            late.cancel()
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().splitlines() or [f"it ended without a word ({code})"]
        slow = f"no answer in {PATIENCE_SECONDS:g} s, or killed by others"
        self._failure = slow if code == -signal.SIGKILL else said[-1]
        return {"failure": self._failure}


def _command(job: Job, cleanrl_python: Path) -> list[str]:
    if job.contender == CLEANRL:
        return [str(cleanrl_python), "-W", "ignore", str(Path(__file__).with_name("cleanrl_peer.py"))]
    return [sys.executable, "-m", "benchmarks.throughput.child"]
