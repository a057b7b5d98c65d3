"""`MDP`: a finite discounted Markov decision process (S, A, P, r, γ), checked once and never changed.

The optimal value is the one solution of

    V*(s) = max_a  r(s, a) + γ Σ_s' P(s' | s, a) V*(s')

over the actions that s offers. Rewards may have either sign.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from adalook._arrays import BoolArray, FloatArray, IntArray
from adalook._validation import boolean
from adalook.errors import ModelError
from adalook.mdp import checks
from adalook.mdp.builders.arrays import usual_form
from adalook.mdp.layout import Layout
from adalook.mdp.names import NO_NAMES, Names, checked_names, index_of
from adalook.mdp.transitions import (
    LONG_ROW,
    NOT_OFFERED,
    ModelArrays,
    Predecessors,
    Rows,
    compress,
    index_type,
    is_deterministic,
    neighbourhood_growth,
    no_rows,
    row_of,
    row_sum_bounds,
)

if TYPE_CHECKING:
    import gymnasium

    from adalook.mdp.simulation import Trajectories

TransitionFunction: TypeAlias = Callable[[IntArray], tuple[Any, ...]]
"""fn(states) -> (rewards, next states) or (rewards, successors, probabilities): see `MDP.from_function`."""


Fact = TypeVar("Fact")


class MDP:
    """A finite MDP in compressed form.

    Args:
        rewards: (S, A) expected reward of each state and action; or rewards of (s, a, s'), in one of the last three
            forms of transitions, of which the expectation is taken.
        transitions: one of
            integers (S, A): the next state of each deterministic move;
            floats (S, A, S): P(s' | s, a);
            a SciPy sparse matrix (S·A, S): row s·A + a is P(· | s, a);
            floats (A, S, S), or a list of A sparse matrices (S, S): P(s' | s, a) action by action. An array of a model
            with as many actions as states is taken as (S, A, S): pass `np.moveaxis(P, 0, 1)` if it is not.
        discount: γ in [0, 1]. With γ = 1 a model can be solved for a finite horizon or, if every policy ends from
            everywhere, for the total reward.
        mask: (S, A) bools, False where a state does not offer an action; rewards and transitions there are ignored.
        layout: how to draw the states, if they lie on a grid.
        state_names: S distinct names, for printed policies and for files.
        action_names: A distinct names; by default those of the layout.

    >>> import adalook as al
    >>> mdp = al.MDP(rewards=[[0.0, 1.0], [2.0, 0.0]], transitions=[[0, 1], [1, 0]], discount=0.9)
    >>> mdp
    MDP(2 states, 2 actions, discount 0.9, deterministic)
    """

    __slots__ = ("__dict__", "codes", "discount", "layout", "mapped", "names", "rewards", "rows")

    rewards: FloatArray  # (S, A), zero where not offered; of large models in the narrowest type that is exact
    codes: IntArray  # (S, A) transition codes, see `transitions`
    rows: Rows
    discount: float
    layout: Layout | None
    names: Names
    mapped: Path | None
    """The file that the arrays lie in, if they are not in memory."""
    facts: dict[Callable[..., Any], Any]
    """Answers that `kept_with_model` keeps."""

    def __init__(
        self,
        rewards: Any,
        transitions: Any = None,
        discount: float | None = None,
        *,
        mask: Any = None,
        layout: Layout | None = None,
        state_names: Iterable[Any] | None = None,
        action_names: Iterable[Any] | None = None,
    ) -> None:
        if transitions is None or discount is None:
            raise ModelError(
                f"an MDP needs {'transitions' if transitions is None else 'a discount'}",
                expected="al.MDP(rewards, transitions, discount)",
                remedy="tables P[s][a] go to al.MDP.from_table(table, discount), models of other libraries to "
                "al.MDP.from_gymnasium, from_quantecon or from_stormpy",
            )
        gamma = checks.checked_discount(discount)
        rewards, transitions = usual_form(rewards, transitions)
        given = checks.reward_table(rewards)
        names = Names(
            checked_names(state_names, given.shape[0], "state"), checked_names(action_names, given.shape[1], "action")
        )
        offered = checks.checked_mask(mask, given.shape, names=names)
        table = checks.checked_rewards(given, offered, names=names)
        codes, rows = _codes_and_rows(transitions, table.shape, offered, names)
        self._fill(table, codes, rows, gamma, layout, names)

    def _fill(
        self,
        rewards: FloatArray,
        codes: IntArray,
        rows: Rows,
        discount: float,
        layout: Layout | None,
        names: Names,
        mapped: Path | None = None,
    ) -> None:
        """Take arrays that are known to be well formed, and check what depends on several of them."""
        if mapped is None:
            rewards = checks.stored_rewards(rewards)
        parts: dict[str, object] = {"rewards": rewards, "codes": codes, "rows": rows, "discount": discount}
        parts |= {"layout": layout, "names": names, "mapped": mapped}
        for name, part in parts.items():
            object.__setattr__(self, name, part)
        self.__dict__["facts"] = {}
        if layout is not None and not isinstance(layout, Layout):
            raise ModelError("layout is wrong", expected="an al.Layout", got=type(layout).__name__)
        if layout is not None and layout.num_states != self.num_states:
            raise ModelError("layout does not fit", expected=f"{self.num_states} states", got=layout.num_states)
        checks.check_reward_size(self.largest_reward, discount)
        checks.check_row_sums(self.row_sums[1], discount)
        # What every solve needs is computed now, once; predecessors only when a method wants them.
        for name in ("num_pairs", "rounding_terms", "contraction", "longest_row", "growth"):
            getattr(self, name)
        for part in (rewards, codes, rows.indptr, rows.indices, rows.data):
            part.flags.writeable = False

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an MDP never changes: make a new one to change {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.mapped is not None:
            return _load_mapped, (self.mapped, self.discount)
        return MDP._adopt, (self.rewards, self.codes, self.rows, self.discount, self.layout, self.names)

    @classmethod
    def _adopt(
        cls,
        rewards: FloatArray,
        codes: IntArray,
        rows: Rows,
        discount: float,
        layout: Layout | None = None,
        names: Names = NO_NAMES,
        mapped: Path | None = None,
    ) -> MDP:
        """Return a model of arrays that are known to be well formed."""
        mdp = cls.__new__(cls)
        mdp._fill(rewards, codes, rows, discount, layout, names, mapped)
        return mdp

    def _with_rewards(self, rewards: FloatArray, largest_reward: float) -> MDP:
        """Return this model with other rewards (S, A) that are known to be well formed; all else is shared."""
        other = MDP.__new__(MDP)
        for name in MDP.__slots__[1:]:
            object.__setattr__(other, name, getattr(self, name))
        object.__setattr__(other, "rewards", rewards)
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("arrays", None)
        other.__dict__.update(largest_reward=largest_reward, facts={})
        rewards.flags.writeable = False
        return other

    @classmethod
    def from_function(
        cls,
        fn: TransitionFunction,
        num_states: int,
        num_actions: int,
        discount: float,
        *,
        mask: Any = None,
        layout: Layout | None = None,
        batch_size: int = 65_536,
        path: str | Path | None = None,
    ) -> MDP:
        """Build the model from a function of states: see `adalook.mdp.builders.functions`.

        `fn(states)` gets a batch of B states and returns `(rewards, next_states)`, both (B, A), or
        `(rewards, successors, probabilities)` of shapes (B, A), (B, A, K), (B, A, K). With `path` the model is built in
        that `.npz` file, some million pairs at a time, and left there, as `load(path, mmap=True)` does.

        >>> import adalook as al
        >>> def walk(s):
        ...     left, right = np.maximum(s - 1, 0), np.minimum(s + 1, 9)
        ...     return np.stack([s == 0, s == 9], axis=1), np.stack([left, right], axis=1)
        >>> al.MDP.from_function(walk, num_states=10, num_actions=2, discount=0.9)
        MDP(10 states, 2 actions, discount 0.9, deterministic)
        """
        from adalook.mdp.builders.functions import from_function

        return from_function(
            fn, num_states, num_actions, discount, mask=mask, layout=layout, batch_size=batch_size, path=path
        )

    @classmethod
    def from_gymnasium(cls, env: gymnasium.Env[Any, Any], discount: float = 0.99) -> MDP:
        """Read the transition table of a toy-text environment (FrozenLake, Taxi, CliffWalking, …).

        Transitions that end the episode lead to a sink, the last state, where nothing more is paid.
        """
        from adalook.mdp.builders.gymnasium import from_gymnasium

        return from_gymnasium(env, discount)

    @classmethod
    def from_table(cls, table: Any, discount: float, *, rewards: Any = None, layout: Layout | None = None) -> MDP:
        """Build the model from a table of outcomes, `table[state][action]`, of dictionaries or lists.

        Outcomes are a list of (probability, next state, reward), with a fourth entry `terminated` if you like, or a
        mapping {next state: probability} with rewards apart: `rewards[state][action]`, a number or a mapping by next
        state. States and actions are numbers from 0 or names; a state without actions ends the episode. See
        `adalook.mdp.builders.tables`.

        >>> import adalook as al
        >>> mdp = al.MDP.from_table({
        ...     "rested": {"work": [(0.7, "rested", 3.0), (0.3, "tired", 3.0)], "sleep": [(1.0, "rested", 0.0)]},
        ...     "tired": {"work": [(1.0, "tired", 1.0)], "sleep": [(0.9, "rested", 0.0), (0.1, "tired", 0.0)]},
        ... }, discount=0.9)
        >>> mdp.state_names, mdp.action_names
        (('rested', 'tired'), ('work', 'sleep'))
        """
        from adalook.mdp.builders.tables import from_table

        return from_table(table, discount, rewards=rewards, layout=layout)

    @classmethod
    def from_quantecon(cls, ddp: Any) -> MDP:
        """Take over a `quantecon.markov.DiscreteDP`, in product form or in state-action pairs, dense or sparse."""
        from adalook.mdp.builders.libraries import from_quantecon

        return from_quantecon(ddp)

    @classmethod
    def from_stormpy(cls, model: Any, discount: float, reward_model: str | None = None) -> MDP:
        """Take over a sparse MDP or DTMC of stormpy, with one of its reward models (state and choice rewards).

        Choice labels, if it was built with them, become the names of actions, and state valuations those of states.
        """
        from adalook.mdp.builders.libraries import from_stormpy

        return from_stormpy(model, discount, reward_model)

    @classmethod
    def load(cls, path: str | Path, *, discount: float | None = None, mmap: bool = False) -> MDP:
        """Read a model from `.npz` (ours) or `.umb` (Storm, PRISM; these carry no discount, so pass one).

        With `mmap` the arrays of an `.npz` file stay there: the system reads what is looked at, and forgets it when
        memory is short. Such a model may be larger than memory; `al.solve` goes through it block by block. The file is
        checked once, when it is loaded, and must not be written to while it is used.
        """
        from adalook.mdp.files import load

        return load(checks.checked_path(path), discount, boolean.validate("mmap", mmap))

    def save(self, path: str | Path) -> None:
        """Write the model to `.npz`, or to `.umb`; an existing file is replaced only when the new one is safe."""
        from adalook.mdp.files import save

        save(self, checks.checked_path(path))

    def simulate(
        self, policy: Any, steps: int, *, start: int | str | None = None, episodes: int = 1, seed: int = 0
    ) -> Trajectories:
        """Follow a policy for some steps, in several episodes: see `adalook.mdp.simulation`.

        Args:
            policy: (S,) actions, by numbers or names, (S, A) probabilities of actions, or (T, S) actions for each time
                step. Whole numbers are actions, floats probabilities.
            steps: length of an episode; one that reaches a state it cannot leave, and that pays nothing, goes on there.
            start: the first state, a number or a name; by default drawn uniformly for each episode.
            episodes: how many, side by side.
            seed: of all that is drawn; the same seed gives the same trajectories.

        >>> import adalook as al
        >>> mdp = al.zoo.chain(n=3)
        >>> mdp.simulate(al.solve(mdp).policy, steps=4, start=1).states
        array([[1, 2, 3, 3, 3]], dtype=int32)
        """
        from adalook.mdp.simulation import simulate

        return simulate(self, policy, steps, start=start, episodes=episodes, seed=seed)

    @cached_property
    def num_states(self) -> int:
        """Number of states S."""
        return len(self.rewards)

    @cached_property
    def num_actions(self) -> int:
        """Number of actions A."""
        return int(self.rewards.shape[1])

    @property
    def state_names(self) -> tuple[str, ...]:
        """One name per state, or none."""
        return self.names.states

    @property
    def action_names(self) -> tuple[str, ...]:
        """One name per action, given with the model or by its layout, or none."""
        if not self.names.actions and self.layout is not None and len(self.layout.action_names) == self.num_actions:
            return self.layout.action_names
        return self.names.actions

    def state_index(self, state: int | str) -> int:
        """Return the number of a state that is given by its number or name."""
        return index_of(state, self.state_names, self.num_states, "state")

    def action_index(self, action: int | str) -> int:
        """Return the number of an action that is given by its number or name."""
        return index_of(action, self.action_names, self.num_actions, "action")

    def state_label(self, state: int) -> str:
        """Return the name of a state or, if it has none, its number as text."""
        return self.state_names[state] if self.state_names else str(state)

    def action_label(self, action: int) -> str:
        """Return the name of an action or, if it has none, its number as text."""
        return self.action_names[action] if self.action_names else str(action)

    @property
    def deterministic(self) -> bool:
        """Whether every move has one certain next state."""
        return self.rows.num_rows == 0

    @cached_property
    def offered(self) -> BoolArray:
        """(S, A) bools: which actions each state offers."""
        return np.not_equal(self.codes, NOT_OFFERED)

    @cached_property
    def num_pairs(self) -> int:
        """Number of (state, action) pairs on offer: what one full backup queries."""
        flat = self.codes.reshape(-1)
        parts = range(0, len(flat), checks.CHUNK)
        return sum(int(np.count_nonzero(flat[first : first + checks.CHUNK] != NOT_OFFERED)) for first in parts)

    @cached_property
    def largest_reward(self) -> float:
        """max |r(s, a)|."""
        return max(float(self.rewards.max()), -float(self.rewards.min()))

    @cached_property
    def row_sums(self) -> tuple[float, float]:
        """Bounds (low, high) on the exact sums of all transition rows."""
        return row_sum_bounds(self.rows)

    @cached_property
    def contraction(self) -> tuple[Fraction, Fraction]:
        """1 − γρ, exactly, for the bounds ρ on the row sums, low and high."""
        low, high = (1 - Fraction(self.discount) * Fraction(row_sum) for row_sum in self.row_sums)
        return low, high

    @cached_property
    def rounding_terms(self) -> int:
        """n such that a backup in float64 is off by at most γₙ(|r| + γ P|V|), γₙ = nu/(1 − nu)."""
        if self.deterministic:
            return 3
        return min(int(np.diff(self.rows.indptr).max()), LONG_ROW) + 4

    @cached_property
    def longest_row(self) -> int:
        """Most successors of any row that is not shared; 0 where all moves are deterministic."""
        return int(np.diff(self.rows.indptr[self.rows.num_shared :]).max(initial=0))

    @cached_property
    def arrays(self) -> ModelArrays:
        """The model's arrays as one named tuple: what kernels take."""
        return ModelArrays(self.rewards, self.codes, *self.rows, self.discount)

    @cached_property
    def predecessors(self) -> Predecessors:
        """The states that lead to each state in one step, computed when first asked for."""
        return Predecessors.of(self.codes, self.rows)

    @cached_property
    def deterministic_share(self) -> float:
        """Share of the moves, those of 256 states or more, that are deterministic."""
        sample = self.codes[:: max(1, self.num_states // 256)]
        return float(np.count_nonzero(is_deterministic(sample)) / sample.size)

    @cached_property
    def growth(self) -> float:
        """Size of the neighbourhood of three steps over that of one: 5 on a grid, 30 on a random graph."""
        return neighbourhood_growth(self.codes, self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the model's own arrays."""
        return self.rewards.nbytes + self.codes.nbytes + self.rows.nbytes

    def transition_row(self, state: int | str, action: int | str) -> tuple[IntArray, FloatArray]:
        """Return the successors and probabilities of one (state, action); both empty if it is not offered.

        State and action are numbers, or names where the model has them.

        >>> import adalook as al
        >>> al.zoo.chain(n=3).transition_row(0, 1)
        (array([4], dtype=int32), array([1.]))
        """
        code = self.codes[self.state_index(state), self.action_index(action)]
        if is_deterministic(code):
            return np.array([code]), np.ones(1)
        if code == NOT_OFFERED:
            return np.empty(0, self.codes.dtype), np.empty(0)
        row = row_of(code)
        part = slice(self.rows.indptr[row], self.rows.indptr[row + 1])
        return self.rows.indices[part], self.rows.data[part]

    def __repr__(self) -> str:
        kind = "deterministic" if self.deterministic else f"{self.rows.num_rows} distinct stochastic rows"
        return f"MDP({self.num_states} states, {self.num_actions} actions, discount {self.discount:.15g}, {kind})"


def kept_with_model(function: Callable[[MDP], Fact]) -> Callable[[MDP], Fact]:
    """Decorate a function of a model alone: the answer is computed once and kept with the model, which never changes.

    >>> import adalook as al
    >>> @kept_with_model
    ... def most_actions(mdp: MDP) -> int:
    ...     print("counting")
    ...     return int(mdp.offered.sum(axis=1).max())
    >>> mdp = al.zoo.chain(n=3)
    >>> most_actions(mdp), most_actions(mdp)
    counting
    (2, 2)
    """

    @wraps(function)
    def fact(mdp: MDP) -> Fact:
        facts = mdp.facts
        if function not in facts:
            facts[function] = function(mdp)
        answer: Fact = facts[function]
        return answer

    return fact


def _load_mapped(path: Path, discount: float) -> MDP:
    """Map a model again: what a mapped model is pickled as."""
    return MDP.load(path, discount=discount, mmap=True)


def _codes_and_rows(
    transitions: Any, shape: tuple[int, int], offered: BoolArray | None, names: Names
) -> tuple[IntArray, Rows]:
    """Return codes and rows of any of the three forms of transitions."""
    num_states, num_actions = shape
    everything = np.ones(shape, bool) if offered is None else offered
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(transitions):
        return _from_sparse(transitions, shape, everything, names)
    given = checks.number_array(transitions, "transitions")
    if given.ndim == 2 and given.dtype.kind in "iu":
        if given.shape != shape:
            raise ModelError("transitions has the wrong shape", expected=f"next states {shape}", got=given.shape)
        checks.check_next_states(given, offered, names)
        codes = given.astype(index_type(num_states), order="C")
        if offered is not None:
            codes[~offered] = NOT_OFFERED
        return codes, no_rows()
    if given.ndim == 3 and given.shape == (num_states, num_actions, num_states):
        dense = checks.without_negative_rounding(given.reshape(num_states * num_actions, num_states))
        if offered is not None:
            dense = np.where(offered.reshape(-1, 1), dense, dense.dtype.type(0))
        pair, successor = np.nonzero(dense)
        indptr = np.zeros(len(dense) + 1, np.int64)
        np.cumsum(np.bincount(pair, minlength=len(dense)), out=indptr[1:])
        data = checks.checked_probabilities(indptr, successor, dense[pair, successor], everything, names)
        return compress(indptr, successor, data, everything)
    hint = "next states must be integers: use transitions.astype(int)" if given.shape == shape else ""
    if given.shape == (num_actions, num_states, num_actions):
        hint = "these rewards seem to be (A, S): pass rewards.T"
    if given.shape == (num_states * num_actions, num_states):
        hint = "pass scipy.sparse.csr_array(transitions), or reshape it to (S, A, S)"
    raise ModelError(
        "transitions has the wrong shape or type",
        expected=f"integers {shape}, floats {(*shape, num_states)} or a sparse matrix "
        f"{(num_states * num_actions, num_states)}",
        got=f"{given.dtype} {given.shape}",
        remedy=hint,
    )


def _from_sparse(transitions: Any, shape: tuple[int, int], offered: BoolArray, names: Names) -> tuple[IntArray, Rows]:
    """Return codes and rows of a sparse matrix (S·A, S)."""
    num_states, num_actions = shape
    if transitions.shape != (num_states * num_actions, num_states):
        raise ModelError(
            "transitions has the wrong shape",
            expected=f"(S·A, S) = {(num_states * num_actions, num_states)}",
            got=transitions.shape,
            remedy="row s·A + a holds the successors of state s under action a",
        )
    if transitions.dtype.kind not in "iuf":
        raise ModelError("transitions has the wrong type", expected="real numbers", got=f"dtype {transitions.dtype}")
    csr = checks.sparse_rows(transitions, "transitions")
    indptr, indices = csr.indptr, csr.indices
    # Indices and signs are checked before duplicates are summed: a sum could hide what is wrong.
    everyone = np.repeat(offered.ravel(), np.diff(indptr))
    csr.data = checks.without_negative_rounding(np.where(everyone, csr.data, csr.data.dtype.type(0)))
    checks.checked_probabilities(indptr, indices, csr.data, offered, names)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    data = checks.checked_probabilities(csr.indptr, csr.indices, csr.data, offered, names)
    return compress(csr.indptr, csr.indices, data, offered)
