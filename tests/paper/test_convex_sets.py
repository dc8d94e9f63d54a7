"""The convex-set lemma as a calculator, and l_q balls: as spaces, in Algorithm 1, by exact laws."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from channels.channel_laws import rows_of, values_of
from channels.verdicts import exp_below, is_broken, is_pure
from spaces.garbage import GARBAGE
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.paper import algorithm_01_02 as algorithm_01
from zerodelta.paper.algorithm_01_02 import channel_for, laplace_scale, purify_ball
from zerodelta.paper.convex_sets import ConvexSet, LqBall
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.theorems.smoothing import log_transport_radius
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.testing import replayed

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


def test_impossible_sets_and_questions_are_refused() -> None:
    given: dict[str, Any] = {"dimension": 2, "inner_radius": 1, "diameter": 3}
    for name, wrong in (
        *(("inner_radius", 2), ("inner_radius", 0), ("diameter", 0), ("norm", F(1, 2))),
        *(("dimension", 0), ("volume", 0), ("volume", 3)),
    ):
        with pytest.raises(ParameterError):
            ConvexSet(**{**given, name: wrong})
    for change in ({"radius": 3}, {"radius": 0}, {"mixing_weight": 1}):
        with pytest.raises(ParameterError):
            ConvexSet(**given).log_delta(**{"radius": 1, **SIZE, **change})


# -- l_q balls ------------------------------------------------------------------------------------


QS = (F(1), F(4, 3), F(3, 2), F(2), F(5, 2), F(3), F(40))


def length(vector: Any, q: Fraction) -> float:
    return float(np.linalg.norm(vector, float(q)))


# --- the space ------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", QS, ids=str)
@pytest.mark.parametrize("center", [0, [5, -1, "1/3"]], ids=str)
def test_projection_is_the_nearest_point_in_l2(q: Fraction, center: Any) -> None:
    """⟨x - p, y - p⟩ <= 0 for every y of the convex set, and only then is p nearest."""
    ball, random = LqBall(3, "3/2", norm=q, center=center), np.random.default_rng(0)
    inside = random.normal(size=(300, 3)) ** 3
    inside *= (1.5 / np.linalg.norm(inside, float(q), axis=1))[:, None]
    for outside in random.normal(size=(40, 3)) * 10.0 ** random.uniform(-1, 3, (40, 1)):
        point = ball.project(ball.middle() + outside)
        assert ball.contains(point)
        offset = point - ball.middle()
        if length(outside, q) <= 1.5:
            assert np.array_equal(point, ball.middle() + outside)
            continue
        assert math.isclose(length(offset, q), 1.5, rel_tol=1e-9)
        against = (inside - offset) @ (outside - offset)
        assert against.max() <= 1e-7 * length(outside, F(2))


@pytest.mark.parametrize("norm", [1, 2])
def test_where_both_exist_the_two_kinds_of_ball_project_alike(norm: int) -> None:
    random = np.random.default_rng(1)
    ours, theirs = LqBall(4, 2, norm=norm, center=1), Ball(4, 2, norm=norm, center=1)
    assert ours.enclosing() == theirs
    for point in random.normal(size=(50, 4)) * 5:
        assert np.allclose(ours.project(point), theirs.project(point), atol=1e-9)
    for p in (1, 2, math.inf):
        assert math.isclose(ours.diameter(p), theirs.diameter(p), rel_tol=1e-12)


@pytest.mark.parametrize("q", QS, ids=str)
def test_any_object_becomes_a_point_of_the_ball(q: Fraction) -> None:
    for ball in (LqBall(2, 1, norm=q), LqBall(2, "1e-100", norm=q, center=[10, "1e-3"])):
        for value in [*GARBAGE, [1e300, -1e300], [1e-300, 2.0], [1e308, 1e308]]:
            assert ball.contains(ball.project(value))


def test_a_ball_is_described_by_all_of_its_numbers() -> None:
    ball = LqBall(3, "1/3", norm="7/3", center=[0, 1, "1/7"])
    told = ball.describe()
    assert told.pop("kind") == "lq-ball"
    assert LqBall(told.pop("dimension"), told.pop("radius"), **told) == ball
    assert ball.norm == F(7, 3)


@pytest.mark.parametrize("norm", ["1/2", 0, -1, math.nan, math.inf, None, "x"])
def test_norms_below_one_or_without_a_value_are_refused(norm: Any) -> None:
    with pytest.raises(ParameterError, match="norm"):
        LqBall(2, 1, norm=norm)


# --- the ball around it ---------------------------------------------------------------------------


@pytest.mark.parametrize("q", QS, ids=str)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_ball_around_holds_every_point_and_no_smaller_one_does(
    q: Fraction, dimension: int
) -> None:
    ball = LqBall(dimension, "3/2", norm=q)
    around = ball.enclosing()
    p = F(int(around.norm))
    assert p <= q
    steps = [F(k, 8) for k in range(-12, 13)]
    for point in itertools.product(steps, repeat=dimension):
        if sum(abs(float(x)) ** float(q) for x in point) <= 1.5 ** float(q):
            assert sum(abs(x) ** p for x in point) <= around.radius**p
    corner = 1.5 * dimension ** (-1 / float(q)) * np.ones(dimension)  # all |x_i| equal
    assert math.isclose(length(corner, p), around.radius, rel_tol=1e-12)


@pytest.mark.parametrize("q", QS, ids=str)
@pytest.mark.parametrize("dimension", [1, 2, 7, 30])
def test_the_noise_is_that_of_line_2_with_q_itself(q: Fraction, dimension: int) -> None:
    """Δ_1 = d^(1-1/q) D_q x whichever ball is mixed in; the lattice adds what its cells need."""
    log_delta = -12.0 * dimension
    channel = channel_for(
        ball=LqBall(dimension, 3, norm=q), epsilon=2, log_delta=log_delta, mixing_weight=F(1, 100)
    )
    wanted = laplace_scale(
        norm=float(q),
        dimension=dimension,
        diameter=6,
        weight=F(1, 100),
        claim=ApproxDP(1, log_delta),
        epsilon=1,
        extra_epsilon=1,
    )
    found = float(channel.scale) * channel.body.unit
    assert float(wanted) * (1 - 1e-9) <= found <= float(wanted) * 1.01
    assert channel.proves(2, ApproxDP(1, log_delta))


@pytest.mark.parametrize("log_delta", [-3.0, -8.0])
@pytest.mark.parametrize(("base", "total"), [(F(1, 10), F(1, 5)), (F(1), F(3, 2))])
@pytest.mark.parametrize("q", [F(4, 3), F(3, 2), F(7, 4)], ids=str)
def test_algorithm_1_is_pure_on_an_l_q_ball_of_the_plane(
    monkeypatch: pytest.MonkeyPatch, q: Fraction, base: Fraction, total: Fraction, log_delta: float
) -> None:
    """All extreme (ε, δ) pairs of laws on the points of the l_q ball; the published integers."""
    monkeypatch.setattr(algorithm_01, "_FINEST", 1)  # two lattice spacings in a radius
    ball = LqBall(2, 1, norm=q)
    channel = channel_for(
        ball=ball, epsilon=total, base_epsilon=base, log_delta=log_delta, mixing_weight=F(1, 5)
    )
    assert channel.body.radius == 2
    projected = {tuple(ball.project(value)) for value in values_of(channel)}
    rows = rows_of(channel, [np.array(value) for value in sorted(projected)])
    assert len(rows) >= 5
    size: dict[str, Any] = {
        "factor": exp_below(base),
        "delta": exp_below(log_delta),
        "epsilon": total,
    }
    assert is_pure(rows, **size)
    if log_delta == -3.0:
        quiet = replace(channel, scale=channel.scale / 100)
        values = [np.array(value) for value in sorted(projected)]
        assert is_broken(rows_of(quiet, values), **size)


# --- the release ----------------------------------------------------------------------------------


@pytest.mark.parametrize("q", QS, ids=str)
def test_a_release_lies_in_the_ball_verifies_and_has_a_forecast(q: Fraction) -> None:
    ball = LqBall(3, 2, norm=q, center=[1, 0, -1])
    for value in (np.array([1.2, 0.1, -1.0]), [50, 0, 0], math.nan, None):
        release = purify_ball(value, ball=ball, epsilon=1, delta="1e-9", mixing_weight="1/100")
        assert ball.contains(release.value)
        assert verify(release.certificate, epsilon=1)
        assert isinstance(release.error, float)


@pytest.mark.parametrize("q", [F(4, 3), F(3)], ids=str)
def test_the_measured_error_is_the_forecast(q: Fraction) -> None:
    ball, bits = LqBall(5, 1, norm=q), ReplayBits(f"l_q {q}")
    value = np.array([0.1, -0.2, 0.3, 0.0, 0.1])
    options: dict[str, Any] = {"ball": ball, "epsilon": 2, "log_delta": -60.0}
    made = [replayed(bits)(purify_ball)(value, mixing_weight="1e-6", **options) for _ in range(200)]
    found = math.sqrt(np.mean([np.sum((release.value - value) ** 2) for release in made]))
    assert 0.8 < found / float(made[0].error) < 1.2
