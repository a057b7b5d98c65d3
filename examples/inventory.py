"""An inventory with a mask: what to order, by how much is in stock; solved, certified, simulated."""

import numpy as np

import adalook as al

CAPACITY, PRICE, COST, HOLDING, DISCOUNT = 20, 5.0, 2.0, 0.1, 0.99
CHANCE = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])  # of selling 0, 1, … items a day


def main() -> None:
    """Build the model from arrays, solve it and play the policy for a year."""
    size = CAPACITY + 1
    rewards, transitions = np.zeros((size, size)), np.zeros((size, size, size))
    stock, order = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    mask = stock + order <= CAPACITY
    for demand, chance in enumerate(CHANCE):
        sold = np.minimum(demand, stock + order)
        left = np.clip(stock + order - sold, 0, CAPACITY)
        rewards += chance * (PRICE * sold - COST * order - HOLDING * left)
        np.add.at(transitions, (stock, order, left), chance)
    mdp = al.MDP(
        rewards,
        transitions,
        DISCOUNT,
        mask=mask,
        state_names=[f"{n} in stock" for n in range(size)],
        action_names=[f"order {n}" for n in range(size)],
    )
    sol = al.solve(mdp)
    print(sol)
    year = mdp.simulate(sol.policy, steps=365, start="0 in stock", episodes=200, seed=0)
    print(f"a year earns {year.rewards.sum(axis=1).mean():.0f} on average")
    assert sol.certified


if __name__ == "__main__":
    main()
