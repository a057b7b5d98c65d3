"""How a run is watched and saved; kept in RUN/habits.json, so that a resumed run is watched as it was before."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from adalook import _validation as validation
from adalook.errors import FileError
from adalook.storage.files import atomic_write, file_error

HABITS = "habits.json"


@dataclass(frozen=True)
class Habits:
    """Nothing of this changes what is learned."""

    report_period_steps: int = 1_000
    """Agent steps between lines of progress in the log."""
    evaluation_period_steps: int = 50_000
    """Agent steps between evaluations."""
    evaluation_episodes: int = 10
    """Episodes per evaluation; 0: no evaluations."""
    checkpoint_period_steps: int = 1_000_000
    """Agent steps between checkpoints."""
    checkpoint_period_seconds: float = 300.0
    """Seconds between checkpoints."""
    tensorboard: bool = True
    """Write events for TensorBoard."""
    progress: bool = True
    """Show a live line on standard error, if that is a terminal."""

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            object.__setattr__(self, name, rule.validate(f"habits: {name}", getattr(self, name)))


_RULES = {
    "report_period_steps": validation.integer(1),
    "evaluation_period_steps": validation.integer(1),
    "evaluation_episodes": validation.integer(0),
    "checkpoint_period_steps": validation.integer(1),
    "checkpoint_period_seconds": validation.positive,
    "tensorboard": validation.boolean,
    "progress": validation.boolean,
}


def write_habits(directory: Path, habits: Habits) -> None:
    """Keep them in a run. All but `progress`, which is a matter of the terminal and not of the run."""
    kept = {name: value for name, value in dataclasses.asdict(habits).items() if name != "progress"}
    with atomic_write(directory / HABITS) as file:
        file.write(json.dumps(kept, indent=2).encode())


def read_habits(directory: Path) -> Habits | None:
    """What `write_habits` kept, without a line of progress; None if nothing was kept."""
    path = directory / HABITS
    try:
        kept = json.loads(path.read_bytes())
        if not isinstance(kept, dict):
            raise ValueError(f"a {type(kept).__name__} instead of an object")
        unknown = set(kept) - {field.name for field in dataclasses.fields(Habits)}
        if unknown:
            raise ValueError(f"no such habit: {', '.join(sorted(unknown))}")
        return Habits(**{"progress": False, **kept})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error("read", path, error) from error
    except ValueError as error:  # an ArgumentError is one, and so are words that are no JSON
        raise FileError(
            f"{path} is damaged", got=str(error).rstrip("."), remedy="remove it: the run goes on with the usual habits"
        ) from error
