"""The networks of MinAtar and Atari on the CPU: a compiled convolution, and updates without autograd.

Backpropagation is written out. x is what the convolutions make of the observations, and ∂q comes from the Huber loss:

    f = relu(W x + b)    q = V f + c
    ∂V = ∂qᵀ f           ∂f = (∂q V)·[f > 0]           ∂W = ∂fᵀ x           ∂x = ∂f W, from which the convolutions'

MinAtar's network is so small that recording and replaying its operations takes longer than the operations do. Those of
Atari are large, and two cores can share the work: gradients go down from layer to layer, and beside each layer
the gradients of its weights can be computed. Whoever computes what, the result is the same, to the bit.

MinAtar's convolution is 3×3 with stride 1 over pictures that are nearly all zeros. A lit cell (c, y, x) of value v adds
v·w[:, c, ky, kx] to the nine outputs (y − ky, x − kx) whose windows hold it, so the work goes with the lit cells, 5 to
50 of 400 to 1,000, not with the cells. Outputs lie channels last with a margin of two around them, where windows that
stick out may write too; then the three outputs of one ky lie side by side, as do their weights once kx runs backwards,
and are summed as one run.

    observations  (n, C, H, W)            outputs  (n, H − 2, (W − 2)·K)           weight  (K, C·9), as nn.Linear has it
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from adalook.errors import DivergedError
from adalook.learning.learner import Learner, Update, head_weights
from adalook.learning.networks import MinAtarTrunk
from adalook.learning.replay.buffer import Batch
from adalook.learning.training import InlineExecutor


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
        convolved = torch.empty(len(observations), self._outputs, dtype=torch.float32)
        outputs = convolved.numpy().reshape(-1, *self._shape)
        convolve(observations.numpy(), self._conv.weight.detach().numpy(), self._conv.bias.detach().numpy(), outputs)
        return convolved


def compiled_pictures(observations: Tensor) -> Tensor:
    """Return bytes (n, frames, height, width) as floats in [0, 1], channels last; stands in for `NatureTrunk.pictures`.

    One pass where PyTorch makes three; the same to the bit.
    """
    n, frames, height, width = observations.shape
    pictures = np.empty((n, height, width, frames), np.float32)
    _scale(observations.numpy(), np.float32(1.0 / 255.0), pictures)
    return torch.from_numpy(pictures).permute(0, 3, 1, 2)


class Forward(NamedTuple):
    """The results of a forward pass that backpropagation needs."""

    names: tuple[str, ...]
    """The heads that the batch needs."""
    head_index: np.ndarray[Any, Any]
    """(n,) each row's head among them."""
    layers: list[Tensor]
    """What goes into the first convolution, and what comes out of each, after its ReLU."""
    features: Tensor
    """(n, features) f."""
    weight: Tensor
    """(heads·A, features) V of those heads, stacked."""
    values: Tensor
    """(n, heads·A) q."""


