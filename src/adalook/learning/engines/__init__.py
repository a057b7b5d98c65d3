"""Engines: where the environments of training are, in this process, in others, or on the machines of a Ray cluster."""
