"""The command line: a subcommand is one commented dataclass, which is its help, and one function that runs it.

Everything heavy is imported inside functions, so that help and complaints come at once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from adalook.errors import AdalookError, ArgumentError
from adalook.learning.commands import Evaluate, Train, run_evaluate, run_train

if TYPE_CHECKING:
    from rich.console import Console

    from adalook.planning.method import Method
    from adalook.planning.solution import Solution

CONVERGED, UNREAD, BAD_ARGUMENTS, NOT_CONVERGED, KILLED = 0, 1, 2, 3, 130

ABOUT = """Planning that looks ahead only as far as each state needs.

Exit codes: 0 converged; 2 something is wrong with the arguments or files; 3 stopped before that, by a limit or by
Ctrl-C (the best answer so far is still printed and written). adalook --version prints the version."""


def _option(kind: type, metavar: str) -> Any:
    """An option that may be left out."""
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: kind(words[0]),
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: ["none" if value is None else str(value)],
    )


@dataclass(frozen=True)
class Solve:
    """Solve a model and print the answer with its certificate.

    Exit code 0: converged; 2: wrong arguments; 3: stopped by a limit or Ctrl-C, with the best answer so far.

    Example: adalook solve 'zoo:maze?size=100&seed=1' --method hpi:3 --out maze
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A file in .npz or .umb; or 'zoo:NAME?parameter=value&…' with chain, forest, garnet, gridworld or maze, such as
    'zoo:maze?size=30&seed=0'; or 'gym:ID?argument=value&…', such as 'gym:FrozenLake-v1?map_name=8x8'. In quotes: shells
    have other plans with & and ?."""
    method: Annotated[str, tyro.conf.arg(metavar="METHOD")] = "wlpi"
    """vi | pi | mpi:SWEEPS | hpi:DEPTH | tlpi:KAPPA (g^3 is the discount cubed) | qlpi:DEPTH=SHARE,… such as
    qlpi:2=0.1,4=0.05,8=0.02 | wlpi | wlpi:DEPTH."""
    prior: Annotated[str | None, _option(str, "PRIOR")] = None
    """What tlpi and qlpi go by: few:N, the values after N iterations of PI; squares:K, the model merged in K×K squares;
    exact. Without it few:3."""
    discount: Annotated[float | None, _option(float, "GAMMA")] = None
    """The model's discount; .umb files carry none and need it."""
    tolerance: Annotated[float, tyro.conf.arg(metavar="LOSS")] = 1e-8
    """Stop when the policy's loss is certified below this; 0: when no action can be improved."""
    max_iterations: Annotated[int | None, _option(int, "N")] = None
    """Stop after this many passes."""
    max_seconds: Annotated[float | None, _option(float, "SECONDS")] = None
    """Stop after the first pass that ends later than this."""
    out: Annotated[Path | None, _option(Path, "DIR")] = None
    """Write solution.npz, solution.json and, for models on a grid, a picture into this directory."""
    report: bool = False
    """Also write report.html there: how the solve went and, for models on a grid, an explorer of its iterations."""
    json: bool = False
    """Print one JSON object instead of a summary."""
    progress: bool = True
    """Show a live line while solving, if standard error is a terminal."""


