"""Packages that only some worlds need, imported when such a world is made."""

from __future__ import annotations

import importlib
from typing import Any

from adalook.errors import MissingExtraError


def need(package: str, purpose: str) -> Any:
    """The module `package`, or an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package.partition(".")[0]:
            raise  # the package is there and misses something of its own
        raise MissingExtraError(package, "search", purpose) from None
