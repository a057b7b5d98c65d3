"""The pages: links lead somewhere, targets and decisions that are named exist, and the README's code runs."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
SOURCES = [
    path
    for folder in ("src", "tests", "benchmarks", "examples")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A module in backticks is named by the end of its path, as `planning/solve.py` or `solve.py` is."""
    paths = [path.as_posix() for path in SOURCES]
    named = set(re.findall(r"`([\w/]+\.py)`", page.read_text()))
    assert not {name for name in named if not any(path.endswith(f"/{name}") for path in paths)}


def test_tests_that_are_named_exist() -> None:
    """`planning/test_solve.py::test_…` is named by its path in tests/ and the beginning of its name."""
    for page in PAGES:
        for name, test in re.findall(r"`([\w/]+\.py)::(\w+)", page.read_text()):
            assert f"def {test}" in (REPOSITORY / "tests" / name).read_text(), f"{page.name} names {name}::{test}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:`|^ *)make ([a-z][a-z -]*[a-z])", page.read_text(), re.MULTILINE)
    assert set(" ".join(named).split()) <= targets


def test_decisions_that_are_cited_exist() -> None:
    decisions = (REPOSITORY / "docs" / "decisions.md").read_text()
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", decisions, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    cited = re.compile(r"\bdecisions?\]?(?:\([\w.]+\))? (\d+)((?:, \d+)*(?:(?: and| to) \d+)?)", re.IGNORECASE)
    for path in [*PAGES, *SOURCES]:
        for first, rest in cited.findall(path.read_text()):
            for number in [first, *re.findall(r"\d+", rest)]:
                assert int(number) in numbers, f"{path.name} cites decision {number}"


def test_the_reference_has_every_public_name() -> None:
    stub = (REPOSITORY / "src" / "adalook" / "__init__.pyi").read_text()
    reference = (REPOSITORY / "docs" / "api.md").read_text()
    modules = {"zoo": "adalook.mdp.zoo", "priors": "adalook.planning.priors"}
    for name in re.findall(r" as (\w+)$", stub, re.MULTILINE):
        assert re.search(rf":: {re.escape(modules.get(name, f'adalook.{name}'))}$", reference, re.MULTILINE), name


def sessions() -> list[Path]:
    """Return the pages that show what Python answers."""
    return [page for page in PAGES if "```pycon" in page.read_text()]


@pytest.mark.parametrize("page", sessions(), ids=lambda page: page.stem)
def test_python_answers_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session: names of a block are known to the next."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL))
    session = doctest.DocTestParser().get_doctest(code, {}, page.stem, str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(session, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


def test_notebooks_are_the_tutorials() -> None:
    """`python docs/notebooks.py` writes them; the sessions themselves are run above."""
    spec = importlib.util.spec_from_file_location("notebooks", REPOSITORY / "docs" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebooks)
    written = {path.stem: path.read_text() for path in notebooks.NOTEBOOKS.glob("*.ipynb")}
    assert written == {page.stem: notebooks.notebook(page.read_text()) for page in notebooks.pages()}
    for text in written.values():
        code = "\n".join(cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
        compile(code, "notebook", "exec")


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (REPOSITORY / "README.md").read_text()
    shorter = {"seconds=240": "steps=16", "episodes=20": "episodes=1", "10_000": "200", "episodes=4": "episodes=1"}
    for long, short in (shorter | {"nodes=100": "nodes=4"}).items():
        assert long in text
        text = text.replace(long, short)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "README", "exec"), names)
    assert names["sol"].converged  # type: ignore[attr-defined]
