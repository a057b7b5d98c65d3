"""`make_simulator`: from an id, a model or an environment to a simulator."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from adalook._validation import boolean
from adalook.errors import ArgumentError, shown
from adalook.mdp.sources import literal, named_object, parse_arguments, parse_source, source_name, zoo_model
from adalook.simulators.arguments import check_attributes
from adalook.simulators.base import Simulator


class Family(NamedTuple):
    """A family of environments whose ids share a prefix; "module:name" is imported when it is needed."""

    entry_point: str | Callable[..., Simulator]
    """Makes a simulator from an id and options."""
    list_ids: str | Callable[[], Iterable[str]]
    """Returns the ids, which are suggested when a name is unknown."""


ENTRY_POINTS = "adalook.simulators"
"""The group of entry points by which installed packages add families: prefix = "module:function"."""

FAMILIES: dict[str, Family] = {
    "MinAtar/": Family("adalook.simulators.minatar:MinAtarSimulator", "adalook.simulators.minatar:minatar_ids"),
    "ALE/": Family("adalook.simulators.ale.simulator:AtariSimulator", "adalook.simulators.ale.emulator:atari_ids"),
}
"""The families by prefix; `register_simulator` makes another one known. All other ids are Gymnasium's."""


def register_simulator(
    prefix: str,
    factory: str | Callable[..., Simulator],
    ids: str | Callable[[], Iterable[str]] | Iterable[str] = (),
    *,
    replace: bool = False,
) -> None:
    """Make a family of simulators known by the prefix of its ids, everywhere that takes the name of an environment.

    Args:
        prefix: what the ids begin with, up to and including a slash, such as "MyGames/".
        factory: called with an id and options; or "module:name" of it, which is imported when it is needed.
        ids: those that there are, to suggest when a name is unknown; or a function that returns them.
        replace: whether the family may be known already.

    An installed package can do the same without a call, by an entry point of the group "adalook.simulators" whose name
    is the prefix without its slash.

    >>> import adalook as al
    >>> al.register_simulator("Corridor/", lambda name: make_simulator(al.zoo.chain(n=5)), replace=True)
    >>> make_simulator("Corridor/Short").num_actions
    2
    """
    if not isinstance(prefix, str) or not prefix.endswith("/") or len(prefix) < 2:
        raise ArgumentError(
            "the prefix is wrong", expected='text that ends with a slash, such as "MyGames/"', got=prefix
        )
    if not callable(factory) and not (isinstance(factory, str) and ":" in factory):
        raise ArgumentError(
            "the factory is wrong", expected='a function of an id, or "module:name"', got=shown(factory)
        )
    if prefix in FAMILIES and not replace:
        raise ArgumentError(
            f"there are simulators called {prefix}… already", remedy="choose another prefix, or replace=True"
        )
    if not callable(ids) and not isinstance(ids, Iterable):
        raise ArgumentError("the ids are wrong", expected="names, or a function that returns them", got=shown(ids))
    known = ids if callable(ids) or isinstance(ids, str) else tuple(ids)
    FAMILIES[prefix] = Family(factory, known if callable(known) or isinstance(known, str) else lambda: known)


def _family(name: str) -> Family | None:
    """Return the family that an id belongs to, one of an installed package included."""
    for prefix, family in FAMILIES.items():
        if name.startswith(prefix):
            return family
    head, slash, _ = name.partition("/")
    if slash:
        for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=head):
            register_simulator(f"{head}/", entry.value)
            return FAMILIES[f"{head}/"]
    return None


