"""Settings by name, config files, callbacks that stop, progress and metrics."""

import pytest

import adalook as al
from adalook.learning.presets import config_for
from adalook.learning.runs.loggers import ProgressLines
from adalook.learning.runs.progress import ProgressSummary

CHAIN = al.zoo.chain(n=4, discount=0.9)


def test_settings_change_the_preset_of_the_env():
    agent = al.QLDQN("CartPole-v1", learning_rate=1e-3)
    assert agent.config == config_for("CartPole-v1").with_settings(learning_rate=1e-3)
    assert al.DQN(CHAIN, depth=1, num_envs=2).config.num_envs == 2
    assert al.QLDQN(CHAIN, prior="train").config.prior == "train"


def test_settings_change_a_config_that_is_given():
    config = al.Config.for_env(CHAIN, hidden_units=7)
    assert al.DQN(CHAIN, config, num_envs=2).config == config.with_settings(num_envs=2)


def test_config_files(tmp_path):
    config = al.Config.for_env("CartPole-v1", learning_rate=3e-4, double=True, depth_shares=(0.5, 0.25), prior='a "b"')
    config.save(tmp_path / "config.toml")
    assert al.Config.load(tmp_path / "config.toml") == config
    (tmp_path / "some.toml").write_text("learning_rate = 1e-5\n")
    assert al.Config.load(tmp_path / "some.toml", "CartPole-v1") == al.Config.for_env("CartPole-v1", learning_rate=1e-5)
    (tmp_path / "wrong.toml").write_text("lerning_rate = 1e-5\n")
    with pytest.raises(al.AdalookError, match="Did you mean 'learning_rate'"):
        al.Config.load(tmp_path / "wrong.toml")
    (tmp_path / "no.toml").write_text("learning_rate: 1e-5\n")
    with pytest.raises(al.AdalookError, match="no TOML"):
        al.Config.load(tmp_path / "no.toml")


def test_a_callback_that_returns_false_ends_training():
    seen = []

    def stop(done):
        seen.append(done.step)
        return done.step < 40

    agent = al.DQN(CHAIN, num_envs=8).learn(steps=1_000, callbacks=[stop, lambda done: None], progress=False)
    assert agent.step == 40
    assert seen == [8, 16, 24, 32, 40]


def test_metrics_go_to_a_function_as_wandb_has_it():
    metrics = {}

    def log(values, step):
        for name, value in values.items():
            metrics.setdefault(name, []).append((step, value))

    al.DQN(CHAIN, learning_starts_steps=100).learn(steps=600, progress=False, log=log)
    assert {"charts/episodic_return", "charts/epsilon", "losses/td_loss", "depth/share_0"} <= set(metrics)
    steps = [step for step, _ in metrics["charts/epsilon"]]
    assert steps == sorted(steps)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys):
    now = [0.0]
    lines = ProgressLines(100.0, float("inf"), period=30.0, clock=lambda: now[0])
    for second in range(0, 100, 10):
        now[0] = float(second)
        lines.progress(ProgressSummary(second, 1.0, "agent", 0.1, 0, None, None, 0, None, None, {1: 3}, {}, None))
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in said] == ["training 30%", "training 60%", "training 90%"]


def test_short_training_says_nothing(capsys):
    al.DQN(CHAIN).learn(steps=16)
    assert capsys.readouterr().err == ""
