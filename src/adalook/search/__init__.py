"""Tree search over simulators: from a state to an action, with trees of fixed or adaptive depth.

from adalook.search import FixedDepth, Root, search
"""

from adalook.search.chance import Sampling as Sampling
from adalook.search.result import Leaf as Leaf
from adalook.search.result import Level as Level
from adalook.search.result import SearchResult as SearchResult
from adalook.search.result import SearchStatus as SearchStatus
from adalook.search.result import Seconds as Seconds
from adalook.search.rollouts import Rollouts as Rollouts
from adalook.search.rollouts import RolloutTrees as RolloutTrees
from adalook.search.rules.base import DepthRule as DepthRule
from adalook.search.rules.base import LevelView as LevelView
from adalook.search.rules.base import ValueFunction as ValueFunction
from adalook.search.rules.fixed import FixedDepth as FixedDepth
from adalook.search.rules.gap import GapDepth as GapDepth
from adalook.search.rules.quantile import DistanceRanks as DistanceRanks
from adalook.search.rules.quantile import QuantileDepth as QuantileDepth
from adalook.search.rules.quantile import Ranks as Ranks
from adalook.search.rules.quantile import RecentDistances as RecentDistances
from adalook.search.search import Budget as Budget
from adalook.search.search import Root as Root
from adalook.search.search import search as search
from adalook.search.search import search_many as search_many
from adalook.search.workers.base import Expander as Expander
from adalook.search.workers.base import InProcessExpander as InProcessExpander
from adalook.search.workers.base import make_expander as make_expander
from adalook.search.workers.pool import WorkerError as WorkerError
from adalook.search.workers.pool import WorkerPool as WorkerPool
