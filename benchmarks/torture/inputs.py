"""Bad input: every argument of the public functions, and flags of the command line, with what does not belong there."""

from __future__ import annotations

import decimal
import fractions
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import adalook as al
from adalook.search import Budget, FixedDepth, QuantileDepth, RecentDistances, Root, make_expander, search
from benchmarks.results import ROOT
from benchmarks.torture import commands, hostile
from benchmarks.torture.hostile import hostile_values
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY, Row, Scale, attempt

BAD = frozenset({DIFFERENT, FOREIGN, HANG, MEMORY})
R, NEXT = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]]), np.array([[0, 1], [1, 2], [2, 0]])
MODEL = al.MDP(R, NEXT, 0.9)
MASKED = np.ma.masked_array(R, mask=[[True, False]] * 3)

NONSENSE: dict[str, Any] = {
    "text": "x",
    "bytes": b"x",
    "an object": object(),
    "a function": len,
    "a type": int,
    "a dict": {"a": 1},
    "a set": {1, 2},
    "complex": 1j,
    "NaN": math.nan,
    "-1": -1,
    "-inf": -math.inf,
    "a list of text": ["a", "b"],
    "an empty list": [],
    "a ragged list": [[1, 2], [3]],
    "an array of objects": np.array([object()]),
    "an array of text": np.array(["a"]),
    "a date": np.datetime64("2020-01-01"),
    "an empty array": np.empty((0, 0)),
    "four dimensions": np.zeros((1, 1, 1, 1)),
    "a generator": (i for i in range(3)),
    "a module": os,
    "a huge number": 10**400,
    "a huge negative number": -(10**400),
    "a decimal": decimal.Decimal("NaN"),
    "a masked array": MASKED,
    "an Ellipsis": ...,
}
"""Wrong for every argument below, but for what `allowed` says."""


