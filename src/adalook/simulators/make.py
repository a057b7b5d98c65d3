"""`make_simulator`: from an id, a model or an environment to a simulator."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from adalook.errors import ArgumentError
from adalook.simulators.base import Simulator


class Family(NamedTuple):
    """A family of environments whose ids share a prefix; "module:name" is imported when it is needed."""

    entry_point: str | Callable[..., Simulator]
    """Makes a simulator from an id and options."""
    list_ids: str | Callable[[], Iterable[str]]
    """Returns the ids, which are suggested when a name is unknown."""


FAMILIES: dict[str, Family] = {
    "MinAtar/": Family("adalook.simulators.minatar:MinAtarSimulator", "adalook.simulators.minatar:minatar_ids"),
    "ALE/": Family("adalook.simulators.ale.simulator:AtariSimulator", "adalook.simulators.ale.emulator:atari_ids"),
}
"""The families by prefix; an entry here makes another one known. All other ids are Gymnasium's."""


def make_simulator(env: Any, **options: Any) -> Simulator:
    """Return a simulator of `env`.

    Args:
        env: "ALE/Tutankham-v5" and the like, "MinAtar/Breakout-v1" and the like, an `al.MDP`, a Gymnasium environment
            that can be copied, the id of one, or a simulator, which is returned as it is.
        options: for the simulator's class, such as life_loss_ends=True for Atari or sticky=0.1 for MinAtar.

    >>> import adalook as al
    >>> make_simulator(al.zoo.chain(n=5), start=0).num_actions
    2
    """
    if isinstance(env, Simulator):
        if options:
            raise ArgumentError("a simulator that is made already takes no options", got=", ".join(options))
        return env
    factory = _factory_for_id(env) if isinstance(env, str) else _factory_for_object(env)
    try:
        return factory(env, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "multiple values" not in str(error):
            raise
        raise ArgumentError(
            f"{getattr(factory, '__name__', factory)} does not take these options", got=error
        ) from error


def _factory_for_object(env: Any) -> Callable[..., Simulator]:
    """Return what makes a simulator of a model or of an environment."""
    from adalook.mdp.model import MDP

    if isinstance(env, MDP):
        from adalook.simulators.tabular import TabularSimulator

        return TabularSimulator
    if callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None)):
        from adalook.simulators.gym.simulator import GymSimulator

        return GymSimulator
    raise ArgumentError(
        "there is no simulator for this",
        expected="an id, an al.MDP or a Gymnasium environment",
        got=type(env).__name__,
    )


def _factory_for_id(name: str) -> Callable[..., Simulator]:
    """Return what makes a simulator of the environment with this id."""
    for prefix, family in FAMILIES.items():
        if name.startswith(prefix):
            factory: Callable[..., Simulator] = _load(family.entry_point)
            return factory
    if name.startswith("zoo:"):
        model = name.removeprefix("zoo:").partition("?")[0]
        raise ArgumentError(f"'{name}' names a model on the command line", remedy=f"in Python pass al.zoo.{model}(…)")
    from adalook.simulators.gym.simulator import GymSimulator
    from adalook.simulators.gym.spaces import known_ids

    known = known_ids()
    if name not in known and ":" not in name:  # "module:id" registers itself when it is made
        raise ArgumentError(f"there is no environment called '{name}'", expected=_suggestion(name, known))
    return GymSimulator


def _load(entry_point: Any) -> Any:
    """Return what "module:name" names; anything else as it is."""
    if not isinstance(entry_point, str):
        return entry_point
    module, _, name = entry_point.partition(":")
    return getattr(importlib.import_module(module), name)


def _suggestion(name: str, gymnasium_ids: list[str]) -> str:
    """Return ids that `name` may have been meant for."""
    from adalook.mdp import zoo

    if models := difflib.get_close_matches(name.lower(), zoo.__all__, n=1, cutoff=0.75):
        return f"zoo:{models[0]} on the command line, al.zoo.{models[0]}(…) in Python"
    ids = sorted(gymnasium_ids, key=lambda known: "/" in known)
    for family in FAMILIES.values():
        ids.extend(_load(family.list_ids)())
    by_title: dict[str, list[str]] = {}
    for known in ids:
        by_title.setdefault(_title(known), []).append(known)
    near = difflib.get_close_matches(_title(name), by_title, n=1)
    return f"{', '.join(by_title[near[0]][:3])}?" if near else "an id such as ALE/Breakout-v5 or CartPole-v1"


def _title(name: str) -> str:
    """Return an id without the family before it and the version after it: ALE/Pong-v5 is pong."""
    return name.rpartition("/")[2].partition("-")[0].lower()
