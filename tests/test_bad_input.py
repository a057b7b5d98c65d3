"""Bad input is refused at the door, by our own error, which names what is wrong; good input never is."""

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp

import adalook as al

R = np.zeros((3, 2))
NEXT = np.array([[0, 1], [1, 2], [2, 0]])
DENSE = np.zeros((3, 2, 3))
DENSE[np.arange(3)[:, None], np.arange(2), NEXT] = 1.0
CSR = sp.csr_array(DENSE.reshape(6, 3))
MAZE = al.zoo.maze(size=8, seed=0)
PRIOR = np.zeros(MAZE.num_states)


def changed(array, where, value):
    copy = array.copy()
    copy[where] = value
    return copy


def sparse(data, rows, columns, shape=(6, 3)):
    return sp.coo_array((data, (rows, columns)), shape=shape)


def broken_csr(**parts):
    matrix = CSR.copy()
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


class Table:
    """An environment that has nothing but a table."""

    def __init__(self, table):
        self.P = table


def batch(*answer):
    return lambda states: answer


def either_form(states):
    return (R[:1], NEXT[:1]) if states[0] == 0 else (R[:1], TWO_SUCCESSORS[:1], HALVES[:1])


TWO_SUCCESSORS = np.tile(np.array([0, 1]), (3, 2, 1))
HALVES = np.full((3, 2, 2), 0.5)


def damaged_sparse(kind, **parts):
    matrix = sp.csr_array(np.eye(3)).asformat(kind)
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


FAR = np.array([0, 1, 10**8], np.int32)


class Endless(Sequence):
    """Says that it is long, and never ends."""

    def __len__(self):
        return 2**62

    def __getitem__(self, index):
        return 0.0


class Unprintable:
    """Raises for whoever wants to see it, or to have it as an array."""

    def __repr__(self):
        raise RuntimeError

    __array__ = __repr__


