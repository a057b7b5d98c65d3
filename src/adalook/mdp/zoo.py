"""Example models: the paper's chain and maze, and the usual random and textbook ones."""

from __future__ import annotations

import numpy as np

from adalook._validation import at_least_zero, finite, fraction, integer
from adalook.errors import ArgumentError
from adalook.mdp.checks import checked_discount
from adalook.mdp.files import check_memory
from adalook.mdp.layout import Layout
from adalook.mdp.model import MDP
from adalook.mdp.transitions import Rows, code_of_row, index_type

MOVES = ((-1, 0), (1, 0), (0, 1), (0, -1))
MOVE_NAMES = ("up", "down", "right", "left")
NUM_GOALS = 4


def chain(n: int = 59, discount: float = 0.9) -> MDP:
    """Return the chain of the paper's section "Motivating Example": states s_0 … s_n and a sink, the last state.

    Action 0 (u) moves on, and pays 1 − γ in s_n, where it stays; action 1 (d) falls into the sink.

    >>> import adalook as al
    >>> al.zoo.chain(n=59).num_states
    61
    """
    n = integer(min=1).validate("n", n)
    check_memory(f"a chain of {n} states", 40 * n)
    gamma = checked_discount(discount)
    sink = n + 1
    rewards = np.zeros((n + 2, 2))
    rewards[n, 0] = 1.0 - gamma
    next_states = np.full((n + 2, 2), sink)
    next_states[:n, 0] = np.arange(1, n + 1)
    next_states[n, 0] = n
    return MDP(rewards, next_states, gamma)


def maze(size: int = 30, seed: int = 0, discount: float = 0.98) -> MDP:
    """Return the maze of the paper's section "Maze Experiments": four rooms, four goals, one trap.

    Entering a goal pays 1 and moves to a uniformly random free cell (goals are no states); entering the trap
    pays −1; walking into a wall stays. Actions are up, down, right, left. The seed draws goals and trap.

    >>> import adalook as al
    >>> al.zoo.maze(size=30, seed=0)
    MDP(729 states, 4 actions, discount 0.98, 1 distinct stochastic rows)
    """
    size = integer(min=5).validate("size", size)
    check_memory(f"a maze of {size}×{size} cells", 40 * size * size)
    seed = integer(min=0).validate("seed", seed)
    gamma = checked_discount(discount)
    walls = _four_rooms(size)
    free = np.flatnonzero(~walls)
    start = free[0]
    rng = np.random.default_rng(seed)
    special = rng.choice(free[1:], NUM_GOALS + 1, replace=False)
    goals, trap = special[:NUM_GOALS], special[NUM_GOALS]

    is_goal = np.zeros(size * size, bool)
    is_goal[goals] = True
    kind = index_type(size * size)
    cells = free[~is_goal[free]].astype(kind, copy=False)
    del free  # of a large maze every array counts
    num_states = len(cells)
    number = np.full(size * size, -1, kind)
    number[cells] = np.arange(num_states, dtype=kind)

    relocation = number[cells[cells != trap]]
    row = Rows(
        np.array([0, len(relocation)], kind),
        relocation,
        np.full(len(relocation), 1.0 / len(relocation)),
        num_shared=1,
    )
    flat_walls = walls.ravel()
    rewards = np.zeros((num_states, len(MOVES)))
    codes = np.empty((num_states, len(MOVES)), kind)
    for a, (down, right) in enumerate(MOVES):
        ahead = cells + kind(down * size + right)
        ahead = np.where(flat_walls[ahead], cells, ahead)
        enters_goal = is_goal[ahead]
        codes[:, a] = number[ahead]
        codes[enters_goal, a] = code_of_row(0)
        rewards[enters_goal, a] = 1.0
        rewards[(ahead == trap) & (cells != trap), a] = -1.0
    del ahead, enters_goal, number

    def cell(flat: int) -> tuple[int, int]:
        return int(flat) // size, int(flat) % size

    layout = Layout(
        cells=np.stack(np.divmod(cells, kind(size)), axis=1),
        walls=walls,
        moves=MOVES,
        start=cell(start),
        goals=tuple(cell(g) for g in goals),
        traps=(cell(trap),),
        action_names=MOVE_NAMES,
    )
    return MDP._adopt(rewards, codes, row, gamma, layout)


def garnet(num_states: int, num_actions: int, branching: int, seed: int = 0, discount: float = 0.99) -> MDP:
    """Return a random model: each (state, action) has `branching` successors and a normally distributed reward.

    Successors are drawn with replacement; the probabilities of repeated ones are summed.

    >>> import adalook as al
    >>> al.zoo.garnet(100, 4, 5, seed=1).num_states
    100
    """
    num_states = integer(min=1).validate("num_states", num_states)
    num_actions = integer(min=1).validate("num_actions", num_actions)
    branching = integer(min=1).validate("branching", branching)
    if branching > num_states:
        raise ArgumentError(
            "garnet: branching is larger than the model", expected=f"at most num_states = {num_states}", got=branching
        )
    check_memory(f"a garnet of {num_states}×{num_actions}×{branching}", 20 * num_states * num_actions * branching)
    rng = np.random.default_rng(integer(min=0).validate("seed", seed))
    rewards = rng.standard_normal((num_states, num_actions))
    shape = (num_states, num_actions, branching)
    successors = rng.integers(0, num_states, shape, dtype=index_type(num_states))
    weights = rng.exponential(size=shape)
    weights /= weights.sum(axis=2, keepdims=True)

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return rewards[states], successors[states], weights[states]

    return MDP.from_function(fn, num_states, num_actions, discount)


