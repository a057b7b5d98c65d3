"""Torture: adalook under damage, malice and bad luck, counted.

Every area is a module with a function `rows(scale)` that returns what was tried and what went wrong. All of it is
seeded, bounded in count and time, and works in temporary directories and in processes of its own.
"""
