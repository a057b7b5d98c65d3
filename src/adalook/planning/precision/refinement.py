"""Policy iteration that goes on where float64 runs out of digits.

A policy's values are found to about 32 digits by iterative refinement: the residual is computed in double-doubles, the
correction by a solver in float64, as often as that helps; on large models at first as often as the tolerance asks for,
which may be never: where float64 falls short by its rounding bound alone, one residual is all that it takes. Actions
are then compared row by row, each with its own error bound. Rewards are scaled by a power of two first, so that neither
tiny nor huge ones leave the range of floats.

A gain is taken at first only where it is certain to be one on V^π, so that no policy comes back; then, while the
tolerance is not certified, wherever it is one on the values at hand, until a policy does come back.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.planning.certificate import Certificate, from_bounds
from adalook.planning.evaluation import functional, sweeps
from adalook.planning.evaluation.linear import krylov, lu
from adalook.planning.evaluation.ordered import acyclic
from adalook.planning.precision import double_double as dd
from adalook.planning.precision.ties import certain_ties

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

SCALED_EXPONENT = 400
"""The largest reward is scaled to about two to this power: room for 1e-300 beside it, and for values above."""
MAX_CORRECTIONS = 12
LU_MAX_WORK = 2e10
"""Multiplications of a factorisation, some seconds; beyond it corrections are swept."""
CORRECTION_SWEEPS = 20_000
CORRECTION_SHARE = 1e-3
"""A correction is good enough when it leaves this share of the residual."""
PROVEN_STATES = 1_000
"""Smaller models are refined to the end at once: that takes a millisecond, and as a rule proves the policy optimal."""
ENOUGH = 0.9
"""Share of the tolerance that the error of a policy's values may take up; the rest is for better actions."""
MAX_TIES = 1_000_000
"""Actions that may be as good as the policy's: more than this many are not looked into."""


class RefinedPass(NamedTuple):
    """One pass of refined policy iteration: a policy with its certificate, and the policy that follows."""

    values: FloatArray  # (S,) of the policy, rounded to floats
    policy: IntArray
    certificate: Certificate
    actions: IntArray
    """(S,) the improved policy."""
    changed: int
    solver: str


