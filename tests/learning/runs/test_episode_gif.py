"""The animated GIF of an episode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import adalook as al
from adalook.learning.acting import Decision
from adalook.learning.agents.dqn import DQN
from adalook.learning.runs.episode_gif import BAND, EpisodeGif
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


def test_what_the_environment_renders_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    gif = EpisodeGif(max_frames=3)
    agent = al.DQN("CartPole-v1")
    agent.evaluate(1, watcher=gif)
    agent.sim.reset(seed=0)
    assert agent.sim.render().shape == (400, 600, 3)
    assert gif.frames[0].size == (600, 400 + BAND)
    gif.save(tmp_path / "episode.gif")
    agent.sim.expand([agent.sim.save()] * 2, [0, 1])  # rendering has left nothing in the env that cannot be copied


def test_mazes_are_drawn_as_mazes() -> None:
    mdp = al.zoo.maze(size=8, seed=0)
    sim = al.make_simulator(mdp, start=0)
    sim.reset(seed=0)
    pixels = sim.render()
    assert pixels.shape == (8, 8, 3)
    row, column = mdp.layout.cells[0]
    assert tuple(pixels[row, column]) == (0, 114, 178)
    assert (pixels[mdp.layout.walls] == 70).all()
    assert al.make_simulator(al.zoo.garnet(5, 2, 2)).render() is None
