"""Worker processes: answers depend neither on their number nor on deaths, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from adalook.engines.base import LocalProcesses, Ray
from adalook.errors import ArgumentError
from adalook.search import Budget, FixedDepth, SearchStatus, WorkerError, WorkerPool, make_expander, search, search_many
from adalook.search.workers.pool import balanced_shares
from adalook.simulators.minatar import MinAtarSimulator
from tests.processes import child, running, wait_until
from tests.search.reference import assert_same, hashed_values, roots_along
from tests.search.sims import Deadly, Graph, Raising, Slow, SlowInOneProcess


def searched(sim, roots, expander=None, **options):
    return search_many(sim, roots, hashed_values, FixedDepth(3), discount=0.97, expander=expander, **options)


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_answers_do_not_depend_on_the_number_of_workers(count):
    sim = MinAtarSimulator("Seaquest", sticky=0.1)
    roots = roots_along(sim, 4, 13)
    alone = searched(sim, roots, width=20)
    with make_expander(sim, LocalProcesses(count) if count else None) as expander:
        for _ in range(2):
            for mine, theirs in zip(alone, searched(sim, roots, expander, width=20), strict=True):
                assert_same(mine, theirs)


def test_nodes_are_not_stepped_on_ray(monkeypatch):
    monkeypatch.setattr(Ray, "check", lambda self: None)
    with pytest.raises(ArgumentError, match="nodes of one tree are stepped on this machine"):
        make_expander(Graph(), Ray(2))
    with pytest.raises(ArgumentError, match="this is no engine"):
        make_expander(Graph(), 2)


def test_a_slow_worker_is_helped_out(tmp_path):
    sim = SlowInOneProcess(tmp_path, 0.02, os.getpid(), num_states=200, num_actions=8, seed=1, terminal=0.0)
    (root,) = roots_along(sim, 1, 1)
    expected = search(sim, root, hashed_values, FixedDepth(2), discount=0.9)
    with WorkerPool(sim, 2) as workers:
        assert_same(expected, search(sim, root, hashed_values, FixedDepth(2), discount=0.9, expander=workers))
    slow = (tmp_path / "slow").read_text()
    taken = {file.name: file.stat().st_size for file in tmp_path.glob("steps of *")}
    assert taken.pop(f"steps of {slow}") < 0.4 * expected.nodes < 0.6 * expected.nodes < sum(taken.values())


def test_a_worker_that_is_killed_between_levels_is_replaced():
    sim = Graph(40, 4, seed=3, terminal=0.05)
    (root,) = roots_along(sim, 1, 1)
    expected = search(sim, root, hashed_values, FixedDepth(4), discount=0.9, every_level=True)
    with WorkerPool(sim, 2) as workers:
        before = workers.process_ids

        def murderous(observations, depth):
            if depth in (1, 3):
                os.kill(workers.process_ids[0], signal.SIGKILL)
            return hashed_values(observations, depth)

        assert_same(
            search(sim, root, murderous, FixedDepth(4), discount=0.9, every_level=True, expander=workers), expected
        )
        assert workers.process_ids[0] != before[0]
        assert workers.process_ids[1] == before[1]
        assert_same(
            search(sim, root, hashed_values, FixedDepth(4), discount=0.9, every_level=True, expander=workers), expected
        )


@pytest.mark.parametrize("deaths", [1, 3])
def test_a_worker_that_dies_at_work_has_its_work_redone(tmp_path, deaths):
    graph = {"num_states": 30, "num_actions": 4, "seed": 1, "terminal": 0.0}
    sim = Graph(**graph)
    (root,) = roots_along(sim, 1, 1)
    expected = search(sim, root, hashed_values, FixedDepth(4), discount=0.9)
    deadly = Deadly(tmp_path, state=root.state, action=2, deaths=deaths, parent=os.getpid(), **graph)
    with WorkerPool(deadly, 2) as workers:
        result = search(deadly, root, hashed_values, FixedDepth(4), discount=0.9, expander=workers)
    assert len(list(tmp_path.iterdir())) == deaths
    assert_same(result, expected)


def test_workers_that_keep_dying_are_an_error(tmp_path):
    sim = Deadly(tmp_path, state=0, action=0, deaths=10**6, parent=os.getpid(), num_states=1)
    (root,) = roots_along(Graph(1), 1, 1)
    with WorkerPool(sim, 1) as workers, pytest.raises(WorkerError, match=r"4 worker processes in a row.*exit code 9"):
        searched(sim, [root], workers)


def test_a_bug_of_the_simulator_is_reported_and_the_workers_can_be_used_again():
    sim = Raising(10, 3)
    (root,) = roots_along(Graph(10, 3), 1, 1)
    with WorkerPool(sim, 2) as workers:
        for _ in range(2):
            with pytest.raises(WorkerError, match="no such thing"):
                searched(sim, [root], workers)


def test_closed_workers_say_so():
    sim = Graph()
    with WorkerPool(sim, 1) as workers:
        pass
    with pytest.raises(WorkerError, match="were closed"):
        searched(sim, roots_along(sim, 1, 1), workers)


def test_a_deadline_leaves_the_workers_in_order():
    sim = Slow(200, 4, seed=5, terminal=0.0, seconds=0.002)
    roots = roots_along(Graph(200, 4, seed=5, terminal=0.0), 2, 1)
    with WorkerPool(sim, 2) as workers:
        searched(sim, roots, workers)  # both are awake
        hurried = searched(sim, roots, workers, budget=Budget(seconds=0.05))
        unhurried = searched(sim, roots, workers)
    assert {result.status for result in hurried} == {SearchStatus.TIME_LIMIT}
    for mine, theirs in zip(unhurried, searched(Graph(200, 4, seed=5, terminal=0.0), roots), strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize("ending", ["close", "error", "forget"])
def test_nothing_is_left_after(ending):
    sim = Graph()
    (root,) = roots_along(sim, 1, 1)
    WorkerPool(sim, 1).close()  # multiprocessing itself keeps a file or two from now on
    files = open_files()
    workers = WorkerPool(sim, 2)
    searched(sim, [root], workers)
    process_ids = workers.process_ids
    assert all(map(running, process_ids))
    if ending == "close":
        workers.close()
    elif ending == "forget":
        del workers
    else:
        with pytest.raises(ZeroDivisionError), workers:
            search(sim, root, lambda leaves, depth: 1 / 0, FixedDepth(2), discount=0.9, expander=workers)
    assert wait_until(lambda: not any(map(running, process_ids)))
    assert open_files() == files


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_parent_is_killed_at_work(how):
    script = """
        from adalook.search import FixedDepth, WorkerPool, search
        from tests.search.reference import hashed_values, roots_along
        from tests.search.sims import Graph

        if __name__ == "__main__":
            sim = Graph(500, 4, terminal=0.0)
            (root,) = roots_along(sim, 1, 1)
            with WorkerPool(sim, 2) as workers:
                search(sim, root, hashed_values, FixedDepth(2), discount=0.9, expander=workers)
                print(*workers.process_ids, flush=True)
                while True:
                    search(sim, root, hashed_values, FixedDepth(5), discount=0.9, expander=workers)
    """
    code = textwrap.dedent(script)
    path = Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=path) as parent:
        assert parent.stdout is not None
        process_ids = [int(word) for word in parent.stdout.readline().split()]
        assert len(process_ids) == 2
        assert all(map(running, process_ids))
        time.sleep(0.1)
        parent.send_signal(how)
        parent.communicate(timeout=120)
        assert parent.returncode != 0
        assert wait_until(lambda: not any(map(running, process_ids)), 120.0)


def test_workers_end_with_their_parent_even_if_somebody_else_holds_their_pipes():
    """A forked process holds the parent's ends of all pipes, so that the parent's death does not close them."""
    script = """
        import os, signal, time
        from adalook.search import WorkerPool
        from tests.search.sims import Graph

        if __name__ == "__main__":
            workers = WorkerPool(Graph(), 2)
            sleeper = os.fork()
            if sleeper == 0:
                time.sleep(600)
                os._exit(0)
            print(sleeper, *workers.process_ids, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with child(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as parent:
        assert parent.stdout is not None
        sleeper, *process_ids = map(int, parent.stdout.readline().split())
        assert len(process_ids) == 2
        assert wait_until(lambda: not any(map(running, process_ids)), 120.0)
        assert running(sleeper)


def run_python(arguments, script=None):
    return subprocess.run(
        [sys.executable, *arguments],
        input=script,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[3],
        check=False,
    )


PIPED = """
import __main__
from adalook.search import FixedDepth, WorkerError, WorkerPool, search
from tests.search.reference import hashed_values, roots_along
from tests.search.sims import Graph

class Own(Graph):
    pass

if __name__ == "__main__":
    (root,) = roots_along(Graph(), 1, 1)
    name = __main__.__file__
    try:
        with WorkerPool({kind}(), 2) as workers:
            print(search(Graph(), root, hashed_values, FixedDepth(2), discount=0.9, expander=workers).depth)
    except WorkerError as error:
        print(error)
    assert __main__.__file__ == name == "<stdin>"
"""


def test_a_script_that_came_through_a_pipe_can_use_workers():
    done = run_python(["-"], PIPED.format(kind="Graph"))
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


def test_a_simulator_of_a_script_that_came_through_a_pipe_is_named():
    done = run_python(["-"], PIPED.format(kind="Own"))
    assert done.returncode == 0
    assert done.stdout.startswith("workers cannot import Own, which is defined in a script that is not a file. Save")


def test_a_script_that_is_a_file_can_define_its_simulator(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PIPED.format(kind="Own").replace('"<stdin>"', "__file__"))
    done = subprocess.run(
        [sys.executable, script.name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


def test_shares_are_fair_and_complete():
    rng = np.random.default_rng(0)
    for _ in range(200):
        count, num_actions, nodes = rng.integers(1, 5), rng.integers(1, 7), rng.integers(1, 40)
        shares = balanced_shares(rng.integers(0, count + 1, nodes), int(count), int(num_actions))
        assert sorted(np.concatenate(shares).tolist()) == list(range(nodes * num_actions))
        sizes = [len(share) for share in shares]
        assert max(sizes) <= 1.1 * nodes * num_actions / count + 1


def test_states_stay_where_they_are_when_that_is_fair():
    holders = np.array([1, 0] * 20)
    shares = balanced_shares(holders, 2, 3)
    for worker, share in enumerate(shares):
        assert set(holders[share // 3].tolist()) == {worker}