def _csr(**parts: Any) -> Any:
    matrix = sp.csr_array(np.eye(3)[NEXT.ravel()])
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def _csc(**parts: Any) -> Any:
    matrix = sp.csc_array(np.eye(3)[NEXT.ravel()])
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def arguments() -> dict[str, tuple[Callable[[Any], Any], set[str]]]:
    """Return functions of one argument that must refuse nonsense, with what they may accept."""
    numbers = {"a list of text", "an empty list"}
    callables = {"__call__ raises", "a coroutine function"}  # what they raise is the caller's own
    cells = np.array([[0, 0], [0, 1], [1, 0]])
    walls = np.zeros((2, 2), bool)
    iterables = {"an empty list", "an empty array"}
    return {
        "MDP rewards": (lambda x: al.MDP(x, NEXT, 0.9), set()),
        "MDP transitions": (lambda x: al.MDP(R, x, 0.9), set()),
        "MDP discount": (lambda x: al.MDP(R, NEXT, x), set()),
        "MDP mask": (lambda x: al.MDP(R, NEXT, 0.9, mask=x), set()),
        "MDP layout": (lambda x: al.MDP(R, NEXT, 0.9, layout=x), set()),
        "Layout cells": (lambda x: al.Layout(x, walls), set()),
        "Layout walls": (lambda x: al.Layout(cells, x), set()),
        "Layout moves": (lambda x: al.Layout(cells, walls, moves=x), iterables),
        "Layout start": (lambda x: al.Layout(cells, walls, start=x), set()),
        "Layout goals": (lambda x: al.Layout(cells, walls, goals=x), iterables),
        "Layout action_names": (
            lambda x: al.Layout(cells, walls, action_names=x),
            {"an empty list", "a list of text", "an array of text", "an empty array"},
        ),
        "zoo.chain n": (lambda x: al.zoo.chain(x), set()),
        "zoo.chain discount": (lambda x: al.zoo.chain(3, x), set()),
        "zoo.maze size": (lambda x: al.zoo.maze(x), set()),
        "zoo.maze seed": (lambda x: al.zoo.maze(8, x), {"a huge number"}),
        "zoo.garnet num_states": (lambda x: al.zoo.garnet(x, 2, 1), set()),
        "zoo.garnet branching": (lambda x: al.zoo.garnet(4, 2, x), set()),
        "zoo.forest fire": (lambda x: al.zoo.forest(fire=x), set()),
        "zoo.gridworld slip": (lambda x: al.zoo.gridworld(3, 3, slip=x), set()),
        "solve model": (lambda x: al.solve(x), set()),
        "solve method": (lambda x: al.solve(MODEL, x), set()),
        "solve tolerance": (lambda x: al.solve(MODEL, tolerance=x), set()),
        "solve max_iterations": (lambda x: al.solve(MODEL, max_iterations=x), {"a huge number"}),
        "solve max_seconds": (lambda x: al.solve(MODEL, max_seconds=x), set()),
        "solve initial_policy": (lambda x: al.solve(MODEL, initial_policy=x), set()),
        "solve keep_states": (lambda x: al.solve(MODEL, keep_states=x), set()),
        "solve on_iteration": (lambda x: al.solve(MODEL, on_iteration=x), {"a function", "a type"} | callables),
        "HPI": (lambda x: al.HPI(x), set()),
        "WLPI": (lambda x: al.WLPI(x), set()),
        "TLPI kappa": (lambda x: al.TLPI(x, np.zeros(3)), set()),
        "TLPI prior": (lambda x: al.solve(MODEL, al.TLPI(0.5, x)), set()),
        "QLPI budgets": (lambda x: al.QLPI(x, np.zeros(3)), set()),
        "QLPI share": (lambda x: al.QLPI({2: x}, np.zeros(3)), set()),
        "MPI sweeps": (lambda x: al.ModifiedPolicyIteration(x), set()),
        "certify values": (lambda x: al.certify(MODEL, x, np.zeros(3, int)), set()),
        "certify policy": (lambda x: al.certify(MODEL, np.zeros(3), x), set()),
        "aggregate groups": (lambda x: al.aggregate(MODEL, x), set()),
        "priors.few_iterations": (lambda x: al.priors.few_iterations(MODEL, x), {"a huge number"}),
        "MDP.load": (lambda x: al.MDP.load(x), set()),
        "MDP.save": (lambda x: MODEL.save(x), set()),
        "make_simulator": (lambda x: al.make_simulator(x), callables),
        "Budget nodes": (lambda x: Budget(nodes=x), {"a huge number"}),
        "Budget seconds": (lambda x: Budget(seconds=x), set()),
        "FixedDepth": (lambda x: FixedDepth(x), {"a huge number"}),
        "search discount": (
            lambda x: search(
                al.make_simulator(MODEL), al.make_simulator(MODEL).save(), np.zeros, FixedDepth(1), discount=x
            ),
            set(),
        ),
        "MDP state_names": (lambda x: al.MDP(R, NEXT, 0.9, state_names=x), {"a generator"}),
        "MDP action_names": (
            lambda x: al.MDP(R, NEXT, 0.9, action_names=x),
            {"a list of text", "a ragged list", "a generator", "an array of bytes", "numbers that overflow"}
            | {"a list of itself and numbers"},
        ),
        "from_function num_states": (lambda x: al.MDP.from_function(_answer, x, 2, 0.9), set()),
        "from_function num_actions": (lambda x: al.MDP.from_function(_answer, 3, x, 0.9), set()),
        "from_function result": (lambda x: al.MDP.from_function(lambda states: x, 3, 2, 0.9), set()),
        "from_table": (lambda x: al.MDP.from_table(x, 0.9), set()),
        "from_table probability": (lambda x: al.MDP.from_table({0: {0: [(x, 0, 0.0, False)]}}, 0.9), set()),
        "from_table next state": (lambda x: al.MDP.from_table({0: {0: [(1.0, x, 0.0, False)]}}, 0.9), set()),
        "from_table reward": (lambda x: al.MDP.from_table({0: {0: [(1.0, 0, x, False)]}}, 0.9), {"-1"}),
        "from_table terminated": (lambda x: al.MDP.from_table({0: {0: [(1.0, 0, 0.0, x)]}}, 0.9), set()),
        "MDP.simulate policy": (lambda x: MODEL.simulate(x, 3), set()),
        "MDP.simulate steps": (lambda x: MODEL.simulate([0, 0, 0], x), set()),
        "MDP.simulate episodes": (lambda x: MODEL.simulate([0, 0, 0], 3, episodes=x), set()),
        "MDP.transition_row": (lambda x: MODEL.transition_row(x, 0), set()),
        "solve initial_values": (lambda x: al.solve(MODEL, initial_values=x), set()),
        "solve horizon": (lambda x: al.solve(MODEL, horizon=x), set()),
        "solve terminal_values": (lambda x: al.solve(MODEL, horizon=2, terminal_values=x), set()),
        "solve progress": (lambda x: al.solve(MODEL, progress=x), set()),
        "Auto": (lambda x: al.Auto(x), set()),
        "evaluate policy": (lambda x: al.evaluate(MODEL, x), set()),
        "lift values": (lambda x: al.aggregate(MODEL, [0, 0, 1])[1](x), set()),
        "Solution.load": (lambda x: al.Solution.load(x), set()),
        "register_simulator": (lambda x: al.register_simulator(x, "a:b"), set()),
        "check_simulator seed": (lambda x: al.check_simulator(al.make_simulator(MODEL), 5, x), {"a huge number"}),
        "make_expander engine": (lambda x: make_expander(al.make_simulator(MODEL), x), set()),
        "make_expander simulator": (lambda x: make_expander(x), set()),
        "QuantileDepth shares": (
            lambda x: QuantileDepth(x, RecentDistances()),
            set(),
        ),
        "RecentDistances window": (lambda x: RecentDistances(x), {"a huge number"}),
        "search simulator": (lambda x: _search(sim=x), set()),
        "search value function": (lambda x: _search(value_fn=x), {"a function", "a type"} | callables),
        "search values": (lambda x: _search(value_fn=lambda leaves, depth: x), set()),
        "search width": (lambda x: _search(width=x), {"a huge number"}),
        "search seed": (lambda x: _search(seed=x), {"-1", "a huge number", "a huge negative number"}),
        "search every_level": (lambda x: _search(every_level=x), set()),
        "Config learning_rate": (lambda x: al.Config(learning_rate=x), set()),
        "Config num_envs": (lambda x: al.Config(num_envs=x), {"a huge number"}),
        "Config hidden_units": (lambda x: al.Config(hidden_units=x), set()),
        "Config network": (lambda x: al.Config(network=x), set()),
        "Config depth_shares": (lambda x: al.Config(depth_shares=x), numbers - {"a list of text"} | {"an empty array"}),
    }


