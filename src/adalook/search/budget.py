"""How much a search may cost. A search that runs out of it answers with its last complete level."""

from __future__ import annotations

from dataclasses import dataclass

from adalook.errors import ArgumentError
from adalook.search.rule import is_number


@dataclass(frozen=True)
class Budget:
    """Limits of one search. The first level is always completed, since without it there is no answer.

    >>> Budget(nodes=500, seconds=0.05)
    Budget(nodes=500, seconds=0.05)
    """

    nodes: int | None = None
    """Steps that may be simulated for one root. A level that would go beyond is not begun."""
    seconds: float | None = None
    """Time for the whole call. A level that is not complete by then is given up; value functions are waited for."""

    def __post_init__(self) -> None:
        for name, limit in (("nodes", self.nodes), ("seconds", self.seconds)):
            if limit is not None and not (is_number(limit) and limit > 0):
                raise ArgumentError(f"the budget of {name} is wrong", expected="a number > 0, or None", got=repr(limit))