def make_simulator(env: Any, **options: Any) -> Simulator:
    """Return a simulator of `env`.

    Args:
        env: "ALE/Tutankham-v5" and the like, "MinAtar/Breakout-v1" and the like, an `al.MDP`, a Gymnasium environment
            that can be copied, a function that makes one of these, the name of one (`mdp.sources` lists all
            kinds: "zoo:maze?size=10", "FrozenLake-v1?map_name=8x8", "mygame:Env", "model.npz"), or a simulator, which
            is returned as it is.
        options: for the simulator's class, such as life_loss_ends=True for Atari or sticky=0.1 for MinAtar. With
            replay=True a Gymnasium environment that cannot be copied goes back by playing its episode again.

    >>> import adalook as al
    >>> make_simulator(al.zoo.chain(n=5), start=0).num_actions
    2
    """
    if isinstance(env, Simulator):
        if options:
            raise ArgumentError("a simulator that is made already takes no options", got=", ".join(options))
        check_attributes(env)
        return env
    env, replay = _without_replay(env)
    if boolean.validate("replay", options.pop("replay", replay)):
        return _replayed(env, options)
    if isinstance(env, str):
        env, given = _with_arguments(env) if _family(env) else _named(env)
        options = given | options
        if isinstance(env, Simulator):
            return make_simulator(env, **options)
    elif _is_factory(env):
        return make_simulator(_made_by(env), **options)
    factory = _factory_for_id(env) if isinstance(env, str) else _factory_for_object(env)
    try:
        inspect.signature(factory).bind(env, **options)
    except TypeError as error:
        raise ArgumentError(
            f"{getattr(factory, '__name__', factory)} does not take these options",
            expected=", ".join(list(inspect.signature(factory).parameters)[1:]) or "none",
            got=", ".join(options),
        ) from error
    except ValueError:
        pass  # a builtin that does not say what it takes
    made = factory(env, **options)
    if not isinstance(made, Simulator):
        raise ArgumentError(f"what makes {env} returned no simulator", expected="an al.Simulator", got=shown(made))
    return made


def live_simulator(env: Any) -> Simulator:
    """Return a simulator of a Gymnasium environment that can be played but not saved: for agents without lookahead."""
    from adalook.simulators.gym.live import LiveGymSimulator

    what, options = _made_anew(env)
    return LiveGymSimulator(what, **options)


def _replayed(env: Any, options: dict[str, Any]) -> Simulator:
    """Return a simulator that goes back by playing episodes again."""
    from adalook.simulators.gym.replayed import ReplayedGymSimulator

    if isinstance(env, str) and (_family(env) or parse_source(env)[0] in ("file", "zoo")):
        raise ArgumentError(f"{env} is not replayed", expected="a Gymnasium environment", remedy="leave replay out")
    what, given = _made_anew(env)
    return ReplayedGymSimulator(what, **given | options)


def _without_replay(env: Any) -> tuple[Any, Any]:
    """Return a name without its argument `replay`, and what that says; anything else as it is, and False."""
    if not isinstance(env, str) or "replay=" not in env:
        return env, False
    name, _, query = env.partition("?")
    arguments = parse_arguments(env, query)
    replay = literal(arguments.pop("replay", "false"))
    return (f"{name}?{urlencode(arguments)}" if arguments else name), replay


def _made_anew(env: Any) -> tuple[Any, dict[str, Any]]:
    """Return what makes a Gymnasium environment as often as one likes: its id, its spec or a function; and options."""
    if not isinstance(env, str):
        return env, {}
    kind, name, arguments = parse_source(env)
    if kind == "object" and name not in _gymnasium_ids():
        return (lambda: named_object(name, arguments)), {}
    return name, {key: literal(value) for key, value in arguments.items()}


def _is_factory(env: Any) -> bool:
    """Return whether this is a function that makes environments; a class is more likely a mistake."""
    return callable(env) and not isinstance(env, type) and not hasattr(env, "step")


def _made_by(factory: Any) -> Any:
    """Return what a function makes; errors of its own are its user's to see, but it must need no arguments."""
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        name = getattr(factory, "__name__", factory)
        raise ArgumentError(
            "a function that makes environments is called without arguments",
            got=f"{name}: {error}",
            remedy=f"pass lambda: {name}(…)",
        ) from None
    except ValueError:
        pass  # a builtin that does not say what it takes
    return factory()


def _with_arguments(text: str) -> tuple[str, dict[str, Any]]:
    """Return an id without the arguments after its question mark, and these."""
    name, _, query = text.partition("?")
    return name, {key: literal(value) for key, value in parse_arguments(text, query).items()}


def _named(text: str) -> tuple[Any, dict[str, Any]]:
    """Return the model or object that a name stands for, or Gymnasium's id and its arguments."""
    from adalook.mdp.model import MDP

    kind, name, arguments = parse_source(text)
    if kind == "file":
        return MDP.load(text), {}
    if kind == "zoo":
        return zoo_model(name, arguments), {}
    if kind == "object" and name not in _gymnasium_ids():
        return named_object(name, arguments), {}
    return name, {key: literal(value) for key, value in arguments.items()}