class BackpropLearner(Learner):
    """A learner whose gradient step is written out; the same as `Learner` up to rounding.

    Large arrays keep their place from one update to the next: fresh memory costs as much as filling it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        trunk: Any = self.network.trunk
        self._trunk, self._dense_weight = trunk, trunk.dense.weight.detach()
        self._dense_gradients = torch.zeros_like(self._dense_weight)
        self._heads: list[tuple[str, Any]] = list(self.network.heads.items())

    def gradient_step(self, batch: Batch, targets: Tensor) -> Update:
        """Make one step of gradient descent towards targets (n,)."""
        return self._backward(batch, self._forward(batch), targets)

    @torch.no_grad()
    def _forward(self, batch: Batch) -> Forward:
        names, index = self.network.head_index(batch.heads)
        layers = self._convolve(torch.from_numpy(batch.observations))
        features = self._trunk.dense_features(layers[-1].flatten(1))
        weight, bias = self.network.stacked(names)
        return Forward(names, index, layers, features, weight, nn.functional.linear(features, weight, bias))

    @torch.no_grad()
    def _backward(self, batch: Batch, forward: Forward, targets: Tensor) -> Update:
        values = forward.values.numpy()
        q_gradients = np.zeros_like(values)
        shape = (len(values), len(forward.names), -1)
        weights = head_weights(batch.heads, self._config.head_balance)
        loss, mean_value = _huber(
            values.reshape(shape),
            forward.head_index,
            batch.actions,
            targets.numpy(),
            weights,
            q_gradients.reshape(shape),
        )
        if not math.isfinite(loss):
            raise DivergedError(loss)
        grad_values = torch.from_numpy(q_gradients)
        grad_features = torch.mm(grad_values, forward.weight).mul_(forward.features > 0)
        self._step(forward, grad_values, grad_features)
        return Update(loss, mean_value)

    @abstractmethod
    def _convolve(self, observations: Tensor) -> list[Tensor]:
        """Return what goes into the first convolution, and what comes out of each, after its ReLU."""

    @abstractmethod
    def _step(self, forward: Forward, grad_values: Tensor, grad_features: Tensor) -> None:
        """Set all gradients and let the optimizer step.

        Args:
            forward: the forward pass.
            grad_values: (n, heads·A) ∂q.
            grad_features: (n, features) ∂f, of what goes into the last ReLU.
        """

    def _set_head_gradients(self, forward: Forward, grad_values: Tensor) -> None:
        """Set the gradients of the heads in the batch; the others have none, so that the optimizer leaves them."""
        names = forward.names
        weights = torch.mm(grad_values.t(), forward.features).chunk(len(names))
        biases = grad_values.sum(0).chunk(len(names))
        for name, head in self._heads:
            part = names.index(name) if name in names else None
            head.weight.grad = None if part is None else weights[part]
            head.bias.grad = None if part is None else biases[part]


class MinAtarLearner(BackpropLearner):
    """A learner for MinAtar's network, with its compiled convolution."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        conv, dense = self._trunk.conv, self._trunk.dense
        conv.weight.grad, conv.bias.grad = torch.zeros_like(conv.weight), torch.zeros_like(conv.bias)
        self._conv_gradients = [conv.weight.grad.numpy(), conv.bias.grad.numpy()]
        dense.weight.grad = self._dense_gradients
        self._grad_convolved = torch.empty(0, dense.in_features, dtype=torch.float32)

    def _convolve(self, observations: Tensor) -> list[Tensor]:
        return [observations, self._trunk.convolution(observations)]

    def _step(self, forward: Forward, grad_values: Tensor, grad_features: Tensor) -> None:
        observations, convolved = forward.layers
        self._set_head_gradients(forward, grad_values)
        torch.mm(grad_features.t(), convolved, out=self._dense_gradients)
        self._trunk.dense.bias.grad = grad_features.sum(0)
        grad_convolved = torch.mm(grad_features, self._dense_weight, out=self._grad_convolved.resize_(convolved.shape))
        outputs, grad_outputs = (
            tensor.numpy().reshape(-1, *self._trunk.convolved_shape) for tensor in (convolved, grad_convolved)
        )
        convolution_gradients(observations.numpy(), outputs, grad_outputs, *self._conv_gradients)
        self.optimizer.step()


