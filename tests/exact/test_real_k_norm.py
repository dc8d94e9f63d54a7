"""Real noise as rationals: the l2 error of the whole vector is what was asked for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from zerodelta.exact import noise as real_k_norm
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import RealKNorm


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
