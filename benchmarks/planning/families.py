"""Model families of the planning benchmark beyond those of `al.zoo`: one function each, from sizes and a discount.

What solvers find hard differs from family to family: slow mixing (walks, grids, lazy moves), dense rows, many actions,
acyclic parts, several time scales, rows that many states share. Numbers are drawn with fixed seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import adalook as al

Array = np.ndarray[Any, Any]


def dense(num_states: int, num_actions: int, discount: float) -> al.MDP:
    """Every state can follow every state: rows of exponential weights."""
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=(num_states, num_actions, num_states))
    weights /= weights.sum(axis=2, keepdims=True)
    return al.MDP(rng.standard_normal((num_states, num_actions)), weights, discount)


def many_actions(num_states: int, num_actions: int, discount: float) -> al.MDP:
    """Many actions, each of which leads to a random half of the states."""
    rng = np.random.default_rng(0)
    shape = (num_states, num_actions, num_states)
    weights = rng.exponential(size=shape) * (rng.random(shape) < 0.5)
    weights[..., 0] += 1e-3
    weights /= weights.sum(axis=2, keepdims=True)
    return al.MDP(rng.standard_normal(shape[:2]), weights, discount)


def lattice(side: int, slip: float, discount: float) -> al.MDP:
    """A cube of cells with six slippery moves, a random cost per cell, and one corner that pays."""
    n = side**3
    rng = np.random.default_rng(0)
    cost = -rng.random(n)
    moves = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])

    def fn(states: Array) -> tuple[Array, Array, Array]:
        place = np.stack(np.unravel_index(states, (side,) * 3), axis=1)
        moved = np.clip(place[:, None, :] + moves, 0, side - 1)
        ahead = np.ravel_multi_index(tuple(np.moveaxis(moved, 2, 0)), (side,) * 3)
        others = [[a, *(b for b in range(6) if b // 2 != a // 2)] for a in range(6)]
        chances = np.broadcast_to([1.0 - slip, *[slip / 4] * 4], (len(states), 6, 5))
        return np.repeat(np.where(states == n - 1, 5.0, cost[states])[:, None], 6, 1), ahead[:, others], chances

    return al.MDP.from_function(fn, n, 6, discount)


def lazy(num_states: int, stay: float, discount: float) -> al.MDP:
    """A random model whose every move stays in place with a large probability: two time scales."""
    rng = np.random.default_rng(0)
    successors = rng.integers(num_states, size=(num_states, 3, 5))
    successors[..., 0] = np.arange(num_states)[:, None]
    chances = rng.dirichlet(np.ones(4), size=(num_states, 3)) * (1.0 - stay)
    chances = np.concatenate([np.full((num_states, 3, 1), stay), chances], axis=2)
    rewards = rng.standard_normal((num_states, 3))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), num_states, 3, discount)


def web(num_states: int, discount: float) -> al.MDP:
    """A random model with a few states that most others lead to, as links of the web do."""
    rng = np.random.default_rng(0)
    successors = (num_states * rng.power(0.3, size=(num_states, 4, 8))).astype(int)
    chances = rng.dirichlet(np.ones(8), size=(num_states, 4))
    rewards = rng.standard_normal((num_states, 4))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), num_states, 4, discount)


def restart(num_states: int, discount: float) -> al.MDP:
    """A ring to walk along either way, slipping, on which every move may be sent back to a random state."""
    rng = np.random.default_rng(0)
    rewards = rng.standard_normal((num_states, 2))
    everywhere = np.full(num_states, 1.0 / num_states)
    walk = 0.9 * np.eye(num_states)
    steps = np.stack([np.roll(walk, 1, 1) + np.roll(walk, -1, 1) / 18, np.roll(walk, -1, 1)], axis=1)
    steps[:, 1] += 0.05 * np.eye(num_states)
    steps += (1.0 - steps.sum(axis=2, keepdims=True)) * everywhere
    return al.MDP(rewards, steps, discount)


def shuffled_dag(num_states: int, discount: float) -> al.MDP:
    """An acyclic model of a few sinks whose states are numbered at random."""
    rng = np.random.default_rng(0)
    place = rng.permutation(num_states)  # place[i]: the number of the i-th state in topological order
    rank = np.empty(num_states, int)
    rank[place] = np.arange(num_states)
    rewards = rng.standard_normal((num_states, 4))
    chances = rng.dirichlet(np.ones(3), size=(num_states, 4))
    jump = rng.geometric(20 / num_states, size=(num_states, 4, 3))
    ahead = np.minimum(rank[:, None, None] + jump, num_states - 1)
    successors = place[ahead]
    rewards[place[-1]] = 0.0
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), num_states, 4, discount)


def option(steps: int, discount: float) -> al.MDP:
    """Optimal stopping, an American put on a binomial tree: hold or exercise at every node of the tree."""
    time, ups = np.tril_indices(steps)
    n = len(time) + 1
    price = 100.0 * np.exp(0.3 / np.sqrt(steps) * (2.0 * ups - time))
    number = np.full((steps + 1, steps + 1), n - 1)
    number[time, ups] = np.arange(n - 1)
    rewards = np.zeros((n, 2))
    rewards[:-1, 1] = np.maximum(0.0, 100.0 - price)
    successors = np.full((n, 2, 2), n - 1)
    successors[:-1, 0, 0], successors[:-1, 0, 1] = number[time + 1, ups], number[time + 1, ups + 1]
    chances = np.broadcast_to([[0.49, 0.51], [1.0, 0.0]], (n, 2, 2))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), n, 2, discount)


def gambler(goal: int, num_actions: int, discount: float) -> al.MDP:
    """The gambler's problem: stake some of one's capital on a coin that is worse than fair."""

    def fn(s: Array) -> tuple[Array, Array, Array]:
        stake = np.minimum(1 + np.arange(num_actions), np.minimum(s, goal - s)[:, None])
        stake = np.where((s == goal)[:, None], 0, stake)
        ends = np.stack([s[:, None] + stake, s[:, None] - stake], axis=2)
        chances = np.broadcast_to([0.4, 0.6], ends.shape)
        pays = 0.4 * ((ends[..., 0] == goal) & (s != goal)[:, None])
        return pays, ends, chances

    return al.MDP.from_function(fn, goal + 1, num_actions, discount)


def replacement(num_states: int, discount: float) -> al.MDP:
    """A machine that wears out by random jumps; keep it, overhaul it, or buy a new one."""
    wear = np.array([0.3, 0.3, 0.2, 0.1, 0.05, 0.05])

    def fn(s: Array) -> tuple[Array, Array, Array]:
        steps = np.arange(len(wear))
        keep = np.minimum(s[:, None] + steps, num_states - 1)
        overhaul = np.minimum((s // 2)[:, None] + steps, num_states - 1)
        new = np.broadcast_to(steps, keep.shape)
        cost = s / num_states
        rewards = np.stack([-(cost**2) * 10.0, -2.0 - cost, np.full(len(s), -5.0)], axis=1)
        return rewards, np.stack([keep, overhaul, new], axis=1), np.broadcast_to(wear, (len(s), 3, len(wear)))

    return al.MDP.from_function(fn, num_states, 3, discount)


def car_rental(cars: int, discount: float) -> al.MDP:
    """Sutton and Barto's two car lots, with up to `cars` in each; move up to five overnight."""
    counts = np.arange(cars + 1)

    def poisson(mean: float) -> Array:
        chance = np.exp(-mean) * np.cumprod(np.concatenate([[1.0], mean / np.arange(1.0, 2 * cars + 2)]))
        return chance / chance.sum()

    def lot(requests: float, returns: float) -> tuple[Array, Array]:
        ahead, rented = np.zeros((cars + 1, cars + 1)), np.zeros(cars + 1)
        asked, back = poisson(requests), poisson(returns)
        for have in counts:
            served = np.minimum(np.arange(len(asked)), have)
            rented[have] = asked @ served
            for count, chance in zip(served, asked, strict=True):
                np.add.at(ahead[have], np.minimum(have - count + np.arange(len(back)), cars), chance * back)
        return ahead, rented

    (first, rent_one), (second, rent_two) = lot(3.0, 3.0), lot(4.0, 2.0)
    moves = np.arange(-5, 6)
    one, two = np.divmod(np.arange((cars + 1) ** 2), cars + 1)
    left = np.clip(one[:, None] - moves, 0, cars)
    right = np.clip(two[:, None] + moves, 0, cars)
    rewards = 10.0 * (rent_one[left] + rent_two[right]) - 2.0 * np.abs(moves)
    rows = [np.kron(first[a], second[b]) for a, b in zip(left.ravel(), right.ravel(), strict=True)]
    table = np.array(rows).reshape(len(one), len(moves), -1)
    table[table < 1e-14] = 0.0
    table /= table.sum(axis=2, keepdims=True)
    return al.MDP(rewards, table, discount)


