"""Sharded models: they agree with `al.solve`, and their certificates with `al.certify` and with exact rationals."""

from __future__ import annotations

import json
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook.errors import ArgumentError, FileError, ModelError
from adalook.planning.sharded.rounds import Rounds
from adalook.storage.documents import with_digest
from tests.exact import ExactMDP, random_mdp
from tests.planning.sharded import models

ZOO = {
    "chain": al.zoo.chain(n=59),
    "maze": al.zoo.maze(20, seed=1),
    "maze, patient": al.zoo.maze(16, seed=2, discount=0.999),
    "garnet": al.zoo.garnet(300, 3, 4, seed=1, discount=0.95),
    "gridworld": al.zoo.gridworld(20, 20, seed=3),
    "gridworld, patient": al.zoo.gridworld(12, 12, seed=3, discount=0.9999),
    "queue": al.zoo.queue(200, discount=0.999),
    "inventory": al.zoo.inventory(),
    "layered": al.zoo.layered(),
    "blocks": al.zoo.blocks(),
    "forest": al.zoo.forest(100, discount=0.99),
}


def sharded(mdp: al.MDP, tmp_path: Path, shards: Any) -> al.ShardedMDP:
    """The model in a file that shards map."""
    mdp.save(tmp_path / "model.npz")
    return al.ShardedMDP.load(tmp_path / "model.npz", shards=shards)


def assert_agrees(solution: al.ShardedSolution, mdp: al.MDP, shared_rows: bool = False) -> None:
    """The answer is certified, as good as that of `al.solve`, and its bounds are those of `al.certify`.

    With shared rows, which shards add up in another order, these differ by rounding.
    """
    assert solution.converged
    assert solution.policy_loss <= solution.tolerance
    reference = al.solve(mdp, tolerance=solution.tolerance)
    lower, upper = solution.values + solution.low, solution.values + solution.high
    assert (lower <= reference.upper).all()
    assert (reference.lower <= upper).all()
    again = al.certify(mdp, solution.values, solution.policy)
    rounding = 1e-13 * np.abs(solution.values).max() / (1.0 - mdp.discount)
    ours = (solution.low, solution.high, solution.policy_loss)
    theirs = (again.low, again.high, again.policy_loss)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=rounding)
    if not shared_rows and not any(np.diff(mdp.rows.indptr[: mdp.rows.num_shared + 1]) * 4 >= mdp.num_states):
        assert ours == theirs


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", ZOO)
def test_solutions_and_certificates_agree(name: str, shards: int, tmp_path: Path) -> None:
    solution = sharded(ZOO[name], tmp_path, shards).solve()
    assert_agrees(solution, ZOO[name])


@pytest.mark.parametrize("seed", range(40))
def test_random_models_agree_whatever_the_cuts(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    mdp = random_mdp(rng, n, int(rng.integers(1, 5)), float(rng.choice([0.0, 0.5, 0.9, 0.99])))
    cuts = [0, *sorted(rng.choice(np.arange(1, n), min(n - 1, int(rng.integers(1, 5))), replace=False).tolist())]
    tolerance = max(1e-8, 1e-9 * mdp.largest_reward)
    assert_agrees(sharded(mdp, tmp_path, cuts).solve(tolerance=tolerance), mdp)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_in_exact_arithmetic(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(100 + seed)
    mdp = random_mdp(rng, 7, 3, 0.9)
    model = sharded(mdp, tmp_path, [0, 3, 5])
    exact = ExactMDP(mdp)
    for rounds in (1, None):  # far from the answer as well as near it
        solution = model.solve(max_rounds=rounds, tolerance=max(1e-8, 1e-9 * mdp.largest_reward))
        best = exact.solve(solution.policy.tolist())
        own = exact.evaluate(solution.policy.tolist())
        found = solution.lookup(np.arange(7))
        for s in range(7):
            assert Fraction(float(found.lower[s])) <= best[s] <= Fraction(float(found.upper[s]))
            assert best[s] - own[s] <= Fraction(solution.policy_loss)


@pytest.mark.parametrize("shards", [1, 2, 3, [0, 5, 200]])
def test_functions_build_the_model_that_they_describe(shards: Any) -> None:
    assert_agrees(models.slippery_grid(20, shards).solve(), models.whole_grid(20))


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_shared_rows_are_added_up_from_all_shards(shards: int) -> None:
    assert_agrees(models.jumping_ring(40, shards).solve(), models.whole_ring(40), shared_rows=True)


def test_only_the_boundary_travels() -> None:
    side, shards = 20, 4
    solution = models.slippery_grid(side, shards).solve()
    inner = shards - 1
    # Each cut has a row of cells on either side, and each side sends its own to the other: 8 bytes a value.
    for item in solution.trace:
        if item.improved == shards:
            each = (1 + item.exchanges) * 2 * inner * side * 8
            assert (item.sent_bytes, item.received_bytes) == (each, each)
    assert solution.trace[0].improved == shards


def test_shards_without_news_are_left_alone() -> None:
    """In a corridor of one-way doors, news comes from the end: a shard that has heard it is done."""

    def corridor(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (s == 99).astype(float)[:, None], np.minimum(s + 1, 99)[:, None]

    model = al.ShardedMDP.from_function(corridor, 100, 1, 0.99, shards=5)
    solution = model.solve()
    assert solution.converged
    assert sum(item.improved for item in solution.trace) < 5 * solution.rounds


def test_masks_are_functions_of_states() -> None:
    def fn(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.stack([s * 0.0, s * 1.0], axis=1), np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, 9)], axis=1)

    def mask(s: np.ndarray) -> np.ndarray:
        return np.stack([s >= 0, s < 5], axis=1)

    solution = al.ShardedMDP.from_function(fn, 10, 2, 0.9, shards=3, mask=mask).solve()
    whole = al.MDP.from_function(fn, 10, 2, 0.9, mask=mask(np.arange(10)))
    assert_agrees(solution, whole)
    with pytest.raises(ModelError, match="state 7 offers no action"):
        al.ShardedMDP.from_function(fn, 10, 2, 0.9, shards=2, mask=lambda s: np.stack([s != 7, s < 5], 1)).solve()


def test_a_limit_ends_with_the_best_answer_so_far() -> None:
    model, whole = models.slippery_grid(20, 4), models.whole_grid(20)
    stopped = model.solve(max_rounds=3)
    assert stopped.status is al.Status.ITERATION_LIMIT
    assert stopped.rounds == 3
    reference = al.solve(whole)
    found = stopped.lookup(np.arange(400))
    assert (found.lower <= reference.upper).all()
    assert (reference.lower <= found.upper).all()
    assert model.solve(max_seconds=0).status is al.Status.TIME_LIMIT


def test_a_signal_ends_after_the_round_with_a_certified_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    run_round = Rounds.run_round

    def run_and_signal(self: Rounds) -> None:
        run_round(self)
        if len(self.trace) == 3:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Rounds, "run_round", run_and_signal)
    stopped = models.slippery_grid(20, 4).solve()
    assert (stopped.status, stopped.rounds) == (al.Status.INTERRUPTED, 3)
    reference = al.solve(models.whole_grid(20))
    found = stopped.lookup(np.arange(400))
    assert (found.lower <= reference.upper).all()
    assert (reference.lower <= found.upper).all()


