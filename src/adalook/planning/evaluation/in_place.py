"""In-place modified policy iteration: values and an improved policy at once, on models whose transitions are local.

On a grid with slippery moves every policy needs a linear solve, and near the start none is worth it. A round is then

    improve in place, there and back where that pays  ->  sweep T_π in place, only where values still move

as in modified policy iteration, with sweeps that grow as fewer actions change. In place, one sweep carries news across
the whole grid in the direction of the sweep; there and back covers both. At first, rounds go on as long as many actions
change or, on large models, ever fewer; from then on a full backup T v between rounds tells how far there is to go, and
shifts the values by a constant where all of them move one way. A policy that has settled is evaluated to the end.
What sweeps leave for later goes slowly and in few directions: every few of them it is extrapolated from their changes.
Random graphs, where news travels everywhere in a few steps anyway, are left to plain sweeps with a constant shift.

The rounds are compiled as one loop: on small models a round takes microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled, inlined
from adalook.mdp.model import kept_with_model
from adalook.mdp.transitions import (
    LONG_ROW,
    NOT_OFFERED,
    ModelArrays,
    Predecessors,
    is_deterministic,
    is_stochastic,
    row_of,
)
from adalook.planning.certificate import rounding_bound
from adalook.planning.evaluation.extrapolation import WINDOW, extrapolate
from adalook.planning.evaluation.padded import MoveTable, PaddedRows, back_up_table, best_move, product, room_for_rows
from adalook.planning.lookahead.kernels import (
    backup_range,
    count_different,
    gather_front,
    index,
    shared_expectations,
)
from adalook.planning.lookahead.levels import Backup, Residual

if TYPE_CHECKING:
    from adalook.mdp.model import MDP

NAME = "in-place MPI"

LOCAL_GROWTH = 12.0
"""Models whose neighbourhoods grow more than this from one step to three are not local."""
LOCAL_ROW = 64
"""Nor are models with rows longer than this, or longer than a quarter of the states."""
ACTIVE_SET_STATES = 12_000
"""Smaller models are swept whole: finding out who leads to what changed takes as long as five backups, or longer."""

MAX_ROUNDS = 16
MAX_WORK = 10_000_000
"""Pairs backed up in one go, about a tenth of a second: Ctrl-C and the clock are looked at in between."""
MAX_FIRST_ROUNDS = 8
"""Rounds before the first full backup, which go on as long as many actions change."""
MAX_ROUND_SWEEPS = 30.0
"""A round sweeps as often as there are states per action that changed, but no more than this …"""
SETTLED_SHARE = 0.01
"""… or until a sweep changes values by no more than this share of what the last full backup changed."""
FEW = 8
"""Sweeps visit only predecessors of what changed once fewer than a share 1/FEW of the states changed."""
VERY_FEW = 32
"""On small models, whose sweeps are cheap, a policy has as good as settled once fewer than a share 1/VERY_FEW of the
states changed, and ever fewer."""
WAY_BACK = 1.0
"""Backups of small models go one way once so many times what the way back moves values by is less than what the way
there does; on large ones news may come from either end later on (windy-300 takes 0.65 s, and 3.8 s without the way
back)."""
UNKNOWN = -1
MAX_PLACES = 2**28
"""Successors of all moves, padded, beyond which a model takes too much room: 12 bytes each."""
FLOW_STEPS, ONE_WAY = 4, 3.0
"""Steps of a policy by which to tell where its moves lead: one way, if with so many times the other's probability …"""
FIRST_FLOW_STEPS, HARDLY_ONE_WAY = 2, 2.0
"""… unless the first steps go either way with less than so many times the other's."""
SAMPLE = 256
"""States, at least, by which to tell whether nearly all moves of a model do, or stay in place."""
LONG = 8.0
"""That is found out before a round of at least so many sweeps, and again once more than a few actions have changed."""
THERE, BACK, BOTH_WAYS = 1, -1, 0
"""Directions of sweeps: from the first state to the last, from the last to the first, or in turn."""


