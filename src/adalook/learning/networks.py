"""The Q-function: a trunk that all depths share and one head per depth (QL-DQN step 1).

    Q_h(s, a) = head_h(trunk(s))_a                      h = 0 is plain DQN; a fixed-depth agent has one head only

The trunk and every head draw their first weights from a stream of their own, (seed, name): head 2 begins the same
whether or not there are heads 1 and 3, so that QL-DQN with all weight on one depth *is* the fixed-depth agent.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adalook._arrays import FloatArray, IntArray
from adalook.errors import ArgumentError
from adalook.learning.config import Config
from adalook.learning.presets import num_discrete_states
from adalook.simulators.base import Simulator

ANY_DEPTH = "any"
"""The name of the one head that serves all depths."""

ROWS_PER_PASS = 32
"""Of the Nature network on the CPU. Leaves come in batches of any size, and the convolutions keep code and memory for
every size that they have met: passes of bounded size bound that, and what they work on stays in the cache."""


class PictureTrunk(nn.Module):
    """Convolutions over stacked frames (n, frames, height, width), bytes, and a dense layer."""

    NAME: str
    CONVOLUTIONS: tuple[tuple[int, int, int], ...]
    """(channels, side of the window, stride) of each."""

    def __init__(self, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        if len(observation_shape) != 3 or min(observation_shape[1:]) < self._least_side():
            raise ArgumentError(
                f"these observations do not fit the {self.NAME} network",
                expected=f"observations (frames, height, width) of at least {self._least_side()}×{self._least_side()}",
                got=observation_shape,
                remedy="choose another network in the config",
            )
        channels, height, width = observation_shape
        for number, (kernels, window, stride) in enumerate(self.CONVOLUTIONS, start=1):
            self.add_module(f"conv{number}", nn.Conv2d(channels, kernels, window, stride=stride))
            channels, height, width = kernels, (height - window) // stride + 1, (width - window) // stride + 1
        self.dense = nn.Linear(channels * height * width, hidden_units)
        self.features = hidden_units
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.pictures: Callable[[Tensor], Tensor] = _channels_last
        """Bytes -> floats in [0, 1], channels last; `adalook.learning.cpu` may put a twin here."""

    @classmethod
    def _least_side(cls) -> int:
        """Return the least side of a picture of which the last convolution makes one cell."""
        side = 1
        for _, window, stride in reversed(cls.CONVOLUTIONS):
            side = (side - 1) * stride + window
        return side

    @property
    def convolutions(self) -> list[nn.Conv2d]:
        """The convolutions, the first one first."""
        return [layer for layer in self.children() if isinstance(layer, nn.Conv2d)]

    def forward(self, observations: Tensor) -> Tensor:
        """Return features: (n, frames, height, width) bytes -> (n, features)."""
        if observations.device.type != "cpu" or len(observations) <= ROWS_PER_PASS:
            return self._features(observations)
        return torch.cat([self._features(rows) for rows in torch.split(observations, ROWS_PER_PASS)])

    def _features(self, observations: Tensor) -> Tensor:
        return self.dense_features(self.convolved(observations)[-1].flatten(1))

    def convolved(self, observations: Tensor) -> list[Tensor]:
        """Return the pictures in [0, 1], and what each convolution makes of what comes before it, after its ReLU."""
        layers = [self.pictures(observations)]
        for convolution in self.convolutions:
            layers.append(torch.relu_(convolution(layers[-1])))
        return layers

    def dense_features(self, convolved: Tensor) -> Tensor:
        """Return features from what the convolutions made: (n, cells) -> (n, features)."""
        return torch.relu_(self.dense(convolved))


def _channels_last(observations: Tensor) -> Tensor:
    return observations.contiguous(memory_format=torch.channels_last).float().mul(1.0 / 255.0)


class NatureTrunk(PictureTrunk):
    """Three convolutions over stacked frames (n, frames, 84, 84), bytes (Mnih et al. 2015)."""

    NAME = "Nature"
    CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


class CompactTrunk(PictureTrunk):
    """Two convolutions of 5×5 in strides of 5 over stacked frames (n, frames, 84, 84), bytes (van Hasselt et al. 2019).

    It needs a seventh of the Nature network's multiplications.
    """

    NAME = "compact"
    CONVOLUTIONS = ((32, 5, 5), (64, 5, 5))


class MinAtarTrunk(nn.Module):
    """One 3×3 convolution of 16 channels over (n, channels, 10, 10) bits (Young & Tian 2019).

    On so small a picture it is faster to gather the patches and multiply once than to call a convolution.
    """

    KERNELS = 16

    def __init__(self, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        if len(observation_shape) != 3 or min(observation_shape[1:]) < 3:
            raise ArgumentError(
                "these observations do not fit MinAtar's network",
                expected="observations (channels, height, width)",
                got=observation_shape,
                remedy="choose another network in the config",
            )
        channels, height, width = observation_shape
        cells = np.arange(channels * height * width).reshape(channels, height, width)
        windows = np.lib.stride_tricks.sliding_window_view(cells, (3, 3), axis=(1, 2))  # (C, rows, columns, 3, 3)
        patches = windows.transpose(1, 2, 0, 3, 4).reshape(-1)
        self.register_buffer("patches", torch.from_numpy(patches.copy()), persistent=False)
        self.conv = nn.Linear(9 * channels, self.KERNELS)
        self.dense = nn.Linear(self.KERNELS * (height - 2) * (width - 2), hidden_units)
        self.features = hidden_units
        self.batches_per_pass = 8
        self.convolved_shape = (height - 2, self.KERNELS * (width - 2))
        self.convolution: Callable[[Tensor], Tensor] = self._gather_and_multiply
        """(n, channels, height, width) -> (n, cells), after the ReLU; `adalook.learning.cpu` may put a twin here."""

    def forward(self, observations: Tensor) -> Tensor:
        """Return features: (n, channels, height, width) bits -> (n, features)."""
        return self.dense_features(self.convolution(observations))

    def _gather_and_multiply(self, observations: Tensor) -> Tensor:
        n = len(observations)
        patches = observations.reshape(n, -1).float().index_select(1, self.patches)  # type: ignore[arg-type]
        return torch.relu_(self.conv(patches.view(-1, self.conv.in_features))).view(n, -1)

    def dense_features(self, convolved: Tensor) -> Tensor:
        """Return features from what the convolution made: (n, cells) -> (n, features)."""
        return torch.relu_(self.dense(convolved))


class MLPTrunk(nn.Module):
    """Two dense layers over a vector of numbers."""

    def __init__(self, observation_shape: tuple[int, ...], hidden_units: int) -> None:
        super().__init__()
        self.first = nn.Linear(math.prod(observation_shape), hidden_units)
        self.second = nn.Linear(hidden_units, hidden_units)
        self.features = hidden_units

    def forward(self, observations: Tensor) -> Tensor:
        """Return features: (n, *shape) -> (n, features)."""
        return torch.relu_(self.second(torch.relu_(self.first(observations.flatten(1).float()))))


class TableTrunk(nn.Module):
    """One-hot states, so that a head is a table: exact, to check agents against `al.solve`."""

    def __init__(self, num_states: int | None) -> None:
        super().__init__()
        if num_states is None:
            raise ArgumentError(
                "a table needs discrete observations",
                expected="an al.MDP, or a Gymnasium environment with Discrete observations (start >= 0)",
                got="an environment with other observations",
                remedy="choose another network in the config",
            )
        self.features = num_states

    def forward(self, observations: Tensor) -> Tensor:
        """Return features: (n,) or (n, 1) state numbers -> (n, num_states)."""
        return nn.functional.one_hot(observations.reshape(-1).long(), self.features).float()


NETWORKS: dict[str, Callable[[Simulator, Config], nn.Module]] = {
    "nature": lambda sim, config: NatureTrunk(sim.observation_shape, config.hidden_units),
    "compact": lambda sim, config: CompactTrunk(sim.observation_shape, config.hidden_units),
    "minatar": lambda sim, config: MinAtarTrunk(sim.observation_shape, config.hidden_units),
    "mlp": lambda sim, config: MLPTrunk(sim.observation_shape, config.hidden_units),
    "table": lambda sim, config: TableTrunk(num_discrete_states(sim)),
}
"""The trunk that each `Config.network` names: a module from observations to (n, trunk.features)."""


def build_network(sim: Simulator, config: Config, heads: Iterable[int], *, seed: int, device: torch.device) -> QNetwork:
    """Return a new network for a simulator: the trunk that the config names, and a head for each depth in `heads`."""
    trunk = NETWORKS[config.network](sim, config)
    network = QNetwork(
        trunk, heads, sim.num_actions, seed=seed, shared_head=config.shared_head, value_scale=config.value_scale
    )
    network.to(device, torch.float32)  # whatever default PyTorch was told
    if config.initial_value and isinstance(trunk, TableTrunk):
        with torch.no_grad():
            for weights in network.heads.parameters():
                weights.add_(config.initial_value)
    return network


def find_device(name: str) -> torch.device:
    """Return the device that `Config.device` names, or raise if it cannot be used."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            "config: this device cannot be used", expected="auto, cpu or cuda", got=f"{name!r} ({reason})"
        ) from None
    return device


