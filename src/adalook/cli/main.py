"""The command line: `adalook COMMAND …`; the commands are in `adalook.commands`.

Everything heavy is imported inside functions, so that help and complaints come at once.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from adalook.cli.demo import Demo, run_demo
from adalook.cli.report import Report, run_report
from adalook.cli.reproduce import Reproduce, run_reproduce
from adalook.cli.search import Search, run_search
from adalook.cli.solve import Solve, run_solve
from adalook.cli.terminal import BAD_ARGUMENTS, CONVERGED, KILLED, UNREAD
from adalook.cli.train import Evaluate, Train, run_evaluate, run_train
from adalook.errors import AdalookError, ArgumentError

ABOUT = """Planning and learning that look ahead only as far as each state needs.

Exit codes: 0 converged; 2 something is wrong with the arguments or files; 3 stopped before that, by a limit or by
Ctrl-C (the best answer so far is still printed and written). adalook --version prints the version."""


COMMANDS: dict[str, tuple[type, Callable[[Any], int]]] = {
    "solve": (Solve, run_solve),
    "demo": (Demo, run_demo),
    "reproduce": (Reproduce, run_reproduce),
    "report": (Report, run_report),
    "train": (Train, run_train),
    "evaluate": (Evaluate, run_evaluate),
    "search": (Search, run_search),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Whatever is wrong with the arguments takes one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        from adalook import __version__

        print(f"adalook {__version__}")
        return CONVERGED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show γ is no reason to fail
    try:
        options = _parse(arguments)
        run = next((run for kind, run in COMMANDS.values() if isinstance(options, kind)), None)
        code = CONVERGED if run is None else run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (AdalookError, OSError) as error:
        return _complain(str(error))
    except MemoryError as error:
        return _complain(f"out of memory: {error}")
    except KeyboardInterrupt:
        print("adalook: interrupted", file=sys.stderr)
        return KILLED


def _parse(arguments: list[str]) -> Any:
    """The options of the command that was asked for; None if it was only asked for help."""
    commands: dict[str, Callable[..., Any]] = {name: kind for name, (kind, _) in COMMANDS.items()}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict(commands, prog="adalook", description=ABOUT, args=arguments)
    except SystemExit as end:
        if not end.code:
            return None
        raise ArgumentError(_first_words(complaint.getvalue()), remedy="see adalook --help") from None


def _first_words(box: str) -> str:
    """What is wrong, out of the box that tyro draws around it with explanations, hints and help."""
    sections: list[list[str]] = [[]]
    for line in box.splitlines()[1:]:  # the first is a title
        text = re.sub(r"\x1b\[[0-9;]*m", "", line).strip(" │|")
        if re.match(r"╰|[─-]{5}", text):  # the end, and the rules between sections
            sections.append([])
        else:
            sections[-1].append(text)
    parts = [section for section in sections if any(section)]
    if not parts:
        return "the arguments are wrong"
    paragraph = parts[0][: parts[0].index("")] if "" in parts[0] else parts[0]
    if paragraph[0].startswith("Missing from"):
        paragraph = paragraph[:2]  # the rest is the option's help
    what = " ".join(" ".join(paragraph).split()).rstrip(".")
    for hint in parts[1:]:
        option = re.search(r"--[a-z-]+", " ".join(hint))
        if hint[0].startswith("Available"):
            return f"{what}. {hint[0]}"
        if hint[0].startswith("Perhaps you meant") and option and option.group() not in what.split():
            return f"{what}. Perhaps you meant {option.group()}"
    return what


def _complain(message: str) -> int:
    print(f"adalook: error: {' '.join(message.split())}", file=sys.stderr)
    return BAD_ARGUMENTS


if __name__ == "__main__":
    sys.exit(main())