class Improved(NamedTuple):
    """The result of some rounds: values, the policy they belong to, and what the rounds cost."""

    values: FloatArray  # (S,)
    policy: IntArray
    """(S,) the policy that the values are of, as far as they were swept."""
    rounds: int
    swept: int
    """States updated by sweeps."""
    backups: int
    """Backups of every state, in place or not, but for the last one below."""
    unsettled: int
    """States whose action the last backup changes."""
    last_backup: Backup
    """The backup of these values."""
    on_its_way: bool
    """Whether the first full backup changed values by more than rewards could, and the last by less than half that."""


class Goal(NamedTuple):
    """Tolerances at which sweeps, and the rounds as a whole, may stop."""

    sweep_tol: float
    """A policy that has settled is swept until no state changes by more than this."""
    span_tol: float
    """Enough is a span of T v − v of at most this, rounding included."""
    least_error: float
    """The rounding of T v − v is at most this …"""
    error_per_size: float
    """… plus this times max|v|."""
    most_left: float
    """Rounds end once so many more pairs seem to be left to back up, or states to sweep."""
    first_span: float
    """Span of T v − v before the first round, whatever the values: it tells how far the first rounds have come."""


@kept_with_model
def suits(mdp: MDP) -> bool:
    """Return whether sweeping in place pays: transitions lead to near states, or nearly all of them ahead or nowhere.

    Or there is a state that is never left: its value stands still, so that no constant shift speeds up other sweeps.
    """
    return applies(mdp) and (
        mdp.growth <= LOCAL_GROWTH
        or _one_way_or_none(mdp.arrays, max(1, mdp.num_states // SAMPLE))
        or _has_absorbing_state(mdp.codes)
    )


@kept_with_model
def applies(mdp: MDP) -> bool:
    """Return whether the rows of all moves can be stored side by side, padded to the longest, and most are their own.

    What is expected of a shared row stands still during a sweep.
    """
    if mdp.rows.num_shared:
        shared = np.count_nonzero(is_stochastic(mdp.codes) & (row_of(mdp.codes) < mdp.rows.num_shared))
        if 2 * shared > mdp.num_pairs:
            return False
    short = mdp.longest_row <= min(LOCAL_ROW, mdp.num_states // 4)
    return short and mdp.codes.size * mdp.longest_row <= MAX_PLACES


@kept_with_model
def kept_reward(mdp: MDP) -> float | None:
    """Return the largest reward where some move that has it leads only to states with such a move, otherwise None.

    A model where the best can be kept for ever has a direction, and its value there is known.
    """
    top, kept = _kept_reward(mdp.arrays)
    return top if kept else None


def sweep_in_place(mdp: MDP, table: MoveTable, policy: IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return values (S,) swept `count` times in place by a policy, in the direction that suits it."""
    values = values.copy()
    _sweep_policy(mdp.arrays, table, np.empty(mdp.rows.num_shared), values, policy, count)
    return values


def improve_in_place(
    mdp: MDP, table: MoveTable, values: FloatArray, policy: IntArray, rounds: int
) -> tuple[IntArray, int]:
    """Improve a policy by backups in place, there and back, until no action changes or so many rounds are over.

    Returns (policy, rounds). From the values of the policy, or below, each backup can only raise them.
    """
    values, policy = values.copy(), policy.copy()
    done = _improve_rounds(mdp.arrays, table, np.empty(mdp.rows.num_shared), values, policy, rounds)
    return policy, int(done)


def iterate_in_place(
    mdp: MDP,
    table: MoveTable,
    values: FloatArray,
    policy: IntArray,
    tolerance: float,
    partial_span: float,
    max_work: int = MAX_WORK,
    *,
    changed: int = UNKNOWN,
    most_left: float = np.inf,
) -> Improved:
    """Run rounds until the tolerance on the policy's loss seems within reach, or for about a tenth of a second.

    Args:
        mdp: the model.
        table: its moves.
        values: (S,) where to start from.
        policy: (S,) likewise.
        tolerance: on the policy's loss.
        partial_span: span of the last full backup's change.
        max_work: states swept and pairs backed up after which to return.
        changed: states whose action changed in the last round; UNKNOWN where none was made, so that many will.
        most_left: states swept and pairs backed up that may seem to be left; rounds end once it is more.
    """
    values, policy = values.copy(), policy.copy()
    span = tolerance * (1.0 - mdp.discount * mdp.row_sums[1])
    least_error = rounding_bound(mdp, 0.0)
    # A sweep that changes values by at most a third of the span leaves T_π v − v a span of at most 2γ times that.
    error_per_size = rounding_bound(mdp, 1.0) - least_error
    goal = Goal(span / 3.0, span * 0.99, least_error, error_per_size, most_left, 2.0 * mdp.largest_reward)
    num_states = mdp.num_states
    if num_states >= ACTIVE_SET_STATES:
        predecessors = mdp.predecessors
    else:
        nobody: IntArray = np.empty(0, mdp.codes.dtype)
        predecessors = Predecessors(nobody, nobody, nobody)
    best, action, shared = np.empty(num_states), np.empty(num_states, np.int32), np.empty(mdp.rows.num_shared)
    state = IterationState(values, policy, best, action, shared)
    rounds, swept, backups, unsettled, residual, on_its_way = _run_rounds(
        mdp.arrays, table, predecessors, state, partial_span, goal, max_work, changed
    )
    last_backup = Backup(best, action, shared, Residual(*residual))
    return Improved(values, policy, rounds, swept, backups, unsettled, last_backup, on_its_way)


class IterationState(NamedTuple):
    """The arrays that rounds work on, in place."""

    values: FloatArray  # (S,)
    policy: IntArray  # (S,)
    best: FloatArray  # (S,) T v of the last full backup
    action: IntArray  # (S,) and its greedy policy
    shared: FloatArray  # (rows,) expectation of each shared row


@compiled
def _expect_shared(model: ModelArrays, v: FloatArray, shared: FloatArray, table: MoveTable) -> None:
    """Compute what is expected of shared rows, and take it into the rewards of the moves that have one."""
    if len(shared) == 0:
        return
    shared_expectations(model, v, shared)
    for s in range(index(model.codes.shape[0])):
        for a in range(index(model.codes.shape[1])):
            code = model.codes[s, a]
            if is_stochastic(code) and row_of(code) < len(shared):
                table.reward[s, a] = model.rewards[s, a] + model.discount * shared[index(row_of(code))]


@compiled
def _pad_rows(table: MoveTable, policy: IntArray, has_shared: bool, padded: PaddedRows) -> None:
    """Copy the rows of a policy that are not there yet.

    What a move leaves in place is solved for: with p = P(s | s, π(s)), reward and weights are divided by 1 − γ p, and
    s itself has no weight. What is expected of shared rows changes with the values.
    """
    num_actions = index(table.reward.shape[1])
    for s in range(index(len(policy))):
        a = index(policy[s])
        if policy[s] == padded.action[s] and not has_shared:
            continue
        padded.action[s] = policy[s]
        row, stay = s * num_actions + a, 0.0
        for k in range(index(padded.successor.shape[1])):
            here = index(table.successor[row, k]) == s
            stay += table.weight[row, k] if here else 0.0
            padded.successor[s, k] = table.successor[row, k]
            padded.weight[s, k] = 0.0 if here else table.weight[row, k]
        padded.reward[s] = table.reward[s, a]
        if stay > 0.0:
            padded.reward[s] /= 1.0 - stay
            for k in range(index(padded.successor.shape[1])):
                padded.weight[s, k] /= 1.0 - stay


@compiled
def _one_way_or_none(model: ModelArrays, stride: int) -> bool:
    """Return whether nearly all moves of every `stride`-th state lead ahead, or nearly all back, or most stay."""
    ahead = behind = stays = 0.0
    for s in range(0, model.codes.shape[0], stride):
        for a in range(model.codes.shape[1]):
            code = model.codes[s, a]
            if is_deterministic(code):
                ahead += code > s
                behind += code < s
                stays += code == s
            elif is_stochastic(code):
                row = row_of(code)
                for k in range(model.indptr[row], model.indptr[row + 1]):
                    ahead += model.data[k] * (model.indices[k] > s)
                    behind += model.data[k] * (model.indices[k] < s)
                    stays += model.data[k] * (model.indices[k] == s)
    return max(ahead, behind) > ONE_WAY**2 * min(ahead, behind) or stays > ahead + behind


@compiled
def _has_absorbing_state(codes: IntArray) -> bool:
    """Return whether all moves of some state stay there."""
    for s in range(codes.shape[0]):
        stays = 0
        while stays < codes.shape[1] and (codes[s, stays] == s or codes[s, stays] == NOT_OFFERED):
            stays += 1
        if stays == codes.shape[1]:
            return True
    return False


@compiled
def _kept_reward(model: ModelArrays) -> tuple[float, bool]:
    """Return the largest reward, and whether some move that has it leads only to states whose best reward it is."""
    best = np.empty(model.codes.shape[0])
    best_rewards(model, best)
    top = best.max()
    for s in range(index(len(best))):
        for a in range(index(model.codes.shape[1] if best[s] == top else 0)):
            code = model.codes[s, a]
            if code == NOT_OFFERED or model.rewards[s, a] < top:
                continue
            kept = True
            if is_deterministic(code):
                kept = best[index(code)] == top
            else:
                row = index(row_of(code))
                for k in range(index(model.indptr[row]), index(model.indptr[row + index(1)])):
                    kept = kept and best[index(model.indices[k])] == top
            if kept:
                return top, True
    return top, False


@compiled
def best_rewards(model: ModelArrays, best: FloatArray) -> None:
    """Write the largest reward of each state (S,)."""
    for s in range(index(model.codes.shape[0])):
        top = -np.inf
        for a in range(index(model.codes.shape[1])):
            if model.codes[s, a] != NOT_OFFERED:
                top = max(top, model.rewards[s, a])
        best[s] = top


@compiled
def _against_the_flow(padded: PaddedRows) -> tuple[int, int]:
    """Return the direction of sweeps that goes against most moves of the policy, if most of them lead one way.

    A state is then updated after those that it leads to, and one sweep carries news along whole paths. Moves count as
    often as they are made from a random state within a few steps. Returns (direction, steps that were followed).
    """
    num_states = index(len(padded.reward))
    here, there = np.ones(num_states), np.empty(num_states)
    ahead = behind = 0.0
    for step in range(1, FLOW_STEPS + 1):
        there[:] = 0.0
        ahead = behind = 0.0
        for s in range(num_states):
            for k in range(index(padded.successor.shape[1])):
                mass = here[s] * padded.weight[s, k]
                successor = index(padded.successor[s, k])
                there[successor] += mass
                if successor > s:
                    ahead += mass
                else:
                    behind += mass
        here, there = there, here
        if step == FIRST_FLOW_STEPS and max(ahead, behind) < HARDLY_ONE_WAY * min(ahead, behind):
            return BOTH_WAYS, step
    if ahead > ONE_WAY * behind:
        return BACK, FLOW_STEPS
    return THERE if behind > ONE_WAY * ahead else BOTH_WAYS, FLOW_STEPS


@compiled
def _sweep_policy(
    model: ModelArrays, table: MoveTable, shared: FloatArray, v: FloatArray, policy: IntArray, count: int
) -> None:
    """Sweep T_π so many times, in place."""
    padded = room_for_rows(table)
    _expect_shared(model, v, shared, table)
    _pad_rows(table, policy, False, padded)
    nobody = np.empty(0, model.codes.dtype)
    active = ActiveSet(np.empty(0, np.bool_), nobody, nobody, nobody)
    _sweep_until(
        padded,
        Predecessors(nobody, nobody, nobody),
        v,
        0.0,
        float(count),
        _against_the_flow(padded)[0],
        active,
        0,
        np.empty((WINDOW, len(v))),
    )


@inlined
def _swept_value(rows: PaddedRows, s: int, v: FloatArray, forward: bool) -> float:
    """Return (T_π v)(s); the product with the value that the sweep has just written is added last.

    Successors ascend, so where moves lead to near states that value stands in the first or in the middle places: all
    else is summed up while it is on its way.
    """
    total: float = rows.reward[s]
    if len(rows.places) > 3:
        smaller, larger = product(rows, s, 1, v), product(rows, s, 2, v)
        total += product(rows, s, 0, v)
        rest: float = product(rows, s, 3, v)
        if len(rows.places) > 4:
            rest += product(rows, s, 4, v)
        total += rest
    else:
        smaller, larger = product(rows, s, 0, v), product(rows, s, 1, v)
        total += product(rows, s, 2, v)
        if len(rows.places) == 0:
            for k in range(3, rows.successor.shape[1]):
                total += product(rows, s, k, v)
    result: float = (total + larger) + smaller if forward else (total + smaller) + larger
    return result


@inlined
def _update(rows: PaddedRows, s: int, v: FloatArray, forward: bool) -> float:
    """Set v(s) <- (T_π v)(s), in a sweep that goes forward or back, and return by how much that changes it."""
    new = _swept_value(rows, s, v, forward)
    change: float = new - v[s]
    v[s] = new
    return change


@compiled
def _sweep_all(padded: PaddedRows, v: FloatArray, target: float, forward: bool, step: FloatArray) -> int:
    """Sweep T_π once in place and return how many states change by more than `target`.

    The changes are added to step (S,), on the way there to zero.
    """
    num_states = index(len(v))
    last = index(num_states - index(1))
    count = 0
    if forward:
        for s in range(num_states):
            change = _update(padded, s, v, True)
            count += abs(change) > target
            step[s] = change
    else:
        for i in range(num_states):
            from_end = last - i
            change = _update(padded, from_end, v, False)
            count += abs(change) > target
            step[from_end] += change
    return count


@compiled
def _sweep_and_mark(
    padded: PaddedRows, v: FloatArray, target: float, forward: bool, step: FloatArray, moved: BoolArray
) -> int:
    """Do as `_sweep_all`, and mark in moved (S,) who changes."""
    num_states = index(len(v))
    last = index(num_states - index(1))
    count = 0
    if forward:
        for s in range(num_states):
            step[s] = _update(padded, s, v, True)
            moved[s] = abs(step[s]) > target
            count += moved[s]
    else:
        for i in range(num_states):
            from_end = last - i
            change = _update(padded, from_end, v, False)
            moved[from_end] = abs(change) > target
            count += moved[from_end]
            step[from_end] += change
    return count


@compiled
def _sweep_some(padded: PaddedRows, v: FloatArray, target: float, front: IntArray, size: int, changed: IntArray) -> int:
    """Do as `_sweep_all` for the first `size` states of `front`; lists who changed in `changed`."""
    count = 0
    for i in range(index(size)):
        changed[index(count)] = front[i]
        count += abs(_update(padded, index(front[i]), v, True)) > target
    return count


class ActiveSet(NamedTuple):
    """Scratch arrays of sweeps that visit only the predecessors of what changed; empty where none are listed."""

    moved: BoolArray  # (S,)
    changed: IntArray  # (S + 1,)
    front: IntArray  # (S,)
    stamp: IntArray  # (S,)


@compiled
def _sweep_until(
    padded: PaddedRows,
    predecessors: Predecessors,
    v: FloatArray,
    target: float,
    max_sweeps: float,
    direction: int,
    active: ActiveSet,
    mark: int,
    steps: FloatArray,
) -> tuple[int, bool, int]:
    """Sweep T_π in place until no state changes by more than `target`, or `max_sweeps` times.

    Every few sweeps, or pairs there and back, what is to come is extrapolated from their changes, steps (W, S). Once
    few states change, only their predecessors are swept, if these are listed.
    Returns (states updated, whether the target was reached, last mark used in `active.stamp`).
    """
    num_states = len(v)
    moved, changed, front, stamp = active
    work, count, kept = 0, num_states, 0
    forward, halfway = direction != BACK, False
    few = num_states // FEW if len(predecessors.sources) > 0 else 0
    while count > 0 and work < max_sweeps * num_states:
        if count > few:
            step = steps[index(kept)]
            if not forward and not halfway:
                step[:] = 0.0
            if few > 0:
                count = _sweep_and_mark(padded, v, target, forward, step, moved)
            else:
                count = _sweep_all(padded, v, target, forward, step)
            work += num_states
            if 0 < count <= few:
                _list_moved(moved, changed)
            if direction == BOTH_WAYS:
                forward, halfway = not forward, not halfway
            if not halfway:
                kept += 1
            if kept == len(steps):
                kept = 0
                if count > few and extrapolate(v, steps):
                    count = num_states
        else:
            mark += 1
            size = gather_front(predecessors, changed, count, stamp, mark, front)
            count = _sweep_some(padded, v, target, front, size, changed)
            work += size
    return work, count == 0, mark


@compiled
def _list_moved(moved: BoolArray, changed: IntArray) -> None:
    """List the marked states in `changed`."""
    count = 0
    for s in range(len(moved)):
        if moved[s]:
            changed[count] = s
            count += 1


@compiled
def back_up(model: ModelArrays, table: MoveTable, state: IterationState) -> tuple[float, float, float, float, float]:
    """Do as `backup_range` for all states, by the table where its sums are short enough for the rounding bound.

    A term is rounded with its weight, its product and one sum of at most `LONG_ROW` more: no worse than by the model.
    """
    v, policy, best, action, shared = state
    if table.successor.shape[1] > LONG_ROW:
        shared_expectations(model, v, shared)
        low, high, own_low, own_high, size = backup_range(model, shared, v, policy, best, action, 0, len(v))
        return low, high, own_low, own_high, size
    _expect_shared(model, v, shared, table)
    low, high, own_low, own_high, size = back_up_table(table, v, policy, best, action)
    return low, high, own_low, own_high, size


@compiled
def _improve_there_and_back(table: MoveTable, v: FloatArray, policy: IntArray, back_pays: bool) -> tuple[int, bool]:
    """Set v <- T v in place, from the last state to the first and back, and the policy with it; it wins ties.

    Where hardly any action changes on the way there, or the way back does not pay, there is none. Returns (ways that it
    went, whether the way back still pays: it does unless it moves values by far less than the way there).
    """
    last = index(len(v) - 1)
    changed, there, back = 0, 0.0, 0.0
    for i in range(index(len(v))):
        from_end = last - i
        top, action, _ = best_move(table, v, policy[from_end], from_end)
        there += abs(top - v[from_end])
        changed += action != policy[from_end]
        v[from_end], policy[from_end] = top, action
    if VERY_FEW * changed <= len(v) or not back_pays:
        return 1, back_pays
    for s in range(index(len(v))):
        top, policy[s], _ = best_move(table, v, policy[s], s)
        back += abs(top - v[s])
        v[s] = top
    return 2, WAY_BACK * back >= there


@compiled
def _improve_rounds(
    model: ModelArrays, table: MoveTable, shared: FloatArray, v: FloatArray, policy: IntArray, rounds: int
) -> int:
    """Back up in place, there and back, until no action changes or so many rounds are over; returns how many."""
    before = np.empty_like(policy)
    for done in range(rounds):
        before[:] = policy
        _expect_shared(model, v, shared, table)
        _improve_there_and_back(table, v, policy, True)
        if count_different(before, policy) == 0:
            return done + 1
    return rounds


@inlined
def _next_sweeps(different: int, num_states: int, partial_span: float, sweep_tol: float) -> tuple[float, float]:
    """Return (most sweeps, change that no longer matters) after so many actions changed.

    The fewer, the better the values are worth knowing; a policy that has settled is evaluated to the end.
    """
    sweeps = min(MAX_ROUND_SWEEPS, num_states / max(different, 1))
    return sweeps, sweep_tol if different == 0 else max(sweep_tol, SETTLED_SHARE * partial_span)


@inlined
def _gets_on(goal: Goal, span: float, top: float, work: int) -> bool:
    """Return whether so much work, which brought the span from `top` to what it is, leaves no more than is allowed."""
    if goal.most_left == np.inf:
        return True
    return bool(work * np.log(max(1.0, span / goal.span_tol)) <= goal.most_left * np.log(max(1.0, top / span)))


@compiled
def _run_rounds(
    model: ModelArrays,
    table: MoveTable,
    predecessors: Predecessors,
    state: IterationState,
    partial_span: float,
    goal: Goal,
    max_work: int,
    different: int,
) -> tuple[int, int, int, int, tuple[float, float, float, float, float], bool]:
    """Improve values and policy in place, round by round, after one in which so many actions differed; see the module.

    Returns (rounds, states swept, backups but the last, actions that the last one changes, its residual, whether it is
    on its way).
    """
    num_states, num_actions = model.codes.shape
    whole = len(predecessors.sources) == 0
    v, policy, best, action, shared = state
    padded = room_for_rows(table)
    listed = 0 if whole else num_states
    active = ActiveSet(
        np.empty(listed, np.bool_),
        np.empty(listed + 1, model.codes.dtype),
        np.empty(listed, model.codes.dtype),
        np.zeros(listed, np.int32),
    )
    before = np.empty_like(policy)
    steps = np.empty((WINDOW, num_states))
    mark, rounds, swept, backups = 0, 0, 0, 0
    top, top_at = goal.first_span, 0
    settling, back_pays = different == UNKNOWN, True
    direction, different, changed = BOTH_WAYS, num_states if settling else different, num_states
    before[:] = policy
    while True:
        if settling:
            # Before the first full backup: improve as long as many actions change or, on large models, ever fewer.
            before[:] = policy
            _expect_shared(model, v, shared, table)
            ways, back_pays = _improve_there_and_back(table, v, policy, back_pays or not whole)
            backups += ways
            previous, different = different, count_different(before, policy)
            rounds += 1
            fading = 2 * different < previous
            settled = fading and VERY_FEW * different <= num_states and whole
            many = FEW * different > num_states or (fading and not whole)
            settling = rounds < MAX_FIRST_ROUNDS and many and not settled
            left = 0 if settled else different  # what fades so fast will be gone by the next round
        else:
            if 2 * FEW * different > num_states:
                _expect_shared(model, v, shared, table)
                ways, back_pays = _improve_there_and_back(table, v, policy, back_pays or not whole)
                backups += ways
                different = count_different(before, policy)
            left = different
        changed += different
        max_sweeps, target = _next_sweeps(left, num_states, partial_span, goal.sweep_tol)
        _expect_shared(model, v, shared, table)
        _pad_rows(table, policy, len(shared) > 0, padded)
        if max_sweeps >= LONG and FEW * changed > num_states:
            direction, steps_followed = _against_the_flow(padded)
            swept += steps_followed * num_states
            changed = 0
        work, reached, mark = _sweep_until(padded, predecessors, v, target, max_sweeps, direction, active, mark, steps)
        swept += work
        if settling:
            continue
        spent = num_states * num_actions * backups + swept
        residual = back_up(model, table, state)
        low, high, _, _, size = residual
        rounds += 1
        error = goal.least_error + goal.error_per_size * size
        good = high - low + 2.0 * error <= goal.span_tol or high - low <= 4.0 * error
        unsettled = count_different(action, policy)
        ended = good or (reached and different == 0 and unsettled == 0) or rounds >= MAX_ROUNDS or spent >= max_work
        if top_at == 0 and high - low > top:
            top, top_at = high - low, spent  # news is on its way, and is judged from here on
        if ended or not _gets_on(goal, high - low, top, spent - top_at):
            return rounds, swept, backups, unsettled, residual, top_at > 0 and 2.0 * (high - low) < top
        backups += 1
        partial_span = high - low
        # all changes of one sign: what is to come is at least γ/(1 − γ) times the least of them
        common = low if low > 0.0 else (high if high < 0.0 else 0.0)
        before[:] = policy
        for s in range(num_states):
            v[s] = best[s] + model.discount / (1.0 - model.discount) * common
            policy[s] = action[s]
        different = unsettled
