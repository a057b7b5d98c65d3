"""Centred RMSprop on the CPU, compiled: each weight is touched once per update.

    centred RMSprop    s ← αs + (1−α)g²      m ← αm + (1−α)g      w ← w − λ g / (√(s − m²) + ε)

MinAtar and the Nature paper use it. PyTorch has no fused kernel for it, and makes seven passes over the weights.
The state is PyTorch's, so that a run may move between machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor


class CompiledRMSprop(torch.optim.RMSprop):
    """Centred RMSprop, the same as PyTorch's up to rounding."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        (group,) = self.param_groups
        settings = tuple(np.float32(group[name]) for name in ("lr", "alpha", "eps"))
        for weight in group["params"]:
            if weight.grad is not None:
                state = self.state[weight]
                if not state:
                    state["step"] = torch.tensor(0.0)
                    state["square_avg"], state["grad_avg"] = torch.zeros_like(weight), torch.zeros_like(weight)
                state["step"] += 1
                arrays = _in_storage_order(weight.grad, weight, state["square_avg"], state["grad_avg"])
                _centred_rmsprop(*arrays, *settings)


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


def _in_storage_order(gradient: Tensor, weight: Tensor, *moments: Tensor) -> list[np.ndarray[Any, Any]]:
    """Return the numbers of dense tensors as they lie in memory, whichever way the weight's dimensions are laid out."""
    if gradient.stride() != weight.stride():
        gradient = torch.empty_like(weight).copy_(gradient)
    return [
        torch.as_strided(tensor.detach(), (tensor.numel(),), (1,)).numpy() for tensor in (gradient, weight, *moments)
    ]
