"""The speed of this machine, by which runs of different machines have the same budget.

An experiment of days goes on wherever it is started again, and processor time buys twice as much on one machine as on
another, or on the same one while the other half of a core is idle. Budgets are seconds of a reference machine, the one
of the first runs on MinAtar: every run measures now and then what some fixed work takes here, and counts its processor
time accordingly.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

REFERENCE_SECONDS = 0.135
"""Processor time of the fixed work on the reference machine. DQN trained there for 600 steps a second on MinAtar's
Breakout; where it trains for 1,460 the work takes 0.0555 s."""
REPETITIONS = 3
PERIOD_SECONDS = 10.0
"""Processor time after which the speed is measured again; that takes a fiftieth of it, and does not count."""
UPDATES, WRITES = 300, 60


class ReferenceClock:
    """Counts time in seconds of the reference machine."""

    def __init__(self) -> None:
        self._speeds: list[float] = []
        self._since = 0.0

    @property
    def mean_speed(self) -> float | None:
        """The average of how many times as fast as the reference machine this one was; None if it was not measured."""
        return statistics.fmean(self._speeds) if self._speeds else None

    def converted(self, processor: float, wall: float) -> tuple[float, float]:
        """Return processor time and wall time of this machine in seconds of the reference machine."""
        self._since += processor
        if not self._speeds or self._since >= PERIOD_SECONDS:
            self._speeds.append(machine_speed())
            self._since = 0.0
        return processor * self._speeds[-1], wall * self._speeds[-1]


def machine_speed() -> float:
    """Return how many times as fast as the reference machine a core of this one is.

    >>> machine_speed() > 0.0
    True
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _fixed_work()  # what is loaded and allocated first is no measure
        return REFERENCE_SECONDS / statistics.median(_fixed_work() for _ in range(REPETITIONS))
    finally:
        torch.set_num_threads(threads)


def _fixed_work() -> float:
    """Return the processor time of small updates by autograd, and of writes into a small grid by the interpreter.

    It uses none of this package, which may become faster without the machine.
    """
    began = time.process_time()
    inputs = torch.linspace(0.0, 1.0, 32 * 400).reshape(32, 400)
    network = torch.nn.Sequential(torch.nn.Linear(400, 128), torch.nn.ReLU(), torch.nn.Linear(128, 6))
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        network(inputs).square().mean().backward()
        optimizer.step()
        grid = np.zeros((10, 10, 6), bool)
        for k in range(WRITES):
            grid[k % 10, (k * 7) % 10, k % 6] = True
    return time.process_time() - began
