"""Policy rollouts: what each first action is worth if the agent then goes on as it would by itself.

    lead_ℓ(a) = [Σ_{t<ℓ} γ^t r_t + γ^ℓ V(s_ℓ) after a, then π] − [the same after π's own action]

With ℓ → ∞ the best lead is a step of policy iteration: what is played is at least as good as π, in every state. A
tree of depth h costs A^h steps and has values of the network at its leaves; ℓ steps of π after each first action cost
A·ℓ, so they see far, and what the network gets wrong counts with γ^ℓ only.

Short rollouts can mislead: the agent overrates what it never does, and a lead that only V claims may be V's error. So
that error is measured: σ, the root mean square of V(s) − G(s) over the agent's own episodes, with G the return that
followed. After ℓ steps V counts with γ^ℓ, so an action replaces the agent's own only if it leads by more than κ γ^ℓ σ.
κ = 1 asks for rewards that the rollouts have seen, or for more than V usually errs; κ = 0 takes every lead, which is
right where the errors of V are alike in neighbouring states; κ = ∞ is the agent alone. A search ends early once the
lead is 2 γ^ℓ σ, one way or the other.

In a stochastic simulator every first action is tried in the same K drawn futures. Leads are means over them, and must
exceed two standard errors as well: where futures scatter, the best of many noisy values is a random action.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.search.result import CLOSE, Level, SearchResult, SearchStatus, Seconds
from adalook.search.search import Budget, Root
from adalook.simulators.base import Observations, Simulator
from adalook.simulators.randomness import draw_seeds

Policy = Callable[[Observations], IntArray]
"""(n, *observation_shape) -> actions (n,)."""
StateValues = Callable[[Observations], FloatArray]
"""(n, *observation_shape) -> V (n,)."""

LONGEST = 10_000
"""No rollout is longer, whatever the budget."""
CLEAR = 2.0
"""A choice is clear once a lead is so many times the error that is left."""
MEASURED_STEPS = 1000
"""Steps of the agent's own play on which the error of its values is measured."""


class Stage(NamedTuple):
    """The rollouts of one root after some number of steps; A first actions in K futures."""

    length: int
    values: FloatArray
    """(A, K) Σ γ^t r_t + γ^ℓ V; -inf for actions that the state does not offer"""
    returns: FloatArray
    """(A, K)"""
    observations: Observations
    """(A, K, *observation_shape)"""
    terminated: BoolArray
    """(A, K)"""
    lengths: IntArray
    """(A, K) steps taken; fewer than `length` where the episode ended"""
    over: bool
    """Whether every rollout has ended."""


def stage_lengths(steps: int) -> list[int]:
    """Return after how many steps rollouts are looked at: 1, 2, 4, … and the last.

    >>> stage_lengths(11)
    [1, 2, 4, 8, 11]
    """
    return [2**n for n in range(steps.bit_length()) if 2**n < steps] + [steps]


