"""The reference that searches are compared with: plain recursion over all paths, which merges no nodes."""

from __future__ import annotations

import hashlib

import numpy as np

from adalook.search import Root


def hashed_values(observations, depth):
    """Return values (n,) in [-1, 1) that look random but are equal for equal observations."""
    return np.array([_hashed(row.tobytes(), depth) for row in observations])


def _hashed(content, depth):
    digest = hashlib.blake2b(content, digest_size=8, salt=depth.to_bytes(4, "little")).digest()
    return int.from_bytes(digest, "little") / 2.0**63 - 1.0


def plain_action_values(sim, root, depth, discount, seed=0, value_fn=hashed_values):
    """Return the values (A,) of the first actions when the tree is cut at `depth`."""
    clone = sim.clone()

    def below(state, height, path_return):
        """Return the best value over all paths that go on from `state`."""
        best = -np.inf
        for action in range(sim.num_actions):
            best = max(best, after(state, action, height, path_return))
        return best

    def after(state, action, height, path_return):
        clone.restore(state)
        transition = clone.step(action)
        total = path_return + discount**height * transition.reward
        if transition.terminated or transition.episode_over:
            return total
        if height + 1 == depth:
            return total + discount**depth * float(value_fn(transition.observation[None], depth)[0])
        return below(clone.save(), height + 1, total)

    start = sim.reseed(root.state, seed)
    values = np.array([after(start, action, 0, 0.0) for action in range(sim.num_actions)])
    clone.close()
    return values


def plain_tree_nodes(sim, root, depth, seed=0):
    """Return how many steps a tree takes that merges nothing and stops at terminal states."""
    level, steps = [sim.reseed(root.state, seed)], 0
    for _ in range(depth):
        states = [state for state in level for _ in range(sim.num_actions)]
        children = sim.expand(states, list(range(sim.num_actions)) * len(level))
        steps += len(states)
        level = [
            state for state, terminated in zip(children.states, children.terminated, strict=True) if not terminated
        ]
        if not level:
            break
    return steps


def roots_along(sim, count, every, seed=0):
    """Return roots along a random trajectory, `every` steps apart."""
    rng = np.random.default_rng(seed)
    sim.reset(seed=seed)
    roots = []
    while len(roots) < count:
        for _ in range(every):
            if sim.step(int(rng.integers(sim.num_actions))).episode_over:
                sim.reset()
        roots.append(Root.of(sim))
    return roots


def assert_same(one, other):
    """Check that two results are equal bit for bit, apart from their times."""
    assert one.status == other.status
    assert (one.depth, one.action, one.value) == (other.depth, other.action, other.value)
    assert (one.nodes, one.tree_nodes, one.path) == (other.nodes, other.tree_nodes, other.path)
    for mine, theirs in zip(one.levels, other.levels, strict=True):
        for name in ("action_values", "returns", "leaf_observations", "leaf_terminated"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        assert (mine.nodes, mine.distinct) == (theirs.nodes, theirs.distinct)
        np.testing.assert_array_equal(mine.distance, theirs.distance)
