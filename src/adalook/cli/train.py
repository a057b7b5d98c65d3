"""The command `adalook train`: train an agent in the directory of a run.

Every field of `Config` and `RunOptions` is a flag, and its help is the field's own. A flag that is not given is None,
so that a resumed run knows what it was asked to change. Nothing heavy is imported before it is needed, so that help and
complaints come at once.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from adalook._validation import field_help
from adalook.cli.terminal import DONE, STOPPED_EARLY, in_box, optional, show_engine_messages
from adalook.errors import ArgumentError
from adalook.learning.config import Config, read_settings
from adalook.learning.presets import atari, atari_fast, minatar, tabular, vector
from adalook.learning.runs.options import RunOptions, read_options

if TYPE_CHECKING:
    from adalook.engines.base import Engine
    from adalook.learning.agents.base import Agent
    from adalook.learning.runs.run import RunResult


def field_sections(dataclass: type) -> dict[str, list[str]]:
    """Return the names of a dataclass's fields by the comment that heads their section."""
    sections: dict[str, list[str]] = {}
    heading = ""
    for line in inspect.getsource(dataclass).splitlines():
        comment, field = re.match(r"    # (\w.*)", line), re.match(r"    (\w+): ", line)
        heading = comment[1] if comment else heading
        if field:
            sections.setdefault(heading, []).append(field[1])
    return sections


SECTIONS = {
    "Learning": ("learning", "How the network is trained."),
    "Acting": ("exploration", "How actions are chosen while training."),
    "Lookahead: QL-DQN": ("lookahead", "How deep qldqn looks, and what it stores of its trees."),
    "The environments": ("environment", "Rewards, lives and time limits."),
    "The network": ("network", "Its kind and its size."),
    "The machine": ("machine", "Where it runs; most of this changes speed only."),
}
"""Sections of `Config` in the order in which help shows them, each with a title and a sentence."""


def _flags_in_sections(dataclass: type, presets: Mapping[str, Any]) -> type:
    """Return a dataclass of dataclasses, one per section, so that help shows the flags in groups."""
    sections = field_sections(dataclass)
    fields = []
    for heading in sorted(sections, key=list(SECTIONS).index):
        title, sentence = SECTIONS[heading]
        group = _flags_of(dataclass, presets, sections[heading])
        group.__doc__ = sentence
        fields.append((title, Annotated[group, *in_box(title)], dataclasses.field(default_factory=group)))
    return dataclasses.make_dataclass(f"{dataclass.__name__}Flags", fields, frozen=True)


def _flags_of(dataclass: type, presets: Mapping[str, Any], only: Collection[str] = ()) -> type:
    """Return a dataclass with the same fields, whose values are None and whose help tells the presets' defaults."""
    hints, help_of = get_type_hints(dataclass), field_help(dataclass)
    fields = []
    for field in dataclasses.fields(dataclass):
        if only and field.name not in only:
            continue
        values = {name: getattr(preset, field.name) for name, preset in presets.items()}
        default = f"Default: {_defaults(values)}."
        argument = tyro.conf.arg(
            help=f"{help_of[field.name]} {default}", help_behavior_hint="", metavar=_metavar(hints[field.name])
        )
        fields.append((field.name, Annotated[hints[field.name] | None, tyro.conf.DisallowNone, argument], None))
    return dataclasses.make_dataclass(f"{dataclass.__name__}Flags", fields, frozen=True)


def _defaults(values: Mapping[str, Any]) -> str:
    """Return the defaults by preset; the one that most of them share comes last, without their names.

    >>> _defaults({"Atari": 4, "MinAtar": 1, "vectors": 1})
    '4 for Atari, else 1'
    """
    usual, count = Counter(values.values()).most_common(1)[0]
    if count == len(values):
        return f"{usual}"
    told = [f"{value} for {name}" for name, value in values.items() if 2 * count <= len(values) or value != usual]
    return ", ".join([*told, f"else {usual}"] if 2 * count > len(values) else told)


def _given(flags: Any) -> dict[str, Any]:
    """Return the flags that were given, by name, those of groups included."""
    given: dict[str, Any] = {}
    for name, value in vars(flags).items():
        given |= _given(value) if dataclasses.is_dataclass(value) else {} if value is None else {name: value}
    return given


def _metavar(hint: Any) -> str | None:
    """Return what help shows as the value of a flag; None leaves it to tyro."""
    if hint is bool:
        return None
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    return {str: "TEXT", int: "N", float: "NUMBER"}.get(hint, "NUMBER …")


ConfigFlags: Any = _flags_in_sections(
    Config,
    {
        "dqn on Atari": atari(),
        "qldqn on Atari": atari_fast(),
        "MinAtar": minatar(),
        "vectors": vector(),
        "tables": tabular(),
    },
)
RunOptionsFlags: Any = _flags_of(RunOptions, {"every run": RunOptions()})
RunOptionsFlags.__doc__ = "How often a run reports, is evaluated and is saved; none of this changes what is learned."
DEFAULTS: dict[str, Any] = {"agent": "qldqn", "depth": 0, "seed": 0}
"""Of a new run; the flags themselves are None unless given."""


