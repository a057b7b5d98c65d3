"""Turn the tutorials into notebooks: `python docs/notebooks.py` writes examples/notebooks, one per tutorial."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

DOCS = Path(__file__).parent
NOTEBOOKS = DOCS.parent / "examples" / "notebooks"


def notebook(page: str) -> str:
    """Return a page as a notebook: its sessions become code cells, without what Python answered."""
    cells = []
    for number, part in enumerate(re.split(r"```pycon\n(.*?)```\n?", page, flags=re.DOTALL)):
        if number % 2:
            examples = doctest.DocTestParser().get_examples(part)
            source = "".join(example.source for example in examples).rstrip("\n")
            cells.append(
                {"cell_type": "code", "execution_count": None, "outputs": [], "metadata": {}, "source": source}
            )
        elif part.strip():
            text = re.sub(r"\]\((\.\./)?([\w-]+)\.md\)", r"](../../docs/\2.md)", part.strip())
            cells.append({"cell_type": "markdown", "metadata": {}, "source": text})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps({"cells": cells, **about}, indent=1, ensure_ascii=False) + "\n"


def pages() -> list[Path]:
    """Return the tutorials, and the first five minutes."""
    tutorials = [page for page in sorted((DOCS / "tutorials").glob("*.md")) if page.stem != "index"]
    return [DOCS / "start.md", *tutorials]


def main() -> None:
    """Write the notebooks."""
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
