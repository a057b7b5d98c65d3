"""Centred RMSprop on the CPU, compiled: each weight is touched once per update.

    centred RMSprop    s ← αs + (1−α)g²      m ← αm + (1−α)g      w ← w − λ g / (√(s − m²) + ε)

MinAtar and the Nature paper use it. PyTorch has no fused kernel for it, and makes seven passes over the weights.
The state is PyTorch's, so that a run may move between machines.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor


class CompiledRMSprop(torch.optim.RMSprop):
    """Centred RMSprop, the same as PyTorch's up to rounding."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        (group,) = self.param_groups
        rate, decay, epsilon = np.float32(group["lr"]), np.float32(group["alpha"]), np.float32(group["eps"])
        for i, weight in enumerate(group["params"]):
            gradient = weight.grad
            if gradient is not None:
                step, weights, squares, means = self._arrays(i, weight)
                step += 1
                _centred_rmsprop(_in_storage_order(gradient, weight), weights, squares, means, rate, decay, epsilon)

    step.hooked = True  # type: ignore[attr-defined]  # PyTorch's profiling of steps would cost as much as the step

    def _arrays(self, number: int, weight: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
        """Return views of (step, weight, s, m); made with the state, which is PyTorch's."""
        state, known = self.state[weight], self._views.get(number)
        if known is not None and known.step is state.get("step"):
            return known.arrays
        if not state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32)
            state["square_avg"], state["grad_avg"] = torch.zeros_like(weight), torch.zeros_like(weight)
        stores = (weight.detach(), state["square_avg"], state["grad_avg"])
        arrays = (state["step"].numpy(), *[_in_storage_order(store, weight) for store in stores])
        self._views[number] = _Views(state["step"], arrays)
        return arrays

    @functools.cached_property
    def _views(self) -> dict[int, _Views]:
        """By the number of the weight."""
        return {}


class _Views(NamedTuple):
    """Arrays (step, weight, s, m) in the memory of a weight and its state."""

    step: Tensor
    """Of the state that they are of: one that was loaded has other tensors."""
    arrays: tuple[np.ndarray[Any, Any], ...]


@njit(cache=True, nogil=True, error_model="numpy")
def _centred_rmsprop(
    gradient: Any, weights: Any, squares: Any, means: Any, rate: Any, decay: Any, epsilon: Any
) -> None:
    """Update weights, squares s and means m, all (n,) float32 as is the gradient, in place."""
    one = np.float32(1.0)
    for i in range(weights.size):
        g = gradient[i]
        s = decay * squares[i] + (one - decay) * g * g
        m = decay * means[i] + (one - decay) * g
        squares[i] = s
        means[i] = m
        weights[i] -= rate * g / (np.sqrt(max(s - m * m, np.float32(0.0))) + epsilon)


def _in_storage_order(tensor: Tensor, like: Tensor) -> np.ndarray[Any, Any]:
    """Return the numbers of a dense tensor in the order in which those of `like` lie in memory; a view if it can be."""
    if tensor.stride() != like.stride():
        tensor = torch.empty_like(like, requires_grad=False).copy_(tensor)
    return tensor.numpy().ravel(order="K")
