"""What a job writes down: checked against the model itself, the paper's formulas, and a second run."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

import adalook as al
from adalook.experiments.maze import MazeExperiment
from adalook.experiments.methods import hpi, qlpi_one_per_depth
from adalook.experiments.models import ChainModel, MazeModel
from adalook.experiments.priors import ExactPrior, values_by_cell
from adalook.experiments.sweep import SweepExperiment
from adalook.experiments.trial import LOOKAHEAD_EDGES, Trial, run_trial
from adalook.mdp.transitions import is_deterministic
from adalook.planning.lookahead.levels import backup
from adalook.planning.rules.spec import tree_nodes
from tests.experiments.small import CHAIN, MAZE, SWEEP


@pytest.fixture(scope="module")
def maze_outcomes():
    return {job.name: run_trial(job) for job in MAZE.jobs()}


@pytest.fixture(scope="module")
def chain_records():
    return [run_trial(job).record for job in CHAIN.jobs()]


@pytest.mark.parametrize("experiment", [CHAIN, MAZE, SWEEP, MazeExperiment(), SweepExperiment()])
def test_names_are_unique_and_jobs_can_be_sent(experiment):
    jobs = experiment.jobs()
    assert len({job.name for job in jobs}) == len(jobs)
    assert pickle.loads(pickle.dumps(jobs)) == jobs


def test_the_default_maze_is_the_papers():
    jobs = [job for job in MazeExperiment().jobs() if job.model.seed == 0]
    labels = [run_trial(dataclasses.replace(job, keep_trace=False)).record["label"] for job in jobs]
    assert labels[:7] == ["PI", "2-PI", "3-PI", "4-PI", "5-PI", "6-PI", "7-PI"]
    assert labels[7:13] == [f"TLPI γ^{power}" for power in range(2, 8)]
    assert labels[13:17] == [
        f"QLPI {setting}"
        for setting in ("(0.3, 0.2, 0.1)", "(0.2, 0.15, 0.05)", "(0.2, 0.05, 0.02)", "(0.1, 0.05, 0.02)")
    ]
    assert labels[17:22] == ["WLPI", *(f"QLPI, {k}×{k} squares" for k in range(2, 6))]
    assert len(set(labels)) == len(labels)


def test_a_second_run_is_the_same_bit_for_bit(maze_outcomes):
    for job in MAZE.jobs():
        first, second = maze_outcomes[job.name], run_trial(job)
        assert first.record == second.record
        assert first.models == second.models
        assert all(array.tobytes() == second.arrays[name].tobytes() for name, array in first.arrays.items())


def test_lists_have_one_entry_per_pass(maze_outcomes):
    for outcome in maze_outcomes.values():
        record = outcome.record
        queries = record["queries"]
        lists = [record[name] for name in ("distance", "changed", "max_depth", "deep_states")]
        lists += [*queries["improvement"].values(), *queries["evaluation"].values()]
        assert {len(entries) for entries in lists} == {record["passes"]}
        assert record["status"] == "CONVERGED"
        assert record["iterations"] == sum(count > 0 for count in record["changed"])
        assert record["distance"][0] > 0.01
        assert record["distance"][-1] < 1e-9


def test_traces_hold_the_policy_a_pass_started_from_and_its_values(maze_outcomes):
    model = MazeModel(MAZE.size, MAZE.discount, 1)
    mdp, best = model.build(), al.priors.exact(model.build()).values
    arrays = maze_outcomes["maze/hpi/h=2/seed=1"].arrays
    values, policy, depth = (arrays[f"maze/hpi/h=2/seed=1/{name}"] for name in ("values", "policy", "depth"))
    np.testing.assert_array_equal(policy[0], model.initial_policy(mdp))
    for v, actions in zip(values, policy, strict=True):
        np.testing.assert_allclose(one_step(mdp, v, actions), v, atol=1e-12)
    assert (depth == 2).all()
    np.testing.assert_array_equal(arrays[f"model/{model.key}/values"], best)
    np.testing.assert_array_equal(arrays[f"model/{model.key}/cells"], mdp.layout.cells)
    record = maze_outcomes["maze/hpi/h=2/seed=1"].record
    assert record["trace"] == "maze/hpi/h=2/seed=1"
    assert record["model_key"] == model.key
    assert record["distance"] == [float(np.abs(best - v).max()) for v in values]


def one_step(mdp: al.MDP, values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """T_π v, from the model's own successors."""
    state = np.arange(mdp.num_states)
    code = mdp.codes[state, actions]
    relocated = values[mdp.rows.indices].mean()
    return mdp.rewards[state, actions] + mdp.discount * np.where(is_deterministic(code), values[code], relocated)


