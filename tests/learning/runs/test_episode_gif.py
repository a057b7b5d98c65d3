"""The animated GIF of an episode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from adalook.learning.acting import Decision
from adalook.learning.agents.dqn import DQN
from adalook.learning.runs.episode_gif import EpisodeGif
from tests.learning.small import BREAKOUT, small_config


def test_a_gif_shows_every_decision_of_its_episode_with_its_depth(tmp_path: Path) -> None:
    agent = DQN(BREAKOUT, small_config(), depth=2, seed=1)
    gif = EpisodeGif(episode=1)
    result = agent.evaluate(2, watcher=gif)
    gif.save(tmp_path / "episode.gif")
    with Image.open(tmp_path / "episode.gif") as picture:
        assert picture.format == "GIF"
        assert picture.size[1] > picture.size[0]  # the band below
        assert 1 < picture.n_frames <= result.steps[1]  # type: ignore[attr-defined]
    assert len(gif.frames) == result.steps[1]


@pytest.mark.parametrize("shape", [(4, 84, 84), (4, 10, 10), (1,)])
def test_a_gif_can_show_any_observation(shape: tuple[int, ...]) -> None:
    gif = EpisodeGif()
    high = 255 if shape[-1] == 84 else 2
    gif(0, np.random.default_rng(0).integers(0, high, shape).astype(np.uint8), Decision(0, 3))
    assert gif.frames[0].size[0] >= 320
    colours = {gif.frames[0].getpixel((115, gif.frames[0].size[1] - 18))}
    gif(0, np.zeros(shape, np.uint8), Decision(0, 0))
    assert gif.frames[1].getpixel((115, gif.frames[1].size[1] - 18)) not in colours
