"""One file per experiment of the paper: what to run, never how to draw it."""
