"""The loop: limits, interruption, determinism, what is recorded."""

import os
import signal
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

import adalook as al
from adalook._interrupts import SignalGuard
from adalook.planning.evaluation.sweeps import FixedSweeps
from adalook.planning.rules.base import Method, PriorMethod, Step
from tests.exact import naive_values


def test_the_default_is_auto_and_certified():
    sol = al.solve(al.zoo.maze(size=20, seed=4))
    assert sol.method == "Auto"
    assert sol.converged
    assert sol.policy_loss <= 1e-8
    assert (sol.lower <= sol.values).all()
    assert (sol.values <= sol.upper).all()


def test_a_limit_is_a_status():
    mdp = al.zoo.chain(n=59)
    sol = al.solve(mdp, al.PolicyIteration(), initial_policy=np.ones(61, int), max_iterations=3)
    assert sol.status is al.Status.ITERATION_LIMIT
    assert not sol.converged
    assert len(sol.trace) == 3
    assert "3 passes" in sol.message
    assert (sol.upper >= al.solve(mdp).values - 1e-12).all()


def test_time_is_a_limit_too():
    sol = al.solve(al.MDP([[1.0], [0.0]], [[0], [1]], 1 - 1e-9), al.ValueIteration(), tolerance=0.0, max_seconds=0.05)
    assert sol.status is al.Status.TIME_LIMIT


def test_ctrl_c_returns_the_best_so_far():
    mdp = al.MDP([[1.0], [0.0]], [[0], [1]], 1 - 1e-9)  # no bound on V* gets any closer than γ^n
    passes: list[object] = []

    def press_soon(record: object) -> None:
        """Only once the solve listens, in its second pass: a signal before that would end the test session."""
        passes.append(record)
        if len(passes) == 2:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    sol = al.solve(mdp, al.ValueIteration(), tolerance=0.0, on_iteration=press_soon)
    assert sol.status is al.Status.INTERRUPTED
    assert np.isfinite(sol.policy_loss)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_input_one_result():
    mdp = al.zoo.garnet(500, 4, 5, seed=1)
    one, other = al.solve(mdp), al.solve(mdp)
    assert (one.values == other.values).all()
    assert (one.policy == other.policy).all()
    assert one.policy_loss == other.policy_loss


@pytest.mark.parametrize("model", [al.zoo.garnet(500, 4, 5), al.zoo.maze(size=30), al.zoo.gridworld(20, 20)])
def test_threads_change_nothing(model, monkeypatch):
    from adalook.planning import threads

    monkeypatch.setattr(threads, "MIN_ENTRIES", 1)
    monkeypatch.setenv("ADALOOK_THREADS", "1")
    alone = al.solve(model)
    monkeypatch.setenv("ADALOOK_THREADS", "3")
    split = al.solve(model)
    assert (alone.values == split.values).all()
    assert (alone.policy == split.policy).all()


def test_iterations_count_updates_that_changed_the_policy():
    sol = al.solve(al.zoo.maze(size=12), al.PolicyIteration(), tolerance=0.0)
    assert sol.iterations == sum(item.changed > 0 for item in sol.trace) == len(sol.trace) - 1


def test_the_trace_tells_the_story():
    mdp = al.zoo.maze(size=12)
    sol = al.solve(mdp, tolerance=0.0)
    distances = [item.distance for item in sol.trace]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == 0.0
    for item in sol.trace:
        assert item.depth.shape == item.policy.shape == item.values.shape == (mdp.num_states,)
        assert item.max_depth == item.depth.max()
        assert item.policy_loss >= (sol.values - item.values).max() - 1e-9


def test_large_traces_drop_their_states(monkeypatch):
    mdp = al.zoo.maze(size=12)
    monkeypatch.setattr("adalook.planning.solve.KEPT_BYTES", 14 * mdp.num_states)
    light = al.solve(mdp, al.PolicyIteration())
    assert all(item.values is None and item.distance is None for item in light.trace)
    kept = al.solve(mdp, al.PolicyIteration(), keep_states=True)
    assert all(item.values is not None for item in kept.trace)
    assert light.queries.improvement["root"] == kept.queries.improvement["root"]


