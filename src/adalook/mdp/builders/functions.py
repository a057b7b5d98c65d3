"""Models from a function of states, which is called on batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._validation import integer
from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.files import check_memory
from adalook.mdp.layout import Layout
from adalook.mdp.model import MDP, TransitionFunction
from adalook.mdp.transitions import NOT_OFFERED, compress, index_type, no_rows


def from_function(
    fn: TransitionFunction,
    num_states: int,
    num_actions: int,
    discount: float,
    *,
    mask: Any,
    layout: Layout | None,
    batch_size: int,
    path: Any = None,
) -> MDP:
    """Build the model of `MDP.from_function`, one batch of states at a time."""
    num_states = integer(min=1).validate("num_states", num_states)
    num_actions = integer(min=1).validate("num_actions", num_actions)
    batch_size = integer(min=1).validate("batch_size", batch_size)
    gamma = checks.checked_discount(discount)
    shape = (num_states, num_actions)
    check_memory(f"a model of {num_states} states and {num_actions} actions", 12 * num_states * num_actions)
    offered = checks.checked_mask(mask, shape)
    if not callable(fn):
        raise ModelError("fn is not a function", expected="fn(states) -> (rewards, …)", got=type(fn).__name__)
    if path is not None:
        from adalook.mdp.builders.streamed import stream_function

        if layout is not None:
            raise ModelError("a model that is built in a file takes no layout", remedy="leave out layout= or path=")
        return stream_function(fn, shape, gamma, offered, batch_size, checks.checked_path(path))

    part = read_states(
        fn, range(num_states), num_states, num_actions, None if offered is None else offered.__getitem__, batch_size
    )
    if part.csr is None:
        return MDP._adopt(part.rewards, part.next_states, no_rows(), gamma, layout)
    everything = np.ones(shape, bool) if offered is None else offered
    return MDP._adopt(part.rewards, *compress(*part.csr, everything), gamma, layout)


class StateRows(NamedTuple):
    """The rewards and next states, or transition rows, that a function gives a range of B states."""

    rewards: FloatArray  # (B, A), zero where not offered
    next_states: IntArray  # (B, A) of deterministic moves, NOT_OFFERED elsewhere; empty where there are rows
    csr: tuple[IntArray, IntArray, FloatArray] | None
    """B·A sorted rows (indptr, indices, data), or None where all moves are deterministic."""
    offered: BoolArray | None  # (B, A), or None where all actions are offered


def read_states(
    fn: TransitionFunction,
    states: range,
    num_successors: int,
    num_actions: int,
    mask: Callable[[IntArray], BoolArray] | None,
    batch_size: int,
) -> StateRows:
    """Call `fn` on a range of states, batch by batch, and check what it says.

    Args:
        fn: as in `MDP.from_function`.
        states: a range of step 1.
        num_successors: successors are 0 to this less one.
        num_actions: A.
        mask: returns which actions a batch of states offers (B, A); None: all.
        batch_size: states per call.
    """
    shape, start = (len(states), num_actions), states.start
    rewards = np.empty(shape)
    codes: IntArray | None = None
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    masks: list[BoolArray] = []
    kinds = "(rewards, next_states) or (rewards, successors, probabilities)"
    for first in range(start, states.stop, batch_size):
        batch = np.arange(first, min(first + batch_size, states.stop))
        place, size = slice(first - start, first - start + len(batch)), len(batch)
        here = None if mask is None else mask(batch)
        if here is not None:
            masks.append(here)
        try:
            answer = fn(batch)
        except TypeError as error:
            if "positional argument" not in str(error):
                raise
            raise ModelError(
                "fn takes other arguments",
                expected=f"fn(states) of a batch of states (B,), which returns {kinds}",
                got=error,
            ) from error
        if not isinstance(answer, tuple) or len(answer) not in (2, 3):
            raise ModelError("fn returned something else", expected=f"a tuple {kinds}", got=type(answer).__name__)
        if first > start and (len(answer) == 2) != (codes is not None):
            raise ModelError("fn returned both forms", expected=f"always the same one of {kinds}", got="a mixture")
        paid = checks.number_array(answer[0], "rewards returned by fn", kinds="iufb")
        _expect_shape(paid, (size, num_actions), "rewards returned by fn")
        rewards[place] = paid
        if len(answer) == 2:
            ahead = checks.number_array(answer[1], "next_states returned by fn")
            _expect_shape(ahead, (size, num_actions), "next_states returned by fn")
            if ahead.dtype.kind not in "iu":
                raise ModelError("next_states returned by fn has the wrong type", expected="ints", got=ahead.dtype)
            if codes is None:
                codes = np.empty(shape, index_type(num_successors))
            _check_range(ahead, num_successors, here, first)
            codes[place] = ahead
        else:
            parts.append(_sparse_part(answer[1], answer[2], num_successors, (size, num_actions), here, first))
    offered = np.concatenate(masks) if masks else None
    rewards = checks.checked_rewards(rewards, offered, start)
    if codes is not None:
        if offered is not None:
            codes[~offered] = NOT_OFFERED
        return StateRows(rewards, codes, None, offered)
    everything = np.ones(shape, bool) if offered is None else offered
    counts, indices, data = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])

    def pair(row: int) -> str:
        return f"state {start + row // num_actions}, action {row % num_actions}"

    data = checks.checked_row_table(indptr, indices, data, everything.ravel(), num_successors, pair)
    return StateRows(rewards, np.empty((0, num_actions), indices.dtype), (indptr, indices, data), offered)


def _expect_shape(given: np.ndarray, expected: tuple[int, ...], name: str) -> None:
    """Raise `ModelError` unless an array has the expected shape."""
    if given.shape != expected:
        raise ModelError(f"{name} has the wrong shape", expected=expected, got=given.shape)


def _check_range(ahead: np.ndarray, num_states: int, offered: BoolArray | None, first: int) -> None:
    """Raise `ModelError` unless all successors of offered actions are states."""
    wrong = (ahead < 0) | (ahead >= num_states)
    if offered is not None:
        wrong &= offered.reshape(offered.shape + (1,) * (ahead.ndim - 2))
    if wrong.any():
        s, a, *_ = where = tuple(np.argwhere(wrong)[0])
        raise ModelError(
            f"a successor of state {first + s}, action {a} is out of range",
            expected=f"0 to {num_states - 1}",
            got=int(ahead[where]),
        )


def _sparse_part(
    successors: Any, chances: Any, num_states: int, shape: tuple[int, int], offered: BoolArray | None, first: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return one batch as CSR parts (entries per row, successors, probabilities), repeats summed, zeros dropped."""
    ahead = checks.number_array(successors, "successors returned by fn")
    chance = checks.number_array(chances, "probabilities returned by fn")
    if ahead.ndim != 3 or ahead.dtype.kind not in "iu" or ahead.shape[:2] != shape or ahead.shape[2] == 0:
        raise ModelError(
            "successors returned by fn are wrong",
            expected=f"ints (B, A, K) = {(*shape, 'K')}",
            got=f"{ahead.dtype} {ahead.shape}",
        )
    _expect_shape(chance, ahead.shape, "probabilities returned by fn")
    _check_range(ahead, num_states, offered, first)
    if offered is not None:
        chance = np.where(offered[:, :, None], chance, chance.dtype.type(0))
    chance = checks.without_negative_rounding(chance)
    wrong = ~(chance >= 0) | ~np.isfinite(chance)
    if wrong.any():
        s, a, k = where = tuple(np.argwhere(wrong)[0])
        raise ModelError(
            f"the probability of state {first + s}, action {a}, successor {ahead[where]} is wrong",
            expected="a number in [0, 1]",
            got=chance[where],
        )
    width = ahead.shape[2]
    ahead, chance = ahead.reshape(-1, width), chance.reshape(-1, width)
    order = np.argsort(ahead, axis=1, kind="stable")
    ahead, chance = np.take_along_axis(ahead, order, 1), np.take_along_axis(chance, order, 1)
    for k in range(1, width):  # fold a repeated successor into its last occurrence
        same = ahead[:, k] == ahead[:, k - 1]
        if same.any():
            chance = chance.copy() if not chance.flags.writeable else chance
            chance[same, k] += chance[same, k - 1]
            chance[same, k - 1] = 0
    keep = chance > 0
    kind = index_type(num_states)
    return keep.sum(axis=1), ahead[keep].astype(kind, copy=False), chance[keep]