class QNetwork(nn.Module):
    """A Q-network: a trunk with a head for each depth, or one head for all.

    Args:
        trunk: module from observations to (n, trunk.features), with weights of any kind: they are drawn anew here.
        depths: the depths that have a head of their own; with `shared_head` they all have the same.
        num_actions: A.
        seed: of the first weights.
        value_scale: what a head's outputs are multiplied by.
    """

    def __init__(
        self,
        trunk: nn.Module,
        depths: Iterable[int],
        num_actions: int,
        *,
        seed: int,
        shared_head: bool = False,
        value_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.value_scale = value_scale
        self.trunk = trunk
        self.batches_per_pass: int = getattr(trunk, "batches_per_pass", 1)
        """Batches that are evaluated together, where they can be: small networks take long to start."""
        self.names = {depth: ANY_DEPTH if shared_head else str(depth) for depth in depths}
        features: Any = trunk.features
        table = isinstance(trunk, TableTrunk)  # whose entries share nothing, not even a bias
        self.heads = nn.ModuleDict(
            {name: nn.Linear(features, num_actions, bias=not table) for name in self.names.values()}
        )
        draw_weights(trunk, seed, "trunk")
        for name, head in self.heads.items():
            draw_weights(head, seed, f"head {name}")

    def reset(self, seed: int, step: int, keep: float) -> None:
        """Draw the heads anew, and move the trunk's weights w to keep·w + (1 − keep)·fresh ones.

        Args:
            seed: of the weights.
            step: the agent step at which this happens, so that no two resets draw the same.
            keep: what is kept of the trunk; 1: all of it.
        """
        before = [parameter.detach().clone() for parameter in self.trunk.parameters()]
        draw_weights(self.trunk, seed, f"trunk, reset at {step}")
        with torch.no_grad():
            for parameter, kept in zip(self.trunk.parameters(), before, strict=True):
                parameter.lerp_(kept, keep)
        for name, head in self.heads.items():
            draw_weights(head, seed, f"head {name}, reset at {step}")

    def forward(self, observations: Tensor, depth: int) -> Tensor:
        """Return Q_depth of every row: (n, *shape) -> (n, A)."""
        return self._scaled(self.heads[self.names[depth]](self.trunk(observations)))

    def head_index(self, heads: IntArray) -> tuple[tuple[str, ...], IntArray]:
        """Return the names of the heads that rows (n,) need, and the index of each row's head among them, (n,)."""
        present = [head for head, count in enumerate(np.bincount(heads).tolist()) if count]
        names = tuple(dict.fromkeys(self.names[head] for head in present))
        index = np.zeros(present[-1] + 1, np.intp)
        index[present] = [names.index(self.names[head]) for head in present]
        return names, index[heads]

    def head_values(self, observations: Tensor, heads: IntArray) -> Tensor:
        """Return the values of every row by the head that it names: (n, *shape), (n,) -> (n, A).

        One head alone takes the same arithmetic as in an agent that has no other, to the bit.
        """
        names, index = self.head_index(heads)
        features = self.trunk(observations)
        values = self._scaled(nn.functional.linear(features, *self.stacked(names)))
        if len(names) == 1:
            return values
        rows = torch.arange(len(features), device=values.device)
        return values.view(len(features), len(names), -1)[rows, torch.from_numpy(index).to(values.device)]

    def _scaled(self, outputs: Tensor) -> Tensor:
        """Return the values that outputs of heads stand for."""
        return outputs if self.value_scale == 1.0 else outputs * self.value_scale

    def stacked(self, names: tuple[str, ...]) -> tuple[Tensor, Tensor | None]:
        """Return weights (heads·A, features) and biases (heads·A,) of several heads, one after the other."""
        if len(names) == 1:
            head: Any = self.heads[names[0]]
            return head.weight, head.bias
        biases = [self.heads[name].bias for name in names]
        bias = None if biases[0] is None else torch.cat(biases)  # type: ignore[arg-type]
        return torch.cat([self.heads[name].weight for name in names]), bias  # type: ignore[misc]

    def weights(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of all weights, by name."""
        return {name: weight.detach().cpu().numpy().copy() for name, weight in self.named_parameters()}

    def load_weights(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Copy weights as `weights` gives them; names and shapes must be the same."""
        mine = dict(self.named_parameters())
        for name in mine.keys() | weights.keys():
            shape = tuple(mine[name].shape) if name in mine else None
            got = weights[name].shape if name in weights else None
            if shape != got:
                raise ArgumentError(f"weights '{name}' do not fit this network", expected=shape, got=got)
        with torch.no_grad():
            for name, weight in mine.items():
                weight.copy_(torch.from_numpy(np.asarray(weights[name])))


def draw_weights(module: nn.Module, seed: int, stream: str) -> None:
    """Draw PyTorch's usual first weights, U(−1/√inputs, 1/√inputs), from the stream (seed, name) alone."""
    rng = np.random.default_rng([seed, zlib.crc32(stream.encode())])
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                bound = 1.0 / math.sqrt(layer.weight[0].numel())
                for parameter in layer.parameters():
                    parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(parameter.shape))))


