"""Run options: how often a run logs, evaluates and saves; kept in RUN/options.json for when it is resumed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from adalook._validation import boolean, check_fields, integer, positive
from adalook.errors import FileError
from adalook.storage.documents import check_document, parse_json, with_digest
from adalook.storage.files import atomic_write, file_error, read_file

OPTIONS_FILE = "options.json"
MAX_OPTIONS_BYTES = 2**20


@dataclass(frozen=True)
class RunOptions:
    """Options of how often a run logs, evaluates and saves; none of them changes what is learned."""

    report_period_steps: Annotated[int, integer(min=1), "Agent steps between progress entries in the log."] = 1_000
    evaluation_period_steps: Annotated[int, integer(min=1), "Agent steps between evaluations."] = 50_000
    evaluation_episodes: Annotated[int, integer(min=0), "Episodes per evaluation; 0: no evaluations."] = 10
    checkpoint_period_steps: Annotated[int, integer(min=1), "Agent steps between checkpoints."] = 1_000_000
    checkpoint_period_seconds: Annotated[float, positive, "Seconds between checkpoints."] = 300.0
    tensorboard: Annotated[bool, boolean, "Write events for TensorBoard."] = True
    progress: Annotated[
        bool,
        boolean,
        "Show how it goes on standard error: a live line on a terminal, otherwise a line every half a minute.",
    ] = True
    verbose: Annotated[bool, boolean, "Also print a line for every episode as it ends."] = False

    def __post_init__(self) -> None:
        check_fields(self, "run options")


def write_options(directory: Path, options: RunOptions) -> None:
    """Write options.json, without `progress` and `verbose`, which depend on who watches and not on the run."""
    kept = {name: value for name, value in dataclasses.asdict(options).items() if name not in ("progress", "verbose")}
    with atomic_write(directory / OPTIONS_FILE, follow_links=False) as file:
        file.write(json.dumps(with_digest(kept), indent=2).encode())


def read_options(directory: Path) -> RunOptions | None:
    """Read the options.json of a run, with `progress` off; None if there is no such file."""
    path = directory / OPTIONS_FILE
    try:
        kept = check_document(parse_json(read_file(path, MAX_OPTIONS_BYTES)), path)
        unknown = set(kept) - {field.name for field in dataclasses.fields(RunOptions)}
        if unknown:
            raise ValueError(f"no such option: {', '.join(sorted(unknown))}")
        return RunOptions(**{"progress": False, **kept})
    except FileNotFoundError:
        return None
    except (ValueError, FileError) as error:  # invalid JSON, ArgumentError, and a digest that does not fit
        raise FileError(
            f"{path} is damaged", got=str(error).rstrip("."), remedy="remove it: the run goes on with default options"
        ) from error
    except OSError as error:
        raise file_error("read", path, error) from error
