"""An animated GIF of one evaluated episode, with the depth of each decision drawn below the picture."""

from __future__ import annotations

import colorsys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from adalook.learning.acting import Decision
from adalook.storage.files import atomic_write

MIN_SIDE = 320
"""Least width or height of the picture in pixels."""
BAND = 36
"""Height of the band below the picture that shows the depth, in pixels."""
MILLISECONDS_PER_FRAME = 66
DEPTH_COLOURS = ("#9aa0a6", "#4c9be8", "#f2b134", "#e4572e", "#a23bc4")
"""Of depth 0, 1, 2, …; the last one for all that are deeper."""


class EpisodeGif:
    """A recorder of one episode of an evaluation: `agent.evaluate(1, watcher=EpisodeGif())`.

    Args:
        episode: number of the episode to record.
        max_frames: later frames are left out, to limit the size of the file.
    """

    def __init__(self, episode: int = 0, max_frames: int = 2_000) -> None:
        self._episode, self._max_frames = episode, max_frames
        self.frames: list[Image.Image] = []

    def __call__(self, episode: int, observation: np.ndarray[Any, Any], decision: Decision) -> None:
        """Record a decision; see `adalook.learning.evaluation.Watcher`."""
        if episode == self._episode and len(self.frames) < self._max_frames:
            self.frames.append(_with_depth(_picture(observation), decision.depth))

    def save(self, path: Path) -> None:
        """Write the frames as an animated GIF."""
        first, *rest = self.frames
        with atomic_write(path) as file:
            first.save(file, format="GIF", save_all=True, append_images=rest, duration=MILLISECONDS_PER_FRAME, loop=0)


def _picture(observation: np.ndarray[Any, Any]) -> Image.Image:
    """Draw an observation: the newest of stacked frames in grey, a colour for each channel of bits, or its numbers."""
    if observation.ndim != 3:
        canvas = Image.new("RGB", (MIN_SIDE, MIN_SIDE), "black")
        text = np.array2string(observation, precision=2, threshold=40)
        ImageDraw.Draw(canvas).text((12, 12), text, font=ImageFont.load_default(16))
        return canvas
    if observation.max(initial=0) > 1:
        pixels = np.repeat(observation[-1][:, :, None], 3, axis=2)
    else:
        channels = len(observation)
        pixels = np.zeros((*observation.shape[1:], 3), np.uint8)
        for channel, cells in enumerate(observation):
            colour = [int(255 * part) for part in colorsys.hsv_to_rgb(channel / channels, 0.75, 1.0)]
            pixels[cells.astype(bool)] = colour
    height, width = pixels.shape[:2]
    scale = max(1, -(-MIN_SIDE // max(height, width)))
    return Image.fromarray(np.ascontiguousarray(pixels, np.uint8)).resize(
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
        colour = DEPTH_COLOURS[min(depth, len(DEPTH_COLOURS) - 1)]
        draw.rectangle((left, height + 8, left + 22, height + BAND - 8), fill=colour)
    return canvas
