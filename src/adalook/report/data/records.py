"""Records of a results folder: for each job, how it ended and what every pass of it cost.

The total of a job depends on what counts as a query, so it is asked for with a `Convention`: how the lookahead is
counted (`tree`, `root`, `shared`) and how the evaluation (`exact`, `simulated`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray

IMPROVEMENTS = {
    "tree": "every node of the lookahead tree of every state",
    "root": "each (state, action) pair once below each state",
    "shared": "each (state, action) pair once per level over all states",
}
EVALUATIONS = {
    "exact": "one per state for a direct solve, or for each sweep",
    "simulated": "a rollout of the effective horizon from every state",
}
"""Ways to count the queries of a lookahead and of an evaluation, and what each counts."""


class Convention(NamedTuple):
    """A way to count queries: of the lookahead, and of the evaluation."""

    improvement: str
    evaluation: str

    def __str__(self) -> str:
        return f"{self.improvement} + {self.evaluation}"

    @property
    def explanation(self) -> str:
        """A sentence that says what is counted."""
        return (
            f"Counted for the lookahead: {IMPROVEMENTS[self.improvement]}; for the evaluation of a policy: "
            f"{EVALUATIONS[self.evaluation]}."
        )


HEADLINE = Convention("root", "simulated")
CONVENTIONS = tuple(Convention(i, e) for e in ("simulated", "exact") for i in ("root", "tree", "shared"))
"""All six, the headline first."""
COUNTING = (
    "A query is a call to the model with a state and an action. Queries of the lookahead are counted by "
    + ", ".join(f"{name} ({what})" for name, what in IMPROVEMENTS.items())
    + "; those of the evaluation by "
    + " or ".join(f"{name} ({what})" for name, what in EVALUATIONS.items())
    + "."
)
"""The six conventions in words."""


class Damage(Exception):
    """Raised when a part of a file is not what it should be."""

    def __init__(self, expected: object, got: object) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected, self.got = expected, got


@dataclass(frozen=True)
class GroupStyle:
    """The style in which figures draw a group of methods, as `experiment.json` says."""

    title: str
    """For legends."""
    description: str
    """For tables and menus, where there is more room."""
    colour: str
    marker: str
    place: int = 0
    """In the order of figures."""


@dataclass(frozen=True)
class PriorCost:
    """The origin of a prior, its cost, and whether the job's total includes that cost."""

    kind: str
    counted: bool
    improvement: Mapping[str, int]
    evaluation: Mapping[str, int]

    def total(self, improvement: str, evaluation: str) -> int:
        return self.improvement[improvement] + self.evaluation[evaluation]


@dataclass(frozen=True)
class Record:
    """One job of an experiment; sequences have one entry per pass, of which the last changes nothing."""

    job: str
    group: str
    style: GroupStyle
    label: str
    parameters: Mapping[str, Any]
    model: Mapping[str, Any]
    seed: int
    status: str
    iterations: int
    """Updates that changed the policy."""
    passes: int
    policy_loss: float
    distance: FloatArray
    """‖V* − V^π‖∞ of the policy that the pass started from."""
    changed: tuple[int, ...]
    max_depth: tuple[int, ...]
    deep_states: tuple[int, ...]
    """States that looked further than one step."""
    improvement: Mapping[str, tuple[int, ...]]
    evaluation: Mapping[str, tuple[int, ...]]
    prior: PriorCost | None
    effective_lookahead: FloatArray | None
    """(iterations, bins) share of the states per effective lookahead log_γ κ_s, where it was counted."""
    induced_contraction: float | None
    """κ^(θ), the contraction that Theorem 2 speaks of, measured over the run; only for QLPI."""
    cost_bound: float
    """The most queries of an iteration, by the theorem about the method; infinite where there is none."""
    trace: str | None
    model_key: str | None

    @property
    def discount(self) -> float:
        return float(self.model["discount"])

    @property
    def num_states(self) -> int:
        return int(self.model["states"])

    @property
    def num_actions(self) -> int:
        return int(self.model["actions"])

    @property
    def has_depth(self) -> bool:
        """Whether the settings ask for a depth at all."""
        return any(name in self.parameters for name in ("depth", "kappa_power", "budgets"))

    @property
    def lookahead(self) -> int:
        """The deepest lookahead the settings ask for: h of h-PI, of TLPI(γ^h), or the deepest budget of QLPI."""
        if "kappa_power" in self.parameters:
            return int(self.parameters["kappa_power"])
        if "depth" in self.parameters:
            return int(self.parameters["depth"])
        return max(self.budgets, default=1)

    @property
    def budgets(self) -> dict[int, float]:
        """QLPI's shares of the states per depth; empty for other methods."""
        if "states_per_depth" in self.parameters:
            share = int(self.parameters["states_per_depth"]) / self.num_states
            return dict.fromkeys(range(2, int(self.parameters["depth"]) + 1), share)
        return {int(depth): float(share) for depth, share in (self.parameters.get("budgets") or {}).items()}

    def total(self, improvement: str = HEADLINE.improvement, evaluation: str = HEADLINE.evaluation) -> int:
        """Return the queries until the end, with those of the prior where they count."""
        own = sum(self.improvement[improvement]) + sum(self.evaluation[evaluation])
        return own + (self.prior.total(improvement, evaluation) if self.prior and self.prior.counted else 0)

    def cumulative(
        self, improvement: str = HEADLINE.improvement, evaluation: str = HEADLINE.evaluation
    ) -> tuple[int, ...]:
        """Return the queries up to and with each pass, (passes,); the last is `total`."""
        running = self.prior.total(improvement, evaluation) if self.prior and self.prior.counted else 0
        sums = []
        for step in map(sum, zip(self.improvement[improvement], self.evaluation[evaluation], strict=True)):
            running += step
            sums.append(running)
        return tuple(sums)


