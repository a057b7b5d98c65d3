"""Learning from stored searches (QL-DQN, point 7): the head of depth h is trained towards itself at the leaf.

    y = R + γ^h max_a Q_h⁻(leaf, a)         R the discounted return to the leaf; nothing after R if the leaf has ended
    loss = mean over the batch of w_h · Huber(Q_h(s₀, a₀) − y)

Q⁻ is the target network, a copy that lags behind. Depth 0, plain DQN, looks at the live world's next state: its leaf is
one step away, as for depth 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numba import njit

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.errors import DivergedError
from adalook.learning.cpu.executors import InlineExecutor
from adalook.learning.cpu.gradients import slopes_of
from adalook.learning.cpu.optimizers import Optimizer
from adalook.learning.networks import QNetwork
from adalook.learning.replay.buffer import Batch

HUBER_WIDTH = 1.0
"""Errors beyond this pull no harder."""


@dataclass(frozen=True)
class Update:
    """What one update saw."""

    loss: float
    mean_value: float
    """Mean of Q_h(s₀, a₀) over the batch."""


def bootstrap_targets(
    returns: np.ndarray[Any, Any],
    leaf_values: np.ndarray[Any, Any],
    steps: IntArray,
    terminated: BoolArray,
    discount: float,
) -> FloatArray:
    """y (n,) from the returns to the leaves (n,) and what the target network says there (n, A).

    >>> bootstrap_targets(np.ones(2), np.array([[3.0, 4.0]] * 2), np.array([2, 2]), np.array([False, True]), 0.5)
    array([2., 1.])
    """
    ahead = np.power(np.float32(discount), steps) * leaf_values.max(axis=1)
    return np.asarray(returns + np.where(terminated, 0.0, ahead))


def head_weights(places: IntArray, balance: float) -> FloatArray:
    """w (n,): p^−balance for a row whose head has the share p of the batch.

    >>> head_weights(np.array([0, 0, 0, 1]), balance=1.0)
    array([1.33333333, 1.33333333, 1.33333333, 4.        ])
    """
    if balance == 0.0:
        return np.ones(len(places))
    shares = np.bincount(places) / len(places)
    return np.asarray(shares[places] ** -balance)


def _grouped(batches: Iterable[Batch], at_most: int) -> Iterator[list[Batch]]:
    remaining = iter(batches)
    return iter(lambda: list(islice(remaining, at_most)), [])


@njit(cache=True)
def _huber(values: Any, places: Any, actions: Any, wanted: Any, weights: Any, slopes: Any) -> Any:
    """Σ w·Huber(error), and the mean of the values chosen; the loss's derivative, a clipped error, goes into `slopes`.

    Args:
        values: (n, heads, A) of the network.
        places: (n,) each row's head.
        actions: (n,) each row's action.
        wanted: (n,) y.
        weights: (n,) w.
        slopes: (n, heads, A) zeros, written where an action was chosen.
    """
    loss, total = 0.0, 0.0
    for i in range(len(values)):
        value = values[i, places[i], actions[i]]
        error = value - wanted[i]
        size = abs(error)
        within = min(size, HUBER_WIDTH)
        loss += weights[i] * within * (size - 0.5 * within)
        total += value
        slopes[i, places[i], actions[i]] = weights[i] * min(max(error, -HUBER_WIDTH), HUBER_WIDTH)
    return loss, total / len(values)


class Learner:
    """Moves a network towards its targets.

    Args:
        network: what learns.
        target: the same shape; its weights are overwritten.
        optimizer: of `network`.
        discount: γ.
        head_balance: see `head_weights`.
        device: where the networks are.
        executor: computes targets, and gradients of weights, at the same time; None: one after the other. Not one in
            which updates are made: they would wait for themselves.
    """

    def __init__(
        self,
        network: QNetwork,
        target: QNetwork,
        optimizer: Optimizer,
        *,
        discount: float,
        head_balance: float,
        device: torch.device,
        executor: Executor | None = None,
    ) -> None:
        self._helper = executor or InlineExecutor()
        self.network, self.target, self.optimizer = network, target, optimizer
        self._discount, self._head_balance, self._device = discount, head_balance, device
        self._slopes = slopes_of(network, device, self._helper)
        self.copy_to_target()

    def copy_to_target(self) -> None:
        """Q⁻ ← Q."""
        self.target.load_state_dict(self.network.state_dict())

    def update(self, batches: Iterable[Batch]) -> list[Update]:
        """One step of gradient descent for each batch; they are asked for when they are needed.

        Targets do not depend on the steps in between. So those of several small batches share a pass, and a helper may
        compute them meanwhile: the results are the same.
        """
        updates = []
        for some in _grouped(batches, self.network.batches_per_pass):
            wanted = self._helper.submit(self._wanted, some)
            updates += [self._step(batch, wanted, place) for place, batch in enumerate(some)]
        return updates

    def _wanted(self, batches: Sequence[Batch]) -> list[FloatArray]:
        """y (n,) of each batch"""
        returns, leaves, row_heads, steps, terminated = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("returns", "leaves", "heads", "steps", "terminated")
        )
        heads, places = self.network.head_index(row_heads)
        with torch.inference_mode():
            values = self.target.of_heads(self._tensor(leaves), heads).cpu().numpy()
        leaf_values = values[np.arange(len(places)), places]
        wanted = bootstrap_targets(returns, leaf_values, steps, terminated, self._discount)
        return np.split(wanted, np.cumsum([len(batch.terminated) for batch in batches])[:-1])

    def _step(self, batch: Batch, wanted: Future[list[FloatArray]], place: int) -> Update:
        """Towards the targets at a place among those wanted, which are not waited for before they are needed."""
        heads, places = self.network.head_index(batch.heads)
        values = self._slopes.values(batch.observations, heads)
        weights = head_weights(places, self._head_balance) / len(places)
        slopes = np.zeros(values.shape, np.float32)
        loss, mean_value = _huber(values, places, batch.actions, wanted.result()[place], weights, slopes)
        if not math.isfinite(loss):
            raise DivergedError(loss)
        self._slopes.descend(slopes, self.optimizer.step)
        return Update(loss, mean_value)

    def close(self) -> None:
        """Let go of the helper."""
        self._helper.shutdown()

    def state(self) -> dict[str, Any]:
        """Network, target and optimizer."""
        return {
            "network": self.network.weights(),
            "target": self.target.weights(),
            "optimizer": self.optimizer.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.network.load_weights(state["network"])
        self.target.load_weights(state["target"])
        self.optimizer.load_state(state["optimizer"])

    def _tensor(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)
