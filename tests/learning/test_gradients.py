"""Gradients by hand are autograd's, and the compiled convolution is PyTorch's."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from adalook.learning.gradients import Autograd, ByHand, slopes_of
from adalook.learning.minatar_kernels import KERNELS, convolution_gradients, convolve
from adalook.learning.network import MinAtarTrunk, MLPTrunk, NatureTrunk, QNetwork

CPU = torch.device("cpu")


def pictures(rng: np.random.Generator, shape: tuple[int, ...], lit: float) -> np.ndarray:
    return (rng.random(shape) < lit).astype(np.uint8)


@pytest.mark.parametrize(("shape", "lit"), [((5, 4, 10, 10), 0.1), ((3, 2, 5, 7), 1.0), ((1, 1, 3, 3), 0.5)])
def test_the_convolution_is_pytorchs(shape: tuple[int, ...], lit: float) -> None:
    rng = np.random.default_rng(0)
    n, channels, height, width = shape
    seen = pictures(rng, shape, lit)
    weight = rng.normal(size=(KERNELS, 9 * channels)).astype(np.float32)
    bias = rng.normal(size=KERNELS).astype(np.float32)
    outputs = np.empty((n, height - 2, (width - 2) * KERNELS), np.float32)
    convolve(seen, weight, bias, outputs)

    leaves = [torch.tensor(array, requires_grad=True) for array in (weight.reshape(KERNELS, channels, 3, 3), bias)]
    expected = torch.relu(torch.nn.functional.conv2d(torch.from_numpy(seen).float(), *leaves)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(outputs, expected.detach().numpy().reshape(outputs.shape), atol=1e-5)

    slopes = rng.normal(size=outputs.shape).astype(np.float32)
    by_weight, by_bias = np.empty_like(weight), np.empty_like(bias)
    convolution_gradients(seen, outputs, slopes, by_weight, by_bias)
    expected.backward(torch.from_numpy(slopes).view(expected.shape))
    for got, leaf in zip((by_weight, by_bias), leaves, strict=True):
        assert leaf.grad is not None
        np.testing.assert_allclose(got, leaf.grad.numpy().reshape(got.shape), atol=1e-4)


def test_cells_need_not_be_bits() -> None:
    rng = np.random.default_rng(1)
    trunk = MinAtarTrunk((2, 6, 5), 8)
    numbers = torch.from_numpy(rng.normal(size=(3, 2, 6, 5)).astype(np.float32))
    with torch.no_grad():
        compiled = trunk(numbers)
    np.testing.assert_allclose(compiled.numpy(), trunk(numbers).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("heads", [("2",), ("1", "3")])
def test_by_hand_as_by_autograd(heads: tuple[str, ...]) -> None:
    rng = np.random.default_rng(2)
    network = QNetwork(MinAtarTrunk((4, 10, 10), 32), (1, 2, 3), 3, seed=0)
    by_hand, autograd = ByHand(network), Autograd(network, CPU)
    for rows in (32, 7):  # the room that is kept fits the batch, whatever came before
        seen = pictures(rng, (rows, 4, 10, 10), 0.1)
        slopes = rng.normal(size=(rows, len(heads), 3)).astype(np.float32)
        np.testing.assert_allclose(by_hand.values(seen, heads), autograd.values(seen, heads), atol=1e-5)
        got, expected = by_hand.gradients(slopes), autograd.gradients(slopes)
        assert got.keys() == expected.keys() == dict(network.named_parameters()).keys()
        for name, gradient in expected.items():
            mine = got[name]
            if gradient is None:
                assert mine is None
            else:
                assert mine is not None
                torch.testing.assert_close(mine, gradient, atol=1e-4, rtol=1e-4)


def test_other_networks_take_autograd() -> None:
    assert isinstance(slopes_of(QNetwork(MinAtarTrunk((4, 10, 10), 8), (0,), 2, seed=0), CPU), ByHand)
    assert isinstance(slopes_of(QNetwork(MLPTrunk((4,), 8), (0,), 2, seed=0), CPU), Autograd)


def test_halves_of_a_batch_are_the_same_whoever_computes_them() -> None:
    network = QNetwork(NatureTrunk((4, 84, 84), 16), (1, 2), 4, seed=0)
    rng = np.random.default_rng(1)
    observations = rng.integers(0, 255, (7, 4, 84, 84), dtype=np.uint8)
    slopes = rng.normal(size=(7, 1, 4)).astype(np.float32)

    def computed(parts: int, helper: Executor | None) -> tuple[Any, Any]:
        way = Autograd(network, CPU, parts, helper)
        return way.values(observations, ("2",)), way.gradients(slopes)

    with ThreadPoolExecutor(2) as helper:
        (whole, at_once), (halves, alone), (again, helped) = computed(1, None), computed(2, None), computed(2, helper)
    np.testing.assert_allclose(halves, whole, rtol=1e-5, atol=1e-6)
    assert np.array_equal(halves, again)
    assert alone["heads.1.weight"] is None
    for name, gradient in alone.items():
        if gradient is not None:
            assert torch.equal(gradient, helped[name]), name
            torch.testing.assert_close(gradient, at_once[name], rtol=1e-4, atol=1e-6)
