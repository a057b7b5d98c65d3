"""Learning from stored searches (QL-DQN, point 7): the head of depth h is trained towards itself at the leaf.

    y = R + γ^h max_a Q_h⁻(leaf, a)         R the discounted return to the leaf; nothing after R if the leaf has ended
    loss = mean over the batch of w_h · Huber(Q_h(s₀, a₀) − y)

Q⁻ is the target network, a copy that lags behind. Depth 0, plain DQN, looks at the live world's next state: its leaf is
one step away, as for depth 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from adalook.arrays import BoolArray, FloatArray, IntArray
from adalook.learning.network import QNetwork
from adalook.learning.optimiser import Optimiser
from adalook.learning.replay import Batch

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
    depths: IntArray,
    ended: BoolArray,
    discount: float,
) -> FloatArray:
    """y (n,) from the returns to the leaves (n,) and what the target network says there (n, A).

    >>> bootstrap_targets(np.ones(2), np.array([[3.0, 4.0]] * 2), np.array([2, 2]), np.array([False, True]), 0.5)
    array([2., 1.])
    """
    steps = np.maximum(depths, 1)
    ahead = np.power(np.float32(discount), steps) * leaf_values.max(axis=1)
    return np.asarray(returns + np.where(ended, 0.0, ahead))


def head_weights(places: IntArray, balance: float) -> FloatArray:
    """w (n,): p^−balance for a row whose head has the share p of the batch.

    >>> head_weights(np.array([0, 0, 0, 1]), balance=1.0)
    array([1.33333333, 1.33333333, 1.33333333, 4.        ])
    """
    shares = np.bincount(places) / len(places)
    return np.asarray(shares[places] ** -balance)


class Learner:
    """Moves a network towards its targets.

    Args:
        network: what learns.
        target: the same shape; its weights are overwritten.
        optimiser: of `network`.
        discount: γ.
        head_balance: see `head_weights`.
        device: where the networks are.
        helper: computes targets while gradients are computed; None: one after the other.
    """

    def __init__(
        self,
        network: QNetwork,
        target: QNetwork,
        optimiser: Optimiser,
        *,
        discount: float,
        head_balance: float,
        device: torch.device,
        helper: Executor | None = None,
    ) -> None:
        self._helper = helper
        self.network, self.target, self.optimiser = network, target, optimiser
        self._discount, self._head_balance, self._device = discount, head_balance, device
        self._trunk = {f"trunk.{name}": weight for name, weight in network.trunk.named_parameters()}
        self._heads = {
            head: {f"heads.{head}.{name}": weight for name, weight in module.named_parameters()}
            for head, module in network.heads.items()
        }
        self.copy_to_target()

    def copy_to_target(self) -> None:
        """Q⁻ ← Q."""
        self.target.load_state_dict(self.network.state_dict())

    def update(self, batches: Sequence[Batch]) -> list[Update]:
        """One step of gradient descent for each batch.

        Targets do not depend on the steps in between, so a helper may compute them meanwhile: the results are the same.
        """
        compute = map if self._helper is None else self._helper.map
        wanted = compute(self._wanted, batches)
        return [self._step(batch, targets) for batch, targets in zip(batches, wanted, strict=True)]

    def _wanted(self, batch: Batch) -> FloatArray:
        """y (n,)"""
        heads, places = self.network.heads_of(batch.depths)
        with torch.inference_mode():
            values = self.target.of_heads(self._tensor(batch.leaves), heads).cpu().numpy()
        leaf_values = values[np.arange(len(places)), places]
        return bootstrap_targets(batch.returns, leaf_values, batch.depths, batch.ended, self._discount)

    def _step(self, batch: Batch, wanted: FloatArray) -> Update:
        rows, n = np.arange(len(batch.actions)), len(batch.actions)
        heads, places = self.network.heads_of(batch.depths)
        outputs = self.network.of_heads(self._tensor(batch.observations), heads)
        chosen = outputs.detach().cpu().numpy()[rows, places, batch.actions]
        errors = chosen - wanted
        weights = head_weights(places, self._head_balance) / n
        # The derivative of Huber's loss is the clipped error, so there is no need to build a graph for the loss.
        gradient = np.zeros(outputs.shape, np.float32)
        gradient[rows, places, batch.actions] = weights * np.clip(errors, -HUBER_WIDTH, HUBER_WIDTH)
        self._descend(outputs, gradient, heads)

        size = np.abs(errors)
        losses = np.where(size < HUBER_WIDTH, 0.5 * size * size, HUBER_WIDTH * (size - 0.5 * HUBER_WIDTH))
        return Update(float(weights @ losses), float(chosen.mean()))

    def _descend(self, outputs: torch.Tensor, gradient: np.ndarray[Any, Any], heads: tuple[str, ...]) -> None:
        """Change the trunk and the heads that took part, and no other."""
        parameters = dict(self._trunk)
        for head in heads:
            parameters.update(self._heads[head])
        # A sum, since handing the gradient itself to autograd imports a second's worth of symbolic algebra first.
        steered = (outputs * self._tensor(gradient)).sum()
        gradients = torch.autograd.grad(steered, list(parameters.values()))
        by_name = dict.fromkeys(name for head in self._heads.values() for name in head)
        self.optimiser.step({**by_name, **dict(zip(parameters, gradients, strict=True))})

    def state(self) -> dict[str, Any]:
        """Network, target and optimiser."""
        return {
            "network": self.network.weights(),
            "target": self.target.weights(),
            "optimiser": self.optimiser.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.network.load_weights(state["network"])
        self.target.load_weights(state["target"])
        self.optimiser.load_state(state["optimiser"])

    def _tensor(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)
