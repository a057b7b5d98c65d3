"""Statistics of rounds."""

from __future__ import annotations

import pytest

from adalook.learning.runs.progress import ProgressStatistics
from adalook.storage.serializer import deserialize, serialize
from tests.learning.runs.rounds import round_of


def test_statistics_add_up_and_start_over() -> None:
    statistics = ProgressStatistics()
    statistics.add(round_of(8))
    summary = statistics.summarize()
    assert summary is not None
    assert (summary.episodes, summary.mean_score, summary.mean_episode_steps) == (1, 3.0, 10.0)
    assert (summary.updates, summary.loss, summary.mean_value) == (2, 1.0, 1.5)
    assert summary.depths == {1: 1, 2: 1}
    assert summary.distances[1] == pytest.approx((0.3, 0.5, 0.7))
    assert summary.merged_share == 0.25
    assert statistics.summarize() is None
    statistics.add(round_of(16, episodes=[], updates=[], decisions=[]))
    empty = statistics.summarize()
    assert empty is not None
    assert (empty.step, empty.episodes, empty.mean_score, empty.loss, empty.merged_share) == (16, 0, None, None, None)


def test_statistics_go_on_from_their_state() -> None:
    first, second = ProgressStatistics(), ProgressStatistics()
    first.add(round_of(8))
    second.load_state(deserialize(serialize(first.state())))
    first.add(round_of(16))
    second.add(round_of(16))
    assert first.summarize() == second.summarize()


@pytest.mark.parametrize("name", ["scores", "losses", "values"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_statistics_that_no_json_can_hold_are_refused(name: str, number: float) -> None:
    statistics = ProgressStatistics()
    statistics.add(round_of(8))
    with pytest.raises(ValueError, match="not finite"):
        statistics.load_state(statistics.state() | {name: [1.0, number]})
