"""Side by side with other solvers: `python -m benchmarks.planning`."""
