"""Plain data survives packing exactly; everything else, and every damage, is refused."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adalook.errors import ArgumentError, FileError
from adalook.storage.packing import pack_plain, unpack_plain

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_data_survives(value: Any) -> None:
    packed = pack_plain(value)
    back = unpack_plain(packed)
    assert back == value
    assert type(back) is type(value)
    assert pack_plain(back) == packed


@given(plain, st.data())
def test_damage_is_refused_or_harmless(value: Any, data: st.DataObject) -> None:
    packed = bytearray(pack_plain(value))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(FileError):
        unpack_plain(bytes(packed))
    with pytest.raises(FileError, match="damaged"):
        unpack_plain(pack_plain(value)[:-1])


def test_unusual_floats_survive() -> None:
    back = unpack_plain(pack_plain((math.nan, -0.0, math.inf)))
    assert math.isnan(back[0])
    assert math.copysign(1, back[1]) == -1
    assert back[2] == math.inf


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.array(2.5), np.zeros((0, 3)), np.array([b"SF", b"HG"]), np.array([True])]
)
def test_arrays_survive(array: Any) -> None:
    back = unpack_plain(pack_plain(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


def test_numpy_scalars_keep_their_type() -> None:
    back = unpack_plain(pack_plain(np.int16(7)))
    assert back == 7
    assert type(back) is np.int16


@pytest.mark.parametrize("value", [object(), {1, 2}, [lambda: 0], np.array([None])])
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="without pickle"):
        pack_plain(value)


def test_a_list_in_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArgumentError, match="contains itself"):
        pack_plain(loop)
