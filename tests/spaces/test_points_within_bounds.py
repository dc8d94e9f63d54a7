"""A published point lies in its space exactly: rounding to a float does not lead out of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import float_within
from zerodelta.mechanisms.ranks import EvenPoints
from zerodelta.mechanisms.stable_queries import Median, TrimmedMean
from zerodelta.spaces import Box
from zerodelta.tasks.statistics import inside

F = Fraction
BOUNDS: list[tuple[Any, Any]] = [
    (0, 100), (0, 0.3), (0, "3/10"), ("-1/3", "1/3"), (0, "1/10"), ("-1/10", "1/10"), (-0.1, 0.7),
    ("1/3", "2/3"), (0.1, 0.3), (1e15, 1e15 + 1), ("1e-30", "3e-30"), (-1e300 / 1e200, "1/7"),
]  # fmt: skip
EACH = pytest.mark.parametrize("bounds", BOUNDS, ids=str)


def exact(bounds: tuple[Any, Any]) -> tuple[Fraction, Fraction]:
    return F(bounds[0]), F(bounds[1])


@EACH
@pytest.mark.parametrize("steps", [1, 3, 7, 49, 1000, 4999, 10**6])
def test_order_statistics_lie_between_their_bounds(bounds: tuple[Any, Any], steps: int) -> None:
    low, high = exact(bounds)
    for query in (
        Median(bounds=bounds, steps=steps),
        TrimmedMean(bounds=bounds, steps=steps, trim=1),
    ):
        lattice = query.lattice(9)
        far = 1 << 62
        for cell in (-far, -1, 0, 1, 2, lattice.cells - 2, lattice.cells - 1, lattice.cells, far):
            value = float(lattice.points(np.array([cell]))[0])
            assert low <= F(value) <= high, (cell, value)


def test_the_first_cell_of_zero_to_hundred_is_zero() -> None:
    for steps in range(1, 400):
        lattice = Median(bounds=(0, 100), steps=steps).lattice(5)
        assert lattice.points(np.array([0]))[0] == 0
        assert lattice.points(np.array([lattice.cells - 1]))[0] == 100


@EACH
@pytest.mark.parametrize("cells", [1, 2, 3, 10, 10_001, 1 << 53])
def test_grid_points_lie_in_their_box(bounds: tuple[Any, Any], cells: int) -> None:
    low, high = exact(bounds)
    box = Box(*bounds, dimension=2)
    for lattice in (box.grid(cells), box.unequal_grid([cells, 7])):
        for place in (-1, 0, 1, cells // 2, cells - 1, cells):
            for value in lattice.points(np.array([place, place])).tolist():
                assert low <= F(value) <= high


def test_listed_bounds_hold_for_each_coordinate() -> None:
    lows, highs = [low for low, _ in BOUNDS], [high for _, high in BOUNDS]
    box = Box(lows, highs)
    ends = [exact(pair) for pair in BOUNDS]
    for cells in (1, 3, 1000):
        for place in (0, cells - 1):
            points = box.grid(cells).points(np.full(len(ends), place))
            sides = [(high - low) / cells for low, high in ends]
            for value, (low, high), side in zip(points.tolist(), ends, sides, strict=True):
                near = min(abs(F(value) - low), abs(F(value) - high))
                assert low <= F(value) <= high
                assert near <= side + F(float(np.spacing(value)))


@EACH
def test_projections_lie_in_their_box(bounds: tuple[Any, Any]) -> None:
    low, high = exact(bounds)
    box = Box(*bounds)
    for value in (-1e300, 1e300, float(low), float(high), None, np.nextafter(float(high), 2e300)):
        projected = box.project([value] if value is not None else None)
        assert low <= F(float(projected[0])) <= high
        assert box.contains(projected)


@EACH
@pytest.mark.parametrize("size", [2, 3, 1001, (1 << 40) + 1])
def test_quantiles_lie_between_their_bounds(bounds: tuple[Any, Any], size: int) -> None:
    low, high = exact(bounds)
    points = EvenPoints(lower=low, upper=high, size=size)
    for place in (0, 1, size // 2, size - 2, size - 1):
        assert low <= F(points.value(place)) <= high


@EACH
def test_means_lie_between_their_bounds(bounds: tuple[Any, Any]) -> None:
    low, high = exact(bounds)
    lattice = FixedPoint.box(dimension=1, lower=low, upper=high, steps=1000)
    for noisy in (-1e300, -np.inf, np.inf, 1e300, float(low), float(high), 0.0):
        assert low <= F(float(inside(np.array([noisy]), lattice)[0])) <= high


@given(
    st.fractions(-1000, 1000), st.fractions("1e-9", 1000), st.fractions(0, 1), st.integers(0, 400)
)
def test_the_float_is_inside_and_the_nearest_but_one_at_most(
    low: Fraction, width: Fraction, share: Fraction, shift: int
) -> None:
    low, width = low / 2**shift, width / 2**shift
    value, high = low + share * width, low + width
    found = float_within(value, low, high)
    near = float(value)
    assert found in (near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf))
    if low <= near <= high:
        assert found == near
    if width > 4 * np.spacing(abs(near)):
        assert low <= found <= high
