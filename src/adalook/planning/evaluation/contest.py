"""The contest of solvers: what each has cost, and what it is predicted to cost until the end.

    left(solver) = cost per e-fold of the loss, as last measured · ln(loss / tolerance)         one that iterates
    left(direct) = passes that are expected · cost of a factorisation                           exact evaluation

All costs are nanoseconds by operation counts, never by a clock, so that one input gives one result. `Costs` has what
the operations take; `Contest` books them and chooses. What is asked of a model's structure is kept with the model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adalook.mdp.model import kept_with_model
from adalook.planning.evaluation import extrapolation, in_place
from adalook.planning.evaluation.base import PassOutcome
from adalook.planning.evaluation.linear import band, banded

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

PAIR_COST, ENTRY_COST = 1.5, 1.2
"""Nanoseconds of a backup per (state, action) and per stored probability …"""
LONG_ROW, LONG_ROW_ENTRY_COST = 16, 0.4
"""… of which long rows take fewer."""
IN_PLACE, SWEEPS, DIRECT = "in place", "sweeps", "direct"
CHEAP_DIRECT, MOST_CHEAP_DIRECT = 6.0, 40.0
"""A factorisation that costs no more than so many backups is not put off; up to the second where γ is near 1 …"""
CHEAP_SHARE, CHEAP_ACTIONS = 0.04, 4
"""… namely this share of 1/(1 − γ), as iteration in place takes the longer, unless the best reward can be kept; of
backups of so many actions, as it is sweeps of one action a state that take long."""
DIRECT_PASSES = 5
"""Exact evaluations that are expected at most, at first, of policies improved in place before each."""
FIRST_BACKUPS, LEAST_BACKUPS = 25, 5
"""Work in place, in backups, before its rate is judged, and before it is asked again what a factorisation costs."""
FIRST_COMPARISON, LOCAL_COMPARISON = 10, 50
"""Work, in backups, after which sweeps at once and in place are compared, the second on local models …"""
COMPARED_SWEEPS, CLEARLY = 2 * extrapolation.WINDOW, 2.0
"""… by so many of each; one must be so much faster to take over."""
SETTLED = 32
"""While more than a share 1/SETTLED of the actions change, they are not compared on local models, where iteration in
place is slow until the policy has settled."""
FAIR_SHARE = 0.5
"""A solver is not given up before it has cost so much of what another is predicted to cost."""
HOPELESS, HOPELESS_LARGE = 170.0, 500.0
"""Iteration in place that is predicted to take the work of so many more backups gives way to sweeps, if untried: the
second on large models, where news takes longer to come across."""
SMALL_PART = 0.15
"""Sweeps take over only where more than this part of any policy's loss is left: with less, a model has a direction …"""
UNSETTLED = 4
"""… and more than a share 1/UNSETTLED of the actions change: with fewer, the loss is about to fall."""
TURN, FIRST_TURN, NOWHERE = 2.0, 50.0, 10.0
"""While neither of iteration in place and sweeps seems to get anywhere each has its turn until it has cost so many
times what the other one has, so many backups at first: news that is on its way does not show in the loss until it
arrives. To get nowhere is to be predicted to take so many times what all have cost so far."""
SWITCH_FACTOR = 1.5
"""A solver gives way to one that is predicted to be so much faster."""


class Costs:
    """Nanoseconds of what every solver consists of, by operation counts and times per operation that were measured."""

    def __init__(self, mdp: MDP) -> None:
        rows = mdp.rows
        length = len(rows.indices) / rows.num_rows if rows.num_rows else 1.0
        entry = ENTRY_COST if length <= LONG_ROW else LONG_ROW_ENTRY_COST
        self.state = PAIR_COST + entry * max(1.0, length)
        """One state's update in a sweep."""
        self.sweep = self.state * mdp.num_states
        """One sweep over all states."""
        self.backup = self.state * mdp.num_pairs
        """One backup of every state."""


@kept_with_model
def known_costs(mdp: MDP) -> Costs:
    """Return the costs of solvers on a model."""
    return Costs(mdp)


