"""`adalook train` and `adalook evaluate`: what they can be told, and what they do.

Every setting of `Config` and `RunOptions` is a flag, and its help is the comment on it. What is not given is None: so
a resumed run can tell what it was asked to change. Nothing heavy is imported before it is needed, so that help and
complaints come at once.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from adalook.errors import ArgumentError, FileError
from adalook.learning.config import Config
from adalook.learning.presets import atari, minatar, tabular, vector
from adalook.learning.runs.options import RunOptions, read_options

if TYPE_CHECKING:
    from adalook.learning.runs.run import RunResult

DONE, INTERRUPTED = 0, 3


def comments_on(kind: type) -> dict[str, str]:
    """The comment below each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    comments = {}
    for field, comment in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(comment, ast.Expr):
            comments[field.target.id] = " ".join(str(ast.literal_eval(comment.value)).split())
    return comments


def _flags_for(kind: type, presets: Mapping[str, Any]) -> type:
    """A dataclass with the fields of `kind`, each None unless the flag is given: then the preset's value holds."""
    hints, comments = get_type_hints(kind), comments_on(kind)
    fields = []
    for field in dataclasses.fields(kind):
        values = {name: getattr(preset, field.name) for name, preset in presets.items()}
        if len(set(values.values())) == 1:
            told = f"Default: {next(iter(values.values()))}."
        else:
            told = f"Default: {', '.join(f'{value} for {name}' for name, value in values.items())}."
        argument = tyro.conf.arg(
            help=f"{comments[field.name]} {told}", help_behavior_hint="", metavar=_metavar(hints[field.name])
        )
        fields.append((field.name, Annotated[hints[field.name] | None, tyro.conf.DisallowNone, argument], None))
    return dataclasses.make_dataclass(f"FlagsFor{kind.__name__}", fields, frozen=True)


def _given(flags: Any) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in vars(flags).items() if value is not None}


def _metavar(hint: Any) -> str | None:
    """What a flag takes, for people. That of a switch may be nothing, and tyro knows."""
    if hint is bool:
        return None
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    return {str: "TEXT", int: "N", float: "NUMBER"}.get(hint, "NUMBER …")


Settings: Any = _flags_for(Config, {"Atari": atari(), "MinAtar": minatar(), "vectors": vector(), "tables": tabular()})
Watching: Any = _flags_for(RunOptions, {"every run": RunOptions()})
USUAL: dict[str, Any] = {"agent": "qldqn", "depth": 0, "seed": 0}
"""Of a new run, unless it is told otherwise."""


