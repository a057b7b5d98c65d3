"""Gymnasium environments whose state can be copied."""
