"""The same trees by plangym, which runs in a Python environment of its own.

Reads a job as JSON from standard input, prints a record as JSON. Breadth first with `step_batch`, which is the way
plangym is meant to be used; grey screens, not shrunk and not stacked, which spares it some work that ours does.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from typing import Any

MOST_AT_ONCE = 256
"""Nodes in one call: so that the time is looked at now and then, and memory stays small."""


def expand_tree(env: Any, state: Any, depth: int, num_actions: int, deadline: float) -> int:
    """Expand the tree below a state until the deadline; returns the number of nodes."""
    level, nodes = [state], 0
    for height in range(depth):
        states = [parent for parent in level for _ in range(num_actions)]
        actions = list(range(num_actions)) * len(level)
        level = []
        for start in range(0, len(states), MOST_AT_ONCE):
            some = slice(start, start + MOST_AT_ONCE)
            stepped = env.step_batch(actions=actions[some], states=states[some])
            nodes += len(states[some])
            if height + 1 < depth:
                level += [child for child, end in zip(stepped[0], stepped[3], strict=True) if not end]
            if time.perf_counter() > deadline:
                return nodes
    return nodes


def roots_along(env: Any, actions: list[int], every: int) -> list[Any]:
    """Return states along a trajectory."""
    state = env.reset()[0]
    roots = []
    for step, action in enumerate(actions, 1):
        state, _, _, terminated, *_ = env.step(action, state=state)
        if terminated:
            state = env.reset()[0]
        if step % every == 0:
            roots.append(state)
    return roots


def main() -> None:
    import plangym

    job = json.load(sys.stdin)
    options = {"frameskip": 4, "obs_type": "grayscale", "autoreset": False}
    env = plangym.make(job["game"], n_workers=job["workers"], **options)
    num_actions = int(env.action_space.n)
    roots = roots_along(env, job["actions"], job["every"])
    expand_tree(env, roots[0], 1, num_actions, float("inf"))
    begin, nodes = time.perf_counter(), 0
    deadline = begin + job["limit_seconds"]
    for root in roots:
        nodes += expand_tree(env, root, job["depth"], num_actions, deadline)
        if time.perf_counter() > deadline:
            break
    seconds = time.perf_counter() - begin
    version = importlib.metadata.version("plangym")
    print(json.dumps({"nodes": nodes, "seconds": seconds, "version": version}), flush=True)
    env.close()


if __name__ == "__main__":
    main()
