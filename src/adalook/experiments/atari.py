"""The learning experiment on Atari: DQN, depth 1 and QL-DQN, fifteen processor minutes each.

Runs are not judged by greedy play, which takes minutes an episode where a player stalls: what counts is the score of
training episodes, the speed, and whether memory holds.
"""

from __future__ import annotations

from adalook.experiments.learning.suite import Game, Suite
from adalook.learning.presets import atari

GAMES = {
    name: Game(name, f"ALE/{name}-v5", interim_episodes=0, final_episodes=0, random_episodes=0)
    for name in ("Breakout", "Tutankham", "VideoPinball", "Solaris", "Berzerk")
}
SUITE = Suite(
    name="atari",
    games=GAMES,
    preset=atari,
    changes={
        "buffer_transitions": 10_000,  # fills within the run, so that forgetting is tried as well
        "epsilon_anneal_steps": 10_000,
        "learning_starts_steps": 1_000,  # the preset's 80,000 steps would be the better part of the run
        "overlap": False,  # one thread, so that processor time is what a core of one's own would take
    },
    usual_games=("Breakout",),
    usual_agents=("depth0", "depth1", "ql"),
    usual_seeds=1,
    usual_seconds=900.0,
)