def tandem(size: int, discount: float) -> al.MDP:
    """Two queues in a row: the service rate of each is chosen, customers leave the first for the second."""
    arrive, slow, fast = 0.3, 0.25, 0.35

    def fn(s: Array) -> tuple[Array, Array, Array]:
        one, two = np.divmod(s, size)
        rates = np.array([[a, b] for a in (slow, fast) for b in (slow, fast)])
        more = np.minimum(one + 1, size - 1) * size + two
        moved = np.where((one > 0) & (two < size - 1), s - size + 1, s)
        left = np.where(two > 0, s - 1, s)
        successors = np.repeat(np.stack([more, moved, left, s], axis=1)[:, None, :], 4, 1)
        chances = np.empty((len(s), 4, 4))
        chances[..., 0], chances[..., 1], chances[..., 2] = arrive, rates[:, 0], rates[:, 1]
        chances[..., 3] = 1.0 - chances[..., :3].sum(axis=2)
        price = 5.0 * (rates == fast).sum(axis=1)
        return -(one + two)[:, None] / size * 10.0 - price, successors, chances

    return al.MDP.from_function(fn, size * size, 4, discount)


def river_swim(num_states: int, discount: float) -> al.MDP:
    """A river to swim up against its current, for a large reward at the far end and a small one at the near end."""

    def fn(s: Array) -> tuple[Array, Array, Array]:
        down, up = np.maximum(s - 1, 0), np.minimum(s + 1, num_states - 1)
        successors = np.stack([np.stack([down, down, down], 1), np.stack([down, s, up], 1)], axis=1)
        chances = np.broadcast_to([[1.0, 0.0, 0.0], [0.05, 0.6, 0.35]], successors.shape)
        return np.stack([0.005 * (s == 0), 1.0 * (s == num_states - 1)], axis=1), successors, chances

    return al.MDP.from_function(fn, num_states, 2, discount)


