"""Frames: exact area means, and the same bits whether made anew or line by line."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pytest

from adalook.simulators.ale.frames import SIDE, FrameConverter


def put(converter: FrameConverter, slot: int, codes: np.ndarray[Any, Any], greys: np.ndarray[Any, Any]) -> None:
    """Capture a screen as the emulator does: greys are given only if the converter does not know them yet."""
    converter.screen[:] = codes
    if not converter.capture(slot):
        converter.learn_greys(slot, greys[codes])


def exact_mean(picture: np.ndarray[Any, Any], y: int, x: int) -> Fraction:
    """The mean over output pixel (y, x), by the definition."""
    height, width = picture.shape
    total = Fraction(0)
    for row in range(y * height // SIDE, -(-(y + 1) * height // SIDE)):
        down = min(Fraction((y + 1) * height, SIDE), row + 1) - max(Fraction(y * height, SIDE), row)
        for column in range(x * width // SIDE, -(-(x + 1) * width // SIDE)):
            across = min(Fraction((x + 1) * width, SIDE), column + 1) - max(Fraction(x * width, SIDE), column)
            total += down * across * int(picture[row, column])
    return total / Fraction(height * width, SIDE * SIDE)


@pytest.mark.parametrize("height", [210, 214, 220, 230, 250])
def test_frames_are_exact_means_of_the_brighter_screen(height: int) -> None:
    rng = np.random.default_rng(height)
    greys = rng.permutation(256).astype(np.uint8)
    converter = FrameConverter(height, 160)
    codes = rng.integers(256, size=(2, height, 160), dtype=np.uint8)
    for slot in (0, 1):
        put(converter, slot, codes[slot], greys)
    converter.resize()
    picture = greys[codes].max(axis=0)
    for y, x in [*rng.integers(SIDE, size=(300, 2)), (0, 0), (83, 83), (0, 83), (83, 0)]:
        assert converter.frame[y, x] == int(exact_mean(picture, int(y), int(x)) + Fraction(1, 2))
    resized = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(int)
    off = np.argwhere(converter.frame != resized)
    assert len(off) < SIDE
    for y, x in off:  # OpenCV rounds a half as float32 happens to fall
        assert exact_mean(picture, int(y), int(x)).denominator == 2
        assert abs(int(converter.frame[y, x]) - resized[y, x]) == 1


def test_a_used_converter_gives_the_frames_of_a_new_one() -> None:
    rng = np.random.default_rng(0)
    greys = rng.permutation(256).astype(np.uint8)
    converter = FrameConverter(210, 160)
    screens = np.zeros((2, 210, 160), np.uint8)
    for turn in range(60):
        top, left = rng.integers((200, 150))
        screens[turn % 2, top : top + 9, left : left + 9] = rng.integers(1 + 4 * turn)  # new colours come up late
        fresh = FrameConverter(210, 160)
        for slot in (0, 1):
            put(converter, slot, screens[slot], greys)
            put(fresh, slot, screens[slot], greys)
        converter.resize()
        fresh.resize()
        assert np.array_equal(converter.frame, fresh.frame)
