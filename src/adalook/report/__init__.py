"""Figures, claims and HTML pages made from the files of experiments, solutions, searches and training runs.

Nothing here runs a method: what is drawn is what was saved.
"""
