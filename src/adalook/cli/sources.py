"""The names of models, methods and priors on the command line: SOURCE, --method and --prior."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adalook._extras import import_extra
from adalook._validation import parse_number
from adalook.errors import ArgumentError, FileError

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.planning.priors import Prior
    from adalook.planning.rules.base import Method

DEFAULT_DISCOUNT = 0.99
"""Of models made from Gymnasium's environments, unless --discount says otherwise."""
DEFAULT_PRIOR = "few:3"
"""Suits every model; `exact` would solve it first, `squares` needs a grid."""


def build_model(source: str, discount: float | None = None, mmap: bool = False) -> MDP:
    """Return the model that SOURCE names: a file, `zoo:NAME?parameter=value&…`, a Gymnasium id or `module:name`.

    With `mmap` it must be a file, and is left there.

    >>> build_model("zoo:chain?n=9&discount=0.8")
    MDP(11 states, 2 actions, discount 0.8, deterministic)
    """
    from adalook.mdp.model import MDP
    from adalook.mdp.sources import named_object, parse_source, zoo_model

    kind, name, given = parse_source(source)
    if kind in ("zoo", "id") and discount is not None:
        if "discount" in given:
            raise ArgumentError("the discount is given twice", got=f"{source} and --discount {discount:g}")
        given["discount"] = repr(discount)
    if mmap and not Path(source).is_file():
        raise ArgumentError("--mmap needs a file", expected="a file in .npz", got=source)
    if kind == "zoo":
        return zoo_model(name, given)
    if kind == "object":
        found = named_object(name, given)
        if isinstance(found, MDP):
            if discount is not None and discount != found.discount:
                raise ArgumentError(
                    f"{source} has a discount of its own",
                    expected=f"{found.discount:.15g}",
                    got=f"--discount {discount:g}",
                    remedy=f"leave it out, or pass it on if {name} takes one: '{name}?discount={discount:g}'",
                )
            return found
        if not hasattr(found, "step"):
            raise ArgumentError(
                f"{source} is no model", expected="an al.MDP or a Gymnasium environment", got=type(found).__name__
            )
        return MDP.from_gymnasium(found, discount=DEFAULT_DISCOUNT if discount is None else discount)
    if kind == "id" and _is_gymnasium_id(source, name):
        return _from_gym(name, given)
    path = Path(source)
    if not source or not path.exists():
        raise FileError(
            f"there is no file '{source}'",
            expected="a file in .npz or .umb, zoo:NAME, a Gymnasium id or module:name",
            remedy=_nearest(source),
        )
    if path.suffix.lower() == ".umb" and discount is None:
        raise ArgumentError(f"{source} carries no discount", remedy="pass one, such as --discount 0.99")
    return MDP.load(path, discount=discount, mmap=mmap)


def _nearest(source: str) -> str:
    """Return a question with the names that were perhaps meant; empty if none is near."""
    if Path(source).suffix:
        return ""
    try:
        from adalook.simulators.make import suggested_names
    except ImportError:
        return ""
    near = suggested_names(source)
    return f"did you mean {near}?" if near else ""


def _is_gymnasium_id(source: str, name: str) -> bool:
    """Return whether a name is meant for Gymnasium: it says so, or Gymnasium knows it."""
    if source.startswith("gym:"):
        return True
    if not name or Path(source).exists():
        return False
    try:
        import gymnasium
    except ImportError:
        return False
    return name in gymnasium.registry


def _from_gym(name: str, given: dict[str, str]) -> MDP:
    """Build a model from the transition table of a Gymnasium environment."""
    gymnasium = import_extra("gymnasium", extra="gym", purpose=f"gym:{name}")
    from adalook.mdp.model import MDP
    from adalook.mdp.sources import literal

    discount = parse_number(given.pop("discount", repr(DEFAULT_DISCOUNT)), float, f"gym:{name}: discount")
    # Warnings are about versions, and what is fatal comes as an error too; standard output is for the answer.
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        keywords: dict[str, Any] = {key: literal(text) for key, text in given.items()}
        try:
            environment = gymnasium.make(name, **keywords)
        except Exception as error:  # an environment is anybody's code and may raise anything
            from adalook.simulators.gym.spaces import cannot_be_made

            raise cannot_be_made(f"gym:{name}", error, keywords) from error
        with contextlib.closing(environment):
            return MDP.from_gymnasium(environment, discount=discount)


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
