"""Mistakes that people make, each with the words of the answer that tell them what to do instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp

import adalook as al
from adalook.cli.main import main

R = np.zeros((3, 2))
NEXT = np.zeros((3, 2), int)
UNIFORM = np.full((3, 2, 3), 1 / 3)
MAZE = al.zoo.maze(size=12)
NAMED = {"up": {"go": [(1.0, "down", 1.0)]}, "down": {"go": [(1.0, "up", 0.0)]}}
EPISODE = al.MDP([[1.0, 0.0], [0.0, 0.0]], [[0, 1], [1, 1]], 1.0)


class Continuous(gym.Env):
    """An environment whose actions are numbers."""

    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, False, {}


class Discrete(Continuous):
    """The same with two actions."""

    action_space = gym.spaces.Discrete(2)


class OldStyle(Discrete):
    """Resets as Gym did before 0.26."""

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32)


class WrongShape(Discrete):
    """Observes something else than it says."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}


def changed(array: Any, where: Any, value: Any) -> Any:
    array = np.array(array)
    array[where] = value
    return array


Mistake = tuple[Callable[[], object], str]
"""What is done, and a pattern of what the answer must say."""

MODELS: dict[str, Mistake] = {
    "rows that do not sum to one": (lambda: al.MDP(R, UNIFORM * 1.1, 0.9), "state 0, action 0.*[Dd]ivide the row"),
    "a row of zeros": (lambda: al.MDP(R, changed(UNIFORM, (1, 1), 0.0), 0.9), "state 1, action 1.*mask=.*sink"),
    "a negative probability": (
        lambda: al.MDP(R, changed(UNIFORM, (2, 0, 1), -0.3), 0.9),
        "state 2, action 0.*negative",
    ),
    "an infinite reward to forbid": (lambda: al.MDP(changed(R, (0, 1), -np.inf), NEXT, 0.9), "pass mask="),
    "a terminal state without actions": (lambda: al.MDP(R, NEXT, 0.9, mask=changed(R == 0, 1, False)), "stays there"),
    "a mask of ones": (lambda: al.MDP(R, NEXT, 0.9, mask=np.ones((3, 2), int)), "astype\\(bool\\)"),
    "next states as floats": (lambda: al.MDP(R, NEXT.astype(float), 0.9), "astype\\(int\\)"),
    "states that count from one": (lambda: al.MDP(R, NEXT + 3, 0.9), "0 to 2"),
    "rewards of states only": (lambda: al.MDP(np.zeros(3), NEXT, 0.9), "repeat the column"),
    "rows stacked densely": (lambda: al.MDP(R, UNIFORM.reshape(6, 3), 0.9), "csr_array.*reshape"),
    "sparse and of another shape": (lambda: al.MDP(R, sp.csr_array((3, 3)), 0.9), "row s·A \\+ a"),
    "a discount in percent": (lambda: al.MDP(R, NEXT, 99), "0 <= discount <= 1"),
    "a discount as text": (lambda: al.MDP(R, NEXT, "0.9"), "discount is not a number"),
    "a dictionary as transitions": (lambda: al.MDP(R, NAMED, 0.9), "from_table"),
    "a misspelt state": (lambda: al.MDP.from_table({"a": {"x": [(1.0, "aa", 0)]}}, 0.9), "Did you mean 'a'|dd 'aa'"),
    "a state that is nowhere": (lambda: al.MDP.from_table({"a": {"x": [(1.0, "zzz", 0)]}}, 0.9), "'zzz': {}"),
    "an outcome with too little": (lambda: al.MDP.from_table({"a": {"x": [(1.0, "a")]}}, 0.9), "next state, reward"),
    "an outcome that is none": (lambda: al.MDP.from_table({"a": {"x": "a"}}, 0.9), "list of outcomes"),
    "too few names": (lambda: al.MDP(R, NEXT, 0.9, state_names=["a", "b"]), "3 names"),
    "a name twice": (lambda: al.MDP(R, NEXT, 0.9, state_names=["a", "b", "a"]), "'a' more than once"),
    "an environment without a table": (lambda: al.MDP.from_gymnasium(gym.make("CartPole-v1")), "from_function"),
    "a model that is a file name": (lambda: al.solve("maze.npz"), "al.MDP"),
    "a file that is not there": (lambda: al.MDP.load("nowhere.npz"), "nowhere.npz"),
    "a file of an unknown kind": (lambda: al.MDP.load("model.csv"), ".npz or .umb"),
    "no discount for .umb": (lambda: al.MDP.load("model.umb"), "discount=0.99"),
    "saving as something else": (lambda: MAZE.save("maze.pkl"), ".npz or .umb"),
    "changing a model": (lambda: setattr(MAZE, "discount", 0.5), "make a new one"),
}
SOLVES: dict[str, Mistake] = {
    "a method's name": (lambda: al.solve(MAZE, "hpi"), "al.HPI\\(3\\)"),
    "a method's class": (lambda: al.solve(MAZE, al.HPI), "al.HPI\\(3\\)"),
    "a negative tolerance": (lambda: al.solve(MAZE, tolerance=-1), "tolerance.*>= 0"),
    "a depth of zero": (lambda: al.HPI(0), "depth"),
    "a policy too short": (lambda: al.solve(MAZE, initial_policy=[0]), f"ints \\({MAZE.num_states},\\)"),
    "an action that is none": (lambda: al.solve(MAZE, initial_policy=np.full(MAZE.num_states, 9)), "one of \\[0"),
    "values for a policy": (lambda: al.evaluate(MAZE, np.zeros(MAZE.num_states)), "ints"),
    "a policy that sums to two": (lambda: al.evaluate(MAZE, np.ones((MAZE.num_states, 4)) / 2), "sum to one"),
    "a policy of a wrong shape": (lambda: al.evaluate(MAZE, np.ones((4, MAZE.num_states)) / 4), "floats \\("),
    "initial values too short": (lambda: al.solve(MAZE, initial_values=[1.0]), "initial_values"),
    "no discount and no end": (lambda: al.solve(EPISODE), "horizon=.*discount below 1"),
    "a horizon with a method": (lambda: al.solve(MAZE, al.HPI(2), horizon=3), "backward induction"),
    "a horizon of zero": (lambda: al.solve(MAZE, horizon=0), "horizon.*>= 1"),
    "terminal values without a horizon": (lambda: al.solve(MAZE, terminal_values=[0.0]), "horizon=T"),
    "a start that is no state": (lambda: al.MDP.from_table(NAMED, 0.9).simulate([0, 0], 3, start="dwn"), "'down'"),
    "a misspelt action": (lambda: al.evaluate(al.MDP.from_table(NAMED, 0.9), ["g", "go"]), "expected go"),
    "a policy that ends early": (lambda: MAZE.simulate(np.zeros((2, MAZE.num_states), int), 5), "at least 5 rows"),
    "a prior for the wrong model": (lambda: al.solve(MAZE, al.TLPI(0.9, [0.0])), "prior"),
    "a solution from nowhere": (lambda: al.Solution.load("nowhere"), "solution.save"),
    "a name that adalook does not have": (lambda: al.Solver, "it has .*solve"),
}
AGENTS: dict[str, Mistake] = {
    "a misspelt setting": (lambda: al.QLDQN("CartPole-v1", lerning_rate=1e-3), "Did you mean 'learning_rate'"),
    "a setting by another library's name": (lambda: al.QLDQN("CartPole-v1", gamma=0.9), "called 'discount'"),
    "a setting that is out of range": (lambda: al.DQN("CartPole-v1", discount=1.5), "discount.*\\(0, 1\\]"),
    "a setting as text": (lambda: al.DQN("CartPole-v1", learning_rate="1e-3"), "learning_rate.*> 0"),
    "a dictionary as config": (lambda: al.DQN("CartPole-v1", {"learning_rate": 1}), "learning_rate=1e-3"),
    "MinAtar's config for Atari": (lambda: al.DQN("ALE/Breakout-v5", al.Config(learning_rate=1e-4)), "Config.for_env"),
    "a class instead of an environment": (lambda: al.DQN(Discrete), "make one: Discrete\\(\\)"),
    "continuous actions": (lambda: al.DQN(Continuous()), "[Dd]iscrete"),
    "learning without an end": (lambda: al.DQN("CartPole-v1").learn(), "steps= or seconds="),
    "a callback that is none": (lambda: al.DQN("CartPole-v1").learn(steps=8, callbacks=[3]), "function of a Round"),
    "an observation of a wrong shape": (lambda: al.DQN("CartPole-v1").predict(np.zeros(3)), "\\(4,\\)"),
    "a run from nowhere": (lambda: al.DQN.load("nowhere"), "nowhere"),
    "a config from nowhere": (lambda: al.Config.load("nowhere.toml"), "nowhere.toml"),
    "a number as a model": (lambda: al.Lookahead(3, "CartPole-v1"), "Stable-Baselines3 model, a torch module"),
    "a shape that there is not": (
        lambda: al.Lookahead(lambda rows: rows[:, :2], "CartPole-v1", shape="mcts"),
        "shape.*rollouts.*tree",
    ),
    "rolling out what has no policy": (
        lambda: al.Lookahead(lambda rows: rows[:, 0], "CartPole-v1", shape="rollouts"),
        'shape="tree"',
    ),
    "old-style reset": (lambda: al.make_simulator(OldStyle()), "reset"),
    "an observation that is not as declared": (lambda: al.check_simulator(al.make_simulator(WrongShape())), "observ"),
}
COMMANDS: dict[str, tuple[str, str]] = {
    "a misspelt command": ("sovle zoo:maze", "Did you mean 'solve'"),
    "a misspelt flag": ("train CartPole-v1 --lerning-rate 1 --out x --steps 5", "--learning-rate"),
    "an agent that there is not": ("train CartPole-v1 --agent ppo --out x --steps 5", "--agent.*dqn.*got 'ppo'"),
    "text for a number": ("train CartPole-v1 --learning-rate abc --out x --steps 5", "a number, got 'abc'"),
    "a fraction for a whole number": (
        "train CartPole-v1 --num-envs 1.5 --out x --steps 5",
        "a whole number, got '1.5'",
    ),
    "no directory": ("train CartPole-v1 --steps 5", "--out RUN"),
    "no end": ("train CartPole-v1 --out x", "--steps or --seconds"),
    "no environment": ("train --out x --steps 5", "MinAtar/Breakout-v1"),
    "an unknown model of the zoo": ("solve zoo:mazze", "maze"),
    "an unknown parameter": ("solve zoo:maze?sise=9", "size"),
    "an unknown method": ("solve zoo:maze --method hip:3", "hpi:3"),
    "an unknown game": ("train ALE/Brakeout-v5 --out x --steps 5", "ALE/Breakout-v5"),
    "an unknown environment": ("solve gym:FrozenLke-v1", "FrozenLake"),
    "a report without a place": ("solve zoo:chain --report", "--out DIR"),
    "a film": ("evaluate nowhere --gif x.mp4", "ends in .gif"),
    "a run from nowhere": ("evaluate nowhere", "nowhere"),
    "a resumed run from nowhere": ("train --resume nowhere --steps 5", "nowhere"),
    "several seeds of one run": ("train --resume nowhere --seeds 2 --steps 5", "one by one"),
    "values from nowhere": ("search CartPole-v1 --values nowhere", "nowhere"),
    "a config file from nowhere": ("train CartPole-v1 --config no.toml --out x --steps 5", "no.toml"),
}


@pytest.mark.parametrize("case", MODELS | SOLVES | AGENTS)
def test_the_answer_says_what_to_do(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, pattern = (MODELS | SOLVES | AGENTS)[case]
    monkeypatch.chdir(tmp_path)
    with pytest.raises((al.AdalookError, AttributeError)) as caught:
        make()
    assert re.search(pattern, str(caught.value), re.IGNORECASE), caught.value


@pytest.mark.parametrize("case", COMMANDS)
def test_the_command_line_says_what_to_do(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, pattern = COMMANDS[case]
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    answer = capsys.readouterr().err
    assert answer.startswith("adalook: error: ")
    assert answer.count("\n") == 1, answer
    assert re.search(pattern, answer), answer
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_there_are_many() -> None:
    assert len(MODELS | SOLVES | AGENTS) + len(COMMANDS) >= 60
