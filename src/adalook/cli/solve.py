"""The command `adalook solve`: solve a model and print the answer with its certificate."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from adalook.cli.terminal import DONE, NOT_CERTIFIED, STOPPED_EARLY, optional, plain_console, print_rows, refuse_flags
from adalook.errors import ArgumentError

if TYPE_CHECKING:
    from adalook.planning.objectives.finite_horizon import FiniteHorizonSolution
    from adalook.planning.solution import Solution

MOST_STATES_IN_JSON = 10_000
MOST_STATES_SAVED = 1_000_000
"""Solutions of larger models are written without a copy of the model, so `al.Solution.load` cannot read them."""


@dataclass(frozen=True)
class SolveCommand:
    """Solve a model and print the answer with its certificate.

    Exit code 0: converged, the tolerance is certified; 2: wrong arguments; 3: stopped by a limit or Ctrl-C, with the
    best answer so far; 4: no further improvement can be told from rounding, and the tolerance is not certified.

    Example: adalook solve 'zoo:maze?size=100&seed=1' --method hpi:3 --out maze
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A model by its name: a file (model.npz, model.umb); 'zoo:NAME?parameter=value&…' with blocks, chain, forest,
    garnet, gridworld, inventory, layered, maze or queue, such as 'zoo:maze?size=30&seed=0'; a Gymnasium id with a
    transition table ('FrozenLake-v1?map_name=8x8'); or module:name of your own (mymodel:build, in mymodel.py here).
    Quote names with ? or &."""
    method: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "auto"
    """A method and its setting, such as hpi:3, tlpi:g^3 (g: the discount) or qlpi:2=0.1,4=0.05,8=0.02. `--method help`
    lists all that there are."""
    prior: Annotated[str | None, optional(str, "PRIOR")] = None
    """Prior of tlpi and qlpi: few:N, the values after N iterations of PI; squares:K, the model merged in K×K squares;
    exact. Without it few:3."""
    discount: Annotated[float | None, optional(float, "GAMMA")] = None
    """The model's discount; .umb files carry none and need it."""
    horizon: Annotated[int | None, optional(int, "T")] = None
    """Solve for so many steps instead, after which nothing more is paid: a policy for each, by backward induction."""
    mmap: bool = False
    """Leave the arrays of an .npz file there and go through it block by block: it may be larger than memory."""
    tolerance: Annotated[float, tyro.conf.arg(metavar="LOSS")] = 1e-8
    """Stop when the policy's loss is certified below this; 0: when it is proven to be optimal."""
    max_iterations: Annotated[int | None, optional(int, "N")] = None
    """Stop after this many passes."""
    max_seconds: Annotated[float | None, optional(float, "SECONDS")] = None
    """Stop after the first pass that ends later than this."""
    checkpoint: Annotated[Path | None, optional(Path, "FILE")] = None
    """Write values and policy to this file every minute or so, and go on from it if it is there: the same command goes
    on with a solve that was killed or stopped by a limit. A file of another model, method or tolerance is refused."""
    out: Annotated[Path | None, optional(Path, "DIR")] = None
    """Write the solution, for al.Solution.load, and, for models on a grid, a picture into this directory."""
    report: bool = False
    """Also write report.html there: how the solve went and, for models on a grid, an explorer of its iterations."""
    json: bool = False
    """Print one JSON object instead of a summary; of models of up to 10,000 states it has policy and values."""
    csv: Annotated[Path | None, optional(Path, "FILE")] = None
    """Write state, action, value and certified bounds of every state, and of every step if there is a horizon, into
    this file."""
    shards: Annotated[int | None, optional(int, "N")] = None
    """Cut the model into so many shards, contiguous ranges of states, and solve it in rounds in which only values on
    their boundaries travel. --out then gets values and policy shard by shard, and --checkpoint names a directory."""
    engine: Annotated[str, tyro.conf.arg(metavar="ENGINE")] = "local"
    """Where shards are: local, in this process; processes; or ray. The answer is the same, to the bit."""
    actors: Annotated[int | None, optional(int, "N")] = None
    """Processes or Ray actors that hold the shards."""
    address: Annotated[str | None, optional(str, "ADDRESS")] = None
    """Of a running Ray cluster, such as HOST:6379; without it --engine ray starts one here."""
    progress: bool = True
    """Show a live line while solving, if standard error is a terminal."""

    def run(self) -> int:
        """Solve, print and save; return the exit code."""
        from adalook.cli.sources import build_method, build_model
        from adalook.planning.solution import Status
        from adalook.planning.solution_files import describe, save_solution
        from adalook.planning.solve import solve
        from adalook.planning.tables import named_actions, write_csv
        from adalook.storage.files import make_directory

        if self.method == "help":
            _print_methods()
            return DONE
        if self.horizon is not None:
            return _solve_with_horizon(self)
        if self.shards is not None:
            from adalook.cli.sharded import solve_sharded

            return solve_sharded(self)
        if self.engine != "local" or self.actors is not None or self.address is not None:
            raise ArgumentError("only shards can be given to an engine", remedy="add --shards N")
        if self.report and self.out is None:
            raise ArgumentError("--report needs a place", remedy="add --out DIR")
        mdp = build_model(self.source, self.discount, self.mmap)
        method, prior = build_method(self.method, self.prior, mdp)
        if self.out is not None:
            make_directory(self.out)
        solution = solve(
            mdp,
            method,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            max_seconds=self.max_seconds,
            checkpoint=self.checkpoint,
            progress=self.progress and sys.stderr.isatty(),
        )
        files: list[Path] = []
        try:
            if self.csv is not None:
                write_csv(solution, self.csv)
                files.append(self.csv)
            if self.out is not None:
                files += save_solution(
                    solution,
                    mdp,
                    self.out,
                    source=self.source,
                    prior=prior,
                    with_trace=self.report,
                    with_model=mdp.num_states <= MOST_STATES_SAVED,
                )
                if mdp.layout is not None:
                    from adalook.report.figures.solution import draw_solution

                    files += draw_solution(self.out)
                if self.report:
                    from adalook.report.pages.solution import write_solution_page

                    files.append(write_solution_page(self.out))
        finally:  # an answer that could not be written is still an answer
            about = describe(solution, mdp, source=self.source, prior=prior) | {"files": [str(path) for path in files]}
            if self.json:
                if mdp.num_states <= MOST_STATES_IN_JSON:
                    about["policy"] = named_actions(mdp, solution.policy).tolist()
                    about["values"] = solution.values.tolist()
                    about["names"] = {"states": list(mdp.state_names), "actions": list(mdp.action_names)}
                print(json.dumps(about, allow_nan=False))
            else:
                _print_summary(about, solution)
        if solution.status is Status.ROUNDING_LIMIT:
            return NOT_CERTIFIED
        return DONE if solution.converged else STOPPED_EARLY