def banded_cost(num_states: int, lower: int, upper: int) -> float:
    """Return the nanoseconds of a banded elimination, as measured; infinite where the band is too wide to be stored."""
    n = num_states
    if n * (lower + upper + 1) > banded.MAX_ENTRIES:
        return math.inf
    # Of a full matrix a third of S·l·u multiplications is left: the band ends with the matrix.
    inside = 1.0 - (lower + upper) / (2.0 * n) + lower * upper / (3.0 * n * n)
    return float(n * band.cost_per_state(lower, upper, inside))


def sparse_cost(num_states: int, width: int) -> float:
    """Return the nanoseconds of a sparse factorisation, about, from the size w of separators.

    Nested separators of size w cost w³: little on a grid, where w³ = S^1.5, and S² on a cube.
    """
    return num_states * (1_000.0 + 8.0 * width) + 3.0 * width**3


@kept_with_model
def cheap_direct_cost(mdp: MDP) -> float:
    """Return the nanoseconds up to which a factorisation is not put off."""
    far = min(MOST_CHEAP_DIRECT, CHEAP_SHARE / (1.0 - mdp.discount)) * min(1.0, CHEAP_ACTIONS / mdp.num_actions)
    backups = max(CHEAP_DIRECT, far) if in_place.kept_reward(mdp) is None else CHEAP_DIRECT
    return backups * known_costs(mdp).backup


@kept_with_model
def first_direct_cost(mdp: MDP) -> float:
    """Return the nanoseconds of a banded elimination of any policy, or some figure that is too dear to begin with.

    The first policy may be narrower than those to come.
    """
    enough = cheap_direct_cost(mdp) / (band.BAND_COST * mdp.num_states)
    return banded_cost(mdp.num_states, *banded.widest_bandwidths(mdp, enough))