class Refinement:
    """Evaluates and improves policies of one model in double-doubles, starting from any policy and values."""

    def __init__(self, mdp: MDP, policy: IntArray, values: FloatArray) -> None:
        self._mdp, self._policy = mdp, policy
        self._exponent = 0
        if mdp.largest_reward > 0.0:
            self._exponent = SCALED_EXPONENT - math.frexp(mdp.largest_reward)[1]
        self._rewards: FloatArray = np.ldexp(mdp.rewards.astype(np.float64, copy=False), self._exponent)
        rows = mdp.rows.num_rows
        self._defects = dd.RowDefects(np.empty(rows), np.empty(rows), np.empty(rows))
        dd.row_defects(mdp.arrays, *self._defects)
        shared = mdp.rows.num_shared
        self._shared = dd.Expectations(np.empty(shared), np.empty(shared), np.empty(shared))
        start = np.ldexp(values, self._exponent) if np.isfinite(values).all() else np.zeros(mdp.num_states)
        self._values = dd.RelativeValues(0.0, start, np.zeros(mdp.num_states))
        self._parts = Parts(mdp)
        self._seen: set[int] = set()
        self._bold = False
        self.finished = False
        """Whether no further pass can gain anything."""

    def run_pass(self, tolerance: float) -> RefinedPass:
        """Evaluate the policy, certify it, and improve it unless the certificate reaches the tolerance."""
        mdp, policy = self._mdp, self._policy
        if tolerance > 0.0 and mdp.num_states > PROVEN_STATES and not self._bold:
            low, _, solver = self._evaluate(policy, ENOUGH * tolerance)
            undecided = np.empty((0, 2), np.int64)
            *_, highest = self._improve(policy, math.inf, 0.0, undecided)
            certificate = self._certificate(low, highest, optimal=False)
            if certificate.policy_loss <= tolerance:
                self.finished = True
                return RefinedPass(certificate.values, policy, certificate, policy, 0, solver)
        low, high, solver = self._evaluate(policy)
        slow, fast = (float(part) for part in (mdp.contraction[1], mdp.contraction[0]))
        # V^π − v lies between the two; their difference is what a comparison of actions may be off by.
        least, most = min(0.0, low / slow, low / fast), max(0.0, high / slow, high / fast)
        doubt = (most - least) * 1.000001 + dd.UNDERFLOW
        undecided = np.empty((min(MAX_TIES, mdp.num_pairs), 2), np.int64)
        actions, switched, doubtful, highest = self._improve(policy, 2.0 * doubt, doubt, undecided)
        optimal = switched == 0 and doubtful <= len(undecided)
        optimal = optimal and (doubtful == 0 or certain_ties(mdp, policy, undecided[:doubtful]))
        certificate = self._certificate(low, highest, optimal)
        enough = certificate.policy_loss <= tolerance
        if not enough and (self._bold or switched == 0):
            self._bold = True
            actions, switched, _, _ = self._improve(policy, 0.0, doubt, undecided[:0])
            mark = hash(actions.tobytes())
            if mark in self._seen:
                actions, switched = policy, 0
            self._seen.add(mark)
        self.finished = enough or switched == 0
        self._policy = actions
        return RefinedPass(certificate.values, policy, certificate, actions, switched, solver)

    def _improve(
        self, policy: IntArray, switch_tol: float, doubt: float, undecided: IntArray
    ) -> tuple[IntArray, int, int, float]:
        """Return (actions, states switched, actions undecided, upper bound on T v − v); see `dd.improve`."""
        actions = np.empty_like(policy)
        counts = dd.improve(self._operands(), policy, switch_tol, doubt, actions, undecided)
        return actions, *counts

    def _operands(self) -> dd.Operands:
        """Return what kernels read, with the values as they are now."""
        return dd.Operands(self._mdp.arrays, self._rewards, self._defects, self._shared, self._values)

    def _evaluate(self, policy: IntArray, error: float = 0.0) -> tuple[float, float, str]:
        """Correct the values to this error, or until that no longer helps: (bounds on T_π v − v, the solver's name)."""
        change = np.empty(self._mdp.num_states)
        enough = np.ldexp(error, self._exponent) * float(self._mdp.contraction[1])
        correction = self._correction_solver(policy)
        best, best_bounds, before = self._values, (-math.inf, math.inf), math.inf
        for _ in range(MAX_CORRECTIONS):
            dd.expectations(self._mdp.arrays, self._values.high, self._values.low, self._shared)
            low, high, largest, rounding = self._own_changes(policy, change)
            if not high - low < best_bounds[1] - best_bounds[0]:
                break
            best, best_bounds = self._values, (low, high)
            if largest <= rounding or largest > 0.5 * before or high - low <= enough:
                break
            before = largest
            more = correction.solve(change / largest)
            if more is None:
                break
            self._values = _recentred(self._values, more * largest)
        self._values = best
        dd.expectations(self._mdp.arrays, best.high, best.low, self._shared)
        return *best_bounds, f"refined {correction.name}"

    def _own_changes(self, policy: IntArray, out: FloatArray) -> tuple[float, float, float, float]:
        """Write T_π v − v; see `dd.own_changes`."""
        bounds: tuple[float, float, float, float] = dd.own_changes(self._operands(), policy, out)
        return bounds

    def _correction_solver(self, policy: IntArray) -> CorrectionSolver:
        """Return what solves for the corrections of a policy's values."""
        return CorrectionSolver(self._mdp, policy, self._parts)

    def _certificate(self, low: float, highest: float, optimal: bool) -> Certificate:
        """Return the certificate of the policy, in the model's own scale."""
        v = self._values
        values: FloatArray = np.ldexp(v.common + v.high, -self._exponent)
        scale = Fraction(2) ** -self._exponent
        if not (math.isfinite(low) and math.isfinite(highest)):
            return Certificate(values, -math.inf, math.inf, math.inf)
        certificate = from_bounds(self._mdp.contraction, values, Fraction(low) * scale, Fraction(highest) * scale)
        return Certificate(values, certificate.low, certificate.high, 0.0) if optimal else certificate


