"""Layouts: where the states of a model lie on a grid, for figures and for aggregation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adalook._arrays import BoolArray, IntArray
from adalook._validation import as_array, integer
from adalook.errors import ModelError, shown

Cell = tuple[int, int]


def _listed(value: Any) -> list[Any]:
    """Return the items of a list, tuple or array; anything else is one thing that is wrong."""
    return list(value) if isinstance(value, list | tuple | np.ndarray) and getattr(value, "ndim", 1) != 0 else [None]


def _pairs(value: Any, name: str) -> tuple[Cell, ...]:
    """Return cells or moves as pairs of ints, or raise `ModelError`."""
    pairs = [
        [item.item() if isinstance(item, np.integer) else item for item in _listed(pair)] for pair in _listed(value)
    ]
    if not all(len(pair) == 2 and all(type(item) is int for item in pair) for pair in pairs):
        raise ModelError(f"layout: {name} is wrong", expected="pairs of ints", got=shown(value))
    return tuple((row, column) for row, column in pairs)


@dataclass(frozen=True, eq=False)
class Layout:
    """The grid of rows × columns on which states lie.

    `cells[s]` is the (row, column) of state s; states off the grid, such as a sink, have (-1, -1).
    `moves[a]` is the (row, column) step that action a tries to make, for arrows; (0, 0) for none.
    """

    cells: IntArray  # (S, 2)
    walls: BoolArray  # (rows, columns)
    moves: tuple[Cell, ...] = ()
    start: Cell | None = None
    goals: tuple[Cell, ...] = ()
    traps: tuple[Cell, ...] = ()
    action_names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        cells = np.array(as_array("layout: cells", self.cells, ModelError))
        walls = np.array(as_array("layout: walls", self.walls, ModelError))
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "walls", walls)
        if cells.ndim != 2 or cells.shape[1] != 2 or cells.dtype.kind not in "iu":
            raise ModelError("layout: cells are wrong", expected="ints (S, 2)", got=f"{cells.dtype} {cells.shape}")
        if walls.ndim != 2 or walls.dtype != np.bool_:
            raise ModelError("layout: walls are wrong", expected="bools (rows, columns)", got=f"{walls.dtype}")
        inside = ((cells >= 0) & (cells < walls.shape)).all(axis=1) | (cells == -1).all(axis=1)
        if not inside.all():
            state = int(np.argmin(inside))
            raise ModelError(
                f"layout: the cell of state {state} is off the grid",
                expected=f"within {walls.shape}, or (-1, -1) for a state that is not drawn",
                got=tuple(cells[state].tolist()),
            )

        for name in ("moves", "goals", "traps"):
            object.__setattr__(self, name, _pairs(getattr(self, name), name))
        if self.start is not None:
            (start,) = _pairs((self.start,), "start")
            object.__setattr__(self, "start", start)
        names: Any = self.action_names
        if isinstance(names, str) or not all(isinstance(name, str) for name in _listed(names)):
            raise ModelError("layout: action_names are wrong", expected="strings", got=shown(self.action_names))
        object.__setattr__(self, "action_names", tuple(_listed(names)))
        named = [*self.goals, *self.traps, *([] if self.start is None else [self.start])]
        for cell in named:
            if not (0 <= cell[0] < walls.shape[0] and 0 <= cell[1] < walls.shape[1]):
                raise ModelError(
                    "layout: a goal, trap or start is off the grid", expected=f"within {walls.shape}", got=cell
                )

    @property
    def num_states(self) -> int:
        """Number of states, on the grid or not."""
        return len(self.cells)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the grid."""
        return (self.walls.shape[0], self.walls.shape[1])

    def grid(self, per_state: np.ndarray, fill: float = np.nan) -> np.ndarray:
        """Return numbers (S,) as a grid (rows, columns); `fill` where there is no state."""
        result = np.full(self.shape, fill, float)
        on_grid = self.cells[:, 0] >= 0
        result[self.cells[on_grid, 0], self.cells[on_grid, 1]] = np.asarray(per_state)[on_grid]
        return result

    def squares(self, k: int) -> IntArray:
        """Return the group (S,) of each state: the k×k squares of the grid, split where walls divide a square.

        States off the grid, such as a sink, form groups of their own.

        >>> import adalook as al
        >>> maze = al.zoo.maze(size=30, seed=0)
        >>> groups = maze.layout.squares(3)
        >>> len(groups) == maze.num_states
        True
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        k = integer(min=1).validate("k", k)
        on_grid = self.cells[:, 0] >= 0
        number = np.full(self.shape, -1)
        number[self.cells[on_grid, 0], self.cells[on_grid, 1]] = np.flatnonzero(on_grid)
        square = self.cells // k
        links = []
        for step in ((0, 1), (1, 0)):
            ahead = self.cells + step
            inside = on_grid & np.all(ahead < self.shape, axis=1)
            neighbour = np.where(inside, number[tuple(np.where(inside[:, None], ahead, 0).T)], -1)
            same = (neighbour >= 0) & (square == ahead // k).all(axis=1)
            links.append((np.flatnonzero(same), neighbour[same]))
        rows, columns = (np.concatenate(part) for part in zip(*links, strict=True))
        graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(self.num_states,) * 2)
        return np.asarray(connected_components(graph, directed=False)[1])