def pendulum(side: int, discount: float) -> al.MDP:
    """A pendulum to swing up by five torques, on a grid of angles and speeds with bilinear interpolation."""
    angles, speeds = np.linspace(-np.pi, np.pi, side, endpoint=False), np.linspace(-8.0, 8.0, side)
    torques = np.linspace(-2.0, 2.0, 5)

    def fn(s: Array) -> tuple[Array, Array, Array]:
        angle, speed = angles[s // side][:, None], speeds[s % side][:, None]
        rewards = -(angle**2 + 0.1 * speed**2 + 0.001 * torques**2)
        faster = np.clip(speed + 0.05 * (15.0 * np.sin(angle) + 3.0 * torques), -8.0, 8.0)
        turned = (angle + 0.05 * faster + np.pi) % (2.0 * np.pi)
        return (rewards, *_bilinear(turned / (2.0 * np.pi) * side, (faster + 8.0) / 16.0 * (side - 1), side, True))

    return al.MDP.from_function(fn, side * side, 5, discount)


def mountain_car(side: int, discount: float) -> al.MDP:
    """The mountain car, on a grid of positions and speeds with bilinear interpolation; the top is left never."""
    places, speeds = np.linspace(-1.2, 0.6, side), np.linspace(-0.07, 0.07, side)
    pushes = np.array([-1.0, 0.0, 1.0])

    def fn(s: Array) -> tuple[Array, Array, Array]:
        place, speed = places[s // side][:, None], speeds[s % side][:, None]
        top = np.broadcast_to(place >= 0.5, (len(s), 3))
        faster = np.clip(speed + 0.001 * pushes - 0.0025 * np.cos(3.0 * place), -0.07, 0.07)
        moved = np.clip(place + faster, -1.2, 0.6)
        faster = np.where(moved <= -1.2, 0.0, faster)
        successors, chances = _bilinear((moved + 1.2) / 1.8 * (side - 1), (faster + 0.07) / 0.14 * (side - 1), side)
        successors = np.where(top[..., None], s[:, None, None], successors)
        return np.where(top, 0.0, -1.0), successors, chances

    return al.MDP.from_function(fn, side * side, 3, discount)


def _bilinear(x: Array, y: Array, side: int, round_about: bool = False) -> tuple[Array, Array]:
    """The four grid points around each (x, y), in units of the grid, and their weights."""
    left = np.floor(x).astype(int) if round_about else np.clip(np.floor(x).astype(int), 0, side - 2)
    below = np.clip(np.floor(y).astype(int), 0, side - 2)
    u, v = x - left, y - below
    columns = [left % side, (left + 1) % side] if round_about else [left, left + 1]
    successors = np.stack([c * side + below + k for c in columns for k in (0, 1)], axis=-1)
    chances = np.stack([a * b for a in (1.0 - u, u) for b in (1.0 - v, v)], axis=-1)
    return successors, np.clip(chances, 0.0, 1.0)


def admission(classes: int, room: int, discount: float) -> al.MDP:
    """Calls of several classes share the lines of a switchboard; admit or refuse each, by its class and the load."""
    rng = np.random.default_rng(0)
    pay = np.sort(rng.uniform(1.0, 10.0, classes))
    share = rng.dirichlet(np.ones(classes)) * 0.6

    def fn(s: Array) -> tuple[Array, Array, Array]:
        load, kind = np.divmod(s, classes)
        admit = np.minimum(load + 1, room)
        rewards = np.stack([pay[kind] * (load < room), np.zeros(len(s))], axis=1)
        after = np.stack([admit, load], axis=1)
        leave = 0.4 * after / room
        calls = np.arange(classes)
        stay = after[..., None] * classes + calls
        less = np.maximum(after - 1, 0)[..., None] * classes + calls
        weight = share / share.sum()
        chances = np.concatenate([(1.0 - leave)[..., None] * weight, leave[..., None] * weight], axis=2)
        return rewards, np.concatenate([stay, less], axis=2), chances

    return al.MDP.from_function(fn, (room + 1) * classes, 2, discount)


def band(num_states: int, width: int, discount: float) -> al.MDP:
    """Random moves to states at most `width` away: local, slow to mix, of some bandwidth."""
    rng = np.random.default_rng(0)
    jump = rng.integers(-width, width + 1, size=(num_states, 3, 4))
    successors = np.clip(np.arange(num_states)[:, None, None] + jump, 0, num_states - 1)
    chances = rng.dirichlet(np.ones(4), size=(num_states, 3))
    rewards = rng.standard_normal((num_states, 3))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), num_states, 3, discount)


def transient(num_states: int, classes: int, discount: float) -> al.MDP:
    """A random transient part, half of the states, that ends in one of several closed random parts."""
    rng = np.random.default_rng(0)
    half = num_states // 2
    size = (num_states - half) // classes
    part = np.minimum((np.arange(num_states) - half) // size, classes - 1)
    within = rng.integers(size, size=(num_states, 3, 4))
    successors = np.where((part >= 0)[:, None, None], half + part[:, None, None] * size + within, 0)
    anywhere = rng.integers(num_states, size=(half, 3, 4))
    successors[:half] = anywhere
    chances = rng.dirichlet(np.ones(4), size=(num_states, 3))
    rewards = rng.standard_normal((num_states, 3))
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), num_states, 3, discount)


def _listed(rewards: Array, successors: Array, chances: Array, discount: float) -> al.MDP:
    """The model of rewards (S, A), and of successors and their chances (S, A, k)."""
    return al.MDP.from_function(lambda s: (rewards[s], successors[s], chances[s]), *rewards.shape, discount)


def torus(side: int, discount: float) -> al.MDP:
    """A walk on a torus, four slippery moves and random rewards: local, without borders, absorbing nowhere."""
    rng = np.random.default_rng(0)
    x, y = np.divmod(np.arange(side * side), side)
    ring = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    near = np.stack([(x + dx) % side * side + (y + dy) % side for dx, dy in ring], axis=1)
    successors = np.stack([near[:, [a, (a + 1) % 4, (a + 3) % 4]] for a in range(4)], axis=1)
    chances = np.broadcast_to([0.8, 0.1, 0.1], successors.shape)
    return _listed(np.repeat(rng.standard_normal((side * side, 1)), 4, 1), successors, chances, discount)