def _recentred(v: dd.RelativeValues, more: FloatArray) -> dd.RelativeValues:
    """Return v + more, with as much as possible in common."""
    high, low = v.high.copy(), v.low.copy()
    dd.add_floats(high, low, more, 0.0)
    common = v.common + (0.5 * float(high.min()) + 0.5 * float(high.max()))
    less, rest = dd.two_sum(v.common, -common)  # exactly what the states have to make up for
    dd.add_floats(high, low, np.full(len(high), less), rest)
    return dd.RelativeValues(common, high, low)


class Parts:
    """The structure of a model: pointers to follow, and the states that no cycle leads to."""

    def __init__(self, mdp: MDP) -> None:
        self.graph = functional.FunctionalGraph(mdp)
        self.peeled = acyclic.acyclic_part(mdp)
        core = self.peeled.core if self.peeled is not None else ()
        self.core = acyclic.core_model(mdp, self.peeled.core) if self.peeled is not None and len(core) else None
        self.of_core = Parts(self.core) if self.core is not None else None


class CorrectionSolver:
    """Solves x = b + γ P_π x in float64 for several b; a few digits are enough."""

    def __init__(self, mdp: MDP, policy: IntArray, parts: Parts) -> None:
        self._mdp, self._policy, self._parts = mdp, policy, parts
        self._rows = sweeps.PolicyRows.of(mdp, policy)
        self._core: CorrectionSolver | None = None
        if parts.peeled is not None and parts.core is not None and parts.of_core is not None:
            self._core = CorrectionSolver(parts.core, policy[parts.peeled.core], parts.of_core)
        self._factors: Any = None
        self.name = "values"

    def solve(self, b: FloatArray) -> FloatArray | None:
        """Return x (S,), or None where no solver gets anywhere."""
        solved = self._parts.graph.solve(self._policy, b) if self._factors is None else None
        if solved is not None:
            self.name = functional.NAME
        elif self._parts.peeled is not None:
            self.name = acyclic.NAME
            solved = self._in_order(b, self._parts.peeled)
        elif self._factorised():
            self.name = lu.NAME
            solved = self._factors.solve(b)
        else:
            solved = self._swept(b)
        return solved if solved is not None and np.isfinite(solved).all() else None

    def _in_order(self, b: FloatArray, peeled: acyclic.Peeled) -> FloatArray | None:
        """Solve the core, then the states that no cycle leads to, one after the other."""
        x: FloatArray = np.zeros(len(b))
        if self._core is not None:
            inside = self._core.solve(b[peeled.core])
            if inside is None:
                return None
            x[peeled.core] = inside
        acyclic.evaluate_in_order(self._rows._replace(reward=b), peeled.order, x)
        return x

    def _factorised(self) -> bool:
        """Return whether there is a factorisation, made when first asked for unless it would take too long."""
        if self._factors is None:
            from scipy.sparse.linalg import splu

            width = lu.separator_size(self._rows)
            if self._mdp.num_states * float(width) ** 2 > LU_MAX_WORK:
                return False
            self._factors = splu(lu.policy_matrix(self._rows))
        return True

    def _swept(self, b: FloatArray) -> FloatArray | None:
        """Sweep from zero with a constant shift or, where that is too slow, by BiCGSTAB."""
        rows, entries = self._rows._replace(reward=b), sweeps.sweep_entries(self._mdp)
        target = CORRECTION_SHARE * float(b.max() - b.min())
        swept = sweeps.sweep(rows, np.zeros(len(b)), CORRECTION_SWEEPS, target, entries)
        self.name = sweeps.NAME
        if swept.span <= target:
            return swept.values
        self.name = krylov.NAME
        return krylov.solve_by_bicgstab(rows, swept.values, CORRECTION_SHARE)[0]
