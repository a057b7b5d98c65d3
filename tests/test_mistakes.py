"""Mistakes that people make, each with the words of the answer that tell them what to do instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp

import adalook as al
from adalook.cli.main import main
from adalook.search import FixedDepth, Root, search
from adalook.simulators.make import FAMILIES

R = np.zeros((3, 2))
NEXT = np.zeros((3, 2), int)
UNIFORM = np.full((3, 2, 3), 1 / 3)
MAZE = al.zoo.maze(size=12)
NAMED = {"up": {"go": [(1.0, "down", 1.0)]}, "down": {"go": [(1.0, "up", 0.0)]}}
DEPTH_1 = FixedDepth(1)
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


class OldStep(Discrete):
    """Steps as Gym did before 0.26."""

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, {}


class NoSeed(Discrete):
    """Forgets the arguments of reset."""

    def reset(self):
        return np.zeros(3, np.float32), {}


class NoSpaces(gym.Env):
    """Forgets to say what it observes and what can be done."""


class Draws(Discrete):
    """Draws from a generator that belongs to everybody."""

    def step(self, action):
        return np.full(3, np.random.rand(), np.float32), 0.0, False, False, {}  # noqa: NPY002 - the mistake


class Rendered(Discrete):
    """Renders something that is no picture."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def render(self):
        return "a picture"


class Undrawn(Rendered):
    """Has made nothing to draw on."""

    def render(self):
        return self.canvas.copy()


class Rewards(Discrete):
    """Pays what it is told to."""

    def __init__(self, reward, observation=0.0):
        self.reward, self.observation = reward, observation

    def step(self, action):
        return np.full(3, self.observation, np.float32), self.reward, False, False, {}


def q_values(rows):
    return rows[:, :2]


def cart_pole() -> al.Simulator:
    sim = al.make_simulator("CartPole-v1")
    sim.reset(seed=0)
    return sim


def searched(value_fn: Any = lambda rows, depth: np.zeros(len(rows)), rule: Any = DEPTH_1) -> object:
    sim = cart_pole()
    return search(sim, Root.of(sim), value_fn, rule, discount=0.9)


def registered(factory: Any) -> al.Simulator:
    al.register_simulator("Mistaken/", factory, replace=True)
    try:
        return al.make_simulator("Mistaken/Game")
    finally:
        del FAMILIES["Mistaken/"]


def exported_into_its_run() -> None:
    agent = al.DQN("CartPole-v1")
    agent.save("run")
    agent.export("run")


def loaded_elsewhere() -> None:
    al.DQN("CartPole-v1").save("run")
    al.DQN.load("run", env="MountainCar-v0")


