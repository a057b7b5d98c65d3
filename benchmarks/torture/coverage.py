"""Coverage-guided fuzzing of one kind of file, with atheris where it is installed.

    pip install atheris
    python -m benchmarks.torture.coverage "model garnet.umb" -runs=20000

The name is that of a kind in `kinds`; everything after it goes to libFuzzer. What is read must be refused with an error
of ours or mean something; any other exception ends the run with the input that raised it. Random damage, which needs no
atheris, is `python -m benchmarks.torture --areas files`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

PACKAGE = Path(str(importlib.util.find_spec("adalook").origin)).parent  # type: ignore[union-attr]
COMPILED = [
    ".".join(("adalook", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if "jit" in path.read_text()
]
"""Modules with compiled functions, which cannot be instrumented."""
with atheris.instrument_imports(include=["adalook"], exclude=COMPILED):
    from adalook.errors import AdalookError
    from benchmarks.torture.kinds import kinds


def main() -> None:
    """Fuzz the kind that is named first."""
    name, *options = sys.argv[1:]
    place = Path(tempfile.mkdtemp())
    found = {kind.name: kind for kind in kinds(place)}
    if name not in found:
        sys.exit(f"there is no kind {name!r}: {', '.join(found)}")
    kind = found[name]
    corpus = place / "corpus"
    corpus.mkdir()
    (corpus / "sound").write_bytes(kind.path.read_bytes())
    warnings.simplefilter("ignore")

    def read(content: bytes) -> None:
        kind.path.write_bytes(content)
        with contextlib.suppress(AdalookError):
            kind.meaning(kind.read())

    atheris.Setup([sys.argv[0], *options, str(corpus)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
