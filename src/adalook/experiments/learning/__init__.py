"""Learning experiments: suites of games, the agents that are compared, their runs and records."""
