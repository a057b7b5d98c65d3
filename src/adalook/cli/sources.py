"""The names of models, methods and priors on the command line: SOURCE, --method and --prior."""

from __future__ import annotations

import contextlib
import inspect
import sys
import time
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from adalook._extras import import_extra
from adalook._validation import parse_number
from adalook.errors import AdalookError, ArgumentError, FileError

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.planning.priors import Prior
    from adalook.planning.rules.base import Method

DEFAULT_PRIOR = "few:3"
"""Suits every model; `exact` would solve it first, `squares` needs a grid."""


def build_model(source: str, discount: float | None = None) -> MDP:
    """Return the model that SOURCE names: a file, `zoo:NAME?parameter=value&…` or `gym:ID?argument=value&…`.

    >>> build_model("zoo:chain?n=9&discount=0.8")
    MDP(11 states, 2 actions, discount 0.8, deterministic)
    """
    kind, colon, rest = source.partition(":")
    if colon and kind in ("zoo", "gym"):
        name, _, query = rest.partition("?")
        given = _parameters(source, query)
        if discount is not None:
            if "discount" in given:
                raise ArgumentError("the discount is given twice", got=f"{source} and --discount {discount:g}")
            given["discount"] = repr(discount)
        return _from_zoo(name, given) if kind == "zoo" else _from_gym(name, given)
    path = Path(source)
    if not source or not path.exists():
        raise FileError(f"there is no file '{source}'", expected="a file in .npz or .umb, zoo:NAME or gym:ID")
    if path.suffix.lower() == ".umb" and discount is None:
        raise ArgumentError(f"{source} carries no discount", remedy="pass one, such as --discount 0.99")
    from adalook.mdp.model import MDP

    return MDP.load(path, discount=discount)


def _parameters(source: str, query: str) -> dict[str, str]:
    """Return the parameters after the question mark, by name."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise ArgumentError(f"{source} cannot be read", expected="name=value&name=value after '?'") from None
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"{source} gives '{name}' more than once")
    return dict(pairs)


def _from_zoo(name: str, given: dict[str, str]) -> MDP:
    """Build a model of the zoo, with parameters of the types that its function declares."""
    from adalook.mdp import zoo

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


def _from_gym(name: str, given: dict[str, str]) -> MDP:
    """Build a model from the transition table of a Gymnasium environment."""
    gymnasium = import_extra("gymnasium", extra="gym", purpose=f"gym:{name}")
    from adalook.mdp.model import MDP

    discount = parse_number(given.pop("discount", "0.99"), float, f"gym:{name}: discount")
    # Warnings are about versions, and what is fatal comes as an error too; standard output is for the answer.
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        keywords: dict[str, Any] = {key: _literal(text) for key, text in given.items()}
        try:
            environment = gymnasium.make(name, **keywords)
        except Exception as error:  # an environment is anybody's code and may raise anything
            reason = str(error).strip().partition("\n")[0]
            raise ArgumentError(f"gym:{name} cannot be made", got=f"{type(error).__name__}: {reason}") from error
        with contextlib.closing(environment):
            return MDP.from_gymnasium(environment, discount=discount)


def _literal(text: str) -> int | float | bool | str:
    """Return text as the bool, int or float it spells, otherwise as it is."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def build_method(text: str, prior: str | None, mdp: MDP) -> tuple[Method, dict[str, Any] | None]:
    """The method that --method and --prior stand for, and what its prior was and cost if it has one.

    >>> import adalook as al
    >>> build_method("tlpi:g^3", None, al.zoo.maze())[0].name
    'TLPI(0.9412)'
    """
    from adalook.planning.rules.registry import find_method

    chosen = find_method(text)
    method = chosen.make(mdp)  # complains about a wrong setting before time goes into a prior
    if not chosen.spec.method_class.needs_prior:
        if prior is not None:
            raise ArgumentError(f"{method.name} takes no prior", got=f"--prior {prior}", remedy="leave it out")
        return method, None
    kind = DEFAULT_PRIOR if prior is None else prior
    began = time.perf_counter()
    values = _read_prior(kind, mdp)
    about = {
        "kind": kind,
        "queries": values.queries.improvement["shared"] + values.queries.evaluation["exact"],
        "model_reads": values.model_reads,
        "seconds": time.perf_counter() - began,
    }
    return chosen.make(mdp, values), about


def _read_prior(text: str, mdp: MDP) -> Prior:
    """Compute the prior that --prior names."""
    import adalook as al

    kind, colon, rest = text.partition(":")
    match kind, bool(colon):
        case "exact", False:
            return al.priors.exact(mdp)
        case "few", True:
            return al.priors.few_iterations(mdp, parse_number(rest, int, f"--prior {text}: the number of iterations"))
        case "squares", True:
            if mdp.layout is None:
                raise ArgumentError(f"--prior {text} needs a model on a grid", remedy="take few:3 or exact")
            return al.priors.aggregation(mdp, mdp.layout.squares(parse_number(rest, int, f"--prior {text}: the side")))
    raise ArgumentError("--prior is wrong", expected="few:N, squares:K or exact", got=repr(text))
