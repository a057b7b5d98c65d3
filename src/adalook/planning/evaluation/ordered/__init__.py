"""Solvers that go through the states in an order of their own: what is decided first comes first."""
