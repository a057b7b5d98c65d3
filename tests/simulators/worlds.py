"""Worlds that the tests share: one of each kind that adalook simulates, and the one that docs/simulators.md builds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import adalook as al
from adalook.simulators.base import Simulator
from adalook.simulators.make import make_simulator
from adalook.simulators.minatar import GAMES

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulators.md"


def documented_code() -> list[str]:
    """The Python blocks of the document, in order."""
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def _documented_world() -> Any:
    names: dict[str, Any] = {"__name__": "documented"}
    exec(documented_code()[0], names)
    return names["WindyWalk"]


WindyWalk: Any = _documented_world()


def slippery_lake() -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1")


WORLDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "documented": (WindyWalk(), {}),
    "chain": (al.zoo.chain(n=5), {"start": 2}),
    "maze": (al.zoo.maze(size=8), {}),
    "garnet": (al.zoo.garnet(20, 3, 3, seed=0), {}),
    **{name: (f"MinAtar/{name}-v1", {}) for name in GAMES},
    **{f"sticky {name}": (f"MinAtar/{name}-v1", {"sticky": 0.1}) for name in GAMES},
    "all actions": ("MinAtar/Breakout-v0", {"ramping": False}),
    "CartPole": ("CartPole-v1", {}),
    "MountainCar": ("MountainCar-v0", {}),
    "Acrobot": ("Acrobot-v1", {}),
    "FrozenLake": (slippery_lake(), {}),
    "Taxi": ("Taxi-v4", {}),
    "CliffWalking": ("CliffWalking-v1", {}),
    "Blackjack": ("Blackjack-v1", {}),
    "Tutankham": ("ALE/Tutankham-v5", {"life_loss_ends": True, "clip_rewards": True}),
    "Breakout (Atari)": ("ALE/Breakout-v5", {}),
    "Pong": ("ALE/Pong-v5", {"noop_max": 0, "frame_skip": 3}),
}


def make(name: str) -> Simulator:
    world, options = WORLDS[name]
    return make_simulator(world.clone() if isinstance(world, Simulator) else world, **options)
