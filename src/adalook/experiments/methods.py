"""The rules as experiments set them: how to make the method, what to call it, what the paper's theorems promise.

c(h) = A + A² + … + A^h, the nodes of a full tree, is the cost of looking h steps ahead in one state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from adalook.mdp.model import MDP
from adalook.planning.priors import Prior
from adalook.planning.rules.base import Method
from adalook.planning.rules.hpi import HPI
from adalook.planning.rules.qlpi import QLPI
from adalook.planning.rules.tlpi import TLPI
from adalook.planning.rules.wlpi import WLPI


def tree_nodes(num_actions: int, depth: int) -> int:
    """c(h).

    >>> tree_nodes(4, 2)
    20
    """
    return sum(num_actions**level for level in range(1, depth + 1))


@dataclass(frozen=True)
class Promise:
    """What the paper says about a run.

    The theorems' contraction per iteration (None: they say nothing), that of table 1, and the most an iteration may
    cost. `measured` holds what the theorem takes from the run itself, by the paper's name for it.
    """

    contraction: float | None
    table_contraction: float
    cost_per_iteration: int
    measured: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What theorems need to know of a finished run."""

    most_deep_states: int
    """Most states that looked further than one step in any pass."""
    induced_contraction: float
    """κ(θ): the least κ by which every pass contracted every state (definition 4.3)."""


class Rule(Protocol):
    """One setting of one rule."""

    @property
    def group(self) -> str: ...

    @property
    def label(self) -> str:
        """For legends."""

    @property
    def short_label(self) -> str:
        """For legends that also name a prior."""

    @property
    def slug(self) -> str:
        """The rule's part of a job's name."""

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def depth(self) -> int | None:
        """The greatest depth, if it is fixed beforehand."""

    def method(self, mdp: MDP, prior: Prior | None) -> Method: ...

    def promise(self, mdp: MDP, seen: Seen) -> Promise: ...


@dataclass(frozen=True)
class FixedDepth:
    """h-PI; PI itself for h = 1."""

    depth: int
    group = "hpi"

    @property
    def label(self) -> str:
        return "PI" if self.depth == 1 else f"{self.depth}-PI"

    short_label = label

    @property
    def slug(self) -> str:
        return f"hpi/h={self.depth}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"depth": self.depth}

    def method(self, mdp: MDP, prior: Prior | None) -> Method:
        return HPI(self.depth)

    def promise(self, mdp: MDP, seen: Seen) -> Promise:
        cost = mdp.num_states * tree_nodes(mdp.num_actions, self.depth)
        contraction = mdp.discount**self.depth
        return Promise(contraction, contraction, cost)


@dataclass(frozen=True)
class Threshold:
    """TLPI with κ = γ^power; β = 0, the setting for a perfect prior, whatever the prior."""

    power: int
    group = "tlpi"

    @property
    def depth(self) -> int:
        return self.power

    @property
    def label(self) -> str:
        return f"TLPI γ^{self.power}"

    short_label = label

    @property
    def slug(self) -> str:
        return f"tlpi/power={self.power}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"kappa_power": self.power}

    def method(self, mdp: MDP, prior: Prior | None) -> Method:
        return TLPI(mdp.discount**self.power, prior)

    def promise(self, mdp: MDP, seen: Seen) -> Promise:
        """Theorem 1: as fast as (h − 1)-PI, at S (c(1) + θ(κ) c(h)) an iteration. Table 1 says h-PI."""
        one, deep = (tree_nodes(mdp.num_actions, h) for h in (1, self.power))
        cost = mdp.num_states * one + seen.most_deep_states * deep
        return Promise(
            contraction=mdp.discount ** (self.power - 1) if self.power > 1 else None,
            table_contraction=mdp.discount**self.power,
            cost_per_iteration=cost,
            measured={"theta_kappa": seen.most_deep_states / mdp.num_states},
        )


@dataclass(frozen=True)
class Quantiles:
    """QLPI with shares of the states, such as ((2, 0.1), (4, 0.05), (8, 0.02))."""

    budgets: tuple[tuple[int, float], ...]
    group = "qlpi"
    short_label = "QLPI"

    @property
    def depth(self) -> int:
        return max(depth for depth, _ in self.budgets)

    @property
    def label(self) -> str:
        return f"QLPI ({', '.join(f'{share:g}' for _, share in self.budgets)})"

    @property
    def slug(self) -> str:
        return f"qlpi/theta={','.join(f'{share:g}' for _, share in self.budgets)}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"budgets": {str(depth): share for depth, share in self.budgets}}

    def method(self, mdp: MDP, prior: Prior | None) -> Method:
        return QLPI(dict(self.budgets), prior)

    def promise(self, mdp: MDP, seen: Seen) -> Promise:
        """Theorem 2: contraction κ(θ), at Σ ⌈θ_h S⌉ c(h) an iteration."""
        return quantile_promise(mdp, dict(self.budgets), seen)


@dataclass(frozen=True)
class OnePerDepth:
    """QLPI with a single state for each of the depths 2..depth: all that the chain needs."""

    depth: int
    group = "qlpi"
    short_label = "QLPI"

    @property
    def label(self) -> str:
        return f"QLPI, 1 state per depth 2..{self.depth}"

    @property
    def slug(self) -> str:
        return f"qlpi/h={self.depth}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"depth": self.depth, "states_per_depth": 1}

    def budgets(self, mdp: MDP) -> dict[int, float]:
        return dict.fromkeys(range(2, self.depth + 1), 1.0 / mdp.num_states)

    def method(self, mdp: MDP, prior: Prior | None) -> Method:
        return QLPI(self.budgets(mdp), prior)

    def promise(self, mdp: MDP, seen: Seen) -> Promise:
        return quantile_promise(mdp, self.budgets(mdp), seen)


def quantile_promise(mdp: MDP, budgets: dict[int, float], seen: Seen) -> Promise:
    """Theorem 2 with the number of states that each share buys."""
    places = QLPI(budgets, prior=None).places
    cost = mdp.num_states * tree_nodes(mdp.num_actions, 1)
    cost += sum(places(share, mdp.num_states) * tree_nodes(mdp.num_actions, h) for h, share in budgets.items())
    kappa = seen.induced_contraction
    return Promise(kappa, kappa, cost, {"kappa_theta": kappa})


@dataclass(frozen=True)
class Wave:
    """WLPI: nothing to set."""

    group = "wlpi"
    label = short_label = "WLPI"
    slug = "wlpi"
    depth = None

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def method(self, mdp: MDP, prior: Prior | None) -> Method:
        return WLPI()

    def promise(self, mdp: MDP, seen: Seen) -> Promise:
        """It is never slower than PI; a wave stays within the price of a new iteration, S·A + S."""
        return Promise(mdp.discount, mdp.discount, 2 * mdp.num_pairs + mdp.num_states)
