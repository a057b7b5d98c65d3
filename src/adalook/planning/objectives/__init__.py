"""Objectives beside the discounted return: one policy's values, a finite horizon, the total reward of episodes."""