def named_problem(text: str) -> Any:
    """Return the model, environment or simulator that a name stands for, made once, to be asked about its spaces."""
    text, _ = _without_replay(text)
    if (family := _family(text)) is not None:
        name, options = _with_arguments(text)
        return _load(family.entry_point)(name, **options)
    found, options = _named(text)
    if not isinstance(found, str):
        return found
    from adalook.simulators.gym.spaces import two_instances

    made, spare = two_instances(found, options)
    spare.close()
    return made


def problem_name(env: Any) -> str | None:
    """Return the name by which a problem can be made again; None if it has none.

    >>> import gymnasium
    >>> problem_name(gymnasium.make("FrozenLake-v1", map_name="8x8"))
    'FrozenLake-v1?map_name=8x8'
    """
    if isinstance(env, str):
        return env
    if _is_factory(env):
        module, name = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "")
        return f"{module}:{name}" if module != "__main__" and name.isidentifier() else None
    spec = getattr(env, "spec", None)
    if spec is None or len(getattr(spec, "additional_wrappers", ())):
        return None
    arguments = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    return source_name(spec.id, arguments)


def names_code(name: str) -> bool:
    """Return whether making the problem of this name imports a module that the name itself chooses."""
    kind, rest, _ = parse_source(name)
    return kind == "object" or (kind == "id" and ":" in rest)


def _gymnasium_ids() -> list[str]:
    from adalook.simulators.gym.spaces import known_ids

    return known_ids()


def _factory_for_object(env: Any) -> Callable[..., Simulator]:
    """Return what makes a simulator of a model or of an environment."""
    from adalook.mdp.model import MDP

    if isinstance(env, MDP):
        from adalook.simulators.tabular import TabularSimulator

        return TabularSimulator
    if not isinstance(env, type) and callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None)):
        from adalook.simulators.gym.simulator import GymSimulator

        return GymSimulator
    raise ArgumentError(
        "there is no simulator for this",
        expected="an id, an al.MDP or a Gymnasium environment",
        got=type(env).__name__,
        remedy=f"{env.__name__} is a class: make one, {env.__name__}()" if isinstance(env, type) else "",
    )


def _factory_for_id(name: str) -> Callable[..., Simulator]:
    """Return what makes a simulator of the environment with this id."""
    family = _family(name)
    if family is not None:
        factory: Callable[..., Simulator] = _load(family.entry_point)
        return factory
    from adalook.simulators.gym.simulator import GymSimulator
    from adalook.simulators.gym.spaces import known_ids

    known = known_ids()
    if name not in known and ":" not in name:  # "module:id" registers itself when it is made
        near = suggested_names(name)
        expected = f"{near}?" if near else "an id such as ALE/Breakout-v5 or CartPole-v1"
        raise ArgumentError(f"there is no environment called '{name}'", expected=expected)
    return GymSimulator


def _load(entry_point: Any) -> Any:
    """Return what "module:name" names; anything else as it is."""
    if not isinstance(entry_point, str):
        return entry_point
    module, _, name = entry_point.partition(":")
    return getattr(importlib.import_module(module), name)


def suggested_names(name: str) -> str:
    """Return the names of problems that `name` may have been meant for; empty if none is near."""
    from adalook.mdp import zoo

    if models := difflib.get_close_matches(name.lower(), zoo.__all__, n=1, cutoff=0.75):
        return f"zoo:{models[0]}"
    ids = sorted(_gymnasium_ids(), key=lambda known: "/" in known)
    for family in FAMILIES.values():
        ids.extend(_load(family.list_ids)())
    by_title: dict[str, list[str]] = {}
    for known in ids:
        by_title.setdefault(_title(known), []).append(known)
    near = difflib.get_close_matches(_title(name), by_title, n=1)
    return ", ".join(by_title[near[0]][:3]) if near else ""


def _title(name: str) -> str:
    """Return an id without the family before it and the version after it: ALE/Pong-v5 is pong."""
    return name.rpartition("/")[2].partition("-")[0].lower()
