"""UMB: our files mean the same to umbi, umbi's files mean the same to us, and other kinds of models are refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import adalook as al
from adalook.errors import FileError, MissingExtraError
from adalook.mdp.files.umb import load_umb
from tests.mdp.files.helpers import assert_same_model, masked_model, models

ats = pytest.importorskip("umbi.ats")
datatypes = pytest.importorskip("umbi.datatypes")


def system(moves: dict[int, list[list[tuple[Any, int]]]], rewards: dict[str, dict[str, list]] | None = None) -> Any:
    """umbi's transition system: for each state its choices, each a list of (probability, target)."""
    result = ats.ExplicitAts()
    for _ in moves:
        result.add_state()
    result.num_players = 1
    result.set_initial_states([0])
    for state, choices in moves.items():
        for branches in choices:
            choice = result.add_state_choice(state)
            for probability, target in branches:
                choice.add_branch(target, probability)
    for name, values in ({"r": {"choice": []}} if rewards is None else rewards).items():
        annotation = result.add_reward_annotation(name)
        for entity, numbers in values.items():
            getattr(annotation, f"set_{entity}_values")(numbers or [1.0] * result.num_choices)
    return result


def two_states() -> Any:
    """State 0 has two choices, state 1 has one; all choices pay 1."""
    return system({0: [[(0.5, 0), (0.5, 1)], [(1.0, 1)]], 1: [[(1.0, 0)]]})


def label(result: Any, actions: list[int], count: int) -> Any:
    result.num_choice_actions = count
    for choice, action in zip(result.choices, actions, strict=True):
        choice.action = action
    return result


def written(result: Any, path: Path) -> Path:
    ats.write(result, path)
    return path


# ---- round trips, and umbi as a witness


@pytest.mark.parametrize(
    "mdp",
    [
        al.zoo.chain(n=5),
        al.zoo.maze(size=12, seed=3),
        al.zoo.garnet(70, 3, 4),
        al.MDP([[0.0]], [[0]], 0.9),
        masked_model(),
        al.MDP(np.ones((2, 3)), np.zeros((2, 3), int), 0.9, mask=[[True, False, True], [True, False, False]]),
    ],
    ids=["chain", "maze", "garnet", "smallest", "masked", "action-nobody-offers"],
)
def test_round_trip(mdp: al.MDP, tmp_path: Path) -> None:
    mdp.save(tmp_path / "m.umb")
    loaded = al.MDP.load(tmp_path / "m.umb", discount=mdp.discount)
    assert_same_model(loaded, mdp)
    assert loaded.discount == mdp.discount


