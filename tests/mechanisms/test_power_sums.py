"""Sums of powers by group are exact, in whatever integers they are added."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.data.keys import Bins, GroupKey, GroupKeys
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.mechanisms.partition_noise import power_sums

RNG = np.random.default_rng(2)
N = 500
CODES = RNG.integers(-1, 3, N).astype(float)  # -1: in no group
VALUES = RNG.uniform(-1.2, 1.2, (N, 2))
ABSENT = RNG.random((N, 2)) < 0.2
KEYS = GroupKeys(keys=(GroupKey(name="0", labels=("a", "b", "c")),))


def powers_of(integers: list[int], degree: int) -> list[int]:
    return [len(integers), *(sum(k**power for k in integers) for power in range(1, degree + 1))]


@pytest.mark.parametrize("steps", [1, 1 << 20, 1 << 24, 1 << 31, 1 << 40])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("keys", [GroupKeys(), KEYS], ids=["all", "groups"])
@pytest.mark.parametrize("batch", [37, 1000])
def test_power_sums_are_those_of_python_integers(
    steps: int, missing: bool, keys: GroupKeys, batch: int
) -> None:
    lattices = [FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)] * 2
    cells = np.column_stack([CODES, np.where(ABSENT, np.nan, VALUES)])
    rows = opened(ArraySource(cells, missing="skip", batch=batch))
    groups, found = power_sums(rows, keys, [1, 2], lattices, [2, 1], missing=[missing, missing])
    filled = np.where(ABSENT, 0.0, VALUES)
    for group in range(keys.count):
        inside: Any = group == CODES if keys.keys else np.ones(N, dtype=bool)
        assert groups[group] == inside.sum()
        for column, degree in ((0, 2), (1, 1)):
            own = inside & ~ABSENT[:, column] if missing else inside
            integers = lattices[0].quantize(filled[own, column][:, None])[:, 0].tolist()
            assert found[column][group].tolist() == powers_of(integers, degree)


def test_extreme_values_beyond_64_bits_are_added_exactly() -> None:
    steps = (1 << 30) + 7
    lattice = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
    cells = np.column_stack([np.arange(200.0) % 2, np.full(200, -7.0)])
    key = GroupKey(name="0", labels=(0, 1))
    for keys, rows in ((GroupKeys(), 200), (GroupKeys(keys=(key,)), 100)):
        opened_rows: Any = opened(ArraySource(cells))
        _, (found,) = power_sums(opened_rows, keys, [1], [lattice], [2], missing=[False])
        assert found.tolist() == [[rows, -rows * steps, rows * steps**2]] * keys.count


def test_bins_have_their_lower_edges_and_the_last_both() -> None:
    cut = Bins(edges=(Fraction(0), Fraction(1), Fraction(5, 2)))
    cells = np.array([-1e-300, 0.0, 0.5, 1.0, 2.5, np.nextafter(2.5, 3), math.inf, math.nan])
    assert cut.codes(cells).tolist()[1:5] == [0, 0, 1, 1]
    assert np.isnan(cut.codes(cells)[[0, 5, 6, 7]]).all()
    key = GroupKey(name="0", labels=cut.labels, bins=cut, clip_bounds=(Fraction(0), Fraction(2)))
    assert key.codes(cells)[:7].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert np.isnan(key.codes(cells)[7])
