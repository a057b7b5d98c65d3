"""Plain data comes back exactly as it was; everything else, and every damage, is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adalook.errors import ArgumentError, FileError
from adalook.storage.serializer import Segment, add_digest, check_digest, deserialize, serialize

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20)
keys = st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.booleans())
plain_data = st.recursive(
    leaves,
    lambda part: (
        st.lists(part, max_size=4) | st.lists(part, max_size=4).map(tuple) | st.dictionaries(keys, part, max_size=4)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in type and bits; nan equals nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


@settings(max_examples=200, deadline=None)
@given(plain_data)
def test_plain_data_comes_back_with_its_types_and_to_the_same_bytes(value: Any) -> None:
    data = serialize(value)
    assert same(deserialize(data), value)
    assert serialize(deserialize(data)) == data


@given(plain_data, st.data())
def test_damage_is_refused_or_harmless(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(serialize(value))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(FileError):
        deserialize(bytes(damaged))
    with pytest.raises(FileError, match="damaged"):
        deserialize(serialize(value)[:-1])


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.zeros((0, 4), np.float32),
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.array([np.nan, -0.0, np.inf]),
        np.array([True, False]),
        np.array([b"SF", b"HG"]),
        np.array(["γ"]),
        np.array([1.5], ">f8"),
        np.array([2**64 - 1], np.uint64),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_come_back_as_they_were(array: Any) -> None:
    again = deserialize(serialize(array))
    assert same(again, array)
    assert again.flags.writeable


def test_numpy_scalars_keep_their_type() -> None:
    assert same(deserialize(serialize((np.int16(7), np.float64(0.1)))), (np.int16(7), np.float64(0.1)))


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, lambda: 0, np.array([None]), np.zeros(1, [("a", "i4")]), Segment(np.zeros(1))]
)
def test_what_would_not_come_back_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"at /agent/best/0 without pickle: expected .*, got "):
        serialize({"agent": {"best": [value]}})
    with pytest.raises(ArgumentError, match="at / without pickle"):
        serialize(value)


def test_a_list_in_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArgumentError, match="contains itself"):
        serialize(loop)


def test_segments_are_named_and_their_bytes_left_to_the_caller() -> None:
    large = Segment(np.arange(10_000))
    segments: dict[str, Segment] = {}
    data = serialize({"frames": [large, large]}, segments)
    assert len(data) < 200
    assert list(segments) == [large.digest]
    assert deserialize(data, segments)["frames"][1] is large
    with pytest.raises(FileError, match=f"damaged.*no segment {large.digest[:12]}"):
        deserialize(data)


def test_a_segment_cannot_be_written_to() -> None:
    segment = Segment(np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        segment.payload[0] = 1


def test_a_digest_belongs_to_its_owner() -> None:
    data = add_digest(b"state", "CartPole-v1")
    assert check_digest(data, "CartPole-v1") == b"state"
    for bad, owner in ((data, "CartPole-v0"), (data[:-1], "CartPole-v1"), (data + b"x", "CartPole-v1"), (b"", "x")):
        with pytest.raises(FileError, match=f"not a packed state of {owner}, or it is damaged"):
            check_digest(bad, owner)


@pytest.mark.parametrize(
    "dtype", ["i4,(", ",", "f8,f8", "S", "O", "<O8", "<V4", "<M8", "(2,)<f8", None, 7, ["i4"], {"a": 1}, "<f99999"]
)
def test_dtypes_are_taken_from_a_short_list(dtype: Any) -> None:
    with pytest.raises(FileError, match="damaged"):
        deserialize(b"a" + serialize((dtype, (1,), b"abcdefgh")))


@pytest.mark.parametrize("shape", [(2**70,), (-1, -1), "ab", [[1]], None])
def test_shapes_that_do_not_fit_are_refused(shape: Any) -> None:
    with pytest.raises(FileError, match="damaged"):
        deserialize(b"a" + serialize(("<f8", shape, b"abcdefgh" * 2)))
