"""`adalook train` and `adalook evaluate`: what they can be told, and what they do.

Every setting of `Config` and `Habits` is a flag, and its help is the comment on it. Nothing heavy is imported before it
is needed, so that help and complaints come at once.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from adalook.errors import ArgumentError
from adalook.learning.config import Config, atari, minatar, tabular, vector
from adalook.learning.habits import Habits

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


def _flags_for_config() -> type:
    """A dataclass with the fields of `Config`, each None unless the flag is given: then the preset's value holds."""
    presets = {"Atari": atari(), "MinAtar": minatar(), "vectors": vector(), "tables": tabular()}
    hints, comments = get_type_hints(Config), comments_on(Config)
    fields = []
    for field in dataclasses.fields(Config):
        values = {name: getattr(preset, field.name) for name, preset in presets.items()}
        if len(set(values.values())) == 1:
            told = f"Default: {values['MinAtar']}."
        else:
            told = f"Default: {', '.join(f'{value} for {name}' for name, value in values.items())}."
        argument = tyro.conf.arg(
            help=f"{comments[field.name]} {told}", help_behavior_hint="", metavar=_metavar(hints[field.name])
        )
        fields.append((field.name, Annotated[hints[field.name] | None, argument], None))
    return dataclasses.make_dataclass("Settings", fields, frozen=True)


def _metavar(hint: Any) -> str:
    """What a flag takes, for people."""
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    return {bool: "True|False", str: "TEXT", int: "N", float: "NUMBER"}.get(hint, "NUMBER …")


Settings: Any = _flags_for_config()


@dataclass(frozen=True)
class Train:
    """Train an agent; all of it is kept in the directory of the run, from which it can go on as if never interrupted.

    Exit code 0: it came to its end; 2: wrong arguments; 3: stopped by Ctrl-C or SIGTERM, with a checkpoint.

    Example: adalook train MinAtar/Breakout-v1 --agent qldqn --seconds 60 --out runs/breakout
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")] = ""
    """Such as MinAtar/Breakout-v1, ALE/Breakout-v5 or CartPole-v1. Not with --resume, which knows."""
    agent: Literal["qldqn", "dqn"] = "qldqn"
    """qldqn chooses the depth state by state; dqn has one depth."""
    depth: Annotated[int, tyro.conf.arg(metavar="DEPTH")] = 0
    """Of dqn's tree; 0 is plain DQN."""
    steps: Annotated[int, tyro.conf.arg(metavar="STEPS", help_behavior_hint="")] = 0
    """Train until so many agent steps are taken in all. 0: no limit."""
    seconds: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = 0.0
    """Train until so much time was spent on training in all; evaluations do not count. 0: no limit."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """One seed, one run, to the bit."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a new run."""
    resume: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a run to go on with; its settings stay as they are."""
    config: Annotated[Settings, tyro.conf.OmitArgPrefixes] = dataclasses.field(default_factory=Settings)
    habits: Annotated[Habits, tyro.conf.OmitArgPrefixes] = dataclasses.field(default_factory=Habits)


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
    epsilon: Annotated[float, tyro.conf.arg(metavar="SHARE", help_behavior_hint="(default: the run's)")] = -1.0
    """Share of random actions."""
    gif: Annotated[str, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = ""
    """Write the first episode as a GIF, with the depth of each decision drawn on it."""
    json: bool = False
    """Print one JSON object instead of a summary."""


def run_train(options: Train) -> int:
    """`adalook train`."""
    if bool(options.out) == bool(options.resume):
        raise ArgumentError("train needs a directory", expected="either --out RUN (new) or --resume RUN")
    if options.steps <= 0 and options.seconds <= 0:
        raise ArgumentError("train needs an end", expected="--steps or --seconds, above 0")
    from adalook.learning.runs import go_on, start

    directory = Path(options.out or options.resume)
    agent = None
    if options.out:
        agent = _new_agent(options)
        start(directory, agent)
    else:
        _refuse_changes(options, directory)
    habits = dataclasses.replace(options.habits, progress=options.habits.progress and sys.stderr.isatty())
    outcome = go_on(
        directory,
        steps=options.steps or None,
        seconds=options.seconds or None,
        habits=habits,
        agent=agent,
        report=lambda message: print(f"adalook: {message}", file=sys.stderr),
    )
    speed = outcome.step / outcome.seconds if outcome.seconds else 0.0
    print(f"{outcome.step:,} steps in {outcome.seconds:,.1f} s of training ({speed:,.0f} steps/s); run in {directory}")
    if outcome.mean_score is not None:
        print(f"mean score of the last {outcome.scored_episodes} episodes: {outcome.mean_score:.2f}")
    if outcome.interrupted:
        print(f"interrupted, and saved: go on with adalook train --resume {directory}")
    return INTERRUPTED if outcome.interrupted else DONE


def _refuse_changes(options: Train, directory: Path) -> None:
    """A run goes on as it was begun: whatever says otherwise is a misunderstanding."""
    from adalook.learning.description import read_description

    run, usual = read_description(directory), Train()
    given = {name: getattr(options, name) for name in ("env", "agent", "depth", "seed")}
    given = {name: value for name, value in given.items() if value != getattr(usual, name)}
    settings = {name: value for name, value in vars(options.config).items() if value is not None}
    differing = [name for name, value in given.items() if run.get(name) != value]
    config = Config.from_plain(run["config"])
    differing += [name for name, value in settings.items() if getattr(config, name) != value]
    if differing:
        raise ArgumentError(
            "a resumed run keeps its world and settings", got=", ".join(differing), remedy="leave them out"
        )


def _new_agent(options: Train) -> Any:
    from adalook.learning.config import config_for
    from adalook.learning.dqn import DQN
    from adalook.learning.qldqn import QLDQN

    if not options.env:
        raise ArgumentError("train needs a world", expected="ENV, such as MinAtar/Breakout-v1")
    given = {name: value for name, value in vars(options.config).items() if value is not None}
    config = dataclasses.replace(config_for(options.env), **given)
    if options.agent == "dqn":
        return DQN(options.env, config, depth=options.depth, seed=options.seed)
    if options.depth:
        raise ArgumentError("qldqn has no fixed depth", remedy="set --shares, or use --agent dqn")
    return QLDQN(options.env, config, seed=options.seed)


def run_evaluate(options: Evaluate) -> int:
    """`adalook evaluate`."""
    from adalook.learning.pictures import Film
    from adalook.learning.runs import load_agent

    film = Film() if options.gif else None
    epsilon = None if options.epsilon < 0 else options.epsilon
    evaluation = load_agent(options.run).evaluate(options.episodes, seed=options.seed, epsilon=epsilon, watcher=film)
    if film is not None:
        film.save(Path(options.gif))
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
