"""Bytes that no `pack` made are refused with a clear error, and nothing of them is ever run."""

from __future__ import annotations

import hashlib
import random
import struct
from typing import Any

import numpy as np
import pytest

from adalook.errors import AdalookError, FileError
from adalook.simulators.ale import simulator as ale
from adalook.simulators.ale.simulator import AtariSimulator
from adalook.simulators.gym.simulator import GymSimulator
from adalook.simulators.minatar import MinAtarSimulator
from adalook.storage.serializer import add_digest, deserialize, serialize
from tests.simulators.cases import make


class Forger:
    """Changes packed states of an environment and seals them anew."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sim = GymSimulator(name)
        self.sim.reset(seed=0)
        self.content = deserialize(self.sim.pack(self.sim.save())[16:])

    def packed(self, **parts: Any) -> bytes:
        (layers, others, generators), observation, elapsed, randomness = self.content
        layers = (*layers[:-1], {**layers[-1], **parts.pop("attributes", {})})
        for name in parts.pop("missing", ()):
            del layers[-1][name]
        generators = parts.get("generators", generators)
        elapsed, randomness = parts.get("elapsed", elapsed), parts.get("randomness", randomness)
        observation = parts.get("observation", observation)
        return add_digest(serialize(((layers, others, generators), observation, elapsed, randomness)), self.name)

    @property
    def generators(self) -> dict[Any, Any]:
        return dict(self.content[0][2])


@pytest.fixture(scope="module")
def lake() -> Forger:
    return Forger("FrozenLake-v1")


@pytest.mark.parametrize("kind", ["seed", "RandomState", "test", "__import__", "BitGenerator", 7])
def test_generators_are_never_looked_up_by_name(lake: Forger, kind: Any) -> None:
    np.random.seed(5)  # noqa: NPY002 - which np.random.seed(0) would undo
    before = np.random.mtrand._rand.get_state()[1].tobytes()  # type: ignore[index, union-attr]
    forged = {place: {**state, "bit_generator": kind} for place, state in lake.generators.items()}
    with pytest.raises(FileError, match=r"damaged.*no generator is called"):
        lake.sim.unpack(lake.packed(generators=forged))
    assert np.random.mtrand._rand.get_state()[1].tobytes() == before  # type: ignore[index, union-attr]


TWISTER = np.random.MT19937(0).state
PHILOX = np.random.Philox(0).state


@pytest.mark.parametrize(
    "state",
    [
        {**TWISTER, "state": {**TWISTER["state"], "pos": 10**6}},  # NumPy would read there
        {**TWISTER, "state": {**TWISTER["state"], "key": TWISTER["state"]["key"][:5]}},
        {**PHILOX, "buffer_pos": -1000},
        {**np.random.PCG64(0).state, "extra": 1},
        {**np.random.PCG64(0).state, "state": 1},
        {"holder": "random.Random", "state": (3, tuple([0] * 624 + [-5]), None)},
        {"holder": "random.Random", "state": (3, (1, 2), None)},
        {"holder": "RandomState", **np.random.PCG64(0).state},
        {},
        None,
        (0, "nowhere"),
    ],
)
def test_impossible_generators_are_refused(lake: Forger, state: Any) -> None:
    forged = dict.fromkeys(lake.generators, state)
    with pytest.raises(FileError, match="damaged"):
        lake.sim.unpack(lake.packed(generators=forged))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"attributes": {"step": 5}}, "has no attribute 'step'"),
        ({"attributes": {"np_random": 5}}, "has no attribute 'np_random'"),
        ({"attributes": {"__class__": 5}}, "has no attribute '__class__'"),
        ({"attributes": {"action_space": 5}}, "attribute 'action_space' never changes"),
        ({"attributes": {"s": "x"}}, "attribute 's' is a str"),
        ({"attributes": {"s": np.zeros(3)}}, "attribute 's' is an array of 1 dimensions"),
        ({"missing": ["s"]}, "no attribute 's'"),
        ({"elapsed": -1}, "a number of steps"),
        ({"elapsed": "1"}, "a number of steps"),
        ({"randomness": (1, -1)}, "two whole numbers"),
        ({"randomness": ("a", "b")}, "two whole numbers"),
        ({"observation": np.zeros(1, np.float32)}, "another kind"),
        ({"observation": 0}, "another kind"),
    ],
)
def test_only_what_the_environment_has_is_taken(lake: Forger, parts: dict[str, Any], reason: str) -> None:
    with pytest.raises(FileError, match=f"damaged.*{reason}"):
        lake.sim.unpack(lake.packed(**parts))


def mangled(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(changed))
        match rng.randrange(3):
            case 0:
                changed[place] ^= rng.randrange(1, 256)
            case 1:
                del changed[place : place + rng.randrange(1, 9)]
            case _:
                changed[place:place] = rng.randbytes(rng.randrange(1, 5))
    return bytes(changed)


@pytest.mark.parametrize("name", ["FrozenLake", "Blackjack", "CartPole", "Breakout", "Seaquest", "Freeway"])
def test_damage_never_goes_unnoticed(name: str) -> None:
    sim, rng = make(name), random.Random(1)
    sim.reset(seed=0)
    sim.step(0)
    for state in (sim.save(), sim.reseed(sim.save(), 3)):
        data = sim.pack(state)
        for _ in range(300):
            if (bad := mangled(data, rng)) != data:
                with pytest.raises(FileError, match="damaged"):
                    sim.unpack(bad)


@pytest.mark.parametrize("name", ["FrozenLake", "Breakout", "chain", "Pong"])
@pytest.mark.parametrize("data", [b"", b"\0", b"t\xff\xff\xff\xff", b"l\1\0\0\0" * 60, None, "x", 7])
def test_what_is_no_state_at_all_is_refused(name: str, data: Any) -> None:
    with pytest.raises(FileError, match="damaged"):
        make(name).unpack(data)


@pytest.mark.parametrize("game", ["Breakout", "Seaquest", "Freeway", "Asterix", "SpaceInvaders"])
def test_forged_minatar_states_are_refused_or_can_be_played(game: str) -> None:
    """Under a seal of their own, so that what is in them is looked at."""
    sim, rng = MinAtarSimulator(game), random.Random(2)
    sim.reset(seed=0)
    for _ in range(30):
        sim.step(0)
    refused = 0
    for state in (sim.save(), sim.reseed(sim.save(), 3)):
        content = sim.pack(state)[16:]
        for _ in range(300):
            try:
                forged = sim.unpack(add_digest(mangled(content[:400], rng) + content[400:], sim._owner))
            except FileError:
                refused += 1
                continue
            sim.expand([forged], [0])
            sim.restore(forged)
            sim.step(0)
    assert refused > 100


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [({"pos": 1000}, "out of bounds"), ({"pos": "x"}, "numbers expected"), ({"pos": None}, "numbers expected")],
)
def test_minatar_numbers_out_of_bounds_are_refused(numbers: dict[str, Any], reason: str) -> None:
    sim = MinAtarSimulator("Breakout")
    state = sim.save()
    names = sim._fields.numbers
    forged = state._replace(numbers=tuple(numbers.get(n, v) for n, v in zip(names, state.numbers, strict=True)))
    with pytest.raises(FileError, match=reason):
        sim.unpack(sim.pack(forged))


def test_a_position_outside_the_generator_is_refused() -> None:
    sim = MinAtarSimulator("Breakout")
    words, _, *rest = sim.save().randomness  # type: ignore[misc]
    with pytest.raises(FileError, match="624 words and a position in them"):
        sim.unpack(sim.pack(sim.save()._replace(randomness=(words, 10**6, *rest))))  # type: ignore[arg-type]


def test_forged_machines_are_refused_in_our_own_words(capfd: pytest.CaptureFixture[str]) -> None:
    sim = AtariSimulator("ALE/Breakout-v5")
    sim.reset(seed=0)
    before = sim.pack(sim.save())
    content = before[20:]
    head = ale._HEADER.size + 4 * 84 * 84
    for end in (head + 1, head + 50, head + 3000, len(content) - 1, len(content) - 200):
        forged = content[:end]
        digest = hashlib.sha256(b"breakout" + forged).digest()[:16]
        with pytest.raises(FileError, match="not a packed Atari state"):
            sim.unpack(b"ATR1" + digest + forged)
    assert sim.pack(sim.save()) == before
    assert sim.expand([sim.unpack(before)], [0]).rewards.tolist() == [0.0]
    capfd.readouterr()  # ALE's own grumbling


def test_randomness_of_a_tabular_state_is_two_words() -> None:
    sim = make("garnet")
    with pytest.raises(AdalookError, match="damaged"):
        sim.unpack(struct.pack("<qQQ", -1, 0, 0))