class Contest:
    """Solvers that go on with each other's values, with what each has cost and is predicted to cost until the end.

    What is left to the one at work follows from the measured rate, how far the loss fell per nanosecond. Factorisations
    are given one pass, and one more per power of ten of the actions that change, at most `DIRECT_PASSES`; when these
    are used up without success, they are expected to need as many again. They take over from iteration, and it from
    them, once that has cost a fair share of what they would: a wrong guess costs a constant factor at most. Iteration
    in place and sweeps are compared on one policy; before that, one that hardly gets on in place is given up.
    """

    def __init__(self, mdp: MDP, tolerance: float, costs: Costs) -> None:
        self._mdp, self._costs, self._tolerance, self._num_states = mdp, costs, tolerance, mdp.num_states
        self.total = 0.0
        """Nanoseconds that all of them have cost."""
        self.left = dict.fromkeys((IN_PLACE, SWEEPS, DIRECT), math.inf)
        """Predicted nanoseconds until the end."""
        self._spent = dict.fromkeys(self.left, 0.0)
        """Nanoseconds that each has cost."""
        self.direct = 0.0
        """Predicted nanoseconds of a factorisation."""
        self._passes = 0
        self._swept = False
        """Whether sweeps at once were tried."""
        self._paid = 0.0
        self._first_loss = 2.0 * mdp.largest_reward / (1.0 - mdp.discount)
        """Of any policy, from values of zero."""
        self._loss = self._first_loss
        """Of the last pass."""
        self.current = SWEEPS
        """The solver at work."""
        self.local = mdp.growth <= in_place.LOCAL_GROWTH
        self._small = mdp.num_states < in_place.ACTIVE_SET_STATES
        self.most_left = HOPELESS if self._small else HOPELESS_LARGE
        """Backups that may seem to be left to iteration in place before it is given up."""
        self._compare_at = (LOCAL_COMPARISON if self.local else FIRST_COMPARISON) * costs.backup
        self.worth_keeping = True
        """Whether the values of the solver at work are any better than those to begin with."""
        self.on_its_way = False
        """Whether the first pass in place has come far, though the loss does not show it yet."""
        self.begins_anew = False
        """Whether the solver just chosen begins from the start, as what was at work came to nothing."""
        self._pace: dict[str, float] = {}
        """Nanoseconds per e-fold of the loss of each solver that iterates, as last measured."""

    @property
    def cheap_direct(self) -> float:
        """Nanoseconds up to which a factorisation is not put off."""
        return cheap_direct_cost(self._mdp)

    def paid(self, name: str, cost: float) -> None:
        """Book what a pass has cost, by its operation counts."""
        self.total += cost
        self._spent[name] += cost
        self._paid = cost
        self._passes += name == DIRECT
        self._swept |= name == SWEEPS

    def predicted(self, name: str) -> float:
        """Return the nanoseconds that a pass may take."""
        return min(self.left[name], self.work_allowed())

    @property
    def remaining(self) -> float:
        """Nanoseconds that the solver at work is predicted to take until the end."""
        return self.left[self.current]

    def work_allowed(self) -> float:
        """Return the nanoseconds after which the choice is made again."""
        return max(FIRST_BACKUPS * self._costs.backup, self.total)

    def comparison_due(self, unsettled: int) -> bool:
        """Return whether to compare sweeps in place and at once again: each time that costs have doubled."""
        return self.until_comparison(unsettled) <= 0.0 and self.current in (IN_PLACE, SWEEPS)

    def until_comparison(self, unsettled: int) -> float:
        """Return the nanoseconds before they are compared; infinite where they need not be, or not of this policy."""
        settled = not (self.local and self.changing(unsettled))
        wanted = settled and self._worth_comparing and self._comparable
        return self._compare_at - self.total if wanted else math.inf

    @property
    def kept_reward(self) -> float | None:
        """The best reward if it can be had for ever: the model has a direction then, and iteration in place suits it.

        That begins from what this is worth, as all values would have to be built up from zero otherwise.
        """
        return in_place.kept_reward(self._mdp)

    @property
    def _comparable(self) -> bool:
        """Whether sweeps in place apply to the model at all."""
        return in_place.applies(self._mdp)

    def changing(self, unsettled: int) -> bool:
        """Return whether many actions still change."""
        return SETTLED * unsettled > self._num_states

    @property
    def _worth_comparing(self) -> bool:
        """Whether the solver at work is not predicted to end in the meantime."""
        return self.remaining >= 4.0 * COMPARED_SWEEPS * self._costs.sweep

    def compared(self, jacobi: float, gauss_seidel: float, cost: float) -> None:
        """Take over what sweeps at once and in place are predicted to take, after a comparison that has cost so much.

        The first figures of either are rough: only one that is clearly faster takes over, also than what the one at
        work has shown so far; where that gets nowhere, one that is faster at all. What was at work before is not
        believed to be faster than it has shown.
        """
        self.total += cost
        self._compare_at = 2.0 * self.total
        self._swept = True
        predicted = {SWEEPS: jacobi, IN_PLACE: gauss_seidel}
        rival = IN_PLACE if self.current == SWEEPS else SWEEPS
        shown = self.left[rival] if self.left[rival] < math.inf else 0.0
        now, then = min(predicted[self.current], self.left[self.current]), max(predicted[rival], shown)
        clearly = 1.0
        if self.left[self.current] < math.inf:  # a local model's large scales do not show in a few sweeps at once
            clearly = CLEARLY**2 if self.local and rival == SWEEPS else CLEARLY
        if clearly * then < now:
            self.current, self.left[rival] = rival, then

    def judge(self, last: PassOutcome) -> None:
        """Predict what is left to every solver that was at work from how far the loss fell in its last pass."""
        known = 0.0 < last.policy_loss < self._loss < math.inf
        fell = math.log(self._loss / last.policy_loss) if known else 0.0
        to_go = math.log(max(1.0, last.policy_loss / self._tolerance))
        if fell > 0.0:
            self._pace[self.current] = self._paid / fell
        for name, pace in self._pace.items():
            self.left[name] = pace * to_go
        if fell <= 0.0:
            self.left[self.current] = math.inf
        self._loss = last.policy_loss

    def first(self, *, in_place: bool) -> tuple[str, str]:
        """Return the solver to begin with, and why."""
        if in_place and self.direct <= self.cheap_direct:
            backups = self.direct / self._costs.backup
            self.current, reason = DIRECT, f"a factorisation costs as much as {backups:.1f} backups"
        elif in_place:
            self.current, reason = IN_PLACE, "transitions are local, or states absorb, and a factorisation is dear"
        else:
            self.current, reason = SWEEPS, "random transitions mix fast"
        return self.current, reason

    def _passes_left(self, unsettled: int) -> float:
        """Return how many factorisations are expected: each leaves about a tenth of the changes of the one before."""
        most = DIRECT_PASSES
        while most <= self._passes:
            most *= 2
        return min(most - self._passes, 1.0 + math.log10(1.0 + unsettled))

    def choose(self, unsettled: int) -> tuple[str, str]:
        """Return the solver to go on with, and why; `unsettled` states have changed their action of late."""
        current, self.begins_anew = self.current, False
        if current != DIRECT or self.left[DIRECT] == math.inf:
            self.left[DIRECT] = self._passes_left(unsettled) * (self.direct + 3.0 * self._costs.backup)
        rival = min((name for name in self.left if name != current), key=self.left.__getitem__)
        now, then = self.left[current], self.left[rival]
        lost = now == math.inf and rival in self._pace  # it gets nowhere, where the other one did
        if SWITCH_FACTOR * then < now and (lost or self.total >= FAIR_SHARE * then):
            self.current = rival
            return rival, f"{NAMES[current]} would take {_seconds(now)} more, {NAMES[rival]} {_seconds(then)}"
        if now >= NOWHERE * self.total and self._turn_is_over:
            self.current = SWEEPS if current == IN_PLACE else IN_PLACE
            return self.current, f"{NAMES[current]} got nowhere, it is the turn of {NAMES[self.current]}"
        if current == IN_PLACE and self._is_hopeless(unsettled):
            self._give_up_iteration_in_place()
            return self.current, f"{NAMES[current]} would take {_seconds(now)} more, {NAMES[self.current]} are tried"
        return current, f"predicted to be the fastest: {_seconds(now)} more"

    @property
    def _turn_is_over(self) -> bool:
        """Whether iteration in place, or sweeps, have cost far more than the other, which applies as well."""
        if self.current == DIRECT or not self._comparable:
            return False
        other = self._spent[SWEEPS if self.current == IN_PLACE else IN_PLACE]
        return self._spent[self.current] > TURN * max(other, FIRST_TURN * self._costs.backup)

    def _is_hopeless(self, unsettled: int) -> bool:
        """Return whether iteration in place, which is at work, gets on so badly that others are tried."""
        limit = self.most_left * self._costs.backup
        unsettled_yet = UNSETTLED * unsettled > self._num_states and not self.on_its_way
        mixes = unsettled_yet and self._loss > SMALL_PART * self._first_loss
        may_mix = self.local and self.kept_reward is None and not self._swept
        return may_mix and self.remaining >= limit and (mixes or self.left[DIRECT] < limit)

    def _give_up_iteration_in_place(self) -> None:
        """Go on by factorisations, if they are predicted to cost less than the limit, otherwise by sweeps.

        On large models how it got on is remembered: it may take over again before it is compared.
        """
        limit = self.most_left * self._costs.backup
        self.current = DIRECT if self.left[DIRECT] < limit else SWEEPS
        if self._small:
            self.begins_anew = self.current == SWEEPS and not self.worth_keeping
            self.left[IN_PLACE] = math.inf
            self._pace.pop(IN_PLACE, None)
            self._compare_at = self.total + limit


NAMES = {IN_PLACE: "iteration in place", SWEEPS: "sweeps", DIRECT: "factorisations"}


def _seconds(nanoseconds: float) -> str:
    return f"{nanoseconds * 1e-9:.2g} s" if nanoseconds < math.inf else "for ever"
