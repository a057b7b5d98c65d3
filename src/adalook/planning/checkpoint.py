"""Checkpoints of a solve: values and policy between passes, in one file that a killed solve goes on from.

The file is a line of JSON, the header, followed by the values (S,) as float64 and the policy (S,) as int32, both
little-endian. The header names the model by a digest of its arrays, the method and the tolerance, and holds a digest of
the rest. A file of another model or of other settings is refused, never overwritten; so is a damaged one.

What a solve knows besides values and policy (measured rates, the trace) starts anew. The answer is certified as any
other is; it may differ in the last bits from that of a solve that was not interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adalook._arrays import FloatArray, IntArray
from adalook.errors import FileError
from adalook.planning.checks import checked_policy, checked_state_values
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import atomic_write, checked_path, file_error, open_to_read

if TYPE_CHECKING:
    from adalook.mdp.model import MDP
    from adalook.planning.rules.base import Method

FORMAT = "adalook-checkpoint"
VERSION = 1
MAX_HEADER_BYTES = 2**16
INTERVAL_SECONDS = 60.0
"""Between two writings lies at least this much time …"""
SHARE = 0.05
"""… and so much that writing takes at most this share of it."""
CHUNK_BYTES = 2**24
VALUE, ACTION = np.dtype("<f8"), np.dtype("<i4")


class Saved(NamedTuple):
    """The content of a checkpoint: where a solve goes on, and what it had done by then."""

    values: FloatArray  # (S,)
    policy: IntArray  # (S,)
    passes: int
    iterations: int


class SolveCheckpoint:
    """The checkpoint file of one solve: read once at its start, written now and then.

    Args:
        path: the file; it need not exist yet, its directory must.
        mdp: the model.
        method: with its settings; together with the model and the tolerance it must be what the file was written for.
        tolerance: of the solve.

    Raises:
        FileError: the place cannot be written to; later also if the file is damaged.
    """

    def __init__(self, path: Any, mdp: MDP, method: Method, tolerance: float) -> None:
        self.path = checked_path(path, "checkpoint")
        self._mdp = mdp
        self._owner = {"model": model_digest(mdp), "method": _settings(method), "tolerance": float(tolerance).hex()}
        folder = self.path.parent
        if self.path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):  # worth knowing at once
            raise FileError(
                f"cannot write the checkpoint {self.path}",
                expected="a file in a directory that exists and can be written",
                remedy="choose another place" if folder.is_dir() else f"make the directory {folder} first",
            )
        self._next = perf_counter() + INTERVAL_SECONDS

    def read(self) -> Saved | None:
        """Return what was saved, or None if there is no file yet; raise `FileError` if it is not this solve's."""
        try:
            with open_to_read(self.path) as file:
                header = self._checked_header(file.readline(MAX_HEADER_BYTES))
                n, start = self._mdp.num_states, file.tell()
                expected = start + n * (VALUE.itemsize + ACTION.itemsize)
                if os.fstat(file.fileno()).st_size != expected:
                    raise self._damaged(f"{expected} bytes", os.fstat(file.fileno()).st_size)
                values, policy = np.fromfile(file, VALUE, n), np.fromfile(file, ACTION, n)
        except FileNotFoundError:
            return None
        except FileError:
            raise
        except OSError as error:
            raise file_error("read", self.path, error) from error
        if header["arrays"] != _digest(values, policy):
            raise self._damaged("values and policy with the digest of the header", "others")
        return Saved(
            checked_state_values(self._mdp, values, "values of the checkpoint"),
            checked_policy(self._mdp, policy, "policy of the checkpoint"),
            header["passes"],
            header["iterations"],
        )

    def _checked_header(self, line: bytes) -> dict[str, Any]:
        """Return the header if it is whole, of a known version and of this solve."""
        try:
            document = parse_json(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FileError(f"{self.path} is not a checkpoint of a solve", remedy="choose another name for it")
        if document.get("version") != VERSION:
            raise FileError(f"the version of {self.path} is not known", expected=VERSION, got=document.get("version"))
        header = check_document(document, self.path)
        counts = (header.get("passes"), header.get("iterations"))
        counted = all(type(count) is int and count >= 0 for count in counts)
        if not counted or not {"arrays", *self._owner} <= set(header):
            raise self._damaged("a header with model, method, tolerance and counts", sorted(header)[:12])
        for what, mine in self._owner.items():
            if header[what] != mine:
                raise FileError(
                    f"{self.path} belongs to a solve of another {what}",
                    expected=_readable(what, mine),
                    got=_readable(what, header[what]),
                    remedy="go on with what it was begun with, or choose another file",
                )
        return header

    def _damaged(self, expected: object, got: object) -> FileError:
        return FileError(
            f"{self.path} is damaged", expected=expected, got=got, remedy="remove it: the solve then starts anew"
        )

    @property
    def due(self) -> bool:
        """Whether enough time has passed since the last writing."""
        return perf_counter() >= self._next

    def write(self, saved: Saved) -> None:
        """Replace the file; a process that is killed meanwhile leaves the old one."""
        began = perf_counter()
        values, policy = saved.values.astype(VALUE, copy=False), saved.policy.astype(ACTION, copy=False)
        body = {"format": FORMAT, "version": VERSION, **self._owner, "states": len(values)}
        body |= {"passes": saved.passes, "iterations": saved.iterations, "arrays": _digest(values, policy)}
        with atomic_write(self.path) as file:
            file.write(json.dumps(with_digest(body)).encode() + b"\n")
            for array in (values, policy):
                for part in _chunks(array):
                    file.write(part.data)
        now = perf_counter()
        self._next = now + max(INTERVAL_SECONDS, (now - began) / SHARE)


def _readable(what: str, text: Any) -> str | None:
    """Return what the header says about a method or a tolerance as people write it; a model is but a digest."""
    if what == "tolerance":
        with suppress(TypeError, ValueError):
            return f"{float.fromhex(text):g}"
    return None if what == "model" else str(text)


def _settings(method: Method) -> str:
    """Return the method with its settings as text; a prior is named by a digest of its values."""
    prior = getattr(method, "prior_values", None)
    return repr(method) if prior is None else f"{method!r} with the prior {_digest(np.ascontiguousarray(prior))[:16]}"


def model_digest(mdp: MDP) -> str:
    """Return a digest of all that the values of a model depend on: rewards, transitions, discount.

    >>> import adalook as al
    >>> model_digest(al.zoo.chain(n=3)) == model_digest(al.zoo.chain(n=3))
    True
    >>> model_digest(al.zoo.chain(n=3)) == model_digest(al.zoo.chain(n=3, discount=0.8))
    False
    """
    text = json.dumps([mdp.discount.hex(), mdp.num_states, mdp.num_actions, int(mdp.rows.num_shared)])
    arrays = (mdp.codes, mdp.rows.indptr, mdp.rows.indices, mdp.rows.data)
    return hashlib.blake2b((text + _digest(mdp.rewards) + _digest(*arrays)).encode(), digest_size=32).hexdigest()


def _digest(*arrays: np.ndarray) -> str:
    """Return the BLAKE2b of the arrays' bytes, floats as float64 and integers as they are."""
    state = hashlib.blake2b(digest_size=32)
    for array in arrays:
        for part in _chunks(array):
            wide = part.astype(VALUE, copy=False) if part.dtype.kind == "f" else part
            state.update(wide.data)
    return state.hexdigest()


def _chunks(array: np.ndarray) -> list[np.ndarray]:
    """Return the array in parts of some megabytes, flat."""
    flat, size = array.reshape(-1), CHUNK_BYTES // array.itemsize
    return [flat[first : first + size] for first in range(0, len(flat), size)]
