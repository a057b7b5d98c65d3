"""`ShardedMDP`: a model that no single process ever holds, solved on shards of its states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from adalook._arrays import IntArray
from adalook._interrupts import SignalGuard
from adalook._validation import at_least_zero, integer, optional, positive
from adalook.errors import ArgumentError, ModelError
from adalook.mdp import checks
from adalook.planning.sharded.blocks import BlockSource, FileSource, FunctionSource, shared_weights
from adalook.planning.sharded.checkpoint import INTERVAL_SECONDS, RoundsCheckpoint
from adalook.planning.sharded.hosts import ShardHosts
from adalook.planning.sharded.rounds import Ending, Limits, Rounds
from adalook.planning.sharded.solution import ShardedSolution, map_parts, write_part, write_summary
from adalook.planning.solution import Status
from adalook.storage.files import make_directory

DEFAULT_TOLERANCE = 1e-8
MOST_SHARDS = 100_000


class ShardedMDP:
    """A finite discounted MDP whose states are split into shards, contiguous ranges of them.

    Each shard is built and kept by the process that works on it: nobody ever holds the whole model. `solve` runs rounds
    in which every shard solves its own states with `al.solve`, while the values of its neighbours are held fixed; only
    values of states that another shard leads to travel. Number the states so that neighbours have near numbers, as rows
    of a grid do.

    Make one with `from_function` or `load`.
    """

    def __init__(self, source: BlockSource, edges: Sequence[int]) -> None:
        self._source, self.edges = source, tuple(edges)

    @classmethod
    def from_function(
        cls,
        fn: Callable[[IntArray], tuple[Any, ...]],
        num_states: int,
        num_actions: int,
        discount: float,
        *,
        shards: int | Sequence[int] = 2,
        mask: Callable[[IntArray], Any] | None = None,
        shared_rows: Callable[[IntArray], Any] | None = None,
        batch_size: int = 65_536,
    ) -> ShardedMDP:
        """Describe a model by a function of states, which each shard's process calls on its own states.

        Args:
            fn: as in `MDP.from_function`: gets a batch of B states and returns `(rewards, next_states)`, both (B, A),
                or `(rewards, successors, probabilities)` of shapes (B, A), (B, A, K), (B, A, K). For processes and Ray
                it must be defined in a module that they can import, too.
            num_states: of the whole model.
            num_actions: A.
            discount: γ in [0, 1).
            shards: how many, of equal size; or the first state of each, to cut where few transitions cross.
            mask: returns for a batch of states bools (B, A), False where an action is not offered.
            shared_rows: rows that lead nearly everywhere, such as "move to a random cell": returns for a batch of
                states (B, R) the probabilities with which each of R rows leads to them. The successor `num_states + r`
                in what fn returns stands for row r; nobody has to list where it leads.
            batch_size: states per call.

        >>> import adalook as al
        >>> def walk(s):
        ...     left, right = np.maximum(s - 1, 0), np.minimum(s + 1, 99)
        ...     return np.stack([s == 0, s == 99], axis=1), np.stack([left, right], axis=1)
        >>> model = al.ShardedMDP.from_function(walk, num_states=100, num_actions=2, discount=0.9, shards=4)
        >>> solution = model.solve()
        >>> solution.converged, solution.policy_loss < 1e-8
        (True, True)
        """
        num_states = integer(min=1).validate("num_states", num_states)
        num_actions = integer(min=1).validate("num_actions", num_actions)
        batch_size = integer(min=1).validate("batch_size", batch_size)
        for name, given in (("fn", fn), ("mask", mask), ("shared_rows", shared_rows)):
            if not callable(given) and (given is not None or name == "fn"):
                raise ModelError(f"{name} is not a function", expected=f"{name}(states)", got=type(given).__name__)
        num_shared = 0 if shared_rows is None else shared_weights(shared_rows, np.arange(1)).shape[1]
        source = FunctionSource(
            fn, num_states, num_actions, checked_discount(discount), mask, shared_rows, num_shared, batch_size
        )
        return cls(source, checked_edges(shards, num_states))

    @classmethod
    def load(cls, path: str | Path, *, shards: int | Sequence[int] = 2, discount: float | None = None) -> ShardedMDP:
        """Describe a model by a file that `MDP.save` wrote (`.npz`), which each process maps and reads in part.

        Rows of the file that lead to a quarter of all states or more are treated as shared rows.
        """
        source = FileSource.of(checks.checked_path(path), discount)
        checked_discount(source.discount)
        return cls(source, checked_edges(shards, source.num_states))

    @property
    def num_states(self) -> int:
        """Number of states S."""
        return self._source.num_states

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self._source.num_actions

    @property
    def discount(self) -> float:
        """The discount γ."""
        return self._source.discount

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.edges) - 1

    def __repr__(self) -> str:
        return (
            f"ShardedMDP({self.num_states:,} states on {self.shards} shards, {self.num_actions} actions, "
            f"discount {self.discount:.15g})"
        )

    def solve(
        self,
        *,
        engine: Any = None,
        tolerance: float = DEFAULT_TOLERANCE,
        max_rounds: int | None = None,
        max_seconds: float | None = None,
        out: str | Path | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = INTERVAL_SECONDS,
    ) -> ShardedSolution:
        """Solve the model in rounds; the answer is the same, to the bit, on every engine and after any death.

        Args:
            engine: None for this process, one shard after the other; `al.LocalProcesses(actors=2)`; `al.Ray(actors=2)`,
                with an address for a cluster. There are never more actors than shards.
            tolerance: absolute, on the certified `policy_loss`, above 0.
            max_rounds: reaching it gives Status.ITERATION_LIMIT.
            max_seconds: checked between rounds; reaching it gives Status.TIME_LIMIT.
            out: a directory for values and policy, written shard by shard; without it they are kept in memory.
            checkpoint: a directory to go on from if this process is killed; removed when the solve has converged.
            checkpoint_seconds: least time between two checkpoints; 0 writes one after every round.

        An actor that dies is replaced, built again and told what it had been told; nothing is lost.
        Ctrl-C ends with the best answer so far, certified, and Status.INTERRUPTED, after the round.
        """
        began = perf_counter()
        limits = Limits(
            positive.validate("tolerance", tolerance),
            optional(integer(min=1)).validate("max_rounds", max_rounds),
            optional(at_least_zero).validate("max_seconds", max_seconds),
        )
        directory = None if out is None else checks.checked_path(out)
        if directory is not None:
            make_directory(directory)
        interrupt = SignalGuard()
        with ShardHosts(engine, self._source, self.edges) as hosts, interrupt:
            rounds = Rounds(self._source, self.edges, hosts, limits, began)
            saved: RoundsCheckpoint | None = None
            if checkpoint is not None:
                seconds = at_least_zero.validate("checkpoint_seconds", checkpoint_seconds)
                place = checks.checked_path(checkpoint)
                saved = RoundsCheckpoint(place, seconds, rounds.digest(), self.edges)
                saved.read(rounds)
            ending = rounds.run(interrupt, saved)
            if saved is not None and ending.status is not Status.CONVERGED:
                saved.write(rounds)
            solution = self._solution(rounds, ending, limits.tolerance, directory, hosts.restarts)
            if saved is not None and ending.status is Status.CONVERGED:
                saved.remove()
        return solution

    def _solution(
        self, rounds: Rounds, ending: Ending, tolerance: float, directory: Path | None, restarts: int
    ) -> ShardedSolution:
        """Collect the shards, one at a time, into memory or a directory."""
        parts = []
        for k in range(self.shards):
            part = rounds.result(k, ending.shift)
            if directory is None:
                parts.append(part)
            else:
                write_part(directory, k, part)
        solution = ShardedSolution(
            edges=self.edges,
            parts=parts if directory is None else map_parts(directory, self.edges),
            low=float(ending.certificate.low),
            high=float(ending.certificate.high),
            policy_loss=ending.certificate.policy_loss,
            status=ending.status,
            message=_ending(ending, tolerance, rounds),
            tolerance=tolerance,
            trace=tuple(rounds.trace),
            restarts=restarts,
            seconds=rounds.seconds,
            build_seconds=rounds.build_seconds,
            directory=directory,
        )
        if directory is not None:
            write_summary(solution, directory)
        return replace(solution, seconds=rounds.seconds)


def checked_discount(value: Any) -> float:
    """Return a discount below one, or raise `ModelError`."""
    gamma = checks.checked_discount(value)
    if gamma == 1.0:
        raise ModelError("a sharded model needs a discount below 1", remedy="al.solve takes models with discount 1")
    return gamma


def checked_edges(shards: Any, num_states: int) -> tuple[int, ...]:
    """Return where shards begin, and the number of states: of so many equal shards, or as given.

    >>> checked_edges(3, 10), checked_edges([0, 4], 10)
    ((0, 3, 6, 10), (0, 4, 10))
    """
    if isinstance(shards, Sequence | np.ndarray) and not isinstance(shards, str):
        edges = [integer(min=0).validate("the first state of a shard", edge) for edge in shards] + [num_states]
        if edges[0] != 0 or any(first >= last for first, last in pairwise(edges)):
            raise ArgumentError(
                "shards are wrong", expected=f"first states that ascend from 0, below {num_states}", got=edges[:-1][:20]
            )
        return tuple(edges)
    count = integer(1, min(num_states, MOST_SHARDS)).validate("shards", shards)
    return tuple(num_states * k // count for k in range(count + 1))


def _ending(ending: Ending, tolerance: float, rounds: Rounds) -> str:
    """Return in a sentence how a solve ended."""
    match ending.status:
        case Status.CONVERGED:
            return f"policy loss certified below {tolerance:g}"
        case Status.ROUNDING_LIMIT:
            return f"no further improvement can be told from rounding; a loss below {tolerance:g} is not certified"
        case Status.INTERRUPTED:
            return "stopped by a signal"
        case Status.ITERATION_LIMIT:
            return f"stopped after {len(rounds.trace)} rounds"
        case Status.TIME_LIMIT:
            return f"stopped after {rounds.seconds:.3g} s"