def test_observers_see_every_iteration():
    seen = []
    sol = al.solve(al.zoo.maze(size=12), on_iteration=seen.append, keep_states=False)
    assert [item.changed for item in seen] == [item.changed for item in sol.trace]
    assert all(item.values is not None for item in seen)


def test_what_is_published_cannot_be_changed():
    sol = al.solve(al.zoo.maze(size=12))
    for array in (sol.values, sol.policy, sol.trace[0].values, sol.trace[0].policy, sol.trace[0].depth):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_late_ctrl_c_is_not_lost():
    def press(_):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        al.solve(al.MDP([[1.0]], [[0]], 0.5), on_iteration=press)


def test_an_interrupted_prior_is_no_prior(monkeypatch):
    monkeypatch.setattr(SignalGuard, "__bool__", lambda self: True)
    with pytest.raises(KeyboardInterrupt):
        al.priors.exact(al.zoo.maze(size=30))


def test_progress_goes_to_stderr(capsys):
    al.solve(al.zoo.maze(size=12), progress=True)
    assert capsys.readouterr().out == ""


def test_looser_tolerance_stops_earlier():
    mdp = al.zoo.garnet(300, 3, 5, discount=0.99)
    passes = [len(al.solve(mdp, al.ValueIteration(), tolerance=t).trace) for t in (1e-1, 1e-4, 1e-8)]
    assert passes == sorted(passes)
    assert passes[0] < passes[2]


def test_a_tolerance_beyond_float64_is_certified_all_the_same():
    mdp = al.zoo.garnet(40, 3, 3, discount=0.999999)
    sol = al.solve(mdp, al.PolicyIteration(), tolerance=1e-15)
    assert sol.converged
    assert sol.certified
    assert sol.policy_loss <= 1e-15 < al.certify(mdp, sol.values, sol.policy).policy_loss


@dataclass(frozen=True)
class DeepValueIteration(Method):
    """Value iteration by T^h, on values that are no policy's."""

    depth: int
    by_wave: bool = False
    calls: list[bool] = field(default_factory=list)

    @property
    def evaluation(self):
        return FixedSweeps

    def improve(self, look):
        self.calls.append(look.exact)
        if self.by_wave:
            look.wave(self.depth - 1)
        else:
            look.deepen(self.depth - 1)
        return Step(look.values, look.actions)


@pytest.mark.parametrize("mdp", [al.zoo.garnet(300, 3, 4, seed=2), al.zoo.gridworld(7, 7), al.zoo.maze(size=12)])
@pytest.mark.parametrize("by_wave", [False, True])
def test_a_rule_on_partly_evaluated_values_is_called_and_certified(mdp, by_wave):
    method = DeepValueIteration(3, by_wave)
    sol = al.solve(mdp, method, tolerance=1e-6)
    plain = al.solve(mdp, al.ValueIteration(), tolerance=1e-6)
    assert method.calls == [False] * len(sol.trace)
    assert len(sol.trace) < len(plain.trace)
    assert sol.certified
    best = al.solve(mdp, al.PolicyIteration(), tolerance=0.0).values
    assert (best - naive_values(mdp, sol.policy)).max() <= sol.policy_loss
    if not by_wave:
        for one, three in zip(sol.trace[1:], plain.trace[3::3], strict=False):
            np.testing.assert_array_equal(one.values, three.values)


def test_a_pass_prints_in_one_line():
    sol = al.solve(al.zoo.maze(size=12), al.PolicyIteration())
    assert "array" not in repr(sol.trace)
    assert repr(sol.trace[0]).startswith("Iteration(functional graph, one step")
    assert type(sol.trace[0].policy_loss) is float
    assert "after 1 iteration, " in repr(al.solve(al.zoo.forest()))


