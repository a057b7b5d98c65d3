"""`adalook report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from adalook.commands.terminal import CONVERGED, plain_console


@dataclass(frozen=True)
class Report:
    """Turn results of `adalook reproduce` into figures, a table of claims and a page with an explorer.

    Example: adalook reproduce maze && adalook report
    """

    results: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR …]")] = ()
    """Results folders; without any: results/chain, results/maze and results/sweep, as far as they are there."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("report")
    """Where index.html, claims.md and figures/ go."""


def run_report(options: Report) -> int:
    """`adalook report`."""
    from adalook.report.page import write_report

    page, claims, *figures = write_report(options.results, options.out)
    size = page.stat().st_size / 1e6
    plain_console().print(
        f"{page} ({size:.1f} MB), {claims} and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True
    )
    return CONVERGED