class PolicyRollouts:
    """Searches by rolling out the agent's own policy after every first action.

    Args:
        sim: the simulator; rollouts are played in clones of it.
        policy: what the agent does by itself.
        values: what it thinks of states.
        discount: γ.
        depth: the longest rollout; None: as long as the budget allows.
        budget: of simulated steps, or of time.
        samples: futures in which every action is tried, in a stochastic simulator.
        adaptive: end early once the choice is clear.
        caution: κ: the agent's own action stays unless another leads by more than κ γ^ℓ σ.
        seed: of the episodes in which σ is measured.
    """

    def __init__(
        self,
        sim: Simulator,
        policy: Policy,
        values: StateValues,
        *,
        discount: float,
        depth: int | None,
        budget: Budget,
        samples: int,
        adaptive: bool,
        caution: float,
        seed: int,
    ) -> None:
        self._sim, self._policy, self._values, self._discount = sim, policy, values, discount
        self._samples = samples if sim.stochastic else 1
        self._budget, self._adaptive, self.caution, self._seed = budget, adaptive, caution, seed
        by_nodes = None if budget.nodes is None else max(1, int(budget.nodes) // (sim.num_actions * self._samples))
        self.steps = min(limit for limit in (depth, by_nodes, LONGEST) if limit is not None)
        self._clones: list[Simulator] = []
        self.value_error: float = self._measured_error() if adaptive or caution else 0.0
        """σ, in the units of the values."""

    def search(self, root: Root, seed: int) -> SearchResult:
        """Return what the first actions are worth; the agent's own is best unless another leads by enough."""
        own = int(self._policy(root.observation[None])[0])
        deadline = self._budget.deadline()
        levels: list[Level] = []
        status = SearchStatus.NODE_LIMIT
        begin, simulated = time.perf_counter(), 0
        for stage in self.stages(root, seed, stage_lengths(self.steps), deadline):
            values, lead = self._corrected(stage, own)
            total = int(stage.lengths.sum())
            now = time.perf_counter()
            levels.append(_level(stage, values, total - simulated, Seconds(now - begin)))
            begin, simulated = now, total
            if stage.over:
                status = SearchStatus.TERMINATED
            elif now >= deadline:
                status = SearchStatus.TIME_LIMIT
            elif self._adaptive and abs(lead) > CLEAR * self._error(stage):
                status = SearchStatus.DONE
            else:
                continue
            break
        return SearchResult(tuple(levels), (levels[-1].action_values.argmax().item(),), simulated, simulated, status)

    def stages(self, root: Root, seed: int, looks: Sequence[int], deadline: float = np.inf) -> Iterator[Stage]:
        """Roll out every first action from a root, and yield what is known after so many steps, or when time is up."""
        sim, count = self._sim, self._samples
        shape = (sim.num_actions, count)
        clones = self._rolled_back(root, seed)
        active = np.repeat(sim.action_masks(root.observation[None])[0][:, None], count, axis=1)
        offered = active.copy()
        observations = np.broadcast_to(root.observation, (*shape, *sim.observation_shape)).copy()
        returns, terminated, lengths = np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, np.int64)
        actions = np.repeat(np.arange(sim.num_actions)[:, None], count, axis=1)
        for step in range(max(looks)):
            for a, k in np.argwhere(active).tolist():
                transition = clones[a * count + k].step(int(actions[a, k]))
                returns[a, k] += self._discount**step * transition.reward
                observations[a, k], terminated[a, k] = transition.observation, transition.terminated
                lengths[a, k] += 1
                active[a, k] = not (transition.terminated or transition.episode_over)
            over = not active.any()
            if step + 1 in looks or over or time.perf_counter() >= deadline:
                ahead = np.zeros(shape)
                alive = offered & ~terminated
                if alive.any():
                    ahead[alive] = self._values(observations[alive])
                values = np.where(offered, returns + self._discount**lengths * ahead, -np.inf)
                yield Stage(step + 1, values, returns.copy(), observations, terminated.copy(), lengths.copy(), over)
            if over or time.perf_counter() >= deadline:
                return
            actions[active] = self._policy(observations[active])

    def close(self) -> None:
        """Close the clones."""
        for clone in self._clones:
            clone.close()
        self._clones = []

    def _rolled_back(self, root: Root, seed: int) -> list[Simulator]:
        """Return a clone for each (action, future), all of them in the root, the same futures for all actions."""
        sim, count = self._sim, self._samples
        while len(self._clones) < sim.num_actions * count:
            self._clones.append(sim.clone())
        futures = [sim.reseed(root.state, each) for each in draw_seeds(seed, 0, count)]
        for number, clone in enumerate(self._clones):
            clone.restore(futures[number % count])
        return self._clones

    def _error(self, stage: Stage) -> float:
        """Return γ^ℓ σ: what V's errors can make of a lead after ℓ steps."""
        return self._discount**stage.length * self.value_error

    def _corrected(self, stage: Stage, own: int) -> tuple[FloatArray, float]:
        """Return values (A,), the agent's own action first unless another leads by enough, and the largest lead."""
        values = stage.values.mean(axis=1)
        others = np.delete(np.arange(len(values)), own)
        leads = np.full(len(others), -np.inf)
        offered = np.isfinite(values[others])
        by_future = stage.values[others[offered]] - stage.values[own]
        leads[offered] = by_future.mean(axis=1)
        largest = float(leads.max(initial=-np.inf))
        leads -= self.caution * self._error(stage)
        if self._samples > 1:
            leads[offered] -= CLOSE * by_future.std(axis=1, ddof=1) / np.sqrt(self._samples)
        behind = np.nextafter(values[own], -np.inf)  # in a tie, too
        values[others] = np.where(leads > 0, values[own] + leads, np.minimum(values[own] + leads, behind))
        return values, largest

    def _measured_error(self) -> float:
        """Return the root mean square of V(s) − G(s) over the agent's own episodes; the last one ends with V."""
        sim, rng = self._sim.clone(), np.random.default_rng([self._seed, 1])
        observation = sim.reset(seed=int(rng.integers(2**31)))
        seen, rewards, ends = [], [], []
        for _ in range(MEASURED_STEPS):
            seen.append(observation)
            transition = sim.step(int(self._policy(observation[None])[0]))
            rewards.append(transition.reward)
            ends.append((transition.terminated, transition.episode_over))
            last = transition.observation
            observation = sim.reset() if transition.episode_over else last
        sim.close()
        values = self._values(np.stack([*seen, last]))
        errors, ahead = [], float(values[-1])
        for step in reversed(range(MEASURED_STEPS)):
            terminated, over = ends[step]
            if over:  # a truncated episode goes on with what V said of the state before
                ahead = 0.0 if terminated else float(values[step])
            ahead = rewards[step] + self._discount * ahead
            errors.append(float(values[step]) - ahead)
        return float(np.sqrt(np.mean(np.square(errors))))


def _level(stage: Stage, values: FloatArray, nodes: int, seconds: Seconds) -> Level:
    """Return a stage as a level of a search result; leaves are those of the first future."""
    return Level(
        depth=stage.length,
        action_values=values,
        returns=stage.returns.mean(axis=1),
        leaf_observations=stage.observations[:, 0].copy(),
        leaf_terminated=stage.terminated[:, 0],
        leaf_steps=stage.lengths[:, 0],
        nodes=nodes,
        distinct=stage.values.size,
        distance=np.nan,
        seconds=seconds,
    )
