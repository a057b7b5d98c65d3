"""Hostile arguments: objects that lie about themselves, and odd containers of what is meant as usual."""

from __future__ import annotations

import array
import ctypes
import decimal
import enum
import fractions
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import adalook as al
from benchmarks.torture.outcome import DIFFERENT, FOREIGN, HANG, MEMORY, Row, Scale, attempt


def _raising(*names: str, error: type[Exception] = RuntimeError) -> Any:
    """Return an object whose special methods of these names raise."""

    def fails(self: Any, *arguments: Any, **options: Any) -> Any:
        raise error("hostile")

    return type("Raising", (), dict.fromkeys(names, fails))()


def _answering(base: type = object, **answers: Any) -> Any:
    """Return an object whose special methods return what is given."""
    methods = {name: lambda self, *rest, answer=answer, **options: answer for name, answer in answers.items()}
    return type("Answering", (base,), methods)()


class _Endless(Sequence[float]):
    """A sequence that goes on as long as somebody reads it."""

    def __len__(self) -> int:
        return 2**62

    def __getitem__(self, index: Any) -> Any:
        return 0.0


class _Unequal(float):
    """A number that equals nothing, and is neither smaller nor larger."""

    def __eq__(self, other: object) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = float.__hash__


class _Colour(enum.Enum):
    RED = "red"


def hostile_values() -> dict[str, Any]:
    """Return objects that are wrong for every argument, each in its own way."""
    itself: list[Any] = []
    itself.append(itself)
    mapping: dict[str, Any] = {}
    mapping["a"] = mapping
    return {
        "repr raises": _raising("__repr__", "__str__"),
        "__array__ raises": _raising("__array__"),
        "__array__ raises KeyError": _raising("__array__", error=KeyError),
        "__array__ raises ValueError": _raising("__array__", error=ValueError),
        "__array__ runs out of memory": _raising("__array__", error=MemoryError),
        "__array__ returns text": _answering(__array__="text"),
        "__array__ returns objects": _answering(__array__=np.array([None])),
        "__len__ raises": _raising("__len__", "__getitem__"),
        "__len__ is negative": _answering(__len__=-1, __getitem__=0.0),
        "__len__ is text": _answering(__len__="x", __getitem__=0.0),
        "__len__ is huge": _Endless(),
        "__iter__ raises": _raising("__iter__"),
        "__float__ raises": _raising("__float__", "__index__", "__int__"),
        "__eq__ and __bool__ raise": _raising("__eq__", "__bool__", "__hash__"),
        "__fspath__ raises": _raising("__fspath__"),
        "__fspath__ returns a number": _answering(__fspath__=3),
        "__call__ raises": _raising("__call__"),
        "text that raises": type("Text", (str,), {"__repr__": lambda self: 1 / 0})("x"),
        "a list in itself": itself,
        "a dict in itself": mapping,
        "a number unequal to itself": _Unequal("nan"),
        "an infinite decimal": decimal.Decimal("Infinity"),
        "a huge fraction": fractions.Fraction(10**400),
        "a member of an enum": _Colour.RED,
        "a structured array": np.zeros(3, [("a", float), ("b", int)]),
        "an array of bytes": np.array([b"a", b"b"]),
        "an array of dates": np.array(["2020-01-01"], "datetime64[D]"),
        "an array of complex numbers": np.array([[1j, 0], [0, 1j], [0, 0]]),
        "an array in a scalar": np.array(np.datetime64("NaT")),
        "a masked number": np.ma.masked,
        "a list of masked arrays": [np.ma.masked_array([1.0, 2.0], mask=[True, False])] * 3,
        "a list of itself and numbers": [[1.0, itself], [0.0, 1.0]],
        "a damaged sparse matrix": _damaged_sparse("csc"),
        "a list of damaged sparse matrices": [_damaged_sparse("csc")] * 2,
        "a damaged coo matrix": _damaged_coo(),
        "a sparse array of one dimension": sp.coo_array(np.ones(3)),
        "void bytes": np.void(b"abc"),
        "a pointer": ctypes.c_void_p(1),
        "a released memoryview": _released(),
        "text of surrogates": "\udcff\ud800",
        "text with NUL": "a\0b",
        "text of ten million characters": "x" * 10_000_000,
        "numbers that overflow": [2**63, -(2**63) - 1],
        "an exception": ValueError("x"),
        "NotImplemented": NotImplemented,
        "a coroutine function": _coroutine,
    }


