"""Lattices: counts equal enumeration, and every value is rounded into them, in integers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from zerodelta.errors import ParameterError
from zerodelta.spaces import Ball, BallLattice, Box

BALLS = [
    Ball(dimension, radius, norm=norm).lattice(spacing)
    for norm in (1, 2)
    for dimension, radius, spacing in (
        (1, 1, "1/3"), (1, 1, 1), (2, 1, "1/4"), (2, 1, "0.3"), (2, "7/3", "2/5"), (3, 1, "1/2"),
        (3, 2, "0.7"), (4, 1, "0.6"), (2, 1, 3), (3, 1, "5/2"),
    )
]  # fmt: skip


def size_of(integers: Any, norm: float) -> int:
    """Return ‖k‖₁ or ‖k‖₂² in Python integers."""
    whole = [int(value) for value in integers]
    return sum(map(abs, whole)) if norm == 1 else sum(value * value for value in whole)


def enumerate_lattice(lattice: BallLattice) -> set[tuple[int, ...]]:
    most = lattice.bound if lattice.norm == 1 else math.isqrt(lattice.bound)
    cube = itertools.product(range(-most - 1, most + 2), repeat=lattice.dimension)
    return {point for point in cube if size_of(point, lattice.norm) <= lattice.bound}


@pytest.mark.parametrize("lattice", BALLS, ids=str)
def test_all_outputs_lie_in_the_enumerated_lattice(lattice: BallLattice) -> None:
    """A fine sweep over a box around the ball never yields a point that was not counted."""
    counted = enumerate_lattice(lattice)
    radius, steps = float(lattice.ball.radius), {1: 1001, 2: 61, 3: 17, 4: 9}[lattice.dimension]
    axis = np.linspace(-1.3 * radius, 1.3 * radius, steps)
    reached = {
        tuple(lattice.quantize(point).tolist())
        for point in itertools.product(axis, repeat=lattice.dimension)
    }
    assert reached <= counted
    assert (0,) * lattice.dimension in reached


@pytest.mark.parametrize("lattice", BALLS, ids=str)
def test_lattice_points_inside_the_ball_are_kept(lattice: BallLattice) -> None:
    for point in enumerate_lattice(lattice):
        size = size_of(point, lattice.norm)
        scaled = size * lattice.spacing if lattice.norm == 1 else size * lattice.spacing**2
        inside = scaled < (lattice.ball.radius if lattice.norm == 1 else lattice.ball.radius**2)
        if inside:
            integers = lattice.quantize(lattice.points(np.array(point)))
            assert tuple(integers.tolist()) == point


def test_l2_bound_is_the_exact_floor() -> None:
    """Compare with 200-digit arithmetic, and with cases where the bound is a whole number."""
    with mp.workdps(200):
        for dimension, radius, spacing in itertools.product(
            (1, 2, 3, 4, 9, 100, 12345, 10**6), ("1/3", "1", "7/2", "1e5"), ("1/7", "0.01", "3")
        ):  # fmt: skip
            lattice = Ball(dimension, radius).lattice(spacing)
            steps = Fraction(radius) / Fraction(spacing)
            reach = mpf(steps.numerator) / steps.denominator + mp.sqrt(dimension) / 2
            assert lattice.bound <= reach**2 * (1 + mpf(10) ** -150)
            assert lattice.bound + 1 > reach**2
    assert Ball(4, 3).lattice(1).bound == 16  # (3 + 1)² exactly
    assert Ball(16, 1).lattice("1/2").bound == 16
    assert Ball(4, 3, norm=1).lattice("1/3").bound == 9
    assert Ball(4, 1, norm=1).lattice("0.3").bound == 3


@given(
    norm=st.sampled_from([1, 2]),
    numbers=st.lists(st.floats(-2, 2) | st.floats(), min_size=1, max_size=6),
    radius=st.fractions(Fraction(1, 100), 100),
    ratio=st.fractions(Fraction(1, 10**6), 3),
    center=st.sampled_from([0, "1/3", -5, 2**60]),
)
@settings(max_examples=200, deadline=None)
def test_every_vector_is_rounded_near_and_inside(
    norm: int, numbers: list[float], radius: Fraction, ratio: Fraction, center: Any
) -> None:
    ball = Ball(len(numbers), radius, norm=norm, center=center)
    lattice = ball.lattice(radius * ratio)
    integers = lattice.quantize(numbers)
    assert size_of(integers, norm) <= lattice.bound
    if center != 2**60 and all(map(math.isfinite, numbers)):
        spacing = float(lattice.spacing)
        moved = np.abs(integers * spacing - (ball.project(numbers) - float(Fraction(center))))
        allowed = spacing * (0.5 if norm == 2 else 1)  # l1 may undo an outward rounding
        assert moved.max() <= allowed * (1 + 1e-9) + 1e-12 * (1 + abs(float(Fraction(center))))


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
def test_l1_undoes_only_as_many_outward_roundings_as_needed(dimension: int) -> None:
    """Points on the sphere with all coordinates just above a half: nearest rounding is outside."""
    radius = Fraction(51, 100) * dimension
    lattice = Ball(dimension, radius, norm=1).lattice(1)
    integers = lattice.quantize(np.full(dimension, 0.51))
    assert integers.min() >= 0
    assert integers.sum() == lattice.bound == math.floor(radius)


def test_l1_undoes_the_roundings_that_went_outwards_most() -> None:
    lattice = Ball(10, 8, norm=1).lattice(1)
    integers = lattice.quantize([0.7, 0.7, 0.7, 0.7, -0.65, -0.65, 0.7, 0.7, 1.2, 1.2])
    assert integers.tolist() == [1, 1, 1, 1, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("dimension", [1, 2, 50, 10**5])
def test_finest_lattices_are_verified_in_python_integers(norm: float, dimension: int) -> None:
    """Norms near 2^53 have squares far beyond int64; float error must not let a point out."""
    random = np.random.default_rng(0)
    lattice = Ball(dimension, 2**52, norm=norm).lattice(1)
    for scale in (1.0, 1e9, 1e290):
        for direction in (
            random.normal(size=dimension),
            np.ones(dimension),
            np.eye(1, dimension)[0],
        ):
            point = direction / np.linalg.norm(direction, norm) * 2**52 * scale
            integers = lattice.quantize(point)
            assert size_of(integers, norm) <= lattice.bound
            reached = size_of(integers, norm) ** (1 / norm)
            assert reached >= 2**52 * (1 - 1e-6)


def test_shrinking_ends_whatever_the_floats_did() -> None:
    """Even the worst integers, all at the largest coordinate, are pulled inside."""
    for norm, dimension in itertools.product((1, 2), (1, 3, 1000)):
        lattice = Ball(dimension, 2**50, norm=norm).lattice(1)
        most = lattice.bound if norm == 1 else math.isqrt(lattice.bound)
        worst = np.full(dimension, -most)
        assert size_of(lattice._shrunk(worst, worst.astype(float)), norm) <= lattice.bound


def test_l2_rounding_is_nearest_even_on_the_sphere() -> None:
    """The bound leaves room for half a cell, so that nothing is shrunk without need."""
    random = np.random.default_rng(0)
    lattice = Ball(7, 1).lattice("1/9")
    for direction in random.normal(size=(2000, 7)):
        point = direction / np.linalg.norm(direction)
        assert np.array_equal(lattice.quantize(point), np.rint(point * 9))


@pytest.mark.parametrize("norm", [1, 2])
def test_points_are_projected_onto_the_ball(norm: float) -> None:
    ball = Ball(3, 1, norm=norm, center=[5, 0, "-1/3"])
    lattice = ball.lattice("1/10")
    assert np.allclose(lattice.points(np.array([1, -2, 0])), [5.1, -0.2, -1 / 3])
    for far in (np.array([10**6, 0, 0]), np.array([10**500, 1, 0], dtype=object)):
        assert np.allclose(lattice.points(far), [6, 0, -1 / 3])
    wrong: list[Any] = [
        np.zeros(3),
        np.zeros(2, dtype=int),
        [0, 0, 0],
        np.array([0.5, 1, 1], dtype=object),
    ]
    for integers in wrong:
        assert not lattice.contains(integers)
        with pytest.raises(ParameterError):
            lattice.points(integers)


@pytest.mark.parametrize("cells", [1, 2, 3, 10])
def test_grid_cells_are_reached_exactly(cells: int) -> None:
    box = Box([0, "-1/3"], [1, "7/2"])
    grid = box.grid(cells)
    every = set(itertools.product(range(cells), repeat=2))
    for index in every:
        assert tuple(grid.quantize(grid.points(np.array(index))).tolist()) == index
    sweep = itertools.product(np.linspace(-1, 5, 80), repeat=2)
    assert {tuple(grid.quantize(point).tolist()) for point in sweep} == every


def test_grid_rounds_by_at_most_half_a_cell() -> None:
    random = np.random.default_rng(0)
    for box in (Box(0, 1, dimension=5), Box(np.arange(5) - 7, np.arange(5) ** 2 + 1)):
        for cells in (1, 7, 1000, 2**40):
            grid = box.grid(cells)
            for point in random.normal(size=(100, 5)) * 5:
                error = np.abs(grid.points(grid.quantize(point)) - box.project(point))
                assert np.all(error <= box.widths() / cells * 0.5 * (1 + 1e-3) + 1e-12)


def test_grid_ends_belong_to_the_last_cells() -> None:
    for cells in (1, 3, 10, 2**53):
        grid = Box("0.1", "0.7").grid(cells)
        assert grid.quantize(0.7).tolist() == grid.quantize(1e300).tolist() == [cells - 1]
        assert grid.quantize(0.1).tolist() == grid.quantize(-1e300).tolist() == [0]
        assert grid.quantize(math.nan).tolist() == grid.quantize(grid.box.middle()).tolist()
    assert grid.points(np.array([-5])).tolist() == grid.points(np.array([0])).tolist()


def test_malformed_lattices_are_refused() -> None:
    for cells in (0, -1, 2.0, True, 2**53 + 1):
        with pytest.raises(ParameterError):
            Box(0, 1).grid(cells)  # type: ignore[arg-type]
    for spacing in (0, -1, math.nan, "x", "1e-17"):
        with pytest.raises(ParameterError):
            Ball(2, 1).lattice(spacing)
    with pytest.raises(ParameterError, match="grid"):
        Ball(2, 1, norm=math.inf).lattice("1/2")
    with pytest.raises(ParameterError, match="lattice"):
        Ball(2, 1).grid(3)


def test_an_unequal_grid_with_one_number_is_the_grid() -> None:
    box = Box([0, -1], [1, 5])
    unequal, grid = box.unequal_grid([7, 7]), box.grid(7)
    for value in np.random.default_rng(1).uniform(-2, 6, size=(200, 2)):
        integers = unequal.quantize(value)
        assert np.array_equal(integers, grid.quantize(value))
        assert np.array_equal(unequal.points(integers), grid.points(integers))
    for bad in ([7], [7, 0], [7, 2**53 + 1], [7, 1.5], []):
        with pytest.raises(ParameterError, match=r"^cells = "):
            box.unequal_grid(bad)  # type: ignore[arg-type]
