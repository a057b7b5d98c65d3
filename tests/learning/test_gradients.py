"""Gradients by hand are autograd's, and the compiled convolution is PyTorch's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from adalook.learning.cpu.backprop import MinAtarByHand, NatureByHand
from adalook.learning.cpu.executors import InlineExecutor
from adalook.learning.cpu.gradients import Autograd, Slopes, slopes_of
from adalook.learning.cpu.minatar import KERNELS, convolution_gradients, convolve
from adalook.learning.cpu.optimizers import Gradients
from adalook.learning.networks import MinAtarTrunk, MLPTrunk, NatureTrunk, QNetwork, pictures

CPU = torch.device("cpu")


def lit_cells(rng: np.random.Generator, shape: tuple[int, ...], lit: float) -> np.ndarray:
    return (rng.random(shape) < lit).astype(np.uint8)


@pytest.mark.parametrize(("shape", "lit"), [((5, 4, 10, 10), 0.1), ((3, 2, 5, 7), 1.0), ((1, 1, 3, 3), 0.5)])
def test_the_convolution_is_pytorchs(shape: tuple[int, ...], lit: float) -> None:
    rng = np.random.default_rng(0)
    n, channels, height, width = shape
    seen = lit_cells(rng, shape, lit)
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


def gradients(way: Slopes, slopes: np.ndarray) -> dict[str, Any]:
    """All of them; each is handed over once."""
    pieces: list[Gradients] = []
    way.descend(slopes, lambda piece: pieces.append({name: g if g is None else g.clone() for name, g in piece.items()}))
    assert len({name for piece in pieces for name in piece}) == sum(map(len, pieces))
    return {name: gradient for piece in pieces for name, gradient in piece.items()}


def assert_same(got: dict[str, Any], expected: dict[str, Any], network: QNetwork, tolerance: float) -> None:
    assert got.keys() == expected.keys() == dict(network.named_parameters()).keys()
    for name, gradient in expected.items():
        if gradient is None:
            assert got[name] is None
        else:
            torch.testing.assert_close(got[name], gradient, atol=tolerance, rtol=1e-4)


@pytest.mark.parametrize("heads", [("2",), ("1", "3")])
def test_minatars_network_as_by_autograd(heads: tuple[str, ...]) -> None:
    rng = np.random.default_rng(2)
    network = QNetwork(MinAtarTrunk((4, 10, 10), 32), (1, 2, 3), 3, seed=0)
    by_hand, autograd = MinAtarByHand(network), Autograd(network, CPU)
    for rows in (32, 7):  # the room that is kept fits the batch, whatever came before
        seen = lit_cells(rng, (rows, 4, 10, 10), 0.1)
        slopes = rng.normal(size=(rows, len(heads), 3)).astype(np.float32)
        np.testing.assert_allclose(by_hand.values(seen, heads), autograd.values(seen, heads), atol=1e-5)
        assert_same(gradients(by_hand, slopes), gradients(autograd, slopes), network, 1e-4)


@pytest.mark.parametrize("heads", [("2",), ("1", "3")])
@pytest.mark.parametrize("rows", [1, 7, 32])
def test_natures_network_as_by_autograd_whoever_computes(rows: int, heads: tuple[str, ...]) -> None:
    network = QNetwork(NatureTrunk((4, 84, 84), 17), (1, 2, 3), 4, seed=0)
    rng = np.random.default_rng(1)
    with ThreadPoolExecutor(1) as helper:
        autograd = Autograd(network, CPU)
        alone, helped = NatureByHand(network, InlineExecutor()), NatureByHand(network, helper)
        for _ in range(2):
            seen = rng.integers(0, 255, (rows, 4, 84, 84), dtype=np.uint8)
            slopes = rng.normal(size=(rows, len(heads), 4)).astype(np.float32)
            values = alone.values(seen, heads)
            np.testing.assert_allclose(values, autograd.values(seen, heads), rtol=1e-5, atol=1e-6)
            assert np.array_equal(values, helped.values(seen, heads))
            by_one, by_two = gradients(alone, slopes), gradients(helped, slopes)
            assert_same(by_one, gradients(autograd, slopes), network, 1e-5)
            for name, gradient in by_one.items():
                assert by_two[name] is None if gradient is None else torch.equal(gradient, by_two[name]), name


def test_weights_whose_gradient_failed_do_not_move(monkeypatch: pytest.MonkeyPatch) -> None:
    network = QNetwork(NatureTrunk((4, 84, 84), 16), (1,), 4, seed=0)
    way, moved, product = NatureByHand(network, ThreadPoolExecutor(1)), list[str](), torch.mm

    def without_room(*factors: Any, out: Any = None) -> Any:
        if out is not None:
            raise MemoryError
        return product(*factors)

    way.values(np.zeros((2, 4, 84, 84), np.uint8), ("1",))
    monkeypatch.setattr(torch, "mm", without_room)
    with pytest.raises(MemoryError):
        way.descend(np.ones((2, 1, 4), np.float32), moved.extend)
    assert moved == []


def test_pictures_are_pytorchs() -> None:
    seen = torch.from_numpy(np.random.default_rng(3).integers(0, 256, (3, 4, 40, 36), dtype=np.uint8))
    assert torch.equal(pictures(seen), seen.float().mul(1.0 / 255.0))
    assert pictures(seen).is_contiguous(memory_format=torch.channels_last)
    numbers = seen.float().contiguous(memory_format=torch.channels_last)
    assert torch.equal(pictures(numbers), pictures(seen))
    assert torch.equal(numbers, seen.float())  # what was shown stays as it is
    numbers.requires_grad_()
    assert torch.equal(pictures(numbers), pictures(seen))
    assert pictures(numbers).requires_grad  # who asks what an agent looks at needs gradients by the picture


@pytest.mark.parametrize(
    ("trunk", "way"),
    [
        (MinAtarTrunk((4, 10, 10), 8), MinAtarByHand),
        (NatureTrunk((4, 84, 84), 8), NatureByHand),
        (MLPTrunk((4,), 8), Autograd),
    ],
)
def test_other_networks_take_autograd(trunk: Any, way: type) -> None:
    assert isinstance(slopes_of(QNetwork(trunk, (0,), 2, seed=0), CPU, InlineExecutor()), way)
