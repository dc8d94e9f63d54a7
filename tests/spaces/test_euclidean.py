"""Boxes and balls: nearest points, diameters and bounds are exact, also after rounding."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import float_within
from zerodelta.mechanisms.ranks import EvenPoints
from zerodelta.mechanisms.stable_queries import Median, TrimmedMean
from zerodelta.spaces import Ball, Box, EuclideanSpace
from zerodelta.spaces.lattices import Coordinates
from zerodelta.tasks.statistics import inside

NORMS = [1, 2, math.inf]

SPACES: list[EuclideanSpace] = [
    Box(-1, 1, dimension=3),
    Box([0, -3, "1/3"], [1, 5, 2]),
    *(Ball(3, "3/2", norm=norm) for norm in NORMS),
    *(Ball(3, "3/2", norm=norm, center=[5, -1, "1/3"]) for norm in NORMS),
]


def length(vector: Any, norm: float) -> float:
    return float(np.linalg.norm(vector, norm))


def elements(space: EuclideanSpace, count: int) -> Any:
    """Random elements, many of them on the boundary, found without `project`."""
    random = np.random.default_rng(0)
    if isinstance(space, Box):
        low, high = space.lower.floats(), space.upper.floats()
        return low + (high - low) * np.clip(random.normal(0.5, 1, (count, space.dimension)), 0, 1)
    assert isinstance(space, Ball)
    directions = random.normal(size=(count, space.dimension)) ** 3
    directions /= np.linalg.norm(directions, space.norm, axis=1, keepdims=True)
    shrink = np.minimum(random.uniform(0, 2, (count, 1)), 1)
    return space.center.floats() + float(space.radius) * directions * shrink


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_projection_is_the_nearest_element(space: EuclideanSpace) -> None:
    """Variational inequality: <x - p, e - p> <= 0 for every element e."""
    random = np.random.default_rng(1)
    inside = elements(space, 500)
    for point in random.normal(size=(200, 3)) * 10.0 ** random.uniform(-2, 3, (200, 1)):
        nearest = space.project(point)
        assert space.contains(nearest)
        gaps = (inside - nearest) @ (point - nearest)
        assert gaps.max() <= 1e-9 * (1 + length(point, 2))
    for point in inside:
        assert np.abs(space.project(point) - point).max() <= 1e-12


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_containing_has_only_float_tolerance(space: EuclideanSpace) -> None:
    middle = space.middle()
    for point in elements(space, 200):
        assert space.contains(middle + (point - middle) * 0.999999)
        edge = space.project(middle + (point - middle + 1e-3) * 1e6)
        assert not space.contains(middle + (edge - middle) * 1.000001)
    assert not space.contains([math.nan, 0, 0])
    assert not space.contains([0, 0])
    assert not space.contains("000")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_diameter_is_the_largest_distance(space: EuclideanSpace, norm: float) -> None:
    diameter = space.diameter(norm)
    middle = space.middle()
    half = space.project(middle + 1e9) - middle  # the corner, or the diagonal of the ball
    vertices = [space.project(middle + 1e9 * axis) - middle for axis in np.eye(3)]
    reached = max(2 * length(half, norm), *(2 * length(vertex, norm) for vertex in vertices))
    assert reached == pytest.approx(diameter, rel=1e-12)
    for a, b in itertools.pairwise(elements(space, 500)):
        assert length(a - b, norm) <= diameter * (1 + 1e-12)


def test_diameters_are_rounded_up() -> None:
    third = Fraction(1, 3)
    assert Fraction(Box(0, third).diameter()) >= third
    assert Fraction(Box(0, third, dimension=3).diameter(norm=1)) >= 1
    for dimension in range(1, 200):
        exact_squared = dimension * third**2
        for space in (
            Box(0, third, dimension=dimension),
            Box([0.0] * dimension, [third] * dimension),
        ):
            found = Fraction(space.diameter())
            assert found**2 >= exact_squared
            assert found**2 <= exact_squared * (1 + Fraction(1, 2**50))
        ball = Fraction(Ball(dimension, third).diameter(norm=1))
        assert ball**2 >= 4 * exact_squared
        assert ball**2 <= 4 * exact_squared * (1 + Fraction(1, 2**50))


def test_radius_is_not_diameter() -> None:
    for norm in NORMS:
        assert Ball(5, 1, norm=norm).diameter(norm) == 2.0
    assert Ball(9, 1, norm=math.inf).diameter(2) == 6.0
    assert Ball(9, 1, norm=math.inf).diameter(1) == 18.0
    assert Ball(9, 1, norm=2).diameter(1) == 6.0
    assert Ball(9, 1, norm=1).diameter(2) == 2.0


def test_bounds_are_kept_exactly() -> None:
    assert Box("1/3", 0.1 + 1, dimension=4).lower.exact() == (Fraction(1, 3),)
    assert Box([0.1, 2], [Fraction(1, 3), 10**30]).upper.exact() == (
        Fraction(1, 3),
        Fraction(10**30),
    )
    assert Box(0.1, 1).lower.exact() == (Fraction(0.1),)
    assert Box("0.1", 1) != Box(0.1, 1)
    assert Box(0, 1, dimension=3) == Box(np.zeros(3), [1, 1.0, "1"])
    assert Ball(2, "1/3", center=["1/7", 0]).center.exact() == (Fraction(1, 7), Fraction(0))
    assert Coordinates.of([-0.0, 0.0], "x") == Coordinates.of(0, "x")


@pytest.mark.parametrize("norm", NORMS)
@given(
    point=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    exponent=st.integers(-490, 490),
)
@settings(max_examples=300, deadline=None)
def test_extreme_magnitudes_are_projected_in_the_right_direction(
    norm: float, point: list[float], exponent: int
) -> None:
    radius = Fraction(2) ** exponent
    ball = Ball(2, radius, norm=norm)
    nearest = ball.project(point)
    assert ball.contains(nearest)
    exact = [Fraction(value) for value in point]
    inside = {
        1: sum(map(abs, exact)) <= radius,
        2: sum(value**2 for value in exact) <= radius**2,
        math.inf: max(map(abs, exact)) <= radius,
    }[norm]
    if inside:
        assert nearest.tolist() == point
    else:
        assert length(nearest / float(radius), norm) >= 1 - 1e-12
        assert all(a * b >= 0 for a, b in zip(np.sign(point), np.sign(nearest), strict=True))
        larger, smaller = np.argsort(np.abs(point))[::-1]
        assert abs(nearest[larger]) >= abs(nearest[smaller]) * (1 - 1e-12)


def test_a_ball_of_norm_inf_is_its_bounding_box() -> None:
    ball = Ball(2, "1/3", norm=math.inf, center=1)
    assert ball.bounding_box() == Box("2/3", "4/3", dimension=2)
    third, tiny = Fraction(1, 3), Fraction(1, 2**50)
    centers = [Fraction(number, 1009) for number in range(-1009, 1009)]
    listed = Ball(len(centers), third, norm=math.inf, center=centers).bounding_box()
    for center, low, high in zip(centers, listed.lower.exact(), listed.upper.exact(), strict=True):
        assert center - third - tiny < low <= center - third
        assert center + third <= high < center + third + tiny


@pytest.mark.parametrize(
    ("lower", "upper", "more"),
    [
        (1, 1, {}), (2, 1, {}), ([0, 1], [1, 1], {}), ([0, 0], [1, 1, 1], {}), (0, math.nan, {}),
        (-math.inf, 0, {}), (0, "x", {}), (0, None, {}), ([], [], {}), (0, 2**501, {}),
        (0, Fraction(1, 2**501), {}), ([0, 0], 1, {"dimension": 3}), (0, 1, {"dimension": 0}),
        (0, 1, {"dimension": 1.5}), ([[0]], [[1]], {}), (False, True, {}),
    ],
)  # fmt: skip
def test_malformed_boxes_are_refused(lower: Any, upper: Any, more: Any) -> None:
    with pytest.raises(ParameterError):
        Box(lower, upper, **more)


@pytest.mark.parametrize(
    ("dimension", "radius", "more"),
    [
        (0, 1, {}), (2.0, 1, {}), (2, 0, {}), (2, -1, {}), (2, math.inf, {}), (2, 2**501, {}),
        (2, 1, {"norm": 3}), (2, 1, {"norm": True}), (2, 1, {"norm": None}),
        (2, 1, {"center": [1, 2, 3]}),
        (2, 1, {"center": math.nan}), (2, 1, {"center": None}),
    ],
)  # fmt: skip
def test_malformed_balls_are_refused(dimension: Any, radius: Any, more: Any) -> None:
    with pytest.raises(ParameterError):
        Ball(dimension, radius, **more)


def test_a_hundred_thousand_coordinates_are_projected() -> None:
    random = np.random.default_rng(0)
    point, bounds = random.normal(size=10**5), random.uniform(0.1, 1, size=10**5)
    for space in (
        Box(-bounds, bounds),
        Box(-1, 1, dimension=10**5),
        *(Ball(10**5, 10, norm=norm, center=bounds) for norm in NORMS),
    ):
        assert space.contains(space.project(point))


# -- points within bounds -------------------------------------------------------------------------


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
