"""The learning experiment on Atari: the paper's figures 6 and 7, twenty processor minutes for each run.

The paper's agents, DQN with trees of depth 0 to 3 and QL-DQN, have the usual rules: four frames a step and clipped
rewards. All agents have the same small network, since twenty minutes are short, and episodes of at most 18,000 frames,
five minutes of play. Evaluations end after a fixed number of simulated steps, too: deep trees are slow.

`PAPER_SCALE` is the experiment in the paper's size, for a GPU and days: 10 million steps, 5 seeds, the Nature network,
and a prior of a million steps.
"""

from __future__ import annotations

import dataclasses

from adalook.experiments.learning.suite import Game, Suite
from adalook.learning.config import Config
from adalook.learning.presets import atari, atari_fast
from adalook.simulators.ale.emulator import atari_ids

PAPER_GAMES = ("VideoPinball", "Tutankham", "Solaris", "Berzerk")


def game(name: str) -> Game | None:
    """Return an Atari game by its name; None if ALE has none of that name."""
    env = f"ALE/{name}-v5"
    if env not in atari_ids():
        return None
    return Game(name, env, interim_episodes=0, final_episodes=3, random_episodes=10, evaluation_nodes=300_000)


def game_names() -> list[str]:
    """Return the names of all games that ALE has."""
    return [env.removeprefix("ALE/").removesuffix("-v5") for env in atari_ids()]


def adalook_config() -> Config:
    """Return the settings of QL-DQN: its preset's, but one thread, as several runs share the cores."""
    return dataclasses.replace(atari_fast(), overlap=False)


def paper_config() -> Config:
    """Return the settings of the paper's agents: the usual rules and learning rate, the network of `adalook_config`."""
    return dataclasses.replace(
        adalook_config(),
        num_envs=8,
        life_loss_penalty=0.0,
        reward_scale="clip",
        frame_skip=4,
        max_episode_steps=4_500,
        stall_steps=2_700,
        epsilon_start=1.0,
        epsilon_end=0.05,
        epsilon_anneal_steps=10_000,
        search_shape="exhaustive",
        nodes_per_step=20.0,
        deepest_tree=3,
        learn_real_steps=False,
        n_steps=1,
        target_period_steps=500,
        learning_starts_steps=1_000,
        learning_rate=1e-4,
        update_period_steps=2,
        gradient_steps=1,
        ranked_transitions=1_000,
    )


SUITE = Suite(
    name="atari",
    games={name: found for name in PAPER_GAMES if (found := game(name)) is not None},
    paper_config=paper_config,
    adalook_config=adalook_config,
    usual_games=PAPER_GAMES,
    usual_agents=("depth0", "depth1", "depth2", "depth3", "ql-paper", "ql"),
    usual_seeds=3,
    usual_seconds=1_200.0,
    other_game=game,
    other_games=game_names,
)


def nature_config() -> Config:
    """Return the settings of QL-DQN with the Nature network, for long runs."""
    long = atari()
    names = ("network", "hidden_units", "buffer_transitions", "learning_rate", "optimizer_epsilon")
    return dataclasses.replace(adalook_config(), **{name: getattr(long, name) for name in names})


PAPER_SCALE = dataclasses.replace(
    SUITE,
    name="atari-paper",
    paper_config=atari,
    adalook_config=nature_config,
    usual_seeds=5,
    usual_steps=10_000_000,
    settings={"prior_steps": 1_000_000},
)
