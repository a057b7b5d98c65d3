"""Stable-Baselines3's DQN on the same envs, with the same network, optimizer and settings as ours.

Atari is SB3's own: make_atari_env, VecFrameStack, CnnPolicy, which is the Nature network. For MinAtar its documentation
says to pass a features extractor: the published network, written as SB3's own extractors are.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack

from adalook.learning.presets import config_for
from benchmarks.throughput.job import FAR_AWAY, Job, Watch


def stable_baselines3(job: Job) -> int:
    """Train until the watch stops. All updates it made."""
    torch.set_num_threads(job.threads)
    on_minatar = job.env.startswith("MinAtar/")
    envs = minatar_envs(job) if on_minatar else atari_envs(job)
    policy, policy_arguments = minatar_policy() if on_minatar else ("CnnPolicy", {})
    if job.fast:
        policy_arguments = {"features_extractor_class": CompactExtractor, "net_arch": []}
    steps_per_rollout = max(job.update_period_steps, job.num_envs)
    model = DQN(
        policy,
        envs,
        policy_kwargs=policy_arguments,
        learning_rate=job.learning_rate,
        buffer_size=job.buffer_transitions,
        learning_starts=job.learning_starts_steps,
        batch_size=job.batch_transitions,
        gamma=job.discount,
        train_freq=steps_per_rollout // job.num_envs,
        gradient_steps=steps_per_rollout // job.update_period_steps,
        target_update_interval=job.target_period_steps,
        exploration_initial_eps=job.epsilon,
        exploration_final_eps=job.epsilon,
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
        device="cpu",
        seed=job.seed,
    )
    model.learn(FAR_AWAY, callback=Stopper(Watch(job)), log_interval=None)  # type: ignore[arg-type]
    return model._n_updates


class Stopper(BaseCallback):
    """Shows the watch every step."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def _on_step(self) -> bool:
        return not self._watch.stops_at(self.num_timesteps)


def atari_envs(job: Job) -> VecEnv:
    """No-ops, skipped frames, lives as episodes, clipped rewards, 84×84 grey, four frames stacked."""
    import ale_py

    gymnasium.register_envs(ale_py)
    game = job.env.removeprefix("ALE/").removesuffix("-v5")
    return VecFrameStack(make_atari_env(f"{game}NoFrameskip-v4", n_envs=job.num_envs, seed=job.seed), n_stack=4)


def minatar_envs(job: Job) -> VecEnv:
    """MinAtar's own games behind the thinnest wrapper that Gymnasium allows."""
    return DummyVecEnv([lambda seed=seed: MinAtarEnv(job.env, seed) for seed in range(job.num_envs)])


class MinAtarEnv(gymnasium.Env[np.ndarray[Any, Any], int]):
    """A game with the actions that matter, without sticky ones, channels first: what our simulator shows."""

    def __init__(self, env: str, seed: int) -> None:
        from minatar import Environment

        name = env.removeprefix("MinAtar/").removesuffix("-v1").lower()
        self._game = Environment(name, sticky_action_prob=0.0)
        self._game.seed(seed)
        self._actions = self._game.minimal_action_set()
        height, width, channels = self._game.state_shape()
        self.observation_space = gymnasium.spaces.Box(0, 1, (channels, height, width), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(self._actions))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        self._game.reset()
        return self._shown(), {}

    def step(self, action: int) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        reward, terminated = self._game.act(self._actions[action])
        return self._shown(), reward, terminated, False, {}

    def _shown(self) -> np.ndarray[Any, Any]:
        return self._game.state().transpose(2, 0, 1).view(np.uint8)  # type: ignore[no-any-return]


class MinAtarExtractor(BaseFeaturesExtractor):
    """One 3×3 convolution of 16 channels and a layer of 128 units (Young & Tian 2019)."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        super().__init__(observation_space, features_dim=128)
        channels, height, width = observation_space.shape
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(channels, 16, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * (height - 2) * (width - 2), 128),
            torch.nn.ReLU(),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layers(observations)  # type: ignore[no-any-return]


class CompactExtractor(BaseFeaturesExtractor):
    """Two 5×5 convolutions in strides of 5 and a layer of 256 units (van Hasselt et al. 2019)."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        super().__init__(observation_space, features_dim=256)
        frames, height, width = observation_space.shape
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(frames, 32, 5, stride=5),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 64, 5, stride=5),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(64 * (height // 25) * (width // 25), 256),
            torch.nn.ReLU(),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layers(observations)  # type: ignore[no-any-return]


def minatar_policy() -> tuple[str, dict[str, Any]]:
    """The extractor with nothing but a linear layer on top, and centred RMSprop as in our preset."""
    preset = config_for("MinAtar/")
    return "MlpPolicy", {
        "features_extractor_class": MinAtarExtractor,
        "net_arch": [],
        "optimizer_class": torch.optim.RMSprop,
        "optimizer_kwargs": {"alpha": preset.second_moment_decay, "eps": preset.optimizer_epsilon, "centered": True},
    }
