"""Coverage-guided fuzzing of the readers of files, with atheris where it is installed.

    pip install atheris
    python -m benchmarks.torture --areas fuzzing                     # all kinds, into the page
    python -m benchmarks.torture.coverage 20000 "model garnet.umb"   # this kind alone, one line of JSON

The names are those of `kinds`. What is read must be refused with an error of ours or mean something; any other
exception is bad, and the input that raised it is told. Random damage, which needs no atheris, is the area `files`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import traceback
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
    from benchmarks.torture.kinds import Kind, kinds


def _fuzz(kind: Kind, runs: int, place: Path) -> None:
    """Fuzz one kind until it has so many runs or a crash; libFuzzer ends the process."""
    corpus = place / "corpus"
    corpus.mkdir()
    (corpus / "sound").write_bytes(kind.path.read_bytes())

    def read(content: bytes) -> None:
        kind.path.write_bytes(content)
        with contextlib.suppress(AdalookError):
            kind.meaning(kind.read())

    options = [f"-runs={runs}", "-seed=1", "-print_final_stats=1", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], read)
    atheris.Fuzz()


def _fuzzed(kind: Kind, runs: int) -> dict[str, object]:
    """Fuzz one kind in a child, since libFuzzer does not return; returns what it said."""
    with tempfile.TemporaryDirectory() as name, open(Path(name) / "said", "w+b") as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            code = 1
            try:
                _fuzz(kind, runs, Path(name))
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        text = (Path(name) / "said").read_text(errors="replace")
        executed = re.search(r"number_of_executed_units: (\d+)", text)
        found = [path.read_bytes().hex()[:200] for path in Path(name).glob("crash-*")]
    tried = int(executed[1]) if executed else 1
    bad = "" if status == 0 else f"{' '.join(text.split())[-400:]} {found}"
    return {"kind": kind.name, "tried": tried, "bad": bad}


def main() -> None:
    """Fuzz kinds, those that are named or all, and print what came of each."""
    runs, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        found = {kind.name: kind for kind in kinds(Path(place)) if kind.share == 1.0}
        unknown = set(names) - set(found)
        if unknown:
            sys.exit(f"there is no kind {', '.join(unknown)}: expected some of {', '.join(found)}")
        for name in names or found:
            print(json.dumps(_fuzzed(found[name], int(runs))), flush=True)


if __name__ == "__main__":
    main()
