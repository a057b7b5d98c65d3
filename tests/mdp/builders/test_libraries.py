"""Models taken over from QuantEcon and stormpy, solved here and there."""

import numpy as np
import pytest
import scipy.sparse as sp

import adalook as al

RNG = np.random.default_rng(0)
CHANCES = RNG.dirichlet(np.ones(5), (5, 3))
REWARDS = RNG.normal(size=(5, 3))
REWARDS[2, 1] = -np.inf


def quantecon_model(form: str):
    markov = pytest.importorskip("quantecon.markov")
    if form == "product":
        return markov.DiscreteDP(REWARDS, CHANCES, 0.9)
    s, a = np.nonzero(np.isfinite(REWARDS))
    rows = CHANCES[s, a]
    return markov.DiscreteDP(REWARDS[s, a], sp.csr_matrix(rows) if form == "sparse" else rows, 0.9, s, a)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["product", "pairs", "sparse"])
def test_quantecon(form):
    ddp = quantecon_model(form)
    mdp = al.MDP.from_quantecon(ddp)
    assert not mdp.offered[2, 1]
    np.testing.assert_allclose(al.solve(mdp).values, ddp.solve(method="policy_iteration").v, atol=1e-8)


PRISM = """
mdp
module m
  s : [0..2] init 0;
  [go] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [stay] s=0 -> 1 : (s'=0);
  [a] s=1 -> 1 : (s'=2);
  [b] s=2 -> 1 : (s'=0);
endmodule
rewards "pay"
  s=1 : 4;
  [stay] true : 1;
endrewards
"""


def test_stormpy(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    (tmp_path / "m.prism").write_text(PRISM)
    program = stormpy.parse_prism_program(str(tmp_path / "m.prism"))
    model = stormpy.build_model(program)
    mdp = al.MDP.from_stormpy(model, 0.5)
    assert mdp.num_pairs == 4
    # 0: stay pays 1 for ever = 2; go: 0.5 · (0.5 · V1 + 0.5 · V2) with V1 = 4 + V2/2 and V2 = V0/2
    assert sorted(al.solve(mdp).values.round(6).tolist()) == [1.0, 2.0, 4.5]
    with pytest.raises(al.AdalookError, match="'pay'"):
        al.MDP.from_stormpy(model, 0.5, "cost")


def build_prism(stormpy, path, text: str):
    """The model of a PRISM program, with all that it can carry."""
    path.write_text(text)
    options = stormpy.BuilderOptions()
    options.set_build_choice_labels(True)
    options.set_build_state_valuations(True)
    options.set_build_all_reward_models(True)
    return stormpy.build_model(stormpy.parse_prism_program(str(path)), options=options)


def test_labels_and_valuations_of_stormpy_become_names(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    mdp = al.MDP.from_stormpy(build_prism(stormpy, tmp_path / "m.prism", PRISM), 0.5)
    sol = al.solve(mdp)
    assert sol.action("[s=0]") == "stay"
    assert dict(zip(mdp.state_names, sol.values.round(6).tolist(), strict=True)) == {
        "[s=0]": 2.0,
        "[s=1]": 4.5,
        "[s=2]": 1.0,
    }
    alike = al.MDP.from_stormpy(build_prism(stormpy, tmp_path / "m.prism", PRISM.replace("[stay]", "[go]")), 0.5)
    assert (alike.action_names, alike.num_actions) == ((), 2), "labels that do not tell choices apart are no names"


def test_a_model_of_stormpy_without_rewards(tmp_path):
    stormpy = pytest.importorskip("stormpy")
    model = build_prism(stormpy, tmp_path / "m.prism", PRISM.partition("rewards")[0])
    with pytest.raises(al.errors.ModelError, match="has no rewards"):
        al.MDP.from_stormpy(model, 0.5)