def windy(side: int, discount: float) -> al.MDP:
    """A grid in which gusts carry one sideways, harder in its middle; the goal pays and is left for the first row."""
    x, y = np.divmod(np.arange(side * side), side)
    gust = 1 + (np.abs(x - side / 2) < side / 6)
    moves = [(1, 0), (-1, 0), (0, 1), (0, -1)]

    def cell(a: Array, b: Array) -> Array:
        return np.clip(a, 0, side - 1) * side + np.clip(b, 0, side - 1)

    calm = np.stack([cell(x + dx, y + dy) for dx, dy in moves], axis=1)
    blown = np.stack([cell(x + dx, y + dy - gust) for dx, dy in moves], axis=1)
    goal = (side - side // 4) * side + side // 2
    calm[goal], blown[goal] = np.arange(4) * side // 4, np.arange(4) * side // 4
    rewards = np.full((side * side, 4), -0.01)
    rewards[goal] = 1.0
    successors = np.stack([calm, blown], axis=2)
    return _listed(rewards, successors, np.broadcast_to([0.6, 0.4], successors.shape), discount)


def repair(machines: int, levels: int, discount: float) -> al.MDP:
    """Several machines that wear out on their own; each step one of them, or none, is repaired."""
    n = levels**machines
    state = np.stack(np.unravel_index(np.arange(n), (levels,) * machines), axis=1)
    after = np.repeat(state[:, None, :], machines + 1, axis=1)
    for machine in range(machines):
        after[:, machine, machine] = 0
    wear = np.array(np.unravel_index(np.arange(2**machines), (2,) * machines)).T
    worn = np.minimum(after[:, :, None, :] + wear, levels - 1)
    successors = np.ravel_multi_index(tuple(np.moveaxis(worn, 3, 0)), (levels,) * machines)
    chances = np.broadcast_to(np.where(wear, 0.2, 0.8).prod(axis=1), successors.shape)
    price = np.array([*[1.5] * machines, 0.0])
    return _listed(-((after / (levels - 1)) ** 2).sum(axis=2) - price, successors, chances, discount)


def branching(depth: int, discount: float) -> al.MDP:
    """A binary tree to climb, whose leaves pay and lead back to the root: long cycles through few states."""
    n = 2 ** (depth + 1) - 1
    rng = np.random.default_rng(0)
    s = np.arange(n)
    leaf = 2 * s + 1 >= n
    left, right = np.where(leaf, 0, 2 * s + 1), np.where(leaf, 0, 2 * s + 2)
    successors = np.stack([np.stack([left, right], 1), np.stack([right, left], 1)], axis=1)
    rewards = np.where(leaf, rng.exponential(size=n), 0.0)
    chances = np.broadcast_to([0.75, 0.25], successors.shape)
    return _listed(np.repeat(rewards[:, None], 2, 1), successors, chances, discount)


def project(num_states: int, discount: float) -> al.MDP:
    """A project whose random steps lead ahead, as in an acyclic graph; every step may fail, and all begins anew."""
    rng = np.random.default_rng(0)
    ahead = np.arange(num_states)[:, None, None] + rng.geometric(20 / num_states, size=(num_states, 3, 3))
    successors = np.concatenate([np.where(ahead < num_states, ahead, 0), np.zeros((num_states, 3, 1), int)], axis=2)
    chances = np.concatenate(
        [0.98 * rng.dirichlet(np.ones(3), size=(num_states, 3)), np.full((num_states, 3, 1), 0.02)], axis=2
    )
    return _listed(rng.standard_normal((num_states, 3)), successors, chances, discount)


def schedule(period: int, modes: int, discount: float) -> al.MDP:
    """A timetable that comes round after `period` steps, with a mode to choose at each: one long cycle."""
    rng = np.random.default_rng(0)
    time, mode = np.divmod(np.arange(period * modes), modes)
    wanted = np.arange(3)
    target = (mode[:, None] + wanted - 1) % modes
    later = ((time + 1) % period)[:, None] * modes
    successors = np.stack([later + target, np.broadcast_to(later + mode[:, None], target.shape)], axis=2)
    gain = rng.standard_normal(period * modes)
    rewards = gain[:, None] - 0.2 * np.abs(wanted - 1)
    return _listed(rewards, successors, np.broadcast_to([0.9, 0.1], successors.shape), discount)


def two_scales(clusters: int, size: int, discount: float) -> al.MDP:
    """Clusters of states that mix at once, on a ring that is left for the next cluster once in a thousand steps."""
    rng = np.random.default_rng(0)
    n = clusters * size
    cluster = np.arange(n)[:, None, None] // size
    within = cluster * size + rng.integers(size, size=(n, 3, 4))
    other = (cluster + rng.choice([-1, 1], size=(n, 3, 1))) % clusters * size + rng.integers(size, size=(n, 3, 1))
    chances = np.concatenate([0.999 * rng.dirichlet(np.ones(4), size=(n, 3)), np.full((n, 3, 1), 0.001)], axis=2)
    level = np.repeat(rng.standard_normal(clusters), size)
    rewards = level[:, None] + rng.standard_normal((n, 3))
    return _listed(rewards, np.concatenate([within, other], axis=2), chances, discount)


def star(arms: int, length: int, discount: float) -> al.MDP:
    """A centre from which arms are walked along and back, a prize at the end of each: all roads cross one state."""
    rng = np.random.default_rng(0)
    n = 1 + arms * length
    s = np.arange(1, n)
    place = (s - 1) % length
    out = np.where(place == length - 1, 0, s + 1)
    back = np.where(place == 0, 0, s - 1)
    successors = np.zeros((n, 2, 2), int)
    successors[1:, 0], successors[1:, 1] = np.stack([out, back], 1), np.stack([back, out], 1)
    first = 1 + length * rng.integers(arms, size=(2, 2))
    successors[0] = first
    chances = np.broadcast_to([0.9, 0.1], successors.shape)
    rewards = np.zeros((n, 2))
    rewards[length::length, 0] = rng.exponential(10.0, size=arms)
    return _listed(rewards, successors, chances, discount)


def bandits(arms: int, levels: int, discount: float) -> al.MDP:
    """Restless bandits: one of several chains is pulled and pays by its level, the others drift."""
    n = levels**arms
    rng = np.random.default_rng(0)
    state = np.stack(np.unravel_index(np.arange(n), (levels,) * arms), axis=1)
    pay = np.sort(rng.random((arms, levels)), axis=1)
    rewards = np.stack([pay[arm][state[:, arm]] for arm in range(arms)], axis=1)
    step = np.array(np.unravel_index(np.arange(2**arms), (2,) * arms)).T
    successors, chances = [], []
    for arm in range(arms):
        down = np.arange(arms) == arm
        moved = np.clip(state[:, None, :] + np.where(down, -step, step), 0, levels - 1)
        successors.append(np.ravel_multi_index(tuple(np.moveaxis(moved, 2, 0)), (levels,) * arms))
        odds = np.where(down, 0.4, 0.1)
        chances.append(np.broadcast_to(np.where(step, odds, 1.0 - odds).prod(axis=1), (n, 2**arms)))
    return _listed(rewards, np.stack(successors, 1), np.stack(chances, 1), discount)


def rooms(num_rooms: int, side: int, discount: float) -> al.MDP:
    """Slippery rooms in a row, joined by doors that open one way only: one strongly connected part after another."""
    cells = side * side
    n = num_rooms * cells
    rng = np.random.default_rng(0)
    room, (x, y) = np.arange(n) // cells, np.divmod(np.arange(n) % cells, side)
    ring = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    near = np.stack(
        [room * cells + np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1) for dx, dy in ring], axis=1
    )
    door = (x == side - 1) & (y == side // 2) & (room < num_rooms - 1)
    near[door, 0] = ((room + 1) * cells + side // 2)[door]
    successors = np.stack([near[:, [a, (a + 1) % 4, (a + 3) % 4]] for a in range(4)], axis=1)
    place = rng.permutation(n)  # numbered at random
    rank = np.argsort(place)
    rewards = -rng.random(n) - 1.0
    rewards[-cells:] = 0.0
    chances = np.broadcast_to([0.8, 0.1, 0.1], successors.shape)
    return _listed(np.repeat(rewards[rank, None], 4, 1), place[successors[rank]], chances, discount)


def sailing(side: int, discount: float) -> al.MDP:
    """A boat on a grid, eight courses and a wind that turns by itself: a leg costs the more, the closer to the wind."""
    n = side * side * 8
    place, wind = np.divmod(np.arange(n), 8)
    x, y = np.divmod(place, side)
    courses = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
    ahead = np.stack([np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1) for dx, dy in courses], axis=1)
    turned = (wind[:, None] + np.array([-1, 0, 1])) % 8
    successors = ahead[..., None] * 8 + turned[:, None, :]
    angle = np.abs((np.arange(8) - wind[:, None] + 4) % 8 - 4)
    rewards = -np.array([1.0, 2.0, 3.0, 4.0, 8.0])[angle]
    harbour = place == side * side - 1
    rewards[harbour], successors[harbour] = 0.0, np.arange(n)[harbour][:, None, None]
    return _listed(rewards, successors, np.broadcast_to([0.3, 0.4, 0.3], successors.shape), discount)


def elevator(floors: int, discount: float) -> al.MDP:
    """A lift that goes up, down, or opens its door, and calls that come at random: a product of many small factors."""
    n = floors * 2**floors
    floor, calls = np.divmod(np.arange(n), 2**floors)
    waiting = ((calls[:, None] >> np.arange(floors)) & 1).sum(axis=1)
    successors = np.empty((n, 3, floors + 1), int)
    for a, way in enumerate((-1, 0, 1)):
        there = np.clip(floor + way, 0, floors - 1) * 2**floors
        left = calls if way else calls & ~(1 << floor)
        successors[:, a, :floors] = there[:, None] + (left[:, None] | (1 << np.arange(floors)))
        successors[:, a, floors] = there + left
    chances = np.broadcast_to([*[0.3 / floors] * floors, 0.7], successors.shape)
    return _listed(-waiting[:, None] - np.array([0.1, 0.0, 0.1]), successors, chances, discount)


def sticky(num_states: int, discount: float) -> al.MDP:
    """A random model whose moves stay in place, some hardly ever and some nearly always: many time scales at once."""
    rng = np.random.default_rng(0)
    successors = rng.integers(num_states, size=(num_states, 4, 4))
    successors[..., 0] = np.arange(num_states)[:, None]
    stay = rng.uniform(0.3, 0.999, size=(num_states, 4, 1))
    chances = np.concatenate([stay, (1.0 - stay) * rng.dirichlet(np.ones(3), size=(num_states, 4))], axis=2)
    return _listed(rng.standard_normal((num_states, 4)), successors, chances, discount)


def stages(count: int, size: int, discount: float) -> al.MDP:
    """A game of stages that are each left for the next one once in a hundred steps, and never come back to."""
    rng = np.random.default_rng(0)
    stage = np.arange(count * size) // size
    within = stage[:, None, None] * size + rng.integers(size, size=(count * size, 3, 3))
    later = np.minimum(stage + 1, count - 1)[:, None, None] * size + rng.integers(size, size=(count * size, 3, 1))
    successors = np.concatenate([within, later], axis=2)
    rewards = rng.standard_normal((count * size, 3)) + 0.1 * stage[:, None]
    return _listed(rewards, successors, np.broadcast_to([0.5, 0.3, 0.19, 0.01], successors.shape), discount)


def fishery(num_states: int, num_actions: int, discount: float) -> al.MDP:
    """A stock that grows in weather of its own, and of which a part is caught: rows of fifteen outcomes."""
    weather = np.linspace(-2.0, 2.0, 15)
    odds = np.exp(-(weather**2) / 2.0)
    stock = np.linspace(0.0, 1.0, num_states)
    catch = np.minimum(stock[:, None], np.linspace(0.0, 0.5, num_actions))
    left = stock[:, None] - catch
    grown = (left + 0.8 * left * (1.0 - left))[..., None] * np.exp(0.1 * weather)
    successors = np.rint(np.clip(grown, 0.0, 1.0) * (num_states - 1)).astype(int)
    return _listed(np.sqrt(catch), successors, np.broadcast_to(odds / odds.sum(), successors.shape), discount)


def keys(side: int, count: int, discount: float) -> al.MDP:
    """A grid with walls and keys, all of which are needed at the goal: layers that are left for good."""
    rng = np.random.default_rng(0)
    cells = side * side
    n = cells * 2**count
    held, cell = np.divmod(np.arange(n), cells)
    spots = rng.choice(cells, count + 1, replace=False)
    wall = rng.random(cells) < 0.2
    wall[spots] = False
    x, y = np.divmod(cell, side)
    ahead = []
    for dx, dy in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
        there = np.clip(x + dx, 0, side - 1) * side + np.clip(y + dy, 0, side - 1)
        there = np.where(wall[there], cell, there)
        taken = ((there[:, None] == spots[:-1]) << np.arange(count)).sum(axis=1)
        ahead.append((held | taken) * cells + there)
    moves = np.stack(ahead, axis=1)
    done = (cell == spots[-1]) & (held == 2**count - 1)
    moves[done] = np.arange(n)[done, None]
    successors = np.stack([moves, np.roll(moves, 1, 1), np.roll(moves, -1, 1)], axis=2)
    rewards = np.repeat(np.where(done, 0.0, -1.0)[:, None], 4, 1)
    return _listed(rewards, successors, np.broadcast_to([0.9, 0.05, 0.05], successors.shape), discount)


def pursuit(side: int, discount: float) -> al.MDP:
    """A hunter after prey that wanders at random: a grid times a grid, and an end where they meet."""
    cells = side * side
    n = cells * cells
    steps = np.array([(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)])
    x, y = np.divmod(np.arange(cells), side)
    near = np.clip(x[:, None] + steps[:, 0], 0, side - 1) * side + np.clip(y[:, None] + steps[:, 1], 0, side - 1)
    hunter, prey = np.divmod(np.arange(n), cells)
    successors = near[hunter][:, :, None] * cells + near[prey][:, None, :]
    caught = hunter == prey
    successors[caught] = np.arange(n)[caught, None, None]
    rewards = np.repeat(np.where(caught, 0.0, -1.0)[:, None], 5, 1)
    return _listed(rewards, successors, np.full(successors.shape, 0.2), discount)


def epidemic(size: int, discount: float) -> al.MDP:
    """Susceptible and infected of a population, and three levels of measures: two slow flows round a cycle."""
    n = (size + 1) ** 2
    healthy, ill = np.divmod(np.arange(n), size + 1)
    spread, recovery = np.array([0.1, 0.2, 0.2, 0.2, 0.2, 0.1]), np.array([0.2, 0.3, 0.3, 0.2])
    better = np.minimum(ill[:, None], np.rint(ill[:, None] * np.array([0.1, 0.2, 0.3, 0.4])).astype(int))
    successors = []
    for rate in (0.6, 0.35, 0.15):
        mean = rate * healthy * ill / size
        drawn = mean[:, None] + (np.arange(6) - 2.5) * np.sqrt(mean + 0.3)[:, None]
        new = np.minimum(healthy[:, None], np.rint(np.maximum(drawn, 0.0)).astype(int))
        still = healthy[:, None, None] - new[:, :, None] + 0 * better[:, None, :]
        sick = np.minimum(ill[:, None, None] + new[:, :, None] - better[:, None, :], size)
        sick[:, 0] = np.where((sick[:, 0] == 0) & (still[:, 0] > 0), 1, sick[:, 0])  # brought in from outside
        immune = np.maximum(size - still - sick, 0)
        again = np.minimum(still + (immune > 0) * (1 + immune // 20), size)
        successors.append((again * (size + 1) + sick).reshape(n, -1))
    chances = np.broadcast_to(np.outer(spread, recovery).ravel(), (n, 3, 24))
    rewards = -(ill / size)[:, None] - np.array([0.0, 0.05, 0.15])
    return _listed(rewards, np.stack(successors, axis=1), chances, discount)


def hypercube(bits: int, discount: float) -> al.MDP:
    """Vertices of a cube of many dimensions, one of whose bits is flipped, or the next one, or none."""
    rng = np.random.default_rng(0)
    s, bit = np.arange(2**bits)[:, None], np.arange(bits)
    successors = np.stack([s ^ (1 << bit), s + 0 * bit, s ^ (1 << (bit + 1) % bits)], axis=2)
    rewards = rng.standard_normal(2**bits)[:, None] - 0.1 * bit
    return _listed(rewards, successors, np.broadcast_to([0.7, 0.2, 0.1], successors.shape), discount)


def lock(num_states: int, num_actions: int, discount: float) -> al.MDP:
    """A combination lock: one action leads on, all others back to the beginning, for a little comfort."""
    rng = np.random.default_rng(0)
    s = np.arange(num_states)
    right = np.arange(num_actions) == rng.integers(num_actions, size=num_states)[:, None]
    ahead = np.where(right, np.minimum(s + 1, num_states - 1)[:, None], 0)
    successors = np.stack([ahead, np.broadcast_to(s[:, None], ahead.shape)], axis=2)
    rewards = np.where(right, 0.0, 0.001)
    rewards[-1] = right[-1]
    return _listed(rewards, successors, np.broadcast_to([0.9, 0.1], successors.shape), discount)


def citations(num_states: int, discount: float) -> al.MDP:
    """A random model half of whose moves lead to a few early states, one of which ends it."""
    rng = np.random.default_rng(0)
    shape = (num_states, 4, 3)
    early = (3.0 * rng.pareto(1.2, size=shape)).astype(int) % num_states
    successors = np.where(rng.random(shape) < 0.5, early, rng.integers(num_states, size=shape))
    successors[..., 2] = np.where(rng.random(shape[:2]) < 0.02, 0, successors[..., 2])
    rewards = -rng.random(shape[:2])
    successors[0], rewards[0] = 0, 0.0
    return _listed(rewards, successors, np.broadcast_to([0.6, 0.3, 0.1], shape), discount)


def call_centre(size: int, discount: float) -> al.MDP:
    """Two queues and one desk, which serves one of them, or both at half the speed."""
    a, b = np.divmod(np.arange(size * size), size)
    more, less = np.minimum(a + 1, size - 1) * size + b, np.maximum(a - 1, 0) * size + b
    served = (less, a * size + np.maximum(b - 1, 0), np.maximum(a - 1, 0) * size + np.maximum(b - 1, 0))
    other = a * size + np.minimum(b + 1, size - 1)
    successors = np.stack([np.stack([more, other, then, np.arange(size * size)], axis=1) for then in served], axis=1)
    chances = np.array([[0.2, 0.15, 0.5, 0.15], [0.2, 0.15, 0.4, 0.25], [0.2, 0.15, 0.25, 0.4]])
    rewards = -(3.0 * a + b)[:, None] / size - np.array([0.0, 0.0, 0.1])
    return _listed(rewards, successors, np.broadcast_to(chances, successors.shape), discount)


def ageing(ages: int, conditions: int, discount: float) -> al.MDP:
    """A machine that ages by one with every step and wears at random, until it is replaced by a new one."""
    n = ages * conditions
    age, wear = np.divmod(np.arange(n), conditions)
    older = np.minimum(age + 1, ages - 1)[:, None] * conditions
    kept = older + np.minimum(wear[:, None] + np.array([0, 1, 3]), conditions - 1)
    mended = older + np.clip(wear[:, None] + np.array([-2, 0, 1]), 0, conditions - 1)
    successors = np.stack([kept, mended, np.zeros_like(kept)], axis=1)
    worth = 1.0 - (wear / conditions) ** 2 - 0.3 * age / ages
    rewards = np.stack([worth, worth - 0.3, np.full(n, -3.0)], axis=1)
    return _listed(rewards, successors, np.broadcast_to([0.8, 0.15, 0.05], successors.shape), discount)


def dam(levels: int, weather: int, discount: float) -> al.MDP:
    """A reservoir and the weather that fills it, and how much to let out: too full and too empty both cost."""
    n = levels * weather
    level, season = np.divmod(np.arange(n), weather)
    inflow = np.array([0, 1, 2, 4, 7]) * (1 + season)[:, None] // weather
    later = np.clip(season[:, None] + np.array([-1, 0, 1]), 0, weather - 1)
    out = np.minimum(level[:, None], 2 * np.arange(6))
    filled = np.clip((level[:, None] - out)[..., None] + inflow[:, None, :], 0, levels - 1)
    successors = (filled[..., None] * weather + later[:, None, None, :]).reshape(n, 6, 15)
    chances = np.broadcast_to(np.outer(np.full(5, 0.2), [0.2, 0.6, 0.2]).ravel(), successors.shape)
    extreme = 2.0 * (level > 0.95 * levels) + 3.0 * (level < 0.05 * levels)
    return _listed(np.sqrt(out) - extreme[:, None], successors, chances, discount)


def routing(size: int, servers: int, discount: float) -> al.MDP:
    """Arrivals that are sent to one of several queues, each with a server of its own speed; a full queue costs."""
    shape = (size,) * servers
    n = size**servers
    queue = np.stack(np.unravel_index(np.arange(n), shape), axis=1)
    speed = 0.55 * np.linspace(1.0, 2.0, servers) / np.linspace(1.0, 2.0, servers).sum()
    each = np.eye(servers, dtype=int)
    longer = np.minimum(queue[:, None, :] + each, size - 1)
    shorter = np.maximum(queue[:, None, :] - each, 0)
    arrived = np.ravel_multi_index(tuple(np.moveaxis(longer, 2, 0)), shape)
    served = np.ravel_multi_index(tuple(np.moveaxis(shorter, 2, 0)), shape)
    successors = np.concatenate([arrived[:, :, None], np.repeat(served[:, None, :], servers, axis=1)], axis=2)
    rewards = -queue.sum(axis=1)[:, None] / size - 5.0 * (queue == size - 1)
    return _listed(rewards, successors, np.broadcast_to([0.45, *speed], successors.shape), discount)


def battery(levels: int, prices: int, discount: float) -> al.MDP:
    """A battery that is charged and emptied at a price that jumps at random: a band times a chain that mixes."""
    rng = np.random.default_rng(1)
    n = levels * prices
    level, state = np.divmod(np.arange(n), prices)
    jumps = rng.dirichlet(np.full(prices, 0.5), size=prices)
    price = np.sort(rng.lognormal(size=prices))
    later = np.clip(level[:, None] + np.array([-3, -1, 0, 1, 3]), 0, levels - 1)
    successors = later[:, :, None] * prices + np.arange(prices)
    bought = later - level[:, None]
    rewards = -price[state][:, None] * bought * np.where(bought > 0, 1.1, 0.9)
    return _listed(rewards, successors, np.broadcast_to(jumps[state][:, None, :], successors.shape), discount)


def obstacles(side: int, period: int, discount: float) -> al.MDP:
    """A grid through which a wall with gaps moves and comes round after `period` steps, as a part of the state."""
    n = side * side * period
    time, cell = np.divmod(np.arange(n), side * side)
    x, y = np.divmod(cell, side)
    moves = [(1, 0), (0, 1), (-1, 0), (0, -1), (0, 0)]
    near = np.stack([np.clip(x + a, 0, side - 1) * side + np.clip(y + b, 0, side - 1) for a, b in moves], axis=1)
    later = (time + 1) % period
    goal = side * side - 1
    near[cell == goal] = goal
    hit = (near // side == (later * side // period)[:, None]) & (near % 3 != 0)
    rewards = np.where((cell == goal)[:, None], 0.0, -1.0 - 10.0 * hit)
    successors = np.stack([near[:, [a, (a + 1) % 5]] for a in range(5)], axis=1) + (later * side * side)[:, None, None]
    return _listed(rewards, successors, np.broadcast_to([0.9, 0.1], successors.shape), discount)


def knapsack(room: int, items: int, discount: float) -> al.MDP:
    """Items of random kinds that come one after the other, to take or to leave; after the last one all begins anew."""
    rng = np.random.default_rng(1)
    kinds = 4
    n = (room + 1) * items * kinds
    free, rest = np.divmod(np.arange(n), items * kinds)
    item, kind = np.divmod(rest, kinds)
    size = rng.integers(1, 6, size=(items, kinds))
    worth = rng.exponential(size=(items, kinds)) * size
    fits = free >= size[item, kind]
    left = np.stack([free, np.where(fits, free - size[item, kind], free)], axis=1)
    last = (item == items - 1)[:, None]
    first = np.where(last, room * items, left * items + np.minimum(item + 1, items - 1)[:, None]) * kinds
    successors = first[:, :, None] + np.arange(kinds)
    rewards = np.stack([np.zeros(n), np.where(fits, worth[item, kind], -1.0)], axis=1)
    return _listed(rewards, successors, np.broadcast_to(rng.dirichlet(np.ones(kinds)), successors.shape), discount)


def doors(side: int, rooms: int, discount: float) -> al.MDP:
    """Square rooms side by side with narrow doors both ways, slippery moves and random rewards, a few of them large."""
    rng = np.random.default_rng(1)
    width = side * rooms
    here = np.arange(width * width)
    x, y = np.divmod(here, width)
    moved = []
    for a, b in [(1, 0), (0, 1), (-1, 0), (0, -1)]:
        to_x, to_y = np.clip(x + a, 0, width - 1), np.clip(y + b, 0, width - 1)
        wall = (to_x // side != x // side) & (y % side != side // 2)
        wall |= (to_y // side != y // side) & (x % side != side // 2)
        moved.append(np.where(wall, here, to_x * width + to_y))
    near = np.stack(moved, axis=1)
    successors = np.stack([near[:, [a, (a + 1) % 4, (a + 3) % 4]] for a in range(4)], axis=1)
    rewards = 0.1 * rng.standard_normal(len(here))
    rewards[rng.integers(len(here), size=3)] += 1.0
    chances = np.broadcast_to([0.7, 0.15, 0.15], successors.shape)
    return _listed(np.repeat(rewards[:, None], 4, 1), successors, chances, discount)


def lead_time(room: int, delay: int, orders: int, discount: float) -> al.MDP:
    """A stock whose orders arrive after a delay, so that those under way are a part of the state; lost sales cost."""
    shape = (room + 1, *[orders] * delay)
    n = (room + 1) * orders**delay
    stock, *under_way = np.unravel_index(np.arange(n), shape)
    demand = np.arange(6)
    chances = np.exp(-1.6) * 1.6**demand / np.array([1, 1, 2, 6, 24, 120])
    chances[-1] += 1.0 - chances.sum()
    on_hand = np.minimum(stock + under_way[0], room)
    left = np.maximum(on_hand[:, None] - demand, 0)
    later = [np.broadcast_to(each[:, None, None], (n, orders, 6)) for each in under_way[1:]]
    ordered = np.broadcast_to(np.arange(orders)[:, None], (n, orders, 6))
    after = (np.broadcast_to(left[:, None, :], (n, orders, 6)), *later, ordered)
    successors = np.ravel_multi_index(after, shape)
    gain = 5.0 * np.minimum(on_hand[:, None], demand) @ chances - 0.3 * left @ chances
    price = 2.0 * np.arange(orders) + 0.5 * (np.arange(orders) > 0)
    return _listed(gain[:, None] - price, successors, np.broadcast_to(chances, successors.shape), discount)


def seasons(stock: int, periods: int, discount: float) -> al.MDP:
    """What is left of a stock is sold at one of five prices; demand has its season, after which all begins anew."""
    n, price = stock * periods, np.arange(1.0, 6.0)
    left, period = np.divmod(np.arange(n), periods)
    demand = 4.0 / price * (1.0 + 0.5 * np.sin(2.0 * np.pi * period / periods))[:, None]
    last, sold = period == periods - 1, np.arange(5)
    rest = np.where(last[:, None], stock - 1, np.maximum(left[:, None] - sold, 0))
    successors = np.broadcast_to((rest * periods + ((period + 1) % periods)[:, None])[:, None, :], (n, 5, 5))
    chances = np.exp(-demand)[..., None] * demand[..., None] ** sold / np.array([1, 1, 2, 6, 24])
    chances = chances / chances.sum(axis=2, keepdims=True)
    income = price[None, :] * (chances * np.minimum(left[:, None], sold)[:, None, :]).sum(axis=2)
    return _listed(income, successors, chances, discount)


def engine(num_states: int, discount: float) -> al.MDP:
    """A bus engine (Rust): mileage costs ever more, until it is replaced and begins at one of four."""

    def fn(s: Array) -> tuple[Array, Array, Array]:
        miles = np.arange(4)
        worn = np.minimum(s[:, None] + miles, num_states - 1)
        rewards = np.stack([-3.0 * (s / num_states) ** 2, np.full(len(s), -4.0)], axis=1)
        successors = np.stack([worn, np.broadcast_to(miles, worn.shape)], axis=1)
        return rewards, successors, np.broadcast_to([0.2, 0.4, 0.3, 0.1], successors.shape)

    return al.MDP.from_function(fn, num_states, 2, discount)
