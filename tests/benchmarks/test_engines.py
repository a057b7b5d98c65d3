"""The simulation of many actors and one learner, where the answer is known."""

from __future__ import annotations

import pytest

from benchmarks.engines import ENVS_PER_ACTOR, simulate

COSTS = {
    "decision_seconds": 0.05,
    "message_seconds": 0.0,
    "reply_bytes": 0,
    "weights_bytes": 0,
    "update_seconds": 0.01,
}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_actor_is_bound_by_itself_and_many_by_the_learner(asynchronous: bool) -> None:
    alone = simulate(COSTS, 1, 1.0, asynchronous=asynchronous)
    assert alone["decisions_per_second"] == pytest.approx(1 / 0.05, rel=0.05)  # updates overlap with acting
    crowd = simulate(COSTS, 256, 1.0, asynchronous=asynchronous)
    assert crowd["decisions_per_second"] == pytest.approx(1 / 0.01, rel=0.05)
    assert crowd["learner_busy"] == pytest.approx(1.0, abs=0.05)


def test_actors_add_up_while_the_learner_has_time() -> None:
    rates = [simulate(COSTS, actors, 0.01, asynchronous=True)["decisions_per_second"] for actors in (1, 10)]
    assert rates[1] / rates[0] == pytest.approx(10, rel=0.05)


def test_synchronous_rounds_wait_for_the_slowest() -> None:
    together = simulate(COSTS, 64, 0.0, asynchronous=False)["decisions_per_second"]
    assert together < 0.8 * 64 / 0.05
    assert simulate(COSTS, 64, 0.0, asynchronous=True)["decisions_per_second"] == pytest.approx(64 / 0.05, rel=0.05)
    assert ENVS_PER_ACTOR > 1


def test_messages_bound_the_driver_too() -> None:
    heavy = COSTS | {"message_seconds": 0.005}
    rate = simulate(heavy, 1000, 0.0, asynchronous=True)["decisions_per_second"]
    assert rate == pytest.approx(1 / 0.005, rel=0.05)
