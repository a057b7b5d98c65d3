"""A live line on the terminal that tells how far a solve is."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adalook.planning.solution import Iteration


class ProgressLine:
    """Context in which standard error shows one line, renewed after every pass."""

    def __init__(self, title: str) -> None:
        from rich.console import Console

        self._status = Console(stderr=True).status(f"{title} …")
        self._title = title

    def __enter__(self) -> ProgressLine:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._status.stop()

    def show(self, count: int, iteration: Iteration) -> None:
        """Show what the last of `count` passes did."""
        self._status.update(
            f"{self._title}: pass {count} ({iteration.evaluation}, {iteration.improvement}), "
            f"{iteration.changed:,} actions changed, depth up to {iteration.max_depth}, "
            f"policy loss <= {iteration.policy_loss:.2g}, {iteration.seconds:.1f} s"
        )
