"""Lookahead for agents that exist already: adaptive search at decision time, without retraining.

`Lookahead` takes any trained Q or value function (a Stable-Baselines3 DQN, PPO or A2C, a torch module, an agent of ours
or a plain function) and searches from the environment's current state before every action. There are two shapes:

* **rollouts** (`policy_rollouts`): every first action, then the agent's own policy for many steps. For whatever has a
  policy: a Q-function, or an actor with a value network.
* **tree**: every action at every step, the function's values at the leaves. For bare value functions, or if asked for.

In a tree, a maximum over many leaves finds the leaf that the function overrates most, and what the agent never did it
overrates more than what it does: deep trees can play *worse* than the agent (Dalal et al. 2021). The leaf correction
takes that optimism off. With σ_o and σ_e the spread of the function's one-step errors Q(s, a) − (r + γ max Q(s')) for
the agent's own actions and for all others, each without what all actions of a state share (which decides nothing), a
first action that is not the agent's own has to lead at depth d by

    γ^d √(2 log A) (σ_e √d − σ_o √(d − 1))

the difference of the expected maxima of A^d and A^(d−1) errors. σ_o and σ_e are measured on some episodes beforehand.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from adalook import _validation as validation
from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook.engines.base import Engine, checked_engine
from adalook.errors import ArgumentError
from adalook.learning.acting import NO_ACTION, Actor, Decision
from adalook.learning.evaluation import Evaluation, Watcher, evaluate
from adalook.learning.policy_rollouts import PolicyRollouts
from adalook.search.chance import Sampling, sampling_of
from adalook.search.result import SearchResult
from adalook.search.rules.base import DepthRule, LevelView
from adalook.search.search import Budget, Root, search_many
from adalook.search.workers.base import Expander, make_expander
from adalook.simulators.base import Observations, Simulator
from adalook.simulators.make import make_simulator

DEEPEST_TREE = 64
"""What a budget alone may reach; where paths merge, depth is cheap."""
DEFAULT_NODES = 200
"""Steps that a decision may simulate if neither a depth nor a budget is given."""
CALIBRATION_STEPS = 300
"""Decisions of the agent on which the spread of its errors is measured."""
DEFAULT_DISCOUNT = 0.99
TRIED = (0.0, 0.1, 1.0)
"""Corrections of rollouts that `Lookahead.tune` tries."""

ActionValues = Callable[[Observations], FloatArray]
"""(n, *observation_shape) -> Q (n, A), or V (n,)."""


@dataclass(frozen=True)
class ErrorSpread:
    """The spread of a value function's one-step errors, in the units of its values."""

    own: float
    """σ_o: for the agent's own actions."""
    others: float
    """σ_e: for all other actions."""

    def penalty(self, depth: int, discount: float, num_actions: int) -> float:
        """Return the lead that an action which is not the agent's own must have at a depth.

        >>> ErrorSpread(own=0.5, others=1.0).penalty(2, 1.0, num_actions=4)  # √(2 log 4) (√2 − 0.5)
        1.522...
        """
        spread = self.others * math.sqrt(depth) - self.own * math.sqrt(depth - 1)
        return max(0.0, discount**depth * math.sqrt(2.0 * math.log(num_actions)) * spread)


@dataclass(frozen=True, eq=False)
class UntilClear(DepthRule):
    """Look deeper while the best first action leads by less than errors of the leaves can explain."""

    max_depth: int
    discount: float
    spread: ErrorSpread

    def distances(self, view: LevelView) -> FloatArray:
        """Return the lead (n,) of the best first action; infinite where there is one action."""
        return view.leads

    def deeper(self, view: LevelView, distances: FloatArray) -> BoolArray:
        """Return which trees (n,) grow by another level."""
        return np.asarray(distances < 2.0 * self.discount**view.depth * self.spread.others)


