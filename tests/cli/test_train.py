"""`adalook train` and `adalook evaluate`."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest
from PIL import Image

from adalook._validation import field_help
from adalook.cli.main import main
from adalook.cli.train import ConfigFlags, TrainCommand
from adalook.learning.config import Config
from adalook.learning.runs.callbacks import ProgressCallback
from adalook.learning.runs.options import RunOptions
from adalook.learning.training import Round
from tests.learning.small import BREAKOUT

SMALL = ["--buffer-transitions", "500", "--learning-starts-steps", "50", "--hidden-units", "8", "--no-tensorboard"]


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with the arguments: one line, and exit code 2."""
    capsys.readouterr()  # what was said before
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("adalook: error: ")
    assert error.count("\n") == 1
    return error


def test_train_resume_and_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    assert main(["train", BREAKOUT, "--agent", "dqn", "--depth", "1", "--steps", "80", "--out", run, *SMALL]) == 0
    assert "80 steps" in capsys.readouterr().out
    assert main(["train", "--resume", run, "--steps", "120", "--no-tensorboard"]) == 0
    said = capsys.readouterr().out
    assert "120 steps" in said
    assert "nothing was left to train" not in said
    assert main(["train", "--resume", run, "--steps", "120"]) == 0
    assert "nothing was left to train: --steps and --seconds count from the beginning" in capsys.readouterr().out
    assert main(["evaluate", run, "--episodes", "2", "--json", "--gif", str(tmp_path / "episode.gif")]) == 0
    about = json.loads(capsys.readouterr().out)
    assert len(about["scores"]) == 2
    assert set(about["depths"]) == {"1"}
    assert (tmp_path / "episode.gif").stat().st_size > 0
    assert main(["evaluate", run, "--episodes", "2"]) == 0
    assert "depth 1: 100.0%" in capsys.readouterr().out


def test_settings_are_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    flags = ["--nodes-per-step", "0", "--depth-shares", "0.5", "0.25", "--shared-head", "True", "--discount", "0.9"]
    assert main(["train", BREAKOUT, "--steps", "16", "--seed", "4", "--out", str(run), *SMALL, *flags]) == 0
    described = json.loads((run / "config.json").read_text())
    config = described["config"]
    assert (described["agent"], described["env"], described["seed"]) == ("qldqn", BREAKOUT, 4)
    assert (config["depth_shares"], config["shared_head"], config["discount"]) == ([0.5, 0.25], True, 0.9)
    assert config["batch_transitions"] == 32  # the preset's


def test_help_has_every_setting_with_its_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for default in ("(default: qldqn)", "(default: 0)", "Default: 300.0.", "--tensorboard, --no-tensorboard"):
        assert default in text
    for flag in ("--target-period-steps", "--train-shallow-heads", "--head-balance", "--checkpoint-period-seconds"):
        assert flag in text
    assert "27000 for dqn on Atari" in text


def test_help_comes_in_groups_the_important_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    text = capsys.readouterr().out
    titles = re.findall(r"^\W+ ((?:[a-z, ]+ )?options|positional arguments) \W+$", text, re.MULTILINE)
    assert titles == [
        "positional arguments",
        "options",
        "evaluation, logging and checkpoint options",
        *(f"{name} options" for name in ("learning", "exploration", "lookahead", "environment", "network", "machine")),
    ]
    for important in ("--agent", "--steps", "--seconds", "--out", "--resume", "--seed"):
        assert text.index(f" {important} ") < text.index("learning options")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([BREAKOUT, "--steps", "10"], "needs a directory"),
        ([BREAKOUT, "--out", "RUN"], "needs an end"),
        (["--steps", "10", "--out", "RUN"], "needs an environment"),
        (["MinAtar/Breakotu-v1", "--steps", "10", "--out", "RUN"], "no game"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--num-envs", "0"], "num_envs is wrong"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--num-envs", "many"], "--num-envs"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--depth", "2"], "no fixed depth"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--device", "abacus"], "expected auto, cpu, cuda or cuda:N"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--network", "table"], "discrete observations"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--buffer-transitions", "10000000000"], "does not fit in memory"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--prior", "nowhere"], "is no run"),
        (["--resume", "RUN", "--steps", "10"], "is no run"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--report-period-steps", "0"], "report_period_steps is"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--checkpoint-period-steps", "0"], "checkpoint_period_steps is"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--evaluation-episodes", "-1"], "evaluation_episodes is"),
        (
            [BREAKOUT, "--steps", "-5", "--seconds", "3", "--out", "RUN"],
            "expected a whole number >= 1, got -5",
        ),
        ([BREAKOUT, "--seconds", "nan", "--out", "RUN"], "got nan"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--depth", "0"], "no fixed depth"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--leaf-trust", "0.5"], "leaf_trust has no effect here"),
        ([BREAKOUT, "--steps", "10", "--out", "RUN", "--depth-shares", "0.5"], "expected nodes_per_step=0"),
    ],
)
def test_what_is_wrong_takes_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = [str(tmp_path / "run") if word == "RUN" else word for word in arguments]
    assert words in complaint(["train", *placed], capsys)
    assert not (tmp_path / "run").exists()


