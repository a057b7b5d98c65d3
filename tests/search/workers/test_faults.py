"""Simulators that hang or answer with what is no number: a search ends in time, and says what is wrong."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from adalook.engines.base import LocalProcesses
from adalook.errors import SimulatorError
from adalook.search import Budget, FixedDepth, SearchStatus, make_expander, search
from tests.processes import child, running, wait_until
from tests.search.reference import hashed_values, roots_along
from tests.search.sims import Graph, Hanging, WrongNumbers


def searched(sim, expander, **options):
    (root,) = roots_along(Graph(40, 4, seed=3, terminal=0.0), 1, 1)
    return search(sim, root, hashed_values, FixedDepth(4), discount=0.9, expander=expander, **options)


def test_a_simulator_that_hangs_in_a_worker_does_not_hang_the_search(monkeypatch):
    monkeypatch.setattr(sys.modules["adalook.search.workers.base"], "MIN_GRACE_SECONDS", 300.0)
    sim = Hanging(os.getpid(), after=8, num_states=40, num_actions=4, seed=3, terminal=0.0)
    with make_expander(sim, LocalProcesses(2)) as expander:
        result = searched(sim, expander, budget=Budget(seconds=3.0))
        assert result.status is SearchStatus.TIME_LIMIT
        assert result.depth >= 1


def test_a_first_step_that_hangs_is_an_error(monkeypatch):
    monkeypatch.setattr(sys.modules["adalook.search.workers.base"], "MIN_GRACE_SECONDS", 3.0)
    monkeypatch.setattr(sys.modules["adalook.search.workers.base"], "GRACE", 1.0)
    sim = Hanging(os.getpid(), num_states=40, num_actions=4, seed=3, terminal=0.0)
    with make_expander(sim, LocalProcesses(1)) as expander, pytest.raises(SimulatorError, match="has not answered"):
        searched(sim, expander, budget=Budget(seconds=1.0))


def test_workers_that_hang_die_with_their_parent():
    script = """
    import os
    from adalook.search import FixedDepth, WorkerPool, search
    from tests.search.reference import hashed_values
    from tests.search.sims import Hanging
    sim = Hanging(os.getpid(), num_states=40, num_actions=4, seed=3, terminal=0.0)
    pool = WorkerPool(sim, 2)
    print(*pool.process_ids, flush=True)
    search(sim, sim.save(), hashed_values, FixedDepth(3), discount=0.9, expander=pool)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with child(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        workers = [int(word) for word in process.stdout.readline().split()]
        assert len(workers) == 2
        time.sleep(1.0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert wait_until(lambda: not any(running(pid) for pid in workers), seconds=120)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("wrong", [{"reward": math.nan}, {"reward": math.inf}, {"observation": math.nan}])
@pytest.mark.parametrize("at", [2, 9])
def test_what_is_no_number_is_refused_with_its_place(workers, wrong, at):
    sim = WrongNumbers(**wrong, at=at, num_states=40, num_actions=4, seed=3, terminal=0.0)
    engine = LocalProcesses(workers) if workers else None
    with (
        make_expander(sim, engine) as expander,
        pytest.raises(SimulatorError, match=r"action \d in state .*(wrong reward|not fin)"),
    ):
        searched(sim, expander)
