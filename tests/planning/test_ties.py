"""Policy iteration ends on every input: tied actions never make it cycle."""

import numpy as np
import pytest

import adalook as al

METHODS = {
    "Auto": lambda mdp: al.Auto(),
    "PI": lambda mdp: al.PolicyIteration(),
    "3-PI": lambda mdp: al.HPI(3),
    "WLPI": lambda mdp: al.WLPI(),
    "TLPI": lambda mdp: al.TLPI(mdp.discount**3, al.priors.few_iterations(mdp, 2)),
    "QLPI": lambda mdp: al.QLPI({2: 0.2, 4: 0.1}, al.priors.few_iterations(mdp, 2)),
}


def ends(mdp: al.MDP, method, rng: np.random.Generator, tolerance: float) -> None:
    start = rng.integers(mdp.num_actions, size=mdp.num_states)
    sol = al.solve(mdp, method, initial_policy=start, tolerance=tolerance, max_iterations=2_000)
    if tolerance == 0.0 and sol.status is al.Status.ROUNDING_LIMIT:  # a tie that only exact values would prove
        assert sol.policy_loss <= 1e-18 * max(1.0, np.abs(sol.values).max())
    else:
        assert sol.status is al.Status.CONVERGED
    assert sol.policy_loss < 1e-3 / (1.0 - mdp.discount)


@pytest.mark.parametrize("block", range(12))
def test_grids(block):
    """50 grids a block, 600 in all: symmetric, so that many actions tie in many states."""
    rng = np.random.default_rng(block)
    for _ in range(50):
        rows, columns = rng.integers(3, 9, 2)
        slip = float(rng.choice([0.0, 0.0, 0.2, 0.5]))
        discount = float(rng.choice([0.5, 0.9, 0.98, 0.999, 0.999999]))
        mdp = al.zoo.gridworld(
            int(rows), int(columns), slip, int(rng.integers(1000)), discount, holes=float(rng.choice([0.0, 0.1]))
        )
        name = list(METHODS)[int(rng.integers(len(METHODS)))]
        ends(mdp, METHODS[name](mdp), rng, tolerance=float(rng.choice([0.0, 1e-8])))


@pytest.mark.parametrize("block", range(4))
def test_twin_states(block):
    """50 models a block, 200 in all; every state has a twin with the same rows, so that choices between twins tie."""
    rng = np.random.default_rng(100 + block)
    for _ in range(50):
        half, actions = int(rng.integers(2, 12)), int(rng.integers(2, 5))
        rewards = np.repeat(rng.integers(-2, 3, (half, actions)) / 3.0, 2, axis=0)
        successors = np.repeat(rng.integers(half, size=(half, actions)) * 2, 2, axis=0)
        twins = rng.integers(2, size=successors.shape)
        discount = float(rng.choice([0.3, 0.9, 0.99, 0.99999]))
        if rng.random() < 0.5:
            mdp = al.MDP(rewards, successors + twins, discount)
        else:
            share = rng.random(successors.shape)
            dense = np.zeros((2 * half, actions, 2 * half))
            s, a = np.indices(successors.shape)
            dense[s, a, successors], dense[s, a, successors + 1] = share, 1.0 - share
            mdp = al.MDP(rewards, dense, discount)
        name = list(METHODS)[int(rng.integers(len(METHODS)))]
        ends(mdp, METHODS[name](mdp), rng, tolerance=0.0)


def test_plain_argmax_cycles_on_the_maze_and_we_do_not():
    """What the threshold is for: without it, rounding on tied actions keeps the policy changing for ever."""
    mdp = al.zoo.maze(size=30, seed=0)
    sol = al.solve(mdp, al.PolicyIteration(), tolerance=0.0)
    assert sol.converged
    policy, changes = sol.policy.copy(), []
    dense = np.stack([_row(mdp, s, a) for s in range(mdp.num_states) for a in range(4)])
    for _ in range(8):
        own = dense[np.arange(mdp.num_states) * 4 + policy]
        values = np.linalg.solve(
            np.eye(mdp.num_states) - mdp.discount * own, mdp.rewards[np.arange(mdp.num_states), policy]
        )
        q = mdp.rewards + mdp.discount * (dense @ values).reshape(-1, 4)
        new = np.argmax(q, axis=1)
        changes.append(int((new != policy).sum()))
        policy = new
    assert min(changes[1:]) > 0


def _row(mdp: al.MDP, s: int, a: int) -> np.ndarray:
    row = np.zeros(mdp.num_states)
    successors, chances = mdp.transition_row(s, a)
    row[successors] = chances
    return row
