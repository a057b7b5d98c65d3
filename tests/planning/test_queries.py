"""Query counts against counting by hand and by brute force."""

import itertools

import numpy as np
import pytest

import adalook as al
from adalook.mdp.transitions import is_stochastic, row_of
from adalook.planning.queries import LookaheadRoots, QueryCounter, horizon
from adalook.planning.rules.base import Method, PriorMethod, Step
from tests.exact import random_mdp
from tests.toy_method import Toy


def children(mdp: al.MDP, s: int):
    """For each offered action, the successors that lookahead expands: none behind a shared row."""
    for a in np.flatnonzero(mdp.offered[s]):
        code = mdp.codes[s, a]
        behind_shared = is_stochastic(code) and row_of(code) < mdp.rows.num_shared
        yield [] if behind_shared else [int(t) for t in mdp.transition_row(s, int(a))[0]]


def tree_nodes(mdp: al.MDP, s: int, depth: int) -> int:
    if depth == 0:
        return 0
    return sum(1 + sum(tree_nodes(mdp, t, depth - 1) for t in below) for below in children(mdp, s))


def pairs_below(mdp: al.MDP, s: int, depth: int) -> set:
    found, level = set(), {s}
    for _ in range(depth):
        found |= {(t, a) for t in level for a in np.flatnonzero(mdp.offered[t])}
        level = {u for t in level for below in children(mdp, t) for u in below}
    return found


def needed(mdp: al.MDP, groups) -> set:
    found = set()
    for group in groups:
        roots = range(mdp.num_states) if group.states is None else group.states
        level = {int(s) for s in roots}
        for k in range(group.depth, 0, -1):
            found |= {(t, a, k) for t in level for a in np.flatnonzero(mdp.offered[t])}
            level = {u for t in level for below in children(mdp, t) for u in below}
    return found


MODELS = [
    al.zoo.chain(n=9),
    al.zoo.maze(size=9, seed=2),
    al.zoo.gridworld(3, 4, slip=0.2),
    random_mdp(np.random.default_rng(5), 6, 3, 0.9),
]


