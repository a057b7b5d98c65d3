"""adalook: planning and learning that look ahead only as far as each state needs.

>>> import adalook as al
>>> al.solve(al.zoo.maze(size=30, seed=0)).converged
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adalook.errors import AdalookError as AdalookError
    from adalook.learning.agents.dqn import DQN as DQN
    from adalook.learning.agents.qldqn import QLDQN as QLDQN
    from adalook.mdp import zoo as zoo
    from adalook.mdp.aggregation import aggregate as aggregate
    from adalook.mdp.layout import Layout as Layout
    from adalook.mdp.model import MDP as MDP
    from adalook.planning import priors as priors
    from adalook.planning.certificate import certify as certify
    from adalook.planning.rules.hpi import HPI as HPI
    from adalook.planning.rules.mpi import ModifiedPolicyIteration as ModifiedPolicyIteration
    from adalook.planning.rules.mpi import ValueIteration as ValueIteration
    from adalook.planning.rules.pi import PolicyIteration as PolicyIteration
    from adalook.planning.rules.qlpi import QLPI as QLPI
    from adalook.planning.rules.tlpi import TLPI as TLPI
    from adalook.planning.rules.wlpi import WLPI as WLPI
    from adalook.planning.solution import Solution as Solution
    from adalook.planning.solution import Status as Status
    from adalook.planning.solve import solve as solve
    from adalook.simulators.base import Simulator as Simulator
    from adalook.simulators.checker.check import check_simulator as check_simulator
    from adalook.simulators.make import make_simulator as make_simulator

__version__ = "0.1.0"

_HOMES = {
    "AdalookError": "adalook.errors",
    "DQN": "adalook.learning.agents.dqn",
    "HPI": "adalook.planning.rules.hpi",
    "Layout": "adalook.mdp.layout",
    "MDP": "adalook.mdp.model",
    "ModifiedPolicyIteration": "adalook.planning.rules.mpi",
    "PolicyIteration": "adalook.planning.rules.pi",
    "QLDQN": "adalook.learning.agents.qldqn",
    "QLPI": "adalook.planning.rules.qlpi",
    "Simulator": "adalook.simulators.base",
    "Solution": "adalook.planning.solution",
    "Status": "adalook.planning.solution",
    "TLPI": "adalook.planning.rules.tlpi",
    "ValueIteration": "adalook.planning.rules.mpi",
    "WLPI": "adalook.planning.rules.wlpi",
    "aggregate": "adalook.mdp.aggregation",
    "certify": "adalook.planning.certificate",
    "check_simulator": "adalook.simulators.checker.check",
    "make_simulator": "adalook.simulators.make",
    "priors": "adalook.planning",
    "solve": "adalook.planning.solve",
    "zoo": "adalook.mdp",
}
"""Where each public name lives. They are imported when first used, so that `import adalook` costs next to nothing."""

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'adalook' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    if name in ("zoo", "priors"):
        value: Any = importlib.import_module(f"{home}.{name}")
    else:
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
