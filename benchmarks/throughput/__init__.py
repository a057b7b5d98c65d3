"""Training steps per second, side by side with other DQNs: `python -m benchmarks.throughput`."""