def test_more_than_rounding_allows_is_not_claimed() -> None:
    solution = models.slippery_grid(8, 2, discount=0.99).solve(tolerance=1e-16)
    assert solution.status is al.Status.ROUNDING_LIMIT
    assert 1e-16 < solution.policy_loss < 1e-9


def test_wrong_arguments_are_named() -> None:
    def fn(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(s), 1)), np.where(s == 5, 12, s)[:, None]

    with pytest.raises(ModelError, match=r"a successor of state 5, action 0 is out of range.*0 to 9, got 12"):
        al.ShardedMDP.from_function(fn, 10, 1, 0.9).solve()
    with pytest.raises(ModelError, match="discount below 1"):
        al.ShardedMDP.from_function(fn, 10, 1, 1.0)
    with pytest.raises(ArgumentError, match="shards are wrong"):
        al.ShardedMDP.from_function(fn, 10, 1, 0.9, shards=[0, 7, 7])
    with pytest.raises(ArgumentError, match="shards is wrong"):
        al.ShardedMDP.from_function(fn, 10, 1, 0.9, shards=11)
    with pytest.raises(ArgumentError, match="tolerance is wrong"):
        models.slippery_grid(5, 2).solve(tolerance=0.0)
    with pytest.raises(ArgumentError, match=r"no engine.*al.Ray"):
        models.slippery_grid(5, 2).solve(engine="ray")
    with pytest.raises(ModelError, match=r"shared row 0 do not sum to one.*got 0.5"):
        al.ShardedMDP.from_function(
            lambda s: (np.zeros((len(s), 1)), s[:, None]), 10, 1, 0.9, shared_rows=lambda s: np.full((len(s), 1), 0.05)
        ).solve()
    with pytest.raises(FileError, match=r"cannot read.*nowhere"):
        al.ShardedMDP.load("nowhere.npz")


def test_the_answer_can_be_kept_on_disk_and_looked_up(tmp_path: Path) -> None:
    model = models.slippery_grid(12, 3)
    here, there = model.solve(), model.solve(out=tmp_path / "answer")
    for solution in (there, al.ShardedSolution.load(tmp_path / "answer")):
        assert isinstance(solution.parts[0].values, np.memmap)
        assert np.array_equal(solution.values, here.values)
        assert np.array_equal(solution.policy, here.policy)
        assert (solution.low, solution.high, solution.policy_loss) == (here.low, here.high, here.policy_loss)
        assert solution.status is al.Status.CONVERGED
    states = np.array([[143, 0], [47, 48]])
    found = al.ShardedSolution.load(tmp_path / "answer").lookup(states)
    assert np.array_equal(found.values, here.values[states])
    assert np.array_equal(found.policy, here.policy[states])
    with pytest.raises(ArgumentError, match=r"no such state.*0 to 143, got 144"):
        here.lookup([3, 144])
    with pytest.raises(ArgumentError, match="whole numbers"):
        here.lookup([0.5])
    (tmp_path / "answer" / "values-1.npy").write_bytes((tmp_path / "answer" / "policy-1.npy").read_bytes())
    with pytest.raises(FileError, match="does not belong"):
        al.ShardedSolution.load(tmp_path / "answer")


@pytest.mark.parametrize("edges", [[], [0], [1, 5], [0, 3, 2]])
def test_forged_edges_of_a_solution_are_refused(edges, tmp_path):
    sharded(al.zoo.chain(n=6), tmp_path, 2).solve().save(tmp_path / "answer")
    path = tmp_path / "answer" / "sharded.json"
    about = {name: value for name, value in json.loads(path.read_text()).items() if name != "digest"}
    path.write_text(json.dumps(with_digest(about | {"edges": edges})))
    with pytest.raises(FileError):
        al.ShardedSolution.load(tmp_path / "answer")
