"""The problem: finite Markov decision processes, where they come from and where they are kept."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["zoo"])