class Lookahead(Actor):
    """A trained Q or value function, played with a search at every decision.

    Args:
        model: a Stable-Baselines3 model with a Q-network or a value network, a torch module, an agent of adalook, or a
            function of observations (n, *shape) that returns Q (n, A) or V (n,).
        env: the environment that is played: your own Gymnasium environment, whose current state `predict` reads; or
            whatever `al.make_simulator` takes.
        shape: "rollouts", every first action and then the agent's own policy; "tree", every action at every step; None:
            rollouts, unless the model is a bare value function, which has no policy.
        depth: steps to look ahead at most; None: as far as the budget goes.
        nodes: steps that a decision may simulate; None: no limit (200 if there is neither a depth nor a time).
        seconds: what a decision may take, likewise.
        adaptive: stop earlier once the choice is clear; otherwise every search goes to its limits.
        samples: futures drawn where chance decides, see `search`.
        discount: γ; None takes the model's own, or that of an al.MDP that is played, or 0.99.
        correction: how large the lead of another action than the agent's own must be. For rollouts κ, in units of what
            the values usually err (False: 0, True: 1; `tune` finds it); for a tree the leaf correction (True measures
            it, False leaves it out, an `ErrorSpread` gives it).
        engine: whose processes step the nodes of trees, such as al.LocalProcesses(actors=2); None: this one.
        seed: of the searches' own randomness, and of the episodes on which the correction is measured.

    >>> import gymnasium
    >>> env = gymnasium.make("CartPole-v1")
    >>> def upright(observations):
    ...     return -np.abs(observations[:, 2])
    >>> agent = Lookahead(upright, env, depth=3)
    >>> observation, _ = env.reset(seed=0)
    >>> action, _ = agent.predict(observation)
    >>> observation, *_ = env.step(action)
    """

    def __init__(
        self,
        model: Any,
        env: Any,
        *,
        shape: Literal["rollouts", "tree"] | None = None,
        depth: int | None = None,
        nodes: int | None = None,
        seconds: float | None = None,
        adaptive: bool = True,
        samples: int | Sampling | None = None,
        discount: float | None = None,
        correction: bool | float | ErrorSpread = True,
        engine: Engine | None = None,
        seed: int = 0,
    ) -> None:
        if depth is None and nodes is None and seconds is None:
            nodes = DEFAULT_NODES
        if depth is not None:
            depth = validation.integer(1).validate("depth", depth)
        self.sim = make_simulator(env)
        self._env = env
        self.seed: int = validation.integer(0).validate("the seed", seed)
        if discount is None:
            own = getattr(model, "gamma", None) or getattr(getattr(model, "config", None), "discount", None)
            discount = float(own or self.sim.discount or DEFAULT_DISCOUNT)
        self.discount: float = validation.fraction_above_zero.validate("the discount", discount)
        self._function = value_function(model, self.sim)
        self._policy = _own_policy(model)
        self._budget, self._samples = Budget(nodes, seconds), samples
        self._engine = checked_engine(engine)
        adaptive = validation.boolean.validate("adaptive", adaptive)
        if not isinstance(correction, bool | ErrorSpread):
            correction = validation.non_negative.validate("correction", correction)
        self._expander: Expander | None = None
        self._rng = np.random.default_rng(self.seed)
        self.shape: str = self._checked_shape(shape, correction)
        self._rollouts: PolicyRollouts | None = None
        self.spread = ErrorSpread(0.0, 0.0)
        if self.shape == "rollouts":
            sampling = sampling_of(self.sim, samples) or Sampling()
            self._rollouts = PolicyRollouts(
                self.sim,
                self._own_actions,
                self._state_values,
                discount=self.discount,
                depth=depth,
                budget=self._budget,
                samples=sampling.count,
                adaptive=adaptive,
                caution=0.0 if isinstance(correction, ErrorSpread) else float(correction),
                seed=self.seed,
            )
            return
        self._rule: DepthRule = UntilClear(depth or DEEPEST_TREE, self.discount, ErrorSpread(np.inf, np.inf))
        if isinstance(correction, ErrorSpread):
            self.spread = correction
        elif correction or adaptive:
            self.spread = self._measured_spread()
        self._corrects = correction is not False
        if adaptive:
            self._rule = replace(self._rule, spread=self.spread)

    def __repr__(self) -> str:
        limits = {"nodes": self._budget.nodes, "seconds": self._budget.seconds, "correction": self.correction}
        told = [f"{name}={value:g}" for name, value in limits.items() if value is not None and not math.isnan(value)]
        return f"Lookahead({', '.join([f'shape={self.shape!r}', *told])}, {self.sim!r})"

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, None]:
        """Return the action in the current state of the environment, and None, as Stable-Baselines3 does.

        Args:
            observation: what the environment that this was made with shows right now, alone or as a batch of one; or a
                simulator.
            state: ignored, there for code that was written for Stable-Baselines3.
            episode_start: ignored, likewise.
            deterministic: ignored: the tree's choice is never random.
        """
        del state, episode_start, deterministic
        if isinstance(observation, Simulator):
            return self.search(observation).action, None
        load = getattr(self.sim, "load_env", None)
        if load is None or isinstance(self._env, str | Simulator):
            raise ArgumentError(
                "an observation alone cannot be searched",
                expected="a simulator, or the observation of a Gymnasium environment that Lookahead was made with",
                remedy="make it from the environment you step: al.Lookahead(model, env)",
            )
        array = np.asarray(observation)
        batch = array.shape == (1, *self.sim.observation_shape) and array.shape != self.sim.observation_shape
        load(self._env, array[0] if batch else observation)
        if self.correction == math.inf:
            action = int(self._own_actions(self.sim.observe()[None])[0])
        else:
            action = self.search(self.sim).action
        action += self.sim.first_action
        return (np.array([action]) if batch else action), None

    def _checked_shape(self, shape: str | None, correction: bool | float | ErrorSpread) -> str:
        """Return the shape of searches: as asked for, or what fits the model."""
        given = isinstance(correction, ErrorSpread)
        if shape is None:
            return "rollouts" if self._has_policy() and not given else "tree"
        validation.one_of("rollouts", "tree").validate("shape", shape)
        if shape == "rollouts" and not self._has_policy():
            raise ArgumentError(
                "a bare value function has no policy to roll out",
                expected="a Q-function, or a model with a policy",
                remedy='leave shape out, or pass shape="tree"',
            )
        if shape == "rollouts" and given:
            raise ArgumentError("an ErrorSpread corrects trees", remedy='pass shape="tree", or correction=True')
        return shape

    def _has_policy(self) -> bool:
        """Return whether the model says what to do: by its policy, or by values of actions."""
        if self._policy is not None:
            return True
        blank = np.zeros((1, *self.sim.observation_shape), self.sim.observation_dtype)
        return self._function(blank).ndim == 2

    def search(self, sim: Simulator) -> SearchResult:
        """Return the search from the live state of a simulator, its last level corrected."""
        root = Root.of(sim)
        return self._searched([root], [int(self._rng.integers(2**62))])[0]

    def decide(
        self, envs: Sequence[Simulator], observations: np.ndarray[Any, Any], random_actions: IntArray, seeds: IntArray
    ) -> list[Decision]:
        """Return one decision for each of n environments, see `learning.acting.Actor`."""
        if self.correction == math.inf:
            return [
                Decision(own if other == NO_ACTION else other, 0)
                for own, other in zip(self._own_actions(observations).tolist(), random_actions.tolist(), strict=True)
            ]
        roots = [Root(env.save(), observation) for env, observation in zip(envs, observations, strict=True)]
        results = self._searched(roots, seeds.tolist())
        return [
            Decision(result.action if other == NO_ACTION else other, result.depth, nodes=result.nodes)
            for result, other in zip(results, random_actions.tolist(), strict=True)
        ]

    def evaluate(
        self,
        episodes: int = 10,
        *,
        num_envs: int = 1,
        max_episode_steps: int = 10_000,
        seed: int = 0,
        watcher: Watcher | None = None,
    ) -> Evaluation:
        """Play episodes in environments of their own; budgets of time are for all `num_envs` that play together."""
        return evaluate(
            self,
            self.sim,
            episodes=episodes,
            num_envs=num_envs,
            epsilon=0.0,
            max_episode_steps=max_episode_steps,
            seed=seed,
            watcher=watcher,
        )

    def tune(
        self,
        episodes: int = 4,
        *,
        corrections: Sequence[float] = TRIED,
        max_episode_steps: int = 10_000,
        seed: int = 1,
        progress: bool = True,
    ) -> dict[float, Evaluation]:
        """Play the same episodes with several corrections of rollouts and keep the one that scores best.

        The agent alone (∞) is among them, and stays unless a search beats it by more than the standard error of the
        difference: what was measured to make an agent worse is not done. Returns all evaluations by correction. It
        takes as long as these episodes do; `progress` prints a line on standard error after each correction.

        >>> import adalook as al
        >>> agent = Lookahead(al.DQN("CartPole-v1", seed=0), "CartPole-v1", nodes=8)
        >>> sorted(agent.tune(2, corrections=[0.0], max_episode_steps=20, progress=False))
        [0.0, inf]
        """
        progress = validation.boolean.validate("progress", progress)
        if self._rollouts is None:
            raise ArgumentError("only rollouts are tuned", expected='shape="rollouts"', got=self.shape)
        played: dict[float, Evaluation] = {}
        for correction in (math.inf, *corrections):
            self._rollouts.caution = correction
            played[correction] = found = self.evaluate(episodes, max_episode_steps=max_episode_steps, seed=seed)
            if progress:
                how = "the agent alone" if correction == math.inf else f"looking ahead, correction {correction:g}"
                cost = f"{1e3 * found.seconds / found.decisions:.3g} ms a decision"
                print(f"{how}: {found.mean:.4g} ± {found.standard_error:.2g}, {cost}", file=sys.stderr)
        best = max(played, key=lambda correction: played[correction].mean)
        gains = played[best].scores - played[math.inf].scores
        error = gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
        self._rollouts.caution = best if gains.mean() > error else math.inf
        return played

    @property
    def correction(self) -> float:
        """κ of rollouts, as given or as `tune` found it; ∞: the agent plays alone."""
        return math.nan if self._rollouts is None else self._rollouts.caution

    def close(self) -> None:
        """End worker processes and close clones of the environment, if there are any."""
        if self._rollouts is not None:
            self._rollouts.close()
        if self._expander is not None:
            self._expander.close()
            self._expander = None

    def _searched(self, roots: Sequence[Root], seeds: Sequence[int]) -> list[SearchResult]:
        """Search some roots and correct the values of their first actions."""
        if self._rollouts is not None:
            return [self._rollouts.search(root, seed) for root, seed in zip(roots, seeds, strict=True)]
        if self._expander is None:
            self._expander = make_expander(self.sim, self._engine)
        results = search_many(
            self.sim,
            roots,
            self._leaf_values,
            self._rule,
            discount=self.discount,
            seed=list(seeds),
            samples=self._samples,
            budget=self._budget,
            expander=self._expander,
        )
        if not self._corrects or not (self.spread.own or self.spread.others):
            return results
        if self._has_policy():
            own = self._own_actions(np.stack([root.observation for root in roots])).tolist()
        else:
            own = [int(result.levels[0].action_values.argmax()) for result in results]
        return [self._corrected(result, action) for result, action in zip(results, own, strict=True)]

    def _corrected(self, result: SearchResult, own: int) -> SearchResult:
        """Return a result in which actions other than the agent's own have paid for their leaves' optimism."""
        last = result.levels[-1]
        values = last.action_values - self.spread.penalty(last.depth, self.discount, self.sim.num_actions)
        values[own] = last.action_values[own]
        path = result.path if int(values.argmax()) == result.action else (int(values.argmax()),)
        return replace(result, levels=(*result.levels[:-1], replace(last, action_values=values)), path=path)

    def _own_actions(self, observations: Observations) -> IntArray:
        """Return what the agent would do by itself (n,)."""
        if self._policy is not None:
            return np.asarray(self._policy(observations), np.int64).reshape(-1)
        values = self._function(observations)
        if self.sim.masked:
            values = np.where(self.sim.action_masks(observations), values, -np.inf)
        return np.asarray(values.argmax(axis=1))

    def _state_values(self, observations: Observations) -> FloatArray:
        """Return V, or max_a Q, of observations (n,)."""
        values = self._function(observations)
        if values.ndim == 1:
            return values
        return np.asarray(np.where(self.sim.action_masks(observations), values, -np.inf).max(axis=1))

    def _leaf_values(self, observations: Observations, depth: int) -> FloatArray:
        del depth
        return self._state_values(observations)

    def _measured_spread(self) -> ErrorSpread:
        """Return the spread of one-step errors along episodes that the agent plays in a clone, by itself."""
        env, rng = self.sim.clone(), np.random.default_rng([self.seed, 1])
        observation = env.reset(seed=int(rng.integers(2**31)))
        own: list[float] = []
        others: list[float] = []
        actions = list(range(env.num_actions))
        for step in range(CALIBRATION_STEPS):
            root = env.reseed(env.save(), int(rng.integers(2**62)))
            children = env.expand([root] * len(actions), actions)
            after = np.where(children.terminated, 0.0, self._leaf_values(children.observations, 1))
            targets = children.rewards + self.discount * after
            values = self._function(observation[None])
            estimates = values[0] if values.ndim == 2 else np.full(len(actions), values[0])
            action = int(targets.argmax() if values.ndim == 1 else estimates.argmax())
            if self._policy is not None:
                action = int(np.asarray(self._policy(observation[None])).reshape(-1)[0])
            errors = estimates - targets
            if values.ndim == 2:
                errors = errors - errors.mean()
            own.append(float(errors[action]))
            if values.ndim == 2:
                others.extend(float(error) for a, error in enumerate(errors) if a != action)
            # Now and then something else, so that errors are not those of one rut.
            transition = env.step(action if step % 10 else int(rng.integers(len(actions))))
            observation = env.reset() if transition.episode_over else transition.observation
        env.close()
        spread = float(np.std(own))
        return ErrorSpread(spread, float(np.std(others)) if others else spread)


