"""Engines: the same bits wherever environments are, however many hosts have them, and whoever of them dies."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
import signal
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adalook as al
from adalook.engines.base import HostFailed, HostLost, InlineHosts, engine_named, greeting, guarded_answer
from adalook.errors import ArgumentError, EngineError
from adalook.learning.engines.distributed import check_hosts, check_learning_engine, merge_states, split_state
from adalook.learning.engines.host import ActorHost
from adalook.learning.networks import MIN_ROWS, QFunction, rounding_digest
from adalook.search.rules.quantile import DistanceRanks, RankThresholds
from tests.learning.small import BREAKOUT, fingerprint, small_config

STEPS = 160


@dataclasses.dataclass(frozen=True)
class Inline(al.LocalProcesses):
    """Hosts in this process that die when they are told to: all of an engine but the processes."""

    losses: Any = None
    """() -> whether a host is lost instead of answering, before or after the step; None: never."""
    gone: Collection[int] = ()
    """Hosts that cannot be started again."""

    def hosts(self, recipes: Any, logs: Any = None) -> Any:
        return MortalHosts(recipes, self)


class MortalHosts(InlineHosts):
    def __init__(self, recipes: Any, engine: Inline) -> None:
        super().__init__(recipes)
        self.engine, self.sent = engine, itertools.count()

    def restart(self, host: int) -> bool:
        super().restart(host)
        return host not in self.engine.gone

    def send(self, host: int, message: Any, published: Any = None) -> None:
        super().send(host, message, (next(self.sent), published))

    def receive(self, hosts: Collection[int], seconds: float | None = None) -> list[tuple[int, Any]]:
        host = min(hosts, key=lambda host: self.queues[host][0][1][0])  # who was asked first
        message, (_, published) = self.queues[host].popleft()
        lost = self.engine.losses() if self.engine.losses else ""
        answer = HostLost(f"lost {lost}")
        if lost != "before":
            answer = guarded_answer(self.hosts[host], message, published)
        return [(host, HostLost(f"lost {lost}") if lost else answer)]


def trained(engine: Any = None, agent: Any = al.QLDQN, steps: int = STEPS, **changes: Any) -> al.QLDQN:
    settings = {} if agent is al.QLDQN else {"depth": changes.pop("depth")}
    learnt = agent(BREAKOUT, small_config(**changes), seed=3, engine=engine, **settings)
    return learnt.learn(steps=steps, progress=False)


SHAPES = {
    "paper": {},
    "prior": {"prior": "train"},
    "ours": {"nodes_per_step": 30.0, "shared_head": True, "learn_every_action": True},
    "rollouts": {"search_shape": "rollouts", "learn_real_steps": True, "n_steps": 2},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_any_number_of_hosts_gives_the_bits_of_one_process(shape: str) -> None:
    alone = fingerprint(trained(**SHAPES[shape]))
    for actors in (1, 3):
        assert fingerprint(trained(Inline(actors), **SHAPES[shape])) == alone


@pytest.mark.parametrize("depth", [0, 1])
def test_dqn_likewise(depth: int) -> None:
    alone = fingerprint(trained(agent=al.DQN, depth=depth))
    assert fingerprint(trained(Inline(3), agent=al.DQN, depth=depth)) == alone


@pytest.mark.parametrize("shape", ["paper", "rollouts"])
def test_hosts_that_die_at_any_time_change_nothing(shape: str) -> None:
    draws = random.Random(1)
    kinds = ["before", "after"]
    engine = Inline(3, losses=lambda: draws.choice(kinds) if draws.random() < 0.1 else "")
    agent = trained(engine, **SHAPES[shape])
    assert agent.trainer.acting.lost > 5
    assert fingerprint(agent) == fingerprint(trained(**SHAPES[shape]))


def test_the_environments_of_a_host_that_is_gone_go_to_the_others() -> None:
    countdown = iter(range(10_000))
    engine = Inline(3, losses=lambda: "before" if next(countdown) in (4, 5, 60) else "", gone=(0, 1))
    agent = trained(engine)
    assert fingerprint(agent) == fingerprint(trained())
    assert set(agent.trainer.acting._host_of) == {2}


def test_when_no_host_is_left_it_is_said() -> None:
    with pytest.raises(EngineError, match=r"no actor is left: got lost before\. Go on from the last checkpoint"):
        trained(Inline(1, losses=lambda: "before", gone=(0,)))


def test_a_host_that_dies_again_and_again_is_given_up() -> None:
    with pytest.raises(EngineError, match=r"actor 0 died 4 times in a row.*fewer actors"):
        trained(Inline(2, losses=lambda: "before"))


def test_a_run_goes_on_with_another_engine(tmp_path: Any) -> None:
    alone = fingerprint(trained())
    trained(Inline(2), steps=120).save(tmp_path)
    agent = al.QLDQN.load(tmp_path, engine=Inline(3))
    assert fingerprint(agent.learn(steps=20, progress=False)) != alone
    agent.save(tmp_path)
    assert fingerprint(al.QLDQN.load(tmp_path).learn(steps=20, progress=False)) == alone


def test_training_goes_on_from_a_state_after_a_round_that_failed() -> None:
    alone, agent = fingerprint(trained()), trained(Inline(2), steps=120)
    saved = agent.state()
    host = agent.trainer.acting._hosts.hosts[1]

    def fail(message: Any, published: Any) -> None:
        raise OSError("no luck")

    host.answer = fail
    with pytest.raises(EngineError, match="actor 1 failed: got OSError: no luck"):
        agent.learn(steps=4, progress=False)
    del host.answer
    agent.load_state(saved)
    assert fingerprint(agent.learn(steps=STEPS - 120, progress=False)) == alone


def test_errors_of_hosts_keep_their_kind() -> None:
    error = HostFailed("DivergedError", "learning diverged: got nan.", "").error(0)
    assert isinstance(error, ArithmeticError)
    assert str(error) == "learning diverged: got nan."


def test_asynchronous_rounds_are_those_of_one_host_and_report_staleness() -> None:
    agent = al.QLDQN(BREAKOUT, small_config(), seed=3, engine=Inline(2, asynchronous=True))
    rounds = [done for _, done in zip(range(STEPS // 2), agent.rounds(), strict=False)]
    assert {len(done.decisions) for done in rounds} == {2}
    assert agent.step == STEPS
    updates = sum(len(done.updates) for done in rounds)
    assert updates == sum(1 for step in range(1, STEPS + 1) if step > 100)  # as many as in one process
    assert max(done.staleness for done in rounds) == 2 * 2 * 2 - 2  # updates of the calls that were in flight before it
    assert min(done.staleness for done in rounds[:50]) == 0
    saved = agent.state()  # calls in flight are not part of it: they are repeated
    other = al.QLDQN(BREAKOUT, small_config(), seed=3, engine=Inline(2, asynchronous=True))
    other.load_state(saved)
    assert next(other.rounds()).step == STEPS + 2


def test_more_hosts_than_environments_are_not_started(caplog: Any) -> None:
    agent = trained(Inline(9), steps=8)
    assert len(agent.trainer.acting.groups) == 4
    assert "4 actors are enough for 4 environments" in caplog.text


def test_states_split_and_merge() -> None:
    state = trained(steps=40, search_shape="rollouts").trainer.acting.state()
    parts = split_state(state, [range(1), range(1, 3), range(3, 4)])
    merged = merge_states(parts)
    assert [len(part["envs"]["saved"]) for part in parts] == [1, 2, 1]
    np.testing.assert_array_equal(merged["envs"].pop("observations"), state["envs"].pop("observations"))
    assert merged == state
    with pytest.raises(ArgumentError, match="another number of environments"):
        split_state(state | {"envs": state["envs"] | {"observations": np.zeros(4)}}, [range(5)])


@given(
    recorded=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 2.0]) | st.floats(0, 3), min_size=1, max_size=40),
    asked=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 2.0]) | st.floats(0, 3), min_size=1, max_size=20),
    share=st.floats(1e-12, 1.0, exclude_max=True),
)
def test_thresholds_decide_as_ranks_do(recorded: list[float], asked: list[float], share: float) -> None:
    ranks, thresholds = DistanceRanks(min_count=3), RankThresholds()
    for distance in recorded:
        ranks.add(1, distance)
    thresholds.by_depth = {1: ranks.threshold(1, share)}
    distances, draws = np.array(asked), np.random.default_rng(0).random(len(asked))
    np.testing.assert_array_equal(
        ranks.rank_share(1, distances, draws) < share, thresholds.rank_share(1, distances, draws) < share
    )


@pytest.mark.parametrize(
    ("env", "network"),
    [("ALE/Tutankham-v5", "nature"), ("ALE/Tutankham-v5", "compact"), (BREAKOUT, "minatar"), ("CartPole-v1", "mlp")],
)
def test_values_do_not_depend_on_the_rows_of_a_pass(env: str, network: str) -> None:
    agent = al.DQN(env, network=network, hidden_units=64)
    shape, dtype = agent.sim.observation_shape, agent.sim.observation_dtype
    rows = (np.random.default_rng(0).random((70, *shape)) * (1 if network in ("minatar", "mlp") else 255)).astype(dtype)
    values = agent.leaf_values.action_values(rows, 0)
    for first, last in ((0, 1), (1, 3), (2, 9), (5, 36), (30, 65), (69, 70)):
        np.testing.assert_array_equal(agent.leaf_values.action_values(rows[first:last], 0), values[first:last])
    assert "\n" not in rounding_digest(QFunction(agent.network, agent.device, MIN_ROWS), rows[0], 0)


def test_hosts_of_other_versions_or_roundings_are_refused() -> None:
    about = greeting(ActorHost(_spec()))
    check_hosts([about], about["rounding"])
    with pytest.raises(EngineError, match=r"another torch: expected .*got 0\.0"):
        check_hosts([about | {"torch": "0.0"}], about["rounding"])
    with pytest.raises(EngineError, match="rounds otherwise than this machine"):
        check_hosts([about], "other")


def _spec() -> Any:
    from adalook.learning.engines.host import host_spec

    agent = al.QLDQN(BREAKOUT, small_config())
    return host_spec(agent, np.zeros(agent.sim.observation_shape, agent.sim.observation_dtype))


def test_engines_by_name_and_what_is_wrong_with_them() -> None:
    assert engine_named("local") is None
    assert engine_named("processes", 3, None, True) == al.LocalProcesses(3, asynchronous=True)
    assert engine_named("ray", 3, "10.0.0.1:6379", False) == al.Ray(3, "10.0.0.1:6379")
    for wrong in (("threads", 1, None), ("local", 2, None), ("processes", None, None), ("processes", 2, "x:1")):
        with pytest.raises(ArgumentError):
            engine_named(*wrong)
    assert engine_named("processes", 2, split="nodes").split == "nodes"
    with pytest.raises(ArgumentError, match="local processes only"):
        engine_named("ray", 2, split="nodes")
    with pytest.raises(ArgumentError, match="stepped in rounds"):
        al.LocalProcesses(2, asynchronous=True, split="nodes")
    with pytest.raises(ArgumentError, match="actors"):
        al.Ray(0)
    with pytest.raises(ArgumentError, match="this is no engine"):
        al.QLDQN(BREAKOUT, engine="ray")


def test_environments_that_cannot_be_saved_stay_in_this_process() -> None:
    sim = al.DQN("CartPole-v1").sim
    sim.saves = False
    with pytest.raises(ArgumentError, match="cannot be saved"):
        check_learning_engine(al.LocalProcesses(2), sim)
    for engine in (None, al.InProcess(), al.LocalProcesses(2, split="nodes")):
        check_learning_engine(engine, sim)


def test_processes_give_the_same_bits_although_one_is_killed() -> None:
    alone = fingerprint(trained(steps=160))
    agent = al.QLDQN(BREAKOUT, small_config(), seed=3, engine=al.LocalProcesses(2))
    for done in agent.rounds():
        if done.step == 60:
            os.kill(agent.trainer.acting._hosts.process_ids[1], signal.SIGKILL)
        if done.step == 160:
            break
    assert agent.trainer.acting.lost == 1
    assert fingerprint(agent) == alone
    agent.forget_training()


def test_nodes_of_rollouts_are_not_split() -> None:
    with pytest.raises(ArgumentError, match="rollouts are not split by nodes"):
        al.QLDQN(BREAKOUT, small_config(search_shape="rollouts"), engine=al.LocalProcesses(2, split="nodes"))
