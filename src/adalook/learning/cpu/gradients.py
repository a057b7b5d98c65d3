"""From slopes of the loss to gradients of the weights.

PyTorch's autograd can do it for any trunk on any device. For the networks of the presets there is a faster way on the
CPU, see `by_hand`.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, Protocol

import numpy as np
import torch

from adalook.learning.cpu.backprop import Heads, MinAtarByHand, NatureByHand, Step
from adalook.learning.networks import MinAtarTrunk, NatureTrunk, QNetwork


class Slopes(Protocol):
    """A network whose weights can follow the slopes of a loss."""

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """What these heads say: (n, *shape) -> (n, heads, A) float32. Remembered until `descend`."""

    def descend(self, slopes: np.ndarray[Any, Any], step: Step) -> None:
        """Hand every weight's gradient to `step`, by name, in one piece or several, from any thread, one at a time.

        They are good until the next call. Heads that took no part have None.

        Args:
            slopes: the loss's derivative by the values (n, heads, A).
        """


class Autograd:
    """Any network on any device.

    Args:
        network: on `device`.
    """

    def __init__(self, network: QNetwork, device: torch.device) -> None:
        self._network, self._device = network, device
        self._parameters = dict(network.named_parameters())
        self._taking_part: list[str] = []
        self._values = torch.empty(0)

    def values(self, observations: np.ndarray[Any, Any], heads: Heads) -> np.ndarray[Any, Any]:
        """See `Slopes`."""
        self._values = self._network.of_heads(torch.from_numpy(observations).to(self._device), heads)
        prefixes = ("trunk.", *(f"heads.{head}." for head in heads))
        self._taking_part = [name for name in self._parameters if name.startswith(prefixes)]
        return self._values.detach().cpu().numpy()

    def descend(self, slopes: np.ndarray[Any, Any], step: Step) -> None:
        """See `Slopes`."""
        # A sum, since handing the gradient itself to autograd imports a second's worth of symbolic algebra first.
        loss = (self._values * torch.from_numpy(slopes).to(self._device)).sum()
        gradients = torch.autograd.grad(loss, [self._parameters[name] for name in self._taking_part])
        self._values = torch.empty(0)
        step(dict.fromkeys(self._parameters) | dict(zip(self._taking_part, gradients, strict=True)))


def slopes_of(network: QNetwork, device: torch.device, helper: Executor) -> Slopes:
    """The fastest way for this network on this device; what can be done meanwhile is the helper's."""
    if device.type == "cpu" and isinstance(network.trunk, MinAtarTrunk):
        return MinAtarByHand(network)
    if device.type == "cpu" and isinstance(network.trunk, NatureTrunk):
        return NatureByHand(network, helper)
    return Autograd(network, device)
