"""adalook: planning and learning that look ahead only as far as each state needs.

>>> import adalook as al
>>> al.solve(al.zoo.maze(size=30, seed=0)).converged
True

The public names are listed in `__init__.pyi`. Each is imported when it is first used, so that `import adalook` costs
next to nothing and planning never loads PyTorch.
"""

import lazy_loader

__version__ = "0.2.0"

_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'adalook' has no attribute {name!r}; it has {', '.join(__all__)}")
    return _import_name(name)
