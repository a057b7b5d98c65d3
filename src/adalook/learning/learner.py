"""Learning from stored transitions (QL-DQN step 7): the head of depth h is trained towards itself at the leaf.

    y = R + γ^steps max_a Q_h⁻(leaf, a)       R the return to the leaf; nothing follows R if the leaf has terminated
    loss = mean over the batch of w_h · Huber((Q_h(s₀, a₀) − y) / scale)        scale: Config.value_scale

Q⁻ is the target network, a copy that lags behind; double DQN takes Q_h⁻(leaf, argmax_a Q_h(leaf, a)) instead of the
maximum. Plain DQN has head 0, and its leaf is the next state, one step away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from adalook.errors import DivergedError
from adalook.learning.config import Config
from adalook.learning.networks import QNetwork
from adalook.learning.replay.buffer import Batch


@dataclass(frozen=True)
class Update:
    """The loss and the mean value of one update."""

    loss: float
    mean_value: float
    """Mean of Q_h(s₀, a₀) over the batch."""


class Learner:
    """Moves a network towards its targets by gradient descent.

    Args:
        network: the network that learns.
        target: a network of the same shape; its weights are overwritten.
        config: the settings of the run.
        device: the device that both networks are on.
        optimizers: classes to use instead of PyTorch's own, by the name that the config has for them.
    """

    def __init__(
        self,
        network: QNetwork,
        target: QNetwork,
        config: Config,
        device: torch.device,
        optimizers: Mapping[str, type[torch.optim.Optimizer]] | None = None,
    ) -> None:
        self.network, self.target = network, target
        self._config, self._device = config, device
        self.optimizer = _make_optimizer(network, config, OPTIMIZERS | dict(optimizers or {}))
        self.copy_to_target()

    def copy_to_target(self) -> None:
        """Copy the network into the target network: Q⁻ ← Q."""
        self.target.load_state_dict(self.network.state_dict())

    def reset(self, seed: int, step: int) -> None:
        """Begin anew in part: heads from fresh weights, the trunk part of the way, the optimizer without its moments.

        A network that has learnt much from little grows stiff; what it knew is in the replay memory, and is learnt
        again within a few updates (Nikishin et al. 2022; how much is kept, D'Oro et al. 2023).
        """
        self.network.reset(seed, step, self._config.reset_keep)
        self.optimizer.state.clear()
        self.copy_to_target()

    def update(self, batches: Iterable[Batch]) -> list[Update]:
        """Make one step of gradient descent for each batch; batches are drawn when they are needed.

        Targets do not depend on the steps in between, so those of several small batches share a pass of the network.
        Those of double DQN do: its actions are the network's as it is now.
        """
        updates = []
        for group in _groups(batches, 1 if self._config.double else self.network.batches_per_pass):
            targets = torch.split(self.td_targets(group), [len(batch.actions) for batch in group])
            updates += [self.gradient_step(batch, y) for batch, y in zip(group, targets, strict=True)]
        return updates

    def td_targets(self, batches: Sequence[Batch]) -> Tensor:
        """Return y (n,) of the transitions of some batches, one after the other."""
        rewards, leaves, steps, terminated = (
            self._tensor(np.concatenate([getattr(batch, name) for batch in batches]))
            for name in ("returns", "leaves", "steps", "terminated")
        )
        heads = np.concatenate([batch.heads for batch in batches])
        with torch.no_grad():
            values = self.target.head_values(leaves, heads)
            if self._config.double:
                best = self.network.head_values(leaves, heads).argmax(dim=1, keepdim=True)
                values = values.gather(1, best)
            discounts = self._config.discount ** steps.to(rewards.dtype)  # whatever default PyTorch was told
            return rewards + torch.where(terminated, 0.0, discounts * values.amax(dim=1))

    def gradient_step(self, batch: Batch, targets: Tensor) -> Update:
        """Make one step of gradient descent towards targets (n,)."""
        values = self.network.head_values(self._tensor(batch.observations), batch.heads)
        chosen = values.gather(1, self._tensor(batch.actions)[:, None])[:, 0]
        scale = self._config.value_scale
        errors = huber_loss(chosen / scale, targets / scale, reduction="none")
        if self._config.head_balance:
            errors = errors * self._tensor(head_weights(batch.heads, self._config.head_balance))
        loss = errors.mean()
        if not math.isfinite(loss.item()):
            raise DivergedError(loss.item())
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return Update(loss.item(), chosen.mean().item())

    def close(self) -> None:
        """End the threads of a learner that has its own; this one has none."""

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def state(self) -> dict[str, Any]:
        """Return the weights of network and target, and the optimizer's moments by the names of the weights."""
        moments = {
            name: {key: value.cpu().numpy().copy() for key, value in self.optimizer.state[weight].items()}
            for name, weight in self.network.named_parameters()
            if weight in self.optimizer.state
        }
        return {"network": self.network.weights(), "target": self.target.weights(), "optimizer": moments}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.network.load_weights(state["network"])
        self.target.load_weights(state["target"])
        self.optimizer.state.clear()
        moments = state["optimizer"]
        needed = MOMENTS.get(type(self.optimizer), frozenset())
        if any(kept and not needed <= set(kept) for kept in moments.values()):  # heads never trained have none at all
            raise ValueError(f"some weights lack their {', '.join(sorted(needed))}")
        for name, weight in self.network.named_parameters():
            for key, value in moments.get(name, {}).items():
                stored = torch.from_numpy(np.array(value)).to(weight.device)
                if stored.shape != (() if key == "step" else weight.shape) or not stored.is_floating_point():
                    raise ValueError(f"{key} of {name} is {stored.dtype} of shape {tuple(stored.shape)}")
                if key != "step":  # as PyTorch makes them: where and how the weight is
                    stored = torch.empty_like(weight, requires_grad=False).copy_(stored)
                self.optimizer.state[weight][key] = stored


def head_weights(heads: np.ndarray[Any, Any], balance: float) -> np.ndarray[Any, Any]:
    """Return w (n,): p^−balance for a row whose head has the share p of the batch.

    >>> head_weights(np.array([2, 2, 2, 5]), balance=1.0)
    array([1.3333334, 1.3333334, 1.3333334, 4.       ], dtype=float32)
    """
    if balance == 0.0:
        return np.ones(len(heads), np.float32)
    shares = np.bincount(heads)[heads] / len(heads)
    return np.asarray(shares**-balance, np.float32)


MOMENTS: dict[type, frozenset[str]] = {
    torch.optim.Adam: frozenset({"step", "exp_avg", "exp_avg_sq"}),
    torch.optim.RMSprop: frozenset({"step", "square_avg", "grad_avg"}),
}
"""What PyTorch's optimizers keep for every weight."""
OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}
"""What each `Config.optimizer` names."""


def _make_optimizer(network: QNetwork, config: Config, kinds: Mapping[str, Any]) -> torch.optim.Optimizer:
    """Return the optimizer that the config names: Adam, or centred RMSprop."""
    settings: dict[str, Any] = {"lr": config.learning_rate, "eps": config.optimizer_epsilon}
    if config.optimizer == "adam":
        settings |= {"betas": (config.first_moment_decay, config.second_moment_decay), "fused": True}
    else:
        settings |= {"alpha": config.second_moment_decay, "centered": True}
    return kinds[config.optimizer](network.parameters(), **settings)  # type: ignore[no-any-return]


def _groups(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Yield batches in lists of `size`, the last one shorter."""
    remaining = iter(batches)
    return iter(lambda: list(islice(remaining, size)), [])