@dataclass(frozen=True)
class Search:
    """Watch tree search at work: look ahead from some states of a rollout, print what the trees say and cost.

    Leaves are worth nothing here, so this is lookahead by rewards alone.

    Example: adalook search ALE/Tutankham-v5 --depth 3 --workers 2 --out look
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """Such as ALE/Tutankham-v5, MinAtar/Breakout-v1, CartPole-v1, or a model such as 'zoo:maze?size=30&seed=0'."""
    depth: Annotated[int, tyro.conf.arg(metavar="DEPTH")] = 3
    """How many steps to look ahead, at most."""
    rule: Annotated[str, tyro.conf.arg(metavar="RULE")] = "fixed"
    """fixed | gap:GAP, stop when the best action is ahead by that much | quantile:2=SHARE,3=SHARE,… go to each depth in
    that share of the states, those whose value the last level changed most (its depths count, not --depth)."""
    width: Annotated[int | None, _option(int, "NODES")] = None
    """Expand at most so many nodes of a level, the most valuable ones."""
    max_nodes: Annotated[int | None, _option(int, "NODES")] = None
    """Stop a search before it simulates more steps than this."""
    max_seconds: Annotated[float | None, _option(float, "SECONDS")] = None
    """Stop a search after this time, with its last complete level."""
    workers: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Processes that expand nodes; 0: this one."""
    states: Annotated[int, tyro.conf.arg(metavar="N")] = 8
    """How many states to search."""
    every: Annotated[int, tyro.conf.arg(metavar="STEPS")] = 10
    """Steps of the rollout from one to the next: the action that was found best, then random ones."""
    discount: Annotated[float, tyro.conf.arg(metavar="GAMMA")] = 0.99
    """For each step."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """Of the rollout and of the trees."""
    out: Annotated[Path | None, _option(Path, "DIR")] = None
    """Write search.json, search.npz and a picture, search.png, into this directory."""
    json: bool = False
    """Print one JSON object for each search instead of a table."""


@dataclass(frozen=True)
class Demo:
    """Solve the paper's 30×30 maze with every method, compare what they cost, draw how deep they looked."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo")
    """Where the pictures go."""


@dataclass(frozen=True)
class Report:
    """Turn results of `adalook reproduce` into figures, a table of claims and a page with an explorer.

    Example: adalook reproduce maze && adalook report
    """

    results: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR …]")] = ()
    """Results folders; without any: results/chain, results/maze and results/sweep, as far as they are there."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("report")
    """Where index.html, claims.md and figures/ go."""


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's planning experiments again. Killed or stopped by Ctrl-C, the same command goes on.

    Exit code 0: done; 2: wrong arguments or files; 130: stopped by Ctrl-C, with everything finished so far kept.

    Example: adalook reproduce maze --workers 2
    """

    experiment: Annotated[Literal["chain", "maze", "sweep", "all"], tyro.conf.Positional]
    """chain: the motivating example. maze: the maze experiments. sweep: mazes of other sizes and discounts."""
    seeds: Annotated[int | None, _option(int, "N")] = None
    """Mazes per setting; without it 10 for maze, 3 for sweep. The chain has none."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Results go to DIR/chain, DIR/maze, DIR/sweep."""
    workers: Annotated[int | None, _option(int, "N")] = None
    """Processes; without it one per core. Results do not depend on it."""
    engine: Literal["processes", "ray"] = "processes"
    """Where jobs run: processes on this machine, or Ray (needs the extra 'ray')."""
    address: Annotated[str | None, _option(str, "ADDRESS")] = None
    """Of a running Ray cluster, such as HOST:6379; without it a Ray is started here."""
    fresh: bool = False
    """Start over, forgetting what is in the folder."""
    progress: bool = True
    """Show a bar with the time left, if standard error is a terminal."""


def run_solve(options: Solve) -> int:
    """`adalook solve`."""
    from adalook.arguments import build_method, build_model
    from adalook.disk import make_directory
    from adalook.planning.record import describe, save_solution
    from adalook.planning.solve import solve

    if options.report and options.out is None:
        raise ArgumentError("--report needs a place", remedy="add --out DIR")
    mdp = build_model(options.source, options.discount)
    method, prior = build_method(options.method, options.prior, mdp)
    if options.out is not None:
        make_directory(options.out)
    solution = solve(
        mdp,
        method,
        tolerance=options.tolerance,
        max_iterations=options.max_iterations,
        max_seconds=options.max_seconds,
        progress=options.progress and sys.stderr.isatty(),
    )
    files: list[Path] = []
    try:
        if options.out is not None:
            files += save_solution(
                solution, mdp, options.out, source=options.source, prior=prior, with_trace=options.report
            )
            if mdp.layout is not None:
                from adalook.report.picture import draw_solution

                files += draw_solution(options.out)
            if options.report:
                from adalook.report.solution_page import write_solution_page

                files.append(write_solution_page(options.out))
    finally:  # an answer that could not be written is still an answer
        about = describe(solution, mdp, source=options.source, prior=prior) | {"files": [str(path) for path in files]}
        if options.json:
            print(json.dumps(about, allow_nan=False))
        else:
            _print_summary(about, solution)
    return CONVERGED if solution.converged else NOT_CONVERGED