MOST_LINES = 12
"""Lines of the story of a solve that are printed."""


def _print_methods() -> None:
    """Print every registered method with examples of its settings."""
    from rich.table import Table

    from adalook.planning.rules.registry import METHODS, load_installed

    load_installed()
    table = Table.grid(padding=(0, 2))
    for spec in METHODS.values():
        summary = (spec.method_class.__doc__ or spec.group.description).partition("\n")[0].partition(":")[0].rstrip(".")
        table.add_row(
            "  ".join(spec.examples), f"{summary}; goes by --prior" if spec.method_class.needs_prior else summary
        )
    plain_console().print(table)


def _print_summary(about: dict[str, Any], solution: Solution) -> None:
    """Print the answer as a table of two columns."""
    from adalook.planning.tables import policy_text, value_text

    model, prior, low_high = about["model"], about["prior"], about["value_range"]
    counts, evaluation = about["queries"]["improvement"], about["queries"]["evaluation"]
    root = "" if counts["root"] is None else f", {counts['root']:,} root"
    passes = f"{about['passes']:,} pass{'' if about['passes'] == 1 else 'es'}"
    rows = {
        "model": f"{model['source']}: {model['states']:,} states, {model['actions']} actions, "
        f"discount {model['discount']:.15g}",
        "method": about["method"],
        "prior": f"{prior['kind']}, for {prior['queries']:,} queries and {prior['seconds']:.3g} s" if prior else "",
        "status": f"{solution.status.value}: {about['message']}",
        "iterations": f"{about['iterations']:,} that changed the policy, in {passes}",
        "policy loss": f"<= {solution.policy_loss:.3g}, {_certainty(solution)}",
        "values": " to ".join(
            "not finite" if value is None else value_text(value, solution.values) for value in low_high
        ),
        "queries": f"{counts['shared']:,} shared{root} to improve, {evaluation['exact']:,} to evaluate",
        "done by": solution.summary,
        "how": "\n".join(line.strip() for line in solution.explain().splitlines()[1:][:MOST_LINES]),
        "time": f"{about['seconds']:.3g} s, of which {about['certificate_seconds']:.2g} s for the certificate",
        "wrote": "\n".join(about["files"]),
    }
    print_rows(rows)
    console = plain_console()
    console.print()
    console.print(policy_text(solution.mdp, solution.policy, solution.values), highlight=False, markup=False)


