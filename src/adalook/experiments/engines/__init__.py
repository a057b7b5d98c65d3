"""Engines that run the jobs of an experiment: local processes or Ray."""
