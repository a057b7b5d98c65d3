"""Every setting of a run, with its unit in its name, and one preset per family of worlds.

A preset is a function that says only what differs from the defaults, so no number is written twice. The defaults are
those of MinAtar. `agent steps` count decisions, one per world, whatever the world does with them (Atari: four frames).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from adalook.errors import ArgumentError

Network = Literal["nature", "minatar", "mlp", "table"]
Optimiser = Literal["adam", "rmsprop"]
Compression = Literal["auto", "none", "lz4"]


@dataclass(frozen=True)
class Config:
    """What a run can be told. The CLI's flags are these fields, and their help is these comments."""

    # The worlds
    envs: int = 8
    """Worlds that act together, so that their leaves share passes through the network."""
    life_loss_ends: bool = True
    """A lost life ends the value of a state, in training and in the tree alike (worlds without lives ignore it)."""

    max_episode_steps: int = 10_000
    """Episodes are cut off after this many agent steps. That is no end: the last state keeps its value."""

    # The network
    network: Network = "minatar"
    """nature: three convolutions, for Atari; minatar: one 3×3 convolution; mlp: two layers over a vector of numbers;
    table: an entry per state."""
    hidden_units: int = 128
    """Units of the layer below the heads; the table has none."""
    shared_head: bool = True
    """One head for all depths (ours: in a world without chance all of them have the same fixed point, Q*) instead of
    one each (the paper's, which reports that sharing diverges)."""

    # Acting
    discount: float = 0.99
    """γ, per agent step."""
    epsilon_start: float = 1.0
    """Share of random actions at the first step."""
    epsilon_end: float = 0.1
    """Share of random actions after annealing."""
    epsilon_anneal_steps: int = 100_000
    """Agent steps over which the share of random actions falls, in a straight line."""
    evaluation_epsilon: float = 0.0
    """Share of random actions in evaluations."""

    # Looking ahead: QL-DQN
    nodes_per_step: float = 30.0
    """What a decision may cost on average, in simulated steps: θ follows the cost, one share for all depths (ours).
    0: the shares are given (the paper's)."""
    deepest_tree: int = 5
    """No tree grows deeper than this, if θ follows the cost."""
    shares: tuple[float, ...] = (0.3, 0.1)
    """If they are given, θ_2, θ_3, …: the share of states, those farthest from Ṽ*, that look one level deeper than 1,
    2, … The deepest tree is one more than there are shares. 1 and above: always deeper; 0 and below: never."""
    ranked_transitions: int = 1_000
    """Distances that a depth must have on record before its ranks decide; until then the search stops there."""
    prior: str = "self"
    """Ṽ*: 'self', the change that the last level brought to the best value (ours); 'train', a DQN of depth 0 that is
    trained first and then frozen (the paper's); or the directory of a run whose network is taken."""
    prior_steps: int = 100_000
    """Agent steps for which prior 'train' trains."""
    train_shallow_heads: bool = False
    """Store the best leaf of every level that the search went through, not only of the last: shallow heads then learn
    from hard states too (ours, decision 11)."""
    head_balance: float = 0.0
    """How far to make up for heads with few transitions in a batch: a transition of a depth with share p of the batch
    weighs p^-balance. 0: all weigh the same (the paper's); 1: every head learns as fast as it would alone."""

    # Learning
    batch_transitions: int = 32
    """Transitions per update."""
    buffer_transitions: int = 100_000
    """Transitions that the replay memory holds."""
    learning_starts_steps: int = 5_000
    """Agent steps before the first update."""
    update_period_steps: int = 1
    """Agent steps per update."""
    target_period_steps: int = 1_000
    """Agent steps between copies of the network into the target network."""
    optimiser: Optimiser = "rmsprop"
    """rmsprop (centred) or adam."""
    learning_rate: float = 0.00025
    """Step size of the optimiser."""
    optimiser_epsilon: float = 0.01
    """What the optimiser adds to its denominator."""
    square_decay: float = 0.95
    """Memory of the running mean of squared gradients (rmsprop: also of the gradients)."""
    momentum_decay: float = 0.9
    """Memory of the running mean of gradients (adam)."""

    # The machine
    device: str = "auto"
    """cpu, cuda, or auto: cuda where there is one."""
    threads: int = 1
    """Threads of the network's arithmetic. Part of the run: another number gives other roundings."""
    overlap: bool = False
    """Act, learn and compute targets at the same time, where there are cores for it. The results are the same, to the
    bit."""
    search_workers: int = 0
    """Processes that step the nodes of trees; 0: none but this one. The results are the same, to the bit."""
    compression: Compression = "auto"
    """How the replay memory keeps frames: none, lz4, or auto: lz4 for stacked pictures and none for others."""

    def __post_init__(self) -> None:
        for name, (holds, expected) in _RANGES.items():
            value = getattr(self, name)
            if not holds(value):
                raise ArgumentError(f"config: {name} is out of range", expected=expected, got=repr(value))
        if self.buffer_transitions < self.batch_transitions:
            raise ArgumentError(
                "config: the replay memory cannot fill a batch",
                expected=f"buffer_transitions >= batch_transitions = {self.batch_transitions}",
                got=self.buffer_transitions,
            )

    @property
    def max_depth(self) -> int:
        """H, the deepest tree of QL-DQN."""
        return self.deepest_tree if self.nodes_per_step else 1 + len(self.shares)

    def epsilon(self, step: int) -> float:
        """The share of random actions at an agent step."""
        done = min(1.0, step / self.epsilon_anneal_steps)
        return self.epsilon_start + done * (self.epsilon_end - self.epsilon_start)

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dataclasses.asdict(self) | {"shares": list(self.shares)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Config:
        """What `to_plain` made; an unknown name is refused."""
        unknown = set(plain) - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ArgumentError("config: there is no such setting", got=", ".join(sorted(unknown)))
        return cls(**(plain | ({"shares": tuple(plain["shares"])} if "shares" in plain else {})))


def _whole(least: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, int) and value >= least, f"a whole number >= {least}"


_SHARE: tuple[Callable[[Any], bool], str] = (lambda value: 0.0 <= value <= 1.0, "a number in [0, 1]")
_DECAY: tuple[Callable[[Any], bool], str] = (lambda value: 0.0 <= value < 1.0, "a number in [0, 1)")
_POSITIVE: tuple[Callable[[Any], bool], str] = (lambda value: 0.0 < value < float("inf"), "a number > 0")

_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "envs": _whole(1),
    "max_episode_steps": _whole(1),
    "network": (lambda value: value in ("nature", "minatar", "mlp", "table"), "nature, minatar, mlp or table"),
    "hidden_units": _whole(1),
    "discount": _SHARE,
    "epsilon_start": _SHARE,
    "epsilon_end": _SHARE,
    "epsilon_anneal_steps": _whole(1),
    "evaluation_epsilon": _SHARE,
    "shares": (lambda value: all(isinstance(share, int | float) and share == share for share in value), "numbers"),
    "nodes_per_step": (lambda value: 0.0 <= value < float("inf"), "a number >= 0"),
    "deepest_tree": _whole(1),
    "ranked_transitions": _whole(1),
    "prior_steps": _whole(1),
    "head_balance": _SHARE,
    "batch_transitions": _whole(1),
    "buffer_transitions": _whole(1),
    "learning_starts_steps": _whole(0),
    "update_period_steps": _whole(1),
    "target_period_steps": _whole(1),
    "optimiser": (lambda value: value in ("adam", "rmsprop"), "adam or rmsprop"),
    "learning_rate": _POSITIVE,
    "optimiser_epsilon": _POSITIVE,
    "square_decay": _DECAY,
    "momentum_decay": _DECAY,
    "threads": _whole(1),
    "search_workers": _whole(0),
    "compression": (lambda value: value in ("auto", "none", "lz4"), "auto, none or lz4"),
}


