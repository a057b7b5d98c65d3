"""What a Solution offers beside its numbers."""

import dataclasses

import numpy as np
import pytest

import adalook as al

WEATHER = {
    "sunny": {"walk": [(0.8, "sunny", 2.0), (0.2, "rainy", 1.0)], "drive": [(1.0, "sunny", 0.5)]},
    "rainy": {"drive": [(0.5, "sunny", 0.5), (0.5, "rainy", 0.5)]},
}


def test_action_values():
    mdp = al.MDP.from_table(WEATHER, 0.9)
    sol = al.solve(mdp)
    assert sol.action_values[1, 0] == -np.inf
    np.testing.assert_allclose(sol.action_values.max(axis=1), sol.values, atol=1e-7)
    assert sol.action_values.argmax(axis=1).tolist() == sol.policy.tolist()
    stochastic = al.zoo.garnet(40, 3, 20, seed=0)  # rows long enough to be summed with compensation
    sol = al.solve(stochastic)
    for s in range(40):
        for a in range(3):
            successors, chances = stochastic.transition_row(s, a)
            expected = stochastic.rewards[s, a] + stochastic.discount * (chances @ sol.values[successors])
            assert sol.action_values[s, a] == pytest.approx(expected, abs=1e-12)


def test_frames_have_names():
    frame = al.solve(al.MDP.from_table(WEATHER, 0.9)).to_frame(action_values=True)
    assert frame.index.tolist() == ["sunny", "rainy"]
    assert frame.action.tolist() == ["walk", "drive"]
    assert frame["q(drive)"]["sunny"] < frame.value["sunny"]
    assert (frame.lower <= frame.upper).all()
    assert al.solve(al.zoo.garnet(5, 2, 2)).to_frame().index.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [lambda: al.zoo.maze(size=20), lambda: al.zoo.garnet(300, 4, 5, seed=1)])
def test_initial_values_are_a_head_start(make):
    mdp = make()
    cold = al.solve(mdp)
    warm = al.solve(mdp, initial_values=cold.values)
    assert warm.iterations <= 1
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-7)
    anything = al.solve(mdp, initial_values=np.random.default_rng(0).normal(size=mdp.num_states))
    np.testing.assert_allclose(anything.values, cold.values, atol=1e-7)
    assert anything.certified


def test_what_is_not_certified_is_called_so_wherever_it_is_shown(tmp_path, capsys):
    """A tolerance that was not reached shows in text, in a notebook, in a figure, on the page and in a shell."""
    from adalook.cli.main import main

    mdp = al.zoo.garnet(40, 3, 4, seed=0, discount=0.9999999)
    sol = al.solve(mdp, al.ValueIteration(), max_iterations=20)
    assert not sol.certified
    assert "0.9999999" in repr(mdp), "a discount near one is not printed as 1"
    mdp.save(tmp_path / "close.npz")
    words = ["--method", "vi", "--max-iterations", "20", "--out", str(tmp_path / "out"), "--report"]
    assert main(["solve", str(tmp_path / "close.npz"), *words]) == 3
    page = (tmp_path / "out" / "report.html").read_text()
    for shown in (repr(sol), str(sol), sol._repr_html_(), sol.plot().get_suptitle(), page, capsys.readouterr().out):
        assert "not certified" in shown


def test_values_that_lie_close_together_can_be_told_apart():
    sol = al.solve(al.MDP([[1.0], [1.5]], [[1], [0]], 0.9999999))
    low, high = (line.split()[-1] for line in str(sol).splitlines()[-2:])
    assert low != high


def test_every_field_of_a_solution_and_of_its_passes_is_set():
    """They are filled all at once, so that no constructor would miss a field."""
    sol = al.solve(al.zoo.garnet(50, 3, 4, seed=0), tolerance=1e-6)
    for record in (sol, *sol.trace):
        assert set(vars(record)) == {field.name for field in dataclasses.fields(record)}
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.seconds = 0.0


def test_passes_in_double_doubles_tell_their_own_time(monkeypatch):
    """It was that of the last pass in float64."""
    from adalook.planning.precision.refinement import Refinement

    clock = iter(range(10**6))
    monkeypatch.setattr("adalook.planning.solve.perf_counter", lambda: float(next(clock)))
    before = Refinement.run_pass

    def slow(self, tolerance):
        for _ in range(1000):
            next(clock)
        return before(self, tolerance)

    monkeypatch.setattr(Refinement, "run_pass", slow)
    sol = al.solve(al.zoo.maze(size=20, seed=0, discount=1 - 1e-9))
    refined = [item.evaluation_seconds for item in sol.trace if item.evaluation.startswith("refined")]
    assert refined
    assert all(seconds >= 1000.0 for seconds in refined)


def test_what_has_nothing_to_tell_is_left_out(tmp_path):
    """Value iteration that changes no action has no solver, and a mapped model no prediction."""
    mdp = al.MDP([[1.0]], [[0]], 0.9)
    assert repr(al.solve(mdp, al.ValueIteration())).startswith("Solution(VI; converged")
    mdp.save(tmp_path / "m.npz")
    assert "predicted" not in al.solve(al.MDP.load(tmp_path / "m.npz", mmap=True)).explain()


def test_the_story_says_where_the_certificate_comes_from():
    sol = al.solve(al.zoo.blocks(20, discount=1 - 1e-6), tolerance=1e-6)
    assert sol.trace[-1].policy_loss > sol.tolerance >= sol.policy_loss
    assert sol.explain().splitlines()[-1].startswith("  certificate: a residual in double-doubles")


def test_names_never_break_a_line():
    mdp = al.MDP([[0.0, 1.0]], [[0, 0]], 0.5, state_names=["two\nlines"], action_names=["a\tb", "c\rd"])
    assert str(al.solve(mdp)).splitlines()[-1].split() == ["two\\nlines", "c\\rd", "2"]
    assert str(al.solve(mdp, horizon=2)).splitlines()[1:] == [
        "state       step 0  step 1",
        "two\\nlines  c\\rd    c\\rd",
    ]
