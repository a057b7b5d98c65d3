"""Slippery FrozenLake: solved exactly, then the policy is played in the environment itself."""

import gymnasium

import adalook as al


def main(episodes: int = 500) -> None:
    """Solve the table of the environment and count how often the goal is reached."""
    env = gymnasium.make("FrozenLake-v1")
    mdp = al.MDP.from_gymnasium(env, discount=0.99)
    sol = al.solve(mdp)
    print(sol)
    reached = 0
    for episode in range(episodes):
        state, _ = env.reset(seed=episode)
        over = False
        while not over:
            state, reward, terminated, truncated, _ = env.step(int(sol.policy[state]))
            over = terminated or truncated
        reached += reward > 0
    print(f"the goal is reached in {reached / episodes:.0%} of {episodes} episodes")
    assert reached > 0.6 * episodes


if __name__ == "__main__":
    main()
