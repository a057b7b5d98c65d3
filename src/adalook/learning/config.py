"""Every setting of a run, with its unit in its name, and one preset per family of worlds.

A preset is a function that says only what differs from the defaults, so no number is written twice. The defaults are
those of MinAtar. `agent steps` count decisions, one per world, whatever the world does with them (Atari: four frames).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from adalook import _validation as validation
from adalook.errors import ArgumentError
from adalook.learning.numbered import num_states_of

Network = Literal["nature", "minatar", "mlp", "table"]
Optimizer = Literal["adam", "rmsprop"]
Compression = Literal["auto", "none", "lz4"]

DEEPEST = 127
"""No tree may be deeper: the replay memory keeps depths in a byte."""


@dataclass(frozen=True)
class Config:
    """What a run can be told. The CLI's flags are these fields, and their help is these comments."""

    # The worlds
    num_envs: int = 8
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
    depth_shares: tuple[float, ...] = (0.3, 0.1)
    """If they are given, θ_2, θ_3, …: the share of states, those farthest from Ṽ*, that look one level deeper than 1,
    2, … The deepest tree is one more than there are shares. 1 and above: always deeper; 0 and below: never."""
    ranked_transitions: int = 1_000
    """Distances that a depth must have on record before its ranks decide; until then the search stops there."""
    prior: str = "self"
    """Ṽ*: 'self', the change that the last level brought to the best value (ours); 'train', a DQN of depth 0 that is
    trained first and then frozen (the paper's); or the directory of a run whose network is taken."""
    prior_steps: int = 100_000
    """Agent steps for which prior 'train' trains."""
    learn_every_action: bool = True
    """Store the best leaf below every first action (ours), not only below the one taken (the paper's): a search values
    all of them, and what is never taken, since the tree knows better, is never put right else."""
    train_shallow_heads: bool = False
    """Store the best leaf of every level that the search went through, not only of the last: shallow heads then learn
    from hard states too (ours, decision 11)."""
    head_balance: float = 0.0
    """How far to make up for heads with few transitions in a batch: a transition of a depth with share p of the batch
    weighs p^-balance. 0: all weigh the same (the paper's); 1: every head learns as fast as it would alone. Needs a
    head for each depth, shared_head=False."""

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
    optimizer: Optimizer = "rmsprop"
    """rmsprop (centred) or adam."""
    learning_rate: float = 0.00025
    """Step size of the optimizer."""
    optimizer_epsilon: float = 0.01
    """What the optimizer adds to its denominator."""
    second_moment_decay: float = 0.95
    """Memory of the running mean of squared gradients (rmsprop: also of the gradients)."""
    first_moment_decay: float = 0.9
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
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule.validate(f"config: {name}", getattr(self, name)))
        if self.head_balance > 0 and self.shared_head:
            raise ArgumentError(
                "config: head_balance has no effect on one head for all depths",
                expected="head_balance=0",
                got=self.head_balance,
                remedy="give each depth a head with shared_head=False",
            )
        if self.buffer_transitions < self.batch_transitions:
            raise ArgumentError(
                "config: the replay memory cannot fill a batch",
                expected=f"buffer_transitions >= batch_transitions = {self.batch_transitions}",
                got=self.buffer_transitions,
            )

    @property
    def max_depth(self) -> int:
        """H, the deepest tree of QL-DQN."""
        return self.deepest_tree if self.nodes_per_step else 1 + len(self.depth_shares)

    def epsilon(self, step: int) -> float:
        """The share of random actions at an agent step."""
        done = min(1.0, step / self.epsilon_anneal_steps)
        return self.epsilon_start + done * (self.epsilon_end - self.epsilon_start)

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dataclasses.asdict(self) | {"depth_shares": list(self.depth_shares)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Config:
        """What `to_plain` made; an unknown name is refused."""
        if not isinstance(plain, dict):
            raise ArgumentError("config: no settings", expected="a mapping from names to values", got=repr(plain))
        unknown = plain.keys() - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ArgumentError("config: there is no such setting", got=", ".join(sorted(map(str, unknown))))
        return cls(**plain)


_RULES: dict[str, validation.Validator] = {
    "num_envs": validation.integer(1),
    "life_loss_ends": validation.boolean,
    "max_episode_steps": validation.integer(1),
    "network": validation.one_of(*get_args(Network)),
    "hidden_units": validation.integer(1),
    "shared_head": validation.boolean,
    "learn_every_action": validation.boolean,
    "discount": validation.fraction_above_zero,
    "epsilon_start": validation.fraction,
    "epsilon_end": validation.fraction,
    "epsilon_anneal_steps": validation.integer(1),
    "evaluation_epsilon": validation.fraction,
    "nodes_per_step": validation.non_negative,
    "deepest_tree": validation.integer(1, DEEPEST),
    "depth_shares": validation.number_list(DEEPEST - 1),
    "ranked_transitions": validation.integer(1),
    "prior": validation.text("text: self, train or the directory of a run"),
    "prior_steps": validation.integer(1),
    "train_shallow_heads": validation.boolean,
    "head_balance": validation.fraction,
    "batch_transitions": validation.integer(1),
    "buffer_transitions": validation.integer(1),
    "learning_starts_steps": validation.integer(0),
    "update_period_steps": validation.integer(1),
    "target_period_steps": validation.integer(1),
    "optimizer": validation.one_of(*get_args(Optimizer)),
    "learning_rate": validation.positive,
    "optimizer_epsilon": validation.positive,
    "second_moment_decay": validation.fraction_below_one,
    "first_moment_decay": validation.fraction_below_one,
    "device": validation.text("text: auto, cpu or cuda"),
    "threads": validation.integer(1),
    "overlap": validation.boolean,
    "search_workers": validation.integer(0),
    "compression": validation.one_of(*get_args(Compression)),
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
        epsilon_anneal_steps=1_000_000,
        evaluation_epsilon=0.001,
        nodes_per_step=20.0,  # an emulated step takes half a millisecond: as long as learning
        deepest_tree=3,
        buffer_transitions=1_000_000,
        learning_starts_steps=80_000,
        update_period_steps=4,
        optimizer="adam",
        learning_rate=1e-4,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
        overlap=True,
    )


def tabular() -> Config:
    """A table of values, for worlds whose states are numbered, and few enough to check against `al.solve`."""
    return Config(
        max_episode_steps=50,
        network="table",
        epsilon_end=0.5,
        epsilon_anneal_steps=1_000,
        ranked_transitions=100,
        buffer_transitions=10_000,
        learning_starts_steps=200,
        target_period_steps=50,
        optimizer="adam",
        learning_rate=0.02,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
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
        optimizer="adam",
        learning_rate=5e-4,
        optimizer_epsilon=1e-8,
        second_moment_decay=0.999,
    )


def config_for(env: object) -> Config:
    """The preset for a world: by its name, else by what it is.

    >>> config_for("MinAtar/Breakout-v1").hidden_units, config_for("ALE/Breakout-v5").hidden_units
    (128, 512)
    >>> config_for("CartPole-v1").network, config_for("FrozenLake-v1").network
    ('mlp', 'table')
    """
    family = env.partition("/")[0] if isinstance(env, str) else ""
    if family in _FAMILIES:
        return _FAMILIES[family]()
    if num_states_of(env) is not None:
        return _tabular_for(env)
    shape = getattr(env, "observation_shape", None)
    if shape == (4, 84, 84):
        return atari()
    return minatar() if shape is not None and len(shape) == 3 else vector()


_FAMILIES = {"MinAtar": minatar, "ALE": atari}


def _tabular_for(env: object) -> Config:
    if isinstance(env, str) or hasattr(env, "observation_space"):  # Gymnasium's: they end by themselves
        return dataclasses.replace(tabular(), max_episode_steps=vector().max_episode_steps)
    return dataclasses.replace(tabular(), discount=getattr(env, "discount", tabular().discount))
