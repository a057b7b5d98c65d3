"""Many searches in a row do not grow memory, open files or processes."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from adalook.search import FixedDepth, Root, WorkerPool, search
from adalook.simulators.make import make_simulator


def resident_bytes(process_id="self"):
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children_of(process_id):
    """Return the ids of the child processes of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == process_id:
            found.append(int(stat.parent.name))
    return sorted(found)


def usage(workers):
    gc.collect()
    return {
        "memory": np.array([resident_bytes(), *(resident_bytes(pid) for pid in workers.process_ids)]),
        "files": len(os.listdir("/proc/self/fd")),
        "processes": children_of(os.getpid()),
    }


def assert_no_growth(env, searches, depth, allowed_bytes):
    sim = make_simulator(env)
    rng = np.random.default_rng(0)
    sim.reset(seed=0)

    def run(count, workers):
        for i in range(count):
            if sim.step(int(rng.integers(sim.num_actions))).episode_over:
                sim.reset()
            expander = workers if i % 2 else None
            search(sim, Root.of(sim), zero, FixedDepth(depth), discount=0.99, seed=i, expander=expander)

    with WorkerPool(sim, 2) as workers:
        run(max(100, searches // 10), workers)
        before = usage(workers)
        run(searches, workers)
        after = usage(workers)
    assert after["files"] == before["files"]
    assert after["processes"] == before["processes"]
    assert (after["memory"] - before["memory"]).max() < allowed_bytes


def zero(observations, depth):
    return np.zeros(len(observations))


@pytest.mark.parametrize("env", ["MinAtar/Asterix-v1"])
def test_a_thousand_searches_leave_nothing_behind(env):
    assert_no_growth(env, searches=1000, depth=2, allowed_bytes=3 * 2**20)


@pytest.mark.slow
@pytest.mark.parametrize(("env", "depth"), [("MinAtar/Asterix-v1", 3), ("ALE/Pong-v5", 1)])
def test_ten_thousand_searches_leave_nothing_behind(env, depth):
    assert_no_growth(env, searches=10_000, depth=depth, allowed_bytes=6 * 2**20)
