"""The package as a whole: what importing it costs, what it exports, who imports whom."""

import subprocess
import sys
from pathlib import Path

import pytest

import adalook as al

QUICK = """
import sys, time
began = time.process_time()
import adalook
took = time.process_time() - began
heavy = {"torch", "gymnasium", "matplotlib", "numba", "scipy", "rich", "tyro"} & set(sys.modules)
print(took, sorted(heavy))
"""

HEAVY = """
import sys
import adalook as al
al.solve(al.zoo.maze(size=12))
print(sorted({"torch", "gymnasium", "matplotlib"} & set(sys.modules)))
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_light():
    answers = [run(QUICK).split(maxsplit=1) for _ in range(5)]
    assert {heavy.strip() for _, heavy in answers} == {"[]"}
    assert min(float(took) for took, _ in answers) < 0.1


def test_planning_imports_neither_torch_nor_gymnasium_nor_matplotlib():
    assert run(HEAVY).strip() == "[]"


def test_every_public_name_can_be_had():
    for name in al.__all__:
        assert getattr(al, name) is not None
    assert {"solve", "zoo", "priors", "MDP", "QLDQN", "Config", "make_simulator"} <= set(dir(al)) & set(al.__all__)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match="solve"):
        getattr(al, "sovle")  # noqa: B009


def test_contracts_hold():
    result = subprocess.run([Path(sys.executable).parent / "lint-imports"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