def _print_summary(about: dict[str, Any], solution: Solution) -> None:
    from rich.table import Table

    model, prior, low_high = about["model"], about["prior"], about["value_range"]
    counts, evaluation = about["queries"]["improvement"], about["queries"]["evaluation"]
    root = "" if counts["root"] is None else f", {counts['root']:,} root"
    ways = ", ".join(dict.fromkeys(iteration.evaluation for iteration in solution.trace))
    rows = {
        "model": f"{model['source']}: {model['states']:,} states, {model['actions']} actions, "
        f"discount {model['discount']:g}",
        "method": about["method"],
        "prior": f"{prior['kind']}, for {prior['queries']:,} queries and {prior['seconds']:.3g} s" if prior else "",
        "status": f"{solution.status.value}: {about['message']}",
        "iterations": f"{about['iterations']:,} that changed the policy, in {about['passes']:,} passes",
        "policy loss": f"<= {solution.policy_loss:.3g}, certified",
        "values": " to ".join("not finite" if value is None else f"{value:.6g}" for value in low_high),
        "queries": f"{counts['shared']:,} shared{root} to improve, {evaluation['exact']:,} to evaluate",
        "evaluation": ways,
        "time": f"{about['seconds']:.3g} s, of which {about['certificate_seconds']:.2g} s for the certificate",
        "wrote": "\n".join(about["files"]),
    }
    table = Table.grid(padding=(0, 2))
    for name, text in rows.items():
        if text:
            table.add_row(name, text)
    _console().print(table)


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def run_report(options: Report) -> int:
    """`adalook report`."""
    from adalook.report.page import write_report

    page, claims, *figures = write_report(options.results, options.out)
    size = page.stat().st_size / 1e6
    _console().print(f"{page} ({size:.1f} MB), {claims} and {len(figures) // 2} figures as SVG and PNG", soft_wrap=True)
    return CONVERGED


def run_search(options: Search) -> int:
    """`adalook search`."""
    from adalook.arguments import build_model
    from adalook.disk import make_directory
    from adalook.search import Budget, DistanceRecord, expander_for
    from adalook.search.rollout import FEWEST_DISTANCES, Plan, build_rule, describe, save_searches, searches_along
    from adalook.simulators.make import make_simulator

    for name in ("depth", "states", "every"):
        if getattr(options, name) < 1:
            raise ArgumentError(f"--{name} is wrong", expected="at least 1", got=getattr(options, name))
    if options.workers < 0:
        raise ArgumentError("--workers is wrong", expected="at least 0", got=options.workers)
    record = DistanceRecord(least=FEWEST_DISTANCES)
    budget = Budget(options.max_nodes, options.max_seconds)
    rule = build_rule(options.rule, options.depth, record)
    plan = Plan(rule, record, options.discount, options.width, budget, options.states, options.every, options.seed)
    sim = make_simulator(build_model(options.env) if options.env.startswith("zoo:") else options.env)
    if options.out is not None:
        make_directory(options.out)
    searches = []
    with contextlib.closing(sim), expander_for(sim, options.workers) as expander:
        for searched in searches_along(sim, plan, expander):
            searches.append(searched)
            if options.json:
                print(json.dumps(describe(searched)), flush=True)
    if not options.json:
        _print_searches([describe(searched) for searched in searches])
    if options.out is not None:
        from adalook.report.search_picture import draw_searches

        shown = f"depth {options.depth}" if options.rule == "fixed" else options.rule
        save_searches(options.out, {"env": options.env, "rule": shown, "discount": options.discount}, searches)
        path = draw_searches(options.out)
        if not options.json:
            print(f"wrote {path}, search.json and search.npz")
    return CONVERGED


