"""Damaged files of every kind that is read: each is refused or means what it meant, never anything else."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adalook.storage.documents import DIGEST, with_digest
from benchmarks.torture import archives
from benchmarks.torture.kinds import NO_DIGEST, kinds
from benchmarks.torture.outcome import Row, Scale, attempt

FILES, ARCHIVES = 20_000, 30
"""Of each kind, and of archives that grow, in the full torture."""
NASTY = (
    "null",
    "true",
    "[]",
    "{}",
    "-1",
    "1e999",
    "NaN",
    '""',
    "1" * 400,
    "[" * 3_000,
    '"' + "x" * 500 + '"',
    "0.5",
    "[1,2]",
)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file's content with some damage: bits, bytes, cuts, copies, other tokens."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, max(1, len(data))))
        length = int(rng.integers(1, 65))
        match int(rng.integers(0, 8)):
            case 0 if data:
                data[at] ^= 1 << int(rng.integers(0, 8))
            case 1 if data:
                data[at] = int(rng.integers(0, 256))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = rng.bytes(length)
            case 5:
                data[at:at] = data[at : at + length]
            case 6:
                data[at : at + length] = bytes(length)
            case _:
                data[at : at + int(rng.integers(0, 9))] = str(rng.choice(NASTY)).encode()
    return bytes(data)


def forged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return JSON with another value somewhere, and the digest that fits it: what a forger writes."""
    document = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list) and node[key]:
                walk(node[key])

    walk(document)
    node, key = places[int(rng.integers(len(places)))]
    value: Any = [None, True, -1, 0.5, "x", [], {}, 10**200, [[1]], {"a": 1}, "../../etc", 2**64][int(rng.integers(12))]
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    else:
        node[key] = value
    if isinstance(document, dict) and "run_config" in document:
        card = {name: part for name, part in document.items() if name != "sha256"}
        text = json.dumps(card, sort_keys=True, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    elif "body" in document and "sha256" in document:
        body = json.dumps(document["body"], sort_keys=True, separators=(",", ":")).encode()
        document["sha256"] = hashlib.sha256(body).hexdigest()
    elif isinstance(document, dict) and DIGEST in document:
        document = with_digest({name: part for name, part in document.items() if name != DIGEST})
    return json.dumps(document).encode()


MEMORY_DISK = Path("/dev/shm")
"""Where files are damaged, if there is such a place: disks take ten times longer than reading them does."""


def rows(scale: Scale, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Damage every kind of file, or those that are named, many times, and see what reading it does."""
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as name:
        every = kinds(Path(name))
        if scale.count(ARCHIVES, least=0) and (not only or archives.KIND in only):
            yield archives.row(every, scale.count(ARCHIVES))
        for number, kind in enumerate(every):
            if only and kind.name not in only:
                continue
            whole = kind.path.read_bytes()
            wanted = kind.meaning(kind.read())
            rng = np.random.default_rng([scale.seed, 2, number])
            row = Row("damaged files", kind.name, kind.bad, kind.note)
            makers = [(row, damaged)]
            if kind.forge:
                note = "another value, and the digest that fits: the forger's values may be read"
                makers.append((Row("forged files", kind.name, NO_DIGEST, note), forged))
            for target, change in makers:
                for _ in range(scale.count(round(FILES * kind.share))):
                    content = change(whole, rng)
                    kind.path.write_bytes(content)
                    if change is forged and kind.seal is not None:
                        kind.seal(content)
                    outcome, what = attempt(
                        kind.read, lambda read, kind=kind, wanted=wanted: kind.meaning(read) == wanted
                    )
                    if content == whole:
                        continue
                    target.add(outcome, what)
                yield target
            kind.path.write_bytes(whole)
            if kind.seal is not None:
                kind.seal(whole)
