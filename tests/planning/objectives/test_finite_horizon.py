"""Finite horizons: backward induction against exact rationals."""

from fractions import Fraction

import numpy as np
import pytest

import adalook as al
from tests.exact import ExactMDP, random_mdp


def test_certificates_against_exact_rationals():
    rng = np.random.default_rng(0)
    for _ in range(60):
        mdp = random_mdp(rng, int(rng.integers(1, 7)), int(rng.integers(1, 4)), float(rng.choice([0.0, 0.9, 1.0])))
        steps = int(rng.integers(1, 8))
        last = rng.normal(size=mdp.num_states) if rng.random() < 0.5 else np.zeros(mdp.num_states)
        sol = al.solve(mdp, horizon=steps, terminal_values=last)
        exact = ExactMDP(mdp)
        best = own = [Fraction(float(value)) for value in last]
        for k in range(steps - 1, -1, -1):
            own = [exact.q(s, int(sol.policy[k, s]), own) for s in range(mdp.num_states)]
            best = exact.backup(best)
            for s in range(mdp.num_states):
                for true in (own[s], best[s]):
                    assert Fraction(float(sol.lower[k, s])) <= true <= Fraction(float(sol.upper[k, s]))
        assert max(b - o for b, o in zip(best, own, strict=True)) <= Fraction(sol.policy_loss)


def test_long_horizons_approach_the_discounted_answer():
    mdp = al.zoo.maze(size=20, discount=0.9)
    sol = al.solve(mdp, horizon=400)
    np.testing.assert_allclose(sol.values[0], al.solve(mdp).values, atol=1e-7)
    assert sol.policy_loss < 1e-11


def test_what_to_do_depends_on_time():
    """Investing pays only if enough steps are left."""
    mdp = al.MDP.from_table(
        {"idle": {"work": [(1, "idle", 1.0)], "invest": [(1, "rich", 0.0)]}, "rich": {"work": [(1, "rich", 3.0)]}}, 1.0
    )
    sol = al.solve(mdp, horizon=3)
    assert [mdp.action_label(a) for a in sol.policy[:, 0]] == ["invest", "invest", "work"]
    assert sol.values[0].tolist() == [6.0, 9.0]
    assert sol.action_values(2)[0].tolist() == [1.0, 0.0]
    frame = sol.to_frame()
    assert frame.loc[(0, "idle"), "action"] == "invest"
    runs = mdp.simulate(sol.policy, 3, start="idle")
    assert runs.returns.tolist() == [6.0]


def test_terminal_values_count():
    mdp = al.MDP([[0.0, 1.0]], [[0, 0]], 0.5)
    assert al.solve(mdp, horizon=1, terminal_values=[10.0]).values[0].tolist() == [6.0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2.5}, "horizon"),
        ({"horizon": 3, "method": al.HPI(2)}, "takes no method"),
        ({"horizon": 3, "checkpoint": "model.ckpt"}, "takes no checkpoint"),
        ({"horizon": 3, "initial_values": [1.0]}, "takes no initial_values.*terminal_values"),
        ({"horizon": 3, "max_seconds": 1.0}, "takes no max_seconds"),
        ({"terminal_values": [0.0]}, "need a horizon"),
        ({"horizon": 2, "terminal_values": [0.0, 1.0]}, "terminal_values"),
    ],
)
def test_refusals(arguments, text):
    with pytest.raises(al.AdalookError, match=text):
        al.solve(al.MDP([[0.0]], [[0]], 0.5), **arguments)
