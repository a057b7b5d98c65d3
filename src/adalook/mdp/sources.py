"""Names of problems: one way to say which model or environment is meant, in Python, on the command line and in runs.

maze.npz, model.umb               a file of a model
zoo:maze?size=30&seed=0           a model of the zoo
FrozenLake-v1?map_name=8x8        a Gymnasium id, with arguments; gym:FrozenLake-v1 is the same
mygame:Env?size=5                 a class, function or object of a module that can be imported from here
ALE/Pong-v5, MinAtar/Breakout-v1  a family of simulators, see `simulators.make`
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from adalook._validation import parse_number
from adalook.errors import AdalookError, ArgumentError
from adalook.mdp import zoo
from adalook.mdp.model import MDP

FILE_SUFFIXES = (".npz", ".umb")


class Source(NamedTuple):
    """The name of a problem, taken apart."""

    kind: str
    """file, zoo, object, or id: whatever Gymnasium or a family of simulators knows."""
    name: str
    """What follows the kind, without arguments."""
    arguments: dict[str, str]
    """What follows the question mark, as text."""


def parse_source(text: str) -> Source:
    """Take the name of a problem apart.

    >>> parse_source("zoo:maze?size=30&seed=0")
    Source(kind='zoo', name='maze', arguments={'size': '30', 'seed': '0'})
    >>> parse_source("gym:FrozenLake-v1").name
    'FrozenLake-v1'
    """
    name, _, query = text.partition("?")
    prefix, colon, rest = name.partition(":")
    if Path(name).suffix.lower() in FILE_SUFFIXES:
        return Source("file", text, {})
    arguments = parse_arguments(text, query)
    if colon and prefix == "zoo":
        return Source("zoo", rest, arguments)
    if colon and prefix == "gym":
        return Source("id", rest, arguments)
    if colon and rest.isidentifier() and all(part.isidentifier() for part in prefix.split(".")):
        return Source("object", name, arguments)
    return Source("id", name, arguments)


def parse_arguments(source: str, query: str) -> dict[str, str]:
    """Return the arguments after the question mark of a name, as text."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise ArgumentError(f"{source} cannot be read", expected="name=value&name=value after '?'") from None
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"{source} gives '{name}' more than once")
    return dict(pairs)


def literal(text: str) -> int | float | bool | str | None:
    """Return text as the bool, None, int or float it spells, otherwise as it is.

    >>> [literal(text) for text in ("True", "8", "0.5", "8x8")]
    [True, 8, 0.5, '8x8']
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text == "None":
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def source_name(name: str, arguments: dict[str, Any]) -> str | None:
    """Return the text that names a problem with these arguments; None if one of them cannot be written there.

    >>> source_name("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True})
    'FrozenLake-v1?map_name=8x8&is_slippery=True'
    """
    if any(
        type(literal(str(value))) is not type(value) or literal(str(value)) != value for value in arguments.values()
    ):
        return None
    return f"{name}?{urlencode(arguments)}" if arguments else name


def zoo_model(name: str, given: dict[str, str]) -> MDP:
    """Build a model of the zoo, with parameters of the types that its function declares."""
    if name not in zoo.__all__:
        raise ArgumentError(f"the zoo has no '{name}'", expected=", ".join(zoo.__all__))
    make: Callable[..., MDP] = getattr(zoo, name)
    types, known = typing.get_type_hints(make), inspect.signature(make).parameters
    for parameter in given:
        if parameter not in known:
            raise ArgumentError(f"zoo:{name} has no parameter '{parameter}'", expected=", ".join(known))
    missing = [p for p, about in known.items() if about.default is inspect.Parameter.empty and p not in given]
    if missing:
        example = "&".join(f"{parameter}=…" for parameter in missing)
        raise ArgumentError(f"zoo:{name} needs {', '.join(missing)}", remedy=f"write zoo:{name}?{example}")
    values = {
        parameter: parse_number(text, types[parameter], f"zoo:{name}: {parameter}") for parameter, text in given.items()
    }
    try:
        return make(**values)
    except AdalookError:
        raise
    except (MemoryError, OverflowError, ValueError) as error:  # what NumPy says to absurd sizes
        raise ArgumentError(f"zoo:{name} of this size cannot be built", got=error) from error


def named_object(name: str, arguments: dict[str, str]) -> Any:
    """Return the object that "module:name" names; a class or function is called with the arguments.

    Modules in the current folder are found, as `python -m` finds them.
    """
    module_name, _, attribute = name.partition(":")
    with _current_folder_importable():
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise ArgumentError(
                f"the module of {name} cannot be imported",
                got=error,
                remedy="start adalook in the module's folder, or install the module",
            ) from error
        except Exception as error:
            raise ArgumentError(f"the module of {name} fails when it is imported", got=_said(error)) from error
        if not hasattr(module, attribute):
            public = [known for known in vars(module) if not known.startswith("_")]
            raise ArgumentError(
                f"module {module_name} has no '{attribute}'", expected=", ".join(public[:8]) or "some names in it"
            )
        found = getattr(module, attribute)
        if not callable(found):
            return found
        try:
            return found(**{key: literal(text) for key, text in arguments.items()})
        except AdalookError:
            raise
        except Exception as error:
            raise ArgumentError(f"{name} cannot be made", got=_said(error)) from error


def _said(error: Exception) -> str:
    """Return an error of somebody else's code in a line; the whole of it is its cause."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]


@contextlib.contextmanager
def _current_folder_importable() -> Iterator[None]:
    """Let modules of the current folder be imported, after all others."""
    folder = os.getcwd()
    if "" in sys.path or folder in sys.path:
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
