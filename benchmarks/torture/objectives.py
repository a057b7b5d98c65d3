"""Other questions to a model, against exact rationals: horizons, total reward, mixed policies, warm starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

import adalook as al
from benchmarks.torture.outcome import FOREIGN, HANG, MEMORY, REFUSED, Row, Scale, attempt
from tests.exact import ExactMDP

VIOLATED, HELD = "bounds violated", "held"
BAD = frozenset({VIOLATED, FOREIGN, HANG, MEMORY, REFUSED})
MODELS = 2_000
"""For each question, in the full torture."""
DISCOUNTS = (0.0, 5e-324, 1e-300, 0.5, 0.9, 1 - 1e-8, 1 - 1e-12, 1 - 1e-13)
REWARDS = (0.0, -0.0, 1.0, -1.0, 0.1, 0.30000000000000004, 1e14, -1e14, 1e-14, 5e-324, -1e-310, 1 / 3)


def _model(rng: np.random.Generator, discount: float | None = None) -> al.MDP:
    """Return a model of one to six states: odd rewards, tiny chances, actions that are all but the same."""
    states, actions = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    rewards = rng.choice(REWARDS, (states, actions))
    chances = rng.choice([0.0, 1.0, 0.3, 1e-3, 1e-12, 1e-17], (states, actions, states))
    chances[..., 0] += chances.sum(axis=2) == 0.0
    chances /= chances.sum(axis=2, keepdims=True)
    for a in range(1, actions):
        if rng.random() < 0.3:
            chances[:, a], rewards[:, a] = chances[:, 0], np.nextafter(rewards[:, 0], rng.choice([-9.0, 9.0]))
    return al.MDP(rewards, chances, float(rng.choice(DISCOUNTS)) if discount is None else discount)


def _episodic(rng: np.random.Generator) -> tuple[al.MDP, ExactMDP]:
    """Return a model with discount 1 that ends in its last state from everywhere, and the truth about it."""
    model = _model(rng, 0.5)
    states, actions = model.rewards.shape
    chances = np.zeros((states + 1, actions, states + 1))
    chances[-1, :, -1] = 1.0
    ends = rng.choice([0.5, 0.1, 1e-3])
    for s in range(states):
        for a in range(actions):
            successors, row = model.transition_row(s, a)
            chances[s, a, successors] = row * (1.0 - ends)
            chances[s, a, -1] += ends
    mdp = al.MDP(np.vstack([model.rewards, np.zeros(actions)]), chances, 1.0)
    exact = ExactMDP(mdp)
    exact.actions[states] = {a: (Fraction(0), {}) for a in range(actions)}
    return mdp, exact


def _policy(rng: np.random.Generator, mdp: al.MDP) -> list[int]:
    return rng.integers(0, mdp.num_actions, mdp.num_states).tolist()


def _mixed(rng: np.random.Generator, exact: ExactMDP) -> tuple[np.ndarray, list[Fraction]]:
    """Return a policy that draws its actions, and its values."""
    shares = rng.choice([1.0, 1e-9, 0.3, 0.0], (exact.num_states, len(exact.actions[0])))
    shares[:, 0] += shares.sum(axis=1) == 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    one = ExactMDP.__new__(ExactMDP)
    one.num_states, one.discount, one.actions = exact.num_states, exact.discount, []
    for s in range(exact.num_states):
        reward, row = Fraction(0), dict[int, Fraction]()
        for a, share in enumerate(map(Fraction, shares[s].tolist())):
            paid, successors = exact.actions[s][a]
            reward += share * paid
            for t, chance in successors.items():
                row[t] = row.get(t, Fraction(0)) + share * chance
        one.actions.append({0: (reward, row)})
    return shares, one.evaluate([0] * one.num_states)


def _horizon(rng: np.random.Generator) -> bool:
    """Ask for a finite horizon, with discount 1 as well."""
    mdp = _model(rng, 1.0 if rng.random() < 0.3 else None)
    exact, steps = ExactMDP(mdp), int(rng.integers(1, 8))
    last = rng.choice([0.0, 1.0, -1e10, 1e-300], mdp.num_states)
    found = al.solve(mdp, horizon=steps, terminal_values=last)
    values = [Fraction(value) for value in last.tolist()]
    for k in range(steps - 1, -1, -1):
        values = exact.backup(values)
        if not _between(found.lower[k], values, found.upper[k]):
            return False
    return True


def _total_reward(rng: np.random.Generator) -> bool:
    """Ask for the total reward of episodes, and for that of a policy."""
    mdp, exact = _episodic(rng)
    found = al.solve(mdp)
    best = exact.solve([0] * mdp.num_states)
    shares, own = _mixed(rng, exact)
    known = al.evaluate(mdp, shares)
    return _holds(found, exact, best) and _between(known.lower, own, known.upper)


def _mixed_policy(rng: np.random.Generator) -> bool:
    """Ask what a policy that draws its actions is worth."""
    mdp = _model(rng)
    shares, own = _mixed(rng, ExactMDP(mdp))
    found = al.evaluate(mdp, shares, tolerance=float(rng.choice([1e-14, 1e-8, 1.0])))
    return _between(found.lower, own, found.upper)


def _warm_start(rng: np.random.Generator) -> bool:
    """Solve from values and a policy that are nonsense."""
    mdp = _model(rng)
    exact = ExactMDP(mdp)
    method = [al.Auto(), al.PolicyIteration(), al.WLPI(), al.ModifiedPolicyIteration(5), al.HPI(3)][rng.integers(5)]
    values = rng.choice([0.0, 1e200, -1e9, 5e-324, -0.0], mdp.num_states)
    found = al.solve(mdp, method, initial_values=values, initial_policy=np.array(_policy(rng, mdp)), max_iterations=500)
    return _holds(found, exact, exact.solve([0] * mdp.num_states))


def _holds(found: al.Solution, exact: ExactMDP, best: list[Fraction]) -> bool:
    own = exact.evaluate([int(action) for action in found.policy])
    loss = max(b - o for b, o in zip(best, own, strict=True))
    certain = not found.converged or found.policy_loss <= found.tolerance
    return _between(found.lower, best, found.upper) and not found.policy_loss < loss and certain


def _between(lower: np.ndarray, truth: list[Fraction], upper: np.ndarray) -> bool:
    bounds = zip(lower.tolist(), truth, upper.tolist(), strict=True)
    return all(low <= value <= high for low, value, high in bounds)


QUESTIONS: dict[str, Callable[[np.random.Generator], bool]] = {
    "finite horizons": _horizon,
    "total reward, discount 1": _total_reward,
    "policies that draw their actions": _mixed_policy,
    "solves from nonsense": _warm_start,
}


def rows(scale: Scale, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Ask every question about many models."""
    for number, (name, ask) in enumerate(QUESTIONS.items()):
        if only and name not in only:
            continue
        rng = np.random.default_rng([scale.seed, 8, number])
        row = Row("certificates", name, BAD, "one to six states, γ up to 1 − 1e-13, chances down to 1e-17")
        for k in range(scale.count(MODELS)):
            outcome, what = attempt(lambda ask=ask, rng=rng: ask(rng), lambda held: bool(held))
            row.add({"equal": HELD, "different": VIOLATED}.get(outcome, outcome), f"number {k}: {what}")
        yield row
