"""Planning, side by side with other solvers: `python -m benchmarks.planning`."""