async def _coroutine() -> None:
    """Do nothing, later."""


def _damaged_sparse(kind: str) -> Any:
    matrix = sp.csr_array(np.eye(3)).asformat(kind)
    matrix.indices = np.array([0, 1, 10**8], np.int32)
    return matrix


def _damaged_coo() -> Any:
    matrix = sp.coo_array(np.eye(3))
    matrix.coords = (np.array([0, 1, -(10**8)]), np.array([0, 1, 2]))
    return matrix


def _released() -> memoryview:
    view = memoryview(bytearray(8))
    view.release()
    return view


class _Subclass(np.ndarray):
    """An array of another class."""


def _with_interface(data: np.ndarray) -> Any:
    return type("Interface", (), {"__array_interface__": data.__array_interface__, "kept": data})()


def _unaligned(data: np.ndarray) -> np.ndarray:
    record = np.zeros(data.shape, [("pad", "i1"), ("x", data.dtype)])
    record["x"] = data
    return record["x"]


def _mapped(data: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, data)
        return np.load(file.name, mmap_mode="r")


def containers() -> dict[str, Callable[[np.ndarray], Any]]:
    """Return functions that put the numbers of an array into another container, or another type that holds them."""
    import pandas as pd
    import torch

    def double(data: np.ndarray) -> np.ndarray:
        wide = np.repeat(data, 2, axis=-1)
        return wide[..., ::2]

    return {
        "a list": lambda data: data.tolist(),
        "a tuple of lists": lambda data: tuple(data.tolist()),
        "a list of arrays": list,
        "NumPy's numbers in lists": lambda data: [list(row) if np.ndim(row) else row for row in data],
        "Fortran's order": np.asfortranarray,
        "turned around": lambda data: np.ascontiguousarray(data[::-1])[::-1],
        "every second": double,
        "read-only": lambda data: np.frombuffer(data.tobytes(), data.dtype).reshape(data.shape),
        "other byte order": lambda data: data.astype(data.dtype.newbyteorder()),
        "unaligned": _unaligned,
        "on disk": _mapped,
        "a subclass": lambda data: data.view(_Subclass),
        "a masked array without mask": np.ma.masked_array,
        "np.matrix": lambda data: np.asmatrix(data) if data.ndim == 2 else data.view(_Subclass),
        "single precision": lambda data: data.astype(np.float32) if data.dtype.kind == "f" else data.astype(np.int16),
        "half precision": lambda data: data.astype(np.float16) if data.dtype.kind == "f" else data.astype(np.int8),
        "long": lambda data: data.astype(np.longdouble) if data.dtype.kind == "f" else data.astype(np.uint64),
        "objects": lambda data: data.astype(object),
        "text": lambda data: data.astype(str),
        "complex": lambda data: data.astype(complex),
        "__array__": lambda data: type("Has", (), {"__array__": lambda self, dtype=None, copy=None: data})(),
        "__array_interface__": _with_interface,
        "a memoryview": lambda data: memoryview(np.ascontiguousarray(data)),
        "array.array": lambda data: array.array("d" if data.dtype.kind == "f" else "q", data.ravel().tolist()),
        "pandas": lambda data: pd.DataFrame(data) if data.ndim == 2 else pd.Series(data.ravel()),
        "pandas with its own missing values": lambda data: (
            pd.DataFrame(data).convert_dtypes() if data.ndim == 2 else pd.Series(data.ravel()).convert_dtypes()
        ),
        "a tensor": torch.tensor,
        "a tensor with gradients": lambda data: torch.tensor(data, dtype=torch.float64, requires_grad=True),
        "a generator": iter,
        "a map": lambda data: map(np.asarray, data),
        "a dict of rows": lambda data: dict(enumerate(data.tolist())),
        "negative zeros": lambda data: np.where(data == 0, -0.0, data) if data.dtype.kind == "f" else data,
    }


