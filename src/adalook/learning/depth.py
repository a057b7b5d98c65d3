"""The depth that QL-DQN looks to: steps 2, 3 and 4 of the paper (section "QL-DQN and Atari Experiments").

    step 2   d_h(s₀) = |Ṽ*(s₀) − max_leaf (R + γ^h max_a Q_h(leaf, a))|     distances, sorted: `DistanceRanks`
    step 3   θ_2, θ_3, …                                                  shares of the buffer: `CostControlledShares`
    step 4   from depth h to h+1  iff  d_h(s₀) is in the top θ_{h+1}
             share of the distances recorded at depth h                   the rule: `QuantileDepth`

Ranks and rule are those of every search, `search.rules.quantile`; what they are among is the replay buffer's: it adds
the distances of each transition and removes them with it, and the rule asks. A search records the distance of every
level that it went through, so the distances of depth h are those of all states that came so far, not only of those that
stopped there. The shares below are the learner's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from adalook.search.rules.quantile import DistanceRanks as DistanceRanks
from adalook.search.rules.quantile import QuantileDepth as QuantileDepth
from adalook.search.rules.quantile import Ranks as Ranks
from adalook.search.rules.quantile import RankThresholds as RankThresholds


def shares_by_depth(shares: tuple[float, ...]) -> dict[int, float]:
    """Return given shares θ_2, θ_3, … by depth (QL-DQN step 3).

    >>> shares_by_depth((0.3, 1.0))
    {2: 0.3, 3: 1.0}
    """
    return {depth: float(share) for depth, share in enumerate(shares, start=2)}


def least_depth(shares: Mapping[int, float]) -> int:
    """Return the depth that every tree reaches: 1, and one more for each of the first shares that is 1.

    >>> least_depth({2: 0.3, 3: 1.0}), least_depth({2: 1.0, 3: 0.5})
    (1, 2)
    """
    return 1 + len(list(itertools.takewhile(lambda depth: shares[depth] >= 1.0, sorted(shares))))


class CostControlledShares(Mapping[int, float]):
    """Shares θ that are controlled so that a decision costs `nodes` simulated steps on average (step 3).

    Where paths of the tree merge, depth is cheap and almost every state looks deep; where they do not, only the hard
    ones do. Steps are counted and not timed, so that one seed gives one run.

    Args:
        max_depth: H, the depth of the last share.
        nodes: what a decision may cost.
        one_level: θ_3 leaves 0 when θ_2 has reached 1, and so on: trees differ by at most one level. Otherwise all
            depths have the same share, and few trees go deep.

    >>> shares = CostControlledShares(max_depth=3, nodes=30.0)
    >>> shares.update(60.0)
    >>> dict(shares)
    {2: 0.49, 3: 0.49}
    >>> dict(CostControlledShares(max_depth=3, nodes=30.0, one_level=True))
    {2: 0.5, 3: 0.0}
    """

    GAIN = 0.01
    """By how much θ falls when a round costs twice what it may."""
    MEMORY = 500
    """Rounds of which the mean of θ is taken that is played by, about."""
    MAX_SHARE = 1.0 - 1e-9
    """Above every rank share, yet below 1, which would not wait for ranks."""

    def __init__(self, max_depth: int, nodes: float, *, one_level: bool = False) -> None:
        self._depths = range(2, max_depth + 1)
        self._nodes = nodes
        self._one_level = one_level
        self.share = 0.5
        """θ of all depths; with `one_level`, the sum of θ over all depths."""
        self.mean_share = self.share
        """Running mean of `share`, of the last `MEMORY` rounds or as many as there were."""
        self.rounds = 0
        self._playing = False

    def update(self, nodes: float) -> None:
        """Move θ after a round whose decisions cost `nodes` simulated steps on average."""
        most = float(len(self._depths)) if self._one_level else self.MAX_SHARE
        self.share = min(max(self.share + self.GAIN * (1.0 - nodes / self._nodes), 0.0), most)
        self.rounds += 1
        self.mean_share += (self.share - self.mean_share) / min(self.rounds, self.MEMORY)

    @contextmanager
    def at_play(self) -> Iterator[None]:
        """Answer with the mean of recent rounds: nothing moves θ at play, and what it was last is due to chance.

        >>> shares = CostControlledShares(max_depth=2, nodes=30.0)
        >>> shares.update(0.0)
        >>> shares.update(90.0)
        >>> with shares.at_play():
        ...     print(shares[2])
        0.5
        >>> shares[2]
        0.49
        """
        before, self._playing = self._playing, True
        try:
            yield
        finally:
            self._playing = before

    def state(self) -> dict[str, float]:
        """Return what it goes on from, as plain data."""
        return {"share": self.share, "mean_share": self.mean_share, "rounds": self.rounds}

    def load_state(self, state: Mapping[str, float]) -> None:
        """Go on from what `state` gave; of older runs, and for who only plays, there is θ alone."""
        self.share = float(state["share"])
        self.mean_share, self.rounds = float(state.get("mean_share", self.share)), int(state.get("rounds", self.MEMORY))

    def __getitem__(self, depth: int) -> float:
        shallower = depth - 2 if self._one_level else 0
        share = self.mean_share if self._playing else self.share
        return min(max(share - shallower, 0.0), self.MAX_SHARE)

    def __iter__(self) -> Iterator[int]:
        return iter(self._depths)

    def __len__(self) -> int:
        return len(self._depths)
