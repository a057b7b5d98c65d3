"""The base of DQN, plain or on trees of fixed depth, and QL-DQN: everything but how deep they look.

depth 0     Q_0, no tree                           ValueActor                                      dqn.py
depth h     Q_h at the leaves of a tree of h       TreeActor(FixedDepth(h))                        dqn.py
QL-DQN      Q_1 … Q_H, depth by rank of distance   TreeActor(QuantileDepth(θ, ranks, Ṽ*))          qldqn.py

agent = al.QLDQN("MinAtar/Breakout-v1")
agent.learn(seconds=60)
agent.evaluate(episodes=10).mean
action, _ = agent.predict(observation)
"""

from __future__ import annotations

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from adalook import _validation as validation
from adalook._interrupts import SignalGuard
from adalook.engines.base import Engine
from adalook.errors import AdalookError, ArgumentError, FileError, SimulatorError, shown
from adalook.learning.acting import NO_ACTION, Actor
from adalook.learning.config import Config
from adalook.learning.cpu import accelerate_network, make_learner
from adalook.learning.depth import DistanceRanks
from adalook.learning.effects import check_effects
from adalook.learning.engines.distributed import check_learning_engine, distribute
from adalook.learning.evaluation import Evaluation, Watcher, evaluate
from adalook.learning.networks import MIN_ROWS, QFunction, QNetwork, TableTrunk, build_network, find_device
from adalook.learning.presets import config_for
from adalook.learning.replay.buffer import Replay
from adalook.learning.replay.shifts import check_shift
from adalook.learning.runs.directory import (
    CONFIG_FILE,
    CONFIG_FORMAT,
    Checkpoint,
    RunConfig,
    RunDirectory,
    load_newest,
    read_run_config,
    write_run_config,
)
from adalook.learning.runs.export import is_exported_agent, read_exported_agent, write_exported_agent
from adalook.learning.training import Acting, EnvPool, InProcessActing, Round, Trainer
from adalook.simulators.base import Simulator
from adalook.simulators.make import live_simulator, make_simulator, problem_name
from adalook.storage.files import checked_path

Callback = Callable[[Round], bool | None]
"""A function that training calls with every round; when it returns False, training ends."""


REPORT_PERIOD_STEPS = 200
"""Agent steps between reports of progress while `learn` runs."""


