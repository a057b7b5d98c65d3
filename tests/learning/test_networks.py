"""QL-DQN step 1: a Q-function per depth on a shared trunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from adalook.errors import ArgumentError
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.networks import (
    NETWORKS,
    ROWS_PER_PASS,
    MinAtarTrunk,
    MLPTrunk,
    NatureTrunk,
    QFunction,
    QNetwork,
    TableTrunk,
)
from tests.learning.small import BREAKOUT, small_config

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
    values = net.head_values(rows, depths).detach().numpy()
    expected = [net(rows, int(depth))[i].detach().numpy() for i, depth in enumerate(depths)]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


def test_one_head_alone_is_to_the_bit_what_it_is_without_others() -> None:
    rows = bits(32)
    alone, together = network((2,)), network((1, 2, 3))
    heads = np.full(32, 2)
    assert torch.equal(alone.head_values(rows, heads), together.head_values(rows, heads))
    assert torch.equal(alone.head_values(rows, heads), together(rows, 2))


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


def test_weights_go_over_to_another_network_and_misfits_are_refused() -> None:
    first, second = network(seed=0), network(seed=1)
    second.load_weights(first.weights())
    assert torch.equal(first(bits(3), 2), second(bits(3), 2))
    with pytest.raises(ArgumentError, match="do not fit"):
        network((1, 2)).load_weights(first.weights())


@pytest.mark.parametrize("trunk", [NatureTrunk, MinAtarTrunk])
def test_observations_that_do_not_fit_are_refused(trunk: Any) -> None:
    with pytest.raises(ArgumentError, match="do not fit"):
        trunk((3,), 16)


class OneLayer(torch.nn.Module):
    """A network that somebody might add: one dense layer."""

    def __init__(self, observation_shape: tuple[int, ...], features: int) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(int(np.prod(observation_shape)), features)
        self.features = features

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.dense(observations.flatten(1).float()))


def test_a_network_is_added_by_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    build = lambda sim, config: OneLayer(sim.observation_shape, config.hidden_units)  # noqa: E731
    monkeypatch.setitem(NETWORKS, "one layer", build)
    agent = QLDQN(BREAKOUT, small_config(network="one layer"), seed=0).learn(steps=160)
    assert agent.network.weights()["trunk.dense.weight"].shape == (16, 400)
    assert next(agent.rounds()).updates


def test_an_unknown_network_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(ArgumentError, match="expected one of nature, compact, minatar, mlp, table, got 'resnet'"):
        small_config(network="resnet")


def test_an_mlp_flattens_what_it_is_shown() -> None:
    net = QNetwork(MLPTrunk((2, 3), 8), (0,), 4, seed=0)
    assert QFunction(net, CPU).action_values(np.zeros((5, 2, 3), np.float32), 0).shape == (5, 4)
