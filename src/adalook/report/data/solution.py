"""Solutions as `adalook solve` saved them: values, policy, bounds, layout and trace, checked on reading.

The files are those that `adalook.planning.solution_files` writes; none of them is trusted before it is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import FileError
from adalook.report.data.files import ResultFormat

MAKE_ONE = "make one with: adalook solve SOURCE --out DIRECTORY"
FORMAT = ResultFormat("solution", 2, "solution.json", MAKE_ONE, "save the solution again", digested=True)


@dataclass(frozen=True)
class SavedLayout:
    """The positions of states, walls and special cells on a grid; cells are (row, column)."""

    cells: np.ndarray  # (S, 2), -1 for states off the grid
    walls: np.ndarray  # (rows, columns) bools
    moves: tuple[tuple[int, int], ...]
    start: tuple[int, int] | None
    goals: tuple[tuple[int, int], ...]
    traps: tuple[tuple[int, int], ...]
    action_names: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return (self.walls.shape[0], self.walls.shape[1])

    def grid(self, per_state: np.ndarray) -> np.ndarray:
        """Place numbers (S,) on the grid (rows, columns); NaN where there is no state."""
        result = np.full(self.shape, np.nan)
        here = self.cells[:, 0] >= 0
        result[self.cells[here, 0], self.cells[here, 1]] = per_state[here]
        return result


@dataclass(frozen=True)
class SavedSolution:
    """A solution as it was saved: `about` is the JSON file, the arrays are (S,)."""

    about: dict[str, Any]
    values: np.ndarray
    policy: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    depth: np.ndarray | None
    """Deepest lookahead over all passes; None where it was not kept."""
    layout: SavedLayout | None
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()

    def state_label(self, state: int) -> str:
        """Return the name of a state or, if it has none, its number as text."""
        return self.state_names[state] if self.state_names else str(state)

    def action_label(self, action: int) -> str:
        """Return the name of an action or, if it has none, its number as text."""
        return self.action_names[action] if self.action_names else str(action)


@dataclass(frozen=True)
class SavedTrace:
    """Values, policy and depth in some passes of a solve, a row each; `frames` are their numbers."""

    frames: np.ndarray  # (F,)
    values: np.ndarray  # (F, S)
    policy: np.ndarray  # (F, S) the policy that the pass started from, whose values these are
    depth: np.ndarray  # (F, S)


def load_solution(directory: str | Path) -> SavedSolution:
    """Read `solution.npz` and `solution.json` from a directory.

    >>> load_solution("no/such/place")
    Traceback (most recent call last):
        ...
    adalook.errors.FileError: cannot read no/such/place/solution.json: got No such file or directory. Make one with: ...
    """
    place = Path(directory)
    about = FORMAT.read_index(place)
    arrays = FORMAT.read_arrays(place / "solution.npz", {"solution.npz": about.get("arrays_sha256")})
    try:
        num_states = int(about["model"]["states"])
        per_state = {name: _per_state(arrays[name], num_states) for name in ("values", "policy", "lower", "upper")}
        depth = _per_state(arrays["depth"], num_states) if "depth" in arrays else None
        layout = None if about["layout"] is None else _layout(about["layout"], arrays, num_states)
        names = about.get("names", {})
        state_names = _names(names.get("states", ()), num_states)
        action_names = _names(names.get("actions", ()), int(about["model"]["actions"]))
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise FileError(f"{place} holds a damaged solution", got=repr(error), remedy=MAKE_ONE) from error
    return SavedSolution(
        about=about, depth=depth, layout=layout, state_names=state_names, action_names=action_names, **per_state
    )


def load_trace(directory: str | Path, solution: SavedSolution) -> SavedTrace | None:
    """Read the `trace.npz` that belongs to a solution of the same directory; None if it was saved without one."""
    checksum = solution.about.get("trace_sha256")
    if checksum is None:
        return None
    path = Path(directory) / "trace.npz"
    arrays = FORMAT.read_arrays(path, {path.name: checksum})
    try:
        frames, passes = arrays["frames"], len(solution.about["trace"])
        shape = (len(frames), len(solution.values))
        trace = SavedTrace(frames, *(_numbers(arrays[name], shape) for name in ("values", "policy", "depth")))
        if not (np.diff(frames, prepend=-1) > 0).all() or not 0 < len(frames) <= frames[-1] + 1 <= passes:
            raise ValueError(f"frames are {frames.tolist()[:5]} …")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileError(f"{path} holds a damaged trace", got=repr(error), remedy=MAKE_ONE) from error
    return trace


def _names(given: Any, count: int) -> tuple[str, ...]:
    names = tuple(str(name) for name in given)
    if len(names) not in (0, count):
        raise ValueError(f"there are {len(names)} names for {count}")
    return names


def _per_state(array: np.ndarray, num_states: int) -> np.ndarray:
    return _numbers(array, (num_states,))


def _numbers(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape != shape or array.dtype.kind not in "iuf":
        raise ValueError(f"an array is {array.dtype} {array.shape}, expected numbers {shape}")
    return array


def _layout(about: dict[str, Any], arrays: dict[str, np.ndarray], num_states: int) -> SavedLayout:
    cells, walls = arrays["layout_cells"], arrays["layout_walls"]
    if walls.dtype != np.bool_ or walls.ndim != 2 or cells.dtype.kind not in "iu" or cells.shape != (num_states, 2):
        raise ValueError(f"the layout has cells {cells.shape} and walls {walls.shape}")
    if (cells >= walls.shape).any():
        raise ValueError(f"a state lies outside the grid of {walls.shape}")
    return SavedLayout(
        cells=cells,
        walls=walls,
        moves=_cells(about["moves"]),
        start=None if about["start"] is None else _cells([about["start"]])[0],
        goals=_cells(about["goals"]),
        traps=_cells(about["traps"]),
        action_names=tuple(str(name) for name in about.get("action_names", ())),
    )


def _cells(pairs: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(row), int(column)) for row, column in pairs)