def _certainty(solution: Solution) -> str:
    """Return what the bound on the loss says about the tolerance that was asked for."""
    if solution.certified:
        return "certified"
    return f"a certified bound; the {solution.tolerance:g} that was asked for is not certified"


# ---- --horizon T: a finite number of steps


ENDLESS_ONLY = (
    "method",
    "prior",
    "mmap",
    "tolerance",
    "max_iterations",
    "max_seconds",
    "checkpoint",
    "out",
    "report",
    "shards",
    "engine",
    "actors",
    "address",
)
"""Flags of `adalook solve` that are about models without an end."""
MOST_ACTIONS_IN_JSON = 100_000
"""Larger tables of steps and states are not printed; --csv writes them."""


def _solve_with_horizon(command: SolveCommand) -> int:
    """Solve for so many steps, print the policy of each and save it; return the exit code."""
    from adalook.cli.sources import build_model
    from adalook.planning.solve import solve
    from adalook.planning.tables import write_horizon_csv

    refuse_flags(
        command,
        ENDLESS_ONLY,
        "is not for a finite horizon, which is solved in one pass",
        remedy="leave it out, or leave out --horizon; --csv FILE writes the policy of every step",
    )
    assert command.horizon is not None
    solution = solve(build_model(command.source, command.discount), horizon=command.horizon)
    about = _describe_steps(command.source, solution)
    try:
        if command.csv is not None:
            write_horizon_csv(solution, command.csv)
            about["files"] = [str(command.csv)]
    finally:  # an answer that could not be written is still an answer
        if command.json:
            print(json.dumps(about | _steps(solution), allow_nan=False))
        else:
            _print_steps(about, solution)
    return DONE


def _describe_steps(source: str, solution: FiniteHorizonSolution) -> dict[str, Any]:
    """Return everything about the answer but its arrays."""
    mdp, first = solution.mdp, solution.values[0]
    return {
        "source": source,
        "states": mdp.num_states,
        "actions": mdp.num_actions,
        "discount": mdp.discount,
        "horizon": solution.horizon,
        "policy_loss": solution.policy_loss,
        "value_range": [float(first.min()), float(first.max())],
        "seconds": solution.seconds,
        "files": [],
    }


def _steps(solution: FiniteHorizonSolution) -> dict[str, Any]:
    """Return policy and values of every step and the names of states and actions, unless they are too many."""
    from adalook.planning.tables import named_actions

    mdp = solution.mdp
    if solution.policy.size > MOST_ACTIONS_IN_JSON:
        return {}
    return {
        "policy": named_actions(mdp, solution.policy).tolist(),
        "values": solution.values.tolist(),
        "names": {"states": list(mdp.state_names), "actions": list(mdp.action_names)},
    }


def _print_steps(about: dict[str, Any], solution: FiniteHorizonSolution) -> None:
    """Print the answer as a table of two columns, and the policy by state and step."""
    from adalook.planning.tables import horizon_text, value_text

    rows = {
        "model": f"{about['source']}: {about['states']:,} states, {about['actions']} actions, "
        f"discount {about['discount']:.15g}",
        "horizon": f"{about['horizon']:,} steps, by backward induction",
        "policy loss": f"<= {about['policy_loss']:.3g}, certified",
        "values": "step 0: " + " to ".join(value_text(value, solution.values[0]) for value in about["value_range"]),
        "time": f"{about['seconds']:.3g} s",
        "wrote": "\n".join(about["files"]),
    }
    print_rows(rows)
    console = plain_console()
    console.print()
    console.print(horizon_text(solution.mdp, solution.policy), highlight=False, markup=False)
