"""The problem: finite Markov decision processes, where they come from and where they are kept."""
