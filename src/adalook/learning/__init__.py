"""DQN and QL-DQN: replay, ranks, networks, agents, the loop, and checkpoints that lose nothing."""
