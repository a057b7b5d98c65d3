"""Whatever stops training, an agent is whole or says that it is not, and nothing goes on behind anybody's back."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from adalook.errors import AdalookError
from adalook.learning.agents.dqn import DQN
from adalook.learning.learner import Learner
from adalook.learning.training import EnvPool, Round
from tests.learning.small import BREAKOUT, fingerprint, small_config


@pytest.mark.parametrize("overlap", [False, True])
def test_ctrl_c_ends_the_round_first(overlap: bool) -> None:
    agent, whole = (DQN(BREAKOUT, small_config(overlap=overlap), seed=1) for _ in range(2))

    def press(done: Round) -> None:
        if done.step == 120:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(steps=300, callbacks=[press])
    assert agent.step == 120
    assert fingerprint(agent.learn(steps=80)) == fingerprint(whole.learn(steps=200))


@pytest.mark.parametrize("overlap", [False, True])
def test_a_round_that_was_cut_is_no_state_to_go_on_from(overlap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = DQN(BREAKOUT, small_config(overlap=overlap), seed=1).learn(steps=120)
    step, update, finished = EnvPool.step, Learner.update, list[bool]()

    def stopped(envs: EnvPool, actions: Any) -> Any:
        step(envs, actions)
        raise KeyboardInterrupt

    def slow(learner: Learner, batches: Any) -> Any:
        time.sleep(0.1)
        updates = update(learner, batches)
        finished.append(True)
        return updates

    with monkeypatch.context() as changed:
        changed.setattr(EnvPool, "step", stopped)
        changed.setattr(Learner, "update", slow)
        with pytest.raises(KeyboardInterrupt):
            agent.learn(steps=8)
        assert finished  # nobody learns any more
    for use in (agent.state, lambda: agent.learn(steps=8)):
        with pytest.raises(AdalookError, match="in the middle of a round"):
            use()
    assert len(agent.evaluate(1, seed=0).scores) == 1


def test_an_error_in_learning_is_heard_and_the_threads_go(monkeypatch: pytest.MonkeyPatch) -> None:
    others = set(threading.enumerate())
    agent = DQN(BREAKOUT, small_config(overlap=True), seed=1).learn(steps=120)
    assert len(set(threading.enumerate()) - others) == 1

    def fails(*_: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(Learner, "td_targets", fails)
    with pytest.raises(MemoryError, match="no room"):
        agent.learn(steps=8)
    agent.forget_training()
    assert set(threading.enumerate()) <= others
