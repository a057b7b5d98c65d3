"""Verdicts, and what the claims are put together from: see `claims`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from adalook.report.experiment import Experiment
from adalook.report.records import CONVENTIONS, Convention
from adalook.report.statistics import Estimate

SIMILAR = 1.10
"""'As good as' and 'similar': at most 10% more queries, with the whole interval."""
LOOKAHEADS = ("root", "tree", "shared")
ANY_CONVENTION = "all alike"
"""Iterations and distances do not depend on what counts as a query."""


class Verdict(Enum):
    """What the data say."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold here"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Judgement:
    """The verdict under one convention of counting queries, and the figures it rests on."""

    convention: str
    verdict: Verdict
    figures: str
    score: str = ""
    """In how many cases the test was passed, such as '9 of 10'."""


@dataclass(frozen=True)
class Claim:
    """A row of the claims table."""

    id: str
    paper_place: str
    claim: str
    test: str
    conventions: list[Judgement]
    verdict: Verdict
    remark: str
    """Where it holds and where it does not, if that differs between conventions; else empty."""


Experiments = Mapping[str, Experiment]


@dataclass(frozen=True)
class Question:
    """A claim before it is judged; `judge` gets the experiments it needs and no others."""

    id: str
    place: str
    claim: str
    test: str
    needs: tuple[str, ...]
    """Any of these experiments will do; the test is applied to all that are there."""
    judge: Callable[[Experiments], list[Judgement]]
    note: str = field(default="")
    """What explains the verdict whenever the claim does not fully hold."""


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Of several verdicts the one they share; 'in part' where they differ; what was not tested has no voice."""
    heard = {verdict for verdict in verdicts if verdict is not Verdict.NOT_TESTED}
    if not heard:
        return Verdict.NOT_TESTED
    return heard.pop() if len(heard) == 1 else Verdict.IN_PART


class Grade(NamedTuple):
    """A verdict and how many cases speak for it."""

    verdict: Verdict
    score: str


NO_RUNS = (Grade(Verdict.NOT_TESTED, ""), "no such runs")
"""What is found where the experiment has nothing to test."""

Finding = tuple[Grade, str]
"""A grade and the figures it rests on."""


def grade(passed: Iterable[bool]) -> Grade:
    """All: holds; some: in part; none: does not hold; no case at all: not tested.

    >>> grade([True, False, True])
    Grade(verdict=<Verdict.IN_PART: 'holds in part'>, score='2 of 3')
    """
    cases = list(passed)
    score = f"{sum(cases):,} of {len(cases):,}"
    if not cases:
        return NO_RUNS[0]
    if all(cases):
        return Grade(Verdict.HOLDS, score)
    return Grade(Verdict.IN_PART if any(cases) else Verdict.FAILS, score)


def grade_nearly(exact: Iterable[bool], nearly: Iterable[bool]) -> Grade:
    """Exactly right in every case: holds; nearly right in every case: in part; else it does not hold."""
    verdict, count = grade(exact)
    score = f"exact in {count}" if count else ""
    if verdict in (Verdict.HOLDS, Verdict.NOT_TESTED):
        return Grade(verdict, score)
    return Grade(Verdict.IN_PART if all(nearly) else Verdict.FAILS, score)


def alike(found: Finding) -> list[Judgement]:
    """One judgement for all conventions."""
    return [_judgement(ANY_CONVENTION, found)]


def under_each(judge: Callable[[Convention], Finding]) -> list[Judgement]:
    """One judgement per convention, the headline first."""
    return [_judgement(str(convention), judge(convention)) for convention in CONVENTIONS]


def under_each_lookahead(judge: Callable[[str], Finding]) -> list[Judgement]:
    """One judgement per way to count the lookahead, where the evaluation is left out."""
    return [_judgement(improvement, judge(improvement)) for improvement in LOOKAHEADS]


def _judgement(convention: str, found: Finding) -> Judgement:
    (verdict, score), figures = found
    return Judgement(convention, verdict, figures, score)


def interval(estimate: Estimate, digits: int = 2) -> str:
    """
    >>> interval(Estimate(0.914, 0.87, 0.951))
    '0.91 [0.87, 0.95]'
    """
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"
