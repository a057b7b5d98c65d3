"""The command line as a whole: help, complaints in one line on stderr, exit codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import adalook as al
from adalook.cli import main as cli
from adalook.cli.main import COMMANDS, main

BAD = {
    "no command": ([], "solve, search"),
    "unknown command": (["solv", "zoo:maze"], "solv"),
    "no source": (["solve"], "SOURCE"),
    "second source": (["solve", "zoo:maze", "zoo:chain"], "zoo:chain"),
    "no such file": (["solve", "nothing.npz"], "nothing.npz"),
    "empty source": (["solve", ""], "zoo:NAME"),
    "unknown scheme": (["solve", "ftp:maze"], "ftp:maze"),
    "no model file": (["solve", __file__], ".npz"),
    "directory": (["solve", "."], ".npz"),
    "unknown animal": (["solve", "zoo:lake"], "garnet, gridworld, inventory, layered, maze"),
    "unknown parameter": (["solve", "zoo:maze?sise=3"], "size, seed, discount"),
    "no whole number": (["solve", "zoo:maze?size=3.5"], "3.5"),
    "value out of range": (["solve", "zoo:maze?size=3"], ">= 5"),
    "no value": (["solve", "zoo:maze?size"], "name=value"),
    "value twice": (["solve", "zoo:maze?size=9&size=9"], "more than once"),
    "missing parameters": (["solve", "zoo:garnet?num_states=9"], "num_actions, branching"),
    "absurd size": (["solve", "zoo:maze?size=1000000000"], "does not fit into memory"),
    "discount of one": (["solve", "zoo:maze", "--discount", "1"], "horizon="),
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


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_line_for_every_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert all(line.count("Example:") <= 1 for line in capsys.readouterr().out.splitlines())


def test_help_does_not_break_lines_where_the_source_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--help"]) == 0
    assert "any other Atari game will do." in capsys.readouterr().out


def test_help_does_not_wait_for_the_compiler() -> None:
    code = (
        "import sys; from adalook.cli.main import main; main(['--help']); "
        "heavy = {'numpy', 'numba', 'scipy', 'matplotlib', 'rich', 'gymnasium'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_python_m_adalook_works() -> None:
    run = subprocess.run([sys.executable, "-m", "adalook", "solve"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "adalook: error: adalook solve needs SOURCE. See adalook solve --help.\n"


def test_an_unknown_command_gets_the_list_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["foo"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.endswith(f"expected {', '.join(COMMANDS)}. See adalook --help.\n")
