"""Complaints about arguments that no search can work with, before anything is simulated."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from adalook.errors import ArgumentError
from adalook.search.budget import Budget
from adalook.search.root import Root
from adalook.search.rule import DepthRule, is_number, is_whole


def check_kinds(value_fn: Any, rule: Any, budget: Any, expander: Any) -> None:
    """Complain about what is not of the kind that `search` asks for."""
    if not callable(value_fn):
        raise ArgumentError(
            "the value function is wrong",
            expected="a function of (observations, depth) that returns values",
            got=repr(value_fn),
        )
    if not isinstance(rule, DepthRule):
        raise ArgumentError("the rule is wrong", expected="a DepthRule, such as FixedDepth(3)", got=repr(rule))
    if budget is not None and not isinstance(budget, Budget):
        raise ArgumentError(
            "the budget is wrong", expected="a Budget, such as Budget(nodes=500), or None", got=repr(budget)
        )
    if expander is not None and not callable(getattr(expander, "expand", None)):
        raise ArgumentError(
            "the expander is wrong", expected="an Expander, such as Workers(sim, 2), or None", got=repr(expander)
        )


def check_numbers(discount: Any, width: Any) -> None:
    """Complain about a discount or a width out of its range."""
    if not is_number(discount) or not 0.0 < discount <= 1.0:
        raise ArgumentError("the discount is wrong", expected="a number in (0, 1]", got=repr(discount))
    # An infinite beam is no whole number, but everybody knows what is meant.
    if width is not None and width != math.inf and not (is_whole(width) and width >= 1):
        raise ArgumentError("the width is wrong", expected="a whole number >= 1, or None", got=repr(width))


def check_roots(roots: Any) -> None:
    """Complain about roots that are none: bare states, simulators, or one root where many are expected."""
    if isinstance(roots, Root) or not isinstance(roots, Sequence):
        raise ArgumentError("the roots are wrong", expected="a list of Root", got=f"one {type(roots).__name__}")
    for root in roots:
        if not isinstance(root, Root):
            raise ArgumentError(
                "the root is wrong", expected="a Root, such as Root.of(sim)", got=f"a {type(root).__name__}"
            )


def checked_seeds(seed: Any, count: int) -> list[int]:
    """One seed for each of `count` roots, of one for all or of one for each."""
    if is_whole(seed):
        return [int(seed)] * count
    if not isinstance(seed, Sequence | np.ndarray) or not all(isinstance(each, numbers.Integral) for each in seed):
        raise ArgumentError(
            "the seed is wrong", expected="a whole number, or one for each root of search_many", got=repr(seed)
        )
    if len(seed) != count:
        raise ArgumentError("there must be a seed for each root", expected=f"{count} seeds", got=len(seed))
    return [int(each) for each in seed]
