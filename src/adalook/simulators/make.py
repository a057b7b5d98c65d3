"""`make_simulator`: from a name, a model or an environment to a world that can be searched."""

from __future__ import annotations

import difflib
from typing import Any

from adalook.errors import ArgumentError
from adalook.simulators.base import Simulator


def make_simulator(world: Any, **options: Any) -> Simulator:
    """A simulator of `world`.

    Args:
        world: "ALE/Tutankham-v5" and the like, "MinAtar/Breakout-v1" and the like, an `al.MDP`, a Gymnasium environment
            that can be copied, the id of one, or a simulator, which is handed back.
        options: for the simulator's class, such as life_loss_ends=True for Atari or sticky=0.1 for MinAtar.

    >>> import adalook as al
    >>> make_simulator(al.zoo.chain(n=5), start=0).num_actions
    2
    """
    kind = _class_for(world)
    if kind is None:
        if options:
            raise ArgumentError("a simulator that is made already takes no options", got=", ".join(options))
        assert isinstance(world, Simulator)
        return world
    try:
        sim: Simulator = kind(world, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "multiple values" not in str(error):
            raise
        raise ArgumentError(f"{kind.__name__} cannot be made so", got=error) from error
    return sim


def _class_for(world: Any) -> type[Any] | None:
    """The class whose instances simulate `world`; None if it is a simulator already."""
    if isinstance(world, Simulator):
        return None
    if isinstance(world, str):
        return _class_for_name(world)
    from adalook.mdp.model import MDP

    if isinstance(world, MDP):
        from adalook.simulators.tabular import TabularSimulator

        return TabularSimulator
    if callable(getattr(world, "reset", None)) and callable(getattr(world, "step", None)):
        from adalook.simulators.gym.simulator import GymSimulator

        return GymSimulator
    raise ArgumentError(
        "there is no simulator for this",
        expected="an id, an al.MDP or a Gymnasium environment",
        got=type(world).__name__,
    )


def _class_for_name(name: str) -> type[Any]:
    if name.startswith("ALE/"):
        from adalook.simulators.ale.simulator import AtariSimulator

        return AtariSimulator
    if name.startswith("MinAtar/"):
        from adalook.simulators.minatar import MinAtarSimulator

        return MinAtarSimulator
    if name.startswith("zoo:"):
        model = name.removeprefix("zoo:").partition("?")[0]
        raise ArgumentError(f"'{name}' names a model on the command line", remedy=f"in Python pass al.zoo.{model}(…)")
    from adalook.simulators.gym.simulator import GymSimulator
    from adalook.simulators.gym.spaces import known_ids

    known = known_ids()
    if name not in known and ":" not in name:  # "module:id" registers itself when it is made
        raise ArgumentError(f"there is no world called '{name}'", expected=_near(name, known))
    return GymSimulator


def _near(name: str, gymnasium_ids: list[str]) -> str:
    """Names that `name` may have been meant for."""
    from adalook.mdp import zoo
    from adalook.simulators.ale.emulator import atari_ids
    from adalook.simulators.minatar import IDS

    if models := difflib.get_close_matches(name.lower(), zoo.__all__, n=1, cutoff=0.75):
        return f"zoo:{models[0]} on the command line, al.zoo.{models[0]}(…) in Python"
    by_title: dict[str, list[str]] = {}
    for known in [*sorted(gymnasium_ids, key=lambda known: "/" in known), *IDS, *atari_ids()]:
        by_title.setdefault(_title(known), []).append(known)
    near = difflib.get_close_matches(_title(name), by_title, n=1)
    return f"{', '.join(by_title[near[0]][:3])}?" if near else "an id such as ALE/Breakout-v5 or CartPole-v1"


def _title(name: str) -> str:
    """An id without the family before it and the version after it: ALE/Pong-v5 is pong."""
    return name.rpartition("/")[2].partition("-")[0].lower()
