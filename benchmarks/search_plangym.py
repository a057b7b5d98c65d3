"""The same trees by plangym, in an environment of its own: it must not be installed beside ours.

Reads a job as JSON from standard input, prints a record as JSON. Breadth first with `step_batch`, which is the way
plangym is meant to be used; grey screens, not shrunk and not stacked, which spares it some work that ours does.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from typing import Any


def grown(env: Any, state: Any, depth: int, num_actions: int) -> int:
    """Make the tree below a state; returns its nodes."""
    level, nodes = [state], 0
    for height in range(depth):
        states = [parent for parent in level for _ in range(num_actions)]
        actions = list(range(num_actions)) * len(level)
        stepped = env.step_batch(actions=actions, states=states)
        nodes += len(states)
        children, ended = stepped[0], stepped[3]
        if height + 1 < depth:
            level = [child for child, end in zip(children, ended, strict=True) if not end]
    return nodes


def roots_of(env: Any, rollout: list[int], every: int) -> list[Any]:
    """States along a rollout."""
    state = env.reset()[0]
    roots = []
    for step, action in enumerate(rollout, 1):
        state, _, _, ended, *_ = env.step(action, state=state)
        if ended:
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
    roots = roots_of(env, job["rollout"], job["every"])
    grown(env, roots[0], 1, num_actions)
    begin, nodes = time.perf_counter(), 0
    for root in roots:
        nodes += grown(env, root, job["depth"], num_actions)
        if time.perf_counter() - begin > job["limit_seconds"]:
            break
    seconds = time.perf_counter() - begin
    version = importlib.metadata.version("plangym")
    print(json.dumps({"nodes": nodes, "seconds": seconds, "version": version}), flush=True)
    env.close()


if __name__ == "__main__":
    main()
