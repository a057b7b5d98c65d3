"""Sphinx settings of the documentation; `make docs` builds it, and every warning is an error.

The source directory is the repository's, so that links between pages, results and the changelog work here as they do
for someone who reads the files.
"""

import re

from adalook import __version__

project = "adalook"
version = release = __version__
author = "adalook contributors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/tutorials/*.md",
    "results/*.md",
    "results/*/*.md",
    "results/other-games/*/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".venv", "build", "src", "tests", "benchmarks", "demo", "report", "**/.*"]
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "adalook"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_theme_options = {"navbar_align": "left", "show_toc_level": 2, "navigation_with_keys": False}
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
# Pages without pages below them need no column for these.
html_sidebars = {page: [] for page in ("docs/index", "docs/install", "docs/start", "docs/howto")}


def as_restructured_text(app, what, name, obj, options, lines):
    """Turn the marks of our docstrings into those of reStructuredText: `code`, and stars that are no emphasis."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line)
            lines[number] = re.sub(r"(?<=[( ])\*(?=\w)", r"\*", line)


def setup(app):
    """Register the hook with Sphinx."""
    app.connect("autodoc-process-docstring", as_restructured_text, priority=400)
