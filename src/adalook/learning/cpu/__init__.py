"""Accelerated CPU twins of plain PyTorch code, and the one place where they are chosen.

    Config.accelerate   twin                                            equals
    network             backprop.CompiledConvolution, MinAtarLearner    networks.MinAtarTrunk, learner.Learner
                        backprop.compiled_pictures, PictureLearner      networks.PictureTrunk, learner.Learner
    optimizer           optimizers.CompiledRMSprop                      torch.optim.RMSprop

A twin equals its plain code up to rounding, which tests check, and stays only while it gains a fifth of the training
speed, which `python -m benchmarks.throughput ablation` measures (results/ablation-twins.md).
"""

from __future__ import annotations

import torch

from adalook.learning.config import Config
from adalook.learning.cpu.backprop import CompiledConvolution, MinAtarLearner, PictureLearner, compiled_pictures
from adalook.learning.cpu.optimizers import CompiledRMSprop
from adalook.learning.learner import Learner
from adalook.learning.networks import CompactTrunk, MinAtarTrunk, NatureTrunk, PictureTrunk, QNetwork

LEARNERS: dict[type[torch.nn.Module], type[Learner]] = {
    MinAtarTrunk: MinAtarLearner,
    NatureTrunk: PictureLearner,
    CompactTrunk: PictureLearner,
}
"""The learner that is the twin of `Learner` for each trunk."""


def accelerate_network(network: QNetwork, config: Config, device: torch.device) -> QNetwork:
    """Return a network whose trunk is compiled where there is a twin for it and the config asks for it."""
    if _enabled("network", config, device):
        if isinstance(network.trunk, MinAtarTrunk):
            network.trunk.convolution = CompiledConvolution(network.trunk)
        if isinstance(network.trunk, PictureTrunk):
            network.trunk.pictures = compiled_pictures
    return network


def make_learner(network: QNetwork, target: QNetwork, config: Config, device: torch.device) -> Learner:
    """Return a learner: plain PyTorch, or a twin of it where there is one and the config asks for it."""
    has_twin = _enabled("network", config, device) and config.value_scale == 1.0
    kind = LEARNERS.get(type(network.trunk), Learner) if has_twin else Learner
    optimizers: dict[str, type[torch.optim.Optimizer]] = {}
    if _enabled("optimizer", config, device):
        optimizers["rmsprop"] = CompiledRMSprop
    return kind(network, target, config, device, optimizers)


def _enabled(twin: str, config: Config, device: torch.device) -> bool:
    return device.type == "cpu" and config.accelerate in (twin, "all")
