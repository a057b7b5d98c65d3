"""QL-DQN step 7: targets come from the same head at the leaf."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from adalook.errors import DivergedError
from adalook.learning.learner import Learner, head_weights
from adalook.learning.networks import MinAtarTrunk, QNetwork
from adalook.learning.presets import minatar
from adalook.learning.replay.buffer import Batch

CPU = torch.device("cpu")
SHAPE = (4, 10, 10)


def network(seed: int = 0, **options: Any) -> QNetwork:
    return QNetwork(MinAtarTrunk(SHAPE, 16), (1, 2, 3), 3, seed=seed, **options)


def learner(net: QNetwork, **changes: Any) -> Learner:
    """Plain PyTorch; `cpu/test_twins.py` holds the twins against it."""
    config = dataclasses.replace(minatar(), **{"discount": 0.9, "shared_head": False, **changes})
    return Learner(net, network(seed=8), config, CPU)


def batch(depths: list[int], seed: int = 0, terminated: bool = False) -> Batch:
    rng, n = np.random.default_rng(seed), len(depths)
    observations, leaves = ((rng.random((n, *SHAPE)) < 0.2).astype(np.uint8) for _ in range(2))
    return Batch(
        observations,
        rng.integers(0, 3, n),
        rng.normal(size=n).astype(np.float32),
        leaves,
        np.array(depths),
        np.array(depths),
        np.full(n, terminated),
    )


def test_the_return_is_followed_by_the_discounted_value_of_the_leaf() -> None:
    learn = learner(network(), discount=0.5)
    data = dataclasses.replace(batch([1, 1, 3, 2]), terminated=np.array([False, False, False, True]))
    data = dataclasses.replace(data, steps=np.array([1, 4, 3, 2]))
    heads = (1, 1, 3, 2)
    values = [learn.target(torch.from_numpy(data.leaves[i : i + 1]), head).max().item() for i, head in enumerate(heads)]
    factors = np.array([0.5, 0.5**4, 0.5**3, 0.0])  # γ^steps, whatever the head; nothing after the end
    np.testing.assert_allclose(learn.td_targets([data]).numpy(), data.returns + factors * values, rtol=1e-5, atol=1e-6)


def test_double_dqn_values_the_networks_action_by_the_target_network() -> None:
    net = network()
    plain, double = learner(net), learner(net, double=True)
    data = batch([1, 2, 3, 3, 2, 1] * 4)
    double.target.load_weights(network(seed=8).weights())
    expected, differs = [], 0
    for i, head in enumerate(data.heads.tolist()):
        leaf = torch.from_numpy(data.leaves[i : i + 1])
        action = int(net(leaf, head).argmax())
        values = double.target(leaf, head)[0].detach().numpy()
        differs += action != int(values.argmax())
        expected.append(data.returns[i] + 0.9**head * values[action])
    assert differs  # else this would be plain DQN
    np.testing.assert_allclose(double.td_targets([data]).numpy(), expected, rtol=1e-5, atol=1e-6)
    plain.target.load_weights(double.target.weights())
    assert (plain.td_targets([data]) >= double.td_targets([data]) - 1e-6).all()


def test_double_dqn_takes_the_network_as_it_is_at_each_update() -> None:
    some = [batch([1, 2, 3] * 4, seed=seed) for seed in range(6)]
    together, alone = learner(network(), double=True), learner(network(), double=True)
    updates = [alone.update([each])[0] for each in some]
    assert together.update(some) == updates


def test_targets_of_several_batches_in_one_pass_are_those_of_each() -> None:
    learn = learner(network())
    some = [batch([1, 2, 3], seed=1), batch([2] * 5, seed=2)]
    together = learn.td_targets(some)
    np.testing.assert_allclose(together, torch.cat([learn.td_targets([each]) for each in some]), rtol=1e-5, atol=1e-6)


def test_the_target_uses_the_head_of_the_transition_and_the_frozen_network() -> None:
    net = network()
    learn = learner(net)
    one = batch([2])
    frozen = {depth: learn.target(torch.from_numpy(one.leaves), depth).max().item() for depth in (1, 2, 3)}
    chosen = net(torch.from_numpy(one.observations), 2)[0, one.actions[0]].item()
    errors = {depth: abs(chosen - one.returns[0] - 0.9**2 * value) for depth, value in frozen.items()}
    losses = {depth: 0.5 * error**2 if error < 1 else error - 0.5 for depth, error in errors.items()}
    (update,) = learn.update([one])
    assert abs(update.loss - losses[2]) < 1e-5
    assert abs(update.loss - losses[1]) > 1e-3
    assert abs(update.mean_value - chosen) < 1e-6


def test_only_the_trunk_and_the_heads_of_the_batch_change() -> None:
    net = network()
    before = net.weights()
    learner(net).update([batch([1, 3, 3, 1])])
    changed = {name for name, weight in net.weights().items() if not np.array_equal(weight, before[name])}
    assert {name.split(".")[1] for name in changed if name.startswith("heads")} == {"1", "3"}
    assert any(name.startswith("trunk") for name in changed)


def test_an_update_is_a_step_of_torch_own_huber_loss() -> None:
    ours, theirs = network(), network()
    data = batch([1, 2, 2, 3, 1, 2])
    (update,) = learner(ours).update([data])
    reference = learner(theirs)
    rows = torch.arange(6)
    values = torch.stack(
        [theirs(torch.from_numpy(data.observations[i : i + 1]), int(data.heads[i]))[0] for i in rows.tolist()]
    )
    leaves = np.stack(
        [reference.target(torch.from_numpy(data.leaves[i : i + 1]), int(data.heads[i])).detach()[0] for i in range(6)]
    )
    wanted = data.returns + 0.9**data.steps * leaves.max(axis=1)
    loss = torch.nn.functional.smooth_l1_loss(
        values[rows, torch.from_numpy(data.actions)], torch.from_numpy(wanted).float()
    )
    loss.backward()
    reference.optimizer.step()
    assert abs(update.loss - loss.item()) < 1e-6
    for name, weight in ours.weights().items():
        np.testing.assert_allclose(weight, theirs.weights()[name], atol=1e-6, err_msg=name)


def test_a_loss_that_is_no_number_ends_learning_before_the_weights_are_spoilt() -> None:
    net = network()
    student = learner(net)
    student.target.load_weights({name: np.full_like(weight, np.nan) for name, weight in net.weights().items()})
    before = net.weights()
    with pytest.raises(DivergedError, match="diverged"):
        student.update([batch([1, 2])])
    assert all(np.array_equal(weight, before[name]) for name, weight in net.weights().items())


def test_ended_leaves_are_worth_their_return_alone() -> None:
    net = network()
    learn = learner(net)
    data = batch([2, 2, 2], terminated=True)
    chosen = net(torch.from_numpy(data.observations), 2).detach().numpy()[np.arange(3), data.actions]
    size = np.abs(chosen - data.returns)
    expected = np.where(size < 1, 0.5 * size**2, size - 0.5).mean()
    assert abs(learn.update([data])[0].loss - expected) < 1e-6


def test_balance_gives_rare_heads_the_weight_they_would_have_alone() -> None:
    heads = np.array([1, 1, 1, 3])
    weights = head_weights(heads, 1.0)
    np.testing.assert_allclose([weights[heads == head].sum() for head in (1, 3)], [4, 4])


def test_balance_makes_a_head_learn_as_fast_as_in_a_batch_of_its_own() -> None:
    rare = batch([3], seed=1)
    mixed = Batch(
        *(
            np.concatenate([getattr(rare, name), getattr(batch([1] * 7, seed=2), name)])
            for name in ("observations", "actions", "returns", "leaves", "heads", "steps", "terminated")
        )
    )
    moves = []
    for data, balance in ((rare, 0.0), (mixed, 1.0), (mixed, 0.0)):
        net = network()
        before = net.weights()
        learner(net, head_balance=balance, shared_head=False).update([data])
        moves.append(net.weights()["heads.3.weight"] - before["heads.3.weight"])
    np.testing.assert_allclose(moves[1], moves[0], atol=1e-6)
    assert np.abs(moves[2] - moves[0]).max() > 1e-4


def test_the_target_network_is_a_copy_that_stays_behind() -> None:
    net = network()
    learn = learner(net)
    assert all(np.array_equal(weight, net.weights()[name]) for name, weight in learn.target.weights().items())
    learn.update([batch([1, 2, 3])])
    assert not np.array_equal(learn.target.weights()["trunk.conv.weight"], net.weights()["trunk.conv.weight"])
    learn.copy_to_target()
    assert all(np.array_equal(weight, net.weights()[name]) for name, weight in learn.target.weights().items())


@pytest.mark.parametrize(
    ("key", "value"),
    [("exp_avg", np.array(True)), ("exp_avg", np.float32(0.0)), ("exp_avg_sq", np.zeros(3)), ("step", np.arange(2.0))],
)
def test_moments_that_fit_no_weight_are_refused(key: str, value: Any) -> None:
    net = network()
    teacher = learner(net, optimizer="adam")
    teacher.update([batch([1, 2])])
    state = teacher.state()
    teacher.load_state(state)
    next(iter(state["optimizer"].values()))[key] = value
    with pytest.raises(ValueError, match=key):
        teacher.load_state(state)


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adam", "double": True, "head_balance": 0.5}])
def test_the_default_type_of_pytorch_changes_no_bit(settings: dict[str, Any]) -> None:
    def trained() -> dict[str, np.ndarray]:
        net = network().to(torch.float32)  # as `build_network` does
        teacher = learner(net, **settings)
        teacher.target.to(torch.float32)
        teacher.update([batch([1, 2, 3], seed=seed) for seed in range(12)])
        return net.weights()

    plain = trained()
    torch.set_default_dtype(torch.float64)
    try:
        other = trained()
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(np.array_equal(weight, other[name]) and weight.dtype == np.float32 for name, weight in plain.items())


@pytest.mark.parametrize("double", [False, True])
def test_returns_eight_times_as_large_are_learnt_alike_in_a_scale_of_eight(double: bool) -> None:
    data = [batch([1, 2, 3, 3] * 8, seed) for seed in range(6)]
    plain = learner(network(), double=double)
    scaled = learner(network(value_scale=8.0), double=double, value_scale=8.0)
    scaled.target.value_scale = 8.0
    for one in data:  # powers of two round nothing
        loss = plain.update([one])[0]
        larger = scaled.update([dataclasses.replace(one, returns=8 * one.returns)])[0]
        assert larger.loss == loss.loss
        assert larger.mean_value == 8 * loss.mean_value
    assert all((a == b).all() for a, b in zip(plain.network.parameters(), scaled.network.parameters(), strict=True))


@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_a_reset_keeps_part_of_the_trunk_and_nothing_of_the_heads(keep: float) -> None:
    learn = learner(network(), reset_keep=keep, optimizer="adam")
    learn.update([batch([1, 2, 3] * 4)])
    before = learn.network.weights()
    learn.reset(seed=5, step=100)
    after, target = learn.network.weights(), learn.target.weights()
    fresh = network(seed=0)
    fresh.reset(seed=5, step=100, keep=0.0)
    for name, weights in fresh.weights().items():
        kept = keep * before[name] if name.startswith("trunk") else 0.0
        expected = kept + (1.0 - keep) * weights if name.startswith("trunk") else weights
        np.testing.assert_allclose(after[name], expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(target[name], after[name])
    assert not learn.state()["optimizer"]


def test_no_two_resets_draw_the_same() -> None:
    one, other, again = network(), network(), network()
    one.reset(seed=5, step=100, keep=0.5)
    other.reset(seed=5, step=200, keep=0.5)
    again.reset(seed=5, step=100, keep=0.5)
    for name, weights in one.weights().items():
        assert (weights != other.weights()[name]).any()
        np.testing.assert_array_equal(weights, again.weights()[name])
