"""The rounds of a sharded solve, as the process sees them that started it.

    tell every shard its halo  ->  each solves its own states  ->  gather the boundary  ->  Newton's step, and again

Rounds begin from a lower bound of V*, so that what a shard hopes for beyond its boundary is never more than there is:
news of rewards then travels a shard further with each round, and no hope has to be disappointed step by step. A shard
is asked only if its halo, or the tolerance, has changed. When the boundary stands still to within the tolerance, every
shard backs up its states once with the true values of its neighbours; the extremes of all shards are those of the whole
model, and give the certificate that `al.certify` would give.

Answers depend on the shards and on nothing else: a shard that was lost with its process is built again and told, in the
same order, what it had been told since its last snapshot.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray
from adalook._interrupts import SignalGuard
from adalook.errors import EngineError, ModelError, shown
from adalook.mdp import checks
from adalook.planning.certificate import Certificate, from_residual
from adalook.planning.lookahead.levels import Residual
from adalook.planning.sharded.blocks import BlockSource
from adalook.planning.sharded.boundary import Boundary, solve_affine
from adalook.planning.sharded.hosts import Request, ShardHosts
from adalook.planning.sharded.shard import BoundaryPart, LocalAnswer, ShardFacts, ShardState, shared_rounding_terms
from adalook.planning.sharded.solution import ShardRound
from adalook.planning.solution import Status

if TYPE_CHECKING:
    from adalook.planning.sharded.checkpoint import RoundsCheckpoint

FAST, PLAIN_ROUNDS = 0.3, 3
"""Newton's step is taken after so many plain rounds if the last left more than this share of the change before it."""
REDUCTION, LEAST_REDUCTION = 1e-3, 1e-12
"""What is left of the residual when Newton's step is found; less, down to the second, if steps do not get on …"""
ENOUGH = 0.1
"""… but at once to this share of what the tolerance needs when no action changed any more."""
LOCAL_SHARE = 0.1
"""Shards are solved to this share of the boundary's last change, or to that of Newton's step …"""
FIRST_SHARE = 1e-3
"""… and at first to this share of the largest value that there can be …"""
FINEST = 0.25
"""… but never better than to this share of the tolerance, unless that turns out not to be enough."""
FINER = 0.25
MAX_REFINEMENTS = 4
MAX_DEATHS = 5
"""So many hosts in a row may be lost without an answer."""
NO_NEWS, STALLED = 2.0**-49, 4
"""A change of boundary values by no more than this share of the largest, or that so many rounds left, is rounding."""


class ModelBounds(NamedTuple):
    """The numbers that the certificate of the whole model rests on, put together from its shards."""

    discount: float
    largest_reward: float
    row_sums: tuple[float, float]
    rounding_terms: int

    @property
    def contraction(self) -> tuple[Fraction, Fraction]:
        """1 − γρ, exactly, for the bounds ρ on the row sums, low and high."""
        low, high = (1 - Fraction(self.discount) * Fraction(row_sum) for row_sum in self.row_sums)
        return low, high

    @classmethod
    def of(cls, facts: Sequence[ShardFacts], discount: float) -> ModelBounds:
        """Put together what the shards know, and check what none of them can."""
        largest = max(fact.largest_reward for fact in facts)
        lows, highs = zip(*(fact.row_sums for fact in facts), strict=True)
        low, high = min(lows), max(highs)
        terms = max(fact.rounding_terms for fact in facts)
        widths = np.sum([fact.shared_widths for fact in facts], axis=0)
        for row, parts in enumerate(zip(*(fact.shared_sums for fact in facts), strict=True)):
            total, width = math.fsum(parts), int(widths[row])
            allowed = checks.ROW_SUM_TOLERANCE * min(max(width, 1), checks.ROW_SUM_CAP)
            if not abs(total - 1.0) <= allowed:
                raise ModelError(
                    f"the probabilities of shared row {row} do not sum to one",
                    expected=f"1 within {checks.ROW_SUM_TOLERANCE:.0e} per successor",
                    got=shown(total),
                    remedy="divide them by their sum",
                )
            slack = 4 * np.finfo(float).eps
            low, high = min(low, total - slack), max(high, total + slack)
        if len(widths):
            # A row of the model that leads to a shared row adds its own rounding to that of the shared row.
            stochastic = any(fact.row_sums != (1.0, 1.0) for fact in facts)
            terms = shared_rounding_terms(int(widths.max())) + (terms if stochastic else 0)
        checks.check_reward_size(largest, discount)
        checks.check_row_sums(high, discount)
        return cls(discount, largest, (low, high), terms)


