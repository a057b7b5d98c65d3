"""How each solver is called.

A solver is a class. Making one from an MDP builds the solver's own model (timed apart); `prepare(epsilon, …)` returns
the call that is timed, always from a cold start; `values(result)` reads its answer (S,), not timed. `epsilon` is the
accuracy that the solver is asked for, in its own terms; whether it was reached is judged afterwards.

Every setting tried is listed in SETTINGS, all from the peers' own documentation.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import adalook as al
from adalook.cli.sources import build_method
from adalook.mdp.transitions import NOT_OFFERED, is_deterministic, row_of

Values = NDArray[np.float64]


class Solver(Protocol):
    """What the measuring child asks of a solver."""

    module: ClassVar[str]
    """The module that must be installed."""

    def __init__(self, mdp: al.MDP) -> None: ...
    def prepare(self, epsilon: float, **options: Any) -> Callable[[], Any]: ...
    def values(self, result: Any) -> Values: ...


class Adalook:
    """Ours: plain `al.solve(mdp, tolerance=1e-6)`, certificate included; or by another method of ours."""

    module = "adalook"

    def __init__(self, mdp: al.MDP) -> None:
        self.mdp = mdp
        self.own = set(vars(mdp))

    def compile(self, epsilon: float, seconds: float, method: str = "auto") -> None:
        """Solve for so many seconds, so that every kernel that this model needs is compiled."""
        al.solve(self.mdp, build_method(method, None, self.mdp)[0], tolerance=epsilon, max_seconds=seconds)

    def prepare(self, epsilon: float, method: str = "auto") -> Callable[[], al.Solution]:
        # What an earlier solve left behind on the model (such as its predecessor lists) would be a head start.
        for name in set(vars(self.mdp)) - self.own:
            del vars(self.mdp)[name]
        self.mdp.facts.clear()
        chosen = build_method(method, None, self.mdp)[0]

        def solve() -> al.Solution:
            solution = al.solve(self.mdp, chosen, tolerance=epsilon)
            if not solution.converged:
                raise ArithmeticError(f"no better than {solution.policy_loss:.1e}")
            return solution

        return solve

    def values(self, result: al.Solution) -> Values:
        return result.values


class QuantEcon:
    """QuantEcon.py's DiscreteDP, in its sparse state-action-pair form or, with `dense`, in its product form (BLAS).

    `epsilon` makes the policy ε-optimal and the values ε/2-accurate: by the span for modified policy iteration,
    by the norm for value iteration. `max_iter`, 250 by default, would end most solves early and in silence.
    """

    module = "quantecon"

    def __init__(self, mdp: al.MDP) -> None:
        self.mdp = mdp
        self.models: dict[bool, Any] = {}

    def prepare(self, epsilon: float, method: str, k: int = 20, dense: bool = False) -> Callable[[], Any]:
        model = self._model(dense)
        return lambda: model.solve(method, epsilon=epsilon, max_iter=10**9, k=k)

    def values(self, result: Any) -> Values:
        return np.asarray(result.v)

    def _model(self, dense: bool) -> Any:
        """The model in either form, made when first asked for."""
        from quantecon.markov import DiscreteDP

        if dense not in self.models:
            mdp, matrix = self.mdp, transition_matrix(self.mdp)
            if dense:
                if mdp.num_states * mdp.num_states * mdp.num_actions > DENSE_ENTRIES:
                    raise ValueError("too large for a dense model")
                table = matrix.toarray().reshape(mdp.num_states, mdp.num_actions, mdp.num_states)
                self.models[dense] = DiscreteDP(mdp.rewards, table, mdp.discount)
            else:
                state, action = np.divmod(np.arange(matrix.shape[0]), mdp.num_actions)
                self.models[dense] = DiscreteDP(mdp.rewards.ravel(), matrix, mdp.discount, state, action)
        return self.models[dense]


class MDPSolver:
    """MDPSolver (C++, OpenMP) with its sparse form (2): lists of probabilities and columns.

    Its `tolerance` is ε of Puterman's stopping rules: the span for standard updates (values are then corrected by
    equation 6.6.12), the norm for Gauss-Seidel and SOR; `parallel` applies to standard updates only. A second `solve`
    on the same object starts from the first one's answer, so each solve gets a new object.
    """

    module = "mdpsolver"

    def __init__(self, mdp: al.MDP) -> None:
        matrix = transition_matrix(mdp)
        ends = matrix.indptr.tolist()

        def nested(flat: NDArray[Any]) -> list[list[list[Any]]]:
            items, actions = flat.tolist(), mdp.num_actions
            pairs = [items[a:b] for a, b in pairwise(ends)]
            return [pairs[s : s + actions] for s in range(0, len(pairs), actions)]

        self.arguments = {
            "discount": mdp.discount,
            "rewards": mdp.rewards.tolist(),
            "tranMatProbs": nested(matrix.data),
            "tranMatColumns": nested(matrix.indices),
        }

    def prepare(self, epsilon: float, **options: Any) -> Callable[[], Any]:
        import mdpsolver

        model = mdpsolver.model()
        model.mdp(**self.arguments)

        def solve() -> Any:
            model.solve(tolerance=epsilon, makeFinalCheck=False, **options)
            return model

        return solve

    def values(self, result: Any) -> Values:
        return np.array(result.getValueVector())


class MDPToolbox:
    """mdptoolbox (hiive) with one CSR matrix per action; only `run()` is timed, as in MDPSolver's own benchmark.

    It stops by the span but leaves the values uncorrected, off by a constant; they get Puterman's correction here, from
    one more backup that is not timed. The constructor of its value iteration derives `max_iter` from every column of
    every matrix, in time quadratic in S. It is spared that, and gets a large `max_iter`.
    """

    module = "hiive.mdptoolbox"

    def __init__(self, mdp: al.MDP) -> None:
        self.mdp, self.matrix = mdp, transition_matrix(mdp)
        self.transitions = [self.matrix[a :: mdp.num_actions].tocsr() for a in range(mdp.num_actions)]

    def prepare(self, epsilon: float, algorithm: str, **options: Any) -> Callable[[], Any]:
        from hiive.mdptoolbox import mdp as toolbox

        class Spared(getattr(toolbox, algorithm)):  # type: ignore[misc]
            def _boundIter(self, epsilon: float) -> None:
                pass

        model = Spared(
            self.transitions, self.mdp.rewards, self.mdp.discount, epsilon=epsilon, skip_check=True, **options
        )

        def solve() -> Any:
            model.run()
            return model

        return solve

    def values(self, result: Any) -> Values:
        mdp, old = self.mdp, np.array(result.V)
        new = (mdp.rewards + mdp.discount * (self.matrix @ old).reshape(mdp.rewards.shape)).max(axis=1)
        change = new - old
        return new + mdp.discount / (1.0 - mdp.discount) * 0.5 * (change.min() + change.max())


class Storm:
    """Storm through stormpy, sparse engine, on a model built entry by entry; a scheduler is asked for too.

    Two ways to discount. `discount`: Storm 2's own operator, Rmax=? [Cdiscount=γ], a value iteration in place that
    stops when the error is below the precision. `sink`: every step ends in a sink with probability 1 − γ, and
    Rmax=? [F "sink"] takes any of Storm's methods; rewards are then shifted to be non-negative, as those methods want
    them, and values shift back by a constant. Precision is absolute.
    """

    module = "stormpy"

    def __init__(self, mdp: al.MDP) -> None:
        self.mdp = mdp
        self.models: dict[bool, Any] = {}

    def prepare(self, epsilon: float, method: str, linear: str | None = None) -> Callable[[], Any]:
        import stormpy
        from stormpy import environments

        environment = environments.Environment()
        solver = environment.solver()
        for part in (solver.min_max(), solver.native()):
            part.precision = stormpy.Rational(f"1/{round(1 / epsilon)}")
            part.relative_termination_criterion = False
        if method != "discount":
            solver.min_max().method = getattr(environments.MinMaxMethod, method)
        if linear is not None:
            solver.set_linear_equation_solver_type(getattr(environments.EquationSolverType, linear))
        sink = method != "discount"
        path = 'F "sink"' if sink else f"Cdiscount={self.mdp.discount}"
        formula = stormpy.parse_property(f'R{{"reward"}}max=? [{path}]')
        model = self._model(sink)

        def solve() -> tuple[bool, Any]:
            result = stormpy.model_checking(model, formula, environment=environment, extract_scheduler=True)
            return sink, result

        return solve

    def values(self, result: tuple[bool, Any]) -> Values:
        sink, answer = result
        values = np.array(answer.get_value_vector())
        if not sink:
            return values
        return values[:-1] + self._shift() / (1.0 - self.mdp.discount)

    def _shift(self) -> float:
        return min(0.0, float(self.mdp.rewards.min()))

    def _model(self, sink: bool) -> Any:
        """The model, with or without a sink; made when first asked for."""
        if sink not in self.models:
            matrix, rewards, num_states = transition_matrix(self.mdp), self.mdp.rewards.ravel(), self.mdp.num_states
            if sink:
                leave = sp.csr_matrix(np.full((matrix.shape[0], 1), 1.0 - self.mdp.discount))
                stay = sp.csr_matrix(([1.0], ([0], [num_states])), shape=(1, num_states + 1))
                matrix = sp.vstack([sp.hstack([self.mdp.discount * matrix, leave]), stay], format="csr")
                rewards = np.append(rewards - self._shift(), 0.0)
            self.models[sink] = _storm_model(matrix, rewards, self.mdp.num_actions, sink)
        return self.models[sink]


def _storm_model(matrix: sp.csr_matrix, rewards: Values, num_actions: int, sink: bool) -> Any:
    from stormpy import models
    from stormpy.datastructures import SparseMatrixBuilder

    num_rows, num_states = matrix.shape
    builder = SparseMatrixBuilder[float](
        rows=num_rows, columns=num_states, entries=matrix.nnz, has_custom_row_grouping=True, row_groups=num_states
    )
    batch = 50_000 * num_actions
    for first in range(0, num_rows, batch):
        last = min(first + batch, num_rows)
        entries = slice(matrix.indptr[first], matrix.indptr[last])
        rows = np.repeat(np.arange(first, last), np.diff(matrix.indptr[first : last + 1]))
        groups = list(range(first, last, num_actions))
        builder.add_next_values(rows.tolist(), matrix.indices[entries].tolist(), matrix.data[entries].tolist(), groups)
    labels = models.StateLabeling(num_states)
    labels.add_label("init")
    labels.add_label_to_state("init", 0)
    if sink:
        labels.add_label("sink")
        labels.add_label_to_state("sink", num_states - 1)
    reward = models.SparseRewardModel[float](optional_state_action_reward_vector=rewards.tolist())
    parts = models.SparseModelComponents[float](builder.build(), labels, {"reward": reward})
    return models.SparseMdp[float](parts)


def transition_matrix(mdp: al.MDP) -> sp.csr_matrix:
    """All transitions as one matrix (S·A, S), row s·A + a; every state must offer every action."""
    codes = mdp.codes.ravel().astype(np.int64)
    certain = is_deterministic(codes)
    row = np.where(certain, 0, row_of(codes))
    if (codes == NOT_OFFERED).any():
        raise ValueError("a state does not offer some action; the peers are fed full models only")
    ends = np.append(mdp.rows.indptr.astype(np.int64), 0)
    length = np.where(certain, 1, ends[row + 1] - ends[row])
    indptr = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(length, out=indptr[1:])
    indices, data = np.repeat(codes, length), np.ones(indptr[-1])
    entry = np.flatnonzero(np.repeat(~certain, length))
    source = entry - np.repeat(indptr[:-1] - ends[row], length)[entry]
    indices[entry], data[entry] = mdp.rows.indices[source], mdp.rows.data[source]
    return sp.csr_matrix((data, indices, indptr), shape=(len(codes), mdp.num_states))


@dataclass(frozen=True)
class Setting:
    """One way to call one solver."""

    solver: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)
    skip: dict[str, str] = field(default_factory=dict)
    """Kinds of models on which there is no need to wait for the clock, and why."""
    exact: bool = False
    """Whether it evaluates policies exactly, and so may answer where the solver's settings that iterate do not."""

    @property
    def name(self) -> str:
        return f"{self.solver} {self.label}".strip()


