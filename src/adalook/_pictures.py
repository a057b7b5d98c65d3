"""The look of observations and lookahead depths, in figures of reports as in the GIF of an episode."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

DEPTH_COLOURS = (
    "#8c8c8c",
    *("#d2efbc", "#35c3dd", "#2f78d8", "#261690"),
    *("#f7cf33", "#ef8647", "#a32a17", "#660a62"),
    "#000000",
)
"""Depth 0 is grey, 1 to 4 are cold, 5 to 8 warm, each from light to dark; black is for all that are deeper.

Any two differ by at least 26 (CIE 1976 ΔE) in normal sight and without receptors for red, green or blue.
"""
PLANES = ("#000000", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#999999", "#ffffff")
"""Colours for observations that are planes of zeros and ones, background first."""
Pixels: TypeAlias = np.ndarray[Any, Any]
"""(height, width, 3) uint8"""


def depth_bin(depth: int) -> int:
    """Return the depth whose colour a depth has: itself, or the first of those that share the last colour."""
    return min(depth, len(DEPTH_COLOURS) - 1)


def depth_colour(depth: int) -> str:
    """Return the colour of a depth, the same in every figure; the deepest share the last one."""
    return DEPTH_COLOURS[depth_bin(depth)]


def depth_label(depth: int) -> str:
    """Return what a legend says beside the colour of a depth.

    >>> depth_label(3), depth_label(12)
    ('depth 3', 'depth 9 or more')
    """
    return f"depth {depth}" if depth < len(DEPTH_COLOURS) - 1 else f"depth {len(DEPTH_COLOURS) - 1} or more"


THUMBNAIL = 120
"""Pixels of a kept picture, each way."""


def state_image(observation: np.ndarray[Any, Any]) -> Pixels | str:
    r"""Return what a state looks like: the newest frame in grey, a colour per plane of bits, or numbers as text.

    >>> state_image(np.eye(2, dtype=bool)[None])[:, :, 2].tolist()
    [[178, 0], [0, 178]]
    >>> state_image(np.array([0.25, -1.0]))
    '0.25\n-1'
    """
    if observation.ndim == 3 and observation.max(initial=0) <= 1:
        planes = np.arange(1, len(observation) + 1)[:, None, None]
        topmost = (planes * (observation > 0)).max(axis=0).clip(max=len(PLANES) - 1)
        pixels: Pixels = _PALETTE[topmost]
        return pixels
    if observation.ndim in (2, 3) and observation.dtype == np.uint8:
        newest = observation if observation.ndim == 2 else observation[-1]
        return np.repeat(newest[:, :, None], 3, axis=2)
    return "\n".join(f"{number:.3g}" for number in observation.ravel()[:6].tolist())


_PALETTE = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in PLANES], np.uint8)
"""(planes, 3)"""


def thumbnail(picture: np.ndarray[Any, Any]) -> Pixels:
    """Return a rendered picture with at most THUMBNAIL pixels each way: pages and files hold many of them.

    >>> thumbnail(np.zeros((400, 600, 3), np.uint8)).shape
    (80, 120, 3)
    """
    step = -(-max(picture.shape[:2]) // THUMBNAIL)
    return np.ascontiguousarray(picture[::step, ::step])
