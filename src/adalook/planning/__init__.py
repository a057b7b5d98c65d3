"""MDP -> Solution: one loop, one rule per file, and a certificate on every answer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["priors"])