SOLVERS: dict[str, type[Solver]] = {
    "adalook": Adalook,
    "quantecon": QuantEcon,
    "mdpsolver": MDPSolver,
    "mdptoolbox": MDPToolbox,
    "storm": Storm,
}

OURS = Setting("adalook", "")
AGAIN = Setting("adalook", "again")
FILLS_IN = dict.fromkeys(
    ("garnet", "web", "lazy", "blocks", "transient"), "sparse LU fills in: 23 s to 380 s at 10,000 states of garnet"
)
OWN = tuple(
    Setting("adalook", method, {"method": method}, skip=FILLS_IN if method == "auto:sparse LU" else {})
    for method in ("pi", "wlpi", "mpi:20", "auto:in-place MPI", "auto:banded LU", "auto:sparse LU", "auto:sweeps")
)
"""Our other methods, and Auto with one way forced: what the default is compared with in the regret column."""

DENSE_ENTRIES = 30_000_000
"""Largest model that is given to a peer with every zero written out."""

CYCLES = {"maze": "cycles between tied actions", "frozenlake": "cycles between tied actions"}

SETTINGS = (
    Setting("quantecon", "mpi k=20", {"method": "mpi"}),
    Setting("quantecon", "mpi k=5", {"method": "mpi", "k": 5}),
    Setting("quantecon", "mpi k=100", {"method": "mpi", "k": 100}),
    Setting("quantecon", "dense mpi k=5", {"method": "mpi", "k": 5, "dense": True}),
    Setting("quantecon", "dense pi", {"method": "pi", "dense": True}, skip=CYCLES),
    Setting("quantecon", "pi", {"method": "pi"}, skip={**CYCLES, **FILLS_IN}, exact=True),
    Setting("mdpsolver", "mpi 20 sweeps parallel", {"algorithm": "mpi", "parIterLim": 20}),
    Setting("mdpsolver", "mpi gauss-seidel", {"algorithm": "mpi", "update": "gs", "parallel": False}),
    Setting("mdpsolver", "vi gauss-seidel", {"algorithm": "vi", "update": "gs", "parallel": False}),
    Setting("mdptoolbox", "vi", {"algorithm": "ValueIteration", "max_iter": 10**9}),
    Setting("storm", "discount operator", {"method": "discount"}),
    Setting("storm", "sink topological", {"method": "TOPOLOGICAL"}),
    Setting("storm", "sink pi gmm++", {"method": "POLICY_ITERATION", "linear": "GMMXX"}, exact=True),
)
"""Of each peer the settings that were the fastest on some family, from all that its documentation offers."""


def installed(solver: str) -> bool:
    """Whether the solver's package is there.

    >>> installed("adalook")
    True
    """
    try:
        return importlib.util.find_spec(SOLVERS[solver].module) is not None
    except ModuleNotFoundError:
        return False