def test_effective_lookahead_is_that_of_the_definition(maze_outcomes):
    record = maze_outcomes["maze/hpi/h=1/seed=0"].record
    arrays = maze_outcomes["maze/hpi/h=1/seed=0"].arrays
    mdp = MazeModel(MAZE.size, MAZE.discount, 0).build()
    best = al.solve(mdp, tolerance=0.0)
    shares = record["effective_lookahead"]
    assert len(shares) == record["iterations"]
    for row, values in zip(shares, arrays["maze/hpi/h=1/seed=0/values"], strict=False):
        assert len(row) == len(LOOKAHEAD_EDGES)
        assert math.isclose(sum(row), 1.0)
        assert row[0] == 0.0, "one step contracts by γ at least"
        kappa = np.abs(best.values - backup(mdp, values, best.policy).values) / np.abs(best.values - values).max()
        deep = np.mean(kappa <= mdp.discount**20 * (1 + 1e-9))
        assert math.isclose(row[-1], deep)
    assert maze_outcomes["maze/hpi/h=2/seed=0"].record["effective_lookahead"] is None


def test_maze_runs_keep_the_theorems(maze_outcomes):
    for outcome in maze_outcomes.values():
        record, predicted = outcome.record, outcome.record["predicted"]
        assert predicted["iteration_bound"] is None or record["iterations"] <= predicted["iteration_bound"]
        assert max(record["queries"]["improvement"]["tree"]) <= predicted["cost_per_iteration"]


def backed_up(mdp: al.MDP, values: list[float], steps: int) -> list[float]:
    """T^steps v of the chain, state by state from the definition."""
    for _ in range(steps):
        values = [
            max(float(mdp.rewards[s, a]) + mdp.discount * values[mdp.codes[s, a]] for a in range(mdp.num_actions))
            for s in range(mdp.num_states)
        ]
    return values


def contractions(mdp: al.MDP, solution: al.Solution, best: list[float]) -> list[float]:
    """Per pass that changed the policy: the worst |V*(s) − T^h(s) V(s)| / ‖V* − V‖."""
    found = []
    for item in solution.trace:
        if item.changed:
            values = item.values.tolist()
            far = max(abs(v - w) for v, w in zip(best, values, strict=True))
            reached = [backed_up(mdp, values, int(h))[s] for s, h in enumerate(item.depth)]
            found.append(max(abs(v - w) for v, w in zip(best, reached, strict=True)) / far)
    return found


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_induced_contraction_is_the_worst_of_all_passes(depth):
    """On the chain that is the first: two states are equally far, and there is one state per depth."""
    model, method = ChainModel(9, 0.9), qlpi_one_per_depth(depth)
    mdp = model.build()
    prior = al.priors.exact(mdp)
    solution = al.solve(
        mdp, method.make(mdp, prior), initial_policy=model.initial_policy(mdp), tolerance=0.0, keep_states=True
    )
    each = contractions(mdp, solution, prior.values.tolist())
    record = run_trial(Trial("x", model, method, ExactPrior())).record
    assert record["predicted"]["kappa_theta"] == pytest.approx(max(each), rel=1e-12)
    promised = mdp.discount**depth * (1 + 1e-9)
    assert [kappa > promised for kappa in each] == [True] + [False] * (len(each) - 1)


