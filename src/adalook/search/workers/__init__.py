"""Expanders: where the nodes of a search tree are stepped, in this process or in worker processes."""
