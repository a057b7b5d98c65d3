"""The figure of searches along a trajectory."""

from __future__ import annotations

import numpy as np
import pytest

from adalook.errors import FileError
from adalook.report.figures import search_view
from adalook.storage.arrays import pack_arrays


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.0, 0.0, 0.0], ["all actions tie at 0"]),
        ([0.0, None, 0.0], ["×", "all actions that were kept tie at 0"]),
        ([0.5, 0.5, 0.5], []),
        ([0.0, 0.25, 0.0], []),
    ],
)
def test_a_figure_of_equal_values_says_so(values, words):
    known = [value for value in values if value is not None]
    search = {"step": 0, "path": [0], "path_rewards": [0.0], "action": 0, "action_values": values, "value": max(known)}
    search |= {"depth": 1, "nodes": 3, "saved": 0}
    frame = np.zeros((4, 4), np.uint8)
    about = {"env": "an env", "rule": "depth 1", "searches": [search]}
    figure = search_view._figure(about, {"root_0": frame, "path_0": frame[None]})
    assert [text.get_text() for text in figure.axes[-1].texts] == words


def test_damaged_files_are_named(tmp_path):
    with pytest.raises(FileError, match="cannot read the searches"):
        search_view.draw_searches(tmp_path)
    (tmp_path / "search.json").write_text('{"format": "adalook search", "format_version": 2, "searches": []}')
    with pytest.raises(FileError, match="another format"):
        search_view.draw_searches(tmp_path)


def test_members_that_nobody_named_and_pictures_that_grow_without_end_are_refused(tmp_path):
    (tmp_path / "search.json").write_text(
        '{"format": "adalook search", "format_version": 1, "searches": [{"path": []}]}'
    )
    honest = {"root_0": np.zeros(3), "path_0": np.zeros((0, 3))}
    (tmp_path / "search.npz").write_bytes(pack_arrays(honest))
    assert search_view.load_searches(tmp_path)[1].keys() == honest.keys()
    for arrays, word in (({"nobody": np.zeros(3)}, "nobody"), ({"root_0": np.zeros(2**22)}, "claim")):
        (tmp_path / "search.npz").write_bytes(pack_arrays(honest | arrays))
        with pytest.raises(FileError, match=word):
            search_view.load_searches(tmp_path)