MIN_ROWS = 16
"""Of a pass in which actors value leaves. Matrix products of few rows are computed in another order, and round
otherwise; from 4 rows on with AVX2 (MKL and oneDNN), from 16 on with AVX-512, a row's values no longer depend on how
many others there are, nor on which: then results do not depend on how environments are split over actors.
`rounding_digest` tells."""


class QFunction:
    """A Q-network that takes and returns NumPy arrays, without gradients.

    Args:
        network: on `device`.
        device: where its weights are.
        min_rows: no pass has fewer; what is missing is filled up with zeros.
    """

    def __init__(self, network: QNetwork, device: torch.device, min_rows: int = 1) -> None:
        self.network = network
        self.device = device
        self._min_rows = min_rows

    def action_values(self, observations: np.ndarray[Any, Any], depth: int) -> FloatArray:
        """Return Q_depth: (n, *shape) -> (n, A)."""
        count = len(observations)
        if 0 < (last := count % ROWS_PER_PASS) < self._min_rows:
            filler = np.zeros((self._min_rows - last, *observations.shape[1:]), observations.dtype)
            observations = np.concatenate([observations, filler])
        with torch.inference_mode():
            values = self.network(torch.from_numpy(observations).to(self.device), depth)
            return values.cpu().numpy()[:count]  # type: ignore[no-any-return]

    def values(self, observations: np.ndarray[Any, Any], depth: int) -> FloatArray:
        """Return max_a Q_depth: (n, *shape) -> (n,)."""
        return self.action_values(observations, depth).max(axis=1)  # type: ignore[no-any-return]


def rounding_digest(q_function: QFunction, observation: np.ndarray[Any, Any], depth: int) -> str:
    """Return a digest of the values of an observation in passes of one row and of many, as they are rounded here.

    Machines that agree in it compute the same bits. It has one line if the number of rows makes no difference, which
    is what results that do not depend on the number of actors need.
    """
    rows = [1, *range(MIN_ROWS, ROWS_PER_PASS + 1), ROWS_PER_PASS + 1, 8 * ROWS_PER_PASS + 3]
    passes = (q_function.action_values(np.repeat(observation[None], count, axis=0), depth) for count in rows)
    return "\n".join(sorted({sha256(row.tobytes()).hexdigest()[:16] for values in passes for row in values}))
