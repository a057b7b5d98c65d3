"""Claims are judged by the data and by nothing else: made-up data for which all hold, then altered claim by claim."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adalook.report.claims.table import check_claims, claims_markdown
from adalook.report.claims.verdicts import RULE, Verdict, grade
from adalook.report.data.method_runs import LIKE_FOR_LIKE, cheapest, cost_ratio, method_runs
from adalook.report.data.records import CONVENTIONS
from adalook.report.pages.experiments import report_page
from tests.report import synthetic_results
from tests.report.synthetic_results import Raw, RawResults, alter, checked, dearer, induced, of

HOLDS, IN_PART, FAILS, NOT_TESTED = Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS, Verdict.NOT_TESTED


@pytest.fixture(scope="module")
def made() -> RawResults:
    return synthetic_results.raw_results()


def more_iterations(count: int) -> Callable[[Raw], None]:
    def change(run: Raw) -> None:
        run["iterations"] += count

    return change


def set_to(**entries: Any) -> Callable[[Raw], None]:
    return lambda run: run.update(copy.deepcopy(entries))


def slower(run: Raw) -> None:
    run["distance"] = [distance**0.5 for distance in run["distance"]]


def many_deep(run: Raw) -> None:
    run["deep_states"] = [2 * count for count in run["deep_states"]]


def few_contract(run: Raw) -> None:
    run["effective_lookahead"] = [[0.0, 0.8] + [0.01] * 19 + [0.01]] * run["iterations"]


def flat(run: Raw) -> None:
    run["queries"]["improvement"] = {name: [1000] * run["passes"] for name in ("tree", "root", "shared")}


MANY = 10**7
ADAPTIVE = ("tlpi", "qlpi")

ALTERATIONS: dict[str, tuple[str, Callable[[Raw], bool], Callable[[Raw], None], Verdict]] = {
    "chain-pi-iterations": ("chain", of("hpi", depth=1), more_iterations(1), IN_PART),
    "chain-hpi-iterations": ("chain", of("hpi", deeper_than=1), more_iterations(3), FAILS),
    "chain-same-iterations": ("chain", of("qlpi"), more_iterations(1), IN_PART),
    "chain-qlpi-contraction": ("chain", of("qlpi"), induced(1), FAILS),
    "chain-tlpi-states": ("chain", of("tlpi"), many_deep, FAILS),
    "chain-iteration-cost": ("chain", of(*ADAPTIVE), dearer(1.1), FAILS),
    "chain-total-cost": ("chain", of(*ADAPTIVE), dearer(9.0), FAILS),
    "chain-wlpi": ("chain", of("wlpi"), dearer(50.0), FAILS),
    "fixed-contraction": ("maze", of("hpi"), slower, FAILS),
    "fixed-bound": ("maze", of("hpi"), set_to(iterations=MANY), FAILS),
    "adaptive-converge": ("maze", of(*ADAPTIVE), set_to(status="ITERATION_LIMIT"), FAILS),
    "tlpi-contraction": ("maze", of("tlpi"), slower, FAILS),
    "theorem-1-iterations": ("maze", of("tlpi"), set_to(iterations=MANY), FAILS),
    "theorem-1-rate": ("maze", of("tlpi"), more_iterations(30), FAILS),
    "theorem-1-cost": ("maze", of("tlpi"), dearer(99.0, "tree"), IN_PART),
    "theorem-2-iterations": ("maze", of("qlpi"), set_to(iterations=MANY), FAILS),
    "theorem-2-cost": ("maze", of("qlpi"), dearer(99999.0, "root"), IN_PART),
    "fewer-iterations": ("maze", of("hpi"), set_to(iterations=7), FAILS),
    "trade-off": ("maze", of("hpi", depth=1), dearer(0.1), FAILS),
    "pi-worse": ("maze", of("hpi", depth=1), dearer(0.1), FAILS),
    "contract-faster": ("maze", of("hpi", depth=1), few_contract, FAILS),
    "tlpi-iterations": ("maze", of("tlpi"), more_iterations(9), FAILS),
    "tlpi-cheaper": ("maze", of("tlpi"), dearer(99.0), FAILS),
    "tlpi-as-best": ("maze", of("tlpi"), dearer(9.0), FAILS),
    "qlpi-as-best": ("maze", of("qlpi"), dearer(9.0), FAILS),
    "qlpi-better": ("maze", of("qlpi"), dearer(9.0), FAILS),
    "aggregation-slightly-worse": ("maze", of("aggregated"), dearer(0.5), FAILS),
    "aggregation-as-best": ("maze", of("aggregated"), dearer(9.0), FAILS),
    "better-than-fixed": ("maze", of(*ADAPTIVE), dearer(9.0), FAILS),
    "robust": ("maze", of("tlpi", depth=2), dearer(99.0), FAILS),
    "few-iterations-prior": ("maze", of("few"), dearer(9.0), FAILS),
    "similar-task-prior": ("maze", of("similar"), dearer(9.0), FAILS),
    "wlpi-lowest": ("maze", of("wlpi"), dearer(9.0), FAILS),
    "depth-depends": ("sweep", of("hpi"), flat, FAILS),
    "adaptive-matches": ("sweep", of("tlpi", "wlpi"), dearer(9.0), FAILS),
    "adaptive-always-better": ("sweep", of("tlpi", "wlpi"), dearer(9.0), FAILS),
    "wlpi-lowest-elsewhere": ("sweep", of("wlpi"), dearer(9.0), FAILS),
}


def test_all_claims_hold_for_data_made_up_that_way(made: RawResults) -> None:
    wrong = {name: (claim.remark, claim.verdicts) for name, claim in checked(made).items() if claim.verdict != HOLDS}
    assert not wrong


def test_every_claim_is_tried_with_altered_data(made: RawResults) -> None:
    assert set(ALTERATIONS) == set(checked(made))


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_data_change_the_verdict(name: str, made: RawResults) -> None:
    experiment, fits, change, expected = ALTERATIONS[name]
    claim = checked(alter({experiment: made[experiment]}, fits, change))[name]
    assert claim.verdict is expected, claim.verdicts
    assert claim.remark


@pytest.mark.parametrize(
    ("name", "group", "label"),
    [
        ("tlpi-as-best", "tlpi", "TLPI γ^3"),
        ("qlpi-as-best", "qlpi", "QLPI (0.3, 0.2, 0.1)"),
        ("aggregation-as-best", "aggregated", "QLPI, 2×2 squares"),
        ("better-than-fixed", "tlpi", "TLPI γ^2"),
        ("few-iterations-prior", "few", "QLPI, prior of 2 PI passes"),
    ],
)
def test_one_bad_setting_makes_it_hold_in_part(name: str, group: str, label: str, made: RawResults) -> None:
    claim = checked(alter(made, of(group, label=label), dearer(9.0), "maze"))[name]
    assert claim.verdict is IN_PART
    assert {each.verdict for each in claim.verdicts} == {IN_PART}
    assert claim.remark.startswith("Holds in part under every way of counting (")


def test_one_good_setting_is_enough_to_be_better(made: RawResults) -> None:
    claim = checked(alter(made, of("qlpi", label="QLPI (0.3, 0.2, 0.1)"), dearer(9.0), "maze"))["qlpi-better"]
    assert claim.verdict is HOLDS


def test_every_convention_is_judged_by_its_own_queries(made: RawResults) -> None:
    claim = checked(alter(made, of("qlpi"), dearer(99.0, "tree"), "maze"))["qlpi-as-best"]
    verdicts = {each.convention: each.verdict for each in claim.verdicts}
    assert list(verdicts) == [str(convention) for convention in CONVENTIONS]
    assert all((verdict is FAILS) == name.startswith("tree") for name, verdict in verdicts.items())
    assert claim.verdict is IN_PART
    assert claim.remark.startswith("Holds under root + simulated (2 of 2), shared + simulated")
    assert "does not hold here under tree + simulated (0 of 2), tree + exact" in claim.remark


def test_the_price_of_a_prior_counts_only_where_it_is_to_count(made: RawResults) -> None:
    def costly(run: Raw) -> None:
        run["prior"]["queries"]["improvement"] = dict.fromkeys(("tree", "root", "shared"), 10**9)

    assert checked(alter(made, of("aggregated"), costly, "maze"))["aggregation-as-best"].verdict is FAILS
    assert checked(alter(made, of("similar"), costly, "maze"))["similar-task-prior"].verdict is HOLDS


def test_a_fixed_depth_that_is_lucky_on_some_seeds_is_not_beaten_for_sure(made: RawResults) -> None:
    """The mean of QLPI stays below, but the interval does not."""

    def unsteady(run: Raw) -> None:
        dearer(0.2 if run["seed"] < synthetic_results.SEEDS / 2 else 2.4)(run)

    claim = checked(alter(made, of("qlpi"), unsteady, "maze"))["qlpi-better"]
    assert claim.verdict is FAILS


def in_cells(group: str, *places: tuple[int, float]) -> Callable[[Raw], bool]:
    return lambda run: run["group"] == group and (run["model"]["size"], run["model"]["discount"]) in places


def test_another_winner_in_each_cell_is_no_match(made: RawResults) -> None:
    """Picked anew for each cell in hindsight some setting is good everywhere; no single one is, not even on average."""
    altered = alter(made, in_cells("tlpi", (10, 0.9), (10, 0.98)), dearer(9.0), "sweep")
    altered = alter(altered, in_cells("wlpi", (20, 0.9), (20, 0.98)), dearer(9.0), "sweep")
    claim = checked(altered)["adaptive-matches"]
    assert claim.verdict is FAILS
    assert "WLPI falls short at size 20 γ 0.9, size 20 γ 0.98" in claim.verdicts[0].numbers
    assert "some setting is good in 4 of 4" in claim.verdicts[0].numbers


def test_good_over_all_but_not_in_every_cell_is_in_part(made: RawResults) -> None:
    altered = alter(made, in_cells("wlpi", (20, 0.9)), dearer(2.2), "sweep")
    altered = alter(altered, of("tlpi"), dearer(9.0), "sweep")
    for name in ("adaptive-matches", "adaptive-always-better", "wlpi-lowest-elsewhere"):
        claim = checked(altered)[name]
        assert claim.headline is IN_PART, name
        assert claim.verdicts[0].score == "WLPI in 3 of 4 cells"


def test_a_setting_that_is_good_on_some_mazes_only_does_not_match_for_sure(made: RawResults) -> None:
    """Mean and median over mazes are below 1.10, but one maze of six decides: the interval is not."""

    def unsteady(run: Raw) -> None:
        dearer(4.0 if (run["seed"], run["model"]["size"]) == (0, 10) else 1.15)(run)

    altered = alter(made, of("wlpi", "tlpi"), unsteady, "sweep")
    each = checked(altered)["adaptive-matches"].verdicts[0]
    assert each.verdict is FAILS
    low, high = each.numbers.split("[")[1].split("]")[0].split(", ")
    assert float(low) < 1.10 < float(high)


def test_what_was_not_run_is_not_judged(made: RawResults) -> None:
    claims = checked({"chain": made["chain"]})
    assert claims["chain-total-cost"].verdict is HOLDS
    assert claims["qlpi-as-best"].verdict is NOT_TESTED
    assert claims["qlpi-as-best"].verdicts == []


@pytest.mark.parametrize("name", ["chain", "maze", "sweep"])
def test_an_experiment_without_records_gives_no_verdicts(name: str) -> None:
    assert {claim.verdict for claim in checked({name: []}).values()} == {NOT_TESTED}


def test_groups_that_were_not_run_give_no_verdicts(made: RawResults) -> None:
    fixed_only = {name: [run for run in records if run["group"] == "hpi"] for name, records in made.items()}
    claims = checked(fixed_only)
    assert claims["trade-off"].verdict is HOLDS
    for name in ("tlpi-as-best", "qlpi-better", "wlpi-lowest", "chain-total-cost", "adaptive-matches", "robust"):
        assert claims[name].verdict is NOT_TESTED, name


def test_the_table_shows_every_claim_and_every_convention(made: RawResults) -> None:
    claims = check_claims(synthetic_results.load(made))
    text = claims_markdown(claims)
    for number, claim in enumerate(claims, start=1):
        assert f"### {number}. {claim.claim}" in text
        assert claim.test in text
    row = next(line for line in text.splitlines() if line.startswith("| 1 |"))
    assert row.count(" | ") == 5
    assert RULE in text.splitlines()[0]
    assert text.count("| tree + exact | holds |") == sum(len(claim.verdicts) == 6 for claim in claims)


def test_the_table_survives_bars_in_text(made: RawResults) -> None:
    altered = alter(made, of("qlpi", label="QLPI (0.3, 0.2, 0.1)"), set_to(label="a|b"), "maze")
    line = next(
        line for line in claims_markdown(check_claims(synthetic_results.load(altered))).splitlines() if "a\\|b" in line
    )
    assert line.replace("\\|", "").count("|") == 5


# The headline, and what is said beside a verdict -------------------------------------------------------------------


def test_the_headline_has_a_verdict_of_its_own(made: RawResults) -> None:
    claims = checked(alter(made, of("qlpi"), dearer(99.0, "root"), "maze"))
    claim = claims["qlpi-as-best"]
    assert (claim.headline, claim.verdict) == (FAILS, IN_PART)
    row = next(line for line in claims_markdown(list(claims.values())).splitlines() if claim.claim in line)
    assert f"| **{FAILS.value}** | {IN_PART.value} |" in row
    assert claims["chain-iteration-cost"].headline is HOLDS  # lookahead alone: root
    assert claims["fewer-iterations"].headline is HOLDS  # counting does not matter
    assert checked({})["qlpi-as-best"].headline is NOT_TESTED
    assert replace(claim, verdicts=claim.verdicts[::-1]).headline is FAILS, "by name, not by place"


def test_the_page_shows_both_verdicts_and_the_rule(made: RawResults) -> None:
    experiments = synthetic_results.load(alter(made, of("qlpi"), dearer(99.0, "root"), "maze"))
    page = report_page(experiments, [], check_claims(experiments))
    article = page.split('id="claim-qlpi-as-best"')[1].split("</article>")[0]
    assert f'root + simulated</span> <span class="verdict not">{FAILS.value}<' in article
    assert f'all ways of counting</span> <span class="verdict part">{IN_PART.value}<' in article
    assert "at least half of them do" in page
    assert f" × {HOLDS.value}, " in page.split("Under root + simulated, the headline, alone: ")[1].split("</p>")[0]


def test_the_page_says_that_wlpi_is_not_counted_like_the_others(made: RawResults) -> None:
    maze = synthetic_results.load(made)["maze"]
    numbers = report_page({"maze": maze}, [], []).split('id="numbers"')[1].split("</section>")[0]
    wave, best = (method_runs(maze.records, "wlpi")[0], cheapest(method_runs(maze.records, "hpi"), LIKE_FOR_LIKE))
    assert best is not None
    gap = cost_ratio(wave, best, LIKE_FOR_LIKE).value
    assert f"like for like (shared + simulated) it takes {gap:.2f} [" in numbers
    one_seed = synthetic_results.load({"maze": [run for run in made["maze"] if run["seed"] == 0]})["maze"]
    numbers = report_page({"maze": one_seed}, [], []).split('id="numbers"')[1].split("</section>")[0]
    assert " × the best fixed depth" in numbers
    assert "[" not in numbers, "a point is no interval"


def test_in_part_takes_half_of_the_cases() -> None:
    assert grade([True, True, False, False]).verdict is IN_PART
    assert grade([True, True, False, False, False]).verdict is FAILS


def test_wlpi_is_compared_like_for_like(made: RawResults) -> None:
    altered = alter(made, of("hpi"), dearer(0.5, "shared"), "maze")
    before, after = (checked(raw_results)["wlpi-lowest"].remark for raw_results in (made, altered))
    assert "its count is the same under tree, root and shared; like for like (shared + simulated) it takes " in before
    assert "On the default maze" in checked(made)["wlpi-lowest"].claim
    assert before != after


def test_a_best_depth_at_the_edge_is_named_as_such(made: RawResults) -> None:
    assert "largest depth tried" not in str(checked(made)["trade-off"])
    cheap = checked(alter(made, of("hpi", depth=4), dearer(0.001, "shared"), "maze"))
    shared = [each for each in cheap["qlpi-as-best"].verdicts if each.convention.startswith("shared")]
    assert all("over 4-PI, the largest depth tried (" in each.numbers for each in shared)
    remark = cheap["trade-off"].remark
    assert "Under shared + simulated, shared + exact the best is 4-PI, the largest depth tried" in remark


def test_sweep_claims_count_the_cells_at_the_edge(made: RawResults) -> None:
    for name in ("depth-depends", "adaptive-matches"):
        numbers = checked(made)[name].verdicts[0].numbers
        assert "the best fixed depth is the largest depth tried in 1 of 4 cells" in numbers
    deeper = alter(made, of("hpi", depth=3), lambda run: dearer(9.0)(run), "sweep")
    assert "largest depth tried" not in checked(deeper)["depth-depends"].verdicts[0].numbers


def test_the_exception_to_the_headline_is_named(made: RawResults) -> None:
    assert checked(made)["better-than-fixed"].remark == ""
    remark = checked(alter(made, of("tlpi", depth=2), dearer(1.3), "maze"))["better-than-fixed"].remark
    assert "Under root + simulated TLPI γ^2 needs more queries: 8.5 iterations against 8.5 of 2-PI" in remark
    assert remark.count("needs more queries") == 1
    assert "only the speed of PI" in remark


def test_a_prior_that_disappoints_is_explained_by_its_runs(made: RawResults) -> None:
    claims = checked(alter(made, of("few", "similar"), dearer(9.0), "maze"))
    few, similar = claims["few-iterations-prior"].remark, claims["similar-task-prior"].remark
    assert "the methods need 6.5 iterations, with V* 5.5 (PI: 12.5)" in few
    left = [0.98**count for count in (2, 3)]  # as made up: the distance shrinks by γ in every pass of PI
    assert (
        f"After 2 to 3 passes of PI the largest distance to V* is still {100 * left[1]:.0f}% to {100 * left[0]:.0f}%"
        in few
    )
    assert "The prior itself is 0% of the queries" in few
    assert "The prior itself" not in similar, "the other task counts as solved already"