@dataclass(frozen=True)
class Train:
    """Train an agent; all of it is kept in the directory of the run, from which it can go on as if never interrupted.

    Exit code 0: it came to its end; 2: wrong arguments; 3: stopped by Ctrl-C or SIGTERM, with a checkpoint.

    Example: adalook train MinAtar/Breakout-v1 --agent qldqn --seconds 60 --out runs/breakout
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")] = ""
    """Such as MinAtar/Breakout-v1, ALE/Breakout-v5 or CartPole-v1. Not with --resume, which knows."""
    agent: Annotated[
        Literal["qldqn", "dqn"] | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="qldqn|dqn", help_behavior_hint=f"(default: {USUAL['agent']})"),
    ] = None
    """qldqn chooses the depth state by state; dqn has one depth."""
    depth: Annotated[
        int | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="DEPTH", help_behavior_hint=f"(default: {USUAL['depth']})"),
    ] = None
    """Of dqn's tree; 0 is plain DQN."""
    steps: Annotated[int, tyro.conf.arg(metavar="STEPS", help_behavior_hint="")] = 0
    """Train until so many agent steps are taken in all. 0: no limit."""
    seconds: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = 0.0
    """Train until so much time was spent on training in all; evaluations do not count. 0: no limit."""
    seed: Annotated[
        int | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="SEED", help_behavior_hint=f"(default: {USUAL['seed']})"),
    ] = None
    """One seed, one run, to the bit."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a new run."""
    resume: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a run to go on with; its settings stay as they are, and it is watched as before unless told
    otherwise."""
    config: Annotated[Settings, tyro.conf.OmitArgPrefixes, tyro.conf.FlagConversionOff] = dataclasses.field(
        default_factory=Settings
    )
    run_options: Annotated[Watching, tyro.conf.OmitArgPrefixes] = dataclasses.field(default_factory=Watching)


@dataclass(frozen=True)
class Evaluate:
    """Let the agent of a run play, in worlds of their own and without learning.

    Example: adalook evaluate runs/breakout --episodes 20 --gif episode.gif
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The directory of a run; RUN/best is the best agent of a run."""
    episodes: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """How many to play."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """The same seed gives the same episodes."""
    epsilon: Annotated[
        float | None, tyro.conf.DisallowNone, tyro.conf.arg(metavar="SHARE", help_behavior_hint="(default: the run's)")
    ] = None
    """Share of random actions."""
    gif: Annotated[str, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = ""
    """Write the first episode as a GIF, with the depth of each decision drawn on it."""
    json: bool = False
    """Print one JSON object instead of a summary."""


def run_train(options: Train) -> int:
    """`adalook train`."""
    if bool(options.out) == bool(options.resume):
        raise ArgumentError("train needs a directory", expected="either --out RUN (new) or --resume RUN")
    if not options.steps and not options.seconds:
        raise ArgumentError("train needs an end", expected="--steps or --seconds, above 0")
    from adalook.learning.runs.run import resume_run, start_run, training_limits

    steps, seconds = options.steps or None, options.seconds or None
    training_limits(steps, seconds)
    directory = Path(options.out or options.resume)
    agent = None
    if options.out:
        run_options = _run_options(options, RunOptions())
        agent = _new_agent(options)
        start_run(directory, agent)
    else:
        _refuse_changes(options, directory)
        run_options = _run_options(options, read_options(directory) or RunOptions())
    outcome = resume_run(
        directory,
        steps=steps,
        seconds=seconds,
        options=run_options,
        agent=agent,
        on_damage=lambda message: print(f"adalook: {message}", file=sys.stderr),
    )
    _print_outcome(outcome, directory)
    return INTERRUPTED if outcome.interrupted else DONE


def _run_options(options: Train, usual: RunOptions) -> RunOptions:
    """The usual ones but for the flags that are given. The line of progress is for people who watch."""
    given = _given(options.run_options)
    return dataclasses.replace(usual, **given | {"progress": given.get("progress", True) and sys.stderr.isatty()})


def _print_outcome(outcome: RunResult, directory: Path) -> None:
    if outcome.prior_steps:
        print(f"the prior has trained for {outcome.prior_steps:,} steps, the agent for none yet; run in {directory}")
    else:
        speed = outcome.step / outcome.seconds if outcome.seconds else 0.0
        time = f"{outcome.seconds:,.1f} s of training ({speed:,.0f} steps/s)"
        print(f"{outcome.step:,} steps in {time}; run in {directory}")
    if outcome.mean_score is not None:
        print(f"mean score of the last {outcome.scored_episodes} episodes: {outcome.mean_score:.2f}")
    if outcome.interrupted:
        print(f"interrupted, and saved: go on with adalook train --resume {directory}")


def _refuse_changes(options: Train, directory: Path) -> None:
    """A run goes on as it was begun: whatever says otherwise is a misunderstanding."""
    from adalook.learning.runs.directory import read_run_config

    run = read_run_config(directory)
    given = {name: getattr(options, name) for name in USUAL if getattr(options, name) is not None}
    given |= {"env": options.env} if options.env else {}
    differing = [name for name, value in given.items() if run.get(name) != value]
    config = Config.from_plain(run["config"])
    differing += [name for name, value in _given(options.config).items() if getattr(config, name) != value]
    if differing:
        raise ArgumentError(
            "a resumed run keeps its world and settings", got=", ".join(differing), remedy="leave them out"
        )


def _new_agent(options: Train) -> Any:
    from adalook.learning.agents.dqn import DQN
    from adalook.learning.agents.qldqn import QLDQN
    from adalook.learning.presets import config_for

    if not options.env:
        raise ArgumentError("train needs a world", expected="ENV, such as MinAtar/Breakout-v1")
    config = dataclasses.replace(config_for(options.env), **_given(options.config))
    kind, depth, seed = (
        USUAL[name] if getattr(options, name) is None else getattr(options, name) for name in ("agent", "depth", "seed")
    )
    if kind == "dqn":
        return DQN(options.env, config, depth=depth, seed=seed)
    if options.depth is not None:
        raise ArgumentError("qldqn has no fixed depth", remedy="set --depth-shares, or use --agent dqn")
    return QLDQN(options.env, config, seed=seed)


def run_evaluate(options: Evaluate) -> int:
    """`adalook evaluate`."""
    from adalook.learning.runs.episode_gif import EpisodeGif
    from adalook.learning.runs.run import load_agent

    if options.epsilon is not None and not 0.0 <= options.epsilon <= 1.0:
        raise ArgumentError("--epsilon is out of range", expected="a share in [0, 1]", got=options.epsilon)
    if options.gif and not Path(options.gif).parent.is_dir():
        folder = Path(options.gif).parent
        raise FileError(f"cannot write {options.gif}", remedy=f"there is no directory {folder}: make it first")
    gif = EpisodeGif() if options.gif else None
    agent = load_agent(options.run)
    evaluation = agent.evaluate(options.episodes, seed=options.seed, epsilon=options.epsilon, watcher=gif)
    if gif is not None:
        gif.save(Path(options.gif))
    decisions = sum(evaluation.depths.values())
    if options.json:
        about = {
            "scores": evaluation.scores.tolist(),
            "mean": evaluation.mean,
            "depths": {str(depth): count for depth, count in evaluation.depths.items()},
        }
        print(json.dumps(about))
        return DONE
    error = f" ± {evaluation.standard_error:.2f}" if len(evaluation.scores) > 1 else ""
    print(f"mean score {evaluation.mean:.2f}{error} over {len(evaluation.scores)} episodes")
    print("depth " + ", ".join(f"{depth}: {count / decisions:.1%}" for depth, count in evaluation.depths.items()))
    return DONE
