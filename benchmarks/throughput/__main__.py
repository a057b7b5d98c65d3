"""Run the benchmark: `python -m benchmarks.throughput`."""

from benchmarks.throughput.race import main

main()
