"""An animated GIF of one evaluated episode, with the depth of each decision drawn below the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from adalook._pictures import depth_colour, state_image
from adalook.learning.acting import Decision
from adalook.simulators.base import Simulator
from adalook.storage.files import atomic_write

MIN_SIDE = 320
"""Least width or height of the picture in pixels."""
BAND = 36
"""Height of the band below the picture that shows the depth, in pixels."""
MILLISECONDS_PER_FRAME = 66


class EpisodeGif:
    """A recorder of one episode of an evaluation: `agent.evaluate(1, watcher=EpisodeGif())`.

    Args:
        episode: number of the episode to record.
        max_frames: later frames are left out, to limit the size of the file.
    """

    def __init__(self, episode: int = 0, max_frames: int = 2_000) -> None:
        self._episode, self._max_frames = episode, max_frames
        self.frames: list[Image.Image] = []

    needs_env = True

    def __call__(
        self, episode: int, observation: np.ndarray[Any, Any], decision: Decision, env: Simulator | None = None
    ) -> None:
        """Record a decision; see `adalook.learning.evaluation.Watcher`. What the env renders is shown, if it does."""
        if episode == self._episode and len(self.frames) < self._max_frames:
            rendered = None if env is None else env.render()
            picture = _picture(observation) if rendered is None else _enlarged(rendered)
            self.frames.append(_with_depth(picture, decision.depth))

    def save(self, path: Path) -> None:
        """Write the frames as an animated GIF."""
        first, *rest = self.frames
        with atomic_write(path) as file:
            first.save(file, format="GIF", save_all=True, append_images=rest, duration=MILLISECONDS_PER_FRAME, loop=0)


def _picture(observation: np.ndarray[Any, Any]) -> Image.Image:
    """Draw an observation, enlarged, or its first numbers where there is nothing to draw."""
    image = state_image(observation)
    if isinstance(image, str):
        canvas = Image.new("RGB", (MIN_SIDE, MIN_SIDE), "black")
        ImageDraw.Draw(canvas).text((12, 12), image, font=ImageFont.load_default(16))
        return canvas
    return _enlarged(image)


def _enlarged(image: np.ndarray[Any, Any]) -> Image.Image:
    """Return pixels (height, width, 3) as a picture of at least `MIN_SIDE`."""
    height, width = image.shape[:2]
    scale = max(1, -(-MIN_SIDE // max(height, width)))
    return Image.fromarray(np.ascontiguousarray(image, np.uint8)).resize(
        (width * scale, height * scale), Image.Resampling.NEAREST
    )


def _with_depth(picture: Image.Image, depth: int) -> Image.Image:
    """Draw below a picture the depth of the search as a number and as boxes, one for each level."""
    width, height = picture.size
    canvas = Image.new("RGB", (width, height + BAND), "white")
    canvas.paste(picture, (0, 0))
    draw = ImageDraw.Draw(canvas)
    draw.text((8, height + 8), f"depth {depth}", fill="black", font=ImageFont.load_default(18))
    for level in range(1, depth + 1):
        left = 80 + 30 * level
        draw.rectangle((left, height + 8, left + 22, height + BAND - 8), fill=depth_colour(depth))
    return canvas
