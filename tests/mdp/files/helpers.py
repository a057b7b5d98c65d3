"""Models for the tests of files, and a forger's tools."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np

import adalook as al
from adalook.mdp.files import npz
from adalook.mdp.transitions import Rows

Arrays = dict[str, np.ndarray]


def masked_model() -> al.MDP:
    """Ten states, three actions: certain moves, ordinary rows, a shared row and actions not on offer."""
    transitions = np.zeros((10, 3, 10))
    transitions[:, 0, :] = 0.1
    transitions[:, 1, 0] = 1.0
    transitions[np.arange(10), 2, np.arange(10)] = 0.25
    transitions[np.arange(10), 2, (np.arange(10) + 1) % 10] = 0.75
    mask = np.ones((10, 3), bool)
    mask[3, 1:] = mask[7, 0] = False
    rewards = np.random.default_rng(0).normal(size=(10, 3))
    layout = al.Layout(
        cells=np.array([*[*np.ndindex(2, 5)][:9], (-1, -1)]),
        walls=np.eye(2, 5, dtype=bool),
        moves=((0, 1), (0, 0), (-1, 0)),
        start=(0, 0),
        goals=((1, 3),),
        traps=((0, 4), (1, 4)),
        action_names=("jump", "zurück", "→"),
    )
    return al.MDP(rewards, transitions, 0.9, mask=mask, layout=layout)


def with_int64(mdp: al.MDP) -> al.MDP:
    rows = Rows(mdp.rows.indptr.astype(np.int64), mdp.rows.indices.astype(np.int64), mdp.rows.data.copy(), 1)
    return al.MDP._adopt(mdp.rewards.copy(), mdp.codes.astype(np.int64), rows, mdp.discount, None)


def parts(mdp: al.MDP) -> Arrays:
    rows = mdp.rows
    table: Arrays = {"rewards": mdp.rewards, "codes": mdp.codes, "data": rows.data}
    return table | {"indptr": rows.indptr, "indices": rows.indices}


def assert_same(first: al.MDP, second: al.MDP) -> None:
    for name, array in parts(first).items():
        other = parts(second)[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        assert array.tobytes() == other.tobytes(), name
    assert first.discount.hex() == second.discount.hex()
    assert first.rows.num_shared == second.rows.num_shared
    a, b = first.layout, second.layout
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert np.array_equal(a.cells, b.cells)
        assert np.array_equal(a.walls, b.walls)
        assert (a.moves, a.start, a.goals, a.traps) == (b.moves, b.start, b.goals, b.traps)
        assert a.action_names == b.action_names


def assert_same_model(first: al.MDP, second: al.MDP) -> None:
    """Equal rewards, actions on offer and rows; codes and layout may differ."""
    assert first.rewards.tobytes() == second.rewards.tobytes()
    assert np.array_equal(first.offered, second.offered)
    for s, a in np.argwhere(first.offered):
        for one, other in zip(first.transition_row(s, a), second.transition_row(s, a), strict=True):
            assert one.tolist() == other.tolist(), (s, a)


@st.composite
def models(draw: st.DrawFn) -> al.MDP:
    num_states, num_actions = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.random((num_states, num_actions, num_states)) * (rng.random((num_states,) * 2)[:, None] < 0.5)
    weights[:, :, 0] += 0.1
    mask = rng.random((num_states, num_actions)) < 0.7
    mask[:, draw(st.integers(0, num_actions - 1))] = True
    numbers = st.floats(-1e6, 1e6, allow_subnormal=True)
    rewards = draw(st.lists(numbers, min_size=mask.size, max_size=mask.size))
    discount = draw(st.floats(0.0, 0.999))
    transitions = weights / weights.sum(axis=2, keepdims=True)
    return al.MDP(np.reshape(rewards, mask.shape), transitions, discount, mask=mask)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0))
    return stream.getvalue()


def forge(path: Path, changes: dict[str, Any], header_changes: dict[str, Any] | None = None) -> Path:
    """Write the sample model with other arrays or header fields and the digest that belongs to them."""
    masked_model().save(path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files if name != "header"} | changes
        header = json.loads(content["header"].tobytes())
    header["arrays"] = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    header |= header_changes or {}
    header["digest"] = npz._digest(header, {k: np.ascontiguousarray(v) for k, v in arrays.items()})
    return pack(path, {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays})


def pack(path: Path, arrays: Arrays) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
    return path


def repack(path: Path, members: dict[str, bytes | None], method: int = zipfile.ZIP_STORED) -> Path:
    """Write the sample model with some members replaced or, where None, removed."""
    masked_model().save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, raw in (content | members).items():
            if raw is not None:
                archive.writestr(name, raw)
    return path


def changed(name: str, where: Any, value: Any) -> dict[str, np.ndarray]:
    array = parts(masked_model())[name].copy()
    array[where] = value
    return {name: array}
