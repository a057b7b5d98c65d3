"""QL-DQN step 3: the shares of states that look deeper, given or following the cost."""

from __future__ import annotations

from adalook.learning.depth import CostControlledShares, least_depth, shares_by_depth


def test_shares_of_one_at_the_beginning_are_depths_that_every_tree_reaches() -> None:
    assert shares_by_depth((0.0, 0.5, 1.0)) == {2: 0.0, 3: 0.5, 4: 1.0}
    shares = [(), (0.9, 1.0), (1.0,), (1.0, 1.0, 0.2)]
    assert [least_depth(shares_by_depth(each)) for each in shares] == [1, 1, 2, 3]


def test_shares_rise_where_a_decision_is_cheap_and_fall_where_it_is_dear() -> None:
    shares = CostControlledShares(4, nodes=10.0)
    shares.update(10.0)
    assert dict(shares) == {2: 0.5, 3: 0.5, 4: 0.5}
    shares.update(0.0)
    assert shares[2] == 0.51
    for _ in range(100):
        shares.update(0.0)
    assert 0.999 < shares[2] < 1.0  # a share of 1 would go without ranks
    shares.update(1e9)
    assert shares[2] == 0.0


def test_who_plays_has_the_mean_share_of_the_last_rounds_and_who_goes_on_has_both() -> None:
    shares = CostControlledShares(2, nodes=10.0)
    for nodes in [0.0, 20.0] * 600:  # θ goes up and down by 0.01
        shares.update(nodes)
    other = CostControlledShares(2, nodes=10.0)
    other.load_state(shares.state())
    assert other.state() == shares.state()
    for each in (shares, other):
        with each.at_play(), each.at_play():
            assert abs(each[2] - 0.505) < 1e-3
        assert abs(each[2] - 0.5) < 1e-9


def test_shares_of_a_run_that_had_no_mean_are_played_as_they_are() -> None:
    shares = CostControlledShares(2, nodes=10.0)
    shares.load_state({"share": 0.25})
    with shares.at_play():
        assert shares[2] == 0.25


def test_a_level_at_a_time_trees_differ_by_at_most_one_level() -> None:
    shares = CostControlledShares(4, nodes=10.0, one_level=True)
    for _ in range(100):
        shares.update(0.0)
        assert sum(0.0 < share < CostControlledShares.MAX_SHARE for share in shares.values()) <= 1
    assert shares[2] == CostControlledShares.MAX_SHARE
    assert 0.0 < shares[3] < 1.0
    assert shares[4] == 0.0
    for _ in range(1000):
        shares.update(0.0)
    assert set(shares.values()) == {CostControlledShares.MAX_SHARE}
    shares.update(1e9)
    assert set(shares.values()) == {0.0}
