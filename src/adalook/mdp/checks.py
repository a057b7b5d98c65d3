"""Checks of everything a model is made of; errors name the state and the action that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._jit import compiled
from adalook._validation import as_array
from adalook.errors import ModelError, shown
from adalook.mdp.names import NO_NAMES, Names
from adalook.mdp.transitions import compensated_sum
from adalook.storage.files import checked_path as checked_path

LARGEST_VALUE = 1e300
"""Rewards so large that some value could pass this would overflow on the way."""

ROW_SUM_TOLERANCE = 1e-12
"""Allowed |Σp − 1| per successor of a float64 row (float32 rows: their own rounding, then normalised) …"""
ROW_SUM_CAP = 1e4
"""… counted for at most this many successors."""


LARGE_PAIRS = 2**27
"""From so many (state, action) pairs on, a gibibyte of float64, rewards are kept in the narrowest type that fits."""
NARROW_TYPES = (np.int8, np.float32)
CHUNK = 2**22


def checked_discount(value: Any) -> float:
    """Return a discount as a float in [0, 1], or raise `ModelError`."""
    if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
        raise ModelError("discount is not a number", expected="a float in [0, 1]", got=shown(value))
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not 0.0 <= number <= 1.0:
        raise ModelError("discount is out of range", expected="0 <= discount <= 1", got=shown(value))
    return number


def number_array(value: Any, name: str, kinds: str = "iuf") -> np.ndarray[Any, Any]:
    """Return an array of real numbers, or raise: never objects, strings, complex numbers or ragged lists."""
    result: np.ndarray[Any, Any] = as_array(name, value, ModelError)
    if result.dtype.kind not in kinds:
        raise ModelError(f"{name} has the wrong type", expected="integers or floats", got=f"dtype {result.dtype}")
    return result


def sparse_rows(matrix: Any, name: str) -> Any:
    """Return a CSR copy of a sparse matrix of any kind with every entry as it is stored, or raise `ModelError`.

    SciPy's own conversions believe the indices and write where they lead: a damaged matrix could end the process. They
    also sum entries that are stored twice, which could hide a wrong sign. Indices of CSR are left to the check of rows,
    which names the state and the action.
    """
    from scipy.sparse import csr_array

    if matrix.ndim != 2 or matrix.dtype.kind not in "iufb":
        raise ModelError(
            f"{name} is a sparse array of the wrong kind", expected="a matrix of real numbers", got=shown(matrix)
        )
    _check_pointers(matrix, name)
    try:
        if matrix.format == "csr":
            return csr_array((_numbers(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        entries = matrix.tocoo()
        rows, columns, data = (np.asarray(part) for part in (entries.row, entries.col, entries.data))
    except Exception as error:  # damage of the kinds that are made of Python's objects
        raise ModelError(f"{name} is a damaged sparse matrix", got=error) from None
    for what, indices, size in (("rows", rows, matrix.shape[0]), ("columns", columns, matrix.shape[1])):
        if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < size):
            raise ModelError(
                f"{name} is a damaged sparse matrix",
                expected=f"{what} 0 to {size - 1}",
                got=f"{int(indices.min())} to {int(indices.max())}",
            )
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(matrix.shape[0] + 1))
    return csr_array((_numbers(data[order]), columns[order], indptr), shape=matrix.shape)


def _numbers(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers as they are, or wider where SciPy has no loops for them: halves, and those of other machines."""
    native = data.astype(data.dtype.newbyteorder("="), copy=False)
    return native.astype(np.float32) if native.dtype == np.float16 else native


