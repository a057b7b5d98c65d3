"""The table of claims: every claim of the paper, and ours, checked against the experiments.

A `Claim` holds the paper's sentence in our words, the test in words, and a function that applies the test to the
experiments. Nothing else decides the verdict: other data, other verdict. Where the answer depends on what counts as a
query, the test is applied under each of the six conventions, and the claim as a whole holds only if it holds under all
of them; the verdict under the headline convention is shown beside that. `verdicts.RULE` is the rule in words.

Comparisons are paired over seeds. "[a, b]" is a 95% bootstrap interval. The best fixed depth is the one with the lowest
mean in hindsight, which favours it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adalook.report.claims import chain, learning, maze, sweep, theory
from adalook.report.claims.learning import LearningExperiments
from adalook.report.claims.verdicts import (
    ANY_CONVENTION,
    RULE,
    CheckedClaim,
    Claim,
    ConventionVerdict,
    Data,
    Experiments,
    Verdict,
    overall,
)
from adalook.report.data.experiment import ExperimentData
from adalook.report.data.learning import LearningData
from adalook.report.data.records import CONVENTIONS, COUNTING, HEADLINE

PLANNING_CLAIMS: tuple[Claim[ExperimentData], ...] = (*chain.CLAIMS, *theory.CLAIMS, *maze.CLAIMS, *sweep.CLAIMS)


LEARNING_CLAIMS: tuple[Claim[LearningData], ...] = learning.CLAIMS


def check_claims(experiments: Experiments, trained: LearningExperiments | None = None) -> list[CheckedClaim]:
    """Check every claim against the experiments there are; a claim without data is 'not tested'.

    >>> {claim.verdict.value for claim in check_claims({})}
    {'not tested'}
    """
    return [*(_check(claim, experiments) for claim in PLANNING_CLAIMS), *check_learning_claims(trained or {})]


def check_learning_claims(trained: LearningExperiments) -> list[CheckedClaim]:
    """Check the claims about learning that the experiments there are can say something about."""
    return [_check(claim, trained) for claim in LEARNING_CLAIMS]


def _check(claim: Claim[Data], experiments: Mapping[str, Data]) -> CheckedClaim:
    there = {name: experiments[name] for name in claim.needs if name in experiments}
    verdicts = claim.check(there) if there else []
    verdict = overall([each.verdict for each in verdicts])
    note = claim.note if verdict in (Verdict.IN_PART, Verdict.FAILS) else ""
    explanation = claim.explain(there) if there and verdict is not Verdict.NOT_TESTED else ""
    remark = " ".join(part for part in (_where(verdicts), note, explanation) if part)
    return CheckedClaim(claim.id, claim.paper_place, claim.claim, claim.test, verdicts, verdict, remark)


def _where(verdicts: Sequence[ConventionVerdict]) -> str:
    """Say under which conventions a claim holds, in part or not, and in how many cases."""
    if all(v.verdict is Verdict.HOLDS or (v.verdict is Verdict.NOT_TESTED and not v.score) for v in verdicts):
        return ""
    parts = []
    for verdict in Verdict:
        there = [each for each in verdicts if each.verdict is verdict]
        if there:
            parts.append(f"{verdict.value} {_conventions(there)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _conventions(verdicts: Sequence[ConventionVerdict]) -> str:
    """Name conventions with their scores, without scores of a single case, which say no more than the verdict."""
    shown = ["" if each.score in ("", "0 of 1", "1 of 1") else each.score for each in verdicts]
    if verdicts[0].convention == ANY_CONVENTION:
        return f"({shown[0]})" if shown[0] else ""
    if len(verdicts) == len(CONVENTIONS) and len(set(shown)) == 1:
        return "under every way of counting" + (f" ({shown[0]})" if shown[0] else "")
    names = [f"{v.convention} ({score})" if score else v.convention for v, score in zip(verdicts, shown, strict=True)]
    named = ", ".join(dict.fromkeys(names))
    return f"in {named}" if verdicts[0].convention in EXPERIMENTS else f"under {named}"


def claims_markdown(claims: Sequence[CheckedClaim]) -> str:
    """Return the claims as Markdown: the table of verdicts, and below it every test with its numbers."""
    lines = [
        f"{COUNTING} Of these {len(CONVENTIONS)} ways of counting {HEADLINE} is the headline. {RULE} Brackets are 95% "
        "bootstrap intervals over seeds. The best fixed depth is picked in hindsight, for each way of counting.",
        "",
        f"| | Paper | Claim | {HEADLINE} | All ways | Remark |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {number} | {_cell(claim.paper_place)} | {_cell(claim.claim)} | **{claim.headline.value}** "
        f"| {claim.verdict.value} | {_cell(claim.remark)} |"
        for number, claim in enumerate(claims, start=1)
    ]
    for number, claim in enumerate(claims, start=1):
        lines += ["", f"### {number}. {claim.claim}", "", f"*{claim.paper_place}.* Test: {claim.test}", ""]
        if claim.verdicts:
            way = "Experiment" if claim.verdicts[0].convention in EXPERIMENTS else "Queries counted by"
            lines += [f"| {way} | Verdict | Passed | Numbers |", "|---|---|---|---|"]
            lines += [
                f"| {v.convention} | {v.verdict.value} | {v.score} | {_cell(v.numbers)} |" for v in claim.verdicts
            ]
        else:
            lines.append("Not tested: the experiment is not among the results.")
    return "\n".join(lines) + "\n"


EXPERIMENTS = tuple(learning.TITLES.values())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