class Agent(ABC):
    """An agent that learns, predicts, evaluates and saves itself; subclasses say how it acts.

    Args:
        env: the name of an environment, an al.MDP, a Gymnasium environment that can be copied, or a simulator.
        config: None takes the preset of the environment's family.
        heads: the depths that the network has heads for.
        seed: one seed, one run, to the bit.
        engine: where the environments are while it learns, such as al.Ray(actors=8); None: in this process.
    """

    kind: ClassVar[str]
    actor: Actor
    """Chooses actions; set by subclasses."""
    run_directory: Path | None = None
    """Of the run that it trains in, if it does: where engines put their logs."""

    def __init__(
        self, env: Any, config: Config | None, *, heads: Iterable[int], seed: int, engine: Engine | None = None
    ) -> None:
        self.env, self.config = env, checked_config(env, config, self.kind)
        self.seed: int = validation.integer(0, 2**63 - 1).validate("the seed", seed)
        torch.set_num_threads(self.config.threads)
        self.heads = tuple(heads)
        if self.config.n_steps > 1 and max(self.heads) > 0 and not self.config.learn_real_steps:
            raise ArgumentError(
                "config: n_steps has no effect on an agent with a tree, whose returns are those to its leaves",
                expected="n_steps=1",
                got=self.config.n_steps,
                remedy="leave n_steps to plain DQN, depth=0, or set learn_real_steps",
            )
        self.sim = _simulator(env, self.config, looks_ahead=max(self.heads) > 0)
        _check_network_fits(self.config, self.sim)
        check_shift(self.config.random_shift, self.sim.observation_shape)
        self.device = find_device(self.config.device)
        self.network = self._new_network()
        self.q_function = QFunction(self.network, self.device)
        self.leaf_values = QFunction(self.network, self.device, MIN_ROWS if self.config.num_envs > 1 else 1)
        """The same, in passes that give the same bits however environments are split over actors."""
        self.ranks = DistanceRanks(min_count=self.config.ranked_transitions)
        """Of the distances in the replay buffer; depth rules may go by them."""
        self._prediction_rng = np.random.default_rng([self.seed, 0])
        self._trainer: Trainer | None = None
        self.engine = engine
        if engine is not None:
            check_learning_engine(engine, self.sim)

    @property
    def node_engine(self) -> Engine | None:
        """The engine whose processes step the nodes of trees; None: this process does."""
        return self.engine if self.engine is not None and self.engine.split == "nodes" else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env!r}, seed={self.seed}, step={self.step})"

    def _new_network(self) -> QNetwork:
        network = build_network(self.sim, self.config, self.heads, seed=self.seed, device=self.device)
        return accelerate_network(network, self.config, self.device)

    @property
    def trainer(self) -> Trainer:
        """All that changes while it learns; made when first needed, since a replay buffer may be large."""
        if self._trainer is None:
            config = self.config
            learner = make_learner(self._new_network(), self._new_network(), config, self.device)
            replay = Replay.for_simulator(
                self.sim,
                config.buffer_transitions,
                max_depth=max(self.heads),
                ranks=self.ranks,
                compression=config.compression,
            )
            self._trainer = Trainer(
                config,
                self._make_acting(),
                self.network,
                learner,
                replay,
                seed=self.seed,
                executor=self._executor(),
            )
        return self._trainer

    def _make_acting(self) -> Acting:
        """Return the environments of training with what acts in them: here, or where the engine has them."""
        here = InProcessActing(self.make_envs(self.config.num_envs), self.actor)
        return here if self.engine is None else distribute(self, here)

    def make_envs(self, count: int) -> EnvPool:
        """Return so many environments as it learns in."""
        config = self.config
        return EnvPool(
            self.sim,
            count,
            seed=self.seed,
            max_episode_steps=config.max_episode_steps,
            stall_steps=config.stall_steps,
        )

    def prepare(self) -> None:
        """Make all that a run needs, so that what cannot be is refused before one is begun."""
        _ = self.trainer
        self.make_envs(1).state()  # what checkpoints hold of an environment

    def _executor(self) -> ThreadPoolExecutor | None:
        """Return a thread that learns while this one acts; None if the config does not ask for overlap.

        torch keeps the number of cores for its operations by thread, so the new one is told ours.
        """
        if not self.config.overlap:
            return None
        return ThreadPoolExecutor(1, "adalook-learning", torch.set_num_threads, (self.config.threads,))

    def forget_training(self) -> None:
        """Drop the replay buffer, the environments and the threads; the network stays as it is."""
        if self._trainer is not None:
            self._trainer.close()
            self._trainer = None

    @property
    def step(self) -> int:
        """Agent steps taken so far."""
        return 0 if self._trainer is None else self._trainer.step

    @property
    def prior_steps(self) -> int:
        """Agent steps of the prior while it is in training; otherwise 0."""
        return 0

    def rounds(self) -> Iterator[Round]:
        """Train, one round for each that is asked for, without end."""
        return self.trainer.rounds()

    def learn(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        callbacks: Iterable[Callback] = (),
        progress: bool | Literal["episodes"] = True,
        log: Callable[..., object] | None = None,
        out: Path | str | None = None,
    ) -> Self:
        """Train for so many more agent steps, or so many more seconds of training, whichever is over first.

        Args:
            steps: rounds are never cut, so there may be up to `config.num_envs` − 1 more.
            seconds: time that callbacks take is not counted.
            callbacks: called with each `Round`; one that returns False ends training after it.
            progress: show how it goes on standard error: a live line on a terminal, otherwise a line now and then.
                "episodes" prints every episode, too; False nothing.
            log: called as `log({"charts/episodic_return": …}, step=…)`, which is how `wandb.log` is called.
            out: the directory of a run, new or this agent's own, which logs, evaluates and saves as `adalook train`
                does: `load`, `adalook evaluate`, `--resume` and `adalook report` go on from there.

        Ctrl-C ends the round first, so that the agent can go on, and be saved, afterwards; a second one does not wait.

        >>> import adalook as al
        >>> agent = al.DQN(al.zoo.chain(n=4), seed=0)
        >>> agent.learn(steps=64, progress=False, callbacks=[lambda done: done.step < 32]).step
        32
        """
        if not isinstance(callbacks, Iterable):
            raise ArgumentError("callbacks are wrong", expected="a list of functions", got=shown(callbacks))
        callbacks = list(callbacks)
        _check_learn(steps, seconds, callbacks, log)
        if not isinstance(progress, bool) and not (isinstance(progress, str) and progress == "episodes"):
            raise ArgumentError("progress is wrong", expected='True, False or "episodes"', got=shown(progress))
        last_step = np.inf if steps is None else self.step + steps
        last_second = np.inf if seconds is None else seconds
        if out is None:
            last_second += self.trainer.seconds
        with contextlib.ExitStack() as stack:
            callbacks += _watching(self.step, (last_step, last_second), progress, log, stack)
            if out is not None:
                from adalook.learning.runs.run import train_in

                train_in(checked_path(out), self, steps=steps, seconds=seconds, callbacks=callbacks)
                return self
            stopped = self._learn_until(last_step, last_second, callbacks)
        stopped.raise_received()
        return self

    def _learn_until(self, last_step: float, last_second: float, callbacks: Sequence[Callback]) -> SignalGuard:
        """Train until a step or second, or until a callback or a signal ends it; returns the signals received."""
        with SignalGuard() as stopped, contextlib.closing(self.rounds()) as rounds:  # type: ignore[type-var]
            goes_on = True
            while goes_on and self.step < last_step and self.trainer.seconds < last_second and not stopped:
                done = next(rounds)
                answers = [callback(done) for callback in callbacks]
                goes_on = not any(answer is False for answer in answers)
        return stopped

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, None]:
        """Return the action for an observation, or for the live state of a simulator.

        An observation alone cannot be searched: the network's shallowest head, which has seen the most states, decides.
        Given a simulator the tree does.

        Args:
            observation: (*observation_shape), a batch of them, or a simulator.
            state: ignored, there for code that was written for Stable-Baselines3.
            episode_start: ignored, likewise.
            deterministic: never random; otherwise a share `evaluation_epsilon` of actions is.

        Returns:
            The action, or (n,) of them for a batch, as the environment's action space counts them (for a simulator,
            from 0, as its `step` does); and None.
        """
        del state, episode_start
        deterministic = validation.boolean.validate("deterministic", deterministic)
        if isinstance(observation, Simulator):
            _check_simulator_fits(observation, self.sim)
            return self._decide_live(observation, deterministic), None
        _check_states(observation, self.network)
        rows, single = as_batch(observation, self.sim)
        values = self.q_function.action_values(rows, self.heads[0])
        if self.sim.masked:
            values = np.where(self.sim.action_masks(rows), values, -np.inf)
        actions = values.argmax(axis=1)
        chosen = np.where(self._is_greedy(len(rows), deterministic), actions, self._random_actions(len(rows)))
        chosen += self.sim.first_action
        return (int(chosen[0]) if single else chosen), None

    def _decide_live(self, env: Simulator, deterministic: bool) -> int:
        random_action = self._random_actions(1)
        random_action[self._is_greedy(1, deterministic)] = NO_ACTION
        seeds = self._prediction_rng.integers(0, 2**62, 1)
        with self._at_play():
            return self.actor.decide([env], env.observe()[None], random_action, seeds)[0].action

    def _at_play(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the agent acts as it plays, not as it explores what a decision costs."""
        return contextlib.nullcontext()

    def _random_actions(self, count: int) -> np.ndarray[Any, Any]:
        return self._prediction_rng.integers(0, self.sim.num_actions, count)

    def _is_greedy(self, count: int, deterministic: bool) -> np.ndarray[Any, Any]:
        draws: np.ndarray[Any, Any] = self._prediction_rng.random(count)
        return draws >= (0.0 if deterministic else self.config.evaluation_epsilon)

    def evaluate(
        self,
        episodes: int = 10,
        *,
        seed: int = 0,
        epsilon: float | None = None,
        max_episode_steps: int | None = None,
        max_nodes: int | None = None,
        stage_nodes: int | None = None,
        watcher: Watcher | None = None,
    ) -> Evaluation:
        """Play so many episodes in environments of their own and return the scores, before clipping.

        Args:
            episodes: each begins with its own seed, drawn from `seed`.
            seed: the same gives the same episodes.
            epsilon: share of random actions; None takes the config's.
            max_episode_steps: episodes are cut off there; None takes the config's.
            max_nodes: after so many simulated steps of searches the episodes that are being played are cut off, and no
                other begins.
            stage_nodes: of a search by rollouts, instead of the config's: an agent may play with more time for a
                decision than it was trained with.
            watcher: is shown every decision; see `adalook.learning.runs.episode_gif`.

        >>> import adalook as al
        >>> evaluation = al.DQN(al.zoo.chain(n=4), depth=2, seed=0).evaluate(episodes=3)
        >>> len(evaluation.scores), list(evaluation.depths)
        (3, [2])
        """
        torch.set_num_threads(self.config.threads)
        with self._at_play():
            return evaluate(
                self.actor if stage_nodes is None else self._actor_with(stage_nodes),
                self.sim,
                episodes=episodes,
                num_envs=self.config.num_envs,
                epsilon=self.config.evaluation_epsilon if epsilon is None else epsilon,
                max_episode_steps=self.config.max_episode_steps if max_episode_steps is None else max_episode_steps,
                stall_steps=self.config.stall_steps,
                max_nodes=max_nodes,
                seed=seed,
                watcher=watcher,
            )

    def _actor_with(self, stage_nodes: int) -> Actor:
        """Return what plays with so many simulated steps a stage."""
        raise ArgumentError(
            "stage_nodes has no effect on this agent",
            expected="an agent whose search_shape is rollouts",
            got=f"{stage_nodes} for {self!r}",
        )

    @classmethod
    @abstractmethod
    def from_run_config(cls, run_config: dict[str, Any], env: Any = None, engine: Engine | None = None) -> Self:
        """Return the agent that `run_config` describes, untrained. `env` is needed if the environment has no name."""

    def run_config(self) -> dict[str, Any]:
        """Return what it takes to make the same agent again, as JSON can hold it."""
        return {
            "format": CONFIG_FORMAT,
            "agent": self.kind,
            "env": problem_name(self.env),
            "seed": self.seed,
            "config": self.config.to_plain(),
        }

    def state(self) -> dict[str, Any]:
        """Return all that training goes on from, as plain data and arrays."""
        return {
            "kind": self.kind,
            "trainer": self.trainer.state(),
            "predictions": self._prediction_rng.bit_generator.state,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self._prediction_rng.bit_generator.state = state["predictions"]
        self.trainer.load_state(state["trainer"])

    def policy_state(self) -> dict[str, Any]:
        """Return what it acts by, without what it learns from: enough to predict and evaluate."""
        return {"kind": self.kind, "network": self.network.weights()}

    def load_policy(self, state: dict[str, Any]) -> None:
        """Act as the agent did that gave `state`."""
        self.network.load_weights(state["network"])

    def round_state(self) -> dict[str, Any]:
        """Return what decisions depend on and every round may change, the network apart: small, and plain data."""
        return {}

    def follow(self, round_state: dict[str, Any]) -> None:
        """Decide as the agent does that gave `round_state`; this one, in an actor's process, has no buffer."""
        del round_state

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, or only act by it, if that is all it holds."""
        try:
            self._restore(checkpoint)
        except AdalookError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise FileError(
                f"{checkpoint.path} does not hold what this agent saves",
                got=f"{type(error).__name__}: {error}"[:300],
                remedy="the run is damaged or of another version: start a new one",
            ) from error

    def _restore(self, checkpoint: Checkpoint) -> None:
        only_policy = "policy" in checkpoint.state
        state = checkpoint.state["policy" if only_policy else "agent"]
        if state["kind"] != self.kind:
            raise FileError(
                f"{checkpoint.path} is of another agent than {CONFIG_FILE} says",
                expected=self.kind,
                got=state["kind"],
                remedy=f"put the {CONFIG_FILE} of this run back",
            )
        (self.load_policy if only_policy else self.load_state)(state)

    def save(self, directory: Path | str) -> None:
        """Write everything into a run directory; `load` goes on from there. Another agent's run is refused."""
        directory = checked_path(directory)
        with RunDirectory(directory) as run:
            if not (directory / CONFIG_FILE).exists():
                write_run_config(directory, self.run_config())
            elif read_run_config(directory) != self.run_config():
                raise FileError(f"{directory} holds the run of another agent", remedy="choose another directory")
            run.save(self.step, {"agent": self.state()})

    def export(self, directory: Path | str, **about: Any) -> None:
        """Write what it acts by into a folder that is small enough to ship; `load` reads it, training cannot go on.

        Args:
            directory: made unless it exists.
            about: what its card says beside settings and digests, such as scores, as JSON can hold it.
        """
        write_exported_agent(checked_path(directory), self.run_config(), self.policy_state(), about)

    @classmethod
    def load(cls, directory: Path | str, env: Any = None, engine: Engine | None = None) -> Self:
        """Return the agent of a run, as its newest checkpoint has it, or an exported agent.

        Args:
            directory: of the run or of the export.
            env: needed if the environment has no name, such as an al.MDP.
            engine: where the environments are when it goes on learning; any will do, whatever the run began with.
        """
        directory = checked_path(directory)
        run_config, policy = read_run_or_export(directory)
        if run_config["agent"] != cls.kind:
            raise ArgumentError(f"{directory} holds another agent", expected=cls.kind, got=run_config["agent"])
        agent = cls.from_run_config(run_config, env, engine)
        try:
            agent._restore_from(directory, policy)
        except ArgumentError as error:
            if env is None:
                raise
            raise ArgumentError(
                f"the agent in {directory} does not fit this environment",
                expected=f"one like {run_config['env'] or 'that of its training'}",
                got=f"{problem_name(env) or type(env).__name__}: {error}",
            ) from error
        return agent

    def _restore_from(self, directory: Path, policy: dict[str, Any] | None) -> None:
        """Go on from a run's newest checkpoint, or act by the policy of an export."""
        if policy is not None:
            self.restore(Checkpoint(0, {"policy": policy}, directory))
            return
        newest = load_newest(directory)
        if newest is None:
            raise FileError(f"{directory} has no checkpoint yet", remedy="train for longer, or look at another run")
        self.restore(newest)


def read_run_or_export(directory: Path) -> tuple[RunConfig, dict[str, Any] | None]:
    """Return the run config in a folder, with the policy if it is an exported agent, None if it is a run."""
    return read_exported_agent(directory) if is_exported_agent(directory) else (read_run_config(directory), None)


def _check_learn(steps: int | None, seconds: float | None, callbacks: Sequence[Callback], log: Any) -> None:
    """Raise unless training has an end, and callbacks and log can be called."""
    if steps is None and seconds is None:
        raise ArgumentError("learn needs an end", expected="steps= or seconds=")
    validation.optional(validation.integer(0)).validate("steps", steps)
    validation.optional(validation.non_negative).validate("seconds", seconds)
    for callback in callbacks:
        if not callable(callback):
            raise ArgumentError("a callback is no function", expected="a function of a Round", got=shown(callback))
    if log is not None and not callable(log):
        raise ArgumentError("log is no function", expected="a function such as wandb.log", got=shown(log))


def _watching(
    step: int,
    limits: tuple[float, float],
    progress: bool | str,
    log: Callable[..., object] | None,
    stack: contextlib.ExitStack,
) -> list[Callback]:
    """Return the callback that shows progress and logs metrics, if either is wanted."""
    from adalook.learning.runs.callbacks import ProgressCallback
    from adalook.learning.runs.loggers import Logger, MetricLogger, progress_logger

    loggers: list[Logger] = []
    if progress:
        loggers.append(stack.enter_context(progress_logger(*limits, every_episode=progress == "episodes")))
    if log is not None:
        loggers.append(MetricLogger(log))
    return [ProgressCallback(loggers, REPORT_PERIOD_STEPS, step)] if loggers else []


def checked_config(
    env: Any, config: Config | None, agent: str, settings: Mapping[str, Any] = MappingProxyType({})
) -> Config:
    """Return a config, or the preset of an agent for an environment for None, with some settings changed."""
    if inspect.isclass(env):
        raise ArgumentError(
            f"{env.__name__} is a class", expected="an environment", remedy=f"make one: {env.__name__}()"
        )
    if isinstance(env, str) and env.endswith("Policy") and isinstance(config, str):
        raise ArgumentError(
            "agents here take no policy",
            got=f"{env}, {config}",
            remedy=f"the environment comes first: al.DQN({config!r})",
        )
    if config is None:
        config = config_for(env, agent)
    if not isinstance(config, Config):
        raise ArgumentError(
            "this is no config",
            expected="an al.Config, or None",
            got=shown(config),
            remedy="pass settings by name, as in al.QLDQN(env, learning_rate=1e-3), or an al.Config",
        )
    config = config.with_settings(**settings)
    check_effects(agent, env, config, settings)
    return config


def _check_network_fits(config: Config, sim: Simulator) -> None:
    """Raise if a config was plainly meant for another family of environments."""
    if config.network == "minatar" and sim.observation_shape == (4, 84, 84):
        raise ArgumentError(
            "config: the network of MinAtar does not suit Atari's frames",
            expected="network='nature'",
            got="'minatar', the default of al.Config",
            remedy="change the preset by name, as in al.QLDQN(env, learning_rate=1e-4), or al.Config.for_env(env, …)",
        )


def _simulator(env: Any, config: Config, looks_ahead: bool) -> Simulator:
    """Return the simulator of an environment, under the rules of training; any will do that need not look ahead."""
    if isinstance(env, str) and env.startswith("ALE/"):
        return make_simulator(
            env,
            frame_skip=config.frame_skip,
            life_loss_ends=config.life_loss_ends,
            life_loss_penalty=config.life_loss_penalty,
            clip_rewards=config.reward_scale == "clip",
            log_rewards=config.reward_scale == "log",
        )
    try:
        return make_simulator(env)
    except SimulatorError:
        if looks_ahead:
            raise
        return live_simulator(env)


def as_batch(observation: Any, sim: Simulator) -> tuple[np.ndarray[Any, Any], bool]:
    """Return observations as (n, *observation_shape), and whether it was one alone.

    As Gymnasium shows them they are taken too: pictures with their channels last, the number of a state as it is. Where
    the shape does not tell first from last, the type does: MinAtar's own pictures are of bool, ours are not.
    """
    array, shape, dtype = _as_numbers(observation), sim.observation_shape, sim.observation_dtype
    if array.shape == () and shape == (1,):
        array = array[None]
    picture, last = len(shape) == 3, (*shape[1:], shape[0])
    for candidate in (array[None], array):
        shown, single = candidate.shape[1:], candidate.ndim > array.ndim
        if shown == shape and not (picture and shown == last and array.dtype == bool):
            return np.ascontiguousarray(candidate, dtype), single
        if picture and shown == last:
            return np.ascontiguousarray(np.moveaxis(candidate, -1, 1), dtype), single
    raise ArgumentError("this observation does not fit", expected=f"{shape}, or a batch of such", got=array.shape)


def _as_numbers(observation: Any) -> np.ndarray[Any, Any]:
    """Return an observation as an array of finite numbers, or raise `ArgumentError`."""
    try:
        array = np.asarray(observation)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        unpack = isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict)
        raise ArgumentError(
            "this observation does not fit",
            expected="finite numbers, or a simulator",
            got=shown(observation),
            remedy="unpack what reset returns: observation, info = env.reset()" if unpack else "",
        )
    return array


def _check_simulator_fits(given: Simulator, own: Simulator) -> None:
    """Raise unless a simulator has the actions and observations of the one that an agent has learned in."""
    facts = [(sim.num_actions, sim.observation_shape, np.dtype(sim.observation_dtype)) for sim in (own, given)]
    if facts[0] != facts[1]:
        expected, got = (f"{actions} actions, observations {dtype} {shape}" for actions, shape, dtype in facts)
        raise ArgumentError("this simulator is of another environment than the agent's", expected=expected, got=got)


def _check_states(observation: Any, network: QNetwork) -> None:
    """Raise if a table has no entry for an observation."""
    trunk = network.trunk
    if isinstance(trunk, TableTrunk) and not np.isin(_as_numbers(observation), np.arange(trunk.features)).all():
        states = f"whole numbers 0..{trunk.features - 1}"
        raise ArgumentError("this observation is no state of the table", expected=states, got=shown(observation))
