"""Models from arrays: the forms that other libraries use are brought into ours.

    transitions   (A, S, S) arrays and lists of A sparse matrices (S, S), as in mdptoolbox, become (S, A, S) arrays and
                  one sparse matrix (S·A, S)
    rewards       on (s, a, s'), in any of these forms, become their expectation r(s, a) = Σ_s' P(s' | s, a) r(s, a, s')

An array (S, S, S) of a model with as many actions as states is taken as (S, A, S).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from adalook._arrays import FloatArray
from adalook._validation import as_array
from adalook.errors import ModelError
from adalook.mdp.checks import number_array, sparse_rows


def usual_form(rewards: Any, transitions: Any) -> tuple[Any, Any]:
    """Return rewards (S, A) and transitions in one of the three forms of `MDP`; what is neither is left to its checks.

    >>> stay, swap = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> _, usual = usual_form(np.zeros((2, 3)), np.stack([stay, swap, swap]))
    >>> usual.shape
    (2, 3, 2)
    """
    if isinstance(transitions, dict) and not _is_sparse(transitions):
        raise ModelError(
            "transitions is a dictionary", remedy="al.MDP.from_table(table, discount) reads table[state][action]"
        )
    transitions = _state_major(transitions, "transitions")
    if not _on_successors(rewards):
        return rewards, transitions
    rewards = _state_major(rewards, "rewards")
    return _expected_rewards(rewards, transitions), transitions


def _is_sparse(value: Any) -> bool:
    return "scipy.sparse" in sys.modules and bool(sys.modules["scipy.sparse"].issparse(value))


def _matrices(value: Any) -> list[Any]:
    """Return the sparse matrices of a list, tuple or array of objects; none for everything else."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, list | tuple) and value and any(_is_sparse(part) for part in value):
        if not all(_is_sparse(part) and part.shape == value[0].shape for part in value):
            raise ModelError(
                "a list mixes sparse matrices with others, or their shapes differ",
                expected="A sparse matrices (S, S), one per action",
                got=[getattr(part, "shape", type(part).__name__) for part in value][:8],
            )
        return list(value)
    return []


def _state_major(value: Any, name: str) -> Any:
    """Return what goes action by action state by state instead; everything else as it is."""
    matrices = _matrices(value)
    if matrices:
        from scipy.sparse import vstack

        num_actions, (num_states, width) = len(matrices), matrices[0].shape
        if num_states != width:
            raise ModelError("sparse matrices have the wrong shape", expected="(S, S) each", got=(num_states, width))
        order = np.arange(num_actions * num_states).reshape(num_actions, num_states).T.ravel()
        return vstack([_csr(matrix, name) for matrix in matrices], format="csr")[order]
    if isinstance(value, list | tuple) and value and isinstance(value[0], np.ndarray | list | tuple):
        value = number_array(value, name, kinds="iufb")
    if isinstance(value, np.ndarray) and value.ndim == 3:
        first, middle, last = value.shape
        if first != last and middle == last:
            return np.moveaxis(value, 0, 1)
    return value


def _csr(matrix: Any, name: str) -> Any:
    """Return a sparse matrix of any kind as CSR in float64, every index checked."""
    rows = sparse_rows(matrix, name)
    outside = (rows.indices < 0) | (rows.indices >= rows.shape[1])
    if outside.any():
        raise ModelError(
            f"{name} is a damaged sparse matrix",
            expected=f"columns 0 to {rows.shape[1] - 1}",
            got=int(rows.indices[np.argmax(outside)]),
        )
    return rows.astype(np.float64)


def _on_successors(rewards: Any) -> bool:
    """Return whether rewards depend on the next state."""
    return _is_sparse(rewards) or bool(_matrices(rewards)) or np.ndim(_maybe_ragged(rewards)) == 3


def _maybe_ragged(rewards: Any) -> Any:
    if isinstance(rewards, np.ndarray):
        return rewards
    try:
        return as_array("rewards", rewards, ModelError)
    except ModelError:
        return None  # the checks of rewards will say so


def _expected_rewards(rewards: Any, transitions: Any) -> FloatArray:
    """Return r(s, a) = Σ_s' P(s' | s, a) r(s, a, s'), over the successors that have a chance."""
    from scipy.sparse import csr_array

    given, chances = (
        _csr(value, name) if _is_sparse(value) else number_array(value, name, kinds="iufb")
        for name, value in (("rewards", rewards), ("transitions", transitions))
    )
    given = given.astype(np.float64, copy=False)
    if given.ndim == 3:
        num_states, num_actions, width = given.shape
    else:
        num_pairs, num_states = given.shape
        num_actions, width = num_pairs // max(num_states, 1), num_states
    next_states = chances.ndim == 2 and not _is_sparse(chances)
    full = (num_states, num_actions) if next_states else (num_states, num_actions, num_states)
    flat = (num_states * num_actions, num_states)
    if width != num_states or chances.shape not in (full, flat) or given.shape not in (full, flat, (*full, num_states)):
        raise ModelError(
            "rewards on (s, a, s') do not fit the transitions",
            expected="both (S, A, S), or both (A, S, S), or sparse (S·A, S)",
            got=f"rewards {given.shape} and transitions {chances.shape}",
        )
    if next_states:
        if chances.dtype.kind not in "iu" or chances.min() < 0 or chances.max() >= num_states:
            raise ModelError(
                "transitions is wrong",
                expected=f"next states {full}, ints from 0 to {num_states - 1}",
                got=f"{chances.dtype} {chances.shape}",
                remedy="rewards come first: al.MDP(rewards, transitions, discount)"
                if chances.dtype.kind == "f"
                else "",
            )
        if given.ndim == 3:
            return np.asarray(np.take_along_axis(given, chances[:, :, None].astype(np.intp), axis=2)[:, :, 0], float)
        return np.asarray(given[np.arange(flat[0]), chances.ravel()], float).reshape(num_states, num_actions)
    table = csr_array(chances if chances.ndim == 2 else chances.reshape(flat))
    table.sum_duplicates()
    likely = table.data != 0
    pairs = np.repeat(np.arange(flat[0]), np.diff(table.indptr))[likely]
    columns, weights = table.indices[likely], np.asarray(table.data[likely], float)
    if given.ndim == 3:
        paid = given.reshape(flat)[pairs, columns]
    else:
        paid = np.asarray(given[pairs, columns]).ravel()
    expected = np.bincount(pairs, weights=weights * paid, minlength=flat[0])
    return np.asarray(expected, float).reshape(num_states, num_actions)