def _print_searches(searches: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False)
    for heading in ("step", "action", "value", "depth", "nodes", "saved", "nodes/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("value by first action")
    for search in searches:
        values = ("dropped" if value is None else f"{value:.4g}" for value in search["action_values"])
        table.add_row(
            f"{search['step']}",
            f"{search['action']}",
            f"{search['value']:.4g}",
            f"{search['depth']}{'' if search['status'].startswith('the rule') else '*'}",
            f"{search['nodes']:,}",
            f"{search['saved']:,}",
            f"{search['nodes'] / search['seconds']:,.0f}",
            " ".join(values),
        )
    console = _console()
    console.print(table)
    for status in sorted({search["status"] for search in searches if not search["status"].startswith("the rule")}):
        console.print(f"* {status}")
    nodes, tree_nodes = (sum(search[name] for search in searches) for name in ("nodes", "tree_nodes"))
    seconds = sum(search["seconds"] for search in searches)
    console.print(
        f"{len(searches)} searches: {nodes:,} nodes in {seconds:.3g} s, {nodes / seconds:,.0f} a second; a tree that "
        f"merges nothing has {tree_nodes:,}, which makes {tree_nodes / seconds:,.0f} a second.",
        soft_wrap=True,
    )


def run_demo(options: Demo) -> int:
    """`adalook demo`."""
    import numpy as np

    import adalook as al
    from adalook.disk import make_directory
    from adalook.planning.record import save_solution
    from adalook.report.picture import draw_solution

    console = _console()
    make_directory(options.out)
    console.print(
        "The paper's 30×30 maze, from a random policy, by every method until nothing can be improved …", soft_wrap=True
    )
    console.print("(the first run compiles the kernels, some ten seconds, and keeps them)")
    mdp = al.zoo.maze(size=30, seed=0, discount=0.98)
    start = np.random.default_rng(0).integers(0, mdp.num_actions, mdp.num_states)
    prior = al.priors.exact(mdp)
    methods: dict[str, Method] = {
        "PI": al.PolicyIteration(),
        "2-PI": al.HPI(2),
        "4-PI": al.HPI(4),
        "TLPI κ=γ³": al.TLPI(mdp.discount**3, prior),
        "QLPI 2,4,8": al.QLPI({2: 0.1, 4: 0.05, 8: 0.02}, prior),
        "WLPI": al.WLPI(),
    }
    solutions: dict[str, Solution] = {}
    for name, method in methods.items():
        runs = [al.solve(mdp, method, initial_policy=start, tolerance=0.0) for _ in range(4)]
        if any(run.status is al.Status.INTERRUPTED for run in runs):
            raise KeyboardInterrupt
        solutions[name] = min(runs[1:], key=lambda solution: solution.seconds)
    _print_comparison(console, solutions)
    for name, directory in (("WLPI", options.out / "wlpi"), ("QLPI 2,4,8", options.out / "qlpi")):
        source = "zoo:maze?size=30&seed=0&discount=0.98"
        save_solution(solutions[name], mdp, directory, source=source)
        drawn = " and ".join(str(path) for path in draw_solution(directory))
        console.print(f"How deep {name} looked in each state: {drawn}", soft_wrap=True)
    return CONVERGED


def _print_comparison(console: Console, solutions: dict[str, Solution]) -> None:
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("needs\nprior")
    for heading in (
        "iter-\nations",
        "queries\n(root)",
        "queries\n(shared)",
        "root +\nsimulated",
        "ms",
        "certified\nerror",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, solution in solutions.items():
        queries = solution.queries
        table.add_row(
            name,
            "yes" if name.startswith(("TLPI", "QLPI")) else "no",
            f"{solution.iterations}",
            f"{queries.improvement['root']:,}",
            f"{queries.improvement['shared']:,}",
            f"{queries.total():,}",
            f"{1e3 * solution.seconds:.1f}",
            f"{solution.policy_loss:.1e}",
        )
    console.print(table)
    totals = {name: solution.queries.total() for name, solution in solutions.items()}
    rival = min((name for name in totals if name != "WLPI"), key=lambda name: totals[name])
    worst = max(solution.policy_loss for solution in solutions.values())
    less, next_best = totals["PI"] / totals["WLPI"], totals[rival] / totals["WLPI"]
    console.print(
        f"Every method ends within {worst:.1g} of the optimum. On this maze WLPI, without any prior, asks the model "
        f"{less:.1f} times\nless often than PI and {next_best:.1f} times less often than the next best, {rival} "
        "(root + simulated).\n"
        "TLPI and QLPI are given V* for free as their prior. Times are the best of 3 after a warm-up.",
        soft_wrap=True,
    )


def run_reproduce(options: Reproduce) -> int:
    """`adalook reproduce`."""
    from adalook.experiments.catalogue import chosen_engine, chosen_experiments
    from adalook.experiments.reproduce import Interrupted, reproduce

    engine = chosen_engine(options.engine, options.workers, options.address)
    bar = options.progress and sys.stderr.isatty()
    for experiment in chosen_experiments(options.experiment, options.seeds):
        directory = options.out / experiment.name
        try:
            print(reproduce(experiment, directory, engine, fresh=options.fresh, progress=bar).sentence)
        except Interrupted as stop:
            print(f"adalook: interrupted: {stop}; run the same command again to go on", file=sys.stderr)
            return KILLED
    return CONVERGED


COMMANDS: dict[str, tuple[type, Callable[[Any], int]]] = {
    "solve": (Solve, run_solve),
    "demo": (Demo, run_demo),
    "reproduce": (Reproduce, run_reproduce),
    "report": (Report, run_report),
    "train": (Train, run_train),
    "evaluate": (Evaluate, run_evaluate),
    "search": (Search, run_search),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Whatever is wrong with the arguments takes one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        from adalook import __version__

        print(f"adalook {__version__}")
        return CONVERGED
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show γ is no reason to fail
    try:
        options = _parse(arguments)
        run = next((run for kind, run in COMMANDS.values() if isinstance(options, kind)), None)
        code = CONVERGED if run is None else run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (AdalookError, OSError) as error:
        return _complain(str(error))
    except MemoryError as error:
        return _complain(f"out of memory: {error}")
    except KeyboardInterrupt:
        print("adalook: interrupted", file=sys.stderr)
        return KILLED


def _parse(arguments: list[str]) -> Any:
    """The options of the command that was asked for; None if it was only asked for help."""
    commands: dict[str, Callable[..., Any]] = {name: kind for name, (kind, _) in COMMANDS.items()}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.extras.subcommand_cli_from_dict(commands, prog="adalook", description=ABOUT, args=arguments)
    except SystemExit as end:
        if not end.code:
            return None
        raise ArgumentError(_first_words(complaint.getvalue()), remedy="see adalook --help") from None


def _first_words(box: str) -> str:
    """What is wrong, out of the box that tyro draws around it with explanations, hints and help."""
    sections: list[list[str]] = [[]]
    for line in box.splitlines()[1:]:  # the first is a title
        text = re.sub(r"\x1b\[[0-9;]*m", "", line).strip(" │|")
        if re.match(r"╰|[─-]{5}", text):  # the end, and the rules between sections
            sections.append([])
        else:
            sections[-1].append(text)
    parts = [section for section in sections if any(section)]
    if not parts:
        return "the arguments are wrong"
    paragraph = parts[0][: parts[0].index("")] if "" in parts[0] else parts[0]
    if paragraph[0].startswith("Missing from"):
        paragraph = paragraph[:2]  # the rest is the option's help
    what = " ".join(" ".join(paragraph).split()).rstrip(".")
    for hint in parts[1:]:
        option = re.search(r"--[a-z-]+", " ".join(hint))
        if hint[0].startswith("Available"):
            return f"{what}. {hint[0]}"
        if hint[0].startswith("Perhaps you meant") and option and option.group() not in what.split():
            return f"{what}. Perhaps you meant {option.group()}"
    return what


def _complain(message: str) -> int:
    print(f"adalook: error: {' '.join(message.split())}", file=sys.stderr)
    return BAD_ARGUMENTS


if __name__ == "__main__":
    sys.exit(main())
