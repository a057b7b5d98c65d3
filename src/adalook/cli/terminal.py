"""What subcommands share: exit codes, options that may be left out, a console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tyro

if TYPE_CHECKING:
    from rich.console import Console

CONVERGED, UNREAD, BAD_ARGUMENTS, NOT_CONVERGED, KILLED = 0, 1, 2, 3, 130


def option(kind: type, metavar: str) -> Any:
    """An option that may be left out."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: kind(words[0]),
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: ["none" if value is None else str(value)],
    )


def plain_console() -> Console:
    """Prints what it is given, without reading markup or smileys into it."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)
