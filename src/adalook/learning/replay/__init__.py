"""The replay buffer, its frames and how they are encoded."""
