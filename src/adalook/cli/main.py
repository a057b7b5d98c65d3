"""The command line, `adalook COMMAND …`: parse the arguments, run a command, print errors in one line.

Every command is a dataclass of flags with a method `run`, in a module of its own. Everything heavy is imported inside
functions, so that help and complaints come at once.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import itertools
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Protocol, get_type_hints

import tyro

from adalook.cli.demo import DemoCommand
from adalook.cli.evaluate import EvaluateCommand
from adalook.cli.export import ExportCommand
from adalook.cli.report import ReportCommand
from adalook.cli.reproduce import ReproduceCommand
from adalook.cli.search import SearchCommand
from adalook.cli.solve import SolveCommand
from adalook.cli.terminal import BROKEN_PIPE, DONE, INTERRUPTED, WRONG_ARGUMENTS
from adalook.cli.train import TrainCommand
from adalook.errors import AdalookError, ArgumentError, did_you_mean
from adalook.learning.config import ELSEWHERE

ABOUT = """Planning and learning that look ahead only as far as each state needs.

Exit codes: 0 done (a solve: converged, its tolerance certified); 2 something is wrong with the arguments or files; 3
stopped before that, by a limit or by Ctrl-C (the best answer so far is still printed and written); 4 a solve whose
tolerance is more than arithmetic can certify. adalook --version prints the version."""

COMMANDS: dict[str, Callable[..., Any]] = {
    "solve": SolveCommand,
    "search": SearchCommand,
    "train": TrainCommand,
    "evaluate": EvaluateCommand,
    "report": ReportCommand,
    "export": ExportCommand,
    "demo": DemoCommand,
    "reproduce": ReproduceCommand,
}


class Command(Protocol):
    """The flags of a command, and what it does."""

    def run(self) -> int:
        """Run the command and return its exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever is wrong with the arguments takes one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # envs render in memory; SDL complains where there is no screen
    if arguments == ["--version"]:
        from adalook import __version__

        print(f"adalook {__version__}")
        return DONE
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show γ is no reason to fail
    try:
        command = _parse(arguments)
        code = DONE if command is None else command.run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (AdalookError, OSError) as error:
        return _complain(str(error))
    except MemoryError as error:
        return _complain(f"out of memory: {error}")
    except KeyboardInterrupt:
        print("adalook: interrupted", file=sys.stderr)
        return INTERRUPTED


def _open_closed_streams() -> None:
    """Let output go nowhere where the caller has closed it: Python has None for such streams."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives


def _parse(arguments: list[str]) -> Command | None:
    """Return the command with its flags; None if only help was asked for, which is printed then."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise ArgumentError(
            f"there is no command '{arguments[0]}'",
            expected=", ".join(COMMANDS),
            remedy=did_you_mean(arguments[0], COMMANDS) or "see adalook --help",
        )
    overview = arguments[:1] in (["-h"], ["--help"])
    if not overview and {"-h", "--help"}.intersection(arguments):
        _join_help_lines(COMMANDS[arguments[0]])
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), _one_sentence_each() if overview else contextlib.nullcontext():
            parsed: Command = tyro.extras.subcommand_cli_from_dict(
                COMMANDS, prog="adalook", description=ABOUT, args=arguments
            )
            return parsed
    except SystemExit as end:
        if not end.code:
            return None
        command = f" {arguments[0]}" if arguments and arguments[0] in COMMANDS else ""
        remedy = _called_here(arguments) or f"see adalook{command} --help"
        raise ArgumentError(_first_sentence(complaint.getvalue()), remedy=remedy) from None


@contextlib.contextmanager
def _one_sentence_each() -> Iterator[None]:
    """Cut what commands say of themselves to the first paragraph; the rest is for their own help."""
    whole = {command: command.__doc__ or "" for command in COMMANDS.values()}
    try:
        for command, text in whole.items():
            command.__doc__ = inspect.cleandoc(text).partition("\n\n")[0]
        yield
    finally:
        for command, text in whole.items():
            command.__doc__ = text


