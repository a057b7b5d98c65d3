"""An environment of one's own, trained with one changed setting, stopped by a callback, and evaluated."""

import gymnasium
import numpy as np

import adalook as al


class Corridor(gymnasium.Env):
    """Ten steps to the right lead to the reward."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self._observation(), {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place == 10
        return self._observation(), float(done), done, False, {}

    def _observation(self):
        return np.array([self.place / 10], np.float32)


def main(steps: int = 8_000) -> None:
    """Train until ten episodes in a row have reached the end, or for so many steps."""
    scores: list[float] = []

    def good_enough(done) -> bool:
        scores.extend(episode.score for episode in done.episodes)
        return len(scores) < 10 or min(scores[-10:]) < 1.0

    agent = al.QLDQN(Corridor(), learning_rate=1e-3, max_episode_steps=100, seed=0)
    agent.learn(steps=steps, callbacks=[good_enough])
    print(f"after {agent.step:,} steps: mean score {agent.evaluate(episodes=5).mean:.2f}")


if __name__ == "__main__":
    main()
