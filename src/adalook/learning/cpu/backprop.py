"""Gradients without autograd, on the CPU: for the networks of the presets, where it is worth the lines.

    f = relu(W x + b)    q = V f + c            δ_q given; x is what the convolutions saw
    ∇V = δ_qᵀ f          δ_f = (δ_q V)·[f > 0]        ∇W = δ_fᵀ x        δ_x = δ_f W, from which the convolutions'

MinAtar's network is so small that recording and replaying its operations takes longer than the operations do. The
Nature network has two chains of work that two cores can share: slopes go down from layer to layer, and beside each
layer's slopes its weights' gradient can be computed. Whoever computes what, the result is the same, to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adalook.learning.cpu.optimizers import Gradients
from adalook.learning.networks import MinAtarTrunk, NatureTrunk, QNetwork

Heads = tuple[str, ...]
Step = Callable[[Gradients], None]


class ByHand(ABC):
    """The heads' part; see `gradients.Slopes`."""

    def __init__(self, network: QNetwork) -> None:
        self._network = network
        self._none: Gradients = dict.fromkeys(f"heads.{name}" for name, _ in network.heads.named_parameters())
        self._tape: tuple[Tensor, Tensor, Heads] | None = None

    @abstractmethod
    def _features(self, observations: np.ndarray[Any, Any]) -> Tensor:
        """What the trunk makes of observations: (n, *shape) -> (n, features). Remembered."""

    @abstractmethod
    def _descend_trunk(self, by_feature: Tensor, step: Step) -> Gradients:
        """From the loss's derivative by what goes into the last ReLU (n, features); those not handed over yet."""

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """See `Slopes`."""
        with torch.no_grad():
            features = self._features(observations)
            weight, bias = self._network.stacked(heads)
            values = nn.functional.linear(features, weight, bias)
        self._tape = features, weight, heads
        return values.numpy().reshape(len(observations), len(heads), -1)

    def descend(self, slopes: np.ndarray[Any, Any], step: Step) -> None:
        """See `Slopes`."""
        assert self._tape is not None
        features, weight, heads = self._tape
        self._tape = None
        with torch.no_grad():
            by_value = torch.from_numpy(slopes.reshape(len(slopes), -1))
            by_feature = torch.mm(by_value, weight).mul_(features > 0)
            head_weights = torch.mm(by_value.t(), features).chunk(len(heads))
            head_biases = by_value.sum(0).chunk(len(heads))
            gradients = self._none | self._descend_trunk(by_feature, step)
        for head, head_weight, head_bias in zip(heads, head_weights, head_biases, strict=True):
            gradients[f"heads.{head}.weight"], gradients[f"heads.{head}.bias"] = head_weight, head_bias
        step(gradients)


class MinAtarByHand(ByHand):
    """One compiled convolution."""

    def __init__(self, network: QNetwork) -> None:
        super().__init__(network)
        assert isinstance(network.trunk, MinAtarTrunk)
        self._trunk = network.trunk
        self._seen: tuple[np.ndarray[Any, Any], Tensor] | None = None
        # The large ones keep their place from one update to the next: fresh memory costs as much as filling it.
        self._by_seen = torch.empty(0, self._trunk.dense.in_features)
        self._dense_weight = torch.empty_like(self._trunk.dense.weight, requires_grad=False)

    def _features(self, observations: np.ndarray[Any, Any]) -> Tensor:
        seen = self._trunk.convolved(observations)
        self._seen = observations, seen
        return self._trunk.dense_features(seen)

    def _descend_trunk(self, by_feature: Tensor, step: Step) -> Gradients:
        assert self._seen is not None
        observations, seen = self._seen
        self._seen = None
        by_seen = torch.mm(by_feature, self._trunk.dense.weight, out=self._by_seen.resize_(seen.shape))
        conv_weight, conv_bias = torch.empty_like(self._trunk.conv.weight), torch.empty_like(self._trunk.conv.bias)
        self._trunk.convolution_gradients(observations, seen, by_seen, conv_weight, conv_bias)
        return {
            "trunk.conv.weight": conv_weight,
            "trunk.conv.bias": conv_bias,
            "trunk.dense.weight": torch.mm(by_feature.t(), seen, out=self._dense_weight),
            "trunk.dense.bias": by_feature.sum(0),
        }


class NatureByHand(ByHand):
    """Three convolutions.

    Args:
        helper: computes the weights' gradients. Not one in which this is run: it would wait for itself.
    """

    def __init__(self, network: QNetwork, helper: Executor) -> None:
        super().__init__(network)
        assert isinstance(network.trunk, NatureTrunk)
        self._trunk, self._helper = network.trunk, helper
        self._layers: list[Tensor] = []
        self._seen = torch.empty(0)
        self._dense_weight = torch.empty_like(self._trunk.dense.weight, requires_grad=False)

    def _features(self, observations: np.ndarray[Any, Any]) -> Tensor:
        self._layers = self._trunk.convolved(torch.from_numpy(observations))
        self._seen = self._layers[-1].flatten(1)
        return self._trunk.dense_features(self._seen)

    def _descend_trunk(self, by_feature: Tensor, step: Step) -> Gradients:
        """The dense layer, 19 of 20 weights, moves as soon as its weights have passed the slopes on."""
        trunk, layers, later = self._trunk, self._layers, self._helper.submit
        computed = later(torch.mm, by_feature.t(), self._seen, out=self._dense_weight)
        slopes = torch.mm(by_feature, trunk.dense.weight).view_as(layers[3])
        dense: Gradients = {"trunk.dense.weight": self._dense_weight, "trunk.dense.bias": by_feature.sum(0)}
        moved = later(_move, computed, step, dense)
        waiting = []
        for number, convolution in ((3, trunk.conv3), (2, trunk.conv2)):
            slopes = torch.ops.aten.threshold_backward(slopes, layers[number], 0)
            waiting.append(later(_by_weights, convolution, layers[number - 1], slopes))
            slopes = _by_input(convolution, layers[number - 1], slopes)
        slopes = torch.ops.aten.threshold_backward(slopes, layers[1], 0)
        conv1 = _by_weights(trunk.conv1, layers[0], slopes)
        moved.result()
        conv3, conv2 = (done.result() for done in waiting)
        gradients: Gradients = {}
        for number, (weight, bias) in enumerate((conv1, conv2, conv3), 1):
            gradients[f"trunk.conv{number}.weight"], gradients[f"trunk.conv{number}.bias"] = weight, bias
        return gradients


def _move(computed: Future[Tensor], step: Step, gradients: Gradients) -> None:
    """Once they have been computed; not at all if that failed."""
    computed.result()
    step(gradients)


def _by_input(convolution: nn.Conv2d, seen: Tensor, slopes: Tensor) -> Tensor:
    """The loss's derivative by what a convolution saw, from that by what it made of it."""
    return _convolution_backward(convolution, seen, slopes, [True, False, False])[0]


def _by_weights(convolution: nn.Conv2d, seen: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
    """That by its weights and its biases."""
    return _convolution_backward(convolution, seen, slopes, [False, True, True])[1:]


def _convolution_backward(
    convolution: nn.Conv2d, seen: Tensor, slopes: Tensor, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    weight = convolution.weight.detach()  # so that nothing is recorded, in any thread
    size, stride, padding = [convolution.out_channels], convolution.stride, convolution.padding
    return torch.ops.aten.convolution_backward(  # type: ignore[no-any-return]
        slopes, seen, weight, size, stride, padding, convolution.dilation, False, [0, 0], convolution.groups, wanted
    )