class Wanderer(PriorMethod):
    """A rule gone wrong: it goes back and forth between two policies, whatever the values say."""

    def improve(self, look):
        return Step(look.values, 1 - look.policy, 1)


class Idler(PriorMethod):
    """A rule gone wrong: it never changes anything."""

    def improve(self, look):
        return Step(look.values, look.policy.copy(), 1)


@pytest.mark.parametrize("rule", [Wanderer, Idler])
def test_a_rule_that_gets_nowhere_gives_way_to_one_step_updates(rule):
    mdp = al.zoo.chain(n=12)
    sol = al.solve(mdp, rule(np.zeros(14)), initial_policy=np.ones(14, int), tolerance=0.0, max_iterations=100)
    assert sol.converged
    np.testing.assert_allclose(sol.values, al.solve(mdp).values, atol=1e-12)
    assert any(item.fallback for item in sol.trace) == (rule is Wanderer)


@pytest.mark.parametrize("seed", range(20))
def test_misleading_priors_do_no_harm(seed):
    rng = np.random.default_rng(seed)
    mdp = al.zoo.garnet(12, 3, 1, seed=seed, discount=0.95)
    best = al.solve(mdp, tolerance=0.0).values
    prior = rng.standard_normal(12) * 50
    for method in (al.QLPI({5: 0.2}, prior), al.TLPI(0.9, prior), al.TLPI(0.5, prior, beta=3.0)):
        sol = al.solve(mdp, method, tolerance=0.0, max_iterations=500)
        assert sol.converged
        np.testing.assert_allclose(sol.values, best, atol=1e-9)


def test_masks_are_respected():
    mask = np.array([[True, False], [True, True]])
    mdp = al.MDP([[0.0, 9.0], [1.0, 0.0]], [[1, 0], [1, 0]], 0.9, mask=mask)
    for method in (al.WLPI(), al.ValueIteration(), al.HPI(3), al.ModifiedPolicyIteration()):
        sol = al.solve(mdp, method)
        assert sol.policy.tolist() == [0, 0]
        np.testing.assert_allclose(sol.values, [9.0, 10.0], atol=1e-6)


@pytest.mark.parametrize("discount", [0.0, 1e-300, 0.5, 0.999999])
def test_one_state_one_action(discount):
    sol = al.solve(al.MDP([[2.0]], [[0]], discount))
    assert sol.converged
    np.testing.assert_allclose(sol.values, [2.0 / (1.0 - discount)], rtol=1e-9)


def test_a_long_trace_is_thinned_and_nothing_is_lost(monkeypatch):
    mdp = al.MDP([[1.0], [0.0]], [[0], [1]], 1 - 1e-9)
    whole = al.solve(mdp, al.ValueIteration(), tolerance=0.0, max_iterations=500)
    monkeypatch.setattr("adalook.planning.solve.MAX_PASSES", 100)
    thin = al.solve(mdp, al.ValueIteration(), tolerance=0.0, max_iterations=500)
    assert len(whole.trace) == whole.passes == thin.passes == 500
    assert 100 <= len(thin.trace) <= 200
    assert thin.trace[49].policy_loss == whole.trace[49].policy_loss
    assert thin.trace[-1].policy_loss == whole.trace[-1].policy_loss
    for name in ("tree", "root", "shared"):
        assert thin.queries.improvement[name] == whole.queries.improvement[name]
    assert thin.queries.evaluation["exact"] == whole.queries.evaluation["exact"]


@pytest.mark.parametrize("method", [al.Auto(), al.WLPI(), al.PolicyIteration(), al.ValueIteration()])
def test_a_start_beyond_all_values_does_no_harm(method):
    """From 1e200 policy iteration ended at the rounding of such numbers."""
    mdp = al.zoo.garnet(300, 4, 5, seed=0, discount=0.99)
    sol = al.solve(mdp, method, initial_values=np.full(300, 1e200))
    assert sol.converged
    assert sol.passes < 2500
