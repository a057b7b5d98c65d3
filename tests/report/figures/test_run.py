"""The figures of training runs show what was logged and seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook.report
from adalook._pictures import DEPTH_COLOURS, PLANES, depth_colour, state_image
from adalook.report.data.state_gallery import GalleryFull, StateGallery
from adalook.report.data.training_run import TrainingRun, read_run_log
from adalook.report.figures.run_curves import depth_use, distances, learning_curves, losses
from adalook.report.figures.run_states import STATES_PER_DEPTH, depth_along_episodes, states_by_depth
from tests.report.synthetic_run import run_config, write_run


class Decision:
    def __init__(self, depth: int, action: int = 0, distances: dict[int, float] | None = None) -> None:
        self.depth, self.action, self.distances = depth, action, distances or {}


def loaded(place: Path, about: dict[str, Any] | None = None, **changes: Any) -> TrainingRun:
    about = run_config() if about is None else about
    return TrainingRun(place.name, about, {}, read_run_log(write_run(place, about, **changes)), None, "no reason")


def numbered(number: int) -> np.ndarray:
    """A state that shows its number in bits."""
    bits = [number >> place & 1 for place in range(12)]
    return np.array(bits, np.uint8).reshape(1, 3, 4)


def filled(depths: list[list[int]], **options: Any) -> StateGallery:
    """A gallery of episodes, given the depth of each of their decisions."""
    gallery = StateGallery("an agent", max_decisions=10_000, **options)
    for episode, chosen in enumerate(depths):
        for step, depth in enumerate(chosen):
            measured = {level: level + 0.5 for level in range(1, depth + 1)}
            gallery(episode, numbered(100 * episode + step), Decision(depth, step % 2, measured))
    return gallery


# Curves --------------------------------------------------------------------------------------------------------------


def test_the_learning_curve_is_the_running_mean_by_steps_and_by_time(tmp_path: Path) -> None:
    by_steps, by_time = learning_curves([loaded(tmp_path / "run")], "x").figure.axes
    dots, line = by_steps.lines[:2]
    np.testing.assert_allclose(dots.get_ydata(), np.arange(10, 1_001, 10) / 100)
    assert line.get_ydata()[-1] == pytest.approx(np.mean(np.arange(910, 1_001, 10) / 100))  # the last ten
    assert line.get_xdata()[-1] == 1_000
    assert by_time.lines[1].get_xdata()[-1] == 20.0
    assert by_time.get_xlabel() == "seconds of training"
    evaluated = by_steps.containers[0].lines[0]
    assert evaluated.get_xdata().tolist() == [400, 800]
    assert list(evaluated.get_ydata()) == [5.0, 9.0]


def test_without_a_clock_there_is_only_the_curve_by_steps(tmp_path: Path) -> None:
    run = loaded(tmp_path / "run")
    (tmp_path / "run" / "clock.jsonl").unlink()
    bare = TrainingRun("bare", run.config, {}, read_run_log(tmp_path / "run"), None)
    spec = learning_curves([bare], "x")
    assert len(spec.figure.axes) == 1
    assert spec.title == "Learning curve, by steps"


def test_runs_laid_over_each_other_are_told_apart(tmp_path: Path) -> None:
    runs = [loaded(tmp_path / f"run{number}") for number in range(9)]
    panel = learning_curves(runs, "x").figure.axes[0]
    lines = [line for line in panel.lines if line.get_label().startswith("run")]
    looks = {(line.get_color(), str(line._dash_pattern)) for line in lines}
    assert len(lines) == len(looks) == 9


def test_many_episodes_make_a_figure_no_larger(tmp_path: Path) -> None:
    spec = learning_curves([loaded(tmp_path / "run", steps=60_000)], "x")
    dots, line = spec.figure.axes[0].lines[:2]
    assert len(dots.get_xdata()) == 3_000
    assert line.get_xdata()[-1] == 60_000
    assert "3,000 of the 6,000 episodes" in spec.caption


def test_losses_are_drawn_where_there_were_updates(tmp_path: Path) -> None:
    spec = losses(loaded(tmp_path / "run"), "x")
    assert spec is not None
    loss, value = spec.figure.axes
    assert set(loss.lines[0].get_ydata()) == {0.5}
    assert set(value.lines[0].get_ydata()) == {2.0}
    assert losses(loaded(tmp_path / "idle", loss=None, mean_value=None), "x") is None


def test_shares_of_depths_are_stacked_to_one(tmp_path: Path) -> None:
    spec = depth_use(loaded(tmp_path / "run"), "x")
    assert spec is not None
    shares, merged = spec.figure.axes
    filled_areas = [patch for patch in shares.patches if patch.get_fill()]
    assert [patch.get_data().values[0] for patch in filled_areas] == [0.5, 0.75, 1.0]
    assert [patch.get_data().baseline[0] for patch in filled_areas] == [0.0, 0.5, 0.75]
    assert set(merged.lines[0].get_ydata()) == {0.25}


def test_agents_without_a_tree_have_no_figure_of_depths_and_fixed_ones_no_shares(tmp_path: Path) -> None:
    flat = loaded(tmp_path / "flat", run_config("dqn"), depths={"0": 100}, distances={}, merged_share=None)
    assert depth_use(flat, "x") is None
    assert distances(flat, "x") is None
    fixed = loaded(tmp_path / "fixed", run_config("dqn") | {"depth": 2}, depths={"2": 100}, distances={})
    spec = depth_use(fixed, "x")
    assert spec is not None
    assert len(spec.figure.axes) == 1
    assert "every decision searches to depth 2" in spec.title


def test_distances_have_a_panel_for_each_depth(tmp_path: Path) -> None:
    spec = distances(loaded(tmp_path / "run"), "x")
    assert spec is not None
    first, second = spec.figure.axes
    assert (first.get_title("left"), second.get_title("left")) == ("After depth 1", "After depth 2")
    assert (first.lines[0].get_ydata()[0], second.lines[0].get_ydata()[0]) == (0.2, 0.1)
    assert "changed the best value" in spec.caption
    prior = distances(loaded(tmp_path / "prior", run_config(prior="train")), "x")
    assert prior is not None
    assert "from the prior’s" in prior.caption


def lab_colours(colours: Sequence[str], sight: Sequence[Sequence[float]]) -> np.ndarray[Any, Any]:
    """Return colours (n, 3) in CIELAB as someone sees them whose receptors mix linear RGB by a matrix (3, 3)."""
    shares = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours]) / 255.0
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(sight), 0.0, 1.0)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = seen @ np.transpose(to_xyz) / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0).T
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)], axis=1)


@pytest.mark.parametrize(
    "sight",
    [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        # Machado, Oliveira and Fernandes 2009: no receptors for red, green, blue.
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ],
    ids=["all", "no red", "no green", "no blue"],
)
def test_the_colour_blind_can_tell_depths_apart(sight: list[list[float]]) -> None:
    colours = lab_colours(DEPTH_COLOURS, sight)
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2)
    assert apart[~np.eye(len(colours), dtype=bool)].min() >= 26.0


def test_the_page_has_the_colours_of_the_figures() -> None:
    script = (Path(adalook.report.__file__).parent / "assets" / "colours.js").read_text()
    (listed,) = re.findall(r"const DEPTHS = \[(.*?)\]", script)
    assert ["#" + colour for colour in re.findall(r"[0-9a-f]{6}", listed)] == list(DEPTH_COLOURS[:-1])


def test_depths_that_share_a_colour_share_an_entry_of_the_legend(tmp_path: Path) -> None:
    run = loaded(tmp_path / "run", depths={"8": 50, "9": 25, "12": 25})
    spec = depth_use(run, "x")
    assert spec is not None
    shares = spec.figure.axes[0]
    assert [text.get_text() for text in shares.get_legend().get_texts()] == ["depth 9 or more", "depth 8"]
    along = depth_along_episodes(filled([[8, 9, 12]]), "x")
    assert along is not None
    assert [text.get_text() for text in along.figure.legends[0].get_texts()] == ["depth 8", "depth 9 or more"]


def test_every_depth_has_a_colour_of_its_own_and_panels_go_on_in_the_next_row(tmp_path: Path) -> None:
    assert len({depth_colour(depth) for depth in range(10)}) == 10
    assert depth_colour(20) == depth_colour(9)
    deep = {str(depth): [0.1, 0.2, 0.3] for depth in range(1, 6)}
    spec = distances(loaded(tmp_path / "run", distances=deep), "x")
    assert spec is not None
    places = [panel.get_subplotspec() for panel in spec.figure.axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


# States --------------------------------------------------------------------------------------------------------------


def test_states_stand_in_the_row_of_their_depth_with_what_was_decided_below() -> None:
    gallery = filled([[1, 1, 3], [1, 3]], action_names=("left", "right"))
    figure = states_by_depth(gallery, "x").figure
    words = [panel.get_xlabel() for panel in figure.axes if panel.get_xlabel()]
    assert words == [
        "depth 1, left\nd₁ 1.5",
        "depth 1, right\nd₁ 1.5",
        "depth 1, left\nd₁ 1.5",
        "depth 3, left\nd₁ 1.5  d₂ 2.5\nd₃ 3.5",
        "depth 3, right\nd₁ 1.5  d₂ 2.5\nd₃ 3.5",
    ]
    rows = [[text.get_text() for text in panel.texts] for panel in figure.axes if panel.texts]
    assert [row[:2] for row in rows] == [["depth 1", "3 of 5"], ["depth 3", "2 of 5"]]


def test_examples_are_spread_over_the_episode_and_no_two_look_the_same() -> None:
    gallery = filled([[1] * 50])
    assert [state.step for state in gallery.examples(1, STATES_PER_DEPTH)] == [0, 8, 16, 24, 33, 41, 49]
    twins = StateGallery("an agent", max_decisions=100)
    for step in range(20):
        twins(0, numbered(step % 2), Decision(1))
    assert [state.step for state in twins.examples(1, 7)] == [0, 1]


def test_a_gallery_is_full_after_so_many_decisions() -> None:
    gallery = StateGallery("an agent", max_decisions=2)
    gallery(0, numbered(0), Decision(1))
    gallery(0, numbered(1), Decision(1))
    assert not gallery.cut_short
    with pytest.raises(GalleryFull):
        gallery(0, numbered(2), Decision(1))
    assert gallery.cut_short
    assert len(gallery.states) == 2
    assert "2 decisions, not all to their end" in states_by_depth(gallery, "x").caption


def test_planes_of_bits_are_coloured_frames_are_grey_and_vectors_are_numbers() -> None:
    planes = np.zeros((2, 1, 3), np.uint8)
    planes[0, 0, 1] = planes[1, 0, 2] = 1
    colours = ["#" + bytes(pixel).hex() for pixel in state_image(planes)[0]]
    assert colours == list(PLANES[:3])
    frames = np.stack([np.full((2, 2), grey, np.uint8) for grey in (10, 20)])
    assert np.unique(state_image(frames)).tolist() == [20]  # the newest
    assert state_image(np.array([0.5, 2.0])) == "0.5\n2"


def test_depth_along_the_episode_counts_every_decision_once() -> None:
    gallery = filled([[1, 2, 1, 2], [2, 2]])
    spec = depth_along_episodes(gallery, "x")
    assert spec is not None
    histogram, strips = spec.figure.axes
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in histogram.containers}
    assert heights == {"depth 1": [1, 0, 1, 0], "depth 2": [1, 2, 0, 1]}
    cells = strips.images[0].get_array()
    np.testing.assert_array_equal(cells.filled(0), [[1, 2, 1, 2], [2, 2, 0, 0]])
    seen = strips.images[0].cmap(strips.images[0].norm(2))
    assert "#" + bytes(round(255 * part) for part in seen[:3]).hex() == depth_colour(2)
    assert depth_along_episodes(filled([[1, 1]]), "x") is None
