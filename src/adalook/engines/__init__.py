"""Engines: where work is done, in this process, in others of this machine, or on the machines of a Ray cluster."""
