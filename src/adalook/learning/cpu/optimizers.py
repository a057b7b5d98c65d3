"""Optimizers that touch each weight once per update, and can be saved as plain arrays.

    centred RMSprop    s ← αs + (1−α)g²      m ← αm + (1−α)g      w ← w − λ g / (√(s − m²) + ε)
    Adam               s ← αs + (1−α)g²      m ← βm + (1−β)g      w ← w − λ m/(1−βᵗ) / (√(s/(1−αᵗ)) + ε)

MinAtar and the Nature paper use the first. PyTorch has no fused kernel for it; seven passes over the weights cost as
much as a third of an update on MinAtar. For Adam it has one, but beginning takes longer than moving a small layer. A
head without transitions in the batch has no gradient and stays as it is, its running means included.
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


class Optimizer(Protocol):
    """What changes the weights."""

    def step(self, gradients: Gradients) -> None:
        """One update of the weights named; those whose gradient is None stay as they are."""

    def state(self) -> Arrays:
        """All that later steps depend on."""

    def load_state(self, state: Arrays) -> None:
        """Take over what `state` gave."""


@njit(cache=True, nogil=True, error_model="numpy")
def _centred_rmsprop(
    gradient: Any, weights: Any, squares: Any, means: Any, rate: Any, decay: Any, mean_decay: Any, epsilon: Any, t: int
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


@njit(cache=True, nogil=True, error_model="numpy")
def _adam(
    gradient: Any, weights: Any, squares: Any, means: Any, rate: Any, decay: Any, mean_decay: Any, epsilon: Any, t: int
) -> None:
    """The same; t counts the updates, this one included."""
    one = np.float32(1.0)
    step = np.float32(np.float64(rate) / (1.0 - np.float64(mean_decay) ** t))
    growth = np.float32(1.0 / np.sqrt(1.0 - np.float64(decay) ** t))
    for i in range(weights.size):
        g = gradient[i]
        s = decay * squares[i] + (one - decay) * g * g
        m = mean_decay * means[i] + (one - mean_decay) * g
        squares[i] = s
        means[i] = m
        weights[i] -= step * m / (np.sqrt(s) * growth + epsilon)


class Compiled:
    """On the CPU, one pass per tensor.

    Args:
        kernel: `_centred_rmsprop` or `_adam`.
    """

    def __init__(self, network: nn.Module, config: Config, kernel: Any) -> None:
        self._weights, self._kernel = dict(network.named_parameters()), kernel
        self._squares = {name: torch.zeros_like(weight) for name, weight in self._weights.items()}
        self._means = {name: torch.zeros_like(weight) for name, weight in self._weights.items()}
        self._steps = dict.fromkeys(self._weights, 0)
        self._stores = {
            name: tuple(_in_storage_order(store) for store in (weight, self._squares[name], self._means[name]))
            for name, weight in self._weights.items()
        }
        self._settings = tuple(
            np.float32(value)
            for value in (
                config.learning_rate,
                config.second_moment_decay,
                config.first_moment_decay,
                config.optimizer_epsilon,
            )
        )

    def step(self, gradients: Gradients) -> None:
        for name, gradient in gradients.items():
            if gradient is not None:
                weight = self._weights[name]
                if gradient.stride() != weight.stride():
                    gradient = torch.empty_like(weight).copy_(gradient)
                self._steps[name] += 1
                self._kernel(_in_storage_order(gradient), *self._stores[name], *self._settings, self._steps[name])

    def state(self) -> Arrays:
        arrays = {
            f"{kind} {name}": store.numpy().copy()
            for kind, stores in (("squares", self._squares), ("means", self._means))
            for name, store in stores.items()
        }
        return arrays | {f"steps {name}": np.array(steps) for name, steps in self._steps.items()}

    def load_state(self, state: Arrays) -> None:
        for kind, stores in (("squares", self._squares), ("means", self._means)):
            for name, store in stores.items():
                store.copy_(torch.from_numpy(np.asarray(state[f"{kind} {name}"])))
        self._steps = {name: int(state[f"steps {name}"]) for name in self._steps}


def _in_storage_order(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The numbers of a dense tensor as they lie in memory, whichever way its dimensions are laid out."""
    return torch.as_strided(tensor.detach(), (tensor.numel(),), (1,)).numpy()


class TorchOptimizer:
    """One of PyTorch's own, for GPUs. Its state is that of `Compiled`, so that a run may move between machines."""

    def __init__(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._weights = dict(network.named_parameters())
        self._optimizer = optimizer
        adam = isinstance(optimizer, torch.optim.Adam)
        self._names = {
            "squares": "exp_avg_sq" if adam else "square_avg",
            "means": "exp_avg" if adam else "grad_avg",
        }

    def step(self, gradients: Gradients) -> None:
        for name, gradient in gradients.items():
            self._weights[name].grad = gradient
        self._optimizer.step()
        for name in gradients:
            self._weights[name].grad = None

    def state(self) -> Arrays:
        arrays: Arrays = {}
        for name, weight in self._weights.items():
            stored = self._optimizer.state.get(weight, {})
            nothing = torch.zeros_like(weight)
            for kind, torchs in self._names.items():
                arrays[f"{kind} {name}"] = stored.get(torchs, nothing).detach().cpu().numpy().copy()
            arrays[f"steps {name}"] = np.array(int(stored.get("step", 0)))
        return arrays

    def load_state(self, state: Arrays) -> None:
        self._optimizer.state.clear()
        for name, weight in self._weights.items():
            steps = int(state[f"steps {name}"])
            if steps == 0:
                continue  # PyTorch makes it when it is first needed
            stored = self._optimizer.state[weight]
            stored["step"] = torch.tensor(float(steps), device=weight.device)
            for kind, torchs in self._names.items():
                stored[torchs] = torch.empty_like(weight, requires_grad=False).copy_(
                    torch.from_numpy(np.array(state[f"{kind} {name}"]))
                )


def make_optimizer(network: nn.Module, config: Config, device: torch.device) -> Optimizer:
    """The optimizer that the config names, in its fastest form for the device."""
    if device.type == "cpu":
        return Compiled(network, config, _adam if config.optimizer == "adam" else _centred_rmsprop)
    weights = list(network.parameters())
    rate, epsilon, decay = config.learning_rate, config.optimizer_epsilon, config.second_moment_decay
    if config.optimizer == "adam":
        betas = (config.first_moment_decay, decay)
        return TorchOptimizer(network, torch.optim.Adam(weights, lr=rate, betas=betas, eps=epsilon, fused=True))
    return TorchOptimizer(network, torch.optim.RMSprop(weights, lr=rate, alpha=decay, eps=epsilon, centered=True))