MODELS = {
    "rewards in a list of masked arrays": (
        lambda: al.MDP([np.ma.masked_array([1.0, 2.0], mask=[True, False])] * 3, NEXT, 0.9),
        "rewards is a masked array",
    ),
    "rewards without an end": (lambda: al.MDP(Endless(), NEXT, 0.9), "rewards is wrong"),
    "rewards that cannot be shown": (lambda: al.MDP(Unprintable(), NEXT, 0.9), "rewards cannot be made an array"),
    "a discount of too many digits to show": (lambda: al.MDP(R, NEXT, 10**5000), "discount.*cannot be shown"),
    "a list of damaged matrices": (
        lambda: al.MDP(R, [damaged_sparse("csc", indices=FAR), sp.csc_array(np.eye(3))], 0.9),
        "transitions is a damaged sparse matrix",
    ),
    "a list of damaged csr matrices": (
        lambda: al.MDP(R, [damaged_sparse("csr", indices=FAR), sp.csr_array(np.eye(3))], 0.9),
        "transitions is a damaged sparse matrix.*columns 0 to 2",
    ),
    "rewards in a damaged matrix": (
        lambda: al.MDP(damaged_sparse("coo", coords=(FAR, np.arange(3))), np.full((3, 1, 3), 1 / 3), 0.9),
        "rewards is a damaged sparse matrix.*rows 0 to 2",
    ),
    "rewards in a complex matrix": (
        lambda: al.MDP(sp.csr_array(1j * np.eye(3)), np.full((3, 1, 3), 1 / 3), 0.9),
        "rewards is a sparse array of the wrong kind",
    ),
    "names in a set": (lambda: al.MDP(R, NEXT, 0.9, action_names={"a", "b"}), "action_names are wrong.*in their order"),
    "names masked": (
        lambda: al.MDP(R, NEXT, 0.9, action_names=np.ma.masked_array(["a", "b"], mask=[True, False])),
        "action_names are wrong",
    ),
    "no arrays at all": (lambda: al.MDP(None, None, 0.9), "rewards"),
    "rewards as strings": (lambda: al.MDP([["a", "b"]], [[0, 0]], 0.9), "rewards.*type"),
    "rewards complex": (lambda: al.MDP(R + 1j, NEXT, 0.9), "rewards.*type"),
    "rewards as objects": (lambda: al.MDP(R.astype(object), NEXT, 0.9), "rewards.*type"),
    "rewards ragged": (lambda: al.MDP([[1.0, 2.0], [3.0]], NEXT, 0.9), "rewards.*ragged"),
    "rewards per state only": (lambda: al.MDP(np.zeros(3), NEXT, 0.9), r"rewards.*shape.*\(S, A\)"),
    "rewards per successor, of another size": (lambda: al.MDP(np.zeros((4, 2, 4)), NEXT, 0.9), "rewards.*fit"),
    "rewards in four dimensions": (lambda: al.MDP(np.zeros((3, 2, 3, 1)), NEXT, 0.9), "rewards.*shape"),
    "reward nan": (lambda: al.MDP(changed(R, (1, 0), np.nan), NEXT, 0.9), "state 1, action 0"),
    "reward inf": (lambda: al.MDP(changed(R, (2, 1), np.inf), NEXT, 0.9), "state 2, action 1"),
    "reward minus inf": (lambda: al.MDP(changed(R, (0, 1), -np.inf), NEXT, 0.9), "state 0, action 1.*mask"),
    "rewards that overflow": (lambda: al.MDP(changed(R, (0, 0), 1e299), NEXT, 0.999), "too large"),
    "no states": (lambda: al.MDP(np.zeros((0, 2)), np.zeros((0, 2), int), 0.9), "empty"),
    "no actions": (lambda: al.MDP(np.zeros((3, 0)), np.zeros((3, 0), int), 0.9), "empty"),
    "discount just above one": (lambda: al.MDP(R, NEXT, np.nextafter(1.0, 2.0)), "discount"),
    "discount above one": (lambda: al.MDP(R, NEXT, 1.1), "discount.*1.1"),
    "discount negative": (lambda: al.MDP(R, NEXT, -0.1), "discount"),
    "discount nan": (lambda: al.MDP(R, NEXT, float("nan")), "discount"),
    "discount none": (lambda: al.MDP(R, NEXT, None), "discount"),
    "discount as text of a number": (lambda: al.MDP(R, NEXT, "0.9"), "discount"),
    "discount complex": (lambda: al.MDP(R, NEXT, 0.9 + 0j), "discount"),
    "layout as text": (lambda: al.MDP(R, NEXT, 0.9, layout="x"), "layout"),
    "layout with a goal outside": (
        lambda: al.Layout(np.array([[0, 0]]), np.zeros((1, 1), bool), goals=((0, 5),)),
        "off the grid",
    ),
    "discount text": (lambda: al.MDP(R, NEXT, "high"), "discount"),
    "discount true": (lambda: al.MDP(R, NEXT, True), "discount"),
    "discount beyond the row sums": (lambda: al.MDP(R, DENSE * (1 - 1e-13), 1 - 1e-16), "discount"),
    "transitions as strings": (lambda: al.MDP(R, [["a", "b"]] * 3, 0.9), "transitions.*type"),
    "transitions of bools": (lambda: al.MDP(R, DENSE.astype(bool), 0.9), "transitions.*type"),
    "next states as floats": (lambda: al.MDP(R, NEXT.astype(float), 0.9), r"astype\(int\)"),
    "next states of a wrong shape": (lambda: al.MDP(R, NEXT.T, 0.9), "shape"),
    "next state negative": (lambda: al.MDP(R, changed(NEXT, (1, 1), -1), 0.9), "state 1, action 1.*mask"),
    "next state too large": (lambda: al.MDP(R, changed(NEXT, (2, 0), 3), 0.9), "state 2, action 0.*0 to 2"),
    "dense by action, of another size": (lambda: al.MDP(R, np.ones((2, 4, 4)) / 4, 0.9), "shape"),
    "sparse by action, not square": (lambda: al.MDP(R, [CSR[:3, :2]] * 2, 0.9), "(S, S)"),
    "sparse and dense by action": (lambda: al.MDP(R, [CSR[:3], DENSE[:, 0]], 0.9), "one per action"),
    "a dictionary as transitions": (lambda: al.MDP(R, {0: {0: []}}, 0.9), r"al\.MDP\.from_table"),
    "rewards (A, S)": (lambda: al.MDP(np.zeros((2, 3)), np.full((2, 3, 3), 1 / 3), 0.9), r"pass rewards\.T"),
    "dense as (S·A, S)": (lambda: al.MDP(R, DENSE.reshape(6, 3), 0.9), "csr_array"),
    "dense of a wrong shape": (lambda: al.MDP(R, DENSE[:, :, :2], 0.9), "shape"),
    "probability nan": (lambda: al.MDP(R, changed(DENSE, (1, 1, 2), np.nan), 0.9), "state 1, action 1, successor 2"),
    "probability inf": (lambda: al.MDP(R, changed(DENSE, (0, 0, 0), np.inf), 0.9), "state 0, action 0"),
    "probability negative": (lambda: al.MDP(R, DENSE - 0.5, 0.9), "state 0, action 0.*negative"),
    "row sums to less": (lambda: al.MDP(R, changed(DENSE, (2, 1, 0), 0.9), 0.9), "state 2, action 1.*sum"),
    "row sums to more": (lambda: al.MDP(R, changed(DENSE, (2, 1, 1), 1e-6), 0.9), "state 2, action 1.*sum"),
    "row of zeros": (lambda: al.MDP(R, changed(DENSE, (0, 1), 0.0), 0.9), "state 0, action 1.*mask"),
    "percentages": (lambda: al.MDP(R, DENSE * 100, 0.9), "sum to one"),
    "sparse of a wrong shape": (lambda: al.MDP(R, CSR.T, 0.9), r"\(S·A, S\)"),
    "sparse complex": (lambda: al.MDP(R, CSR.astype(complex), 0.9), "type"),
    "sparse nan": (lambda: al.MDP(R, broken_csr(data=changed(CSR.data, 3, np.nan)), 0.9), "state 1, action 1"),
    "sparse negative": (
        lambda: al.MDP(R, sparse([2.0, -1.0, 1, 1, 1, 1, 1], [0, 0, 1, 2, 3, 4, 5], [0, 1, 0, 0, 0, 0, 0]), 0.9),
        "state 0, action 0, successor 1.*negative",
    ),
    "sparse negative hidden by a repeat": (
        lambda: al.MDP(R, sparse([2.0, -1.0, 1, 1, 1, 1, 1], [0, 0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0, 0]), 0.9),
        "state 0, action 0.*negative",
    ),
    "sparse row missing": (lambda: al.MDP(R, sparse(np.ones(5), range(5), [0] * 5), 0.9), "state 2, action 1"),
    "sparse index out of range": (
        lambda: al.MDP(R, broken_csr(indices=changed(CSR.indices, 2, 7)), 0.9),
        "state 1, action 0.*0 to 2",
    ),
    "sparse index negative": (
        lambda: al.MDP(R, broken_csr(indices=changed(CSR.indices, 5, -1)), 0.9),
        "state 2, action 1",
    ),
    "sparse indptr falling": (lambda: al.MDP(R, broken_csr(indptr=changed(CSR.indptr, 2, 0)), 0.9), "damaged|sum"),
    "mask of ints": (lambda: al.MDP(R, NEXT, 0.9, mask=np.ones((3, 2), int)), "mask.*bools"),
    "mask of a wrong shape": (lambda: al.MDP(R, NEXT, 0.9, mask=np.ones((2, 3), bool)), "mask.*shape"),
    "mask ragged": (lambda: al.MDP(R, NEXT, 0.9, mask=[[True], [True, False]]), "mask"),
    "state without actions": (lambda: al.MDP(R, NEXT, 0.9, mask=changed(R == 0, 1, False)), "state 1 offers no"),
    "layout off the grid": (lambda: al.Layout(np.array([[0, 9]]), np.zeros((1, 1), bool)), "state 0 is off the grid"),
    "layout of names": (lambda: al.Layout(np.array([["a", "b"]]), np.zeros((1, 1), bool)), "cells"),
    "layout without walls": (lambda: al.Layout(np.array([[0, 0]]), np.zeros(3)), "walls"),
    "layout of another model": (lambda: al.MDP(R, NEXT, 0.9, layout=MAZE.layout), "layout.*3 states"),
}
FUNCTIONS = {
    "states without end": (lambda: al.MDP.from_function(batch(R, NEXT), 10**400, 2, 0.9), "does not fit into memory"),
    "fn is no function": (lambda: al.MDP.from_function(3, 3, 2, 0.9), "fn"),
    "fn returns no tuple": (lambda: al.MDP.from_function(lambda s: R, 3, 2, 0.9), "tuple"),
    "fn returns four things": (lambda: al.MDP.from_function(batch(R, R, R, R), 3, 2, 0.9), "tuple"),
    "fn: rewards of a wrong shape": (lambda: al.MDP.from_function(batch(R.T, NEXT), 3, 2, 0.9), "rewards.*shape"),
    "fn: reward nan": (lambda: al.MDP.from_function(batch(R * np.nan, NEXT), 3, 2, 0.9), "state 0, action 0"),
    "fn: next states as floats": (lambda: al.MDP.from_function(batch(R, NEXT * 1.0), 3, 2, 0.9), "ints"),
    "fn: next state out of range": (lambda: al.MDP.from_function(batch(R, NEXT + 1), 3, 2, 0.9), "state 1, action 1"),
    "fn: successor out of range": (
        lambda: al.MDP.from_function(batch(R, TWO_SUCCESSORS + 2, HALVES), 3, 2, 0.9),
        "state 0, action 0.*range",
    ),
    "fn: shapes differ": (
        lambda: al.MDP.from_function(batch(R, TWO_SUCCESSORS, HALVES[:, :, :1]), 3, 2, 0.9),
        "probabilities.*shape",
    ),
    "fn: probability negative": (
        lambda: al.MDP.from_function(batch(R, TWO_SUCCESSORS, HALVES * [3, -1]), 3, 2, 0.9),
        "state 0, action 0, successor 1",
    ),
    "fn: sums to more": (
        lambda: al.MDP.from_function(batch(R, TWO_SUCCESSORS, HALVES * 1.1), 3, 2, 0.9),
        "state 0, action 0.*sum",
    ),
    "fn: rows of another batch": (
        lambda: al.MDP.from_function(lambda s: (R[: len(s)], TWO_SUCCESSORS, HALVES), 3, 2, 0.9, batch_size=2),
        "successors",
    ),
    "fn: no successors": (
        lambda: al.MDP.from_function(batch(R, TWO_SUCCESSORS[:, :, :0], HALVES[:, :, :0]), 3, 2, 0.9),
        "successors",
    ),
    "fn: no states": (lambda: al.MDP.from_function(batch(R, NEXT), 0, 2, 0.9), "num_states"),
    "fn: states as float": (lambda: al.MDP.from_function(batch(R, NEXT), 3.0, 2, 0.9), "num_states"),
    "fn: batch of none": (lambda: al.MDP.from_function(batch(R, NEXT), 3, 2, 0.9, batch_size=0), "batch_size"),
    "fn: both forms": (
        lambda: al.MDP.from_function(
            lambda s: (R[:1], NEXT[:1]) if s[0] == 0 else (R[:1], TWO_SUCCESSORS[:1], HALVES[:1]),
            3,
            2,
            0.9,
            batch_size=1,
        ),
        "both forms",
    ),
}
TABLES = {
    "terminated in words": (
        lambda: al.MDP.from_table({0: {0: [(1.0, 0, 0.0, "False")]}}, 0.9),
        "an outcome of state 0",
    ),
    "probability of 400 digits": (
        lambda: al.MDP.from_table({0: {0: [(10**400, 0, 0.0)]}}, 0.9),
        "an outcome of state 0",
    ),
    "next state as an array": (lambda: al.MDP.from_table({0: {0: [(1.0, R, 0.0)]}}, 0.9), "leads to a state that"),
    "rewards of more states": (
        lambda: al.MDP.from_table({0: {0: {0: 1.0}}}, 0.9, rewards=np.zeros((9, 1))),
        "rewards do not fit the table",
    ),
    "env without a table": (lambda: al.MDP.from_gymnasium(object()), "no transition table"),
    "table empty": (lambda: al.MDP.from_gymnasium(Table({})), "no transition table"),
    "table with gaps": (lambda: al.MDP.from_gymnasium(Table({0: {0: [(1.0, 0, 0, False)]}, 2: {}})), "states"),
    "table: actions below zero": (lambda: al.MDP.from_gymnasium(Table({0: {-1: [(1.0, 0, 0, False)]}})), "actions"),
    "table: pair": (lambda: al.MDP.from_gymnasium(Table({0: {0: [(1.0, 0)]}})), "state 0, action 0"),
    "table: leads away": (lambda: al.MDP.from_gymnasium(Table({0: {0: [(1.0, 5, 0, False)]}})), "state 0, action 0"),
    "table: next state as float": (
        lambda: al.MDP.from_gymnasium(Table({0: {0: [(1.0, 0.7, 0, False)]}})),
        "state 0, action 0",
    ),
    "table: negative": (
        lambda: al.MDP.from_gymnasium(Table({0: {0: [(2.0, 0, 0, False), (-1.0, 0, 0, False)]}})),
        "state 0, action 0",
    ),
    "table: half a row": (lambda: al.MDP.from_gymnasium(Table({0: {0: [(0.5, 0, 0, False)]}})), "sum to one"),
    "table: no outcomes": (lambda: al.MDP.from_gymnasium(Table({0: {0: []}})), "state 0, action 0"),
    "table: misspelt state": (
        lambda: al.MDP.from_table({"sunny": {"go": [(1.0, "suny", 0.0)]}}, 0.9),
        "Did you mean 'sunny'",
    ),
    "table: unknown state": (lambda: al.MDP.from_table({"a": {"go": [(1.0, "end", 0.0)]}}, 0.9), "dd 'end': {}"),
    "table: no rewards": (lambda: al.MDP.from_table({"a": {"go": {"a": 1.0}}}, 0.9, rewards={}), "rewards has no"),
    "table: a number": (lambda: al.MDP.from_table(3, 0.9), "table"),
    "table: text as actions": (lambda: al.MDP.from_table({"a": "go"}, 0.9), "actions"),
    "quantecon: something else": (lambda: al.MDP.from_quantecon(3), "DiscreteDP"),
    "stormpy: something else": (lambda: al.MDP.from_stormpy(3, 0.9), "stormpy"),
    "names too few": (lambda: al.MDP(R, NEXT, 0.9, state_names=["a"]), "3 names"),
    "names twice": (lambda: al.MDP(R, NEXT, 0.9, action_names=["a", "a"]), "more than once"),
    "names as text": (lambda: al.MDP(R, NEXT, 0.9, action_names="ab"), "action_names"),
    "simulate from nowhere": (
        lambda: al.MDP(R, NEXT, 0.9, state_names=list("abc")).simulate([0] * 3, 5, start="d"),
        "no state 'd'",
    ),
    "simulate: no such action": (lambda: al.MDP(R, NEXT, 0.9).simulate([0, 0, 7], 5), "state 2"),
    "simulate: probabilities": (lambda: al.MDP(R, NEXT, 0.9).simulate(np.ones((3, 2)), 5), "sum to one"),
    "simulate: no steps": (lambda: al.MDP(R, NEXT, 0.9).simulate([0] * 3, 0), "steps"),
    "table: reward nan": (
        lambda: al.MDP.from_gymnasium(Table({0: {0: [(1.0, 0, np.nan, False)]}})),
        "state 0, action 0",
    ),
}
METHODS = {
    "no model": (lambda: al.solve(R), "al.MDP"),
    "method as text": (lambda: al.solve(MAZE, "wlpi"), "method"),
    "method as class": (lambda: al.solve(MAZE, al.WLPI), "method"),
    "tolerance negative": (lambda: al.solve(MAZE, tolerance=-1e-8), "tolerance"),
    "tolerance nan": (lambda: al.solve(MAZE, tolerance=float("nan")), "tolerance"),
    "tolerance none": (lambda: al.solve(MAZE, tolerance=None), "tolerance"),
    "limit zero": (lambda: al.solve(MAZE, max_iterations=0), "max_iterations"),
    "limit as float": (lambda: al.solve(MAZE, max_iterations=2.5), "max_iterations"),
    "time negative": (lambda: al.solve(MAZE, max_seconds=-1), "max_seconds"),
    "horizon without end": (lambda: al.solve(MAZE, horizon=10**400), "does not fit into memory"),
    "episodes without end": (lambda: MAZE.simulate(PRIOR.astype(int), 3, episodes=2**31), "does not fit into memory"),
    "steps without end": (lambda: MAZE.simulate(PRIOR.astype(int), 10**400), "does not fit into memory"),
    "progress in words": (lambda: al.solve(MAZE, progress="no"), "progress is wrong: expected True or False"),
    "row of a state that is not there": (lambda: MAZE.transition_row(-1, 0), "state is out of range"),
    "row of an action in words": (lambda: MAZE.transition_row(0, 0.5), "action is wrong"),
    "lift of text": (lambda: al.aggregate(MAZE, PRIOR.astype(int))[1](["x"]), "lift: values"),
    "a solver as an array": (lambda: al.Auto(PRIOR), "Auto knows no solver"),
    "keep states in words": (lambda: al.solve(MAZE, keep_states="no"), "keep_states is wrong: expected True or False"),
    "policy too short": (lambda: al.solve(MAZE, initial_policy=[0, 1]), "initial_policy"),
    "policy as floats": (lambda: al.solve(MAZE, initial_policy=PRIOR), "initial_policy"),
    "policy out of range": (
        lambda: al.solve(MAZE, initial_policy=changed(PRIOR.astype(int), 5, 4)),
        "state 5 is out of range",
    ),
    "policy not on offer": (
        lambda: al.solve(al.MDP(R, NEXT, 0.9, mask=changed(R == 0, (1, 1), False)), initial_policy=[1, 1, 1]),
        "state 1 is not offered",
    ),
    "depth zero": (lambda: al.HPI(0), "depth"),
    "depth as float": (lambda: al.HPI(2.0), "depth"),
    "depth true": (lambda: al.WLPI(True), "depth"),
    "depth enormous": (lambda: al.WLPI(10**9), "depth"),
    "sweeps without end": (lambda: al.ModifiedPolicyIteration(10**12), "sweeps"),
    "kappa of a million steps": (lambda: al.solve(al.zoo.chain(9, 0.999999), al.TLPI(1e-300, np.zeros(11))), "kappa"),
    "prior complex": (lambda: al.solve(MAZE, al.TLPI(0.9, PRIOR + 1j)), "prior"),
    "observer is no function": (lambda: al.solve(MAZE, on_iteration="x"), "on_iteration"),
    "policy ragged": (lambda: al.solve(MAZE, initial_policy=[[0], [0, 1]]), "initial_policy"),
    "groups ragged": (lambda: al.aggregate(MAZE, [[0], [0, 1]]), "groups"),
    "aggregate without a model": (lambda: al.aggregate(3, [0]), "al.MDP"),
    "certify without a model": (lambda: al.certify(3, PRIOR, PRIOR), "al.MDP"),
    "certify: values complex": (lambda: al.certify(MAZE, PRIOR + 1j, PRIOR.astype(int)), "values"),
    "lift of a wrong size": (lambda: al.aggregate(MAZE, PRIOR.astype(int))[1](PRIOR), "lift"),
    "depth of 5,000 digits": (lambda: al.HPI(10**5000), "depth is wrong.*cannot be shown"),
    "sweeps zero": (lambda: al.ModifiedPolicyIteration(0), "sweeps"),
    "kappa one": (lambda: al.TLPI(1.0, PRIOR), "kappa"),
    "kappa zero": (lambda: al.TLPI(0.0, PRIOR), "kappa"),
    "kappa text": (lambda: al.TLPI("0.9", PRIOR), "kappa"),
    "beta negative": (lambda: al.TLPI(0.9, PRIOR, beta=-1), "beta"),
    "budgets as tuple": (lambda: al.QLPI((0.1, 0.2), PRIOR), "budgets"),
    "budget above one": (lambda: al.QLPI({2: 1.5}, PRIOR), "depth 2"),
    "budget nan": (lambda: al.QLPI({2: float("nan")}, PRIOR), "depth 2"),
    "budget at depth zero": (lambda: al.QLPI({0: 0.1}, PRIOR), "depth"),
    "slack negative": (lambda: al.QLPI({2: 0.1}, PRIOR, slack=-1), "slack"),
    "prior too short": (lambda: al.solve(MAZE, al.QLPI({2: 0.1}, PRIOR[:3])), "prior.*shape"),
    "prior nan": (lambda: al.solve(MAZE, al.TLPI(0.9, changed(PRIOR, 7, np.nan))), "prior: the value of state 7"),
    "prior none": (lambda: al.solve(MAZE, al.TLPI(0.9, None)), "prior"),
    "prior text": (lambda: al.solve(MAZE, al.TLPI(0.9, "exact")), "prior"),
    "few iterations: none": (lambda: al.priors.few_iterations(MAZE, 0), "n is wrong"),
    "groups too short": (lambda: al.aggregate(MAZE, [0, 1]), "groups"),
    "groups as floats": (lambda: al.aggregate(MAZE, PRIOR), "groups"),
    "squares of side zero": (lambda: MAZE.layout.squares(0), "k"),
    "certify: values too short": (lambda: al.certify(MAZE, PRIOR[:3], PRIOR.astype(int)), "values"),
    "certify: values nan": (lambda: al.certify(MAZE, PRIOR * np.nan, PRIOR.astype(int)), "state 0"),
    "certify: policy out of range": (lambda: al.certify(MAZE, PRIOR, PRIOR.astype(int) + 9), "policy"),
    "maze too small": (lambda: al.zoo.maze(size=3), "size"),
    "maze seed negative": (lambda: al.zoo.maze(seed=-1), "seed"),
    "chain empty": (lambda: al.zoo.chain(n=0), "n"),
    "garnet without branches": (lambda: al.zoo.garnet(3, 2, 0), "branching"),
    "forest with certain fire and more": (lambda: al.zoo.forest(3, fire=1.5), "fire"),
    "grid of one cell": (lambda: al.zoo.gridworld(1, 1), "grid"),
}
ALL = MODELS | FUNCTIONS | TABLES | METHODS


