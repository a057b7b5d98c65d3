"""Slow and certain: finite MDPs in exact rationals, read from the model's stored float64 numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import adalook as al

Row = dict[int, Fraction]


class ExactMDP:
    """Every number of an `al.MDP` as a fraction, with policy iteration that cannot err."""

    def __init__(self, mdp: al.MDP) -> None:
        self.num_states = mdp.num_states
        self.discount = Fraction(mdp.discount)
        self.actions: list[dict[int, tuple[Fraction, Row]]] = []
        for s in range(mdp.num_states):
            here = {}
            for a in np.flatnonzero(mdp.offered[s]):
                successors, chances = mdp.transition_row(s, int(a))
                row = {int(t): Fraction(float(p)) for t, p in zip(successors, chances, strict=True)}
                here[int(a)] = (Fraction(float(mdp.rewards[s, a])), row)
            self.actions.append(here)

    def q(self, s: int, a: int, values: list[Fraction]) -> Fraction:
        reward, row = self.actions[s][a]
        return reward + self.discount * sum((p * values[t] for t, p in row.items()), Fraction(0))

    def backup(self, values: list[Fraction]) -> list[Fraction]:
        return [max(self.q(s, a, values) for a in self.actions[s]) for s in range(self.num_states)]

    def evaluate(self, policy: list[int]) -> list[Fraction]:
        """Gauss's elimination of (I − γ P_π) v = r_π."""
        n = self.num_states
        matrix = []
        for s in range(n):
            reward, row = self.actions[s][policy[s]]
            line = [-self.discount * row.get(t, Fraction(0)) for t in range(n)] + [reward]
            line[s] += 1
            matrix.append(line)
        for k in range(n):
            pivot = next(i for i in range(k, n) if matrix[i][k])
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            head = matrix[k][k]
            matrix[k] = [x / head for x in matrix[k]]
            for i in range(n):
                if i != k and matrix[i][k]:
                    factor = matrix[i][k]
                    matrix[i] = [x - factor * y for x, y in zip(matrix[i], matrix[k], strict=True)]
        return [line[n] for line in matrix]

    def solve(self, policy: list[int]) -> list[Fraction]:
        """V*, from any policy."""
        policy = list(policy)
        while True:
            values = self.evaluate(policy)
            better = False
            for s in range(self.num_states):
                for a in self.actions[s]:
                    if self.q(s, a, values) > self.q(s, policy[s], values):
                        policy[s], better = a, True
            if not better:
                return values


def dense(mdp: al.MDP) -> np.ndarray:
    """All transition probabilities of a model, (S, A, S)."""
    table = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    for s in range(mdp.num_states):
        for a in range(mdp.num_actions):
            successors, chances = mdp.transition_row(s, a)
            table[s, a, successors] = chances
    return table


def random_mdp(rng: np.random.Generator, num_states: int, num_actions: int, discount: float, **kind: bool) -> al.MDP:
    """A small model of a random kind: sparse or dense rows, certain moves, masks, ties, rewards of many magnitudes."""
    shape = (num_states, num_actions)
    if kind.get("ties") or rng.random() < 0.3:
        rewards = rng.integers(-1, 2, shape).astype(float)
    else:
        rewards = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 9, shape if rng.random() < 0.5 else ())
    weights = rng.exponential(size=(*shape, num_states)) * (rng.random((*shape, num_states)) < rng.uniform(0.2, 1.0))
    certain = (rng.random(shape) < rng.uniform(0.0, 1.0)) | (weights.sum(axis=2) == 0.0)
    weights[certain] = np.eye(num_states)[rng.integers(num_states, size=shape)][certain]
    weights /= weights.sum(axis=2, keepdims=True)
    mask = rng.random(shape) < 0.8
    mask[np.arange(num_states), rng.integers(num_actions, size=num_states)] = True
    return al.MDP(rewards, weights, discount, mask=mask)


def naive_lookahead(mdp: al.MDP, values: np.ndarray, depth: int) -> np.ndarray:
    """T^depth values by plain loops over states and actions."""
    for _ in range(depth):
        values = np.array(
            [
                max(
                    mdp.rewards[s, a] + mdp.discount * (p @ values[t])
                    for a in range(mdp.num_actions)
                    for t, p in [mdp.transition_row(s, a)]
                    if len(t)
                )
                for s in range(mdp.num_states)
            ]
        )
    return values


def naive_values(mdp: al.MDP, policy: np.ndarray) -> np.ndarray:
    """V^policy by a dense solve."""
    matrix, reward = np.eye(mdp.num_states), np.empty(mdp.num_states)
    for s in range(mdp.num_states):
        successors, chances = mdp.transition_row(s, int(policy[s]))
        matrix[s, successors] -= mdp.discount * chances
        reward[s] = mdp.rewards[s, policy[s]]
    return np.linalg.solve(matrix, reward)