def _answer(states: Any) -> tuple[Any, Any]:
    return R[states], NEXT[states]


def _search(**changes: Any) -> Any:
    sim = al.make_simulator(MODEL)
    defaults: dict[str, Any] = {"sim": sim, "value_fn": lambda leaves, depth: np.zeros(len(leaves))}
    return search(**(defaults | {"root": Root.of(sim), "rule": FixedDepth(1), "discount": 0.9} | changes))


def single_cases() -> dict[str, Callable[[], Any]]:
    """Return what is wrong in its own way."""
    deep: Any = 0.0
    for _ in range(40):
        deep = [deep]
    return {
        "csc indptr out of range": lambda: al.MDP(R, _csc(indptr=np.array([0, 2, 4, 10**6])), 0.9),
        "csc indptr falling": lambda: al.MDP(R, _csc(indptr=np.array([0, 5, 1, 6])), 0.9),
        "csc indices out of range": lambda: al.MDP(R, _csc(indices=np.array([0, 1, 2, 3, 4, 10**6], np.int32)), 0.9),
        "csc indices negative": lambda: al.MDP(R, _csc(indices=np.array([0, 1, 2, 3, 4, -9], np.int32)), 0.9),
        "csc data too short": lambda: al.MDP(R, _csc(data=np.ones(2)), 0.9),
        "csr indptr out of range": lambda: al.MDP(R, _csr(indptr=np.array([0, 1, 2, 3, 4, 5, 10**6])), 0.9),
        "csr indices out of range": lambda: al.MDP(R, _csr(indices=np.array([0, 1, 2, 0, 1, 10**6], np.int32)), 0.9),
        "csr data too short": lambda: al.MDP(R, _csr(data=np.ones(2)), 0.9),
        "rewards nested 40 deep": lambda: al.MDP(deep, NEXT, 0.9),
        "rewards NaN": lambda: al.MDP(R * math.nan, NEXT, 0.9),
        "rewards inf": lambda: al.MDP(R + math.inf, NEXT, 0.9),
        "rewards too large": lambda: al.MDP(R * 1e300, NEXT, 0.999999),
        "rewards of 10**400": lambda: al.MDP([[10**400, 0], [0, 0], [0, 0]], NEXT, 0.9),
        "discount just below one": lambda: al.MDP(R, np.full((3, 2, 3), 1 / 3), 1.0 - 2**-53),
        "next state out of range": lambda: al.MDP(R, NEXT + 1, 0.9),
        "maze of 10**9": lambda: al.zoo.maze(10**9),
        "chain of 10**18": lambda: al.zoo.chain(10**18),
        "garnet of 10**9": lambda: al.zoo.garnet(10**9, 10, 10),
        "gridworld of 10**9": lambda: al.zoo.gridworld(10**9, 10**9),
        "garnet branching above S": lambda: al.zoo.garnet(3, 2, 9),
        "Fraction as rewards": lambda: al.MDP([[fractions.Fraction(1, 2)]], [[0]], 0.9),
        "policy off the model": lambda: al.solve(MODEL, initial_policy=[0, 1, 2]),
        "prior of another model": lambda: al.solve(MODEL, al.TLPI(0.5, np.zeros(4))),
        "unknown environment": lambda: al.make_simulator("NoSuchThing-v0"),
    }


