"""MinAtar's network on the CPU: a compiled convolution, and an update without autograd.

The convolution is 3×3 with stride 1 over pictures that are nearly all zeros. A lit cell (c, y, x) of value v adds
v·w[:, c, ky, kx] to the nine outputs (y − ky, x − kx) whose windows hold it, so the work goes with the lit cells, 5 to
50 of 400 to 1,000, not with the cells. Outputs lie channels last with a margin of two around them, where windows that
stick out may write too; then the three outputs of one ky lie side by side, as do their weights once kx runs backwards,
and are summed as one run.

    observations  (n, C, H, W)            outputs  (n, H − 2, (W − 2)·K)           weight  (K, C·9), as nn.Linear has it

The update is written out, since recording and replaying the operations of so small a network takes longer than the
operations do. x is what the convolution makes of the observations, and ∂q comes from the Huber loss:

    f = relu(W x + b)    q = V f + c
    ∂V = ∂qᵀ f           ∂f = (∂q V)·[f > 0]           ∂W = ∂fᵀ x           ∂x = ∂f W, from which the convolution's
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from adalook.errors import DivergedError
from adalook.learning.learner import Learner, Update, head_weights
from adalook.learning.networks import MinAtarTrunk
from adalook.learning.replay.buffer import Batch


class CompiledConvolution:
    """MinAtar's convolution without autograd; stands in for `MinAtarTrunk.convolution`."""

    def __init__(self, trunk: MinAtarTrunk) -> None:
        self._plain, self._conv = trunk.convolution, trunk.conv
        self._outputs = trunk.dense.in_features
        self._shape = trunk.convolved_shape

    def __call__(self, observations: Tensor) -> Tensor:
        """Return what the convolution makes of observations: (n, channels, height, width) -> (n, cells)."""
        if torch.is_grad_enabled():
            return self._plain(observations)
        convolved = torch.empty(len(observations), self._outputs)
        outputs = convolved.numpy().reshape(-1, *self._shape)
        convolve(observations.numpy(), self._conv.weight.detach().numpy(), self._conv.bias.detach().numpy(), outputs)
        return convolved


