"""Data just on either side of every limit that decides a verdict: a threshold, a bound, the number of seeds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from adalook.report.claims.theory import iteration_bound
from adalook.report.claims.verdicts import Verdict
from tests.report import synthetic_results
from tests.report.synthetic_results import Raw, RawResults, alter, checked, induced, of

HOLDS, IN_PART, FAILS, NOT_TESTED = Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS, Verdict.NOT_TESTED


@pytest.fixture(scope="module")
def made() -> RawResults:
    return synthetic_results.raw_results()


RESTS_ON_INTERVALS = [
    "fewer-iterations",
    "trade-off",
    "pi-worse",
    "contract-faster",
    "tlpi-iterations",
    "tlpi-cheaper",
    "tlpi-as-best",
    "qlpi-as-best",
    "qlpi-better",
    "aggregation-slightly-worse",
    "aggregation-as-best",
    "better-than-fixed",
    "robust",
    "few-iterations-prior",
    "similar-task-prior",
    "wlpi-lowest",
    "depth-depends",
    "adaptive-matches",
    "adaptive-always-better",
    "wlpi-lowest-elsewhere",
]


@pytest.mark.parametrize(("seeds", "tested"), [(1, False), (4, False), (5, True)])
def test_intervals_of_too_few_seeds_decide_nothing(seeds: int, tested: bool, made: RawResults) -> None:
    few = {name: [run for run in records if run["seed"] < seeds] for name, records in made.items()}
    few["sweep"] = [run for run in few["sweep"] if run["model"]["size"] == 10 or seeds > 4]  # a size and a seed: a maze
    claims = checked(few)
    verdicts = {name: claims[name].verdict for name in RESTS_ON_INTERVALS}
    assert set(verdicts.values()) == ({HOLDS} if tested else {NOT_TESTED}), verdicts
    assert {claims[name].verdict for name in set(claims) - set(verdicts)} == {HOLDS}
    if not tested:
        claim = claims["pi-worse"]
        assert (
            claim.remark
            == f"Not tested under every way of counting ({seeds} maze{'s' * (seeds > 1)}, an interval takes 5)."
        )
        assert "[" not in claim.verdicts[0].numbers, "a point is no interval"


def total_of(made: RawResults, label: str, factor: float) -> Callable[[Raw], None]:
    """Give a run the queries of the method with this label on its seed times a factor, all in its first pass."""
    rivals = {run["seed"]: run for run in made["maze"] if run["label"] == label}

    def change(run: Raw) -> None:
        rest = [0] * (run["passes"] - 1)
        for part, counted in rivals[run["seed"]]["queries"].items():
            run["queries"][part] = {kind: [round(factor * sum(numbers)), *rest] for kind, numbers in counted.items()}
        run["prior"] = None

    return change


@pytest.mark.parametrize(
    ("name", "group", "rival", "factor", "expected"),
    [
        ("aggregation-slightly-worse", "aggregated", f"QLPI {synthetic_results.BUDGETS[-1]}", 1.24, HOLDS),
        ("aggregation-slightly-worse", "aggregated", f"QLPI {synthetic_results.BUDGETS[-1]}", 1.26, FAILS),
        ("aggregation-slightly-worse", "aggregated", f"QLPI {synthetic_results.BUDGETS[-1]}", 1.01, HOLDS),
        ("aggregation-slightly-worse", "aggregated", f"QLPI {synthetic_results.BUDGETS[-1]}", 0.99, FAILS),
        ("qlpi-as-best", "qlpi", "2-PI", 1.09, HOLDS),
        ("qlpi-as-best", "qlpi", "2-PI", 1.11, FAILS),
        ("tlpi-as-best", "tlpi", "2-PI", 1.09, HOLDS),
        ("tlpi-as-best", "tlpi", "2-PI", 1.11, FAILS),
        ("better-than-fixed", "tlpi", "2-PI", 0.99, HOLDS),
        ("better-than-fixed", "tlpi", "2-PI", 1.01, FAILS),
        ("qlpi-better", "qlpi", "2-PI", 0.99, HOLDS),
        ("qlpi-better", "qlpi", "2-PI", 1.01, FAILS),
        ("wlpi-lowest", "wlpi", "QLPI (0.3, 0.2, 0.1)", 0.99, HOLDS),
        ("wlpi-lowest", "wlpi", "QLPI (0.3, 0.2, 0.1)", 1.01, FAILS),
    ],
)
def test_queries_just_on_either_side(
    name: str, group: str, rival: str, factor: float, expected: Verdict, made: RawResults
) -> None:
    """Under the headline's convention, in which 2-PI is the best fixed depth of the made-up maze."""
    altered = made
    if name == "better-than-fixed":  # of TLPI alone, so that QLPI does not make it hold in part
        altered = made | {"maze": [run for run in made["maze"] if run["group"] != "qlpi"]}
    assert checked(alter(altered, of(group), total_of(made, rival, factor), "maze"))[name].headline is expected


@pytest.mark.parametrize(("share", "expected"), [(0.86, HOLDS), (0.84, IN_PART), (0.51, IN_PART), (0.49, FAILS)])
def test_shares_of_states_just_on_either_side(share: float, expected: Verdict, made: RawResults) -> None:
    def contract(run: Raw) -> None:
        run["effective_lookahead"] = [[0.0, 1.0 - share, share] + [0.0] * 18] * run["iterations"]

    assert checked(alter(made, of("hpi", depth=1), contract, "maze"))["contract-faster"].verdict is expected


@pytest.mark.parametrize(
    ("name", "group", "power_of_bound"),
    [
        ("fixed-bound", "hpi", lambda depth: depth),
        ("theorem-1-iterations", "tlpi", lambda depth: depth - 1),
        ("theorem-2-iterations", "qlpi", lambda depth: 2),  # as made up: budgets that induce γ²
    ],
)
def test_iterations_just_on_either_side_of_a_bound(
    name: str, group: str, power_of_bound: Callable[[int], int], made: RawResults
) -> None:
    def iterations(beyond: int) -> Callable[[Raw], None]:
        def change(run: Raw) -> None:
            model, depth = run["model"], run["parameters"].get("depth", run["parameters"].get("kappa_power", 2))
            kappa = model["discount"] ** power_of_bound(depth)
            exact = (
                model["states"] * (model["actions"] - 1) * math.log(1 / (1 - model["discount"])) / math.log(1 / kappa)
            )
            assert iteration_bound(model["states"], model["actions"], model["discount"], kappa) == math.ceil(exact)
            run["iterations"] = math.ceil(exact) + beyond

        return change

    maze = {"maze": made["maze"]}
    assert checked(alter(maze, of(group), iterations(0)))[name].verdict is HOLDS
    assert checked(alter(maze, of(group), iterations(1)))[name].verdict is FAILS


@pytest.mark.parametrize(("power_short", "expected"), [(0.0, HOLDS), (0.01, FAILS)])
def test_induced_contraction_just_on_either_side(power_short: float, expected: Verdict, made: RawResults) -> None:
    assert checked(alter(made, of("qlpi"), induced(power_short), "chain"))["chain-qlpi-contraction"].verdict is expected
