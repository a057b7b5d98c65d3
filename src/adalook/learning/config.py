"""Every setting of a run, with its unit in its name, and its check and its help beside it.

The defaults are those of MinAtar; `presets` has what differs for other families of environments. "Agent steps" count
decisions, one per environment, whatever the environment does with them (Atari: four frames).
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from adalook._validation import (
    boolean,
    check_fields,
    finite,
    fraction,
    fraction_above_zero,
    fraction_below_one,
    fraction_list,
    integer,
    matching,
    non_negative,
    one_of,
    positive,
    text,
)
from adalook.errors import ArgumentError, FileError, did_you_mean, shown
from adalook.storage.files import atomic_write, checked_path, file_error, read_file

Optimizer = Literal["adam", "rmsprop"]
Compression = Literal["auto", "none", "lz4"]
Acceleration = Literal["all", "network", "optimizer", "none"]
RewardScale = Literal["clip", "log"]
SearchShape = Literal["exhaustive", "beam", "rollouts"]
DepthControl = Literal["auto", "one_share", "one_level"]

MOST_THREADS = 1024
MAX_SETTINGS_BYTES = 2**20
"""A longer file of settings is none."""
BUILT_IN_NETWORKS = ("nature", "compact", "minatar", "mlp", "table")

DEEPEST = 127
"""No tree may be deeper: the replay buffer keeps heads and steps in a byte each."""


ELSEWHERE = {
    "gamma": "discount",
    "lr": "learning_rate",
    "batch_size": "batch_transitions",
    "buffer_size": "buffer_transitions",
    "learning_starts": "learning_starts_steps",
    "train_freq": "update_period_steps",
    "train_frequency": "update_period_steps",
    "target_update_interval": "target_period_steps",
    "target_network_frequency": "target_period_steps",
    "exploration_fraction": "epsilon_anneal_steps",
    "n_envs": "num_envs",
}
"""Settings by the names that Stable-Baselines3 and CleanRL give them, for messages."""
RETIRED = {
    "search_workers": "give the agent engine=al.LocalProcesses(actors=2, split='nodes') instead",
    "novelty_bonus": "it did not pay and is gone: leave it out",
    "patience_steps": "it did not pay and is gone: leave it out",
}
"""Settings of older versions, and what is said to who uses them still."""
WITHOUT_EFFECT = ("search_workers",)
"""Those that changed no result, whatever they were; the others did unless they were 0."""


@dataclass(frozen=True)
class Config:
    """The settings of an agent and of its training.

    A field is `Annotated[type, check, help]`. The flags of `adalook train` are these fields, so that nothing is written
    in a second place.
    """

    # The environments
    num_envs: Annotated[
        int, integer(min=1), "Environments that act together, so that their leaves share passes through the network."
    ] = 8
    life_loss_ends: Annotated[
        bool,
        boolean,
        "A lost life ends the value of a state, in training and in the tree alike (games without lives ignore it).",
    ] = True
    life_loss_penalty: Annotated[
        float,
        non_negative,
        "What a lost life, or the end of an Atari game, takes from the reward that is learnt from; scores do not show "
        "it.",
    ] = 0.0
    reward_scale: Annotated[
        RewardScale,
        one_of(*get_args(RewardScale)),
        "Rewards of Atari games as they are learnt from: clip, their signs; log, sign(r) · ln(1 + |r|), so that more "
        "points stay more.",
    ] = "clip"
    frame_skip: Annotated[int, integer(min=1), "Frames of an Atari game per agent step."] = 4
    max_episode_steps: Annotated[
        int,
        integer(min=1),
        "Episodes are cut off after this many agent steps. That is a truncation: the last state keeps its value.",
    ] = 10_000
    stall_steps: Annotated[
        int,
        integer(min=0),
        "Episodes are cut off after this many agent steps without a point; those that show no other picture than the "
        "one before count tenfold. 0: never. A game that waits for a button that nobody presses would go on for hours.",
    ] = 0

    # The network
    network: Annotated[
        str,
        text("the name of a network"),
        "nature: three convolutions, for Atari; compact: two of 5×5 in strides of 5, likewise; minatar: one 3×3 "
        "convolution; mlp: two layers over a vector of numbers; table: an entry per state. More can be registered in "
        "`adalook.learning.networks.NETWORKS`.",
    ] = "minatar"
    hidden_units: Annotated[
        int, integer(min=1, max=65_536), "Units of the layer below the heads; the table has none."
    ] = 128
    initial_value: Annotated[
        float,
        finite,
        "What a table holds before anything is learnt. Optimism explores: with at least the best return there is, what "
        "was not tried looks best (Sutton & Barto, section 2.6). Other networks ignore it.",
    ] = 0.0
    shared_head: Annotated[
        bool,
        boolean,
        "One head for all depths (ours: in a deterministic environment all of them have the same fixed point, Q*) "
        "instead of one each (the paper's, which reports that sharing diverges).",
    ] = True

    # Acting
    discount: Annotated[float, fraction_above_zero, "γ, per agent step."] = 0.99
    epsilon_start: Annotated[float, fraction, "Share of random actions at the first step."] = 1.0
    epsilon_end: Annotated[float, fraction, "Share of random actions after annealing."] = 0.1
    epsilon_anneal_steps: Annotated[
        int, integer(min=1), "Agent steps over which the share of random actions falls, in a straight line."
    ] = 100_000
    exploration_repeat: Annotated[
        float,
        fraction_below_one,
        "Probability that a random action is taken once more in the next step, so that exploration gets somewhere; the "
        "share of random actions stays the same (temporally extended ε-greedy exploration, Dabney et al. 2021).",
    ] = 0.0
    evaluation_epsilon: Annotated[float, fraction, "Share of random actions in evaluations."] = 0.0

    # Lookahead: QL-DQN
    search_shape: Annotated[
        SearchShape,
        one_of(*get_args(SearchShape)),
        "exhaustive: all paths of so many steps, one level at a time (the paper's); beam: the same, but of each level "
        "only the beam_width most valuable nodes are expanded; rollouts: few long paths, a stage "
        "of them at a time, in a tree that is kept from one decision to the next (ours). A stage is then what a level "
        "is.",
    ] = "exhaustive"
    beam_width: Annotated[int, integer(min=1), "Nodes of a level that a beam expands."] = 8
    stage_nodes: Annotated[int, integer(min=1), "Steps that a stage of rollouts simulates."] = 15
    rollout_steps: Annotated[int, integer(min=1, max=DEEPEST), "Steps from the root after which rollouts end."] = 20
    rollout_repeat: Annotated[float, fraction, "Probability that a rollout repeats its last action."] = 0.8
    rollout_greedy: Annotated[
        float, fraction, "Probability that a step of a rollout is the network's best action, whatever the last one was."
    ] = 0.0
    learn_real_steps: Annotated[
        bool, boolean, "Learn from what the environment really did, over n_steps, beside the leaves of rollouts."
    ] = False
    bootstrap: Annotated[
        bool,
        boolean,
        "Value the leaves of rollouts by the network. Without it a search counts nothing but the rewards on its paths, "
        "and chance breaks ties: what search alone is worth.",
    ] = True
    learn_tree_steps: Annotated[
        int,
        integer(min=0),
        "Learn from so many of the steps that a decision's rollouts simulated anywhere in the tree, drawn at random: "
        "they are true transitions, of states such as those that leaves are valued in.",
    ] = 0
    leaf_correction: Annotated[
        bool,
        boolean,
        "Take off first actions what the best of many leaves is overrated by (Dalal et al. 2021), measured while the "
        "agent acts; where the tree has not enough of a lead, the agent does what its network says.",
    ] = False
    leaf_trust: Annotated[
        float,
        fraction,
        "How far rollouts believe that leaves differ in value: below 1, all leaves begin with V(s0), seen from the "
        "root, and leaf_trust (V(leaf) - V(s0)) is added: the best of many leaves is one that the network overrates. "
        "1: leaves count as the network values them.",
    ] = 1.0
    nodes_per_step: Annotated[
        float,
        non_negative,
        "What a decision may cost on average, in simulated steps: θ follows the cost (ours). 0: the shares are given "
        "(the paper's).",
    ] = 30.0
    depth_control: Annotated[
        DepthControl,
        one_of(*get_args(DepthControl)),
        "If θ follows the cost; one_share: the same θ for all depths, so that few trees go deep; one_level: θ_3 leaves "
        "0 when θ_2 has reached 1, and so on, so that trees differ by at most one level; auto: one_level where trees "
        "draw what chance brings, since the deeper a tree is the luckier is its best leaf, else one_share.",
    ] = "auto"
    deepest_tree: Annotated[
        int, integer(min=1, max=DEEPEST), "No tree grows deeper than this, if θ follows the cost."
    ] = 5
    depth_shares: Annotated[
        tuple[float, ...],
        fraction_list(DEEPEST - 1),
        "If they are given, θ_2, θ_3, …: the share of states, those farthest from Ṽ*, that look one level deeper than "
        "1, 2, … The deepest tree is one more than there are shares. 1: always deeper; 0: never.",
    ] = (0.3, 0.1)
    ranked_transitions: Annotated[
        int,
        integer(min=1),
        "Distances that a depth must have on record before its ranks decide; until then the search stops there.",
    ] = 1_000
    samples: Annotated[
        int,
        integer(min=1),
        "Futures drawn for each (node, action) of a tree where steps depend on chance; more where the choice is close. "
        "1: the best path of one drawn future. Models that list their outcomes, such as FrozenLake's, need none: their "
        "trees take exact expectations.",
    ] = 1
    prior: Annotated[
        str,
        text("text: self, network, train or the directory of a run or an exported agent"),
        "Ṽ*: 'self', the change that the last level brought to the best value (ours); 'network', what the network that "
        "acts expects of the state; 'train', a DQN of depth 0 that is trained first and then "
        "frozen (the paper's); or the directory of a run, or of an exported agent, whose network is taken.",
    ] = "self"
    prior_steps: Annotated[int, integer(min=1), "Agent steps for which prior 'train' trains."] = 100_000
    learn_every_action: Annotated[
        bool,
        boolean,
        "Store the best leaf below every first action (ours), not only below the one taken (the paper's): a search "
        "values all of them, and what is never taken, since the tree knows better, is never put right else.",
    ] = True
    train_shallow_heads: Annotated[
        bool,
        boolean,
        "Store the best leaf of every level that the search went through, not only of the last: shallow heads then "
        "learn from hard states too (ours, decision 11).",
    ] = False
    head_balance: Annotated[
        float,
        fraction,
        "How far to make up for heads with few transitions in a batch: a transition of a depth with share p of the "
        "batch weighs p^-balance. 0: all weigh the same (the paper's); 1: every head learns as fast as it would alone. "
        "Needs a head for each depth, shared_head=False.",
    ] = 0.0

    # Learning
    batch_transitions: Annotated[int, integer(min=1), "Transitions per update."] = 32
    buffer_transitions: Annotated[int, integer(min=1), "Transitions that the replay buffer holds."] = 100_000
    learning_starts_steps: Annotated[int, integer(min=0), "Agent steps before the first update."] = 5_000
    update_period_steps: Annotated[int, integer(min=1), "Agent steps from one time of learning to the next."] = 1
    gradient_steps: Annotated[int, integer(min=1), "Updates each time."] = 1
    target_period_steps: Annotated[
        int, integer(min=1), "Agent steps between copies of the network into the target network."
    ] = 1_000
    reset_period_steps: Annotated[
        int,
        integer(min=0),
        "Agent steps from one reset to the next: heads begin anew, the trunk goes part of the way, and the replay "
        "memory teaches them again what they knew. 0: never.",
    ] = 0
    reset_keep: Annotated[
        float,
        fraction,
        "What a reset keeps of the trunk: its weights become reset_keep · w + (1 - reset_keep) · fresh.",
    ] = 0.5
    random_shift: Annotated[
        int,
        integer(min=0, max=20),
        "Pixels, at most, by which pictures are shifted up or down and sideways each time they are learnt from, so "
        "that few of them teach as many would (4 in DrQ). 0: not at all.",
    ] = 0
    n_steps: Annotated[
        int,
        integer(min=1, max=DEEPEST),
        "Real steps that are learnt from at a time, by plain DQN (depth 0) or with learn_real_steps: Σ γ^t r_t + γ^n "
        "max Q. Trees have their own returns.",
    ] = 1
    value_scale: Annotated[
        float,
        positive,
        "Q is the network's output times this, and errors are measured in it: about as large as returns are. Networks "
        "learn small numbers faster than large ones.",
    ] = 1.0
    double: Annotated[
        bool,
        boolean,
        "Double DQN (van Hasselt et al. 2016): the network chooses the leaf's action, the target network values it.",
    ] = False
    optimizer: Annotated[Optimizer, one_of(*get_args(Optimizer)), "rmsprop (centred) or adam."] = "rmsprop"
    learning_rate: Annotated[float, positive, "Step size of the optimizer."] = 0.00025
    optimizer_epsilon: Annotated[float, positive, "What the optimizer adds to its denominator."] = 0.01
    second_moment_decay: Annotated[
        float, fraction_below_one, "Decay of the running mean of squared gradients (rmsprop: also of the gradients)."
    ] = 0.95
    first_moment_decay: Annotated[float, fraction_below_one, "Decay of the running mean of gradients (adam)."] = 0.9

    # The machine
    device: Annotated[
        str,
        matching("auto, cpu, cuda or cuda:N", "auto|cpu|cuda(:[0-9]+)?"),
        "cpu, cuda (cuda:1 is the second), or auto: cuda where there is one.",
    ] = "auto"
    threads: Annotated[
        int,
        integer(1, MOST_THREADS),
        "Threads of the network's arithmetic. Part of the run: another number gives other roundings.",
    ] = 1
    accelerate: Annotated[
        Acceleration,
        one_of(*get_args(Acceleration)),
        "Accelerated twins of PyTorch code on the CPU: network (MinAtar's and those of Atari, see `overlap`), "
        "optimizer (rmsprop), all or none. Part of the run: other roundings.",
    ] = "all"
    overlap: Annotated[
        bool,
        boolean,
        "Act and learn at the same time, and compute gradients of Atari's networks in two threads, where there are "
        "cores for it. The results are the same, to the bit.",
    ] = False
    compression: Annotated[
        Compression,
        one_of(*get_args(Compression)),
        "How the replay buffer keeps frames: none, lz4, or auto, which takes lz4 for stacked frames, bits for zeros "
        "and ones, and none for others.",
    ] = "auto"

    def __post_init__(self) -> None:
        check_fields(self, "config")
        _check_network(self.network)
        if self.head_balance > 0 and self.shared_head:
            raise ArgumentError(
                "config: head_balance has no effect on one head for all depths",
                expected="head_balance=0",
                got=self.head_balance,
                remedy="give each depth a head with shared_head=False",
            )
        if self.buffer_transitions < self.batch_transitions:
            raise ArgumentError(
                "config: the replay buffer cannot fill a batch",
                expected=f"buffer_transitions >= batch_transitions = {self.batch_transitions}",
                got=self.buffer_transitions,
            )

    @property
    def max_depth(self) -> int:
        """H, the deepest tree of QL-DQN."""
        return self.deepest_tree if self.nodes_per_step else 1 + len(self.depth_shares)

    def to_plain(self) -> dict[str, Any]:
        """Return all settings as JSON can hold them."""
        return dataclasses.asdict(self) | {"depth_shares": list(self.depth_shares)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Config:
        """Return the config that `to_plain` gave, also that of an older version; an unknown name is refused."""
        if not isinstance(plain, dict):
            raise ArgumentError("config: no settings", expected="a mapping from names to values", got=shown(plain))
        retired = {name for name, value in plain.items() if name in RETIRED and (not value or name in WITHOUT_EFFECT)}
        return cls(**known_settings({name: value for name, value in plain.items() if name not in retired}))

    @classmethod
    def for_env(cls, env: Any, *, agent: str = "dqn", **settings: Any) -> Config:
        """Return the preset of an agent ("dqn" or "qldqn") for an environment's family, with some settings changed.

        >>> Config.for_env("ALE/Breakout-v5", learning_rate=5e-5).network
        'nature'
        """
        from adalook.learning.presets import config_for

        return config_for(env, agent).with_settings(**settings)

    def with_settings(self, **settings: Any) -> Config:
        """Return a config with some settings changed; an unknown name is refused, with a suggestion."""
        return dataclasses.replace(self, **known_settings(settings))

    def save(self, path: str | Path) -> None:
        """Write all settings to a TOML file."""
        lines = [f"{name} = {_toml(value)}" for name, value in self.to_plain().items()]
        with atomic_write(Path(path)) as file:
            file.write(("\n".join(lines) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path, env: Any = None) -> Config:
        """Read settings from a TOML file: all of them, or some on top of the preset of `env`."""
        settings = read_settings(path)
        return cls.from_plain(settings) if env is None else cls.for_env(env, **settings)


def read_settings(path: str | Path) -> dict[str, Any]:
    """Return the settings of a TOML file, every name checked."""
    try:
        settings = tomllib.loads(read_file(checked_path(path), MAX_SETTINGS_BYTES).decode())
    except OSError as error:
        raise file_error("read", Path(path), error) from error
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, nested without end, numbers of any length
        raise FileError(f"{path} is no TOML file", expected="lines such as learning_rate = 1e-4", got=error) from error
    return known_settings(settings)


def known_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as they are, or raise if `Config` has no field of such a name."""
    names = [field.name for field in dataclasses.fields(Config)]
    for name in settings:
        if name not in names:
            raise ArgumentError(
                f"config: there is no setting {name!r}",
                remedy=f"it is called {ELSEWHERE[name]!r} here"
                if name in ELSEWHERE
                else RETIRED.get(name) or did_you_mean(name, names) or "see help(al.Config) or adalook train --help",
            )
    return settings


def _toml(value: Any) -> str:
    """Return a plain value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else repr(value)


def _check_network(name: str) -> None:
    """Raise unless a network has this name."""
    if name in BUILT_IN_NETWORKS:
        return
    from adalook.learning.networks import NETWORKS  # which imports torch: not needed for those above

    if name not in NETWORKS:
        raise ArgumentError(
            "config: there is no such network",
            expected=f"one of {', '.join(NETWORKS)}",
            got=shown(name),
            remedy="register it in adalook.learning.networks.NETWORKS",
        )