def read_group(place: int, raw: Mapping[str, Any]) -> GroupStyle:
    """Return the style of one group, or raise `Damage`."""
    title, description, colour, marker = (_text(raw[name]) for name in ("title", "description", "colour", "marker"))
    return GroupStyle(title, description, colour, marker, place)


def read_record(raw: Mapping[str, Any], groups: Mapping[str, GroupStyle]) -> Record:
    """Check one record as it came from JSON; raises Damage, or what a missing or misshapen entry raises."""
    if raw["group"] not in groups:
        raise Damage(f"a group that experiment.json lists: {', '.join(groups)}", repr(raw["group"]))
    passes = natural_number(raw["passes"])
    queries = raw["queries"]
    model = dict(raw["model"])
    states, actions = natural_number(model["states"]), natural_number(model["actions"])
    if states < 1 or actions < 1 or not 0.0 <= _number(model["discount"], "discount") < 1.0:
        raise Damage("a model with states, actions and a discount in [0, 1)", model)
    deep = _counts(raw["deep_states"], passes, "deep_states")
    if max(deep, default=0) > states:
        raise Damage(f"at most {states} deep states", max(deep))
    bins = raw.get("effective_lookahead")
    predicted = raw.get("predicted") or {}
    induced, cost = predicted.get("kappa_theta"), predicted.get("cost_per_iteration")
    return Record(
        job=_text(raw["job"]),
        group=_text(raw["group"]),
        style=groups[raw["group"]],
        label=_text(raw["label"]),
        parameters=dict(raw["parameters"]),
        model=model,
        seed=natural_number(raw["seed"]),
        status=_text(raw["status"]),
        iterations=natural_number(raw["iterations"]),
        passes=passes,
        policy_loss=math.inf if raw["policy_loss"] is None else _number(raw["policy_loss"], "policy_loss"),
        distance=_distances(raw["distance"], passes),
        changed=_counts(raw["changed"], passes, "changed"),
        max_depth=_counts(raw["max_depth"], passes, "max_depth"),
        deep_states=deep,
        improvement={name: _counts(queries["improvement"][name], passes, name) for name in IMPROVEMENTS},
        evaluation={name: _counts(queries["evaluation"][name], passes, name) for name in EVALUATIONS},
        prior=None if raw["prior"] is None else _prior(raw["prior"]),
        effective_lookahead=None if bins is None else _histograms(bins, passes),
        induced_contraction=None if induced is None else _number(induced, "kappa_theta"),
        cost_bound=math.inf if cost is None else _number(cost, "cost_per_iteration"),
        trace=None if raw.get("trace") is None else _text(raw["trace"]),
        model_key=None if raw.get("model_key") is None else _text(raw["model_key"]),
    )


def natural_number(number: object) -> int:
    """Return a natural number or raise Damage; JSON's true and 1.0 are none."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Damage("a whole number >= 0", repr(number))
    return number


def _text(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise Damage("a text", repr(text))
    return text


def _number(number: object, name: str) -> float:
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise Damage(f"a finite number as {name}", repr(number))
    return float(number)


def _counts(numbers: object, passes: int, name: str) -> tuple[int, ...]:
    if not isinstance(numbers, list) or len(numbers) != passes:
        raise Damage(f"{passes} numbers in {name}", len(numbers) if isinstance(numbers, list) else repr(numbers))
    return tuple(natural_number(number) for number in numbers)


def _distances(numbers: object, passes: int) -> FloatArray:
    if not isinstance(numbers, list) or len(numbers) != passes:
        raise Damage(f"{passes} distances", len(numbers) if isinstance(numbers, list) else repr(numbers))
    distances = np.array([_number(number, "distance") for number in numbers], np.float64)
    if (distances < 0.0).any():
        raise Damage("distances >= 0", float(distances.min()))
    return distances


def _histograms(rows: object, passes: int) -> FloatArray:
    shares = np.array(rows, np.float64)
    if shares.ndim != 2 or len(shares) > passes or not np.isfinite(shares).all():
        raise Damage(f"at most {passes} rows of shares in effective_lookahead", shares.shape)
    sums = shares.sum(axis=1)
    if (shares < 0.0).any() or (np.abs(sums - 1.0) > 1e-6).any():
        raise Damage("shares that add up to 1 in effective_lookahead", sums.tolist())
    return shares


def _prior(raw: Mapping[str, Any]) -> PriorCost:
    queries = raw["queries"]
    return PriorCost(
        kind=_text(raw["kind"]),
        counted=bool(raw.get("counted", True)),
        improvement={name: natural_number(queries["improvement"][name]) for name in IMPROVEMENTS},
        evaluation={name: natural_number(queries["evaluation"][name]) for name in EVALUATIONS},
    )
