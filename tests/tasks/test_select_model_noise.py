"""Fixed candidates: the real totals and the real scale, on every pair of neighboring datasets."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tasks.spying import recorded, zero
from zerodelta.audit.exact import certainly_pure, permute_and_flip_law
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.tasks.models import select_model


def same(column: int, rows: Any) -> Any:
    return rows[:, column]


@pytest.mark.parametrize("bounds", [(0, 1), (-3, 1)])
def test_a_choice_among_fixed_candidates_is_exactly_epsilon(
    bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the range for one candidate, none for the other, against the opposite."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    low, high = bounds
    laws = {}
    for row in itertools.product((low - 5, low, high, high + 5), repeat=2):
        table = np.array([row, (low, high)], dtype=np.float64)
        select_model(table, candidates={"a": 0, "b": 1}, score=same, bounds=bounds, epsilon="3/2")
        mechanism, scores = calls[-1][:2]
        unit = mechanism.scale
        laws[row] = permute_and_flip_law([int(score) for score in scores], scale=unit)
    worst = 0
    for one, two in itertools.permutations(laws, 2):
        assert certainly_pure(laws[one], laws[two], Fraction(3, 2))
        worst += not certainly_pure(laws[one], laws[two], Fraction(149, 100))
    assert worst  # some pair needs all of it
