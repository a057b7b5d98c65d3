"""Exit codes, optional flags and a console, which all commands share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import tyro

from adalook.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

DONE, BROKEN_PIPE, WRONG_ARGUMENTS, STOPPED_EARLY, NOT_CERTIFIED, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes. STOPPED_EARLY: by a limit or a signal, with an answer or a checkpoint; INTERRUPTED: without.

NOT_CERTIFIED: a solve that ended by itself, with a policy whose loss is not certified to be within the tolerance."""


PIPED_WIDTH = 100_000
"""Columns of what is not a terminal: files and other programs want whole lines."""


def optional(kind: type, metavar: str) -> Any:
    """Return the annotation of a flag that may be left out, and is None then."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: kind(words[0]),
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: ["none" if value is None else str(value)],
    )


def refuse_flags(command: Any, names: Iterable[str], why: str, *, remedy: str) -> None:
    """Raise an error if one of these flags of a command, a dataclass, is not at its default."""
    for name in names:
        if getattr(command, name) != type(command).__dataclass_fields__[name].default:
            raise ArgumentError(f"--{name.replace('_', '-')} {why}", remedy=remedy)


def in_box(title: str) -> tuple[Any, ...]:
    """Return the annotations of a dataclass of flags that help shows in a box of its own, "TITLE options"."""
    return tyro.conf.OmitArgPrefixes, tyro.conf.arg(name=title, prefix_name=False)


def plain_console() -> Console:
    """Return a console that prints text as it is, without markup and emoji; nothing is cut where no terminal is."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(markup=False, highlight=False, emoji=False, width=width)


def print_rows(rows: Mapping[str, str]) -> None:
    """Print a table of two columns, without the rows that have no text."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, text in rows.items():
        if text:
            table.add_row(name, text)
    plain_console().print(table)


def show_engine_messages() -> None:
    """Show on standard error what engines say while they start, and when they lose an actor."""
    logger = logging.getLogger("adalook")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("adalook: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
