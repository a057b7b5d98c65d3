"""The command `adalook search`: show tree search at work on some states of a trajectory.

Each search begins in the current state of the live env; then the env takes the action that the search chose. Leaves
have the value 0, which is lookahead by rewards alone, unless `--values` names a solution or an agent.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from adalook import _validation as validation
from adalook.cli.terminal import DONE, optional, plain_console
from adalook.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from adalook._arrays import FloatArray
    from adalook.search import DepthRule, Expander, RecentDistances, SearchResult
    from adalook.search.rules.base import ValueFunction
    from adalook.simulators.base import Observations, Simulator

FORMAT, FORMAT_VERSION = "adalook search", 1
DEFAULT_DISCOUNT = 0.99
"""Of environments that have none of their own."""
MIN_DISTANCES = 5
"""A trajectory is short, so quantile rules begin to rank after so many distances."""


@dataclass(frozen=True)
class SearchCommand:
    """Search some states of a trajectory; print the values of the actions and what the trees cost.

    Leaves have the value 0, which is lookahead by rewards alone, unless --values says what they are worth.

    Example: adalook search ALE/Tutankham-v5 --depth 3 --engine processes --actors 2 --out look

    Example: adalook solve FrozenLake-v1 --out lake && adalook search FrozenLake-v1 --depth 1 --values lake
    """

    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """A problem by its name: MinAtar/Breakout-v1, ALE/Breakout-v5, a Gymnasium id ('FrozenLake-v1?map_name=8x8'),
    module:name of your own (mygame:Env, in mygame.py here), 'zoo:maze?size=30&seed=0' or a file (model.npz). Quote
    names with ? or &."""
    depth: Annotated[int, tyro.conf.arg(metavar="DEPTH")] = 3
    """How many steps to look ahead, at most."""
    rule: Annotated[str, tyro.conf.arg(metavar="RULE")] = "fixed"
    """fixed | gap:GAP, stop when the best action is ahead by that much | quantile:2=SHARE,3=SHARE,… go to each depth in
    that share of the states, those whose value the last level changed most (the depths are its own, not --depth)."""
    values: Annotated[Path | None, optional(Path, "DIR")] = None
    """What leaves are worth: a solution that adalook solve wrote, a run or an exported agent. Without it 0."""
    width: Annotated[int | None, optional(int, "NODES")] = None
    """Expand at most so many nodes of a level, the most valuable ones."""
    samples: Annotated[int | None, optional(int, "N")] = None
    """Futures drawn for each node and action where chance decides; without it the expectation over all of them for
    models, and 4 to 16 for other environments. 1 follows one drawn future."""
    max_nodes: Annotated[int | None, optional(int, "NODES")] = None
    """Stop a search before it simulates more steps than this."""
    max_seconds: Annotated[float | None, optional(float, "SECONDS")] = None
    """Stop a search after this time, with its last complete level."""
    engine: Annotated[Literal["local", "processes"], tyro.conf.arg(metavar="local|processes")] = "local"
    """Where nodes are stepped: in this process, or in others on this machine."""
    actors: Annotated[int | None, optional(int, "N")] = None
    """How many processes, about one per core."""
    states: Annotated[int, tyro.conf.arg(metavar="N")] = 8
    """How many states to search."""
    every: Annotated[int, tyro.conf.arg(metavar="STEPS")] = 10
    """Steps from one searched state to the next: the best action found, then random ones."""
    discount: Annotated[float | None, optional(float, "GAMMA")] = None
    """Discount factor of each step. Without it that of the model, or of what --values names, or 0.99."""
    seed: Annotated[int, tyro.conf.arg(metavar="SEED")] = 0
    """Seed of the trajectory and of the trees."""
    out: Annotated[Path | None, optional(Path, "DIR")] = None
    """Write search.json, search.npz and a figure, search.png, into this directory."""
    json: bool = False
    """Print one JSON object for each search instead of a table."""

    def run(self) -> int:
        """Search and print; return the exit code."""
        from adalook.engines.base import engine_named
        from adalook.search import make_expander
        from adalook.simulators.make import make_simulator
        from adalook.storage.files import make_directory

        for name, least in (("depth", 1), ("states", 1), ("every", 1), ("seed", 0)):
            validation.integer(least).validate(f"--{name}", getattr(self, name))
        validation.optional(validation.integer(1)).validate("--samples", self.samples)
        rule, distances = self.make_rule()
        sim = make_simulator(self.env)
        value_fn, discount = leaf_values(self.values, sim, self.env)
        settled = replace(self, discount=self._discount_of(sim, discount))
        if self.out is not None:
            make_directory(self.out)
        searches = []
        with contextlib.closing(sim), make_expander(sim, engine_named(self.engine, self.actors)) as expander:
            for searched in settled.search_along(sim, rule, distances, expander, value_fn):
                searches.append(searched)
                if self.json:
                    print(json.dumps(searched.summary()), flush=True)
        if not self.json:
            _print_searches([searched.summary() for searched in searches], sim.action_names)
        if self.out is not None:
            from adalook.report.figures.search_view import draw_searches

            shown = f"depth {self.depth}" if self.rule == "fixed" else self.rule
            save_searches(self.out, {"env": self.env, "rule": shown, "discount": settled.discount}, searches)
            path = draw_searches(self.out)
            if not self.json:
                print(f"wrote {path}, search.json and search.npz")
        return DONE

    def _discount_of(self, sim: Simulator, discount: float | None) -> float:
        """Return the discount factor of the searches: as asked for, the model's, or that of the leaves' values."""
        if self.discount is not None:
            return self.discount
        if None not in (sim.discount, discount) and sim.discount != discount:
            raise ArgumentError(
                f"--values {self.values} are of another discount than {self.env}",
                expected=sim.discount,
                got=discount,
                remedy="pass --discount, or values for this model",
            )
        return next((each for each in (sim.discount, discount) if each is not None), DEFAULT_DISCOUNT)

    def make_rule(self) -> tuple[DepthRule, RecentDistances]:
        """Return the depth rule, and the distances of past searches that it may compare with."""
        from adalook.search import RecentDistances

        distances = RecentDistances(min_count=MIN_DISTANCES)
        return parse_rule(self.rule, self.depth, distances), distances

    def search_along(
        self,
        sim: Simulator,
        rule: DepthRule,
        distances: RecentDistances,
        expander: Expander | None = None,
        value_fn: ValueFunction | None = None,
    ) -> Iterator[SearchedState]:
        """Search some states of a trajectory, one after the other; `distances` gets those of every search."""
        import numpy as np

        value_fn = _zero if value_fn is None else value_fn

        from adalook.search import Budget, FixedDepth, Root, search

        budget, rng = Budget(self.max_nodes, self.max_seconds), np.random.default_rng(self.seed)
        sim.reset(seed=self.seed)
        # One search before time is measured: worker processes take a second to start.
        discount = DEFAULT_DISCOUNT if self.discount is None else self.discount
        search(sim, Root.of(sim), _zero, FixedDepth(1), discount=discount, expander=expander)
        for number in range(self.states):
            root, seed = Root.of(sim), int(rng.integers(2**32))
            begin = time.perf_counter()
            result = search(
                sim,
                root,
                value_fn,
                rule,
                discount=discount,
                seed=seed,
                samples=self.samples,
                width=self.width,
                budget=budget,
                expander=expander,
            )
            seconds = time.perf_counter() - begin
            distances.add_result(result)
            start = sim.reseed(root.state, seed)
            path, rewards = _follow(sim, start, result.path)
            pictures = _pictures(sim, start, result.path[: len(path)]) if self.out is not None else None
            yield SearchedState(number * self.every, result, root.observation, path, rewards, seconds, pictures)
            for action in [result.action, *rng.integers(sim.num_actions, size=self.every - 1).tolist()]:
                if sim.step(action).episode_over:
                    sim.reset()


@dataclass(frozen=True, eq=False)
class SearchedState:
    """One search of a trajectory. The best path has n steps."""

    step: int
    """Of the trajectory."""
    result: SearchResult
    observation: np.ndarray[Any, Any]
    """(*observation_shape) of the root"""
    path: Observations
    """(n, *observation_shape) the observations along the best path"""
    path_rewards: FloatArray
    """(n,)"""
    seconds: float
    pictures: np.ndarray[Any, Any] | None = None
    """(n + 1, height, width, 3) what the env renders in the root and along the path; None if it renders nothing"""

    def summary(self) -> dict[str, Any]:
        """Return the search as plain data; actions not offered, or dropped by a beam, have the value None."""
        result = self.result
        return {
            "step": self.step,
            "action": result.action,
            "value": result.value,
            "action_values": [value if math.isfinite(value) else None for value in result.action_values.tolist()],
            "depth": result.depth,
            "status": result.status.value,
            "path": list(result.path[: len(self.path_rewards)]),  # under chance it may end earlier than in the tree
            "path_rewards": self.path_rewards.tolist(),
            "nodes": result.nodes,
            "tree_nodes": result.tree_nodes,
            "saved": result.saved,
            "seconds": self.seconds,
            "expansion_seconds": result.seconds.expansion,
        }


def leaf_values(directory: Path | None, sim: Simulator, env: str) -> tuple[ValueFunction, float | None]:
    """Return what leaves are worth, 0, by a saved solution or by a trained agent, and for which discount."""
    if directory is None:
        return _zero, None
    if (directory / "solution.npz").exists():
        return _values_of_states(directory, sim)
    import numpy as np

    from adalook.learning.lookahead import value_function
    from adalook.learning.runs.run import load_agent
    from adalook.simulators.make import names_code

    agent = load_agent(directory, env if names_code(env) else None)  # named again, it may be imported
    q = value_function(agent, sim)

    def of_agent(observations: Observations, depth: int) -> FloatArray:
        del depth
        return np.asarray(np.where(sim.action_masks(observations), q(observations), -np.inf).max(axis=1))

    return of_agent, agent.config.discount


def _values_of_states(directory: Path, sim: Simulator) -> tuple[ValueFunction, float | None]:
    """Return the values of a saved solution as a function of observations that are numbers of states."""
    import numpy as np

    from adalook.report.data.solution import load_solution

    solution = load_solution(directory)
    values, discount = solution.values, solution.about["model"].get("discount")
    if sim.observation_shape != (1,) or not np.issubdtype(sim.observation_dtype, np.integer):
        raise ArgumentError(
            f"--values {directory} has a value per state",
            expected="an environment that observes the number of its state, such as a model or FrozenLake-v1",
            got=f"observations of shape {sim.observation_shape}",
            remedy="name the directory of a run or an exported agent",
        )

    def of_states(observations: Observations, depth: int) -> FloatArray:
        del depth
        states = observations[:, 0]
        if len(states) and states.max() >= len(values):
            raise ArgumentError(
                f"--values {directory} is for another model",
                expected=f"at most {len(values)} states",
                got=f"state {states.max()}",
                remedy="solve the model that is searched",
            )
        return np.asarray(values[states])

    return of_states, discount


def parse_rule(text: str, depth: int, distances: RecentDistances) -> DepthRule:
    """Return the depth rule that the flag --rule describes.

    >>> from adalook.search import RecentDistances
    >>> parse_rule("gap:0.5", 3, RecentDistances())
    GapDepth(gap=0.5, max_depth=3)
    """
    from adalook.search import FixedDepth, GapDepth, QuantileDepth

    kind, _, details = text.partition(":")
    number, flag = validation.parse_number, f"--rule {text}"
    if kind == "fixed" and not details:
        return FixedDepth(depth)
    if kind == "gap":
        return GapDepth(number(details, float, f"{flag}: the gap"), depth)
    pairs = [part.partition("=") for part in details.split(",")]
    if kind == "quantile" and all(equals for _, equals, _ in pairs):
        shares = {
            number(level, int, f"{flag}: a depth"): number(share, float, f"{flag}: a share")
            for level, _, share in pairs
        }
        return QuantileDepth(shares, distances)
    raise ArgumentError("the rule is wrong", expected="fixed, gap:GAP or quantile:2=SHARE,3=SHARE,…", got=repr(text))


def _print_searches(searches: list[dict[str, Any]], action_names: Sequence[str]) -> None:
    """Print a table of searches and their total cost; an action without a value is not offered, or beyond the beam."""
    from rich.box import SIMPLE_HEAVY
    from rich.table import Table

    table = Table(box=SIMPLE_HEAVY, pad_edge=False)
    for heading in ("step", "action", "value", "depth", "nodes", "saved", "nodes/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("value by first action")
    for search in searches:
        values = ("–" if value is None else f"{value:.4g}" for value in search["action_values"])
        table.add_row(
            f"{search['step']}",
            action_names[search["action"]] if action_names else f"{search['action']}",
            f"{search['value']:.4g}",
            f"{search['depth']}{'' if search['status'].startswith('the rule') else '*'}",
            f"{search['nodes']:,}",
            f"{search['saved']:,}",
            f"{search['nodes'] / search['seconds']:,.0f}",
            " ".join(values),
        )
    console = plain_console()
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
    if not any(value for search in searches for value in search["action_values"]):
        console.print(
            "All values are 0: no reward is in reach. Look deeper (--depth), or say what leaves are worth (--values).",
            soft_wrap=True,
        )


def save_searches(directory: Path, about: dict[str, Any], searches: Sequence[SearchedState]) -> None:
    """Write `search.json` (numbers) and `search.npz` (observations), which `report.figures.search_view` reads."""
    from adalook.storage.arrays import pack_arrays
    from adalook.storage.files import atomic_write

    arrays: dict[str, Any] = {}
    for number, searched in enumerate(searches):
        arrays[f"root_{number}"], arrays[f"path_{number}"] = searched.observation, searched.path
        if searched.pictures is not None:
            arrays[f"pictures_{number}"] = searched.pictures
    summaries = [searched.summary() for searched in searches]
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **about, "searches": summaries}
    for name, data in (
        ("search.npz", pack_arrays(arrays)),
        ("search.json", (json.dumps(content, indent=1) + "\n").encode()),
    ):
        with atomic_write(directory / name) as file:
            file.write(data)


def _zero(observations: Observations, depth: int) -> FloatArray:
    """Return the value 0 (n,) for every leaf."""
    import numpy as np

    return np.zeros(len(observations))


def _pictures(sim: Simulator, state: Any, actions: Sequence[int]) -> np.ndarray[Any, Any] | None:
    """Return what the env renders in its current state and along a path from there; None if it renders nothing."""
    import numpy as np

    from adalook._pictures import thumbnail

    rendered = [sim.render()]
    if rendered[0] is None:
        return None
    with contextlib.closing(sim.clone()) as clone:
        clone.restore(state)
        for action in actions:
            clone.step(action)
            rendered.append(clone.render())
    return np.stack([thumbnail(picture) for picture in rendered if picture is not None])


def _follow(sim: Simulator, state: Any, actions: Sequence[int]) -> tuple[Observations, FloatArray]:
    """Return the observations (n, *observation_shape) and rewards (n,) of a path of the tree."""
    import numpy as np

    observations, rewards = [], []
    for action in actions:
        children = sim.expand([state], [action])
        (state,) = children.states
        observations.append(children.observations[0])
        rewards.append(children.rewards[0])
        if children.terminated[0]:  # under chance the same actions may end the episode earlier than in the tree
            break
    return np.stack(observations), np.array(rewards)
