"""Figures, each a function from data to a figure spec."""
