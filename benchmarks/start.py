"""What starting costs: importing, the very first solve, and the first of a later process: `python -m benchmarks.start`.

The very first solve compiles the kernels, so it is measured with an empty kernel cache in a folder of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = "import time; t = time.perf_counter(); import adalook; print(time.perf_counter() - t)"
SOLVE = (
    "import time; t = time.perf_counter(); import adalook as al; "
    "al.solve(al.zoo.maze(size=30, seed=0)); print(time.perf_counter() - t)"
)


def seconds(code: str, cache: str) -> float:
    """Run the code in a fresh process; it prints its own time."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return float(answer.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        print(
            f"import adalook                      {statistics.median(seconds(IMPORT, cache) for _ in range(5)):8.3f} s"
        )
        print(f"very first solve, compiling         {seconds(SOLVE, cache):8.1f} s")
        print(
            f"first solve of a later process      {statistics.median(seconds(SOLVE, cache) for _ in range(5)):8.2f} s"
        )


if __name__ == "__main__":
    main()
