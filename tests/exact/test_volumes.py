"""Volumes against 220-digit mpmath; lattice counts against enumeration and integer recursion."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from zerodelta.errors import ParameterError
from zerodelta.exact import logs as volumes
from zerodelta.exact.logs import (
    log_ball_volume_lower,
    log_ball_volume_upper,
    log_lattice_count_lower,
    log_lattice_count_upper,
)

SLACK = mpf("1e-12")
NORMS = (1, 2, math.inf)


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(220):
        yield


def assert_encloses(low: float, high: float, truth: mpf) -> None:
    assert mpf(low) <= truth <= mpf(high)
    assert mpf(high) - mpf(low) <= SLACK * abs(truth)


def only_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every l2 count too expensive, so that the certified bounds answer instead."""
    monkeypatch.setattr(volumes, "WORK_LIMIT", 0)


def count_by_recursion(dimension: int, bound: int) -> int:
    """Count {k in Z^d : ‖k‖² ≤ B} one coordinate at a time, in Python integers."""
    exactly = [1] + [0] * bound
    for _ in range(dimension):
        exactly = [
            exactly[b] + 2 * sum(exactly[b - k * k] for k in range(1, math.isqrt(b) + 1))
            for b in range(bound + 1)
        ]
    return sum(exactly)


def l1_count_by_recursion(dimension: int, bound: int) -> int:
    """Count {k in Z^d : ‖k‖₁ ≤ m} by the Delannoy recursion."""
    row = [1] * (bound + 1)
    for _ in range(dimension):
        following = [1]
        for m in range(1, bound + 1):
            following.append(following[m - 1] + row[m] + row[m - 1])
        row = following
    return row[bound]


def lattice_count(norm: float, dimension: int, bound: int) -> int:
    """Count the integer points of a ball exactly, by Python integers or by the library's own."""
    if norm == math.inf:
        return int((2 * bound + 1) ** dimension)
    if norm == 1:
        few = range(min(dimension, bound) + 1)
        return sum(2**k * math.comb(dimension, k) * math.comb(bound, k) for k in few)
    return volumes._squares_count(dimension, bound)


def log_volume(norm: float, dimension: int, radius: Fraction) -> mpf:
    log_radius = mp.log(mpf(radius.numerator) / mpf(radius.denominator))
    inverse = mpf(0) if norm == math.inf else 1 / mpf(norm)
    unit = dimension * mp.log(2 * mp.gamma(1 + inverse)) - mp.loggamma(1 + dimension * inverse)
    return unit + dimension * log_radius


def test_ball_volume_encloses_the_gamma_formula() -> None:
    rng = random.Random(30)
    for _ in range(600):
        norm = rng.choice(NORMS)
        dimension = rng.choice([1, 2, 3, 10, rng.randrange(1, 1000), rng.randrange(1, 10**6)])
        radius = Fraction(10 ** rng.uniform(-30, 30))
        low = log_ball_volume_lower(norm, dimension, radius)
        high = log_ball_volume_upper(norm, dimension, radius)
        assert_encloses(low, high, log_volume(norm, dimension, radius))


@pytest.mark.parametrize("norm", NORMS)
def test_unit_volumes_in_low_dimension_are_the_school_formulas(norm: float) -> None:
    expected = {1: (2, 2, mpf(4) / 3), 2: (2, mp.pi, 4 * mp.pi / 3), math.inf: (2, 4, 8)}[norm]
    for dimension, volume in enumerate(expected, start=1):
        low, high = (f(norm, dimension, 1) for f in (log_ball_volume_lower, log_ball_volume_upper))
        assert_encloses(low, high, mp.log(volume))


def test_a_cube_of_side_one_has_volume_one_exactly() -> None:
    assert log_ball_volume_lower(math.inf, 10**6, "1/2") == 0
    assert log_ball_volume_upper(2, 1, "1/2") == log_ball_volume_lower(1, 1, 0.5) == 0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("bound", range(6))
def test_lattice_count_is_what_enumeration_finds(norm: float, dimension: int, bound: int) -> None:
    size: dict[float, Callable[[tuple[int, ...]], int]] = {
        1: lambda k: sum(map(abs, k)),
        2: lambda k: sum(x * x for x in k),
        math.inf: lambda k: max(map(abs, k)),
    }
    points = itertools.product(range(-bound, bound + 1), repeat=dimension)
    found = sum(size[norm](point) <= bound for point in points)
    assert lattice_count(norm, dimension, bound) == found


def test_lattice_count_agrees_with_coordinate_by_coordinate_recursion() -> None:
    rng = random.Random(31)
    for _ in range(40):
        dimension, bound = rng.randrange(1, 40), rng.randrange(120)
        assert lattice_count(2, dimension, bound) == count_by_recursion(dimension, bound)
        assert lattice_count(1, dimension, bound) == l1_count_by_recursion(dimension, bound)


@pytest.mark.parametrize("norm", NORMS)
def test_log_count_encloses_the_log_of_the_exact_count(norm: float) -> None:
    rng = random.Random(32)
    for _ in range(400):
        dimension, bound = rng.randrange(1, 10 ** rng.randrange(1, 4)), rng.randrange(1, 300)
        truth = mp.log(lattice_count(norm, dimension, bound))
        low = log_lattice_count_lower(norm, dimension, bound)
        assert_encloses(low, log_lattice_count_upper(norm, dimension, bound), truth)


