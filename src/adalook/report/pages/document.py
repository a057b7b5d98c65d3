"""Self-contained HTML pages put together from `report/assets`: no network, no server."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from adalook.report.figures.style import SavedFigure
from adalook.report.pages.explorer import ExplorerData

SCRIPTS = ("colours", "numbers", "colouring", "maze", "chart", "runs", "explorer", "convergence")
"""In the order in which they need each other."""


@cache
def asset(name: str) -> str:
    """Return the text of a file of `report/assets`."""
    return files("adalook.report").joinpath("assets", name).read_text("utf-8")


def fill(name: str, **parts: str) -> str:
    """Return an asset with its $names filled in; the parts are HTML already."""
    return Template(asset(name)).substitute(parts)


def document(title: str, body: str, data: dict[str, str]) -> str:
    """Return a whole page.

    Args:
        title: plain text.
        body: HTML.
        data: JSON by the id of the element that carries it, safe to stand in HTML.
    """
    carried = "\n".join(f'<script type="application/json" id="{name}">{text}</script>' for name, text in data.items())
    script = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    return fill("page.html", title=escape(title), style=asset("style.css"), body=body, data=carried, script=script)


def explorer_section(heading: str, intro: str, explorer: ExplorerData) -> str:
    """Return the explorer's HTML; its data go into the document as "explorer-data"."""
    meaning = explorer.meaning
    panels = "\n".join(
        fill("panel.html", side=side, title=f"Run {side.upper()}", distance=escape(meaning.distance))
        for side in ("a", "b")
    )
    controls = fill("explorer.html", panels=panels, target=escape(meaning.target), values=escape(meaning.values))
    warning = f'<p class="problem" role="note">{escape(explorer.warning)}</p>' if explorer.warning else ""
    note = f'<p class="note">{escape(explorer.omitted)}</p>' if explorer.omitted else ""
    return f'<section id="explorer"><h2>{escape(heading)}</h2>\n{warning}<p>{intro}</p>\n{note}\n{controls}</section>'


def table(rows: list[tuple[str, str]], kind: str) -> str:
    """Return a table of two columns as HTML; names and texts are plain text."""
    lines = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return f'<div class="scroll"><table class="{kind}"><tbody>{lines}</tbody></table></div>'


def figure_html(figure: SavedFigure) -> str:
    """Return a figure as HTML: an image of its own, so that its styles and names stay inside it, and its caption."""
    image = base64.b64encode(figure.svg.read_bytes()).decode()
    return (
        '<figure class="figure"><div class="scroll">'
        f'<img src="data:image/svg+xml;base64,{image}" alt="{escape(figure.title)}"></div>'
        f"<figcaption><b>{escape(str(figure.number))}. {escape(figure.title)}.</b> {escape(figure.caption)}"
        "</figcaption></figure>"
    )


def figure_list(figures: Sequence[SavedFigure]) -> str:
    """Return figures as HTML, one below the other."""
    return f'<div class="figures">{"".join(map(figure_html, figures))}</div>' if figures else ""
