"""A process that makes checkpoints as fast as it can and says so after each: the tests kill it at any moment.

    python checkpoint_writer.py RUN

State number n can be told from its parts, so that a mixture of two would be noticed.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import numpy as np

from adalook.learning.runs.directory import RunDirectory
from adalook.storage.serializer import Segment


def state_of(step: int) -> dict[str, Any]:
    """Three segments, of which two are shared with the step before, an array and plain data."""
    segments = [Segment(np.full(50_000, k, np.int64)) for k in range(step, step + 3)]
    return {"step": step, "weights": np.full(30_000, step, np.float64), "segments": segments}


def steps_in(state: dict[str, Any]) -> set[int]:
    """The step each part of a state says it is of: one, unless it is a mixture."""
    firsts = [segment.payload.view(np.int64) for segment in state["segments"]]
    return {
        state["step"],
        *np.unique(state["weights"]).astype(int).tolist(),
        *(int(value) - k for k, values in enumerate(firsts) for value in np.unique(values)),
    }


def main() -> None:
    """Go on from the newest checkpoint, for ever."""
    with RunDirectory(sys.argv[1]) as run:
        newest = run.load_newest()
        for step in count(newest.step + 1 if newest else 1):
            run.save(step, state_of(step))
            print(step, flush=True)


if __name__ == "__main__":
    main()