def minatar() -> Config:
    """The network and settings published with MinAtar (Young & Tian 2019)."""
    return Config()


def atari() -> Config:
    """The Nature network (Mnih et al. 2015) with the settings that CleanRL and SB3 use for Atari."""
    return Config(
        max_episode_steps=27_000,  # 108,000 frames, half an hour of play
        network="nature",
        hidden_units=512,
        epsilon_end=0.01,
        evaluation_epsilon=0.001,
        nodes_per_step=20.0,  # an emulated step takes half a millisecond: as long as learning
        deepest_tree=3,
        buffer_transitions=1_000_000,
        learning_starts_steps=80_000,
        update_period_steps=4,
        optimiser="adam",
        learning_rate=1e-4,
        optimiser_epsilon=1e-8,
        square_decay=0.999,
        overlap=True,
    )


def tabular() -> Config:
    """A table of values, for MDPs small enough to check against `al.solve`."""
    return Config(
        max_episode_steps=50,
        network="table",
        epsilon_end=0.5,
        epsilon_anneal_steps=1_000,
        ranked_transitions=100,
        buffer_transitions=10_000,
        learning_starts_steps=200,
        target_period_steps=50,
        optimiser="adam",
        learning_rate=0.02,
        optimiser_epsilon=1e-8,
        square_decay=0.999,
    )


def vector() -> Config:
    """Worlds that show a vector of numbers, such as CartPole."""
    return Config(
        max_episode_steps=1_000,
        network="mlp",
        epsilon_end=0.05,
        epsilon_anneal_steps=10_000,
        learning_starts_steps=1_000,
        target_period_steps=500,
        optimiser="adam",
        learning_rate=5e-4,
        optimiser_epsilon=1e-8,
        square_decay=0.999,
    )


def config_for(env: object) -> Config:
    """The preset for a world: by its name, else by what it is.

    >>> config_for("MinAtar/Breakout-v1").hidden_units, config_for("ALE/Breakout-v5").hidden_units
    (128, 512)
    >>> config_for("CartPole-v1").network
    'mlp'
    """
    if isinstance(env, str):
        family = env.partition("/")[0]
        return {"MinAtar": minatar, "ALE": atari}.get(family, vector)()
    if hasattr(env, "num_states"):
        return dataclasses.replace(tabular(), discount=getattr(env, "discount", tabular().discount))
    shape = getattr(env, "observation_shape", None)
    if shape == (4, 84, 84):
        return atari()
    return minatar() if shape is not None and len(shape) == 3 else vector()