def sparse_containers() -> dict[str, Callable[[np.ndarray], Any]]:
    """Return functions that make a sparse matrix of a table (S·A, S): every kind, and odd ones."""

    def shuffled(table: np.ndarray) -> Any:
        found = sp.coo_array(table)
        order = np.arange(found.nnz)[::-1]
        return sp.coo_array((found.data[order], (found.row[order], found.col[order])), shape=found.shape)

    def doubled(table: np.ndarray) -> Any:
        found = sp.coo_array(table)
        twice = tuple(np.concatenate([part, part]) for part in (found.row, found.col))
        return sp.coo_array((np.concatenate([found.data, found.data]) / 2, twice), shape=found.shape)

    def with_parts(kind: str, **types: Any) -> Callable[[np.ndarray], Any]:
        def make(table: np.ndarray) -> Any:
            matrix = sp.csr_array(table).asformat(kind)
            for name, change in types.items():
                setattr(matrix, name, change(getattr(matrix, name)))
            return matrix

        return make

    def read_only(part: np.ndarray) -> np.ndarray:
        part.flags.writeable = False
        return part

    def swapped(part: np.ndarray) -> np.ndarray:
        return part.astype(part.dtype.newbyteorder())

    found: dict[str, Callable[[np.ndarray], Any]] = {}
    for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        found[f"{kind}_array"] = lambda table, kind=kind: sp.csr_array(table).asformat(kind)
        found[f"{kind}_matrix"] = lambda table, kind=kind: sp.csr_matrix(table).asformat(kind)
    return found | {
        "entries in another order": shuffled,
        "entries in two halves": doubled,
        "halves, csr": lambda table: _halves(table),
        "zeros stored": lambda table: sp.csr_array(
            (table.ravel(), np.tile(np.arange(3), len(table)), 3 * np.arange(len(table) + 1)), shape=table.shape
        ),
        "wide indices": with_parts("csr", indices=lambda part: part.astype(np.int64)),
        "unsigned indices": with_parts("csr", indices=lambda part: part.astype(np.uint32)),
        "indices of another byte order": with_parts("csr", indices=swapped),
        "pointers of another byte order": with_parts("csr", indptr=swapped),
        "data of another byte order": with_parts("csr", data=swapped),
        "read-only parts": with_parts("csr", data=read_only, indices=read_only, indptr=read_only),
        "csc, indices of another byte order": with_parts("csc", indices=swapped),
        "csc, wide pointers": with_parts("csc", indptr=lambda part: part.astype(np.int64)),
        "single precision": with_parts("csr", data=lambda part: part.astype(np.float32)),
        "half precision": with_parts("csr", data=lambda part: part.astype(np.float16)),
        "long doubles": with_parts("csr", data=lambda part: part.astype(np.longdouble)),
        "whole numbers": with_parts("csr", data=lambda part: part.astype(np.int64)),
        "truth values": with_parts("csr", data=lambda part: part.astype(bool)),
        "complex": with_parts("csr", data=lambda part: part.astype(complex)),
        "objects": with_parts("csr", data=lambda part: part.astype(object)),
        "indices that are floats": with_parts("csr", indices=lambda part: part.astype(float)),
    }


def _halves(table: np.ndarray) -> Any:
    """Return a CSR matrix in which every entry is stored as two halves."""
    whole = sp.csr_array(table)
    return sp.csr_array(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )


REWARDS = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])
NEXT_STATES = np.array([[0, 1], [1, 2], [2, 0]])
TABLE = np.eye(3)[NEXT_STATES.ravel()]
MODEL = al.MDP(REWARDS, NEXT_STATES, 0.9)


def _same_model(mdp: al.MDP) -> bool:
    codes = np.array_equal(mdp.codes, MODEL.codes)
    return codes and np.array_equal(mdp.rewards, MODEL.rewards) and mdp.discount == MODEL.discount