def saved() -> str:
    al.solve(MAZE).save("sol")
    return "sol"


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


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
    "arguments swapped": (lambda: al.MDP(UNIFORM, R, 0.9), "transitions is wrong: expected next states"),
    "no discount": (lambda: al.MDP(R, NEXT, None), "needs a discount"),
    "rewards that are not numbers": (lambda: al.MDP(R * np.nan, NEXT, 0.9), "state 0, action 0 is not finite"),
    "a mask the wrong way round": (lambda: al.MDP(R, NEXT, 0.9, mask=np.ones((2, 3), bool)), "\\(S, A\\) = \\(3, 2\\)"),
    "an outcome in another order": (
        lambda: al.MDP.from_table({"a": {"x": [("a", 1.0, 1.0)]}}, 0.9),
        "\\(probability, next state, reward\\)",
    ),
    "probabilities of a table that are too small": (
        lambda: al.MDP.from_table({"a": {"x": [(0.5, "a", 1.0)]}}, 0.9),
        "do not sum to one.*got 0.5",
    ),
    "a function of one state": (lambda: al.MDP.from_function(lambda s, a: 0, 3, 2, 0.9), "fn\\(states\\) of a batch"),
    "an id for from_gymnasium": (lambda: al.MDP.from_gymnasium("FrozenLake-v1"), "gymnasium.make\\('FrozenLake-v1'\\)"),
    "a class for from_gymnasium": (lambda: al.MDP.from_gymnasium(Discrete), "Discrete\\(\\)"),
    "text in a file of a model": (lambda: al.MDP.load(written("t.npz", "hello")), "was not made by adalook"),
    "the directory of a solution": (lambda: al.MDP.load(saved()), "a directory.*name the model in it: sol.model.npz"),
    "a maze too small": (lambda: al.zoo.maze(size=2), ">= 5"),
    "more successors than states": (lambda: al.zoo.garnet(5, 2, 9), "at most num_states = 5"),
    "a state without that name": (lambda: al.MDP.from_table(NAMED, 0.9).state_index("left"), "expected up, down"),
    "groups of another model": (lambda: al.aggregate(MAZE, [0, 1]), f"ints \\({MAZE.num_states},\\)"),
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
    "an environment instead of a model": (lambda: al.solve(gym.make("FrozenLake-v1")), "MDP.from_gymnasium\\(env"),
    "an id instead of a model": (lambda: al.solve("FrozenLake-v1"), "from_gymnasium\\(gymnasium.make"),
    "a tolerance as text": (lambda: al.solve(MAZE, tolerance="1e-6"), "a number >= 0, got '1e-6'"),
    "no tolerance": (lambda: al.solve(MAZE, tolerance=None), "a number >= 0, got None"),
    "no iterations": (lambda: al.solve(MAZE, max_iterations=0), "max_iterations.*>= 1"),
    "half a depth": (lambda: al.HPI(2.5), "a whole number"),
    "budgets in a list": (lambda: al.QLPI([0.1], prior=[0.0]), "\\{2: 0.1, 4: 0.05\\}"),
    "budgets in percent": (lambda: al.QLPI({2: 10}, prior=[0.0]), "in \\[0, 1\\], got 10"),
    "kappa above one": (lambda: al.TLPI(2.0, [0.0]), "kappa.*\\(0, 1\\)"),
    "kappa and prior swapped": (lambda: al.TLPI([0.0, 1.0], 0.9), "kappa is wrong"),
    "a prior that is not a number": (lambda: al.solve(MAZE, al.TLPI(0.9, R[:, 0] * np.nan)), "prior"),
    "a prior in a column": (
        lambda: al.solve(MAZE, al.QLPI({2: 0.1}, prior=np.zeros((MAZE.num_states, 1)))),
        "prior.*shape",
    ),
    "a solution as policy": (lambda: al.evaluate(MAZE, al.solve(MAZE)), "pass its policy"),
    "an action that is not offered": (
        lambda: al.evaluate(al.MDP(R, NEXT, 0.9, mask=changed(R == 0, (1, 1), False)), [0, 1, 0]),
        "state 1 is not offered: expected one of \\[0\\]",
    ),
    "values and policy swapped": (
        lambda: al.certify(MAZE, np.zeros(MAZE.num_states, int), np.zeros(MAZE.num_states)),
        "ints",
    ),
    "a solver that there is not": (lambda: al.Auto(solver="lu"), "sparse LU"),
    "saving where a file is": (lambda: al.solve(MAZE).save(written("f.txt", "")), "not a directory"),
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
    "another library's first argument": (lambda: al.DQN("MlpPolicy", "CartPole-v1"), "al.DQN\\('CartPole-v1'\\)"),
    "several environments in one": (
        lambda: al.DQN(gym.make_vec("CartPole-v1", num_envs=2)),
        "one environment.*num_envs=",
    ),
    "a negative depth": (lambda: al.DQN("CartPole-v1", depth=-1), "0..127"),
    "a fixed depth for QL-DQN": (lambda: al.QLDQN("CartPole-v1", depth=2), "no setting 'depth'"),
    "a network of another family": (lambda: al.DQN("CartPole-v1", network="nature"), "another network"),
    "a network that there is not": (lambda: al.DQN("CartPole-v1", network="cnn"), "nature, compact, minatar, mlp"),
    "a device by another name": (lambda: al.DQN("CartPole-v1", device="gpu"), "cuda"),
    "an engine by its name": (lambda: al.DQN("CartPole-v1", engine="ray"), "al.Ray\\(actors=2\\)"),
    "seeds that are text": (lambda: al.DQN("CartPole-v1", seed="a"), "seed is wrong: expected a whole number"),
    "a JSON file as config": (lambda: al.Config.load(written("c.json", "{}")), "learning_rate = 1e-4"),
    "a misspelt setting in a file": (lambda: al.Config.load(written("c.toml", "lerning_rate = 1")), "'learning_rate'"),
    "steps as a fraction": (lambda: al.DQN("CartPole-v1").learn(1e3), "a whole number.*1000.0"),
    "no episodes": (lambda: al.DQN("CartPole-v1").evaluate(episodes=0), ">= 1"),
    "what reset returned, whole": (
        lambda: al.DQN("CartPole-v1").predict((np.zeros(4), {})),
        "observation, info = env.reset",
    ),
    "the agent of another environment": (loaded_elsewhere, "one like CartPole-v1, got MountainCar-v0"),
    "an export into its own run": (exported_into_its_run, "choose another directory"),
    "a model of another environment": (
        lambda: al.Lookahead(al.DQN("CartPole-v1"), "MountainCar-v0"),
        "trained in another environment",
    ),
    "a model of too many actions": (
        lambda: al.Lookahead(lambda rows: rows[:, :3], "CartPole-v1"),
        "\\(1, 2\\) values of actions",
    ),
    "a model that is not a number": (
        lambda: al.Lookahead(lambda rows: rows[:, :2] + np.nan, "CartPole-v1"),
        "not finite",
    ),
    "looking ahead from nowhere": (
        lambda: al.Lookahead(q_values, gym.make("CartPole-v1"), nodes=4).predict(np.zeros(4)),
        "env.reset\\(seed=0\\)",
    ),
    "looking ahead from an observation": (
        lambda: al.Lookahead(q_values, "CartPole-v1", nodes=4).predict(np.zeros(4)),
        "the environment you step",
    ),
    "no nodes at all": (lambda: al.Lookahead(q_values, "CartPole-v1", nodes=0), "budget of nodes.*> 0"),
    "old-style step": (lambda: al.make_simulator(OldStep()), "got 4 values.*terminated, truncated"),
    "reset without a seed": (lambda: al.make_simulator(NoSeed()), "seed=None, options=None"),
    "an environment without spaces": (lambda: al.make_simulator(NoSpaces()), "set self.action_space"),
    "a reward that is not a number": (lambda: al.make_simulator(Rewards(float("nan"))), "finite number, got nan"),
    "no reward": (lambda: al.DQN(Rewards(None)), "finite number, got None"),
    "two rewards in an array": (lambda: al.make_simulator(Rewards(np.array([1.0, 2.0]))), "return float\\(reward\\)"),
    "observations that are not numbers": (lambda: al.make_simulator(Rewards(0.0, np.nan)), "not a number"),
    "randomness of everybody": (lambda: al.make_simulator(Draws()), "self.np_random"),
    "a picture that is none": (lambda: al.make_simulator(Rendered()).render(), "\\(height, width, 3\\)"),
    "a picture that fails": (lambda: al.make_simulator(Undrawn()).render(), "render fails.*whatever render_mode"),
    "an option that there is not": (
        lambda: al.make_simulator("MinAtar/Breakout-v1", stiky=0.1),
        "expected sticky, ramping",
    ),
    "nothing to simulate": (lambda: al.make_simulator(None), "an id, an al.MDP"),
    "a factory that returns nothing": (lambda: registered(lambda name: None), "an al.Simulator, got None"),
    "a step before the reset": (lambda: al.make_simulator("CartPole-v1").step(0), "sim.reset\\(seed=0\\)"),
    "an action in an array": (lambda: cart_pole().step(np.array([1])), "0..1"),
    "a rule that is a number": (lambda: searched(rule=3), "FixedDepth\\(3\\)"),
    "a value function of one argument": (lambda: searched(lambda rows: rows[:, 0]), "add the argument depth"),
    "values of actions at the leaves": (
        lambda: searched(lambda rows, depth: rows[:, :2]),
        "wrong shape: expected \\(2,\\)",
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
    "no model": ("solve", "needs SOURCE"),
    "a model of the zoo without its prefix": ("solve maze", "zoo:maze"),
    "an id without its version": ("solve FrozenLake", "FrozenLake-v1"),
    "a map that there is not": ("solve FrozenLake-v1?map_name=9x9", "no such map_name: got '9x9'"),
    "text for a tolerance": ("solve zoo:maze --tolerance abc", "a number, got 'abc'"),
    "text for a parameter": ("solve zoo:maze?size=abc", "a whole number, got 'abc'"),
    "a module that is no model": ("solve os:path", "an al.MDP or a Gymnasium environment"),
    "a module that is not there": ("solve nomodule:Thing", "module's folder"),
    "a prior that nothing uses": ("solve zoo:maze --prior exact", "[Ll]eave it out"),
    "a file where no folder is": ("solve zoo:chain --csv nowhere/x.csv", "make it first"),
    "a word for a depth": ("search CartPole-v1 --depth two", "a whole number, got 'two'"),
    "a misspelt rule": ("search CartPole-v1 --rule quantil:2=.1", "quantile:2=SHARE"),
    "continuous actions": ("search MountainCarContinuous-v0", "Discrete action space"),
    "steps in exponents": ("train CartPole-v1 --steps 1e3 --out x", "a whole number, got '1e3'"),
    "another library's flag": ("train CartPole-v1 --total-timesteps 9 --out x", "called --steps"),
    "another library's setting": ("train CartPole-v1 --batch-size 9 --steps 5 --out x", "called --batch-transitions"),
    "a depth for qldqn": ("train CartPole-v1 --depth 2 --steps 5 --out x", "--depth-shares"),
    "a switch without its value": ("train CartPole-v1 --double --steps 5 --out x", "--double needs a value"),
    "no seeds": ("train CartPole-v1 --seeds 0 --steps 5 --out x", ">= 1"),
    "a folder that is no run": ("train --resume . --steps 5", "config.json"),
    "an environment to evaluate": ("evaluate CartPole-v1", "a directory with config.json"),
    "nothing to report": ("report nowhere", "adalook reproduce"),
    "an experiment that there is not": ("reproduce mazes", "expected chain, maze"),
    "a misspelt game": ("reproduce atari --games Tutankam --out x", "Tutankham"),
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
    assert len(MODELS | SOLVES | AGENTS) + len(COMMANDS) >= 160
