"""One input gives one answer, bit for bit, whatever the number of cores."""

import os
import subprocess
import sys

import numpy as np
import pytest

from adalook.planning.evaluation.functional import solve_by_elimination

SCRIPT = """
import hashlib, numpy as np, adalook as al
from adalook.planning.evaluation import sweeps
from adalook.planning.evaluation.linear import krylov, lu
def rows(mdp):
    return sweeps.PolicyRows.of(mdp, np.zeros(mdp.num_states, np.int32))
large = rows(al.zoo.garnet(40_000, 2, 3, seed=1, discount=0.99))
answers = [
    al.solve(al.zoo.garnet(250, 3, 8, seed=1, discount=0.9999), al.PolicyIteration()).values,
    lu.solve_by_lu(rows(al.zoo.garnet(300, 2, 200, seed=1)))[0],
    krylov.solve_by_bicgstab(large, np.zeros(40_000), 1e-6)[0],
]
print([hashlib.sha256(np.ascontiguousarray(answer)).hexdigest() for answer in answers])
"""


def answers(threads):
    environment = os.environ | {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "ADALOOK_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=600
    ).stdout


def test_the_number_of_cores_changes_no_bit():
    assert answers(1) == answers(4)


@pytest.mark.parametrize("n", [1, 2, 70, 256])
def test_elimination_solves(n):
    rng = np.random.default_rng(n)
    matrix, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    x = b.copy()
    solve_by_elimination(matrix.copy(), x)
    np.testing.assert_allclose(matrix @ x, b, atol=1e-9)