def test_a_file_of_some_settings_means_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of all settings, as `Config.save` writes it, may be of another kind of agent."""
    file = tmp_path / "config.toml"
    words = ["train", BREAKOUT, "--agent", "dqn", "--config", str(file), "--steps", "8", "--out", str(tmp_path / "run")]
    file.write_text("leaf_trust = 0.5\n")
    assert "leaf_trust has no effect here" in complaint(words, capsys)
    Config(leaf_trust=0.5, num_envs=2, buffer_transitions=100).save(file)
    assert main([*words, "--no-tensorboard", "--evaluation-episodes", "0"]) == 0


def test_a_resumed_run_keeps_its_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    assert main(["train", BREAKOUT, "--agent", "dqn", "--steps", "8", "--out", run, *SMALL]) == 0
    assert "got discount" in complaint(["train", "--resume", run, "--steps", "16", "--discount", "0.5"], capsys)
    assert "got depth" in complaint(["train", "--resume", run, "--steps", "16", "--depth", "3"], capsys)
    assert "holds a run already" in complaint(["train", BREAKOUT, "--steps", "16", "--out", run], capsys)
    assert "is no run" in complaint(["evaluate", str(tmp_path)], capsys)


def test_a_resumed_run_refuses_another_env_or_agent_even_if_they_are_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    same = [BREAKOUT, "--agent", "dqn", "--depth", "1", "--seed", "5"]
    assert main(["train", *same, "--steps", "8", "--out", run, *SMALL]) == 0
    for given in (["--agent", "qldqn"], ["--depth", "0"], ["--seed", "0"]):
        words = complaint(["train", "--resume", run, "--steps", "16", *given], capsys)
        assert f"got {given[0][2:]}. Leave" in words
    assert "got env" in complaint(["train", "MinAtar/Freeway-v1", "--resume", run, "--steps", "16"], capsys)
    assert main(["train", *same, "--resume", run, "--steps", "16"]) == 0


def test_a_resumed_run_keeps_its_options_until_it_is_told_of_others(tmp_path: Path) -> None:
    flags = ["--report-period-steps", "16", "--evaluation-period-steps", "40", "--evaluation-episodes", "1"]
    for name, stops in (("whole", ["96"]), ("parts", ["56", "96"])):
        run = str(tmp_path / name)
        assert main(["train", BREAKOUT, "--agent", "dqn", "--steps", stops[0], "--out", run, *SMALL, *flags]) == 0
        for stop in stops[1:]:
            assert main(["train", "--resume", run, "--steps", stop]) == 0
    logs = {name: (tmp_path / name / "log.jsonl").read_bytes() for name in ("whole", "parts")}
    assert logs["parts"] == logs["whole"]
    assert not (tmp_path / "parts" / "tensorboard").exists()
    assert main(["train", "--resume", run, "--steps", "104", "--tensorboard", "--report-period-steps", "8"]) == 0
    options = json.loads((tmp_path / "parts" / "options.json").read_text())
    assert (options["tensorboard"], options["report_period_steps"], options["evaluation_period_steps"]) == (True, 8, 40)
    assert (tmp_path / "parts" / "tensorboard").exists()


def test_what_is_wrong_with_an_evaluation_is_said_before_it_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from adalook.learning.runs import run as runs

    def too_late(directory: Path) -> None:
        raise AssertionError("the agent was loaded")

    monkeypatch.setattr(runs, "load_agent", too_late)
    run, gif = str(tmp_path / "run"), tmp_path / "none" / "episode.gif"
    assert "--epsilon is wrong: expected a number in [0, 1]" in complaint(["evaluate", run, "--epsilon", "3"], capsys)
    assert "--epsilon is wrong: expected a number in [0, 1]" in complaint(["evaluate", run, "--epsilon", "-1"], capsys)
    assert f"There is no directory {gif.parent}: make it first" in complaint(
        ["evaluate", run, "--gif", str(gif)], capsys
    )


@pytest.mark.parametrize("kind", [Config, RunOptions])
def test_every_setting_has_a_help(kind: type) -> None:
    help_of = field_help(kind)
    assert set(help_of) == {field.name for field in dataclasses.fields(kind)}
    assert all(len(text) > 10 for text in help_of.values())


def test_every_setting_is_a_flag() -> None:
    flags = [field.name for group in vars(ConfigFlags()).values() for field in dataclasses.fields(group)]
    assert sorted(flags) == sorted(field.name for field in dataclasses.fields(Config))


def test_the_printed_command_resumes_an_interrupted_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "a run"
    report = ProgressCallback.__call__

    def interrupt(self: ProgressCallback, done: Round) -> None:
        report(self, done)
        if done.step == 16:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ProgressCallback, "__call__", interrupt)
    words = ["train", "CartPole-v1", "--agent", "dqn", "--steps", "48", "--evaluation-episodes", "1", "--out", str(run)]
    assert main(words) == 3
    said = capsys.readouterr().out
    at_start, at_end = (line.partition("go on with ")[2] for line in said.splitlines() if "go on with " in line)
    assert at_start == at_end  # who kills the run has seen the command already
    command = shlex.split(at_end)
    assert command[0] == "adalook"
    assert main(command[1:]) == 0
    assert "48 steps in" in capsys.readouterr().out


def test_gifs_and_galleries_show_what_the_environment_renders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "red_room.py").write_text(
        "import gymnasium, numpy as np\n\n\n"
        "class Room(gymnasium.Env):\n"
        "    metadata = {'render_modes': ['rgb_array']}\n"
        "    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    render_mode = None\n\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        self.time = 0\n"
        "        return np.zeros(1, np.float32), {}\n\n"
        "    def step(self, action):\n"
        "        self.time += 1\n"
        "        return np.zeros(1, np.float32), 1.0, self.time == 3, False, {}\n\n"
        "    def render(self):\n"
        "        return np.full((400, 400, 3), (250, 10, 10), np.uint8)\n"
    )
    env = "red_room:Room"
    assert main(["train", env, "--agent", "dqn", "--steps", "16", "--out", "run", *SMALL]) == 0
    pictures = ["--gif", "room.gif", "--gallery", "room.png"]
    assert main(["evaluate", "run", "--env", env, "--episodes", "1", *pictures]) == 0
    with Image.open("room.gif") as gif:
        red, green, blue = gif.convert("RGB").getpixel((gif.size[0] // 2, gif.size[1] // 3))
    assert red > 200 > 60 > max(green, blue)
    with Image.open("room.png") as gallery:
        assert any(red > 200 and green < 60 for _, (red, green, *_) in gallery.convert("RGB").getcolors(2**24))


def test_several_seeds_and_a_config_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Config.for_env("CartPole-v1", agent="qldqn", num_envs=2, hidden_units=8).save(tmp_path / "config.toml")
    words = ["train", "CartPole-v1", "--config", str(tmp_path / "config.toml"), "--hidden-units", "4", "--steps", "16"]
    assert main([*words, "--seeds", "2", "--evaluation-episodes", "1", "--out", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert said.count("evaluation of the agent as it is now") == 2
    for seed in (0, 1):
        about = json.loads((tmp_path / "runs" / f"seed-{seed}" / "config.json").read_text())
        assert about["seed"] == seed
        assert (about["config"]["num_envs"], about["config"]["hidden_units"]) == (2, 4)
    *compare, out = said.splitlines()[-1].removeprefix("compare them: adalook ").split()
    assert main([*compare, out, "--episodes", "0"]) == 0, "the folder of the seeds is enough"
    assert "2 training runs" in (Path(out) / "index.html").read_text()


def test_code_that_a_run_names_is_imported_only_when_it_is_named_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module leaves a file when it is imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toys_of_mine.py").write_text(
        "from pathlib import Path\nimport adalook as al\n\nPath('imported').touch()\n\n"
        "def chain():\n    return al.zoo.chain(n=4)\n"
    )
    name, run = "toys_of_mine:chain", str(tmp_path / "run")
    assert main(["train", name, "--steps", "16", "--out", run, "--no-tensorboard"]) == 0
    for module in [key for key in sys.modules if key.startswith("toys_of_mine")]:
        monkeypatch.delitem(sys.modules, module)
    (tmp_path / "imported").unlink()
    assert main(["report", run, "--out", str(tmp_path / "page")]) == 0
    assert "--env toys_of_mine:chain" in capsys.readouterr().out
    for words in (["evaluate", run], ["export", run, "mine"], ["train", "--resume", run, "--steps", "32"]):
        assert "names code" in complaint(words, capsys)
    assert not (tmp_path / "imported").exists()
    assert main(["report", run, "--out", str(tmp_path / "page"), "--env", name, "--episodes", "1"]) == 0
    assert "no images" not in capsys.readouterr().out
    assert main(["evaluate", run, "--episodes", "1", "--env", name]) == 0
    assert main(["export", run, "mine", "--episodes", "1", "--env", name]) == 0
    assert main(["train", name, "--resume", run, "--steps", "32"]) == 0
    assert (tmp_path / "imported").exists()


def test_the_command_that_resumes_names_code_again() -> None:
    command = TrainCommand(env="mygame:Walk?size=5", steps=100, out="run")
    assert command._resume_command(Path("run 1")) == "adalook train 'mygame:Walk?size=5' --resume 'run 1' --steps 100"
    plain = TrainCommand(env="CartPole-v1", seconds=1.5, out="run")
    assert plain._resume_command(Path("run")) == "adalook train --resume run --seconds 1.5"
