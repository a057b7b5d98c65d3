"""The paper's "Maze Experiments": fixed depths, TLPI and QLPI with a perfect prior, QLPI with aggregated priors.

Ours on top: WLPI, which needs no prior, and the two other priors that the paper names but does not try, the values
after a few iterations of PI and the values of a similar task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from adalook.experiments.methods import TrialMethod, beyond_paper, hpi, qlpi, registered, tlpi
from adalook.experiments.models import MazeModel
from adalook.experiments.priors import ExactPrior, FewIterationsPrior, PriorSource, SimilarTaskPrior, SquaresPrior
from adalook.experiments.trial import LOOKAHEAD_EDGES, Trial

Shares = tuple[float, ...]

PAPER_SHARES: tuple[Shares, ...] = ((0.3, 0.2, 0.1), (0.2, 0.15, 0.05), (0.2, 0.05, 0.02), (0.1, 0.05, 0.02))
"""θ of the depths 2, 4, 8."""


@dataclass(frozen=True)
class MazeExperiment:
    """Every method on every maze; a seed draws goals, trap and the initial policy of all runs on its maze."""

    seeds: int = 10
    size: int = 30
    discount: float = 0.98
    depths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    kappa_powers: tuple[int, ...] = (2, 3, 4, 5, 6, 7)
    quantile_depths: tuple[int, ...] = (2, 4, 8)
    quantile_shares: tuple[Shares, ...] = PAPER_SHARES
    approximate_shares: Shares = (0.1, 0.05, 0.02)
    """QLPI's budgets with priors that are not perfect."""
    approximate_powers: tuple[int, ...] = (3, 5)
    """TLPI's κ with priors that are not perfect."""
    squares: tuple[int, ...] = (2, 3, 4, 5)
    few: tuple[int, ...] = (2, 3, 4)
    similar_seed_offset: int = 1000
    """The similar task of seed s has the goals and trap of seed s + this."""
    traced_power: int = 3
    traced_squares: int = 3
    """Of the methods with many settings, the explorer gets these."""
    methods: tuple[str, ...] = field(default_factory=beyond_paper)
    """Of those that are not the paper's."""
    lookahead_edges: tuple[int, ...] = LOOKAHEAD_EDGES

    name = "maze"

    def jobs(self) -> list[Trial]:
        """Return all trials, by seed."""
        return [trial for seed in range(self.seeds) for trial in self._on(MazeModel(self.size, self.discount, seed))]

    def _on(self, model: MazeModel) -> Iterator[Trial]:
        for depth in self.depths:
            yield self._trial(model, hpi(depth), keep_trace=True, histogram=depth == 1)
        for power in self.kappa_powers:
            yield self._trial(model, tlpi(power), ExactPrior(), keep_trace=power == self.traced_power)
        for shares in self.quantile_shares:
            yield self._trial(model, self._quantiles(shares), ExactPrior(), keep_trace=True)
        for text in self.methods:
            yield self._trial(model, registered(text), keep_trace=True)
        approximate = self._quantiles(self.approximate_shares)
        for k in self.squares:
            source = SquaresPrior(k)
            yield self._trial(model, approximate, source, f"aggregated/k={k}", keep_trace=k == self.traced_squares)
        methods = [approximate, *(tlpi(power) for power in self.approximate_powers)]
        for method in methods:
            for few in self.few:
                yield self._trial(model, method, FewIterationsPrior(few), f"few/{few}/{method.slug}")
            similar = MazeModel(self.size, self.discount, model.seed + self.similar_seed_offset)
            yield self._trial(model, method, SimilarTaskPrior(similar), f"similar/{method.slug}")

    def _quantiles(self, shares: Shares) -> TrialMethod:
        return qlpi(dict(zip(self.quantile_depths, shares, strict=True)))

    def _trial(
        self,
        model: MazeModel,
        method: TrialMethod,
        prior: PriorSource | None = None,
        slug: str = "",
        *,
        keep_trace: bool = False,
        histogram: bool = False,
    ) -> Trial:
        name = f"{self.name}/{slug or method.slug}/seed={model.seed}"
        return Trial(name, model, method, prior, keep_trace=keep_trace, histogram=histogram)
