"""An experiment of our own: fixed and adaptive depths on mazes of other sizes and discounts than the paper's.

Is the best fixed depth stable, and does adaptive depth match it?

Depths go further than the paper's 7: where evaluating is dear, at large discounts, so does the best one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from adalook.experiments.maze import PAPER_SHARES, Shares
from adalook.experiments.methods import TrialMethod, beyond_paper, hpi, qlpi, registered, tlpi
from adalook.experiments.models import MazeModel
from adalook.experiments.priors import ExactPrior
from adalook.experiments.trial import Trial


@dataclass(frozen=True)
class SweepExperiment:
    """Fixed and adaptive depths on mazes of every size, discount and seed."""

    seeds: int = 3
    sizes: tuple[int, ...] = (10, 20, 30, 50, 100)
    discounts: tuple[float, ...] = (0.9, 0.95, 0.98, 0.99, 0.999)
    depths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 10, 14, 20, 28)
    kappa_powers: tuple[int, ...] = (2, 3, 5, 7, 10, 14)
    quantile_depths: tuple[int, ...] = (2, 4, 8)
    quantile_shares: tuple[Shares, ...] = PAPER_SHARES
    methods: tuple[str, ...] = field(default_factory=beyond_paper)
    """Of those that are not the paper's."""

    name = "sweep"

    def jobs(self) -> list[Trial]:
        """Return all trials, by size, discount and seed."""
        models = [MazeModel(size, g, seed) for size in self.sizes for g in self.discounts for seed in range(self.seeds)]
        return [trial for model in models for trial in self._on(model)]

    def _on(self, model: MazeModel) -> list[Trial]:
        quantiles = [qlpi(dict(zip(self.quantile_depths, shares, strict=True))) for shares in self.quantile_shares]
        with_prior = [*map(tlpi, self.kappa_powers), *quantiles]
        without = [*map(hpi, self.depths), *map(registered, self.methods)]
        return [
            *(Trial(self._name(model, method), model, method) for method in without),
            *(Trial(self._name(model, method), model, method, ExactPrior()) for method in with_prior),
        ]

    def _name(self, model: MazeModel, method: TrialMethod) -> str:
        place = f"size={model.size},discount={model.discount:g}"
        return f"{self.name}/{place}/{method.slug}/seed={model.seed}"
