"""Every error that is ours, with one base: ``except al.AdalookError`` catches them all.

Each message says what is wrong, what was expected, what came instead and, where there is a way out, what to do.
The subclasses also derive from the built-in error a Python programmer would look for.
"""

from __future__ import annotations


class AdalookError(Exception):
    """Base of every error raised by adalook on purpose."""

    def __init__(self, what: str, *, expected: object = None, got: object = None, remedy: str = "") -> None:
        parts = [what]
        if expected is not None:
            parts.append(f": expected {expected}")
        if got is not None:
            parts.append(f"{',' if expected is not None else ':'} got {got}")
        message = "".join(parts)
        if remedy:
            message += f". {remedy[0].upper()}{remedy[1:]}"
        super().__init__(message if message.endswith(("?", ".")) else f"{message}.")


class ModelError(AdalookError, ValueError):
    """The MDP, or something that must match it, is not well formed."""


class ArgumentError(AdalookError, ValueError):
    """A setting of a method or function is out of its range."""


class SimulatorError(AdalookError):
    """A simulator does not keep what `adalook.simulators.base` promises, so no search in it can be trusted."""


class FileError(AdalookError, OSError):
    """A file is missing, damaged, hostile or cannot be written."""

    def __str__(self) -> str:  # OSError would print its arguments as a tuple
        return str(self.args[0])


class DivergedError(AdalookError, ArithmeticError):
    """The values that an agent learns are no numbers any more."""

    def __init__(self, got: object) -> None:
        super().__init__(
            "learning diverged",
            expected="values that are numbers",
            got=got,
            remedy="begin anew with a smaller learning_rate; RUN/best was saved before and can be evaluated",
        )


class MissingExtraError(AdalookError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str = "", purpose: str = "") -> None:
        if not extra:  # unpickled: the one argument is the message
            super().__init__(package)
            return
        super().__init__(
            f"{purpose} needs the package '{package}'", remedy=f"install it with: pip install 'adalook[{extra}]'"
        )
