"""Lookahead from evaluated values: levels everywhere, or along the wavefront of what changed."""
