"""The paper's "Motivating Example": how many iterations a reward takes to travel back along a chain, and their cost.

PI moves it one state an iteration, h-PI h states; TLPI with κ = γ^h and QLPI with one state per depth 2..h are as fast
and look further in h states, or h − 1, instead of all. WLPI, which has no depth to set, follows the news to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from adalook.experiments.methods import beyond_paper, hpi, qlpi_one_per_depth, registered, tlpi
from adalook.experiments.models import ChainModel
from adalook.experiments.priors import ExactPrior
from adalook.experiments.trial import Trial


@dataclass(frozen=True)
class ChainExperiment:
    """Every method on chains of several lengths, all states starting at action d."""

    lengths: tuple[int, ...] = (12, 20, 59, 120)
    depths: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    discount: float = 0.9
    methods: tuple[str, ...] = field(default_factory=beyond_paper)
    """Of those that are not the paper's."""

    name = "chain"

    def jobs(self) -> list[Trial]:
        """Return all trials, by length."""
        return [trial for n in self.lengths for trial in self._on(ChainModel(n, self.discount))]

    def _on(self, model: ChainModel) -> list[Trial]:
        deeper = [depth for depth in self.depths if depth > 1]
        with_prior = [*map(tlpi, deeper), *map(qlpi_one_per_depth, deeper)]
        without = [*map(hpi, self.depths), *map(registered, self.methods)]
        return [
            *(Trial(f"{self.name}/{model.key}/{method.slug}", model, method) for method in without),
            *(Trial(f"{self.name}/{model.key}/{method.slug}", model, method, ExactPrior()) for method in with_prior),
        ]