def _check_pointers(matrix: Any, name: str) -> None:
    """Raise unless the kinds with index pointers, csr, csc and bsr, are well formed."""
    if matrix.format not in ("csr", "csc", "bsr"):
        return
    blocks = matrix.blocksize if matrix.format == "bsr" else (1, 1)
    outer, inner = (matrix.shape[axis] // blocks[axis] for axis in ((1, 0) if matrix.format == "csc" else (0, 1)))
    indptr, indices, data = (np.asarray(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    sound = indptr.ndim == indices.ndim == 1 and indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    sound = sound and len(indptr) == outer + 1 and indptr[0] == 0 and bool((indptr[1:] >= indptr[:-1]).all())
    sound = sound and int(indptr[-1]) == len(indices) == len(data)
    sound = sound and data.shape[1:] == (tuple(blocks) if matrix.format == "bsr" else ())
    if not sound:
        raise ModelError(
            f"{name} is a damaged sparse matrix", expected="indptr from 0 to nnz, never falling, and as many data"
        )
    if matrix.format != "csr" and len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < inner):
        raise ModelError(
            f"{name} is a damaged sparse matrix",
            expected=f"indices 0 to {inner - 1}",
            got=f"{int(indices.min())} to {int(indices.max())}",
        )


def reward_table(value: Any) -> np.ndarray[Any, Any]:
    """Return rewards as an array (S, A) of numbers, S and A at least one."""
    given = number_array(value, "rewards", kinds="iufb")
    if given.ndim != 2:
        hint = "for rewards r(s) repeat the column A times" if given.ndim == 1 else "take the expectation over s'"
        raise ModelError("rewards has the wrong shape", expected="(S, A)", got=given.shape, remedy=hint)
    if 0 in given.shape:
        raise ModelError("the model is empty", expected="at least one state and one action", got=given.shape)
    return given


def checked_rewards(
    given: np.ndarray[Any, Any], offered: BoolArray | None, first: int = 0, names: Names = NO_NAMES
) -> FloatArray:
    """Return a copy (S, A) of rewards, finite wherever the action is offered and zero elsewhere.

    It is float64 or, of a large model, the narrowest type that holds every reward exactly. Errors count states from
    `first` on.
    """
    kind = np.float64 if given.size < LARGE_PAIRS else narrowest_type(given)
    result: FloatArray = np.array(given, kind, order="C")
    if offered is not None:
        result[~offered] = 0.0
    bad = ~np.isfinite(result)
    if bad.any():
        s, a = np.argwhere(bad)[0]
        raise ModelError(
            f"reward of {names.pair(first + int(s), int(a))} is not finite",
            expected="a finite number",
            got=result[s, a],
            remedy="to forbid an action pass mask=, an (S, A) array that is False there",
        )
    return result


def narrowest_type(rewards: np.ndarray[Any, Any]) -> type[np.generic]:
    """Return int8, float32 or float64: the first that holds every reward exactly (-128 aside, which has no opposite).

    >>> narrowest_type(np.array([[0.0, -1.0]])), narrowest_type(np.array([[0.5]])), narrowest_type(np.array([[0.1]]))
    (<class 'numpy.int8'>, <class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    flat = rewards.reshape(-1)
    parts = range(0, len(flat), CHUNK)
    for kind in NARROW_TYPES:
        with np.errstate(invalid="ignore", over="ignore"):
            if all(_holds(kind, flat[first : first + CHUNK]) for first in parts):
                return kind
    return np.float64


def _holds(kind: type[np.generic], part: np.ndarray[Any, Any]) -> bool:
    wide, narrow = part.astype(np.float64), part.astype(kind)
    return bool((narrow.astype(np.float64) == wide).all() and not (kind is np.int8 and (narrow == -128).any()))


def stored_rewards(rewards: FloatArray) -> FloatArray:
    """Return rewards as a model in memory stores them: float64 or, of a large one, the narrowest type that fits."""
    kind = np.float64 if rewards.size < LARGE_PAIRS else narrowest_type(rewards)
    return np.asarray(rewards.astype(kind, copy=False))


def check_reward_size(largest: float, discount: float) -> None:
    """Raise if the discounted sum of rewards could overflow; without a discount the sum is bounded elsewhere."""
    if largest > LARGEST_VALUE * (1.0 - discount if discount < 1.0 else 1.0):
        raise ModelError(
            "rewards are too large for the discount",
            expected=f"max|reward| / (1 - discount) below {LARGEST_VALUE:g}",
            got=f"{largest:g} / {1.0 - discount:g}" if discount < 1.0 else f"{largest:g}",
            remedy="rescale the rewards",
        )


def checked_mask(value: Any, shape: tuple[int, ...], first: int = 0, names: Names = NO_NAMES) -> BoolArray | None:
    """Return which actions are offered (S, A), or None when all are; errors count states from `first` on."""
    if value is None:
        return None
    given = as_array("mask", value, ModelError)
    if given.dtype != np.bool_:
        raise ModelError(
            "mask has the wrong type", expected="bools", got=f"dtype {given.dtype}", remedy="use mask.astype(bool)"
        )
    if given.shape != shape:
        raise ModelError("mask has the wrong shape", expected=f"(S, A) = {shape}", got=given.shape)
    none = ~given.any(axis=1)
    if none.any():
        raise ModelError(
            f"{names.state(first + int(np.argmax(none)))} offers no action",
            expected="at least one True in every row of mask",
            remedy="give terminal states one action that stays there with reward 0",
        )
    return None if given.all() else given.copy()


def check_next_states(given: np.ndarray[Any, Any], offered: BoolArray | None, names: Names = NO_NAMES) -> None:
    """Raise unless the next state of every offered action (S, A) is a state."""
    num_states = given.shape[0]
    wrong = (given < 0) | (given >= num_states)
    if offered is not None:
        wrong &= offered
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise ModelError(
            f"next state of {names.pair(int(s), int(a))} is out of range",
            expected=f"0 to {num_states - 1}",
            got=int(given[s, a]),
            remedy="to forbid an action pass mask=, an (S, A) array that is False there",
        )


def without_negative_rounding(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return probabilities with zero in place of what `1 - p - q` leaves by rounding; larger negatives stay.

    >>> without_negative_rounding(np.array([0.9, 0.1, 1 - 0.9 - 0.1])).tolist()
    [0.9, 0.1, 0.0]
    """
    if data.dtype.kind != "f" or not data.size or not data.min() < 0:
        return data
    small = -max(ROW_SUM_TOLERANCE, 4.0 * float(np.finfo(data.dtype).eps))
    return np.where((data < 0) & (data >= small), data.dtype.type(0), data)


def checked_probabilities(
    indptr: IntArray, indices: IntArray, data: Any, offered: BoolArray, names: Names = NO_NAMES
) -> FloatArray:
    """Check S·A CSR rows and return their probabilities in float64 (float32 rows normalised)."""
    num_states, num_actions = offered.shape

    def pair(row: int) -> str:
        return names.pair(row // num_actions, row % num_actions)

    return checked_row_table(indptr, indices, data, offered.ravel(), num_states, pair, names)


def checked_row_table(
    indptr: IntArray,
    indices: IntArray,
    data: Any,
    used: BoolArray,
    num_states: int,
    owner: Callable[[int], str],
    names: Names = NO_NAMES,
) -> FloatArray:
    """Check CSR rows over `num_states` successors, those that are not `used` only for range and sign.

    `owner(row)` says in an error whose row it is, `names` what its successors are called. Returns what
    `checked_probabilities` does.
    """

    def at(entry: int) -> str:
        return owner(int(np.searchsorted(indptr, entry, side="right")) - 1)

    def successor(entry: int) -> str:
        return names.state(int(indices[entry])).removeprefix("state ")

    if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < num_states):
        k = int(np.argmax((indices < 0) | (indices >= num_states)))
        raise ModelError(
            f"a successor of {at(k)} is out of range", expected=f"0 to {num_states - 1}", got=int(indices[k])
        )
    finite = np.isfinite(data)
    if not finite.all():
        k = int(np.argmin(finite))
        raise ModelError(
            f"the probability of {at(k)}, successor {successor(k)} is not finite",
            expected="a number in [0, 1]",
            got=data[k],
        )
    if len(data) and data.min() < 0:
        k = int(np.argmax(data < 0))
        raise ModelError(
            f"the probability of {at(k)}, successor {successor(k)} is negative",
            expected="a number in [0, 1]",
            got=data[k],
        )
    wide = np.array(data, np.float64)
    per_entry = max(ROW_SUM_TOLERANCE, 4.0 * float(np.finfo(data.dtype).eps)) if data.dtype.kind == "f" else 0.0
    row, total = _wrong_row_sum(indptr, wide, used, per_entry, ROW_SUM_CAP * per_entry)
    if row >= 0:
        nothing = total == 0.0
        raise ModelError(
            f"the probabilities of {owner(int(row))} do not sum to one",
            expected=f"1 within {per_entry:.0e} per successor",
            got=repr(float(total)),
            remedy="if the state does not offer this action pass mask=; if the episode ends here lead to a sink state"
            if nothing
            else "divide the row by its sum",
        )
    if data.dtype.kind == "f" and data.dtype.itemsize < 8:
        _normalise_rows(indptr, wide)
    return wide


@compiled
def _wrong_row_sum(
    indptr: IntArray, data: FloatArray, used: BoolArray, per_entry: float, most: float
) -> tuple[int, float]:
    """Return (row, sum) of the first used row whose sum is off by more than `per_entry` a successor or `most`.

    (-1, 1) if there is none.
    """
    for r in range(len(indptr) - 1):
        if used[r]:
            total = compensated_sum(data, indptr[r], indptr[r + 1])
            if not abs(total - 1.0) <= min(most, per_entry * max(1, indptr[r + 1] - indptr[r])):
                return r, total
    return -1, 1.0


@compiled
def _normalise_rows(indptr: IntArray, data: FloatArray) -> None:
    """Divide every row by its sum, in place."""
    for r in range(len(indptr) - 1):
        total = compensated_sum(data, indptr[r], indptr[r + 1])
        if total > 0.0:
            for k in range(indptr[r], indptr[r + 1]):
                data[k] /= total


def check_row_sums(high: float, discount: float) -> None:
    """Raise unless a discount below 1 leaves room for the rounding of the row sums, or values would not exist."""
    if discount < 1.0 and discount * high >= 1.0 - 2.0**-52:
        raise ModelError(
            "discount is too close to 1 for these probabilities",
            expected=f"discount * (largest row sum) < 1 - 2**-52, the largest row sum here being {float(high)!r}",
            got=f"{discount!r}",
        )