@dataclass(frozen=True)
class TrainCommand:
    """Train an agent; everything is kept in the directory of the run, from which it resumes as if never interrupted.

    Exit code 0: it came to its end; 2: wrong arguments; 3: stopped by Ctrl-C or SIGTERM, with a checkpoint.

    Example: adalook train MinAtar/Breakout-v1 --agent qldqn --seconds 60 --out runs/breakout
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV", help_behavior_hint="")] = ""
    """A problem by its name: MinAtar/Breakout-v1, ALE/Breakout-v5, a Gymnasium id ('FrozenLake-v1?map_name=8x8'),
    module:name of your own (mygame:Env, in mygame.py here), 'zoo:maze?size=30&seed=0' or a file (model.npz). Quote
    names with ? or &. Not needed with --resume."""
    agent: Annotated[
        Literal["qldqn", "dqn"] | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="qldqn|dqn", help_behavior_hint=f"(default: {DEFAULTS['agent']})"),
    ] = None
    """qldqn chooses the depth state by state; dqn has one depth."""
    depth: Annotated[
        int | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="DEPTH", help_behavior_hint=f"(default: {DEFAULTS['depth']})"),
    ] = None
    """Depth of dqn's search tree; 0 is plain DQN."""
    steps: Annotated[int, tyro.conf.arg(metavar="STEPS", help_behavior_hint="")] = 0
    """Train until so many agent steps are taken in all. 0: no limit."""
    seconds: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = 0.0
    """Train until so much time was spent on training in all; evaluations do not count. 0: no limit."""
    seed: Annotated[
        int | None,
        tyro.conf.DisallowNone,
        tyro.conf.arg(metavar="SEED", help_behavior_hint=f"(default: {DEFAULTS['seed']})"),
    ] = None
    """Runs with the same seed are equal to the bit."""
    seeds: Annotated[int, tyro.conf.arg(metavar="N", help_behavior_hint="")] = 1
    """Train this many runs, one after the other, with consecutive seeds: RUN/seed-0, RUN/seed-1, …"""
    settings: Annotated[Path | None, optional(Path, "FILE"), tyro.conf.arg(name="config")] = None
    """A TOML file with settings, on top of the preset of ENV; flags win. `al.Config.save` writes one."""
    out: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a new run."""
    resume: Annotated[str, tyro.conf.arg(metavar="RUN", help_behavior_hint="")] = ""
    """The directory of a run to go on with. Its config stays as it is; its options do unless given again."""
    engine: Annotated[
        Literal["local", "processes", "ray"],
        tyro.conf.arg(metavar="local|processes|ray", help_behavior_hint="(default: local)"),
    ] = "local"
    """Step the environments in this process, in others, or on Ray (extra 'ray'); results are the same, to the bit."""
    actors: Annotated[int | None, optional(int, "N")] = None
    """Processes or Ray actors that the environments are split over, about one per core."""
    address: Annotated[str | None, optional(str, "ADDRESS")] = None
    """Of a running Ray cluster, such as HOST:6379; without it a Ray is started here."""
    split: Annotated[
        Literal["envs", "nodes"], tyro.conf.arg(metavar="envs|nodes", help_behavior_hint="(default: envs)")
    ] = "envs"
    """What local processes share: environments, each with its trees, or the nodes of every tree."""
    asynchronous: bool = False
    """Do not wait for the slowest actor: faster, and no longer the same to the bit."""
    options: Annotated[RunOptionsFlags, *in_box("evaluation, logging and checkpoint")] = dataclasses.field(
        default_factory=RunOptionsFlags
    )
    config: Annotated[ConfigFlags, *in_box(""), tyro.conf.FlagConversionOff] = dataclasses.field(
        default_factory=ConfigFlags
    )

    def run(self) -> int:
        """Start or resume the run and train; return the exit code."""
        if bool(self.out) == bool(self.resume):
            raise ArgumentError("train needs a directory", expected="either --out RUN (new) or --resume RUN")
        if self.seeds < 1 or (self.seeds > 1 and self.resume):
            raise ArgumentError(
                "--seeds is wrong",
                expected="a whole number >= 1, with --out",
                got=self.seeds,
                remedy="resume runs one by one, each from its own directory",
            )
        if self.seeds > 1:
            return self._train_seeds()
        if not self.steps and not self.seconds:
            raise ArgumentError("train needs an end", expected="--steps or --seconds, above 0")
        from adalook.learning.runs.run import resume_run, start_run, training_limits

        steps, seconds = self.steps or None, self.seconds or None
        training_limits(steps, seconds)
        directory = Path(self.out or self.resume)
        from adalook.engines.base import engine_named  # which the help does not wait for

        engine = engine_named(self.engine, self.actors, self.address, self.asynchronous, self.split)
        if engine is not None:
            show_engine_messages()
        agent = None
        if self.out:
            options = self._run_options(RunOptions())
            agent = self._new_agent(engine)
            start_run(directory, agent)
        else:
            self._refuse_changes(directory)
            options = self._run_options(read_options(directory) or RunOptions())
        resume_command = self._resume_command(directory)
        if options.progress:
            print(f"run in {directory}; if it is killed, go on with {resume_command}", flush=True)
        result = resume_run(
            directory,
            steps=steps,
            seconds=seconds,
            options=options,
            env=self.env or None,
            agent=agent,
            engine=engine,
            on_damage=lambda message: print(f"adalook: {message}", file=sys.stderr),
        )
        _print_result(result, directory, resume_command)
        return STOPPED_EARLY if result.interrupted else DONE

    def _resume_command(self, directory: Path) -> str:
        """Return the command that goes on to the same end; one that imports code names it again."""
        from adalook.simulators.make import names_code

        words = ["adalook", "train"] + [self.env] * bool(self.env and names_code(self.env))
        words += ["--resume", str(directory)]
        words += ["--steps", f"{self.steps}"] * bool(self.steps) + ["--seconds", f"{self.seconds:g}"] * bool(
            self.seconds
        )
        return shlex.join(words)

    def _train_seeds(self) -> int:
        """Train one run per seed, one after the other, in directories below --out."""
        first = self.seed or DEFAULTS["seed"]
        codes = []
        for seed in range(first, first + self.seeds):
            print(f"seed {seed}:")
            one = dataclasses.replace(self, seed=seed, seeds=1, out=str(Path(self.out) / f"seed-{seed}"))
            codes.append(one.run())
            if codes[-1] != DONE:
                break
        print(f"compare them: {shlex.join(['adalook', 'report', self.out, '--out', f'{self.out}-report'])}")
        return max(codes)

    def _run_options(self, defaults: RunOptions) -> RunOptions:
        """Return the defaults with the flags that were given; progress shows unless told not to."""
        given = _given(self.options)
        return dataclasses.replace(defaults, **{"progress": True} | given)

    def _new_agent(self, engine: Engine | None) -> Agent:
        """Return the untrained agent that the flags describe."""
        from adalook.learning.agents.dqn import DQN
        from adalook.learning.agents.qldqn import QLDQN
        from adalook.learning.presets import config_for

        if not self.env:
            raise ArgumentError("train needs an environment", expected="ENV, such as MinAtar/Breakout-v1")
        agent, depth, seed = (
            default if getattr(self, name) is None else getattr(self, name) for name, default in DEFAULTS.items()
        )
        settings = {} if self.settings is None else read_settings(self.settings)
        config, named = config_for(self.env, agent), settings | _given(self.config)
        if len(settings) == len(dataclasses.fields(Config)):  # as `Config.save` writes it: few of them are meant
            config, named = config.with_settings(**settings), _given(self.config)
        if agent == "dqn":
            return DQN(self.env, config, depth=depth, seed=seed, engine=engine, **named)
        if self.depth is not None:
            raise ArgumentError(
                "qldqn has no fixed depth",
                remedy="use --agent dqn, or give shares with --nodes-per-step 0 --depth-shares …",
            )
        return QLDQN(self.env, config, seed=seed, engine=engine, **named)

    def _refuse_changes(self, directory: Path) -> None:
        """Raise an error if a flag differs from the config of the run to resume."""
        from adalook.learning.runs.directory import read_run_config

        run_config = read_run_config(directory)
        given = {name: getattr(self, name) for name in DEFAULTS if getattr(self, name) is not None}
        given |= {"env": self.env} if self.env else {}
        differing = [name for name, value in given.items() if run_config.get(name) != value]
        config = Config.from_plain(run_config["config"])
        differing += [name for name, value in _given(self.config).items() if getattr(config, name) != value]
        if differing:
            raise ArgumentError(
                "a resumed run keeps its environment and config", got=", ".join(differing), remedy="leave them out"
            )


def _print_result(result: RunResult, directory: Path, resume_command: str) -> None:
    if not result.trained and not result.interrupted:
        print("nothing was left to train: --steps and --seconds count from the beginning of the run")
    if result.prior_steps:
        print(f"the prior has trained for {result.prior_steps:,} steps, the agent for none yet; run in {directory}")
    else:
        speed = result.step / result.seconds if result.seconds else 0.0
        time = f"{result.seconds:,.1f} s of training ({speed:,.0f} steps/s)"
        print(f"{result.step:,} steps in {time}; run in {directory}")
    if result.mean_score is not None:
        print(f"mean score of the last {result.scored_episodes} episodes: {result.mean_score:.2f}")
    if result.evaluation is not None:
        episodes = len(result.evaluation.scores)
        print(f"evaluation of the agent as it is now: {result.evaluation.mean:.2f} over {episodes} episodes")
    if result.interrupted:
        print(f"interrupted, and saved: go on with {resume_command}")
