"""Pictures of saved solutions, and the reader that trusts no file."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adalook as al
from adalook._pictures import depth_colour
from adalook.errors import FileError
from adalook.planning.solution_files import save_solution
from adalook.report.data.solution import load_solution
from adalook.report.figures import solution as picture
from adalook.report.figures.solution import draw_solution
from adalook.storage.documents import with_digest


def save(mdp: al.MDP, directory: Path, method: Any = None, **options: Any) -> Path:
    save_solution(al.solve(mdp, method, **options), mdp, directory, source="a model")
    return directory


def figure_of(directory: Path) -> Any:
    solution = load_solution(directory)
    return picture._figure(solution, solution.layout)


def pixels(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    return imread(path)


def test_what_is_read_is_what_was_saved(tmp_path: Path) -> None:
    maze = al.zoo.maze(size=12)
    solution = al.solve(maze)
    save_solution(solution, maze, tmp_path)
    read = load_solution(tmp_path)
    assert np.array_equal(read.values, solution.values)
    assert np.array_equal(read.upper, solution.upper)
    assert np.array_equal(read.layout.grid(read.values), maze.layout.grid(solution.values), equal_nan=True)
    assert read.layout.goals == maze.layout.goals


def test_a_small_grid_gives_png_and_svg(tmp_path: Path) -> None:
    drawn = draw_solution(save(al.zoo.maze(size=12), tmp_path))
    assert [path.name for path in drawn] == ["solution.png", "solution.svg"]
    assert pixels(drawn[0]).std() > 0.1
    assert drawn[1].read_text().rstrip().endswith("</svg>")


def test_the_same_solution_gives_the_same_bytes(tmp_path: Path) -> None:
    save(al.zoo.gridworld(3, 4), tmp_path)
    first = [path.read_bytes() for path in draw_solution(tmp_path)]
    assert [path.read_bytes() for path in draw_solution(tmp_path)] == first


def test_a_large_grid_gives_a_png_without_arrows(tmp_path: Path) -> None:
    save(al.zoo.maze(size=picture.SMALL_GRID + 1), tmp_path)
    assert [path.name for path in draw_solution(tmp_path)] == ["solution.png"]
    assert [axes.get_title() for axes in figure_of(tmp_path).axes[:2]] == ["Values", "Deepest lookahead per state"]


def test_arrows_point_where_the_policy_goes(tmp_path: Path) -> None:
    from matplotlib.quiver import Quiver

    grid = al.zoo.gridworld(1, 4, slip=0.0, holes=0.0)
    (arrows,) = [child for child in figure_of(save(grid, tmp_path)).axes[0].get_children() if isinstance(child, Quiver)]
    assert arrows.N == 3  # none below the goal
    assert (arrows.U > 0).all()
    assert (arrows.V == 0).all()


def test_the_depth_bar_names_the_depths_that_were_used(tmp_path: Path) -> None:
    maze = al.zoo.maze(size=12)
    method = al.QLPI({2: 0.1, 8: 0.05}, al.priors.exact(maze))
    figure = figure_of(save(maze, tmp_path, method, tolerance=0.0))
    figure.draw_without_rendering()
    bar = figure.axes[1].child_axes[0]
    assert [label.get_text() for label in bar.get_yticklabels()] == ["1", "2", "8"]
    assert bar.get_ylabel() == "depth in steps"
    image = figure.axes[1].images[0]
    seen = ["#" + bytes(round(255 * part) for part in image.cmap(image.norm(depth))[:3]).hex() for depth in (1, 2, 8)]
    assert seen == [depth_colour(depth) for depth in (1, 2, 8)]  # as in every other figure


def test_many_depths_get_whole_numbers_too(tmp_path: Path) -> None:
    figure = figure_of(save(al.zoo.gridworld(1, 40, slip=0.0, holes=0.0), tmp_path))
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[1].child_axes[0].get_yticklabels()]
    assert labels[0] == "1"
    assert 3 <= len(labels) <= 13
    assert all(float(label).is_integer() for label in labels)


def test_the_title_says_how_it_ended(tmp_path: Path) -> None:
    save(al.zoo.maze(size=12), tmp_path, al.PolicyIteration(), max_iterations=1)
    title = figure_of(tmp_path).get_suptitle()
    assert title.startswith("PI · iteration limit · 1 iteration · certified loss ≤ ")
    assert "a model" in title


def test_the_legend_names_only_what_is_there(tmp_path: Path) -> None:
    def names(mdp: al.MDP, directory: Path) -> list[str]:
        return [text.get_text() for text in figure_of(save(mdp, directory)).legends[0].get_texts()]

    assert names(al.zoo.maze(size=12), tmp_path / "maze") == ["start", "goal", "trap", "wall"]
    assert names(al.zoo.gridworld(3, 3, holes=0.0), tmp_path / "grid") == ["start", "goal"]


def test_without_depths_there_is_one_panel(tmp_path: Path) -> None:
    save(al.zoo.maze(size=12), tmp_path, keep_states=False)
    assert len(figure_of(tmp_path).axes) == 1


@pytest.mark.parametrize("walls", [(1, 1), (1, 9), (9, 1)])
def test_odd_shapes_constant_values_and_bare_layouts_can_be_drawn(walls: tuple[int, int], tmp_path: Path) -> None:
    n = walls[0] * walls[1]
    cells = np.stack(np.divmod(np.arange(n), walls[1]), axis=1)
    mdp = al.MDP(np.zeros((n, 1)), np.arange(n)[:, None], 0.9, layout=al.Layout(cells, np.zeros(walls, bool)))
    assert len(draw_solution(save(mdp, tmp_path))) == 2


def test_a_sink_off_the_grid_is_not_drawn(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    lake = al.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"))
    save(lake, tmp_path)
    assert lake.num_states == 17
    assert np.isfinite(load_solution(tmp_path).layout.grid(np.arange(17))).sum() == 16
    assert len(draw_solution(tmp_path)) == 2


def test_a_model_without_layout_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no layout"):
        draw_solution(save(al.zoo.chain(n=9), tmp_path))


def change_json(directory: Path, **changes: Any) -> None:
    path = directory / "solution.json"
    about = json.loads(path.read_text()) | changes
    del about["digest"]
    path.write_text(json.dumps(with_digest(about)))


def forge_arrays(directory: Path, **changes: Any) -> None:
    """Replace arrays, checksum and all."""
    import hashlib

    with np.load(directory / "solution.npz") as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    (directory / "solution.npz").write_bytes(buffer.getvalue())
    change_json(directory, arrays_sha256=hashlib.sha256(buffer.getvalue()).hexdigest())


DAMAGES = {
    "missing json": lambda d: (d / "solution.json").unlink(),
    "missing npz": lambda d: (d / "solution.npz").unlink(),
    "no json": lambda d: (d / "solution.json").write_bytes(b"\xff{"),
    "another json": lambda d: (d / "solution.json").write_text("[1]"),
    "nested json": lambda d: (d / "solution.json").write_text("[" * 100_000),
    "another version": lambda d: change_json(d, format_version=99),
    "no layout": lambda d: change_json(d, layout={}),
    "wrong states": lambda d: change_json(d, model={"states": 3}),
    "cut npz": lambda d: (d / "solution.npz").write_bytes((d / "solution.npz").read_bytes()[:-9]),
    "pickle": lambda d: forge_arrays(d, values=np.array([print], object)),
    "wrong shape": lambda d: forge_arrays(d, values=np.zeros((2, 2))),
    "off the grid": lambda d: forge_arrays(d, layout_cells=np.full(load_solution(d).layout.cells.shape, 10**6)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(damage: str, tmp_path: Path) -> None:
    save(al.zoo.gridworld(3, 3), tmp_path)
    DAMAGES[damage](tmp_path)
    with pytest.raises(FileError):
        draw_solution(tmp_path)
    assert not list(tmp_path.glob("*.png"))


def test_files_of_two_solutions_are_not_mixed_up(tmp_path: Path) -> None:
    save(al.zoo.gridworld(3, 3), tmp_path)
    npz = (tmp_path / "solution.npz").read_bytes()
    save(al.zoo.gridworld(3, 3, slip=0.5), tmp_path)
    (tmp_path / "solution.npz").write_bytes(npz)
    with pytest.raises(FileError, match="does not belong"):
        load_solution(tmp_path)


def test_drawing_needs_neither_models_nor_global_state(tmp_path: Path) -> None:
    save(al.zoo.gridworld(3, 3), tmp_path)
    code = (
        "import sys; from adalook.report.figures.solution import draw_solution; draw_solution(sys.argv[1]); "
        "bad = [m for m in sys.modules if m.startswith(('adalook.mdp', 'adalook.planning', 'matplotlib.pyplot'))]; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path)], check=True)
