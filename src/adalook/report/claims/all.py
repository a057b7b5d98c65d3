"""The paper's planning claims, one by one, held against the data.

Every claim is a `Question`: the paper's sentence in our words, the test in words, and a function that applies the test
to the experiments. Nothing else decides the verdict: other data, other verdict. Where the answer depends on what counts
as a query, the test is applied under each of the six conventions, and the claim as a whole holds only if it holds under
all of them; the verdict of the headline's convention stands beside that. `judgement.RULE` is the rule in words.

Comparisons are paired over seeds. "[a, b]" is a 95% bootstrap interval. The best fixed depth is the one with the lowest
mean in hindsight, so it has the luck of the draw on its side.
"""

from __future__ import annotations

from collections.abc import Sequence

from adalook.report.claims import chain as claims_chain
from adalook.report.claims import maze as claims_maze
from adalook.report.claims import sweep as claims_sweep
from adalook.report.claims import theory as claims_theory
from adalook.report.claims.verdicts import (
    ANY_CONVENTION,
    RULE,
    Claim,
    Experiments,
    Judgement,
    Question,
    Verdict,
    overall,
)
from adalook.report.data.records import CONVENTIONS, HEADLINE

__all__ = ["Claim", "Judgement", "Verdict", "claims_markdown", "judge_claims"]

QUESTIONS: tuple[Question, ...] = (
    *claims_chain.QUESTIONS,
    *claims_theory.QUESTIONS,
    *claims_maze.QUESTIONS,
    *claims_sweep.QUESTIONS,
)


def judge_claims(experiments: Experiments) -> list[Claim]:
    """Judge every claim by the experiments there are; a claim without data is 'not tested'.

    >>> [claim.verdict.value for claim in judge_claims({})][:2]
    ['not tested', 'not tested']
    """
    return [_judge(question, experiments) for question in QUESTIONS]


def _judge(question: Question, experiments: Experiments) -> Claim:
    there = {name: experiments[name] for name in question.needs if name in experiments}
    judgements = question.judge(there) if there else []
    verdict = overall([judgement.verdict for judgement in judgements])
    note = question.note if verdict in (Verdict.IN_PART, Verdict.FAILS) else ""
    data_say = question.explain(there) if there and verdict is not Verdict.NOT_TESTED else ""
    remark = " ".join(part for part in (_where(judgements), note, data_say) if part)
    return Claim(question.id, question.place, question.claim, question.test, judgements, verdict, remark)


def _where(judgements: Sequence[Judgement]) -> str:
    """Plainly: under which conventions it holds, in part or not, and in how many cases."""
    if all(j.verdict is Verdict.HOLDS or (j.verdict is Verdict.NOT_TESTED and not j.score) for j in judgements):
        return ""
    parts = []
    for verdict in Verdict:
        there = [judgement for judgement in judgements if judgement.verdict is verdict]
        if there:
            parts.append(f"{verdict.value} {_conventions(there)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _conventions(judgements: Sequence[Judgement]) -> str:
    """Conventions with their scores, but for scores of one case, which say no more than the verdict."""
    scores = [judgement.score for judgement in judgements]
    shown = ["" if score in ("", "0 of 1", "1 of 1") else score for score in scores]
    if judgements[0].convention == ANY_CONVENTION:
        return f"({shown[0]})" if shown[0] else ""
    if len(judgements) == len(CONVENTIONS) and len(set(shown)) == 1:
        return "under every way of counting" + (f" ({shown[0]})" if shown[0] else "")
    names = [f"{j.convention} ({score})" if score else j.convention for j, score in zip(judgements, shown, strict=True)]
    return f"under {', '.join(names)}"


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The table of verdicts, and below it every test with its figures."""
    lines = [
        f"Queries are counted in {len(CONVENTIONS)} ways; {HEADLINE} is the headline. {RULE} Brackets are 95% "
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
        if claim.conventions:
            lines += ["| Queries counted by | Verdict | Passed | Figures |", "|---|---|---|---|"]
            lines += [
                f"| {j.convention} | {j.verdict.value} | {j.score} | {_cell(j.figures)} |" for j in claim.conventions
            ]
        else:
            lines.append("Not tested: the experiment is not among the results.")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
