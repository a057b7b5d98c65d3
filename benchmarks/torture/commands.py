"""Bad command lines: words that no flag takes, files that are none, names that nobody knows."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from adalook.cli.main import main
from benchmarks.torture.outcome import FOREIGN, HANG, MEMORY, Row, Scale, attempt

LONG = "9" * 400
NO_NUMBER = ("x", "nan", "-inf", "-1", "", "0x10", " ", "1;2", "0.0.1", "None", "True")
NO_COUNT = ("x", "nan", "1.5", "-1", "", "1e3", "None", "0x10")
FLAGS: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {
    ("solve", "zoo:chain"): {
        "--discount": (*NO_NUMBER, "2", "1.0000001", LONG),
        "--tolerance": NO_NUMBER,
        "--max-seconds": NO_NUMBER,
        "--max-iterations": NO_COUNT,
        "--method": ("", "x", "hpi:", "hpi:x", "hpi:0", "hpi:1:2", "qlpi:x", "qlpi:2=x", "tlpi:2", "mpi:0", "wlpi:0"),
        "--prior": ("", "x", "few:x", "few:-1", "aggregation:0", f"aggregation:{LONG}"),
        "--csv": ("/dev/null/x", "directory"),
        "--out": ("/dev/null/x", "/proc/x"),
        "--checkpoint": ("directory", "random.npz", "object.json", "pipe.npz", "zero.npz"),
        "--nothing": ("1",),
    },
    ("search", "zoo:maze?size=8"): {
        "--depth": (*NO_COUNT, "0"),
        "--rule": ("", "x", "gap:x", "gap:-1", "fixed:0", "fixed:x"),
        "--seed": ("x", "-1", "1.5"),
        "--states": ("0", "-1", "x"),
        "--every": ("0", "-1", "x"),
        "--samples": ("0", "-1", "x"),
        "--width": ("0", "-1", "x"),
        "--workers": ("-1", "x", LONG, "100000"),
        "--max-nodes": ("0", "-1", "x"),
        "--max-seconds": ("0", "-1", "x", "nan"),
        "--discount": ("0", "-1", "2", "x", "nan"),
        "--out": ("/dev/null/x", "/proc/x"),
    },
    ("train", "zoo:chain?n=5", "--steps", "8", "--out", "run"): {
        "--steps": ("-1", "x", "1.5", "nan"),
        "--seconds": ("-1", "x", "nan"),
        "--seed": ("-1", "x", "1.5"),
        "--agent": ("x", ""),
        "--depth": ("-1", "x", "1.5"),
        "--config": ("nowhere", "directory", "broken.json", "random.npz", "pipe.npz", "zero.npz"),
        "--learning-rate": ("0", "-1", "nan", "x", "inf"),
        "--hidden-units": ("0", "99999999999", "x"),
        "--buffer-transitions": ("0", "-1", "99999999999999"),
        "--batch-transitions": ("0",),
        "--num-envs": ("0", "x"),
        "--network": ("x", ""),
        "--device": ("x", "cuda:99", "mps"),
        "--threads": ("0", "-1"),
        "--optimizer": ("x",),
        "--compression": ("x",),
        "--double": ("x", "maybe"),
        "--depth-shares": ("x", "nan"),
        "--prior": ("", "directory"),
        "--discount": ("0", "1.1", "nan"),
        "--actors": ("-1", LONG),
        "--epsilon-start": ("2", "-1", "nan"),
        "--checkpoint-period-seconds": ("0", "-1", "nan"),
        "--n-steps": ("0", LONG),
        "--out": ("/dev/null/x", "/proc/x"),
        "--resume": ("nowhere", "directory"),
    },
    ("reproduce", "minatar", "--out", "results"): {
        "--games": ("x",),
        "--agents": ("x",),
        "--seconds": ("0", "-1", "nan"),
        "--seeds": ("0", "-1", "x"),
    },
    ("reproduce", "chain"): {"--out": ("/dev/null/x",), "--engine": ("x",), "--workers": ("0", "-1", "x", "99999")},
}
"""Words that a flag must refuse, by the command they follow."""
NAMES = (
    *("", "zoo:", "zoo:maze?size", "zoo:maze?nope=1", "zoo:maze?size=8&seed=-1", "zoo:maze?size=1e2"),
    *("zoo:maze?discount=2", f"zoo:maze?size={LONG}", "zoo:chain?n=0", "zoo:garnet", "zoo:np", "zoo:MDP", "zoo:../x"),
    *("nope", "nope.npz", "directory", "empty.npz", "empty.umb", "random.npz", "random.umb", "pipe.npz", "zero.npz"),
    *("loop.npz", "object.json", "/", "..", "os:system", "json:loads?s=1", "adalook:nope", "nope:x"),
    *("FrozenLake-v1?nope=1", "CartPole-v1", "ALE/Nope-v5", "MinAtar/Nope-v1", "x" * 5000, "a\nb", "\udcff"),
    *("file:///etc/passwd", "FrozenLake-v1?map_name=9x9"),
)
"""What is no model."""
OTHERS = (
    *([], ["--nothing"], ["nothing"], ["solve"], ["solve", "zoo:chain", "zoo:chain"], ["solve", "zoo:chain", "--out"]),
    *(["reproduce"], ["reproduce", "x"], ["demo", "--learn-seconds", "x", "--out", "demo"]),
    *(["demo", "--out", "/dev/null/x"], ["train"], ["train", "--steps", "8"]),
)
PLACES = ("nowhere", "directory", "a_run", "an_agent", "a_solution", "pipe.npz", "zero.npz")
"""What is neither a run nor an agent nor results."""


def commands() -> list[list[str]]:
    """Return every command line that must be refused."""
    found = [
        [*command, flag, word] for command, flags in FLAGS.items() for flag, words in flags.items() for word in words
    ]
    found += [["solve", name] for name in NAMES]
    found += [[command, name] for name in PLACES for command in ("evaluate", "report")]
    found += [["export", name, "exported"] for name in PLACES]
    found += [["train", "--resume", name, "--steps", "8"] for name in PLACES]
    return found + [list(words) for words in OTHERS]


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """Work in a folder of broken things."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            for folder, file in (("a_run", "config.json"), ("an_agent", "agent.json"), ("a_solution", "solution.json")):
                Path(folder).mkdir()
                Path(folder, file).write_text("{}")
            Path("directory").mkdir()
            Path("object.json").write_text("{}")
            Path("broken.json").write_text("[1")
            for kind in ("npz", "umb"):
                Path(f"empty.{kind}").touch()
                Path(f"random.{kind}").write_bytes(bytes(range(256)))
            os.mkfifo("pipe.npz")
            Path("zero.npz").symlink_to("/dev/zero")
            Path("loop.npz").symlink_to("loop.npz")
            yield
        finally:
            os.chdir(before)


def rows(scale: Scale) -> list[Row]:
    """Run the command line in this process: exit code 2 and one line on standard error, nothing else."""
    bad = frozenset({"accepted", "several lines", FOREIGN, HANG, MEMORY})
    row = Row("bad input", "command line, in one process", bad)
    every = commands()
    step = 1 if scale.factor >= 0.02 else max(1, len(every) // 24)
    with _folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for words in every[::step]:
            out, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                outcome, what = attempt(lambda words=words: _code(words), lambda code: code == 2)
            lines = errors.getvalue().strip().splitlines()
            if outcome == "equal":
                outcome = "refused" if len(lines) == 1 else "several lines"
            elif outcome == "different":
                outcome = "accepted"
            shown = [word[:60] for word in words]
            row.add(outcome, f"{shown}: {what} {errors.getvalue()[-200:]}")
    return [row]


def _code(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as end:
        return end.code
