"""Depth rules: objects that decide how deep each search tree grows."""
