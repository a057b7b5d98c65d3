"""What the attributes of an environment look like, so that bytes from a file cannot give it others."""

from __future__ import annotations

from typing import Any

import numpy as np

from adalook.simulators.attributes import NOT_STATE, Snapshot, layers_of

_NUMBERS = (bool, int, float, complex, np.bool_, np.number)


def _form(value: Any) -> str:
    if isinstance(value, _NUMBERS):
        return "a number"
    if type(value) is np.ndarray:
        return f"an array of {value.ndim} dimensions"
    return f"a {type(value).__name__}"


class Forms:
    """The names and kinds of attributes that an environment was seen with."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._layers = len(list(layers_of(env)))
        self._forms: dict[tuple[int, str], set[str]] = {}
        self._always: set[tuple[int, str]] | None = None

    def learn(self, snapshot: Snapshot) -> None:
        """Take note of a state that the environment came to by itself."""
        attributes = _all(snapshot)
        for place, value in attributes.items():
            self._forms.setdefault(place, set()).add(_form(value))
        self._always = set(attributes) if self._always is None else self._always & set(attributes)

    def check(self, snapshot: Snapshot) -> None:
        """Raise ValueError unless the environment could be in such a state.

        Attributes that appear for the first time are let through, since an environment may make some late, but never
        one that takes the place of a method. So is None, for "not yet".
        """
        if len(snapshot.layers) != self._layers:
            raise ValueError("as many wrappers as the environment has expected")
        attributes = _all(snapshot)
        if missing := (self._always or set()) - set(attributes):
            raise ValueError(f"no attribute {min(missing)[1]!r}")
        layers = list(layers_of(self._env))
        for (depth, name), value in attributes.items():
            seen = self._forms.get((depth, name), set())
            if not seen:
                _check_new_name(layers[depth], name)
            elif value is not None and seen != {"a NoneType"} and _form(value) not in seen:
                raise ValueError(f"attribute {name!r} is {_form(value)}")


def _all(snapshot: Snapshot) -> dict[tuple[int, str], Any]:
    plain = {(depth, name): value for depth, layer in enumerate(snapshot.layers) for name, value in layer.items()}
    generators = dict.fromkeys(snapshot.generators, np.random)  # their states are checked elsewhere
    return {**plain, **snapshot.others, **generators}


def _check_new_name(layer: Any, name: str) -> None:
    inherited = getattr(type(layer), name, None)
    if not name.isidentifier() or name.startswith("__") or callable(inherited) or hasattr(type(inherited), "__get__"):
        raise ValueError(f"the environment has no attribute {name!r}")
    if name in NOT_STATE and name not in ("env", "P"):
        raise ValueError(f"attribute {name!r} never changes")
