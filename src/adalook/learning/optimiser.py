"""Optimisers that touch each weight once per update, and can be saved as plain arrays.

Centred RMSprop, as MinAtar and the Nature paper use it:

    s ← αs + (1−α)g²      m ← αm + (1−α)g      w ← w − λ g / (√(s − m²) + ε)

PyTorch has no fused kernel for it; seven passes over the weights cost as much as a third of an update on MinAtar.
A head without transitions in the batch has no gradient and stays as it is, its running means included.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from adalook.learning.config import Config

Gradients = dict[str, Tensor | None]
Arrays = dict[str, np.ndarray[Any, Any]]


class Optimiser(Protocol):
    """What changes the weights."""

    def step(self, gradients: Gradients) -> None:
        """One update; parameters whose gradient is None stay as they are."""

    def state(self) -> Arrays:
        """All that later steps depend on."""

    def load_state(self, state: Arrays) -> None:
        """Take over what `state` gave."""


@njit(cache=True, error_model="numpy")
def _centred_rmsprop(
    gradient: Any, weights: Any, squares: Any, means: Any, rate: Any, decay: Any, epsilon: Any
) -> None:
    """All (n,) float32, changed in place but for the gradient."""
    one = np.float32(1.0)
    for i in range(weights.size):
        g = gradient[i]
        s = decay * squares[i] + (one - decay) * g * g
        m = decay * means[i] + (one - decay) * g
        squares[i] = s
        means[i] = m
        weights[i] -= rate * g / (np.sqrt(max(s - m * m, np.float32(0.0))) + epsilon)


class CompiledRMSprop:
    """Centred RMSprop on the CPU, one pass per tensor."""

    def __init__(self, network: nn.Module, config: Config) -> None:
        self._weights = dict(network.named_parameters())
        self._squares = {name: torch.zeros_like(weight) for name, weight in self._weights.items()}
        self._means = {name: torch.zeros_like(weight) for name, weight in self._weights.items()}
        self._stores = {
            name: tuple(_in_storage_order(store) for store in (weight, self._squares[name], self._means[name]))
            for name, weight in self._weights.items()
        }
        self._settings = tuple(
            np.float32(value) for value in (config.learning_rate, config.square_decay, config.optimiser_epsilon)
        )

    def step(self, gradients: Gradients) -> None:
        for name, gradient in gradients.items():
            if gradient is not None:
                weight = self._weights[name]
                if gradient.stride() != weight.stride():
                    gradient = torch.empty_like(weight).copy_(gradient)
                _centred_rmsprop(_in_storage_order(gradient), *self._stores[name], *self._settings)

    def state(self) -> Arrays:
        return {
            f"{kind} {name}": store.numpy().copy()
            for kind, stores in (("squares", self._squares), ("means", self._means))
            for name, store in stores.items()
        }

    def load_state(self, state: Arrays) -> None:
        for kind, stores in (("squares", self._squares), ("means", self._means)):
            for name, store in stores.items():
                store.copy_(torch.from_numpy(np.asarray(state[f"{kind} {name}"])))


def _in_storage_order(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The numbers of a dense tensor as they lie in memory, whichever way its dimensions are laid out."""
    return torch.as_strided(tensor.detach(), (tensor.numel(),), (1,)).numpy()


class TorchOptimiser:
    """One of PyTorch's own, for Adam (fused) and for GPUs."""

    def __init__(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self._weights = dict(network.named_parameters())
        self._optimiser = optimiser

    def step(self, gradients: Gradients) -> None:
        for name, gradient in gradients.items():
            self._weights[name].grad = gradient
        self._optimiser.step()

    def state(self) -> Arrays:
        return {
            f"{kind} {name}": value.detach().cpu().numpy().copy()
            for name, weight in self._weights.items()
            for kind, value in self._optimiser.state.get(weight, {}).items()
        }

    def load_state(self, state: Arrays) -> None:
        self._optimiser.state.clear()
        for key, value in state.items():
            kind, name = key.split(" ", 1)
            weight = self._weights[name]
            stored = torch.from_numpy(np.array(value)).to(weight.device)
            if stored.ndim:
                stored = torch.empty_like(weight, requires_grad=False).copy_(stored)
            self._optimiser.state[weight][kind] = stored


def make_optimiser(network: nn.Module, config: Config, device: torch.device) -> Optimiser:
    """The optimiser that the config names, in its fastest form for the device."""
    weights = list(network.parameters())
    rate, epsilon, decay = config.learning_rate, config.optimiser_epsilon, config.square_decay
    if config.optimiser == "adam":
        betas = (config.momentum_decay, decay)
        return TorchOptimiser(network, torch.optim.Adam(weights, lr=rate, betas=betas, eps=epsilon, fused=True))
    if device.type == "cpu":
        return CompiledRMSprop(network, config)
    return TorchOptimiser(network, torch.optim.RMSprop(weights, lr=rate, alpha=decay, eps=epsilon, centered=True))
