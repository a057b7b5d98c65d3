"""Run the benchmark: `python -m benchmarks.planning`."""

from benchmarks.planning.race import main

main()