class MinAtarLearner(Learner):
    """A learner whose gradient step is written out for MinAtar's network; the same as `Learner` up to rounding.

    Large arrays keep their place from one update to the next: fresh memory costs as much as filling it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        trunk: Any = self.network.trunk
        for parameter in trunk.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self._conv_gradients = [trunk.conv.weight.grad.numpy(), trunk.conv.bias.grad.numpy()]
        self._dense_gradients: list[Tensor] = [trunk.dense.weight.grad, trunk.dense.bias.grad]
        self._trunk, self._dense_weight = trunk, trunk.dense.weight.detach()
        self._by_convolved = torch.empty(0, trunk.dense.in_features)
        self._heads: list[tuple[str, Any]] = list(self.network.heads.items())

    @torch.no_grad()
    def gradient_step(self, batch: Batch, targets: Tensor) -> Update:
        """Make one step of gradient descent towards targets (n,)."""
        names, index = self.network.head_index(batch.heads)
        convolved = self._trunk.convolution(torch.from_numpy(batch.observations))
        features = self._trunk.dense_features(convolved)
        weight, bias = self.network.stacked(names)
        values = nn.functional.linear(features, weight, bias).numpy()
        q_gradients = np.zeros_like(values)
        shape = (len(index), len(names), -1)
        weights = head_weights(batch.heads, self._config.head_balance)
        loss, mean_value = _huber(
            values.reshape(shape), index, batch.actions, targets.numpy(), weights, q_gradients.reshape(shape)
        )
        if not math.isfinite(loss):
            raise DivergedError(loss)
        by_value = torch.from_numpy(q_gradients)
        self._set_head_gradients(names, features, by_value)
        self._set_trunk_gradients(batch.observations, convolved, torch.mm(by_value, weight).mul_(features > 0))
        self.optimizer.step()
        return Update(loss, mean_value)

    def _set_head_gradients(self, names: tuple[str, ...], features: Tensor, by_value: Tensor) -> None:
        """Set the gradients of the heads in the batch; the others have none, so that the optimizer leaves them."""
        weights = torch.mm(by_value.t(), features).chunk(len(names))
        biases = by_value.sum(0).chunk(len(names))
        for name, head in self._heads:
            part = names.index(name) if name in names else None
            head.weight.grad = None if part is None else weights[part]
            head.bias.grad = None if part is None else biases[part]

    def _set_trunk_gradients(self, observations: np.ndarray[Any, Any], convolved: Tensor, by_feature: Tensor) -> None:
        """Set the gradients of the trunk from those of what goes into its last ReLU, (n, features)."""
        torch.mm(by_feature.t(), convolved, out=self._dense_gradients[0])
        torch.sum(by_feature, 0, out=self._dense_gradients[1])
        by_convolved = torch.mm(by_feature, self._dense_weight, out=self._by_convolved.resize_(convolved.shape))
        outputs, by_output = (
            tensor.numpy().reshape(-1, *self._trunk.convolved_shape) for tensor in (convolved, by_convolved)
        )
        convolution_gradients(observations, outputs, by_output, *self._conv_gradients)


@njit(cache=True)
def _huber(values: Any, index: Any, actions: Any, targets: Any, weights: Any, q_gradients: Any) -> Any:
    """Return the mean of w·Huber(error) and of the chosen values, and write the loss's derivative into `q_gradients`.

    Args:
        values: (n, heads, A) of the network.
        index: (n,) each row's head among them.
        actions: (n,) each row's action.
        targets: (n,) y.
        weights: (n,) w.
        q_gradients: (n, heads, A) zeros, written where an action was chosen.
    """
    loss, total, n = 0.0, 0.0, len(values)
    for i in range(n):
        value = values[i, index[i], actions[i]]
        error = value - targets[i]
        size = abs(error)
        clipped = min(size, 1.0)
        loss += weights[i] * clipped * (size - 0.5 * clipped)
        total += value
        q_gradients[i, index[i], actions[i]] = weights[i] / n * min(max(error, -1.0), 1.0)
    return loss / n, total / n


KERNELS = MinAtarTrunk.KERNELS
"""K, a constant so that the compiler can unroll a run."""
_RUN = 3 * KERNELS
_MARGIN = 2


@njit(cache=True, nogil=True, fastmath={"contract"})
def convolve(observations: Any, weight: Any, bias: Any, outputs: Any) -> None:
    """Write the ReLU of the convolution into `outputs`."""
    n, channels, height, width = observations.shape
    wide = width + _MARGIN
    taps = _in_runs(weight, channels)
    biases = np.empty((width - 2) * KERNELS, np.float32)
    for k in range(biases.size):
        biases[k] = bias[k % KERNELS]
    room = np.empty((height + _MARGIN) * wide * KERNELS, np.float32)
    for i in range(n):
        room[:] = 0
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    lit = np.float32(observations[i, c, y, x])
                    if lit != 0:
                        for ky in range(3):
                            there, tap = ((y + _MARGIN - ky) * wide + x) * KERNELS, (3 * c + ky) * _RUN
                            for k in range(_RUN):
                                room[there + k] += lit * taps[tap + k]
        for y in range(height - 2):
            here = ((y + _MARGIN) * wide + _MARGIN) * KERNELS
            for k in range(biases.size):
                value = room[here + k] + biases[k]
                outputs[i, y, k] = value if value > 0 else np.float32(0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def convolution_gradients(observations: Any, outputs: Any, output_gradients: Any, weight: Any, bias: Any) -> None:
    """Write the gradients of `convolve` into `weight` and `bias`, given those of its outputs."""
    n, channels, height, width = observations.shape
    wide = width + _MARGIN
    taps = np.zeros(channels * 3 * _RUN, np.float32)
    sums = np.zeros((width - 2) * KERNELS, np.float32)
    room = np.zeros((height + _MARGIN) * wide * KERNELS, np.float32)
    for i in range(n):
        for y in range(height - 2):
            here = ((y + _MARGIN) * wide + _MARGIN) * KERNELS
            for k in range(sums.size):
                gradient = output_gradients[i, y, k] if outputs[i, y, k] > 0 else np.float32(0)
                room[here + k] = gradient
                sums[k] += gradient
        for c in range(channels):
            for y in range(height):
                for x in range(width):
                    lit = np.float32(observations[i, c, y, x])
                    if lit != 0:
                        for ky in range(3):
                            there, tap = ((y + _MARGIN - ky) * wide + x) * KERNELS, (3 * c + ky) * _RUN
                            for k in range(_RUN):
                                taps[tap + k] += lit * room[there + k]
    _out_of_runs(taps, weight, channels)
    bias[:] = 0
    for k in range(sums.size):
        bias[k % KERNELS] += sums[k]


@njit(cache=True)
def _in_runs(weight: Any, channels: Any) -> Any:
    """Return weights (K, C·9) as runs, one per channel and ky: kx backwards, and within it the K kernels."""
    taps = np.empty(channels * 9 * KERNELS, np.float32)
    for row in range(3 * channels):
        for kx in range(3):
            for k in range(KERNELS):
                taps[(3 * row + 2 - kx) * KERNELS + k] = weight[k, 3 * row + kx]
    return taps


@njit(cache=True)
def _out_of_runs(taps: Any, weight: Any, channels: Any) -> None:
    """Write runs, as `_in_runs` made them, into weights (K, C·9)."""
    for row in range(3 * channels):
        for kx in range(3):
            for k in range(KERNELS):
                weight[k, 3 * row + kx] = taps[(3 * row + 2 - kx) * KERNELS + k]