@pytest.mark.parametrize("case", ALL)
def test_refused_by_name(case):
    make, pattern = ALL[case]
    with pytest.raises(al.AdalookError, match=pattern) as caught:
        make()
    assert isinstance(caught.value, ValueError), "our errors are also the built-in ones"
    assert "\n" not in str(caught.value)


GOOD = {
    "discount zero": lambda: al.MDP(R, NEXT, 0.0),
    "float32 rows": lambda: al.MDP(R, np.full((3, 2, 3), 1 / 3, np.float32), 0.999),
    "float32 sparse": lambda: al.MDP(R, sp.csr_array(np.full((6, 3), 1 / 3, np.float32)), 0.999),
    "float32 rewards": lambda: al.MDP(R.astype(np.float32), NEXT, 0.9),
    "integer rewards": lambda: al.MDP(R.astype(int), NEXT, 0.9),
    "unsigned next states": lambda: al.MDP(R, NEXT.astype(np.uint8), 0.9),
    "integer dense": lambda: al.MDP(R, DENSE.astype(int), 0.9),
    "lists": lambda: al.MDP(R.tolist(), NEXT.tolist(), 0.9),
    "one state": lambda: al.MDP([[1.0]], [[0]], 0.9),
    "one action": lambda: al.MDP(R[:, :1], NEXT[:, :1], 0.9),
    "unreachable states": lambda: al.MDP(R, np.zeros_like(NEXT), 0.9),
    "negative rewards": lambda: al.MDP(R - 5, NEXT, 0.9),
    "Fortran order": lambda: al.MDP(np.asfortranarray(R), np.asfortranarray(DENSE), 0.9),
    "read-only": lambda: al.MDP(np.broadcast_to(0.0, (3, 2)), NEXT, 0.9),
    "csr_matrix": lambda: al.MDP(R, sp.csr_matrix(CSR), 0.9),
    "csc": lambda: al.MDP(R, CSR.tocsc(), 0.9),
    "unsorted repeats": lambda: al.MDP(R, sparse([0.5] * 12, [*range(6), *range(6)], [2] * 6 + [1] * 6), 0.9),
    "explicit zeros": lambda: al.MDP(R, sparse([1.0, 0] * 6, np.repeat(range(6), 2), [0, 1] * 6), 0.9),
    "nan where masked": lambda: al.MDP(
        changed(R, (0, 1), np.nan), changed(DENSE, (0, 1), np.nan), 0.9, mask=changed(R == 0, (0, 1), False)
    ),
    "discount of 1 - 1e-9": lambda: al.MDP(R, np.full((3, 2, 3), 1 / 3), 1 - 1e-9),
    "long rounded row": lambda: al.MDP(np.zeros((1000, 1)), np.full((1000, 1, 1000), 0.001), 0.9),
    "dense as (A, S, S)": lambda: al.MDP(R, np.moveaxis(DENSE, 1, 0), 0.9),
    "sparse matrices by action": lambda: al.MDP(R, [CSR[::2], CSR[1::2]], 0.9),
    "rewards per successor": lambda: al.MDP(np.zeros((3, 2, 3)), NEXT, 0.9),
    "1 - p - q below zero by rounding": lambda: al.MDP(R[:, :1], np.tile([0.9, 0.1, 1 - 0.9 - 0.1], (3, 1, 1)), 0.9),
    "numpy scalars": lambda: al.MDP(R, NEXT, np.float64(0.9)),
}


@pytest.mark.parametrize("case", GOOD)
def test_accepted_and_solved(case):
    sol = al.solve(GOOD[case]())
    assert sol.converged
    assert np.isfinite(sol.values).all()