def _called_here(arguments: Sequence[str]) -> str:
    """Return what a flag of Stable-Baselines3 or CleanRL is called here, if one was given to train."""
    names = {"total_timesteps": "steps", **ELSEWHERE} if arguments[:1] == ["train"] else {}
    for word in arguments:
        name = names.get(word.removeprefix("--").partition("=")[0].replace("-", "_"))
        if word.startswith("--") and name is not None:
            return f"here it is called --{name.replace('_', '-')}"
    return ""


def _join_help_lines(command: Any) -> None:
    """Join the lines of every flag's help: tyro breaks lines where the source does."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    assert isinstance(definition, ast.ClassDef)
    hints = get_type_hints(command, include_extras=True)
    for field, text in itertools.pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(words))):
                command.__annotations__[name] = Annotated[hints[name], tyro.conf.arg(help=" ".join(words.split()))]


def _first_sentence(box: str) -> str:
    """Return what is wrong, out of the box that tyro draws around it with explanations, hints and help."""
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
        paragraph = paragraph[:2]  # the rest is the flag's help
    what = _in_plain_words(" ".join(" ".join(paragraph).split()).rstrip("."))
    for hint in parts[1:]:
        flag = re.search(r"--[a-z-]+", " ".join(hint))
        if hint[0].startswith("Available"):
            return f"{what}. {' '.join(hint)}"
        if hint[0].startswith("Perhaps you meant") and flag and flag.group() not in what.split():
            return f"{what}. Perhaps you meant {flag.group()}"
    return what


def _in_plain_words(what: str) -> str:
    """Return tyro's sentence about a flag's value as ours.

    >>> _in_plain_words("invalid choice 'ppo' for argument '--agent'. Expected one of ('qldqn', 'dqn', 'None')")
    "--agent is wrong: expected qldqn or dqn, got 'ppo'"
    >>> _in_plain_words("Error parsing --depth: invalid literal for int() with base 10: 'two'")
    "--depth is wrong: expected a whole number, got 'two'"
    >>> _in_plain_words("Missing value for argument '--csv'. Expected 1 values")
    '--csv needs a value after it'
    """
    choice = re.match(
        r"invalid choice (?P<got>'.*') for argument '(?P<flag>--[a-z-]+)'. Expected one of \((.*)\)", what
    )
    if choice:
        words = [word for word in re.findall(r"'([^']*)'", choice[3]) if word != "None"]
        return f"{choice['flag']} is wrong: expected {' or '.join(words)}, got {choice['got']}"
    choice = re.match(r"invalid choice ('.*') for argument '([a-z_]+)'. Expected one of \((.*)\)", what)
    if choice:
        words = re.findall(r"'([^']*)'", choice[3])
        return f"there is no {choice[2]} {choice[1]}: expected {', '.join(words)}"
    lacking = re.match(r"Missing from (adalook [a-z]+): (.*)", what)
    if lacking:
        return f"{lacking[1]} needs {lacking[2]}"
    number = re.match(r"Error parsing (--[a-z-]+): (could not convert string to float|invalid literal).*: ('.*')", what)
    if number:
        kind = "a number" if number[2].startswith("could") else "a whole number"
        return f"{number[1]} is wrong: expected {kind}, got {number[3]}"
    typed = re.match(
        r"Error parsing (--[a-z-]+): no type matching ([A-Z]+).* could be instantiated from \[(.*)\]", what
    )
    missing = re.match(r"Missing value for argument '(--[a-z-]+)'", what)
    if missing:
        return f"{missing[1]} needs a value after it"
    if typed:
        kind = {"FLOAT": "a number", "INT": "a whole number", "BOOL": "True or False"}.get(typed[2], typed[2].lower())
        return f"{typed[1]} is wrong: expected {kind}, got {typed[3]}"
    return what


def _complain(message: str) -> int:
    """Print an error in one line on stderr and return the exit code."""
    print(f"adalook: error: {' '.join(message.split())}", file=sys.stderr)
    return WRONG_ARGUMENTS


if __name__ == "__main__":
    sys.exit(main())
