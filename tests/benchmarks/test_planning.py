"""The planning benchmark: what is timed."""

from __future__ import annotations

import adalook as al
from benchmarks.planning.peers import Adalook


def test_no_solve_of_the_race_begins_with_what_an_earlier_one_found() -> None:
    mdp = al.zoo.garnet(200, 3, 4)
    contender = Adalook(mdp)
    before = dict(vars(mdp)) | {"facts": {}}
    contender.prepare(1e-6)()
    assert mdp.facts
    contender.prepare(1e-6)
    assert dict(vars(mdp)) == before
