"""Sums and counts: one row moves the integers by the stated sensitivity, and no more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.partition_noise import PartitionNoise

NAN = math.nan
BOUNDS = [(0, 10), (50, 100), (-3, 7), (-9, -2)]
relations = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what the mechanisms are handed, with no noise on it, and the mechanisms."""
    seen: list[Any] = []

    def without_noise(mechanism: Any, sums: Any, bits: Any) -> Any:
        seen.append((mechanism, np.array(sums, dtype=object)))
        return np.array(sums, dtype=object)

    for kind in (KNorm, PartitionNoise):
        monkeypatch.setattr(kind, "apply", without_noise)
    return seen


def opened(cells: list[float], bounds: tuple[int, int], missing: Any, neighbors: str) -> Any:
    return zd.open(
        np.array(cells),
        columns={"0": zd.number(*bounds, missing=missing)},
        neighbors=neighbors,
        expected_rows=2 if neighbors == "add-remove" else None,
    )


def pairs(cells: list[float], neighbors: str) -> list[tuple[list[float], list[float]]]:
    if neighbors == "add-remove":
        return [([one, two], [one]) for one, two in itertools.product(cells, cells)]
    return [([one, two], [one, three]) for one, two, three in itertools.product(cells, repeat=3)]


@relations
@pytest.mark.parametrize("missing", ["skip", None])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more(
    handed: list[Any], bounds: tuple[int, int], missing: Any, neighbors: str
) -> None:
    """Over all neighbors of two rows, odd cells among them; it is reached, so the noise is too."""
    lower, upper = bounds
    cells = [NAN, -math.inf, float(lower), (lower + upper) / 2, float(upper), 1e308]
    largest = 0
    for pair in pairs(cells, neighbors):
        handed.clear()
        for data in pair:
            if neighbors == "replace":  # an array fills nothing in: a NaN gets as far as the sum
                zd.sum(np.array(data), bounds=bounds, missing=missing, epsilon="1/2")
            else:
                zd.sum(opened(data, bounds, missing, neighbors), epsilon="1/2")
        (mechanism, first), (_, second) = handed
        largest = max(largest, abs(first[0] - second[0]))
    assert largest == mechanism.sensitivity
    assert mechanism.scale == mechanism.sensitivity / Fraction(1, 2)


def test_a_sum_is_that_of_the_values_that_are_there(handed: list[Any]) -> None:
    """Up to half a quantum for each row: half the width of the bounds is at least 2^10 quanta."""
    cells = [1.0, NAN, 4.0, 99.0]
    for missing, total in (("skip", 15.0), (None, 20.0), (3, 18.0)):
        release = zd.sum(np.array(cells), bounds=(0, 10), missing=missing, epsilon=1)
        assert abs(release.value - total) <= len(cells) * 5 / 2**11


@relations
def test_a_count_moves_by_one_and_has_noise_for_it(handed: list[Any], neighbors: str) -> None:
    for pair in pairs([NAN, 3.0, math.inf], neighbors):
        handed.clear()
        for data in pair:
            zd.count(opened(data, (0, 10), "skip", neighbors), "0", epsilon="1/2")
        (mechanism, first), (_, second) = handed
        assert abs(first[0] - second[0]) <= 1
        assert mechanism.scale == 2
