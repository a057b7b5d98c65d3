"""The errors that adalook raises; ``except al.AdalookError`` catches them all.

Each message says what is wrong, what was expected, what came instead and, where there is a way out, what to do.
The subclasses also derive from the built-in error a Python programmer would look for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_GOT = 1_000
"""Characters of what came instead that a message shows."""


class AdalookError(Exception):
    """The base of all errors that adalook raises on purpose."""

    def __init__(self, what: str, *, expected: object = None, got: object = None, remedy: str = "") -> None:
        parts = [what]
        if expected is not None:
            parts.append(f": expected {expected}")
        if got is not None:
            parts.append(f"{',' if expected is not None else ':'} got {_one_line(_text(got))}")
        message = "".join(parts)
        if remedy:
            code = remedy.startswith("al.")
            message += f". {remedy[0] if code else remedy[0].upper()}{remedy[1:]}"
        super().__init__(message if message.endswith(("?", ".")) else f"{message}.")


def _one_line(text: str) -> str:
    """Return text without line breaks, which arrays and errors of others have, cut where it is very long."""
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= LONGEST_GOT else f"{line[:LONGEST_GOT]}…"


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def shown(value: object, longest: int = 200) -> str:
    """Return how a value looks, cut where it is long; what cannot even be shown is named by its type.

    >>> shown("x" * 1000, longest=5), shown(10**5000)
    ("'xxxx…", 'a int that cannot be shown')
    """
    try:
        text = repr(value)
    except Exception:  # Python shows no whole numbers of thousands of digits; objects of others may do anything
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= longest else f"{text[:longest]}…"


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return a question with the known name that is nearest to the given one; empty if none is near.

    >>> did_you_mean("lerning_rate", ["learning_rate", "discount"])
    "did you mean 'learning_rate'?"
    """
    near = difflib.get_close_matches(str(given), list(known), 1)
    return f"did you mean {near[0]!r}?" if near else ""


class ModelError(AdalookError, ValueError):
    """An MDP, or something that must match it, is not well formed."""


class ArgumentError(AdalookError, ValueError):
    """An argument or setting has a wrong type or is out of range."""


class SimulatorError(AdalookError):
    """A simulator violates the contract of `adalook.simulators.base`, so no search in it can be trusted."""


class FileError(AdalookError, OSError):
    """A file is missing, damaged, not ours, or cannot be written."""

    def __str__(self) -> str:  # OSError would print its arguments as a tuple
        return str(self.args[0])


class EngineError(AdalookError, RuntimeError):
    """The processes or machines that work was given to failed; what was finished or saved before is kept."""


class DivergedError(AdalookError, ArithmeticError):
    """The values that an agent learns have become infinite or NaN."""

    def __init__(self, got: object) -> None:
        super().__init__(
            "learning diverged",
            expected="finite values",
            got=got,
            remedy="start a new run with a smaller learning_rate; RUN/best was saved before and can be evaluated",
        )


class MissingExtraError(AdalookError, ImportError):
    """An optional dependency is needed and is not installed."""

    def __init__(self, package: str, extra: str = "", purpose: str = "") -> None:
        if not extra:  # unpickled: the one argument is the message
            super().__init__(package)
            return
        super().__init__(
            f"{purpose} needs the package '{package}'", remedy=f"install it with: pip install 'adalook[{extra}]'"
        )