def uses() -> dict[str, tuple[np.ndarray, Callable[[Any], Any], Callable[[Any], bool]]]:
    """Return (numbers, what is done with a container of them, whether the result is that of plain numbers)."""
    prior, policy = np.array([4.0, 8.0, 6.0]), np.array([1, 0, 1])
    plain = al.solve(MODEL)

    def solved(sol: al.Solution) -> bool:
        return bool((sol.values == plain.values).all() and (sol.policy == plain.policy).all())

    evaluated = al.evaluate(MODEL, policy)
    certified = al.certify(MODEL, prior, policy)
    small = al.aggregate(MODEL, np.array([0, 0, 1]))[0]
    return {
        "rewards": (REWARDS, lambda x: al.MDP(x, NEXT_STATES, 0.9), _same_model),
        "next states": (NEXT_STATES, lambda x: al.MDP(REWARDS, x, 0.9), _same_model),
        "probabilities": (TABLE.reshape(3, 2, 3), lambda x: al.MDP(REWARDS, x, 0.9), _same_model),
        "probabilities, (A, S, S)": (
            np.moveaxis(TABLE.reshape(3, 2, 3), 0, 1).copy(),
            lambda x: al.MDP(REWARDS, x, 0.9),
            _same_model,
        ),
        "rewards on successors": (
            np.repeat(REWARDS[:, :, None], 3, axis=2),
            lambda x: al.MDP(x, TABLE.reshape(3, 2, 3), 0.9),
            _same_model,
        ),
        "prior": (prior, lambda x: al.solve(MODEL, al.TLPI(0.81, x)), solved),
        "initial values": (prior, lambda x: al.solve(MODEL, initial_values=x), solved),
        "initial policy": (policy, lambda x: al.solve(MODEL, initial_policy=x), solved),
        "policy to evaluate": (
            policy,
            lambda x: al.evaluate(MODEL, x),
            lambda found: bool((found.values == evaluated.values).all()),
        ),
        "values to certify": (
            prior,
            lambda x: al.certify(MODEL, x, policy),
            lambda found: repr(found) == repr(certified),
        ),
        "groups": (
            np.array([0, 0, 1]),
            lambda x: al.aggregate(MODEL, x)[0],
            lambda found: found.rewards.tobytes() == small.rewards.tobytes(),
        ),
        "discount": (
            np.array([0.5]),
            lambda x: al.MDP(REWARDS, NEXT_STATES, x),
            lambda mdp: mdp.discount == 0.5,
        ),
    }


def rows(scale: Scale) -> list[Row]:
    """Pass equal numbers in every container: the same result, or a refusal; never another one."""
    bad = frozenset({DIFFERENT, FOREIGN, HANG, MEMORY})
    dense = Row("bad input", "usual numbers in odd containers", bad, "the usual result, or a refusal")
    sparse = Row("bad input", "sparse matrices of every kind", bad, "the usual model, or a refusal")
    cases = [
        (dense, f"{use} in {name}", make, numbers, call, same)
        for use, (numbers, call, same) in uses().items()
        for name, make in containers().items()
    ]
    rewards = np.repeat(REWARDS.reshape(-1, 1), 3, axis=1)
    for name, make in sparse_containers().items():
        for use, numbers, call in (
            ("transitions", TABLE, lambda x: al.MDP(REWARDS, x, 0.9)),
            ("rewards", rewards, lambda x: al.MDP(x, TABLE.reshape(3, 2, 3), 0.9)),
        ):
            if (name == "whole numbers" and use == "rewards") or (name == "truth values" and use == "rewards"):
                continue
            cases.append((sparse, f"{use} in {name}", make, numbers, call, _same_model))
    step = 1 if scale.factor >= 0.02 else 9
    for row, name, make, numbers, call, same in cases[::step]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = make(numbers)
            except Exception:  # there is no such container of these numbers
                continue
            row.add(*_named(name, attempt(lambda call=call, value=value: call(value), same)))
    return [dense, sparse]


def _named(name: str, found: tuple[str, str]) -> tuple[str, str]:
    return found[0], f"{name}: {found[1]}"