class ToldShards(NamedTuple):
    """A round as it was told to the shards."""

    x: FloatArray
    """The boundary values."""
    tolerance: float
    improved: frozenset[int]
    """The shards that were asked."""


@dataclass
class RoundLog:
    """All that shards were told since their last snapshot: a new process gets there by being told the same."""

    snapshot: Mapping[int, ShardState] = field(default_factory=dict)
    told: list[ToldShards] = field(default_factory=list)

    def history(self, k: int, boundary: Boundary) -> list[Request]:
        """Return the requests that bring an empty shard k to the present."""
        restored = [Request("restore", (self.snapshot[k],))] if k in self.snapshot else []
        rounds = [item for item in self.told if k in item.improved]
        return restored + [Request("improve", (item.x[boundary.imports[k]], item.tolerance)) for item in rounds]


class Limits(NamedTuple):
    """The limits of a solve."""

    tolerance: float
    max_rounds: int | None
    max_seconds: float | None


class Ending(NamedTuple):
    """The end of the rounds: why, and with which certificate."""

    status: Status
    certificate: Certificate
    shift: float
    """What is to be added to the values."""


class Rounds:
    """A sharded solve between rounds."""

    def __init__(
        self, source: BlockSource, edges: Sequence[int], hosts: ShardHosts, limits: Limits, began: float
    ) -> None:
        self._hosts, self._limits, self._began = hosts, limits, began
        self.log = RoundLog()
        self.trace: list[ShardRound] = []
        self._boundary: Boundary | None = None
        self._lost: set[int] = set()
        self._deaths = 0
        shards = range(len(edges) - 1)
        facts: list[ShardFacts] = list(self._ask({k: Request("build") for k in shards}).values())
        self.facts = facts
        self.build_seconds = self.seconds
        self.bounds = ModelBounds.of(facts, source.discount)
        self.boundary = Boundary.of(facts, source.num_states, source.num_shared)
        self._boundary = self.boundary
        self.start = min(fact.least_best_reward for fact in facts) / (1.0 - source.discount)
        self._ask({k: Request("export", (self.boundary.exports[k], self.start)) for k in shards})
        self.reduction = REDUCTION
        self._interrupt: SignalGuard | None = None
        self.finest = FINEST * limits.tolerance
        self.refinements = 0
        self.stages = self.boundary.stages(facts)
        """Shards by the order in which they can be solved."""
        self.answers: dict[int, LocalAnswer] = {}
        self.parts: dict[int, BoundaryPart | LocalAnswer] = {
            k: BoundaryPart(np.full(len(self.boundary.exports[k]), self.start), self.start * facts[k].shared_sums)
            for k in shards
        }
        """What each shard last said about the boundary."""
        self.halo: dict[int, tuple[FloatArray, float]] = {}
        self.x: FloatArray = np.full(self.boundary.size, self.start)
        self.g = self.before = self.x
        self.last = math.inf
        self.enter(0)

    def enter(self, stage: int, begun: int = 0) -> None:
        """Go on with the shards of a stage, which was begun after so many rounds."""
        self.stage, self.begun = stage, begun
        self.change = math.inf
        self._inner = self.boundary.inner(self.stages[stage])

    @property
    def seconds(self) -> float:
        """Time since the solve began."""
        return perf_counter() - self._began

    def run(self, interrupt: SignalGuard, checkpoint: RoundsCheckpoint | None = None) -> Ending:
        """Run rounds until the tolerance is certified, or a limit is reached."""
        limits, self._interrupt = self._limits, interrupt
        while True:
            if checkpoint is not None and self.trace and checkpoint.due():
                checkpoint.write(self)
            self.run_round()
            status = self._stopped()
            loss = self.trace[-1].policy_loss
            if status is None and loss > 2.0 * limits.tolerance and not self._nearly_still():
                continue
            if status is None and self.stage + 1 < len(self.stages):
                self.enter(self.stage + 1, len(self.trace))
                continue
            ending = self._certify(status)
            if ending is not None:
                return ending
            if self.stage > 0:
                self.enter(0, len(self.trace))
                self.change = 0.0  # as well as shards can

    def run_round(self) -> None:
        """Improve every shard of the stage that has news."""
        self._take_newton_step()
        scale = self.bounds.largest_reward / (1.0 - self.bounds.discount)
        share = self.reduction if self._newton else LOCAL_SHARE
        coarse = min(share * self.change, FIRST_SHARE * scale) if self._inner.any() else 0.0
        tolerance = max(self.finest, coarse)
        requests: dict[int, Request] = {}
        for k in self.stages[self.stage]:
            halo = self.x[self.boundary.imports[k]]
            known, reached = self.halo.get(k, (None, math.inf))
            if known is None or tolerance < reached or not np.array_equal(halo, known):
                requests[k] = Request("improve", (halo, tolerance))
                self.halo[k] = halo, tolerance
        answers = self._ask(requests)
        self.log.told.append(ToldShards(self.x, tolerance, frozenset(requests)))
        self.answers |= answers
        self._finish_round(tolerance, answers)

    def _finish_round(self, tolerance: float, answers: Mapping[int, LocalAnswer]) -> None:
        """Gather the boundary and record the round."""
        self.parts |= answers
        x, stage = self.x, [self.answers[k] for k in self.stages[self.stage]]
        self.before, self.last = x, self.change
        self.g = self.boundary.gather([self.parts[k] for k in range(len(self.facts))])
        self.x = self.g
        self.change = float(np.abs(self.g - x)[self._inner].max(initial=0.0))
        discount = self.bounds.discount
        spread = 2.0 * discount * self.change / (1.0 - discount)
        self.trace.append(
            ShardRound(
                boundary_change=self.change,
                policy_loss=max(item.high for item in stage) - min(item.low for item in stage) + spread,
                tolerance=tolerance,
                improved=len(answers),
                passes=max((item.passes for item in answers.values()), default=0),
                changed=sum(item.changed for item in answers.values()),
                sent_bytes=sum(self.halo[k][0].nbytes for k in answers),
                received_bytes=sum(item.boundary.nbytes + item.shared.nbytes for item in answers.values()),
                exchanges=0,
                seconds=self.seconds,
            )
        )

    @property
    def _newton(self) -> bool:
        """Whether plain rounds were too slow for this stage."""
        return any(item.exchanges for item in self.trace[self.begun :])

    def _take_newton_step(self) -> None:
        """Let the next round begin at the values that the present policies have, where plain rounds are slow."""
        x, newton = self.before, self._newton
        slow = len(self.trace) - self.begun >= PLAIN_ROUNDS and self.change > FAST * self.last
        if not (slow or newton) or self.change == 0.0 or len(self.trace) == self.begun:
            return
        if newton and self.change > 0.5 * self.last:
            self.reduction = max(1e-2 * self.reduction, LEAST_REDUCTION)
        reduction = self.reduction
        if self.trace[-1].changed == 0:
            enough = ENOUGH * (1.0 - self.bounds.discount) * self._limits.tolerance
            reduction = max(min(reduction, enough / self.change), LEAST_REDUCTION)
        residual = np.where(self._inner, self.g - x, 0.0)
        step, exchanges = solve_affine(self._respond, residual, reduction, lambda: self._stopped() is not None)
        self.x = np.where(self._inner, x + step, self.g)
        sent, received = self.boundary.bytes_per_round(self.stages[self.stage])
        record = self.trace[-1]
        self.trace[-1] = record._replace(
            exchanges=exchanges,
            sent_bytes=record.sent_bytes + exchanges * sent,
            received_bytes=record.received_bytes + exchanges * received,
            seconds=self.seconds,
        )

    def _respond(self, change: FloatArray) -> FloatArray:
        """Return how the boundary of the stage changes with itself while every shard keeps its policy."""
        imports = self.boundary.imports
        answers = self._ask({k: Request("respond", (change[imports[k]],)) for k in self.stages[self.stage]})
        nothing = [BoundaryPart(np.zeros(len(part.boundary)), 0.0 * part.shared) for part in self.parts.values()]
        whole = self.boundary.gather([answers.get(k, nothing[k]) for k in range(len(nothing))])
        return np.where(self._inner, whole, 0.0)

    def _nearly_still(self) -> bool:
        """Return whether the boundary stands still but for rounding, as well as shards can tell."""
        if self.trace[-1].tolerance > self.finest:
            return False
        changes = [item.boundary_change for item in self.trace[self.begun :] if item.tolerance <= self.finest]
        stalled = len(changes) > STALLED and min(changes[-STALLED:]) > 0.5 * min(changes[:-STALLED])
        return stalled or self.change <= NO_NEWS * float(np.abs(self.g).max(initial=0.0))

    def _stopped(self) -> Status | None:
        """Return why to stop although the tolerance is not reached, or None to go on."""
        limits = self._limits
        if self._interrupt or any(item.status is Status.INTERRUPTED for item in self.answers.values()):
            return Status.INTERRUPTED
        if limits.max_rounds is not None and len(self.trace) >= limits.max_rounds:
            return Status.ITERATION_LIMIT
        if limits.max_seconds is not None and self.seconds >= limits.max_seconds:
            return Status.TIME_LIMIT
        return None

    def _certify(self, status: Status | None) -> Ending | None:
        """Certify what there is; None if it is not good enough and there is no reason to stop."""
        tolerance = self._limits.tolerance
        certificate, shift = self.certificate(0.0), 0.0
        if math.isfinite(float(certificate.low)) and not certificate.low <= 0.0 <= certificate.high:
            shift = 0.5 * float(certificate.low + certificate.high)
            certificate = self.certificate(shift)
        if certificate.policy_loss <= tolerance:
            return Ending(Status.CONVERGED, certificate, shift)
        if status is not None:
            return Ending(status, certificate, shift)
        limited = all(item.status is Status.ROUNDING_LIMIT for item in self.answers.values())
        if self._nearly_still() and (limited or self.refinements >= MAX_REFINEMENTS):
            return Ending(Status.ROUNDING_LIMIT, certificate, shift)
        if self.refinements < MAX_REFINEMENTS:
            self.finest *= FINER
            self.refinements += 1
        return None

    def certificate(self, shift: float) -> Certificate:
        """Return bounds on V* and on the loss of the greedy policy, from one backup of every shard."""
        g = self._shifted(shift)
        answers = self._ask(
            {k: Request("certify", (g[places], shift)) for k, places in enumerate(self.boundary.imports)}
        )
        low, high, own_low, own_high, size = zip(*answers.values(), strict=True)
        residual = Residual(min(low), max(high), min(own_low), max(own_high), max(size))
        return from_residual(self.bounds, np.zeros(0), residual, greedy=True)

    def result(self, k: int, shift: float) -> ShardState:
        """Return the values and the policy of one shard."""
        halo = self._shifted(shift)[self.boundary.imports[k]]
        found: ShardState = self._ask({k: Request("result", (halo, shift))})[k]
        return found

    def _shifted(self, shift: float) -> FloatArray:
        """Return the boundary of all values plus a constant; shared rows need not sum to one exactly."""
        if shift == 0.0:
            return self.g
        answers = self._ask({k: Request("shifted", (shift,)) for k in range(len(self.facts))})
        return self.boundary.gather(list(answers.values()))

    def restore(self) -> None:
        """Let every shard take over its part of the snapshot."""
        self._ask({k: Request("restore", (state,)) for k, state in self.log.snapshot.items()})

    def digest(self) -> str:
        """Return a digest of the model, its shards and the tolerance."""
        parts = self._ask({k: Request("digest") for k in range(len(self.facts))})
        facts = (self.bounds, [(fact.states.start, fact.states.stop) for fact in self.facts], self._limits.tolerance)
        return hashlib.sha256(repr((facts, parts)).encode()).hexdigest()

    def state(self, k: int) -> ShardState:
        """Return what shard k has found so far."""
        found: ShardState = self._ask({k: Request("state")})[k]
        return found

    def _ask(self, requests: Mapping[int, Request]) -> dict[int, Any]:
        """Ask shards; those that are lost are made again, and asked again."""
        answers: dict[int, Any] = {}
        while len(answers) < len(requests):
            open_requests = {k: [*self._history(k), request] for k, request in requests.items() if k not in answers}
            found = self._hosts.ask(open_requests)
            self._lost = (self._lost - set(found)) | self._hosts.take_lost()
            answers |= found
            self._deaths = 0 if found else self._deaths + 1
            if self._deaths > MAX_DEATHS:
                raise EngineError(
                    f"{self._deaths} processes that hold shards have died in a row",
                    remedy="a script needs 'if __name__ == \"__main__\":' before its own work; else look at what fn "
                    "does, free some memory, or use more shards",
                )
        return {k: answers[k] for k in sorted(answers)}

    def _history(self, k: int) -> list[Request]:
        """Return what a shard that is lost has to be told before anything else."""
        if k not in self._lost or self._boundary is None:
            return []
        exports = Request("export", (self.boundary.exports[k], self.start))
        return [Request("build"), exports, *self.log.history(k, self.boundary)]