def forest(
    num_states: int = 3, fire: float = 0.1, wait_reward: float = 4.0, cut_reward: float = 2.0, discount: float = 0.96
) -> MDP:
    """Return the forest management problem: a forest grows year by year unless it burns; action 0 waits, 1 cuts.

    The oldest forest pays `wait_reward` when left and `cut_reward` when cut; a younger one pays 1 when cut.

    >>> import adalook as al
    >>> al.solve(al.zoo.forest()).policy
    array([0, 0, 0], dtype=int32)
    """
    n = integer(min=2).validate("num_states", num_states)
    check_memory(f"a forest of {n} states", 60 * n)
    fire = fraction.validate("fire", fire)
    rewards = np.zeros((n, 2))
    rewards[-1] = finite.validate("wait_reward", wait_reward), finite.validate("cut_reward", cut_reward)
    rewards[1:-1, 1] = 1.0

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        older = np.minimum(states + 1, n - 1)
        young = np.zeros_like(states)
        successors = np.stack([np.stack([young, older], 1), np.stack([young, young], 1)], axis=1)
        chances = np.broadcast_to([[fire, 1.0 - fire], [1.0, 0.0]], successors.shape)
        return rewards[states], successors, chances

    return MDP.from_function(fn, n, 2, discount)


def gridworld(
    rows: int = 8, columns: int = 8, slip: float = 0.2, seed: int = 0, discount: float = 0.95, holes: float = 0.1
) -> MDP:
    """Return a grid where moves slip sideways; the last cell pays 1 and, like the holes, absorbs.

    Args:
        rows: of the grid.
        columns: of the grid.
        slip: probability that a move goes to either side instead.
        seed: draws the holes.
        discount: γ.
        holes: share of cells that are holes.

    >>> import adalook as al
    >>> float(al.solve(al.zoo.gridworld(4, 4, slip=0.0, holes=0.0)).values[0].round(3))
    0.774
    """
    rows, columns = integer(min=1).validate("rows", rows), integer(min=1).validate("columns", columns)
    check_memory(f"a grid of {rows}×{columns} cells", 200 * rows * columns)
    slip, holes = fraction.validate("slip", slip), fraction.validate("holes", holes)
    n = rows * columns
    if n < 2:
        raise ArgumentError("the grid is too small", expected="at least two cells", got=f"{rows}×{columns}")
    rng = np.random.default_rng(integer(min=0).validate("seed", seed))
    absorbing = rng.random(n) < holes
    absorbing[0], absorbing[n - 1] = False, True
    sideways = ((2, 3), (2, 3), (0, 1), (0, 1))

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        row, column = np.divmod(states, columns)
        ahead = np.stack(
            [
                np.clip(row + down, 0, rows - 1) * columns + np.clip(column + right, 0, columns - 1)
                for down, right in MOVES
            ],
            axis=1,
        )
        ahead = np.where(absorbing[states][:, None], states[:, None], ahead)
        successors = np.stack([ahead[:, [a, *sideways[a]]] for a in range(4)], axis=1)
        chances = np.broadcast_to([1.0 - slip, slip / 2, slip / 2], successors.shape)
        pays = (successors == n - 1) & (states != n - 1)[:, None, None]
        return (pays * chances).sum(axis=2), successors, chances

    cells = np.stack(np.divmod(np.arange(n), columns), axis=1)
    last = (rows - 1, columns - 1)
    pits = tuple((int(i) // columns, int(i) % columns) for i in np.flatnonzero(absorbing[:-1]))
    layout = Layout(cells, np.zeros((rows, columns), bool), MOVES, (0, 0), (last,), pits, MOVE_NAMES)
    return MDP.from_function(fn, n, 4, discount, layout=layout)


def queue(num_states: int = 100, num_actions: int = 5, discount: float = 0.99) -> MDP:
    """Return a queue whose service rate is controlled; the state is the number of customers.

    In each period a customer arrives with probability 0.3, or one is served with a probability from 0.1 to 0.5 by the
    action. Waiting costs the queue's length over its capacity, the server a tenth of the square of its speed.

    >>> import adalook as al
    >>> al.solve(al.zoo.queue(100)).policy[[0, 10, 50]]
    array([0, 4, 4], dtype=int32)
    """
    n = integer(min=2).validate("num_states", num_states)
    speed = np.linspace(0.1, 0.5, integer(min=1).validate("num_actions", num_actions))
    arrival = 0.3

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        more, less = np.minimum(states + 1, n - 1), np.maximum(states - 1, 0)
        successors = np.repeat(np.stack([less, states, more], axis=1)[:, None, :], len(speed), axis=1)
        chances = np.stack([speed, 1.0 - arrival - speed, np.full_like(speed, arrival)], axis=1)
        rewards = -states[:, None] / n - 0.1 * speed**2
        return rewards, successors, np.broadcast_to(chances, successors.shape)

    return MDP.from_function(fn, n, len(speed), discount)


def inventory(capacity: int = 20, demand: float = 5.0, discount: float = 0.95) -> MDP:
    """Return a stock of up to `capacity` items: order some every morning, sell what a random demand asks for.

    The action is the number of items ordered, which arrive at once; what exceeds the capacity is never offered. The
    demand is Poisson with mean `demand`. An item costs 2, an order 4 more, a sale earns 5, and each item kept 0.1.

    >>> import adalook as al
    >>> int(al.solve(al.zoo.inventory()).policy[0])
    17
    """
    n = integer(min=1).validate("capacity", capacity) + 1
    mean = at_least_zero.validate("demand", demand)
    asked = np.exp(-mean) * np.cumprod(np.concatenate([[1.0], mean / np.arange(1.0, n - 1)]))
    asked = np.append(asked, max(0.0, 1.0 - asked.sum()))[:n]  # the last: as many as there can be, or more
    asked /= asked.sum()
    stock, order = np.divmod(np.arange(n * n), n)
    level = np.minimum(stock + order, n - 1)
    sold = np.minimum(np.arange(n), level[:, None])
    chances = np.zeros((n * n, n))
    np.add.at(chances, (np.arange(n * n)[:, None], level[:, None] - sold), asked)
    rewards = 5.0 * sold @ asked - 2.0 * order - 4.0 * (order > 0) - 0.1 * (level - sold @ asked)
    offered = (stock + order < n).reshape(n, n)
    return MDP(rewards.reshape(n, n), chances.reshape(n, n, n), discount, mask=offered)


def layered(
    layers: int = 20, width: int = 50, num_actions: int = 4, branching: int = 3, seed: int = 0, discount: float = 0.99
) -> MDP:
    """Return a random model in layers: every move leads to the next layer, those of the last one stay within it.

    >>> import adalook as al
    >>> al.zoo.layered(layers=10, width=30).num_states
    300
    """
    layers, width = integer(min=1).validate("layers", layers), integer(min=1).validate("width", width)
    actions = integer(min=1).validate("num_actions", num_actions)
    branching = integer(min=1).validate("branching", branching)
    rng = np.random.default_rng(integer(min=0).validate("seed", seed))
    n = layers * width
    rewards = rng.standard_normal((n, actions))
    within = rng.integers(width, size=(n, actions, branching))
    weights = rng.exponential(size=within.shape)
    weights /= weights.sum(axis=2, keepdims=True)

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ahead = np.minimum(states // width + 1, layers - 1) * width
        return rewards[states], ahead[:, None, None] + within[states], weights[states]

    return MDP.from_function(fn, n, actions, discount)


def blocks(
    num_blocks: int = 20,
    size: int = 50,
    num_actions: int = 4,
    coupling: float = 0.001,
    seed: int = 0,
    discount: float = 0.99,
) -> MDP:
    """Return a nearly decomposable random model: moves stay within their block, and leave it with a small probability.

    >>> import adalook as al
    >>> al.zoo.blocks(10, 30).num_states
    300
    """
    num_blocks, size = integer(min=1).validate("num_blocks", num_blocks), integer(min=1).validate("size", size)
    actions = integer(min=1).validate("num_actions", num_actions)
    coupling = fraction.validate("coupling", coupling)
    rng = np.random.default_rng(integer(min=0).validate("seed", seed))
    n = num_blocks * size
    rewards = rng.standard_normal((n, actions))
    within = rng.integers(size, size=(n, actions, 3))
    outside = rng.integers(n, size=(n, actions, 1))
    weights = rng.exponential(size=within.shape)
    weights *= (1.0 - coupling) / weights.sum(axis=2, keepdims=True)

    def fn(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        start = (states // size * size)[:, None, None]
        successors = np.concatenate([start + within[states], outside[states]], axis=2)
        leave = np.full((len(states), actions, 1), coupling)
        return rewards[states], successors, np.concatenate([weights[states], leave], axis=2)

    return MDP.from_function(fn, n, actions, discount)


def _four_rooms(size: int) -> np.ndarray:
    """Return the walls (size, size): a border, a cross in the middle and two doors in each of its bars."""
    walls = np.zeros((size, size), bool)
    walls[[0, -1], :] = walls[:, [0, -1]] = True
    middle, doors = size // 2, [size // 4, 3 * size // 4]
    walls[middle, :] = walls[:, middle] = True
    walls[middle, doors] = walls[doors, middle] = False
    return walls


__all__ = ["blocks", "chain", "forest", "garnet", "gridworld", "inventory", "layered", "maze", "queue"]
