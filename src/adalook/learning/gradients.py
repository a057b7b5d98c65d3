"""From slopes of the loss to gradients of the weights.

PyTorch's autograd can do it for any trunk. On the CPU batches of the Nature network go in two halves, whose gradients
are added up: two cores share the work if there is a helper, and the result is the same, to the bit, if there is none.
MinAtar's network is so small that recording and replaying its operations takes longer than the operations do, so on the
CPU its gradients are written out by hand:

    x = relu(conv(s))    f = relu(W x + b)    q = V f + c            δ_q given
    ∇V = δ_qᵀ f          δ_f = (δ_q V)·[f > 0]        ∇W = δ_fᵀ x        δ_x = δ_f W, from which the convolution's
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from adalook.learning.network import MinAtarTrunk, NatureTrunk, QNetwork
from adalook.learning.optimiser import Gradients

Heads = tuple[str, ...]
Part = TypeVar("Part")
Result = TypeVar("Result")


class Slopes(Protocol):
    """A network whose weights can follow the slopes of a loss."""

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """What these heads say: (n, *shape) -> (n, heads, A) float32. Remembered until `gradients`."""

    def gradients(self, slopes: np.ndarray[Any, Any]) -> Gradients:
        """By name, from the loss's derivative by the values (n, heads, A). Heads that took no part have None.

        They are good until the next call.
        """


class Autograd:
    """Any network on any device.

    Args:
        network: on `device`.
        parts: that a batch is cut into.
        helper: works on parts at the same time; None: one after the other.
    """

    def __init__(self, network: QNetwork, device: torch.device, parts: int = 1, helper: Executor | None = None) -> None:
        self._network, self._device, self._parts = network, device, parts
        self._helper = helper if parts > 1 else None
        self._trunk: dict[str, Tensor] = {f"trunk.{name}": weight for name, weight in network.trunk.named_parameters()}
        self._heads = {head: _named(network, head) for head in network.heads}
        self._outputs: list[Tensor] = []
        self._taking_part: Heads = ()

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """See `Slopes`."""
        rows = torch.from_numpy(observations).to(self._device).chunk(self._parts)
        self._outputs = self._each(lambda part: self._network.of_heads(part, heads), rows)
        self._taking_part = heads
        return torch.cat([output.detach() for output in self._outputs]).cpu().numpy()

    def gradients(self, slopes: np.ndarray[Any, Any]) -> Gradients:
        """See `Slopes`."""
        parameters = dict(self._trunk)
        for head in self._taking_part:
            parameters.update(self._heads[head])

        def of_part(part: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
            # A sum, since handing the gradient itself to autograd imports a second's worth of symbolic algebra first.
            output, slope = part
            return torch.autograd.grad((output * slope).sum(), list(parameters.values()))

        by_value = torch.from_numpy(slopes).to(self._device).chunk(self._parts)
        first, *others = self._each(of_part, zip(self._outputs, by_value, strict=True))
        self._outputs = []
        for gradients in others:
            for total, gradient in zip(first, gradients, strict=True):
                total.add_(gradient)
        by_name = dict.fromkeys(name for head in self._heads.values() for name in head)
        return {**by_name, **dict(zip(parameters, first, strict=True))}

    def _each(self, work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
        return list((map if self._helper is None else self._helper.map)(work, parts))


class ByHand:
    """MinAtar's network on the CPU."""

    def __init__(self, network: QNetwork) -> None:
        assert isinstance(network.trunk, MinAtarTrunk)
        self._network, self._trunk = network, network.trunk
        self._heads = {head: _named(network, head) for head in network.heads}
        self._nobody = dict.fromkeys(name for head in self._heads.values() for name in head)
        self._tape: tuple[np.ndarray[Any, Any], Tensor, Tensor, Tensor, Heads] | None = None
        # The large ones keep their place from one update to the next: fresh memory costs as much as filling it.
        self._by_seen = torch.empty(0, self._trunk.dense.in_features)
        self._dense_weight = torch.empty_like(self._trunk.dense.weight, requires_grad=False)

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """See `Slopes`."""
        with torch.no_grad():
            seen = self._trunk.convolved(observations)
            features = self._trunk.dense_features(seen)
            weight, bias = self._network.stacked(heads)
            values = torch.nn.functional.linear(features, weight, bias)
        self._tape = observations, seen, features, weight, heads
        return values.numpy().reshape(len(observations), len(heads), -1)

    def gradients(self, slopes: np.ndarray[Any, Any]) -> Gradients:
        """See `Slopes`."""
        assert self._tape is not None
        observations, seen, features, weight, heads = self._tape
        self._tape = None
        with torch.no_grad():
            by_value = torch.from_numpy(slopes.reshape(len(slopes), -1))
            by_feature = torch.mm(by_value, weight).mul_(features > 0)
            by_seen = torch.mm(by_feature, self._trunk.dense.weight, out=self._by_seen.resize_(seen.shape))
            conv_weight, conv_bias = torch.empty_like(self._trunk.conv.weight), torch.empty_like(self._trunk.conv.bias)
            self._trunk.convolution_gradients(observations, seen, by_seen, conv_weight, conv_bias)
            gradients: Gradients = {
                "trunk.conv.weight": conv_weight,
                "trunk.conv.bias": conv_bias,
                "trunk.dense.weight": torch.mm(by_feature.t(), seen, out=self._dense_weight),
                "trunk.dense.bias": by_feature.sum(0),
                **self._nobody,
            }
            head_weights = torch.mm(by_value.t(), features).chunk(len(heads))
            head_biases = by_value.sum(0).chunk(len(heads))
        for head, head_weight, head_bias in zip(heads, head_weights, head_biases, strict=True):
            gradients[f"heads.{head}.weight"], gradients[f"heads.{head}.bias"] = head_weight, head_bias
        return gradients


def slopes_of(network: QNetwork, device: torch.device, helper: Executor | None = None) -> Slopes:
    """The fastest way for this network on this device."""
    on_cpu = device.type == "cpu"
    if isinstance(network.trunk, MinAtarTrunk) and on_cpu:
        return ByHand(network)
    return Autograd(network, device, 2 if isinstance(network.trunk, NatureTrunk) and on_cpu else 1, helper)


def _named(network: QNetwork, head: str) -> dict[str, Tensor]:
    return {f"heads.{head}.{name}": weight for name, weight in network.heads[head].named_parameters()}
