"""The planning methods by name: what `--method` accepts, what the demo and the experiments compare.

To add a method, write one file with its rule and its `MethodSpec` (see `adalook.planning.rules.spec`), and list it in
METHODS. From outside of this package, call `register` in a script of yours; or let an installed package declare an
entry point, which the command line finds as well:

    [project.entry-points."adalook.methods"]
    toy = "my_package.toy:SPEC"

The entry point has the method's name, and its module is imported only when that method, or a list of all, is asked for.
"""

from __future__ import annotations

import pickle

from adalook.errors import ArgumentError, shown
from adalook.planning.rules import auto, hpi, mpi, pi, qlpi, tlpi, wlpi
from adalook.planning.rules.spec import MethodSetting, MethodSpec

METHODS = {
    spec.name: spec
    for spec in (auto.SPEC, mpi.VI_SPEC, pi.SPEC, mpi.MPI_SPEC, hpi.SPEC, tlpi.SPEC, qlpi.SPEC, wlpi.SPEC)
}
"""Every method of this package or registered since, by the name that stands in front of the colon."""
DEFAULT_METHOD = auto.SPEC.name
"""What `solve` takes unless told otherwise."""
ENTRY_POINTS = "adalook.methods"
"""The group of entry points in which installed packages declare methods."""


def register(spec: MethodSpec) -> None:
    """Make a method of somebody else known in this process: to `--method`, the demo, experiments and their report."""
    if spec.name in METHODS:
        raise ArgumentError("a method of this name is registered already", got=shown(spec.name))
    try:
        pickle.dumps(spec)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ArgumentError(
            f"method {spec.name!r} cannot be sent to the processes that run experiments",
            expected="parse, label, bound and the class to be defined at the top level of a module",
            got=error,
            remedy="replace lambdas and nested functions by functions of a module",
        ) from None
    METHODS[spec.name] = spec


def load_installed(name: str | None = None) -> None:
    """Register the methods that installed packages declare: all of them, or the one of this name."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in METHODS or name not in (None, entry.name):
            continue
        try:
            spec = entry.load()
        except Exception as error:  # a package of somebody else: whatever it raises, say whose fault it is
            raise ArgumentError(
                f"the installed method {entry.name!r} cannot be loaded",
                got=f"{type(error).__name__}: {error}",
                remedy=f"mend or uninstall the package of {entry.value}",
            ) from error
        if not isinstance(spec, MethodSpec) or spec.name != entry.name:
            raise ArgumentError(
                f"the installed method {entry.name!r} is wrong", expected=f"its MethodSpec at {entry.value}", got=spec
            )
        if spec.name not in METHODS:  # its module may have registered it
            register(spec)


def find_method(text: str) -> MethodSetting:
    """Return the method that a text such as "hpi:3" names.

    >>> import adalook as al
    >>> find_method("tlpi:g^3").make(al.zoo.maze()).name
    'TLPI(0.9412)'
    """
    name, colon, setting = text.partition(":")
    if name.lower() not in METHODS:
        load_installed(name.lower())
    spec = METHODS.get(name.lower())
    if spec is None or not any(bool(colon) == (":" in example) for example in spec.examples):
        load_installed()
        known = [example for each in METHODS.values() for example in each.examples]
        raise ArgumentError(
            "there is no such method", expected=f"{', '.join(known[:-1])} or {known[-1]}", got=shown(text)
        )
    return MethodSetting(spec, setting)


def compared_methods(*, beyond_paper: bool = False) -> list[str]:
    """Return the settings that comparisons run: all of them, or those of methods that are not the paper's.

    >>> compared_methods(beyond_paper=True)
    ['wlpi']
    """
    load_installed()
    return [text for spec in METHODS.values() if not (beyond_paper and spec.group.in_paper) for text in spec.compared]
