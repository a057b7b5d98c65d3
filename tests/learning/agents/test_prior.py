"""Ṽ* as an agent of its own: trained first, or taken from a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adalook.errors import ArgumentError, FileError
from adalook.learning.acting import NO_ACTION
from adalook.learning.agents.dqn import DQN
from adalook.learning.agents.qldqn import QLDQN
from adalook.learning.training import Round
from adalook.search import FixedDepth, Root, search
from tests.learning.small import BREAKOUT, fingerprint, small_config

PRIOR_ROUNDS = small_config().prior_steps // small_config().num_envs


def agent(**changes: Any) -> QLDQN:
    return QLDQN(BREAKOUT, small_config(**{"prior": "train", **changes}), seed=3)


def trained(one: QLDQN, count: int) -> list[Round]:
    rounds = one.rounds()
    return [next(rounds) for _ in range(count)]


@pytest.fixture(scope="module")
def whole() -> Any:
    one = agent()
    trained(one, PRIOR_ROUNDS + 10)
    return fingerprint(one)


@pytest.mark.parametrize("stop", [PRIOR_ROUNDS - 1, PRIOR_ROUNDS, PRIOR_ROUNDS + 1])
def test_a_stop_around_the_end_of_the_prior_changes_nothing(tmp_path: Path, whole: Any, stop: int) -> None:
    one = agent()
    trained(one, stop)
    one.save(tmp_path / "run")
    again = QLDQN.load(tmp_path / "run")
    trained(again, PRIOR_ROUNDS + 10 - stop)
    assert fingerprint(again) == whole


def test_the_last_round_of_the_prior_is_marked() -> None:
    rounds = trained(agent(), PRIOR_ROUNDS + 2)
    assert [done.phase for done in rounds].count("prior") == PRIOR_ROUNDS
    assert [i for i, done in enumerate(rounds) if done.last_of_phase] == [PRIOR_ROUNDS - 1]


def test_an_exported_dqn_is_a_prior_too(tmp_path: Path) -> None:
    dqn = DQN(BREAKOUT, small_config(), seed=1).learn(steps=80, progress=False)
    dqn.save(tmp_path / "run")
    dqn.export(tmp_path / "export")
    of_run, of_export = agent(prior=str(tmp_path / "run")), agent(prior=str(tmp_path / "export"))
    trained(of_run, 3)
    trained(of_export, 3)
    assert fingerprint(of_run) == fingerprint(of_export)


def test_a_prior_that_is_nowhere_is_named_as_the_setting_that_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"config: prior is wrong: expected 'self', .* got .*slef is no run"):
        agent(prior=str(tmp_path / "slef")).prepare()


def test_loading_replaces_the_prior_that_the_search_asks(tmp_path: Path, whole: Any) -> None:
    one = agent()
    trained(one, PRIOR_ROUNDS + 5)
    one.save(tmp_path / "run")
    touched = agent()
    trained(touched, 3)  # has made its actor, which asks the prior of its own
    touched.load_state(QLDQN.load(tmp_path / "run").state())
    trained(touched, 5)
    assert fingerprint(touched) == whole


@pytest.fixture
def prior_run(tmp_path: Path) -> Path:
    prior = DQN(BREAKOUT, small_config(), seed=9)
    prior.learn(steps=160)
    prior.save(tmp_path / "prior")
    return tmp_path / "prior"


def test_a_prior_from_a_run_keeps_nothing_of_its_training(prior_run: Path) -> None:
    one = agent(prior=str(prior_run))
    assert one.prior_agent is not None
    assert one.prior_agent._trainer is None


@pytest.mark.parametrize(
    ("env", "changes", "complaint"),
    [
        ("MinAtar/Freeway-v1", {}, "env"),
        (BREAKOUT, {"discount": 0.9}, "discount"),
        (BREAKOUT, {"life_loss_ends": False}, "life_loss_ends"),
    ],
)
def test_a_prior_that_values_other_things_is_refused(prior_run: Path, env: str, changes: Any, complaint: str) -> None:
    with pytest.raises(ArgumentError, match=f"no prior for this agent: expected {complaint}"):
        _ = QLDQN(env, small_config(env, prior=str(prior_run), **changes)).prior_agent


def test_a_prior_that_looks_ahead_is_refused(tmp_path: Path) -> None:
    DQN(BREAKOUT, small_config(), depth=1).save(tmp_path / "deep")
    with pytest.raises(ArgumentError, match="expected depth 0, got 1"):
        _ = agent(prior=str(tmp_path / "deep")).prior_agent


def test_every_round_has_the_threads_of_its_own_agent(prior_run: Path) -> None:
    before = torch.get_num_threads()
    try:
        one = agent(prior=str(prior_run), threads=2)
        rounds = one.rounds()
        next(rounds)
        DQN(BREAKOUT, small_config(threads=1))  # someone else's
        next(rounds)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        one.evaluate(1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_share_that_follows_the_cost_waits_for_ranks() -> None:
    """While trees of depth 1 are cheaper than allowed θ rises to its most, which is no licence to go without ranks."""
    config = dataclasses.replace(small_config(), nodes_per_step=12.0, shared_head=True, ranked_transitions=400)
    one = QLDQN(BREAKOUT, config, seed=3)
    depths = [{decision.depth for decision in done.decisions} for done in trained(one, 150)]
    assert max(set.union(*depths[:100])) == 1
    assert max(set.union(*depths[100:])) > 1


def test_distances_to_the_network_are_from_what_it_expects_of_the_root() -> None:
    one = QLDQN(BREAKOUT, small_config(prior="network", nodes_per_step=0.0, depth_shares=(1.0, 1.0)), seed=3)
    assert one.prior_agent is None
    env = one.sim.clone()
    observation = env.reset(seed=5)
    expected = one.leaf_values.values(observation[None], 1)[0]
    [decision] = one.actor.decide([env], observation[None], np.array([NO_ACTION]), np.array([0]))
    result = search(
        env,
        Root.of(env),
        lambda leaves, depth: one.leaf_values.values(leaves, depth),
        FixedDepth(3),
        discount=one.config.discount,
        every_level=True,
    )
    assert set(decision.distances) == {1, 2, 3}
    for level in result.levels:
        assert decision.distances[level.depth] == pytest.approx(abs(expected - level.value), abs=1e-5)


@pytest.mark.parametrize("shape", ["exhaustive", "rollouts"])
def test_a_stop_changes_nothing_with_the_network_as_prior(tmp_path: Path, shape: str) -> None:
    def make() -> QLDQN:
        config = small_config(prior="network", search_shape=shape, nodes_per_step=12.0, shared_head=True)
        return QLDQN(BREAKOUT, config, seed=3)

    whole, one = make(), make()
    trained(whole, 60)
    trained(one, 35)
    one.save(tmp_path / "run")
    again = QLDQN.load(tmp_path / "run")
    trained(again, 25)
    assert fingerprint(again) == fingerprint(whole)
    assert any(depth > 1 for done in trained(again, 5) for depth in [d.depth for d in done.decisions])
