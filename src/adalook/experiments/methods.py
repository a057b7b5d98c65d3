"""The planning methods as experiments run them: a registered method in one setting, and how records call it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adalook.mdp.model import MDP
from adalook.planning.priors import Prior
from adalook.planning.rules.base import Method
from adalook.planning.rules.registry import compared_methods, find_method
from adalook.planning.rules.spec import MethodGroup, MethodSetting, ObservedRun, TheoryBound


@dataclass(frozen=True)
class TrialMethod:
    """One method in one setting, with what its records say about it."""

    method: MethodSetting
    label: str
    """For legends."""
    slug: str
    """The method's part of a job's name."""
    parameters: dict[str, Any] = field(default_factory=dict)
    depth: int | None = None
    """The greatest depth, if it is fixed beforehand."""
    short_label: str = ""
    """For legends that also name a prior; empty for the label itself."""

    @property
    def name(self) -> str:
        """The method's registered name."""
        return self.method.spec.name

    @property
    def group(self) -> MethodGroup:
        """The group of methods that figures draw it with."""
        return self.method.spec.group

    def make(self, mdp: MDP, prior: Prior | None) -> Method:
        """Return the method for a model."""
        return self.method.make(mdp, prior)

    def bound(self, method: Method, mdp: MDP, run: ObservedRun) -> TheoryBound | None:
        """Return what theory says about a run of the method that `make` made; None where it says nothing."""
        return None if self.method.spec.bound is None else self.method.spec.bound(method, mdp, run)


def hpi(depth: int) -> TrialMethod:
    """Return h-PI; PI itself for depth 1."""
    method = find_method(f"hpi:{depth}")
    return TrialMethod(method, method.label, f"hpi/h={depth}", {"depth": depth}, depth)


def tlpi(power: int) -> TrialMethod:
    """Return TLPI with κ = γ^power; β = 0, the setting for a perfect prior, whatever the prior."""
    method = find_method(f"tlpi:g^{power}")
    return TrialMethod(method, method.label, f"tlpi/power={power}", {"kappa_power": power}, power)


def qlpi(budgets: dict[int, float]) -> TrialMethod:
    """Return QLPI with a share of the states for each depth, such as {2: 0.1, 4: 0.05, 8: 0.02}."""
    method = find_method(f"qlpi:{','.join(f'{depth}={share!r}' for depth, share in budgets.items())}")
    shares = ",".join(f"{share:g}" for share in budgets.values())
    parameters = {"budgets": {str(depth): share for depth, share in budgets.items()}}
    return TrialMethod(method, method.label, f"qlpi/theta={shares}", parameters, max(budgets), short_label="QLPI")


def qlpi_one_per_depth(depth: int) -> TrialMethod:
    """Return QLPI with a single state for each of the depths 2..depth: all that the chain needs."""
    method = find_method(f"qlpi:{','.join(f'{level}=1/S' for level in range(2, depth + 1))}")
    parameters = {"depth": depth, "states_per_depth": 1}
    return TrialMethod(method, f"QLPI, 1 state per depth 2..{depth}", f"qlpi/h={depth}", parameters, depth, "QLPI")


def registered(text: str) -> TrialMethod:
    """Return any registered method, by a text such as "wlpi" or "toy:2"."""
    method = find_method(text)
    parameters = {"setting": method.setting} if method.setting else {}
    return TrialMethod(method, method.label, text.replace(":", "/"), parameters)


def beyond_paper() -> tuple[str, ...]:
    """Return the settings of registered methods that every planning experiment adds to the paper's own."""
    return tuple(compared_methods(beyond_paper=True))
