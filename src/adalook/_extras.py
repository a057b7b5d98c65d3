"""Optional packages, imported when something that needs them is used."""

from __future__ import annotations

import importlib
from typing import Any

from adalook.errors import MissingExtraError


def import_extra(module: str, *, extra: str, purpose: str, package: str = "") -> Any:
    """Return an optional module, or raise `MissingExtraError` that says how to install it.

    Args:
        module: what to import, such as "lz4.block".
        extra: the extra of adalook that installs it.
        purpose: what needs it, as the start of the message.
        package: what is missing, if it is called otherwise than the module's first part.
    """
    package = package or module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there and misses something of its own
        raise MissingExtraError(package, extra, purpose) from None
