"""Every public name of adalook, listed once: type checkers read this file, and `__init__.py` imports from it lazily."""

from .engines.base import InProcess as InProcess
from .engines.base import LocalProcesses as LocalProcesses
from .engines.base import Ray as Ray
from .errors import AdalookError as AdalookError
from .learning.agents.dqn import DQN as DQN
from .learning.agents.qldqn import QLDQN as QLDQN
from .learning.config import Config as Config
from .learning.lookahead import Lookahead as Lookahead
from .mdp import zoo as zoo
from .mdp.aggregation import aggregate as aggregate
from .mdp.layout import Layout as Layout
from .mdp.model import MDP as MDP
from .planning import priors as priors
from .planning.certificate import certify as certify
from .planning.objectives.finite_horizon import FiniteHorizonSolution as FiniteHorizonSolution
from .planning.objectives.policy_values import PolicyValues as PolicyValues
from .planning.objectives.policy_values import evaluate as evaluate
from .planning.rules.auto import Auto as Auto
from .planning.rules.hpi import HPI as HPI
from .planning.rules.mpi import ModifiedPolicyIteration as ModifiedPolicyIteration
from .planning.rules.mpi import ValueIteration as ValueIteration
from .planning.rules.pi import PolicyIteration as PolicyIteration
from .planning.rules.qlpi import QLPI as QLPI
from .planning.rules.tlpi import TLPI as TLPI
from .planning.rules.wlpi import WLPI as WLPI
from .planning.sharded.model import ShardedMDP as ShardedMDP
from .planning.sharded.solution import ShardedSolution as ShardedSolution
from .planning.solution import Solution as Solution
from .planning.solution import Status as Status
from .planning.solve import solve as solve
from .simulators.base import Simulator as Simulator
from .simulators.checker.check import check_simulator as check_simulator
from .simulators.make import make_simulator as make_simulator
from .simulators.make import register_simulator as register_simulator

__version__: str