class PictureLearner(BackpropLearner):
    """A learner for networks with convolutions over pictures, with a second thread if the config asks for overlap.

    The second thread computes targets during the forward pass, and the gradients of weights during backpropagation.
    torch keeps the number of cores for its operations by thread, so the new one is told ours.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._executor: Executor = InlineExecutor()
        if self._config.overlap:
            threads = self._config.threads
            self._executor = ThreadPoolExecutor(1, "adalook-gradients", torch.set_num_threads, (threads,))

    def update(self, batches: Iterable[Batch]) -> list[Update]:
        """Make one step of gradient descent for each batch; batches are drawn when they are needed."""
        updates = []
        for batch in batches:
            targets = self._executor.submit(self.td_targets, [batch])
            forward = self._forward(batch)
            updates.append(self._backward(batch, forward, targets.result()))
        return updates

    def close(self) -> None:
        """End the second thread."""
        self._executor.shutdown()

    def _convolve(self, observations: Tensor) -> list[Tensor]:
        layers: list[Tensor] = self._trunk.convolved(observations)
        return layers

    def _step(self, forward: Forward, grad_values: Tensor, grad_features: Tensor) -> None:
        """Set all gradients and let the optimizer step, twice.

        The first step is the dense layer's, which has most of the weights: it is made beside the convolutions'
        gradients, as soon as the dense weights have passed the gradients on. The optimizer leaves weights that have no
        gradient.
        """
        trunk, layers, submit = self._trunk, forward.layers, self._executor.submit
        first, *others = trunk.convolutions
        self.optimizer.zero_grad()
        computed = submit(torch.mm, grad_features.t(), layers[-1].flatten(1), out=self._dense_gradients)
        gradients = torch.mm(grad_features, self._dense_weight).view_as(layers[-1])
        gradients = gradients.contiguous(memory_format=torch.channels_last)  # as all the layers are
        stepped = submit(self._step_dense, computed, grad_features.sum(0))
        grad_weights = []
        for convolution, inputs, outputs in zip(others[::-1], layers[-2:0:-1], layers[:1:-1], strict=True):
            gradients = torch.ops.aten.threshold_backward(gradients, outputs, 0)
            grad_weights.append((convolution, submit(_grad_weights, convolution, inputs, gradients)))
            gradients = _grad_input(convolution, inputs, gradients)
        gradients = torch.ops.aten.threshold_backward(gradients, layers[1], 0)
        grad_first = _grad_weights(first, layers[0], gradients)
        dense_gradients = stepped.result()
        self._set_head_gradients(forward, grad_values)
        first.weight.grad, first.bias.grad = grad_first
        for convolution, done in grad_weights:
            convolution.weight.grad, convolution.bias.grad = done.result()
        self.optimizer.step()
        trunk.dense.weight.grad, trunk.dense.bias.grad = dense_gradients

    def _step_dense(self, computed: Future[Tensor], grad_bias: Tensor) -> tuple[Tensor, Tensor]:
        """Let the optimizer step the dense layer, return its gradients and leave it without, once they are computed."""
        dense = self._trunk.dense
        dense.weight.grad, dense.bias.grad = computed.result(), grad_bias
        self.optimizer.step()
        dense.weight.grad = dense.bias.grad = None
        return self._dense_gradients, grad_bias


def _grad_input(convolution: nn.Conv2d, inputs: Tensor, grad_outputs: Tensor) -> Tensor:
    """Return the gradients of a convolution's inputs from those of its outputs."""
    return _convolution_backward(convolution, inputs, grad_outputs, [True, False, False])[0]


def _grad_weights(convolution: nn.Conv2d, inputs: Tensor, grad_outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of a convolution's weights and biases from those of its outputs."""
    return _convolution_backward(convolution, inputs, grad_outputs, [False, True, True])[1:]


def _convolution_backward(
    convolution: nn.Conv2d, inputs: Tensor, grad_outputs: Tensor, output_mask: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    weight = convolution.weight.detach()  # so that nothing is recorded, in any thread
    size, stride, padding = [convolution.out_channels], convolution.stride, convolution.padding
    return torch.ops.aten.convolution_backward(  # type: ignore[no-any-return]
        grad_outputs,
        inputs,
        weight,
        size,
        stride,
        padding,
        convolution.dilation,
        False,
        [0, 0],
        convolution.groups,
        output_mask,
    )


@njit(cache=True, nogil=True)
def _scale(observations: Any, factor: Any, pictures: Any) -> None:
    """Write observations (n, C, H, W) times a float32 factor into pictures (n, H, W, C)."""
    n, channels, height, width = observations.shape
    for i in range(n):
        for y in range(height):
            for c in range(channels):
                for x in range(width):
                    pictures[i, y, x, c] = np.float32(observations[i, c, y, x]) * factor


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
