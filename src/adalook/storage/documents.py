"""JSON documents: parsed without surprises, and with a digest that tells whether somebody changed them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from adalook.errors import FileError

DIGEST = "digest"
"""Key of a document that holds the SHA-256 of all the rest."""
MAX_DIGITS = 300
"""Longer whole numbers are damage: they would not fit into a float."""


def parse_json(content: bytes | str) -> Any:
    """Return what JSON text says, or raise ValueError, whatever is wrong with it.

    Python itself answers nesting without end with a RecursionError, and reads whole numbers of any length.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        return json.loads(content, parse_int=_whole_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def with_digest(body: dict[str, Any]) -> dict[str, Any]:
    """Return a document with its digest at the end.

    >>> check_document(with_digest({"discount": 0.9}), Path("config.json"))
    {'discount': 0.9}
    """
    return {**body, DIGEST: _digest(body)}


def check_document(document: Any, path: Path) -> dict[str, Any]:
    """Return a document without its digest, or raise `FileError` if anything in it was changed.

    Whoever forges a document can compute its digest, too: this finds accidents and hasty edits, not malice.
    """
    if not isinstance(document, dict):
        raise FileError(f"{path} is damaged", expected="a JSON object", got=type(document).__name__)
    body = {name: value for name, value in document.items() if name != DIGEST}
    if document.get(DIGEST) != _digest(body):
        raise FileError(
            f"{path} was changed since it was written, or is damaged",
            expected="the digest of its content",
            remedy="restore the file; settings of a run are changed by starting a new one",
        )
    return body


def _digest(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
