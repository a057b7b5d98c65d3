"""Simulators that the tests share: one of each family, and the one that docs/simulators.md builds."""

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


def run_document(blocks: int | None = None) -> dict[str, Any]:
    """Run the first Python blocks of the document, or all, in one namespace, and return it."""
    names: dict[str, Any] = {"__name__": "documented"}
    for block in documented_code()[:blocks]:
        exec(block, names)
    return names


WindyWalk: Any = run_document(blocks=1)["WindyWalk"]


def slippery_lake() -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1")


SIMULATORS: dict[str, tuple[Any, dict[str, Any]]] = {
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
    env, options = SIMULATORS[name]
    return make_simulator(env.clone() if isinstance(env, Simulator) else env, **options)
