"""Simulators: environments that can be saved, restored and stepped in batches."""
