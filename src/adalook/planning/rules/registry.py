"""The planning methods by name: what `--method` accepts, what the demo and the experiments compare.

To add a method, write one file with its rule and its `MethodSpec` (see `adalook.planning.rules.spec`), and list it in
METHODS; from outside of this package, call `register`.
"""

from __future__ import annotations

from adalook.errors import ArgumentError
from adalook.planning.rules import auto, hpi, mpi, pi, qlpi, tlpi, wlpi
from adalook.planning.rules.spec import MethodSetting, MethodSpec

METHODS = {
    spec.name: spec
    for spec in (auto.SPEC, mpi.VI_SPEC, pi.SPEC, mpi.MPI_SPEC, hpi.SPEC, tlpi.SPEC, qlpi.SPEC, wlpi.SPEC)
}
"""Every method, by the name that stands in front of the colon."""


def register(spec: MethodSpec) -> None:
    """Make a method of somebody else known to the command line, the demo, the experiments and the report."""
    if spec.name in METHODS:
        raise ArgumentError("a method of this name is registered already", got=repr(spec.name))
    METHODS[spec.name] = spec


def find_method(text: str) -> MethodSetting:
    """Return the method that a text such as "hpi:3" names.

    >>> import adalook as al
    >>> find_method("tlpi:g^3").make(al.zoo.maze()).name
    'TLPI(0.9412)'
    """
    name, colon, setting = text.partition(":")
    spec = METHODS.get(name.lower())
    if spec is None or not any(bool(colon) == (":" in example) for example in spec.examples):
        known = [example for each in METHODS.values() for example in each.examples]
        raise ArgumentError(
            "there is no such method", expected=f"{', '.join(known[:-1])} or {known[-1]}", got=repr(text)
        )
    return MethodSetting(spec, setting)


def compared_methods(*, beyond_paper: bool = False) -> list[str]:
    """Return the settings that comparisons run: all of them, or those of methods that are not the paper's.

    >>> compared_methods(beyond_paper=True)
    ['wlpi']
    """
    return [text for spec in METHODS.values() if not (beyond_paper and spec.group.in_paper) for text in spec.compared]