@pytest.mark.parametrize("mdp", MODELS, ids=["chain", "maze", "grid", "random"])
def test_counts_equal_brute_force(mdp):
    some = np.array([0, mdp.num_states // 2])
    groups = (LookaheadRoots(1), LookaheadRoots(2, some), LookaheadRoots(4, some[:1]))
    counter = QueryCounter(mdp)
    roots = {int(s): 1 for s in range(mdp.num_states)} | {int(some[1]): 2, int(some[0]): 4}
    tree = sum(
        tree_nodes(mdp, int(s), x.depth)
        for x in groups
        for s in (range(mdp.num_states) if x.states is None else x.states)
    )
    assert counter.count(groups, "tree") == tree
    assert counter.count(groups, "root") == sum(len(pairs_below(mdp, s, d)) for s, d in roots.items())
    assert counter.count(groups, "shared") == len(needed(mdp, groups))


def test_trees_larger_than_64_bits_are_counted_exactly():
    mdp = al.MDP(np.zeros((2, 4)), np.array([[0, 1, 0, 1], [1, 0, 1, 0]]), 0.9)
    assert QueryCounter(mdp).count((LookaheadRoots(40),), "tree") == 2 * sum(4**k for k in range(1, 41))


def test_sums_of_trees_larger_than_64_bits_are_exact():
    ring = al.MDP(np.zeros((40, 2)), np.stack([(np.arange(40) + step) % 40 for step in (1, 2)], axis=1), 0.9)
    trees = 2**61 - 2  # nodes of one binary tree of depth 60: within 64 bits, but not forty times over
    assert QueryCounter(ring).count((LookaheadRoots(60),), "tree") == 40 * trees


def test_pi_and_hpi_on_the_chain():
    mdp = al.zoo.chain(n=9)
    states = mdp.num_states
    start = np.ones(states, int)
    pi = al.solve(mdp, al.PolicyIteration(), initial_policy=start, tolerance=0.0)
    for name in ("tree", "root", "shared"):
        assert pi.queries.improvement[name] == len(pi.trace) * states * 2
    two = al.solve(mdp, al.HPI(2), initial_policy=start, tolerance=0.0)
    per_pass = two.trace[0].queries.improvement
    assert per_pass["tree"] == states * (2 + 4)
    # level 1 is needed at s_1 … s_n and the sink, level 2 everywhere
    assert per_pass["shared"] == 2 * (states + states - 1)


class SaysHowDeep(Method):
    """Looks three steps ahead and says so, but not what it searched."""

    def improve(self, look):
        look.deepen(2)
        return Step(look.values, look.actions, 3)


class SaysHowDeepInEachState(PriorMethod):
    """Looks three steps ahead in the first two states."""

    def improve(self, look):
        depth = np.where(np.arange(look.mdp.num_states) < 2, 3, 1)
        return Step(look.values.copy(), look.actions.copy(), depth)


@pytest.mark.parametrize("method", [Toy(3), SaysHowDeep()], ids=["left to the lookahead", "by depth"])
@pytest.mark.parametrize("mdp", MODELS, ids=["chain", "maze", "grid", "random"])
def test_a_new_rule_is_counted_by_how_deep_it_looked(mdp, method):
    new, known = (al.solve(mdp, rule, tolerance=0.0) for rule in (method, al.HPI(3)))
    assert [item.max_depth for item in new.trace] == [item.max_depth for item in known.trace] == [3] * len(new.trace)
    assert new.solvers == known.solvers
    for name in ("tree", "root", "shared"):
        assert new.queries.improvement[name] == known.queries.improvement[name]


def test_depths_that_differ_are_counted_each():
    mdp = al.zoo.maze(size=9, seed=2)
    first = al.solve(mdp, SaysHowDeepInEachState(np.zeros(mdp.num_states)), max_iterations=1).trace[0]
    roots = (LookaheadRoots(1), LookaheadRoots(3, np.array([0, 1])))
    for name in ("tree", "root", "shared"):
        assert first.queries.improvement[name] == QueryCounter(mdp).count(roots, name)


class WaveThenDeepen(Method):
    """Follows a wavefront for one level, then backs up every state."""

    def improve(self, look):
        look.wave(1)
        look.deepen(1)
        return Step(look.values, look.actions)


def test_full_backups_after_a_wave_are_counted_as_such():
    mdp = al.zoo.chain(n=9)
    first, two = (
        al.solve(mdp, method, initial_policy=np.ones(11, int), max_iterations=1).trace[0]
        for method in (WaveThenDeepen(), al.WLPI(depth=2))
    )
    assert first.max_depth == 3
    for name in ("tree", "root", "shared"):
        assert first.queries.improvement[name] == two.queries.improvement[name] + mdp.num_pairs


def test_queries_print_what_is_cheap_to_count():
    mdp = al.zoo.maze(size=9, seed=2)
    queries = al.solve(mdp, al.HPI(2)).queries
    assert "tree not counted yet" in repr(queries)
    assert f"shared {queries.improvement['shared']:,}" in repr(queries)
    assert f"tree {queries.improvement['tree']:,}" in repr(queries)
    assert "not counted" not in repr(al.solve(mdp).queries)


def test_totals_are_sums_over_the_trace():
    mdp = al.zoo.maze(size=12)
    sol = al.solve(mdp, al.QLPI({2: 0.1, 3: 0.1}, al.priors.exact(mdp)), tolerance=0.0)
    for name in ("tree", "root", "shared"):
        assert sol.queries.improvement[name] == sum(item.queries.improvement[name] for item in sol.trace)
    for name in ("exact", "simulated"):
        assert sol.queries.evaluation[name] == sum(item.queries.evaluation[name] for item in sol.trace)
    assert sol.queries.total() == sol.queries.improvement["root"] + sol.queries.evaluation["simulated"]


def test_evaluation_counts():
    mdp = al.zoo.maze(size=12, discount=0.98)
    sol = al.solve(mdp, al.PolicyIteration(), tolerance=0.0)
    assert sol.queries.evaluation["exact"] == len(sol.trace) * mdp.num_states
    assert sol.queries.evaluation["simulated"] == len(sol.trace) * mdp.num_states * 50
    assert al.solve(mdp, al.ValueIteration()).queries.evaluation == {"exact": 0, "simulated": 0}
    mpi = al.solve(mdp, al.ModifiedPolicyIteration(7))
    assert mpi.queries.evaluation["exact"] == 7 * len(mpi.trace) * mdp.num_states


def test_a_wave_counts_what_it_backs_up():
    """On the chain from all-d: the full backup, then one predecessor a level (and s_n, which leads to itself)."""
    mdp = al.zoo.chain(n=9)
    sol = al.solve(mdp, al.WLPI(depth=3), initial_policy=np.ones(11, int), tolerance=0.0)
    # each of levels 2 and 3 backs up s_n (its own predecessor) and the states before what changed
    assert sol.trace[0].queries.improvement["shared"] == 11 * 2 + 2 * 2 + 3 * 2
    assert len({sol.trace[0].queries.improvement[name] for name in ("tree", "root", "shared")}) == 1


@pytest.mark.parametrize(("discount", "steps"), [(0.98, 50), (0.9, 10), (0.99, 100), (0.999, 1000), (0.0, 1), (0.5, 2)])
def test_the_effective_horizon_is_not_rounded_up(discount, steps):
    assert horizon(discount) == steps


def test_unknown_conventions_are_named():
    queries = al.solve(al.zoo.chain(n=3)).queries
    with pytest.raises(KeyError, match="tree, root, shared"):
        queries.improvement["tee"]
    assert list(itertools.chain(queries.improvement)) == ["tree", "root", "shared"]
