"""`adalook solve --shards N`: the same command on a model in shards, in this process, in several, or on Ray."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from adalook.cli.terminal import DONE, NOT_CERTIFIED, STOPPED_EARLY, print_rows, refuse_flags

if TYPE_CHECKING:
    from adalook.cli.solve import SolveCommand
    from adalook.planning.sharded.solution import ShardedSolution

WHOLE_ONLY = ("method", "prior", "report", "csv", "mmap")
"""Flags of `adalook solve` that are about models in one piece."""


def solve_sharded(command: SolveCommand) -> int:
    """Solve a model in shards, print the answer and save it; return the exit code."""
    from adalook.engines.base import engine_named
    from adalook.planning.sharded.model import ShardedMDP
    from adalook.planning.solution import Status

    refuse_flags(command, WHOLE_ONLY, "is for models in one piece", remedy="leave it out, or leave out --shards")
    engine = engine_named(command.engine, command.actors, command.address)
    assert command.shards is not None
    with TemporaryDirectory() as directory:
        path = _model_file(command.source, command.discount, Path(directory))
        model = ShardedMDP.load(path, shards=command.shards, discount=command.discount)
        solution = model.solve(
            engine=engine,
            tolerance=command.tolerance,
            max_rounds=command.max_iterations,
            max_seconds=command.max_seconds,
            out=command.out,
            checkpoint=command.checkpoint,
        )
    about = _describe(command.source, model, solution)
    if command.json:
        print(json.dumps(about, allow_nan=False))
    else:
        _print_summary(about)
    if solution.status is Status.ROUNDING_LIMIT:
        return NOT_CERTIFIED
    return DONE if solution.converged else STOPPED_EARLY


def _model_file(source: str, discount: float | None, directory: Path) -> Path:
    """Return the model's file: the one that is named, or one made of a model that is named otherwise."""
    path = Path(source)
    if path.suffix.lower() == ".npz" and path.exists():
        return path
    from adalook.cli.sources import build_model

    made = directory / "model.npz"
    build_model(source, discount).save(made)
    return made


def _describe(source: str, model: Any, solution: ShardedSolution) -> dict[str, Any]:
    """Return everything about the answer but its arrays."""
    return {
        "source": source,
        "states": model.num_states,
        "actions": model.num_actions,
        "discount": model.discount,
        "shards": model.shards,
        "status": solution.status.value,
        "message": solution.message,
        "tolerance": solution.tolerance,
        "policy_loss": solution.policy_loss,
        "certified": solution.converged,
        "rounds": solution.rounds,
        "boundary_bytes": sum(item.sent_bytes + item.received_bytes for item in solution.trace),
        "restarts": solution.restarts,
        "seconds": solution.seconds,
        "build_seconds": solution.build_seconds,
        "out": None if solution.directory is None else str(solution.directory),
    }


def _print_summary(about: dict[str, Any]) -> None:
    """Print the answer as a table of two columns."""
    lost = f", {about['restarts']} actors replaced" if about["restarts"] else ""
    rows = {
        "model": f"{about['source']}: {about['states']:,} states, {about['actions']} actions, "
        f"discount {about['discount']:g}, in {about['shards']} shards",
        "status": f"{about['status']}: {about['message']}",
        "policy loss": f"<= {about['policy_loss']:.3g}, "
        + ("certified" if about["certified"] else "a certified bound; what was asked for is not certified"),
        "rounds": f"{about['rounds']:,}, with {about['boundary_bytes']:,} bytes of boundary values{lost}",
        "time": f"{about['seconds']:.3g} s, of which {about['build_seconds']:.2g} s to build the shards",
        "wrote": about["out"] or "",
    }
    print_rows(rows)
