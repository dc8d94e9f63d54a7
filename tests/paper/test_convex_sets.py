"""The convex-set lemma as a calculator: against balls, cubes, and mass that really has to move."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from zerodelta.errors import ParameterError
from zerodelta.paper.convex_sets import ConvexSet
from zerodelta.privacy.theorems.smoothing import log_transport_radius

F = Fraction
SIZE: dict[str, Any] = {"mixing_weight": F(1, 100), "base_epsilon": 1}
NORMS = (1, F(3, 2), 2, 5, math.inf)


def unit_volume(norm: float, dimension: int) -> float:
    inverse = 0.0 if norm == math.inf else 1 / float(norm)
    return (2 * math.gamma(1 + inverse)) ** dimension / math.gamma(1 + dimension * inverse)


def moved_mass(delta: float) -> float:
    """TV/ω."""
    return 99 * delta / (1 + math.e)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("dimension", [1, 2, 9])
def test_on_a_ball_it_is_theorem_w(norm: Any, dimension: int) -> None:
    ball = ConvexSet(dimension=dimension, inner_radius=3, diameter=6, norm=norm)
    log_delta = -5.0 * dimension
    wanted = log_transport_radius(
        dimension=dimension, diameter=6, weight=F(1, 100), epsilon=1, log_delta=log_delta
    )
    found = ball.radius(log_delta=log_delta, **SIZE)
    assert math.isclose(found, math.exp(wanted), rel_tol=1e-12)
    volume = F(unit_volume(norm, dimension)) * 3**dimension
    known = ConvexSet(
        dimension=dimension, inner_radius=3, diameter=6, norm=norm, volume=volume * F(1001, 1000)
    )
    assert math.isclose(known.radius(log_delta=log_delta, **SIZE), found, rel_tol=2e-3)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8])
def test_a_cube_in_the_euclidean_norm(dimension: int) -> None:
    """Between what mass at a corner needs and the bound by hand, with the volume and without."""
    side, delta = math.isqrt(dimension * 10**20) + 1, 1e-4**dimension
    cube: dict[str, Any] = {
        "dimension": dimension,
        "inner_radius": F(1, 2),
        "diameter": F(side, 10**10),  # √d, rounded up
    }
    power = moved_mass(delta) ** (1 / dimension)
    known = ConvexSet(**cube, volume=1).radius(delta=F(delta), **SIZE)
    unknown = ConvexSet(**cube).radius(delta=F(delta), **SIZE)
    share = unit_volume(2, dimension) ** (1 / dimension)
    assert math.isclose(known, min(2 / share, math.sqrt(dimension)) * math.sqrt(dimension) * power)
    assert math.isclose(unknown, dimension * power, rel_tol=1e-9)
    # the points within Δ of a corner are a 2^-d-th of a ball: they must hold the mass TV
    corner = 2 * power / share
    assert corner <= known * (1 + 1e-12)
    assert known <= unknown * (1 + 1e-12)


def test_the_radius_is_a_quarter_of_what_the_printed_lemma_has() -> None:
    """The lemma as printed has r/4R for r/R."""
    square = ConvexSet(dimension=2, inner_radius=F(1, 2), diameter=1, norm=math.inf, volume=1)
    printed = 4 * math.sqrt(moved_mass(1e-9))
    assert math.isclose(square.radius(delta="1e-9", **SIZE), printed / 4)


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_the_delta_that_is_needed_gives_the_radius_back_and_no_more(norm: Any) -> None:
    thin = ConvexSet(dimension=4, inner_radius=F(1, 10), diameter=2, norm=norm)
    log_delta = thin.log_delta(radius=F(1, 50), **SIZE)
    assert thin.radius(log_delta=log_delta, **SIZE) <= F(1, 50) * (1 + F(1, 10**12))
    assert thin.radius(log_delta=log_delta + 0.01, **SIZE) > F(1, 50)
    assert thin.radius(log_delta=0.0, **SIZE) == 2.0  # never more than the diameter


def test_the_noise_is_twice_the_l1_radius_over_what_is_left_of_epsilon() -> None:
    body = ConvexSet(dimension=9, inner_radius=1, diameter=4)
    radius = body.radius(log_delta=-90.0, **SIZE)
    scale = body.noise_scale(epsilon=F(5, 4), log_delta=-90.0, **SIZE)
    assert math.isclose(scale, 2 * 3 * radius / 0.25, rel_tol=1e-12)
    assert scale >= 2 * 3 * radius / 0.25 * (1 - 1e-15)


@pytest.mark.parametrize(
    "change",
    [
        {"inner_radius": 2},
        {"inner_radius": 0},
        {"diameter": 0},
        {"norm": F(1, 2)},
        {"dimension": 0},
        {"volume": 0},
        {"volume": 3},
    ],
    ids=str,
)
def test_impossible_sets_are_refused(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"dimension": 2, "inner_radius": 1, "diameter": 3}
    with pytest.raises(ParameterError):
        ConvexSet(**{**options, **change})


@pytest.mark.parametrize("change", [{"radius": 3}, {"radius": 0}, {"mixing_weight": 1}], ids=str)
def test_impossible_questions_are_refused(change: dict[str, Any]) -> None:
    body = ConvexSet(dimension=2, inner_radius=1, diameter=3)
    with pytest.raises(ParameterError):
        body.log_delta(**{"radius": 1, **SIZE, **change})
