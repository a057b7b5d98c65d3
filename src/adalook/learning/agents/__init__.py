"""DQN, fixed-depth tree-search DQN and QL-DQN."""
