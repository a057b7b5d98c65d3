"""Centred RMSprop on the CPU, compiled: each weight is touched once per update.

    centred RMSprop    s ← αs + (1−α)g²      m ← αm + (1−α)g      w ← w − λ g / (√(s − m²) + ε)

MinAtar and the Nature paper use it. PyTorch has no fused kernel for it, and makes seven passes over the weights.
The state is PyTorch's, so that a run may move between machines.
"""

from __future__ import annotations

import functools
from typing import Any

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
        for weight in group["params"]:
            if weight.grad is not None:
                step, weights, squares, means = self._arrays(weight)
                step += 1
                gradient = _in_storage_order(weight.grad, weight)
                _centred_rmsprop(gradient, weights, squares, means, rate, decay, epsilon)

    step.hooked = True  # type: ignore[attr-defined]  # PyTorch's profiling of steps would cost as much as the step

    def _arrays(self, weight: Tensor) -> Any:
        """Return views of (step, weight, s, m); made with the state, which is PyTorch's."""
        state = self.state[weight]
        if "step" not in state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32)
            state["square_avg"], state["grad_avg"] = torch.zeros_like(weight), torch.zeros_like(weight)
        views = self._views.get(weight)
        if views is None or views[0] is not state["step"]:
            stores = (weight, state["square_avg"], state["grad_avg"])
            arrays = tuple(_in_storage_order(store, weight) for store in stores)
            views = self._views[weight] = (state["step"], (state["step"].numpy(), *arrays))
        return views[1]

    @functools.cached_property
    def _views(self) -> dict[Tensor, Any]:
        """Views by weight, with the tensor whose memory they are of: a state that was loaded has other tensors."""
        return {}


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
    return torch.as_strided(tensor.detach(), (tensor.numel(),), (1,)).numpy()
