"""Depth rules: how deep each search tree grows."""
