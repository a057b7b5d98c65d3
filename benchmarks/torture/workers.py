"""Worker faults: processes killed at random moments, simulators that hang, raise or answer with what is no number."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np

import adalook as al
from adalook.search import Budget, FixedDepth, SearchResult, make_expander, search
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY, REFUSED, Row, Scale, attempt
from tests.search.reference import hashed_values, roots_along
from tests.search.sims import Graph, Hanging, WrongNumbers

SEARCHES, HANGS, NUMBERS = 200, 20, 40
"""In the full torture."""


def _search(sim: Graph, root: object, expander: object, seconds: float | None = None) -> SearchResult:
    budget = Budget(seconds=seconds)
    return search(sim, root, hashed_values, FixedDepth(5), discount=0.9, expander=expander, budget=budget)


def _killed(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row(
        "workers", "killed during searches", frozenset({DIFFERENT, FOREIGN, HANG, MEMORY, REFUSED}), "same answers"
    )
    sim = Graph(60, 4, seed=3, terminal=0.02)
    (root,) = roots_along(sim, 1, 1)
    expected = _search(sim, root, None)
    with make_expander(sim, al.LocalProcesses(2)) as pool:
        for _ in range(scale.count(SEARCHES, least=3)):
            delay = float(rng.uniform(0.0, 0.05))
            number = int(rng.integers(2))

            def kill(number: int = number) -> None:
                with contextlib.suppress(ProcessLookupError, IndexError, ValueError):  # it may just be replaced
                    os.kill(pool.process_ids[number], signal.SIGKILL)  # type: ignore[attr-defined]

            timer = threading.Timer(delay, kill)
            timer.start()
            outcome, what = attempt(
                lambda: _search(sim, root, pool),
                lambda found: (
                    bool((found.action_values == expected.action_values).all()) and found.action == expected.action
                ),
            )
            timer.join()
            row.add(outcome, what)
    return row


def _hanging(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row(
        "workers", "simulators that hang in a worker", frozenset({DIFFERENT, FOREIGN, HANG, MEMORY}), "time is kept"
    )
    for _ in range(scale.count(HANGS)):
        sim = Hanging(os.getpid(), after=int(rng.integers(4, 60)), num_states=60, num_actions=4, seed=3, terminal=0.0)
        with make_expander(sim, al.LocalProcesses(2)) as pool:
            (root,) = roots_along(Graph(60, 4, seed=3, terminal=0.0), 1, 1)
            began = time.perf_counter()
            outcome, what = attempt(
                lambda sim=sim, root=root, pool=pool: _search(sim, root, pool, 1.0), lambda found: True
            )
            late = time.perf_counter() - began > 15.0
            row.add(HANG if late else outcome, what)
    return row


def _numbers(scale: Scale, rng: np.random.Generator) -> Row:
    row = Row(
        "workers",
        "rewards and observations that are no numbers",
        frozenset({"equal", DIFFERENT, FOREIGN, HANG, MEMORY}),
    )
    for _ in range(scale.count(NUMBERS, least=4)):
        value = float(rng.choice([math.nan, math.inf, -math.inf]))
        wrong = {"reward": value} if rng.random() < 0.5 else {"observation": value}
        sim = WrongNumbers(**wrong, at=int(rng.integers(2, 60)), num_states=60, num_actions=4, seed=3, terminal=0.0)
        with make_expander(sim, al.LocalProcesses(1) if rng.integers(0, 2) else None) as pool:
            (root,) = roots_along(Graph(60, 4, seed=3, terminal=0.0), 1, 1)
            row.add(*attempt(lambda sim=sim, root=root, pool=pool: _search(sim, root, pool), lambda found: True))
    return row


def rows(scale: Scale) -> Iterator[Row]:
    """Search with workers that fail."""
    rng = np.random.default_rng([scale.seed, 5])
    yield _numbers(scale, rng)
    yield _hanging(scale, rng)
    yield _killed(scale, rng)
