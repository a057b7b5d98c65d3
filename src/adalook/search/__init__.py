"""From a state to an action: an exact tree of fixed or adaptive depth.

from adalook.search import FixedDepth, Root, search
"""

from adalook.search.budget import Budget as Budget
from adalook.search.distance_record import DistanceRecord as DistanceRecord
from adalook.search.expander import Expander as Expander
from adalook.search.expander import InProcess as InProcess
from adalook.search.fixed_depth import FixedDepth as FixedDepth
from adalook.search.gap_depth import GapDepth as GapDepth
from adalook.search.quantile_depth import QuantileDepth as QuantileDepth
from adalook.search.quantile_depth import Ranks as Ranks
from adalook.search.result import Leaf as Leaf
from adalook.search.result import Level as Level
from adalook.search.result import SearchResult as SearchResult
from adalook.search.result import Seconds as Seconds
from adalook.search.result import Status as Status
from adalook.search.root import Root as Root
from adalook.search.rule import DepthRule as DepthRule
from adalook.search.rule import LevelView as LevelView
from adalook.search.rule import ValueFunction as ValueFunction
from adalook.search.tree import search as search
from adalook.search.tree import search_many as search_many
from adalook.search.workers import WorkerError as WorkerError
from adalook.search.workers import Workers as Workers
from adalook.search.workers import expander_for as expander_for
