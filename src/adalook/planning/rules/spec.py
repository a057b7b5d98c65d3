"""The specification that a planning method registers once: its name, parser, style in figures and bound.

A rule's file ends with its `MethodSpec`, and `adalook.planning.rules.registry` lists it. That is all it takes for the
method to show up in `adalook solve --method`, in the demo, in the planning experiments and in their report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adalook.mdp.model import MDP
from adalook.planning.rules.base import Method


@dataclass(frozen=True)
class MethodGroup:
    """Methods that figures draw alike: in one colour, with one mark, under one name."""

    name: str
    """As records call it."""
    title: str
    """For legends."""
    description: str
    """For tables and menus, where there is more room."""
    colour: str
    """Of Okabe and Ito's palette where possible, whose colours differ for every reader."""
    marker: str
    """Matplotlib's code of a mark, for those who see no colours."""
    in_paper: bool = False


@dataclass(frozen=True)
class TheoryBound:
    """The bounds of theorems on a run: a contraction per iteration, and the most queries that an iteration takes."""

    contraction: float | None
    """The theorem's; None where it says nothing."""
    table_contraction: float
    """The same by the paper's table 1."""
    cost_per_iteration: int
    measured: dict[str, float] = field(default_factory=dict)
    """What the theorem takes from the run itself, by the paper's name for it."""


@dataclass(frozen=True)
class ObservedRun:
    """The facts of a finished run that theorems need to know."""

    most_deep_states: int
    """Most states that looked further than one step in any pass."""
    induced_contraction: float
    """κ(θ): the least κ by which every pass contracted every state (definition 4.3)."""


@dataclass(frozen=True)
class MethodSpec:
    """A planning method, registered.

    `parse` turns the setting behind the colon, such as "3" of "hpi:3", into the method for a model; the third argument
    is the prior's values, or None. `label` names a setting in legends; without it the group's title and the setting do.
    """

    name: str
    """In front of the colon."""
    method_class: type[Method]
    group: MethodGroup
    examples: tuple[str, ...]
    """Complete texts; they also say whether a setting is needed, optional or not allowed."""
    parse: Callable[[str, MDP, Any], Method]
    label: Callable[[str], str] | None = None
    bound: Callable[[Any, MDP, ObservedRun], TheoryBound] | None = None
    compared: tuple[str, ...] = ()
    """Settings that the demo shows and, for methods that are not the paper's, that the planning experiments run."""


@dataclass(frozen=True)
class MethodSetting:
    """A method in one setting, as a text such as "hpi:3" gives it."""

    spec: MethodSpec
    setting: str
    """What stands behind the colon; empty for none."""

    @property
    def label(self) -> str:
        """The name of the method in this setting, for legends."""
        if self.spec.label is not None:
            return self.spec.label(self.setting)
        return f"{self.spec.group.title} {self.setting}".rstrip()

    def make(self, mdp: MDP, prior: Any = None) -> Method:
        """Return the method for a model, with the prior's values where it goes by them."""
        return self.spec.parse(self.setting, mdp, prior)


def tree_nodes(num_actions: int, depth: int) -> int:
    """Return c(h) = A + A² + … + A^h, the nodes of a full tree: what looking h steps ahead costs in one state.

    >>> tree_nodes(4, 2)
    20
    """
    return sum(num_actions**level for level in range(1, depth + 1))