def test_a_ball_of_radius_zero_holds_one_point() -> None:
    for norm in NORMS:
        assert log_lattice_count_lower(norm, 10**5, 0) == 0
        assert log_lattice_count_upper(norm, 10**5, 0) == 0


def test_l1_and_cube_counts_in_the_highest_dimensions() -> None:
    low, high = (
        f(math.inf, 10**6, 10**9) for f in (log_lattice_count_lower, log_lattice_count_upper)
    )
    assert_encloses(low, high, 10**6 * mp.log(2 * 10**9 + 1))
    # Delannoy numbers are symmetric in dimension and radius
    assert log_lattice_count_upper(1, 10**5, 3) == log_lattice_count_upper(1, 3, 10**5)
    truth = mp.log(l1_count_by_recursion(2, 10**4))
    assert_encloses(
        log_lattice_count_lower(1, 10**4, 2), log_lattice_count_upper(1, 10**4, 2), truth
    )
    # central Delannoy numbers grow as (3 + 2√2)^d with a known prefactor
    d = 10**5
    leading = d * mp.log(3 + 2 * mp.sqrt(2)) + mp.log(
        mp.cosh(mp.log(2) / 4 + mp.log(1 + mp.sqrt(2)) / 2)
    )
    assert abs(mpf(log_lattice_count_upper(1, d, d)) - leading) < mp.log(d)


def test_l2_bounds_enclose_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(33)
    cases = [
        (dimension, rng.randrange(1, rng.choice([dimension, 4 * dimension, 2000]) + 1))
        for dimension in (rng.randrange(2, 10 ** rng.randrange(1, 4) + 2) for _ in range(300))
    ]
    truths = [mp.log(lattice_count(2, *case)) for case in cases]
    only_bounds(monkeypatch)
    for case, truth in zip(cases, truths, strict=True):
        assert mpf(log_lattice_count_lower(2, *case)) <= truth
        assert truth <= mpf(log_lattice_count_upper(2, *case))


@pytest.mark.parametrize("factor", [0.01, 0.3, 3.0, 100.0])
def test_l2_bounds_hold_even_when_the_float_search_is_far_off(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    cases = [(30, 40), (200, 100), (200, 900)]
    truths = [mp.log(lattice_count(2, *case)) for case in cases]
    only_bounds(monkeypatch)
    monkeypatch.setattr(volumes, "_tilt", lambda dimension, bound: factor * dimension / bound)
    for case, truth in zip(cases, truths, strict=True):
        assert mpf(log_lattice_count_lower(2, *case)) <= truth
        assert truth <= mpf(log_lattice_count_upper(2, *case))


@pytest.mark.parametrize("dimension", [2, 5, 10, 20, 40, 100, 250])
@pytest.mark.parametrize("ratio", [Fraction(1, 4), Fraction(1), Fraction(10), Fraction(30)])
def test_theta_bound_gap_is_half_log_pi_d(
    monkeypatch: pytest.MonkeyPatch, dimension: int, ratio: Fraction
) -> None:
    bound = math.ceil(ratio * dimension)
    truth = mp.log(lattice_count(2, dimension, bound))
    only_bounds(monkeypatch)
    gap = mpf(log_lattice_count_upper(2, dimension, bound)) - truth
    assert 0 < gap <= mp.log(mp.pi * dimension) / 2 + mpf(1) / 10


@pytest.mark.parametrize(
    ("dimension", "bound", "gap"),
    [
        (10**5, 2, 1e-12),
        (10**5, 10**4, 20),
        (10**5, 10**5, 40),
        (10**5, 10**7, 300),
        (10**5, 10**9, 600),
        (10**5, 10**12, 30),
        (10**3, 10**4, 50),
        (2, 10**9, 1e-3),
    ],
)
def test_l2_bounds_stay_close_in_high_dimension(dimension: int, bound: int, gap: float) -> None:
    low = log_lattice_count_lower(2, dimension, bound)
    high = log_lattice_count_upper(2, dimension, bound)
    assert 0 < low <= high <= low + gap


@given(st.integers(1, 12), st.integers(0, 60))
def test_the_balls_are_nested(dimension: int, radius: int) -> None:
    inner = lattice_count(1, dimension, radius)
    middle = lattice_count(2, dimension, radius**2)
    assert inner <= middle <= lattice_count(math.inf, dimension, radius)


def test_the_volume_is_the_limit_of_the_count() -> None:
    for norm, bound in ((1, 10**9), (2, 10**18), (math.inf, 10**9)):
        count = log_lattice_count_upper(norm, 3, bound)
        assert math.isclose(count, log_ball_volume_upper(norm, 3, 10**9), abs_tol=1e-7)


def test_an_expensive_count_is_refused_before_it_is_tried() -> None:
    with pytest.raises(ParameterError, match="coarser"):
        log_lattice_count_upper(1, 10**9, 10**9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: log_ball_volume_upper(3, 2, 1), "norm"),
        (lambda: log_ball_volume_lower(2, 0, 1), "dimension"),
        (lambda: log_ball_volume_upper(2, 2, 0), "radius"),
        (lambda: log_lattice_count_upper(0.5, 2, 1), "norm"),
        (lambda: log_lattice_count_lower(2, 1.5, 1), "dimension"),  # type: ignore[arg-type]
        (lambda: log_lattice_count_upper(2, 2, -1), "bound"),
    ],
)
def test_bad_input_is_refused_by_name(call: Callable[[], float], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.name == name