def test_states_that_reached_the_optimum_look_furthest():
    """A step from V^π sets every state of the chain right that has the news: κ = 0, the last bin and not the first."""
    model = ChainModel(6, 0.9)
    mdp = model.build()
    best = al.priors.exact(mdp).values.tolist()
    outcome = run_trial(Trial("x", model, hpi(1), histogram=True))
    solution = al.solve(mdp, al.HPI(1), initial_policy=model.initial_policy(mdp), tolerance=0.0, keep_states=True)
    passes = [item.values.tolist() for item in solution.trace if item.changed]
    assert len(outcome.record["effective_lookahead"]) == len(passes)
    arrived = 0
    for row, values in zip(outcome.record["effective_lookahead"], passes, strict=True):
        far = max(abs(v - w) for v, w in zip(best, values, strict=True))
        counts = [0] * len(LOOKAHEAD_EDGES)
        for v, w in zip(best, backed_up(mdp, values, 1), strict=True):
            arrived += v == w
            h = math.inf if v == w else math.log(abs(v - w) / far) / math.log(mdp.discount)
            counts[-1 if h >= LOOKAHEAD_EDGES[-1] else math.floor(h + 1e-6)] += 1
        assert row == pytest.approx([count / mdp.num_states for count in counts])
    assert arrived > len(passes), "else nothing was tested"


def test_bounds_are_those_of_the_paper(maze_outcomes):
    gamma = MAZE.discount
    states = maze_outcomes["maze/hpi/h=2/seed=0"].record["model"]["states"]
    for name, power in (("hpi/h=2", 2), ("tlpi/power=3", 2)):
        bound = math.ceil(states * 3 * math.log(1 / (1 - gamma)) / (power * math.log(1 / gamma)))
        assert maze_outcomes[f"maze/{name}/seed=0"].record["predicted"]["iteration_bound"] == bound
    assert maze_outcomes["maze/hpi/h=2/seed=0"].record["predicted"]["cost_per_iteration"] == states * (4 + 16)


def test_only_priors_that_are_paid_for_count(maze_outcomes):
    counted = {r.record["group"]: r.record["prior"]["counted"] for r in maze_outcomes.values() if r.record["prior"]}
    assert counted == {"tlpi": False, "qlpi": False, "aggregated": True, "few": True, "similar": False}
    few = maze_outcomes["maze/few/2/tlpi/power=3/seed=0"].record
    horizon = 50
    assert few["prior"]["queries"]["evaluation"]["simulated"] == 2 * horizon * few["model"]["states"]
    assert few["prior"]["queries"]["improvement"]["root"] == 2 * 4 * few["model"]["states"]


def test_chain_counts_are_the_predicted_ones(chain_records):
    for record in chain_records:
        n, states, predicted = record["model"]["n"], record["model"]["states"], record["predicted"]
        most_tree = max(record["queries"]["improvement"]["tree"])
        if record["group"] == "wlpi":
            assert record["iterations"] <= 2
            continue
        depth = record["parameters"].get("depth") or record["parameters"]["kappa_power"]
        assert predicted["iterations"] == math.ceil((n + 1) / depth)
        assert predicted["paper_iterations"] == math.ceil(n / depth)
        slack = 1 if record["group"] == "qlpi" else 0
        assert predicted["iterations"] <= record["iterations"] <= predicted["iterations"] + slack
        one, deep = tree_nodes(2, 1), tree_nodes(2, depth)
        cost = {
            "hpi": states * deep,
            "tlpi": states * one + depth * deep,
            "qlpi": states * one + sum(tree_nodes(2, level) for level in range(2, depth + 1)),
        }[record["group"]]
        assert most_tree == cost


def test_values_by_cell_fill_the_cells_that_were_goals():
    here, other = al.zoo.maze(size=10, seed=0), al.zoo.maze(size=10, seed=7)
    known = np.arange(other.num_states, dtype=float)
    values = values_by_cell(other.layout, known, here.layout)
    lookup = {tuple(cell): value for cell, value in zip(other.layout.cells.tolist(), known, strict=True)}
    filled = 0
    for cell, value in zip(here.layout.cells.tolist(), values, strict=True):
        if tuple(cell) in lookup:
            assert value == lookup[tuple(cell)]
            continue
        filled += 1
        row, column = cell
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        assert value == np.mean([lookup[place] for place in near if place in lookup])
    assert filled == len(set(other.layout.goals) - set(here.layout.goals))


def test_an_interrupted_solve_is_no_result(monkeypatch):
    stopped = dataclasses.replace(al.solve(al.zoo.chain(n=3)), status=al.Status.INTERRUPTED)
    monkeypatch.setattr("adalook.experiments.trial.solve", lambda *given, **named: stopped)
    with pytest.raises(KeyboardInterrupt):
        run_trial(Trial("x", MazeModel(8, 0.9, 0), hpi(1)))
