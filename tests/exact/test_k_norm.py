"""K-norm noise as a vector: joint law, high dimension, and real noise as rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.integrate import dblquad
from scipy.stats import gamma, kstest

from reference.chi_square import goodness_of_fit
from zerodelta.exact import float_balls
from zerodelta.exact import noise as k_norm
from zerodelta.exact import noise as real_k_norm
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import RealKNorm, box_muller, rounded_k_norm, rounded_uniform_plus_k_norm

HALF_WIDTH = 4


def plane_counts(norm: float, scale: int, size: int) -> list[int]:
    """Counts of the 9 x 9 cells around the origin in Z², then of everything else."""
    points = rounded_k_norm(
        norm=norm, dimension=2, scale=scale, size=size, bits=ReplayBits(f"plane {norm}")
    )
    inside = (np.abs(points) <= HALF_WIDTH).all(axis=1)
    width = 2 * HALF_WIDTH + 1
    cell = (points[inside] + HALF_WIDTH) @ np.array([width, 1])
    counts = np.bincount(cell, minlength=width**2).tolist()
    return [*counts, size - sum(counts)]


def plane_probabilities(norm: float, scale: int) -> list[float]:
    lengths: dict[float, Callable[[float, float], float]] = {
        1: lambda x, y: abs(x) + abs(y),
        2: math.hypot,
        math.inf: lambda x, y: max(abs(x), abs(y)),
    }
    volume = {1: 4, 2: 2 * math.pi, math.inf: 8}[norm] * scale**2
    length = lengths[norm]
    cells = []
    for x in range(-HALF_WIDTH, HALF_WIDTH + 1):
        for y in range(-HALF_WIDTH, HALF_WIDTH + 1):
            # the density has kinks at 0 and on diagonals: integrate each quarter of the cell
            mass = sum(
                dblquad(lambda b, a: math.exp(-length(a, b) / scale), u, u + 0.5, v, v + 0.5)[0]
                for u in (x - 0.5, x)
                for v in (y - 0.5, y)
            )
            cells.append(mass / volume)
    return [*cells, 1 - sum(cells)]


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_the_joint_law_in_the_plane_is_that_of_the_norm(norm: float) -> None:
    expected = plane_probabilities(norm, 2)
    assert goodness_of_fit(plane_counts(norm, 2, 400_000), expected) > 1e-3


def test_the_joint_test_tells_the_norms_apart() -> None:
    expected = plane_probabilities(2, 2)
    assert goodness_of_fit(plane_counts(math.inf, 2, 400_000), expected) < 1e-9


def test_gamma_of_d_plus_1_on_the_sphere_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The crossed pair of theory R(ii): no mass at the origin, infinite privacy loss."""

    def on_the_sphere(dimension: int, pairs: int, uniforms: Any) -> Any:
        normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:dimension]
        return normals / (normals * normals).total().sqrt()

    monkeypatch.setattr(k_norm, "_euclidean", on_the_sphere)
    assert goodness_of_fit(plane_counts(2, 2, 400_000), plane_probabilities(2, 2)) < 1e-9


@pytest.mark.parametrize("dimension", [100, 1000])
def test_the_norm_is_gamma_in_high_dimension(dimension: int) -> None:
    vectors = rounded_k_norm(
        norm=2, dimension=dimension, scale=10**6, size=2000, bits=ReplayBits("high")
    )
    lengths = np.sqrt((vectors.astype(float) ** 2).sum(axis=1)) / 1e6
    assert kstest(lengths, gamma(dimension).cdf).pvalue > 1e-3
    assert kstest(lengths * 1.02, gamma(dimension).cdf).pvalue < 1e-3


@pytest.mark.parametrize("norm", [2, math.inf])
def test_all_coordinates_of_a_slow_vector_come_from_one_string(
    norm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = rounded_k_norm(norm=norm, dimension=30, scale=50, size=3, bits=ReplayBits("one"))
    monkeypatch.setattr(float_balls, "KERNEL_ERROR", 1e300)
    slow = rounded_k_norm(norm=norm, dimension=30, scale=50, size=3, bits=ReplayBits("one"))
    assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("dimension", [1000, 1001])
def test_a_coordinate_in_high_dimension_is_known_to_46_bits(dimension: int) -> None:
    """Each coordinate of a vector is a chance of the slow path: its radius must not grow with d."""
    noise = k_norm._noise(2, dimension)
    words = ReplayBits("radius").words(noise.uniforms * 20).reshape(noise.uniforms, 20)
    vectors = noise.formula(float_balls.FloatBalls.uniform(words))
    lengths = np.sqrt((vectors.middle**2).mean(axis=0))
    assert (vectors.radius.mean(axis=0) < lengths * 2.0**-46).all()


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_uniform_point_of_a_ball_has_its_radius_and_its_signs(
    norm: float, dimension: int
) -> None:
    """P(norm <= t·radius) = t^d, and the signs are fair; the noise is too small to be seen."""
    radius, size = 10**9, 3000
    points = rounded_uniform_plus_k_norm(
        ball_norm=norm,
        radius=radius,
        noise_norm=norm,
        scale="1/1000",
        dimension=dimension,
        size=size,
        bits=ReplayBits(f"ball {norm} {dimension}"),
    )
    lengths = np.linalg.norm(points.astype(float), ord=norm, axis=1) / radius
    assert kstest(lengths**dimension, "uniform").pvalue > 1e-3
    signs = np.bincount((points > 0) @ (1 << np.arange(dimension)), minlength=1 << dimension)
    assert goodness_of_fit(signs.tolist(), [1 / (1 << dimension)] * (1 << dimension)) > 1e-3


# -- real noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 1), (5, 3)])
@pytest.mark.parametrize("error", [Fraction(10**6), Fraction(1), Fraction(1, 10**30)])
def test_all_coordinates_together_are_within_the_error(
    rows: int, columns: int, error: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[Fraction] = []
    decide = real_k_norm._finite_radius

    def noted(value: Any, most: Fraction) -> bool:
        allowed.append(most)
        return decide(value, most)

    monkeypatch.setattr(real_k_norm, "_finite_radius", noted)
    noise = RealKNorm(rows=rows, columns=columns, scale=10**40, bits=ReplayBits("far"))
    near = noise.within(error)
    assert max(allowed) * rows * columns <= error**2  # squared radii, added up
    exact = noise.within(error / 10**9)
    distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(near, exact, strict=True)))
    assert distance <= float(error) * (1 + 1e-8)


def test_a_coordinate_is_accepted_if_and_only_if_its_radius_is_small_enough() -> None:
    for radius in (Fraction(1, 4), Fraction(4)):
        value = arb(1, float(radius))
        assert real_k_norm._finite_radius(value, radius**2 * (1 + Fraction(1, 10**6)))
        assert not real_k_norm._finite_radius(value, radius**2 * (1 - Fraction(1, 10**6)))


@pytest.mark.parametrize("centered", [False, True])
def test_the_length_has_one_exponential_for_each_dimension_of_the_space(centered: bool) -> None:
    """Lines that sum to 0 have one dimension less. All uniforms are 1/2: each adds ln 2."""
    rows, columns = 3, 4
    dimension = rows * (columns - 1 if centered else columns)
    uniforms = 2 * 6 + dimension
    bits = ReplayBits("halves", tape=(bytes(7) + b"\x80") * uniforms)
    noise = RealKNorm(rows=rows, columns=columns, scale=1, centered=centered, bits=bits)
    length = math.sqrt(sum(float(x) ** 2 for x in noise.within(Fraction(1, 10**6))))
    assert length == pytest.approx(dimension * math.log(2), rel=1e-5)