def value_function(model: Any, sim: Simulator) -> ActionValues:
    """Return what a model says of observations as a function (n, *shape) -> Q (n, A) or V (n,), checked.

    >>> import adalook as al
    >>> sim = al.make_simulator("CartPole-v1")
    >>> value_function(lambda observations: observations[:, 0], sim)(np.zeros((3, 4), np.float32))
    array([0., 0., 0.])
    """
    raw = _raw_function(model)

    def checked(observations: Observations) -> FloatArray:
        try:
            values = np.asarray(raw(observations), np.float64)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:  # a model is anybody's code
            raise ArgumentError(
                "the model cannot value observations of this environment",
                expected=f"a function of observations (n, {', '.join(map(str, sim.observation_shape))})",
                got=error,
                remedy="was it trained in another environment?",
            ) from error
        count = len(observations)
        if values.shape == (count, 1) and sim.num_actions != 1:
            values = values[:, 0]
        if values.shape not in ((count,), (count, sim.num_actions)):
            raise ArgumentError(
                "the model does not value observations",
                expected=f"({count}, {sim.num_actions}) values of actions, or ({count},) of states",
                got=values.shape,
            )
        if not np.isfinite(values).all():
            raise ArgumentError(
                "the model's values are not finite numbers",
                got=values[~np.isfinite(values)][0],
                remedy="look at its weights: training may have diverged",
            )
        return values

    return checked


