"""RUN/config.json: what it takes to make the agent of a run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adalook.errors import ArgumentError, FileError
from adalook.learning.config import Config
from adalook.storage.files import atomic_write

DESCRIPTION = "config.json"
FORMAT = 4


class Description(dict[str, Any]):
    """What `write_description` wrote. Asked for what is missing, it names the file."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        super().__init__(content)
        self._path = path

    def __missing__(self, key: str) -> Any:
        raise FileError(f"{self._path} has no '{key}'", remedy="put it back, or take another run")


def write_description(directory: Path, description: dict[str, Any]) -> None:
    """What `load_agent` makes the agent from."""
    with atomic_write(directory / DESCRIPTION) as file:
        file.write(json.dumps(description, indent=2).encode())


def read_description(directory: Path) -> dict[str, Any]:
    """What `write_description` wrote; a `Description`, which refuses to give what is not there."""
    path = directory / DESCRIPTION
    try:
        description = json.loads(path.read_text())
    except OSError as error:
        raise FileError(
            f"{directory} is no run", expected=f"a directory with {DESCRIPTION}", got=error.strerror
        ) from error
    except ValueError as error:
        raise FileError(f"{path} is damaged", got=error) from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise FileError(f"{path} is not of this version", expected=f"format {FORMAT}")
    return Description(path, description)


def env_and_config(description: dict[str, Any], env: Any = None) -> tuple[Any, Config]:
    """The world, `env` if given, and the config of a run."""
    env = description["env"] if env is None else env
    if env is None:
        raise ArgumentError("the world of this run has no name", remedy="pass it: load(directory, env=…)")
    return env, Config.from_plain(description["config"])