COMMANDS = (
    ["solve"],
    ["solve", "nowhere.npz"],
    ["solve", "zoo:nothing"],
    ["solve", "zoo:maze?size=-1"],
    ["solve", "zoo:maze?size=1000000000"],
    ["solve", "zoo:maze?size=x"],
    ["solve", "zoo:garnet?num_states=3&num_actions=2&branching=9"],
    ["solve", "zoo:chain", "--tolerance", "-1"],
    ["solve", "zoo:chain", "--tolerance", "nan"],
    ["solve", "zoo:chain", "--method", "hpi:x"],
    ["solve", "zoo:chain", "--method", "hpi:99999999999999999999"],
    ["solve", "zoo:chain", "--discount", "2"],
    ["solve", "zoo:chain", "--max-seconds", "abc"],
    ["solve", "/dev/zero"],
    ["solve", "zoo:chain", "--out", "/dev/null/x"],
    ["solve", "zoo:chain\0x"],
    ["nothing"],
    ["search", "zoo:maze", "--seed", "-1"],
    ["search", "zoo:maze", "--depth", "0"],
    ["search", "zoo:maze", "--rule", "gap:x"],
    ["search", "NoSuchThing-v0"],
    ["train", "CartPole-v1", "--hidden-units", "99999999999", "--steps", "10", "--out", "/tmp/never"],
    ["train", "CartPole-v1", "--steps", "-1", "--out", "/tmp/never"],
    ["train", "--resume", "/nowhere", "--steps", "10"],
    ["train"],
    ["evaluate", "/nowhere"],
    ["report", "/nowhere"],
    ["reproduce", "nothing"],
)


def command_rows(scale: Scale) -> list[Row]:
    """Run the command line with wrong arguments: one line on stderr and exit code 2, never a traceback."""
    row = Row(
        "bad input", "command line, a process each", frozenset({"accepted", "traceback", "hang", "several lines"})
    )
    for arguments_ in COMMANDS if scale.factor >= 0.02 else COMMANDS[:1]:
        if any("\0" in word for word in arguments_):
            continue  # no system call can pass it on
        try:
            done = subprocess.run(
                [sys.executable, "-m", "adalook", *arguments_],
                capture_output=True,
                text=True,
                timeout=180,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            row.add("hang", str(arguments_))
            continue
        if "Traceback" in done.stderr:
            row.add("traceback", f"{arguments_}: {done.stderr[-200:]}")
        elif done.returncode != 2:
            row.add("accepted", f"{arguments_}: exit code {done.returncode}, {done.stderr[-200:]}")
        else:
            lines = done.stderr.strip().splitlines()
            row.add("refused" if len(lines) == 1 else "several lines", f"{arguments_}: {done.stderr[-200:]}")
    return [row]


def rows(scale: Scale) -> Iterator[Row]:
    """Call public functions with what does not belong there."""
    python = Row("bad input", "Python", BAD, "an argument of the wrong kind: refused by our own error")
    cases = [
        (f"{name} = {what}", lambda call=call, value=value: call(value))
        for name, (call, allowed) in arguments().items()
        for what, value in (NONSENSE | hostile_values()).items()
        if what not in allowed
    ]
    cases += list(single_cases().items())
    step = max(1, round(1 / max(scale.factor * 50, 1e-9))) if scale.factor < 0.02 else 1
    for name, call in cases[::step]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, what = attempt(call)
        python.add(outcome, f"{name}: {what}")
    yield python
    yield from hostile.rows(scale)
    yield from commands.rows(scale)
    yield from command_rows(scale)
