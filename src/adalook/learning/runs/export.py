"""A trained agent in a folder of its own, small enough to ship: what it acts by, and a card that says how it was made.

    DIR/agent.json           agent, environment, seed and settings, θ, scores, how it was made, and digests
    DIR/policy.safetensors   weights, and the distances that ranks are taken among
    DIR/README.md            the card for people

Nothing is pickled. Both files are checked against their SHA-256 before anything is made of them.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from adalook import __version__
from adalook.errors import ArgumentError, FileError
from adalook.learning.runs.directory import CONFIG_FILE, RunConfig
from adalook.simulators.make import names_code
from adalook.storage.documents import parse_json
from adalook.storage.files import atomic_write, file_error, make_directory, read_file

CARD, WEIGHTS, PAGE = "agent.json", "policy.safetensors", "README.md"
FORMAT, FORMAT_VERSION = "adalook agent", 1
MOST_DISTANCES = 4_096
"""Recorded distances that are kept for each depth: evenly spread over all of them, which moves a rank by 1/4,096."""
MAKE_ONE = "export the agent again: adalook export RUN DIR"


def is_exported_agent(directory: Path) -> bool:
    """Return whether a folder holds an exported agent."""
    return (directory / CARD).exists()


def write_exported_agent(
    directory: Path, run_config: dict[str, Any], policy: dict[str, Any], about: dict[str, Any]
) -> None:
    """Write an agent's folder; the card comes last, so that what has one is whole.

    Args:
        directory: made unless it exists; an exported agent that is there is replaced.
        run_config: what `Agent.run_config` returned.
        policy: what `Agent.policy_state` returned.
        about: what the card says beyond that, as JSON can hold it.
    """
    from safetensors.numpy import save

    try:
        json.dumps(about, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError("the card cannot hold this", expected="what JSON can hold", got=error) from None
    if (directory / CONFIG_FILE).exists():
        raise FileError(f"{directory} holds a run, which an export would hide", remedy="choose another directory")
    make_directory(directory)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    thinned = policy | ({"recorded": _thinned(policy["recorded"], run_config)} if "recorded" in policy else {})
    plain = _without_arrays(thinned, "", tensors)
    data = save(tensors)
    card = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "adalook_version": __version__,
        "run_config": run_config,
        "policy": plain,
        "weights": {"file": WEIGHTS, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
        "about": about,
    }
    text = json.dumps(card | {"sha256": _card_digest(card)}, indent=1, ensure_ascii=False) + "\n"
    for name, content in ((WEIGHTS, data), (PAGE, _page(directory, card).encode()), (CARD, text.encode())):
        with atomic_write(directory / name, follow_links=False) as file:
            file.write(content)


def read_exported_agent(directory: Path) -> tuple[RunConfig, dict[str, Any]]:
    """Return the run config and the policy of an exported agent, after checking both files.

    Raises:
        FileError: there is none, it is damaged, or another version wrote it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = directory / CARD
    try:
        card = parse_json(_read(path))
        digest = card.pop("sha256")
        if (card["format"], card["format_version"]) != (FORMAT, FORMAT_VERSION):
            found = f"{card['format']!r}, version {card['format_version']}"
            expected = f"{FORMAT!r}, version {FORMAT_VERSION}"
            raise FileError(f"{path} is not of this version", expected=expected, got=found, remedy=MAKE_ONE)
        if digest != _card_digest(card):
            raise FileError(f"{path} is damaged", expected="a checksum that fits", remedy=MAKE_ONE)
        data, weights = _read(directory / WEIGHTS), card["weights"]
        if hashlib.sha256(data).hexdigest() != weights["sha256"]:
            raise FileError(
                f"{directory / WEIGHTS} is damaged",
                expected=f"{weights['bytes']} bytes with the SHA-256 {weights['sha256'][:12]}…",
                got=f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()[:12]}…",
                remedy=MAKE_ONE,
            )
        return RunConfig(path, card["run_config"]), _with_arrays(card["policy"], load(data))
    except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise FileError(f"{path} is damaged", got=repr(error), remedy=MAKE_ONE) from error


def _thinned(recorded: dict[int, np.ndarray[Any, Any]], run_config: dict[str, Any]) -> dict[int, np.ndarray[Any, Any]]:
    """Return fewer distances of the same distribution, yet enough to rank among."""
    most = max(MOST_DISTANCES, 2 * run_config["config"]["ranked_transitions"])
    return {
        depth: distances
        if len(distances) <= most
        else distances[np.linspace(0, len(distances) - 1, most).round().astype(int)]
        for depth, distances in recorded.items()
    }


def _without_arrays(state: Any, name: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return nested data with every array replaced by its name, and put the arrays into `arrays`."""
    if isinstance(state, dict):
        return {str(key): _without_arrays(part, f"{name}/{key}".strip("/"), arrays) for key, part in state.items()}
    if isinstance(state, np.ndarray):
        arrays[name] = np.ascontiguousarray(state)
        return {"array": name}
    return state


def _with_arrays(state: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return nested data with names of arrays replaced by the arrays; keys that are numbers are depths."""
    if not isinstance(state, dict):
        return state
    if state.keys() == {"array"}:
        return arrays[state["array"]]
    return {int(key) if key.isdecimal() else key: _with_arrays(part, arrays) for key, part in state.items()}


def _card_digest(card: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(card, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise file_error("read", path, error) from error


def _page(directory: Path, card: dict[str, Any]) -> str:
    """Return the card as Markdown."""
    run_config, about = card["run_config"], card["about"]
    place = directory.name if directory.is_absolute() else directory.as_posix()  # where the export was told to go
    words = ["adalook", "evaluate", place, "--episodes", "5", "--gif", "episode.gif"]
    if run_config["env"] is not None and names_code(run_config["env"]):
        words += ["--env", run_config["env"]]
    rows = [
        ("environment", run_config["env"]),
        ("agent", run_config["agent"]),
        ("seed", run_config["seed"]),
        ("adalook", card["adalook_version"]),
        ("weights", f"{card['weights']['bytes']:,} bytes, SHA-256 `{card['weights']['sha256']}`"),
        *about.items(),
    ]
    table = [f"| {what.replace('_', ' ')} | {_words(value)} |" for what, value in rows]
    settings = [f"| `{what}` | {_words(value)} |" for what, value in sorted(run_config["config"].items())]
    return "\n".join(
        [
            f"# {directory.name}",
            "",
            f"A trained agent for {run_config['env']}. Watch it play:",
            "",
            f"    {shlex.join(words)}",
            "",
            "| | |",
            "|---|---|",
            *table,
            "",
            "## Settings",
            "",
            "| | |",
            "|---|---|",
            *settings,
            "",
        ]
    )


def _words(value: Any) -> str:
    """Return a value of the card as a person would write it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
