"""Benchmarks: three races with peers, and two prices that nobody else's software has.

`python -m benchmarks.planning`, `benchmarks.search` and `benchmarks.throughput` run ours side by side with other
solvers, with plain recursion and with other DQNs, and write into `results/`. `benchmarks.start` (what importing and the
first solve cost, in the README) and `benchmarks.replay` (what the replay buffer costs, in docs/replay.md) print numbers
that pages quote, so that anybody can measure them again. `benchmarks.torture` counts what breaks under damage, malice
and bad luck.
"""
