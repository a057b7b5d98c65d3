"""Checked reading of saved results: a JSON file that describes them, and other files that belong to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adalook.errors import FileError
from adalook.storage.arrays import unpack_arrays
from adalook.storage.documents import check_document, parse_json
from adalook.storage.files import read_file


@dataclass(frozen=True)
class ResultFormat:
    """A kind of saved result, such as a solution, with the words for errors about its files."""

    kind: str
    version: int
    index: str
    """The JSON file with the format's version and the checksums of the other files."""
    make_one: str
    """What to do where there is none."""
    make_again: str
    """What to do where files do not belong together."""
    digested: bool = False
    """Whether the JSON file holds a digest of itself."""

    def read_index(self, directory: Path, make_one: str = "") -> dict[str, Any]:
        """Return the JSON file that describes a result, if this version can read it."""
        path = directory / self.index
        about = self.read_object(path, make_one=make_one)
        expected = (f"adalook {self.kind}", self.version)
        found = (about.get("format"), about.get("format_version"))
        if found != expected:
            raise FileError(
                f"{path} is no {self.kind} that this version reads",
                expected=f"format '{expected[0]}', version {expected[1]}",
                got=f"{found[0]!r}, version {found[1]!r}",
                remedy=self.make_one,
            )
        return check_document(about, path) if self.digested else about

    def read_object(
        self, path: Path, checksums: Mapping[str, object] | None = None, make_one: str = ""
    ) -> dict[str, Any]:
        """Return a JSON object; its checksum is verified if `checksums` has one under the file's name."""
        content = self._read(path, make_one)
        if checksums is not None and path.name in checksums:
            self._verify(path, content, checksums)
        try:
            found = parse_json(content)
        except ValueError as error:
            raise FileError(f"{path} is damaged", expected="JSON", got=error, remedy=self.make_one) from error
        if not isinstance(found, dict):
            got = type(found).__name__
            raise FileError(f"{path} is damaged", expected="a JSON object", got=got, remedy=self.make_one)
        return found

    def read_arrays(self, path: Path, checksums: Mapping[str, object]) -> dict[str, np.ndarray]:
        """Return the arrays of an .npz archive after its checksum is verified."""
        content = self._read(path)
        self._verify(path, content, checksums)
        return unpack_arrays(content, path)

    def _read(self, path: Path, make_one: str = "") -> bytes:
        try:
            return read_file(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"cannot read {path}", got=reason, remedy=make_one or self.make_one) from error

    def _verify(self, path: Path, content: bytes, checksums: Mapping[str, object]) -> None:
        if hashlib.sha256(content).hexdigest() != checksums.get(path.name):
            raise FileError(
                f"{path} does not belong to the {self.index} beside it, or is damaged", remedy=self.make_again
            )
