"""Worlds that can be saved, restored and stepped in batches."""
