"""CPU twins: compiled code equals the plain PyTorch code that it stands in for, and goes on from the same state."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.cpu import accelerate_network, make_learner
from adalook.learning.cpu.backprop import (
    KERNELS,
    CompiledConvolution,
    MinAtarLearner,
    PictureLearner,
    compiled_pictures,
    convolution_gradients,
    convolve,
)
from adalook.learning.cpu.optimizers import CompiledRMSprop
from adalook.learning.learner import Learner
from adalook.learning.networks import CompactTrunk, MinAtarTrunk, MLPTrunk, NatureTrunk, QNetwork
from adalook.learning.presets import minatar
from adalook.learning.replay.buffer import Batch
from tests.learning.small import BREAKOUT, fingerprint, small_config

CPU = torch.device("cpu")
SHAPES = {"minatar": (4, 10, 10), "nature": (2, 44, 40), "compact": (2, 54, 77)}
TRUNKS = {"minatar": MinAtarTrunk, "nature": NatureTrunk, "compact": CompactTrunk}
TWINS = ("none", "network", "optimizer", "all")


def network(seed: int = 0, trunk: str = "minatar") -> QNetwork:
    return QNetwork(TRUNKS[trunk](SHAPES[trunk], 32), (1, 2, 3), 3, seed=seed)


def learner(accelerate: str, trunk: str = "minatar", **changes: Any) -> Learner:
    config = dataclasses.replace(minatar(), accelerate=accelerate, shared_head=False, **changes)
    nets = [accelerate_network(network(seed, trunk), config, CPU) for seed in (0, 8)]
    made = make_learner(*nets, config, CPU)
    made.target.load_weights(network(8, trunk).weights())
    return made


def batch(rng: np.random.Generator, heads: list[int], trunk: str = "minatar") -> Batch:
    n, shape = len(heads), SHAPES[trunk]
    if trunk == "minatar":
        observations, leaves = ((rng.random((n, *shape)) < 0.1).astype(np.uint8) for _ in range(2))
    else:
        observations, leaves = (rng.integers(0, 256, (n, *shape)).astype(np.uint8) for _ in range(2))
    return Batch(
        observations,
        rng.integers(0, 3, n),
        rng.normal(size=n).astype(np.float32),
        leaves,
        np.array(heads),
        np.array(heads),
        rng.random(n) < 0.2,
    )


@pytest.mark.parametrize(("shape", "lit"), [((5, 4, 10, 10), 0.1), ((3, 2, 5, 7), 1.0), ((1, 1, 3, 3), 0.5)])
def test_the_convolution_and_its_gradients_are_pytorchs(shape: tuple[int, ...], lit: float) -> None:
    rng = np.random.default_rng(0)
    n, channels, height, width = shape
    observations = (rng.random(shape) < lit).astype(np.uint8)
    weight = rng.normal(size=(KERNELS, 9 * channels)).astype(np.float32)
    bias = rng.normal(size=KERNELS).astype(np.float32)
    outputs = np.empty((n, height - 2, (width - 2) * KERNELS), np.float32)
    convolve(observations, weight, bias, outputs)

    leaves = [torch.tensor(array, requires_grad=True) for array in (weight.reshape(KERNELS, channels, 3, 3), bias)]
    expected = torch.relu(torch.nn.functional.conv2d(torch.from_numpy(observations).float(), *leaves))
    expected = expected.permute(0, 2, 3, 1)
    np.testing.assert_allclose(outputs, expected.detach().numpy().reshape(outputs.shape), atol=1e-5)

    output_gradients = rng.normal(size=outputs.shape).astype(np.float32)
    by_weight, by_bias = np.empty_like(weight), np.empty_like(bias)
    convolution_gradients(observations, outputs, output_gradients, by_weight, by_bias)
    expected.backward(torch.from_numpy(output_gradients).view(expected.shape))
    for got, leaf in zip((by_weight, by_bias), leaves, strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(got, leaf.grad.numpy().reshape(got.shape), atol=1e-4)


def test_cells_need_not_be_bits() -> None:
    rng = np.random.default_rng(1)
    trunk = MinAtarTrunk((2, 6, 5), 8)
    numbers = torch.from_numpy(rng.normal(size=(3, 2, 6, 5)).astype(np.float32))
    plain = trunk(numbers).detach()
    trunk.convolution = CompiledConvolution(trunk)
    with torch.no_grad():
        np.testing.assert_allclose(trunk(numbers).numpy(), plain.numpy(), atol=1e-5)
    assert torch.equal(trunk(numbers), plain)  # with gradients it is PyTorch's own


@pytest.mark.parametrize("shape", [(5, 4, 44, 40), (1, 2, 36, 37)])
def test_pictures_are_pytorchs_to_the_bit(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    trunk = NatureTrunk(shape[1:], 8)
    for observations in (rng.integers(0, 256, shape).astype(np.uint8), rng.normal(size=shape).astype(np.float32)):
        plain, twin = (pictures(torch.from_numpy(observations)) for pictures in (trunk.pictures, compiled_pictures))
        assert torch.equal(twin, plain)
        assert twin.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("trunk", ["minatar", "nature", "compact"])
@pytest.mark.parametrize("changes", [{}, {"head_balance": 0.7}, {"double": True, "overlap": True}])
@pytest.mark.parametrize("accelerate", ["network", "optimizer", "all"])
def test_updates_are_those_of_plain_pytorch(accelerate: str, changes: dict[str, Any], trunk: str) -> None:
    rng = np.random.default_rng(2)
    plain, twin = learner("none", trunk, **changes), learner(accelerate, trunk, **changes)
    for heads in ([2] * 32, [1, 3, 3, 1, 3, 1, 1], [1, 2, 3] * 8):  # whatever room is kept fits the batch
        data = batch(rng, heads, trunk)
        (expected,), (got,) = plain.update([data]), twin.update([data])
        assert got.loss == pytest.approx(expected.loss, rel=1e-4)
        assert got.mean_value == pytest.approx(expected.mean_value, rel=1e-3, abs=1e-6)
        for (name, weight), other in zip(plain.network.named_parameters(), twin.network.parameters(), strict=True):
            torch.testing.assert_close(other, weight, atol=2e-5, rtol=1e-3, msg=name)
            if weight.grad is None:
                assert other.grad is None, name
            else:
                torch.testing.assert_close(other.grad, weight.grad, atol=1e-5, rtol=1e-3, msg=name)
    twin.close()


@pytest.mark.parametrize("trunk", ["minatar", "nature", "compact"])
def test_twins_begin_anew_as_plain_pytorch_does(trunk: str) -> None:
    rng = np.random.default_rng(2)
    plain, twin = learner("none", trunk), learner("all", trunk)
    for step in range(3):
        data = batch(rng, [1, 2, 3] * 8, trunk)
        (expected,), (got,) = plain.update([data]), twin.update([data])
        assert got.loss == pytest.approx(expected.loss, rel=1e-4)
        for each in (plain, twin):
            each.reset(seed=4, step=step)
    for (name, weight), other in zip(plain.network.named_parameters(), twin.network.parameters(), strict=True):
        torch.testing.assert_close(other, weight, atol=2e-5, rtol=1e-3, msg=name)


def test_rmsprop_is_pytorchs_and_leaves_weights_without_gradient_alone() -> None:
    nets = [network(), network()]
    settings = {"lr": 0.01, "alpha": 0.95, "eps": 0.01, "centered": True}
    optimizers = [
        kind(net.parameters(), **settings)
        for kind, net in zip((CompiledRMSprop, torch.optim.RMSprop), nets, strict=True)
    ]
    before = nets[0].weights()
    rng = np.random.default_rng(0)
    for _ in range(5):
        for name, weight in before.items():
            gradient = torch.from_numpy(rng.normal(size=weight.shape).astype(np.float32))
            for net in nets:
                net.get_parameter(name).grad = None if "heads.3" in name else gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    ours, theirs = nets[0].weights(), nets[1].weights()
    for name in before:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-6)
        assert np.array_equal(ours[name], before[name]) == name.startswith("heads.3")


@pytest.mark.parametrize("trunk", ["minatar", "nature", "compact"])
@pytest.mark.parametrize("kind", ["rmsprop", "adam"])
@pytest.mark.parametrize(("first", "second"), [("none", "all"), ("all", "none"), ("all", "all")])
def test_a_run_may_move_between_a_twin_and_plain_pytorch(first: str, second: str, kind: str, trunk: str) -> None:
    rng = np.random.default_rng(3)
    here, there = (learner(accelerate, trunk, optimizer=kind) for accelerate in (first, second))
    here.update([batch(rng, [1, 2, 1, 2], trunk) for _ in range(3)])
    there.load_state(here.state())
    data = batch(rng, [1, 2, 3, 3], trunk)
    (expected,), (got,) = here.update([data]), there.update([data])
    assert got.loss == pytest.approx(expected.loss, rel=1e-5)
    for name, weight in here.network.weights().items():
        if first == second:
            assert np.array_equal(there.network.weights()[name], weight), name
        np.testing.assert_allclose(there.network.weights()[name], weight, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("accelerate", "kind", "optimizer"),
    [
        ("none", Learner, torch.optim.RMSprop),
        ("network", MinAtarLearner, torch.optim.RMSprop),
        ("optimizer", Learner, CompiledRMSprop),
        ("all", MinAtarLearner, CompiledRMSprop),
    ],
)
def test_the_config_chooses_the_twins(accelerate: str, kind: type, optimizer: type) -> None:
    made = learner(accelerate)
    assert type(made) is kind
    assert type(made.optimizer) is optimizer
    compiled = isinstance(made.network.trunk.convolution, CompiledConvolution)  # type: ignore[union-attr]
    assert compiled == (kind is MinAtarLearner)


@pytest.mark.parametrize(("accelerate", "kind"), [("none", Learner), ("optimizer", Learner), ("all", PictureLearner)])
@pytest.mark.parametrize("trunk", ["nature", "compact"])
def test_the_networks_of_atari_have_a_twin_of_the_learner(accelerate: str, kind: type, trunk: str) -> None:
    made = learner(accelerate, trunk)
    assert type(made) is kind
    assert (made.network.trunk.pictures is compiled_pictures) == (kind is PictureLearner)


@pytest.mark.parametrize("trunk", ["nature", "compact"])
@pytest.mark.parametrize(("optimizer", "double"), [("rmsprop", False), ("adam", False), ("adam", True)])
def test_the_networks_of_atari_learn_the_same_in_one_thread_or_two(trunk: str, optimizer: str, double: bool) -> None:
    rng = np.random.default_rng(4)
    one, two = (learner("all", trunk, optimizer=optimizer, double=double, overlap=both) for both in (False, True))
    data = [batch(rng, [1, 2, 3, 3] * 4, trunk) for _ in range(5)]
    assert one.update(data) == two.update(data)
    for name, weight in one.network.weights().items():
        assert np.array_equal(two.network.weights()[name], weight), name
    two.close()


def test_other_networks_take_plain_pytorch() -> None:
    nets = [QNetwork(MLPTrunk((4,), 8), (0,), 2, seed=0) for _ in range(2)]
    assert type(make_learner(*nets, minatar(), CPU)) is Learner


@pytest.mark.parametrize("accelerate", TWINS)
@pytest.mark.parametrize(("kind", "double"), [(DQN, False), (DQN, True), (QLDQN, False)])
def test_runs_repeat_and_resume_to_the_bit_whatever_is_accelerated(
    kind: Any, double: bool, accelerate: str, tmp_path: Any
) -> None:
    config = small_config(accelerate=accelerate, double=double)
    whole, parts = (kind(BREAKOUT, config, seed=3) for _ in range(2))
    whole.learn(steps=240)
    parts.learn(steps=160).save(tmp_path / "run")
    again = kind.load(tmp_path / "run")
    assert fingerprint(again.learn(steps=80)) == fingerprint(parts.learn(steps=80)) == fingerprint(whole)


def test_values_in_a_scale_of_their_own_are_learnt_by_the_plain_code() -> None:
    config = small_config(value_scale=20.0)
    agent = QLDQN(BREAKOUT, config, seed=0)
    assert type(agent.trainer.learner) is Learner
    agent.learn(steps=140, progress=False)
    observation = agent.sim.reset(seed=1)[None]
    outputs = agent.network.heads["1"](agent.network.trunk(torch.from_numpy(observation)))
    np.testing.assert_allclose(
        agent.q_function.action_values(observation, 1), 20.0 * outputs.detach().numpy(), rtol=1e-5
    )