@given(mdp=models())
@settings(deadline=None, max_examples=40)
def test_any_model_comes_back(mdp: al.MDP, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "m.umb"
    mdp.save(path)
    assert_same_model(al.MDP.load(path, discount=mdp.discount), mdp)


def test_umbi_reads_what_we_write(tmp_path: Path) -> None:
    mdp = masked_model()
    mdp.save(tmp_path / "m.umb")
    read = ats.read(tmp_path / "m.umb", strict=True)
    assert (read.num_states, read.num_players, read.initial_states) == (10, 1, [0])
    assert read.choice_action_to_name == ["jump", "zurück", "→"]
    rewards = read.get_reward_annotation("reward").choice_values
    for choice in read.choices:
        s, a = choice.state, choice.action
        assert rewards[choice.index] == mdp.rewards[s, a]
        successors, probabilities = mdp.transition_row(s, a)
        assert [b.target for b in choice.branches] == successors.tolist()
        assert [b.prob for b in choice.branches] == probabilities.tolist()
    assert read.num_choices == mdp.num_pairs


def test_initial_state_is_the_start_of_the_layout(tmp_path: Path) -> None:
    layout = al.Layout(np.array([[0, 0], [0, 1]]), np.zeros((1, 2), bool), start=(0, 1))
    al.MDP([[0.0], [1.0]], [[0], [1]], 0.9, layout=layout).save(tmp_path / "m.umb")
    assert ats.read(tmp_path / "m.umb").initial_states == [1]


def test_same_model_makes_same_file(tmp_path: Path) -> None:
    for name in ("a.umb", "b.umb"):
        masked_model().save(tmp_path / name)
    assert (tmp_path / "a.umb").read_bytes() == (tmp_path / "b.umb").read_bytes()


# ---- what the parts of a file mean


def test_choices_without_labels_are_actions_by_position(tmp_path: Path) -> None:
    mdp = al.MDP.load(written(two_states(), tmp_path / "m.umb"), discount=0.9)
    assert mdp.offered.tolist() == [[True, True], [True, False]]
    assert mdp.transition_row(0, 0)[1].tolist() == [0.5, 0.5]


def test_labels_decide_which_action_a_choice_is(tmp_path: Path) -> None:
    path = written(label(two_states(), [2, 0, 2], 3), tmp_path / "m.umb")
    mdp = al.MDP.load(path, discount=0.9)
    assert mdp.offered.tolist() == [[True, False, True], [False, False, True]]
    assert mdp.transition_row(0, 2)[1].tolist() == [0.5, 0.5]
    assert load_umb(path, 0.9, by_label=False).offered.tolist() == [[True, True], [True, False]]


def test_repeated_labels_are_told_apart_by_position(tmp_path: Path) -> None:
    path = written(label(two_states(), [0, 0, 1], 2), tmp_path / "m.umb")
    mdp = al.MDP.load(path, discount=0.9)
    assert mdp.offered.tolist() == [[True, True, False], [False, False, True]]


def test_rewards_of_states_choices_and_branches_add_up(tmp_path: Path) -> None:
    rewards = {"r": {"state": [100.0, 200.0], "choice": [10.0, 20.0, 30.0], "branch": [1.0, 3.0, 5.0, 7.0]}}
    moves = {0: [[(0.5, 0), (0.5, 1)], [(1.0, 1)]], 1: [[(1.0, 0)]]}
    mdp = al.MDP.load(written(system(moves, rewards), tmp_path / "m.umb"), discount=0.9)
    assert mdp.rewards.tolist() == [[112.0, 125.0], [237.0, 0.0]]


def test_deadlock_stays_and_pays_nothing(tmp_path: Path) -> None:
    rewards = {"r": {"state": [5.0, 5.0]}}
    mdp = al.MDP.load(written(system({0: [[(1.0, 1)]], 1: []}, rewards), tmp_path / "m.umb"), discount=0.9)
    assert mdp.rewards.tolist() == [[5.0], [0.0]]
    assert mdp.transition_row(1, 0)[0].tolist() == [1]


def test_markov_chain_has_one_action(tmp_path: Path) -> None:
    chain = system({0: [[(0.5, 0), (0.5, 1)]], 1: [[(1.0, 1)]]})
    chain.num_players = 0
    assert al.MDP.load(written(chain, tmp_path / "m.umb"), discount=0.9).num_actions == 1


def test_rationals_become_the_nearest_floats(tmp_path: Path) -> None:
    third = Fraction(1, 3)
    moves = {0: [[(third, 0), (third, 1), (third, 2)]], 1: [[(Fraction(1), 1)]], 2: [[(Fraction(1), 2)]]}
    rewards = {"r": {"choice": [Fraction(1, 10), Fraction(-7, 3), Fraction(2)]}}
    mdp = al.MDP.load(written(system(moves, rewards), tmp_path / "m.umb"), discount=0.9)
    assert mdp.transition_row(0, 0)[1].tolist() == [1 / 3] * 3
    assert mdp.rewards.ravel().tolist() == [0.1, -7 / 3, 2.0]


def test_branches_to_the_same_state_are_one(tmp_path: Path) -> None:
    mdp = al.MDP.load(written(system({0: [[(0.25, 0), (0.75, 0)]]}), tmp_path / "m.umb"), discount=0.9)
    assert mdp.deterministic


def test_several_rewards_need_a_choice(tmp_path: Path) -> None:
    result = system({0: [[(1.0, 0)]]}, {"cost": {"choice": [2.0]}, "time": {"choice": [3.0]}})
    path = written(result, tmp_path / "m.umb")
    with pytest.raises(FileError, match=r"several rewards: got \['cost', 'time'\]"):
        al.MDP.load(path, discount=0.9)
    assert load_umb(path, 0.9, rewards="cost").rewards.tolist() == [[2.0]]
    assert load_umb(path, 0.9, rewards="time").rewards.tolist() == [[3.0]]
    with pytest.raises(FileError, match=r"one of \['cost', 'time'\], got 'speed'"):
        load_umb(path, 0.9, rewards="speed")


# ---- what is refused


def continuous(result: Any) -> None:
    result.time = ats.TimeType.STOCHASTIC
    result.state_to_exit_rate = [1.0, 2.0]


def game(result: Any) -> None:
    result.num_players, result.state_to_player, result.player_to_name = 2, [0, 1], ["a", "b"]


def observed(result: Any) -> None:
    result.add_observation_annotation(1).set_state_values([0, 0])


def chain_with_choices(result: Any) -> None:
    result.num_players = 0


def interval(result: Any) -> None:
    next(iter(result.branches)).prob = datatypes.Interval(0.25, 0.5)


def sum_too_small(result: Any) -> None:
    next(iter(result.branches)).prob = 0.25


def no_rewards(result: Any) -> None:
    result.annotations.clear()


def infinite_reward(result: Any) -> None:
    result.get_reward_annotation("r").set_choice_values([1.0, float("inf"), 1.0])


def sum_that_overflows(result: Any) -> None:
    result.get_reward_annotation("r").set_choice_values([1e308, 0.0, 0.0])
    result.get_reward_annotation("r").set_state_values([1e308, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (continuous, "continuous time"),
        (game, "2 players"),
        (observed, "partially observable"),
        (chain_with_choices, "Markov chain has choices"),
        (interval, "double-interval"),
        (sum_too_small, "state 0, action 0 do not sum to one"),
        (no_rewards, "no rewards"),
        (infinite_reward, r"entry 1 of annotations/rewards/r/choices/values.bin is not finite"),
        (sum_that_overflows, "state 0, action 0 is not finite"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_other_models_are_refused(change: Callable[[Any], None], message: str, tmp_path: Path) -> None:
    result = two_states()
    change(result)
    with pytest.raises(FileError, match=message) as caught:
        al.MDP.load(written(result, tmp_path / "m.umb"), discount=0.9)
    assert "m.umb" in str(caught.value)


def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked_model().save(tmp_path / "m.umb")
    for name in [name for name in sys.modules if name.split(".")[0] == "umbi"]:
        monkeypatch.setitem(sys.modules, name, None)
    for action in (lambda: al.MDP.load(tmp_path / "m.umb", discount=0.9), lambda: masked_model().save("m.umb")):
        with pytest.raises(MissingExtraError, match=r"pip install 'adalook\[umb\]'"):
            action()


def test_names_of_actions_come_back(tmp_path: Path) -> None:
    named = al.MDP([[0.0, 1.0], [2.0, 0.0]], [[0, 1], [1, 0]], 0.9, action_names=["stay", "zurück"])
    named.save(tmp_path / "m.umb")
    assert al.MDP.load(tmp_path / "m.umb", discount=0.9).action_names == ("stay", "zurück")
    al.MDP([[0.0, 1.0]], [[0, 0]], 0.9).save(tmp_path / "m.umb")
    assert al.MDP.load(tmp_path / "m.umb", discount=0.9).action_names == ()
