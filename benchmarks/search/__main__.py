"""Run the benchmark: `python -m benchmarks.search`."""

from benchmarks.search.race import main

main()
