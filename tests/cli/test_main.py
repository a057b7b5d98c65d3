"""The command line: answers on stdout, one line of complaint on stderr, exit codes as promised."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import adalook as al
from adalook.cli import main as cli
from adalook.cli.main import main
from adalook.cli.sources import build_method, build_model
from tests.processes import child


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    """Exit code and JSON of `adalook solve … --json`."""
    code = main(["solve", *arguments, "--json"])
    out, err = capsys.readouterr()
    assert not err
    return code, json.loads(out)


def test_solve_prints_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "zoo:maze?size=12"]) == 0
    out, err = capsys.readouterr()
    assert not err
    for words in ("zoo:maze?size=12", "Auto", "converged", "certified", "functional graph", "shared", "root"):
        assert words in out


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, about = answer(capsys, "zoo:maze?size=12&seed=3&discount=0.9")
    assert code == 0
    assert about["model"]["discount"] == 0.9
    assert about["model"]["states"] == al.zoo.maze(size=12, seed=3).num_states
    assert about["status"] == "CONVERGED"
    assert about["policy_loss"] <= 1e-8
    assert about["files"] == []


def test_nothing_is_written_without_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer(capsys, "zoo:maze?size=12")
    assert not list(tmp_path.iterdir())


def test_out_writes_the_solution_and_its_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, about = answer(capsys, "zoo:maze?size=12", "--out", str(tmp_path / "new" / "place"))
    names = ["solution.npz", "solution.json", "solution.png", "solution.svg"]
    assert [Path(path).name for path in about["files"]] == names
    assert all(Path(path).stat().st_size for path in about["files"])


def test_a_model_without_layout_is_saved_without_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, about = answer(capsys, "zoo:forest", "--out", str(tmp_path))
    assert [Path(path).name for path in about["files"]] == ["solution.npz", "solution.json"]


def test_an_answer_that_cannot_be_written_is_still_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["solve", "zoo:chain", "--json", "--out", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "CONVERGED"
    assert "No space left" in err


def test_reaching_a_limit_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, about = answer(capsys, "zoo:maze", "--method", "vi", "--max-iterations", "2")
    assert (code, about["status"], about["passes"]) == (3, "ITERATION_LIMIT", 2)
    code, about = answer(capsys, "zoo:maze", "--method", "vi", "--max-seconds", "0")
    assert (code, about["status"]) == (3, "TIME_LIMIT")


def test_files_are_sources(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "maze.npz")
    al.zoo.maze(size=12).save(path)
    assert answer(capsys, path)[1]["model"]["discount"] == 0.98
    assert answer(capsys, path, "--discount", "0.5")[1]["model"]["discount"] == 0.5


def test_gymnasium_tables_are_sources() -> None:
    pytest.importorskip("gymnasium")
    lake = build_model("gym:FrozenLake-v1?map_name=8x8&is_slippery=false&discount=0.5")
    assert (lake.num_states, lake.discount, lake.deterministic) == (65, 0.5, True)
    assert not build_model("gym:FrozenLake-v1?is_slippery=true").deterministic


def test_gymnasium_that_is_not_installed_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert main(["solve", "gym:FrozenLake-v1"]) == 2
    assert "pip install 'adalook[gym]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("auto", "Auto"),
        ("vi", "VI"),
        ("pi", "PI"),
        ("mpi:20", al.ModifiedPolicyIteration(20).name),
        ("hpi:3", "3-PI"),
        ("HPI:3", "3-PI"),
        ("tlpi:0.94", "TLPI(0.94)"),
        ("tlpi:g^3", "TLPI(0.729)"),
        ("qlpi:2=0.1,4=0.05,8=0.02", "QLPI(2: 0.1, 4: 0.05, 8: 0.02)"),
        ("wlpi", "WLPI"),
        ("wlpi:4", "WLPI(4)"),
    ],
)
def test_methods_by_name(text: str, name: str) -> None:
    assert build_method(text, None, al.zoo.chain(n=9, discount=0.9))[0].name == name


@pytest.mark.parametrize("prior", ["exact", "few:2", "squares:3", None])
def test_priors_by_name(prior: str | None) -> None:
    maze = al.zoo.maze(size=12)
    method, about = build_method("tlpi:g^2", prior, maze)
    assert about is not None
    assert about["kind"] == (prior or "few:3")
    assert about["queries"] > 0
    assert al.solve(maze, method).converged


BAD = {
    "no command": ([], "solve, demo"),
    "unknown command": (["solv", "zoo:maze"], "solv"),
    "no source": (["solve"], "SOURCE"),
    "second source": (["solve", "zoo:maze", "zoo:chain"], "zoo:chain"),
    "no such file": (["solve", "nothing.npz"], "nothing.npz"),
    "empty source": (["solve", ""], "zoo:NAME"),
    "unknown scheme": (["solve", "ftp:maze"], "ftp:maze"),
    "no model file": (["solve", __file__], ".npz"),
    "directory": (["solve", "."], ".npz"),
    "unknown animal": (["solve", "zoo:lake"], "garnet, gridworld, maze"),
    "unknown parameter": (["solve", "zoo:maze?sise=3"], "size, seed, discount"),
    "no whole number": (["solve", "zoo:maze?size=3.5"], "3.5"),
    "value out of range": (["solve", "zoo:maze?size=3"], ">= 5"),
    "no value": (["solve", "zoo:maze?size"], "name=value"),
    "value twice": (["solve", "zoo:maze?size=9&size=9"], "more than once"),
    "missing parameters": (["solve", "zoo:garnet?num_states=9"], "num_actions, branching"),
    "absurd size": (["solve", "zoo:maze?size=1000000000"], "cannot be built"),
    "discount of one": (["solve", "zoo:maze", "--discount", "1"], "0.9999"),
    "discount twice": (["solve", "zoo:maze?discount=0.9", "--discount", "0.8"], "twice"),
    "discount no number": (["solve", "zoo:maze", "--discount", "big"], "big"),
    "unknown environment": (["solve", "gym:Nope-v1"], "Nope"),
    "deprecated environment": (["solve", "gym:FrozenLake-v0"], "FrozenLake-v1"),
    "environment without table": (["solve", "gym:CartPole-v1"], "transition table"),
    "unknown map": (["solve", "gym:FrozenLake-v1?map_name=9x9"], "9x9"),
    "unknown argument": (["solve", "gym:FrozenLake-v1?depth=3"], "depth"),
    "unknown method": (["solve", "zoo:maze", "--method", "magic"], "qlpi:2=0.1"),
    "no method": (["solve", "zoo:maze", "--method"], "--method"),
    "no depth": (["solve", "zoo:maze", "--method", "hpi"], "hpi:3"),
    "depth of zero": (["solve", "zoo:maze", "--method", "hpi:0"], "depth"),
    "setting too many": (["solve", "zoo:maze", "--method", "vi:3"], "vi:3"),
    "kappa of two": (["solve", "zoo:maze", "--method", "tlpi:2"], "kappa"),
    "power of zero": (["solve", "zoo:maze", "--method", "tlpi:g^0"], "power"),
    "budget without share": (["solve", "zoo:maze", "--method", "qlpi:2"], "DEPTH=SHARE"),
    "share above one": (["solve", "zoo:maze", "--method", "qlpi:2=1.5"], "1.5"),
    "depth twice": (["solve", "zoo:maze", "--method", "qlpi:2=0.1,2=0.2"], "more than once"),
    "prior not needed": (["solve", "zoo:maze", "--prior", "exact"], "no prior"),
    "unknown prior": (["solve", "zoo:maze", "--method", "tlpi:g^3", "--prior", "good"], "squares:K"),
    "prior of no iterations": (["solve", "zoo:maze", "--method", "tlpi:g^3", "--prior", "few:0"], ">= 1"),
    "squares off the grid": (["solve", "zoo:chain", "--method", "tlpi:g^3", "--prior", "squares:3"], "grid"),
    "tolerance below zero": (["solve", "zoo:maze", "--tolerance", "-1"], "tolerance"),
    "tolerance no number": (["solve", "zoo:maze", "--tolerance", "fine"], "fine"),
    "no iterations": (["solve", "zoo:maze", "--max-iterations", "0"], "max_iterations"),
    "half an iteration": (["solve", "zoo:maze", "--max-iterations", "1.5"], "--max-iterations"),
    "seconds below zero": (["solve", "zoo:maze", "--max-seconds", "-1"], "max_seconds"),
    "unknown option": (["solve", "zoo:maze", "--tol", "1"], "--tolerance"),
    "option of another command": (["demo", "--json"], "--json"),
    "out is a file": (["solve", "zoo:maze", "--out", __file__], "directory"),
    "demo's out is a file": (["demo", "--out", __file__], "directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_take_one_line(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = BAD[case]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("adalook: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert words in err


def test_umb_files_ask_for_their_discount(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x.umb").write_bytes(b"")
    assert main(["solve", str(tmp_path / "x.umb")]) == 2
    assert "--discount" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["20", "80", "300"])
def test_complaints_do_not_depend_on_the_terminal(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["solve", "zoo:maze", "--max-iterations", "many"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "many" in err
    assert "─" not in err


@pytest.mark.parametrize(
    "frame", [("╭─ Value error ──────╮", "│", "─", "╰────────────────────╯"), (" Value error\n -------", " ", "-", "")]
)
def test_complaints_are_found_in_either_kind_of_box(frame: tuple[str, str, str, str]) -> None:
    top, side, rule, bottom = frame
    rows = [
        "\x1b[1mError\x1b[0m parsing",
        "--out: no.",
        "",
        "More of it.",
        rule * 20,
        "Perhaps you meant:",
        "  --output X",
    ]
    box = "\n".join([top, *(f"{side} {row} {side}" for row in rows), bottom])
    assert cli._first_sentence(box) == "Error parsing --out: no. Perhaps you meant --output"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "Exit codes" in capsys.readouterr().out
    assert main(["solve", "--help"]) == 0
    help_text = capsys.readouterr().out
    assert all(
        f"--{option}" in help_text for option in ("method", "prior", "out", "json", "no-progress", "max-seconds")
    )
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"adalook {al.__version__}\n"


def test_ctrl_c_outside_a_solve_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.DemoCommand, "run", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "adalook: interrupted\n"


def test_demo_compares_and_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert not err
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip().endswith("e-12")}
    assert list(rows) == ["PI", "2-PI", "4-PI", "TLPI", "QLPI", "WLPI"]
    totals = {name: int(row[-3].replace(",", "")) for name, row in rows.items()}
    assert totals["WLPI"] == min(totals.values())
    for name in ("wlpi", "qlpi"):
        assert (tmp_path / "demo" / name / "solution.png").stat().st_size > 10_000
        assert str(tmp_path / "demo" / name / "solution.png") in out


def test_help_does_not_wait_for_the_compiler() -> None:
    code = (
        "import sys; from adalook.cli.main import main; main(['--help']); "
        "heavy = {'numpy', 'numba', 'scipy', 'matplotlib', 'rich', 'gymnasium'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, stdout=subprocess.DEVNULL)


ANNOUNCED = """
import sys
from pathlib import Path
from adalook._interrupts import SignalGuard

listen = SignalGuard.listen

def announce(self):
    listen(self)
    Path(sys.argv[1]).touch()

SignalGuard.listen = announce
from adalook.cli.main import main
sys.exit(main(sys.argv[2:]))
"""
"""The command line, but it touches a file once Ctrl-C is answered: kernels may have to be compiled before that."""


def test_ctrl_c_still_gives_an_answer(tmp_path: Path) -> None:
    slow = ["solve", "zoo:chain?n=20000&discount=0.99999", "--method", "vi", "--tolerance", "1e-12"]
    begun, place = tmp_path / "begun", tmp_path / "solution"
    command = [sys.executable, "-W", "error", "-c", ANNOUNCED, str(begun), *slow, "--json", "--out", str(place)]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert not err
    about = json.loads(out)
    assert (process.returncode, about["status"]) == (3, "INTERRUPTED")
    assert (place / "solution.json").exists()


def test_python_m_adalook_works() -> None:
    run = subprocess.run([sys.executable, "-m", "adalook", "solve"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "adalook: error: Missing from adalook solve: SOURCE. See adalook --help.\n"
