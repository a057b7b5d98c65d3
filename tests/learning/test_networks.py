"""QL-DQN step 1: a Q-function per depth on a shared trunk."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from adalook.errors import ArgumentError
from adalook.learning.cpu.optimizers import TorchOptimizer, make_optimizer
from adalook.learning.networks import (
    ROWS_PER_PASS,
    MinAtarTrunk,
    MLPTrunk,
    NatureTrunk,
    QFunction,
    QNetwork,
    TableTrunk,
)
from adalook.learning.presets import minatar

SHAPE = (4, 10, 10)
CPU = torch.device("cpu")


def network(depths: Any = (1, 2, 3), seed: int = 0, **options: Any) -> QNetwork:
    return QNetwork(MinAtarTrunk(SHAPE, 16), depths, 3, seed=seed, **options)


def bits(count: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy((np.random.default_rng(seed).random((count, *SHAPE)) < 0.2).astype(np.uint8))


def test_a_head_begins_the_same_whatever_other_heads_there_are() -> None:
    alone, together = network((2,)).weights(), network((1, 2, 3)).weights()
    assert set(alone) < set(together)
    for name, weight in alone.items():
        assert np.array_equal(weight, together[name])
    assert not np.array_equal(together["heads.1.weight"], together["heads.2.weight"])


def test_another_seed_begins_elsewhere() -> None:
    first, second = network(seed=0).weights(), network(seed=1).weights()
    assert not any(np.array_equal(first[name], second[name]) for name in first)


def test_first_weights_do_not_depend_on_torch_random_state() -> None:
    torch.manual_seed(1)
    first = network().weights()
    torch.manual_seed(2)
    second = network().weights()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_shared_head_serves_every_depth() -> None:
    shared = network(shared_head=True)
    rows = bits(5)
    assert torch.equal(shared(rows, 1), shared(rows, 3))
    assert [name for name in shared.weights() if name.startswith("heads")] == ["heads.any.weight", "heads.any.bias"]
    names, places = shared.head_index(np.array([1, 3, 2]))
    assert names == ("any",)
    assert places.tolist() == [0, 0, 0]


def test_rows_of_several_depths_get_the_values_of_their_own_heads() -> None:
    net, rows = network(), bits(6)
    depths = np.array([3, 1, 1, 3, 2, 1])
    names, places = net.head_index(depths)
    values = net.of_heads(rows, names).detach().numpy()[np.arange(6), places]
    expected = [net(rows, int(depth))[i].detach().numpy() for i, depth in enumerate(depths)]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_one_head_alone_is_to_the_bit_what_it_is_without_others() -> None:
    rows = bits(32)
    alone, together = network((2,)), network((1, 2, 3))
    assert torch.equal(alone.of_heads(rows, ("2",)), together.of_heads(rows, ("2",)))
    assert torch.equal(alone.of_heads(rows, ("2",))[:, 0], together(rows, 2))


def test_gathering_patches_is_a_convolution() -> None:
    trunk = MinAtarTrunk(SHAPE, 16)
    rows = bits(3)
    kernel = trunk.conv.weight.view(16, 4, 3, 3)
    convolved = torch.relu(torch.nn.functional.conv2d(rows.float(), kernel, trunk.conv.bias))
    expected = torch.relu(trunk.dense(convolved.permute(0, 2, 3, 1).flatten(1)))
    torch.testing.assert_close(trunk(rows), expected)


def test_nature_has_the_published_size() -> None:
    net = QNetwork(NatureTrunk((4, 84, 84), 512), (0,), 6, seed=0)
    assert sum(weight.size for weight in net.weights().values()) == 1_687_206
    values = QFunction(net, CPU).action_values(np.zeros((2, 4, 84, 84), np.uint8), 0)
    assert values.shape == (2, 6)


def test_nature_looks_at_many_leaves_a_few_at_a_time() -> None:
    """Every row is seen, in its place, and no pass is larger than others have been."""
    trunk = NatureTrunk((4, 84, 84), 512)
    sizes = list[int]()
    trunk.conv1.register_forward_hook(lambda layer, inputs, output: sizes.append(len(output)))
    observations = torch.randint(0, 256, (2 * ROWS_PER_PASS + 3, 4, 84, 84), dtype=torch.uint8)
    with torch.inference_mode():
        together = trunk(observations)
        assert sizes == [ROWS_PER_PASS, ROWS_PER_PASS, 3]
        alone = torch.cat([trunk(row[None]) for row in observations])
    torch.testing.assert_close(together, alone)


def test_a_table_has_an_entry_for_each_state_and_nothing_else() -> None:
    net = QNetwork(TableTrunk(7), (0,), 2, seed=0)
    values = QFunction(net, CPU).action_values(np.arange(7, dtype=np.int32)[:, None], 0)
    (table,) = net.weights().values()
    assert np.array_equal(values, table.T)


def test_a_q_function_takes_the_best_action() -> None:
    q_function = QFunction(network(), CPU)
    rows = bits(4).numpy()
    assert np.array_equal(q_function.values(rows, 2), q_function.action_values(rows, 2).max(axis=1))


def test_weights_go_over_to_another_network_and_misfits_are_refused() -> None:
    first, second = network(seed=0), network(seed=1)
    second.load_weights(first.weights())
    assert torch.equal(first(bits(3), 2), second(bits(3), 2))
    with pytest.raises(ArgumentError, match="do not fit"):
        network((1, 2)).load_weights(first.weights())


@pytest.mark.parametrize("trunk", [NatureTrunk, MinAtarTrunk])
def test_worlds_that_do_not_fit_are_refused(trunk: Any) -> None:
    with pytest.raises(ArgumentError, match="does not fit"):
        trunk((3,), 16)


@pytest.mark.parametrize("kind", ["rmsprop", "adam"])
def test_compiled_optimizers_are_torchs_and_leave_heads_without_gradient_alone(kind: str) -> None:
    config = dataclasses.replace(minatar(), optimizer=kind, learning_rate=0.01)
    nets = [network(), network()]
    compiled = make_optimizer(nets[0], config, CPU)
    weights = list(nets[1].parameters())
    torchs = {
        "rmsprop": torch.optim.RMSprop(weights, lr=0.01, alpha=0.95, eps=0.01, centered=True),
        "adam": torch.optim.Adam(weights, lr=0.01, betas=(config.first_moment_decay, 0.95), eps=0.01),
    }
    reference = TorchOptimizer(nets[1], torchs[kind])
    before = nets[0].weights()
    rng = np.random.default_rng(0)
    for _ in range(5):
        gradients: dict[str, torch.Tensor | None] = {
            name: torch.from_numpy(rng.normal(size=weight.shape).astype(np.float32)) for name, weight in before.items()
        }
        gradients |= {"heads.3.weight": None, "heads.3.bias": None}
        for optimizer in (compiled, reference):  # in two pieces, as gradients may come
            for trunk in (True, False):
                optimizer.step({name: g for name, g in gradients.items() if name.startswith("trunk") == trunk})
    ours, theirs = nets[0].weights(), nets[1].weights()
    for name in before:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-6)
        assert np.array_equal(ours[name], before[name]) == name.startswith("heads.3")


@pytest.mark.parametrize("kind", ["rmsprop", "adam"])
@pytest.mark.parametrize("compiled_first", [True, False])
def test_a_run_may_move_between_optimizers_of_cpu_and_gpu(kind: str, compiled_first: bool) -> None:
    config = dataclasses.replace(minatar(), optimizer=kind, learning_rate=0.01)
    rng = np.random.default_rng(0)
    nets = [network(seed=seed) for seed in range(2)]

    def torchs(net: QNetwork) -> TorchOptimizer:
        weights = list(net.parameters())
        if kind == "rmsprop":
            return TorchOptimizer(net, torch.optim.RMSprop(weights, lr=0.01, alpha=0.95, eps=0.01, centered=True))
        return TorchOptimizer(
            net,
            torch.optim.Adam(weights, lr=0.01, betas=(config.first_moment_decay, config.second_moment_decay), eps=0.01),
        )

    makers = [lambda net: make_optimizer(net, config, CPU), torchs]
    here, there = (make(net) for make, net in zip(makers if compiled_first else reversed(makers), nets, strict=True))
    for last in (False, False, True):
        if last:
            nets[1].load_weights(nets[0].weights())
            there.load_state(here.state())
        gradients: dict[str, Any] = {
            name: None if "heads.3" in name else torch.from_numpy(rng.normal(size=weight.shape).astype(np.float32))
            for name, weight in nets[0].weights().items()
        }
        for optimizer in (here, there) if last else (here,):
            optimizer.step(gradients)
    assert here.state().keys() == there.state().keys()
    for name, weight in nets[0].weights().items():
        np.testing.assert_allclose(nets[1].weights()[name], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["rmsprop", "adam"])
def test_an_optimizer_goes_on_from_its_state(kind: str) -> None:
    config = dataclasses.replace(minatar(), optimizer=kind)
    rng = np.random.default_rng(0)

    def gradients() -> dict[str, Any]:
        return {
            name: torch.from_numpy(rng.normal(size=weight.shape).astype(np.float32))
            for name, weight in first.weights().items()
        }

    first, second = network(), network(seed=5)
    mine = make_optimizer(first, config, CPU)
    for _ in range(3):
        mine.step(gradients())
    other = make_optimizer(second, config, CPU)
    second.load_weights(first.weights())
    other.load_state(mine.state())
    same = gradients()
    mine.step(same)
    other.step({name: gradient.clone() for name, gradient in same.items()})
    assert all(np.array_equal(weight, second.weights()[name]) for name, weight in first.weights().items())


def test_an_mlp_flattens_what_it_is_shown() -> None:
    net = QNetwork(MLPTrunk((2, 3), 8), (0,), 4, seed=0)
    assert QFunction(net, CPU).action_values(np.zeros((5, 2, 3), np.float32), 0).shape == (5, 4)
