"""Claims, their verdicts under each way of counting queries, and the rules by which verdicts are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from adalook.report.data.experiment import ExperimentData
from adalook.report.data.records import CONVENTIONS, HEADLINE, Convention
from adalook.report.data.statistics import FEWEST_SAMPLES, Estimate

SIMILAR = 1.10
"""'As good as' and 'similar': at most 10% more queries, with the whole interval."""
LOOKAHEADS = ("root", "tree", "shared")
ANY_CONVENTION = "all alike"
"""Iterations and distances do not depend on what counts as a query."""
IN_PART_SHARE = 0.5
"""'Holds in part' takes at least this share of the cases, under at least one way of counting."""
RULE = (
    "A claim holds under one way of counting if all cases of its test pass; it holds in part if at least half of them "
    "do, or what its test names as 'in part'; otherwise it does not hold here. Over all ways of counting it holds if "
    "it holds under each, and in part if it holds, or holds in part, under at least one. A test that rests on 95% "
    f"intervals is not made with fewer than {FEWEST_SAMPLES} mazes. Claims about learning are checked in each learning "
    "experiment instead, and over all of them in the same way."
)
"""How verdicts come about, in words; `grade` and `overall` are the same in code."""


class Verdict(Enum):
    """The verdict of the data on a claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold here"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class ConventionVerdict:
    """The verdict under one convention of counting queries, or in one experiment, and the numbers it rests on."""

    convention: str
    verdict: Verdict
    numbers: str
    score: str = ""
    """In how many cases the test was passed, such as '9 of 10'."""


@dataclass(frozen=True)
class CheckedClaim:
    """A claim with its verdicts: a row of the claims table."""

    id: str
    paper_place: str
    claim: str
    test: str
    verdicts: list[ConventionVerdict]
    """One for each convention, or a single one where counting does not matter."""
    verdict: Verdict
    """Over all conventions."""
    remark: str
    """Where it holds and where it does not, if that differs between conventions, and why, where the data say so."""

    @property
    def headline(self) -> Verdict:
        """The verdict under the headline convention, whatever the others say."""
        if not self.counts_queries:
            return self.verdict
        ours = (str(HEADLINE), HEADLINE.improvement)
        found = (each.verdict for each in self.verdicts if each.convention in ours)
        return next(found, Verdict.NOT_TESTED)

    @property
    def counts_queries(self) -> bool:
        """Whether the verdict depends on what counts as a query."""
        ways = {*map(str, CONVENTIONS), *LOOKAHEADS}
        return any(each.convention in ways for each in self.verdicts)


Experiments = Mapping[str, ExperimentData]
Data = TypeVar("Data")
"""Of an experiment, on planning or on learning."""


@dataclass(frozen=True)
class Claim(Generic[Data]):
    """A claim of the paper, or ours, and the test that decides whether it holds.

    `check` gets the experiments that the claim needs and no others.
    """

    id: str
    paper_place: str
    claim: str
    test: str
    needs: tuple[str, ...]
    """Any of these experiments will do; the test is applied to all that are there."""
    check: Callable[[Mapping[str, Data]], list[ConventionVerdict]]
    note: str = field(default="")
    """What explains the verdict whenever the claim does not fully hold."""
    explain: Callable[[Mapping[str, Data]], str] = field(default=lambda experiments: "")
    """Returns what the data say about the reasons for the verdict, or nothing."""


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict that all share, or 'in part' where they differ; those not tested do not count."""
    heard = {verdict for verdict in verdicts if verdict is not Verdict.NOT_TESTED}
    if not heard:
        return Verdict.NOT_TESTED
    return heard.pop() if len(heard) == 1 else Verdict.IN_PART


Passes = Callable[[Estimate], bool]
"""Whether an estimate with its interval passes a test."""


class Grade(NamedTuple):
    """A verdict and in how many cases the test was passed."""

    verdict: Verdict
    score: str


NO_RUNS = (Grade(Verdict.NOT_TESTED, ""), "no such runs")
"""What is found where the experiment has nothing to test."""

Finding = tuple[Grade, str]
"""A grade and the numbers it rests on."""


def grade(passed: Iterable[bool]) -> Grade:
    """Return the verdict for cases that passed or not.

    All passed: holds; at least half: in part; fewer: does not hold; no case at all: not tested.

    >>> grade([True, False, True])
    Grade(verdict=<Verdict.IN_PART: 'holds in part'>, score='2 of 3')
    >>> grade([True, False, False]).verdict
    <Verdict.FAILS: 'does not hold here'>
    """
    cases = list(passed)
    score = f"{sum(cases):,} of {len(cases):,}"
    if not cases:
        return NO_RUNS[0]
    if all(cases):
        return Grade(Verdict.HOLDS, score)
    return Grade(Verdict.IN_PART if sum(cases) >= IN_PART_SHARE * len(cases) else Verdict.FAILS, score)


def grade_intervals(
    estimates: Iterable[Estimate], passes: Passes, rate: Callable[[Sequence[bool]], Grade] = grade
) -> Grade:
    """Return the grade of tests that rest on intervals: not tested where there are too few samples for one.

    >>> grade_intervals([Estimate(1.18, 1.18, 1.18, samples=1)], lambda gap: gap.low > 1.0)
    Grade(verdict=<Verdict.NOT_TESTED: 'not tested'>, score='1 maze, an interval takes 5')
    """
    found = list(estimates)
    fewest = min((estimate.samples for estimate in found), default=FEWEST_SAMPLES)
    if fewest < FEWEST_SAMPLES:
        mazes = "1 maze" if fewest == 1 else f"{fewest} mazes"
        return Grade(Verdict.NOT_TESTED, f"{mazes}, an interval takes {FEWEST_SAMPLES}")
    return rate([passes(estimate) for estimate in found])


def grade_nearly(exact: Iterable[bool], nearly: Iterable[bool]) -> Grade:
    """Return 'holds' if every case is exactly right, 'in part' if every case is nearly right, else 'fails'."""
    verdict, count = grade(exact)
    score = f"exact in {count}" if count else ""
    if verdict in (Verdict.HOLDS, Verdict.NOT_TESTED):
        return Grade(verdict, score)
    return Grade(Verdict.IN_PART if all(nearly) else Verdict.FAILS, score)


def alike(found: Finding) -> list[ConventionVerdict]:
    """Return a single verdict, for all conventions."""
    return [_convention_verdict(ANY_CONVENTION, found)]


def under_each(check: Callable[[Convention], Finding]) -> list[ConventionVerdict]:
    """Return a verdict per convention, the headline first."""
    return [_convention_verdict(str(convention), check(convention)) for convention in CONVENTIONS]


def under_each_lookahead(check: Callable[[str], Finding]) -> list[ConventionVerdict]:
    """Return a verdict per way to count the lookahead, where the evaluation is left out."""
    return [_convention_verdict(improvement, check(improvement)) for improvement in LOOKAHEADS]


def _convention_verdict(convention: str, found: Finding) -> ConventionVerdict:
    (verdict, score), numbers = found
    return ConventionVerdict(convention, verdict, numbers, score)
