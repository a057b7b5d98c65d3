"""`adalook search`: searches along a trajectory, printed, saved and drawn."""

from __future__ import annotations

import json

import gymnasium
import numpy as np
import pytest

import adalook as al
from adalook.cli.main import main
from adalook.cli.search import SearchCommand
from adalook.simulators.make import make_simulator


def garnet():
    return make_simulator(al.zoo.garnet(50, 3, 5, seed=0))


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_numbers_as_json(capsys):
    assert main(["search", "MinAtar/Breakout-v1", "--depth", "2", "--states", "3", "--json"]) == 0
    searches = lines(capsys)
    assert [search["step"] for search in searches] == [0, 10, 20]
    for search in searches:
        assert search["depth"] == len(search["path"]) == 2
        assert search["tree_nodes"] == search["nodes"] + search["saved"] == 12
        assert len(search["action_values"]) == 3


def test_workers_and_seeds(capsys):
    runs = []
    for extra in ([], ["--engine", "processes", "--actors", "2"], ["--seed", "1"]):
        assert main(["search", "MinAtar/Asterix-v1", "--states", "4", "--every", "40", "--json", *extra]) == 0
        plain = [{k: v for k, v in search.items() if "seconds" not in k} for search in lines(capsys)]
        runs.append(plain)
    assert runs[0] == runs[1] != runs[2]


def test_slippery_ice_needs_values_at_the_leaves(tmp_path, capsys):
    """With the optimal values at the leaves one step is enough: T V* = V*."""
    lake = str(tmp_path / "lake")
    assert main(["solve", "FrozenLake-v1", "--out", lake, "--json"]) == 0
    capsys.readouterr()
    assert main(["search", "FrozenLake-v1", "--depth", "1", "--states", "1", "--values", lake, "--json"]) == 0
    (found,) = lines(capsys)
    assert found["value"] == pytest.approx(al.Solution.load(lake).values[0])
    assert main(["search", "FrozenLake-v1", "--depth", "1", "--states", "1", "--json"]) == 0
    assert lines(capsys)[0]["value"] == 0.0
    assert main(["search", "FrozenLake-v1", "--depth", "1", "--states", "1"]) == 0
    assert "say what leaves are worth (--values)" in capsys.readouterr().out


def test_pictures_are_what_the_environment_renders_and_paths_may_end_early(tmp_path):
    assert main(["search", "FrozenLake-v1", "--depth", "6", "--states", "4", "--out", str(tmp_path)]) == 0
    about = json.loads((tmp_path / "search.json").read_text())
    with np.load(tmp_path / "search.npz") as arrays:
        for number, search in enumerate(about["searches"]):
            pictures = arrays[f"pictures_{number}"]
            assert pictures.shape[0] == len(search["path"]) + 1
            assert pictures.std() > 10
    assert (tmp_path / "search.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("env", "values", "words"),
    [
        ("CartPole-v1", "chain", "observes the number of its state"),
        ("zoo:garnet?num_states=50&num_actions=2&branching=2", "chain", "for another model"),
        ("CartPole-v1", "nowhere", "nowhere"),
        ("zoo:chain?n=5", "shorter", "another discount than zoo:chain?n=5: expected 0.9, got 0.8"),
    ],
)
def test_values_of_something_else_are_refused(tmp_path, capsys, env, values, words):
    al.solve(al.zoo.chain(n=5, discount=0.99)).save(tmp_path / "chain")
    al.solve(al.zoo.chain(n=5, discount=0.8)).save(tmp_path / "shorter")
    assert main(["search", env, "--values", str(tmp_path / values)]) == 2
    assert words in capsys.readouterr().err


def test_the_discount_is_that_of_the_model_and_its_values(tmp_path, capsys):
    """T V* = V* holds with the model's discount only, so it must not be the default of games."""
    model = al.zoo.garnet(20, 3, 4, seed=0, discount=0.8)
    model.save(tmp_path / "model.npz")
    solution = al.solve(model)
    solution.save(tmp_path / "values")
    lake = al.solve(al.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1"), discount=0.8))
    lake.save(tmp_path / "lake")
    for env, values, best in (
        (str(tmp_path / "model.npz"), "values", solution.values),
        ("FrozenLake-v1", "lake", lake.values),
    ):
        options = ["--depth", "3", "--states", "1", "--json", "--values", str(tmp_path / values)]
        assert main(["search", env, *options]) == 0
        assert min(abs(best - lines(capsys)[0]["value"])) < 1e-9


def test_an_agent_values_leaves(tmp_path, capsys):
    al.DQN("CartPole-v1", seed=0).save(tmp_path / "agent")
    options = ["--depth", "2", "--states", "1", "--json", "--values", str(tmp_path / "agent")]
    assert main(["search", "CartPole-v1", *options]) == 0
    assert lines(capsys)[0]["value"] != pytest.approx(1.99)  # rewards alone


@pytest.mark.parametrize(
    ("env", "options", "depths"),
    [
        ("zoo:maze?size=10", ["--depth", "4"], {4}),
        ("CartPole-v1", ["--rule", "gap:1e-9", "--depth", "3"], {3}),
        ("MinAtar/Freeway-v1", ["--rule", "quantile:2=0.999", "--states", "8"], {1, 2}),
        ("MinAtar/Freeway-v1", ["--rule", "quantile:2=1,3=1"], {3}),
        ("MinAtar/Freeway-v1", ["--max-nodes", "3"], {1}),
        ("MinAtar/Freeway-v1", ["--width", "1", "--depth", "6"], {6}),
    ],
)
def test_every_kind_of_env_and_rule(capsys, env, options, depths):
    assert main(["search", env, "--states", "2", "--json", *options]) == 0
    assert {search["depth"] for search in lines(capsys)} == depths


@pytest.mark.parametrize("env", ["MinAtar/Asterix-v1", "CartPole-v1"])
def test_table_and_figure(tmp_path, capsys, env):
    assert main(["search", env, "--depth", "2", "--states", "2", "--width", "3", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "nodes/s" in out
    assert "2 searches" in out
    assert (tmp_path / "search.png").read_bytes().startswith(b"\x89PNG")
    about = json.loads((tmp_path / "search.json").read_text())
    with np.load(tmp_path / "search.npz", allow_pickle=False) as arrays:
        assert len(arrays["path_0"]) == len(about["searches"][0]["path"])


@pytest.mark.parametrize("make", [lambda: make_simulator("MinAtar/Seaquest-v1", sticky=0.5), garnet])
def test_the_path_that_is_shown_is_the_one_that_was_searched(make):
    command = SearchCommand("an env", depth=3, discount=0.9, states=8, every=7, samples=1)
    for searched in command.search_along(make(), *command.make_rule()):
        result = searched.result
        np.testing.assert_array_equal(searched.path[-1], result.leaf().observation)
        assert result.value == pytest.approx(sum(0.9**t * r for t, r in enumerate(searched.path_rewards)), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "best"], "the rule is wrong"),
        (["--rule", "gap:0"], "gap"),
        (["--rule", "quantile:3=0.5"], "QuantileDepth"),
        (["--depth", "0"], "--depth is wrong"),
        (["--engine", "processes", "--actors", "-1"], "actors is wrong"),
        (["--width", "0"], "width"),
        (["--max-nodes", "0"], "nodes"),
        (["--discount", "2"], "discount"),
    ],
)
def test_wrong_flags_are_named(capsys, options, words):
    assert main(["search", "MinAtar/Breakout-v1", *options]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_an_unknown_env(capsys):
    assert main(["search", "MinAtar/Brakeout-v1"]) == 2
    assert "Breakout" in capsys.readouterr().err