def _raw_function(model: Any) -> Callable[[Observations], Any]:
    """Return what values observations: by what a model has, not by its class, so that no library must be there."""
    if hasattr(model, "q_function") and hasattr(model, "heads"):  # an agent of ours
        return lambda observations: model.q_function.action_values(observations, model.heads[0])
    policy = getattr(model, "policy", None)
    if policy is not None and hasattr(policy, "obs_to_tensor"):  # Stable-Baselines3
        return _stable_baselines(model, policy)
    if hasattr(model, "parameters") and callable(model):
        return _torch_module(model)
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise ArgumentError(
        "this is no model that can value observations",
        expected="a Stable-Baselines3 model, a torch module, an agent of adalook, or a function",
        got=type(model).__name__,
    )


def _stable_baselines(model: Any, policy: Any) -> Callable[[Observations], Any]:
    import torch

    network = getattr(model, "q_net", None)
    if network is None and not hasattr(policy, "predict_values"):
        raise ArgumentError(
            f"{type(model).__name__} has neither a Q-network nor a value network for single states",
            expected="DQN, PPO, A2C or another model with q_net or policy.predict_values",
        )

    def values(observations: Observations) -> Any:
        policy.set_training_mode(False)
        with torch.inference_mode():
            tensor, _ = policy.obs_to_tensor(observations)
            return (policy.predict_values(tensor) if network is None else network(tensor)).cpu().numpy()

    return values


def _torch_module(module: Any) -> Callable[[Observations], Any]:
    import torch

    parameter = next(iter(module.parameters()), None)
    device = torch.device("cpu") if parameter is None else parameter.device

    def values(observations: Observations) -> Any:
        training = module.training
        module.eval()
        try:
            with torch.inference_mode():
                return module(torch.as_tensor(observations, dtype=torch.float32, device=device)).cpu().numpy()
        finally:
            module.train(training)

    return values


def _own_policy(model: Any) -> Callable[[Observations], Any] | None:
    """Return how a model acts by itself; None for one that takes the maximum of its Q-function."""
    policy = getattr(model, "policy", None)
    if policy is None or not hasattr(policy, "obs_to_tensor") or getattr(model, "q_net", None) is not None:
        return None
    return lambda observations: model.predict(observations, deterministic=True)[0]
