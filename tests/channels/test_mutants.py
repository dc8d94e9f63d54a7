"""Plausible mistakes, each built on purpose and each caught by the checks of the real channels.

Every test first lets the real channel pass the check that catches the mutant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from channels.cases import BODIES, MIXING, W, algorithm_one
from channels.channel_laws import Row, body_of, fit, mixed, row, rows_of, values_of
from channels.noise_laws import cube_noise, cube_uniform_plus_noise
from channels.verdicts import exp_below, is_broken, is_pure, largest_ratio
from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import KernelMix
from zerodelta.channels.mixes import FiniteMix, GaussianMix, GridMix, LaplaceMix
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli, uniform_below
from zerodelta.exact.logs import ball
from zerodelta.privacy.theorems import mixing
from zerodelta.privacy.theorems.mixing import GaussianNet, KNormKernel
from zerodelta.spaces import Ball, BallLattice, Box, Finite, GridLattice

F = Fraction
T = F(1)
pytestmark = pytest.mark.slow


def holds(rows: Sequence[Row], log_delta: float, epsilon: Fraction = T) -> bool:
    return is_pure(rows, factor=exp_below(epsilon), delta=exp_below(log_delta), epsilon=epsilon)


def caught(rows: Sequence[Row], log_delta: float, epsilon: Fraction = T) -> bool:
    return is_broken(rows, factor=exp_below(epsilon), delta=exp_below(log_delta), epsilon=epsilon)


NEARLY_TIGHT = [
    name
    for name in MIXING
    if name.split("-")[0] in ("finite", "prior", "grid", "local", "gaussian", "laplace")
    or name in ("cube-1d", "cube-2d")
]
"""Half the weight is caught wherever theory's constant is within a factor 2 of the truth."""


@pytest.mark.parametrize("name", NEARLY_TIGHT)
def test_half_the_mixing_weight_is_caught(name: str) -> None:
    purifier: Any = MIXING[name]
    accepted = purifier.log_delta_required(T)
    half = replace(purifier, mixing_weight=purifier.mixing_weight / 2)
    assert holds(rows_of(purifier), accepted)
    assert caught(rows_of(half), accepted)


@pytest.mark.parametrize("name", ["cube-1d", "cube-2d"])
def test_half_the_laplace_noise_is_caught(name: str) -> None:
    purifier: Any = MIXING[name]
    accepted = purifier.log_delta_required(T)
    assert holds(rows_of(purifier), accepted)
    assert caught(rows_of(replace(purifier, scale=purifier.scale / 2)), accepted)


@pytest.mark.parametrize(("dimension", "radius"), [(1, 3), (2, 2)])
def test_half_the_laplace_noise_in_the_mixing_draw_is_caught(dimension: int, radius: int) -> None:
    lattice = Ball(dimension, radius, norm=1).lattice(1)
    purifier = LaplaceMix(lattice=lattice, mixing_weight=W)
    accepted, scale = purifier.log_delta_required(T), purifier.scale / 2
    assert holds(rows_of(purifier), accepted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaplaceMix, "scale", property(lambda _: scale))
        assert caught(rows_of(purifier), accepted)


def test_half_the_noise_and_the_radius_for_the_diameter_are_caught_in_algorithm_one() -> None:
    """A base with ε = 0, where Theorem W is nearly tight; half the diameter is half the noise."""
    body, extra, log_delta = BODIES["grid-1d"], F(1, 10), -8.0
    purifier = algorithm_one(body, base=F(0), extra=extra, log_delta=log_delta)

    def broken(scale: Fraction) -> bool:
        return is_broken(
            rows_of(replace(purifier, scale=scale)),
            factor=F(1),
            delta=exp_below(log_delta),
            epsilon=extra,
        )

    assert not broken(purifier.scale)
    assert broken(purifier.scale / 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(body), "radius", property(lambda _: F(1, 2)))  # so that 2·radius is 1
        mutant = algorithm_one(body, base=F(0), extra=extra, log_delta=log_delta)
    assert mutant.scale == pytest.approx(purifier.scale / 2, rel=1e-9)
    assert broken(mutant.scale)


def test_the_radius_for_the_diameter_is_caught_in_theorem_k() -> None:
    """A square of radius 24 with linf noise of scale 4: its corners seen from far outside."""
    radius, scale = 24, F(4)
    purifier = KernelMix(
        body=body_of(Box(0, 1, dimension=2).grid(2 * radius + 1)),
        noise_norm=math.inf,
        scale=scale,
        mixing_weight=W,
    )
    assert purifier.body.radius == radius
    rows = []
    for y in (radius, -radius):
        cells = [(radius + 2, radius + 2), (radius + 2, radius), (radius, 0)]
        kept = {z: cube_noise(z[0] - y, z[1] - y, scale) for z in cells}
        drawn = {z: cube_uniform_plus_noise(*z, radius, scale) for z in cells}
        rows.append(mixed(kept, drawn, W))
    assert holds(rows, purifier.log_delta_required(T))
    theorem = KNormKernel(dimension=2, diameter=F(radius), scale=scale, weight=W)
    assert caught(rows, theorem.log_delta_required(T))


@pytest.mark.parametrize(("radius", "spacing"), [(1, F(1, 2)), (3, F(1))])
def test_a_ball_lattice_without_its_boundary_layer_is_caught(
    radius: int, spacing: Fraction
) -> None:
    """Bound ⌊(r/s)²⌋ for ⌊(r/s + √d/2)²⌋, while rounding still publishes what lies beyond."""
    lattice = Ball(2, radius).lattice(spacing)
    purifier = GaussianMix(lattice=lattice, mixing_weight=W)
    short = math.floor((radius / spacing) ** 2)
    assert short < lattice.bound
    assert holds(rows_of(purifier), purifier.log_delta_required(T))
    variance = F(short, 2) + F(1, 12)
    theorem = GaussianNet(dimension=2, bound=short, variance=variance, weight=W)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianMix, "variance", property(lambda _: variance))
        rows = rows_of(purifier)
    assert caught(rows, theorem.log_delta_required(T))


@pytest.mark.parametrize("name", [*NEARLY_TIGHT, "kernel-linf-1d"])
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1, 4)], ids=str)
def test_e_to_the_t_instead_of_e_to_the_t_minus_one_is_caught(
    name: str, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    purifier = MIXING[name]
    rows = rows_of(purifier)
    assert holds(rows, purifier.log_delta_required(epsilon), epsilon)

    largest = mixing.largest_log_delta

    def wrong(*, epsilon: Fraction, weight: Fraction, log_mass: float) -> float:
        right = largest(epsilon=epsilon, weight=weight, log_mass=log_mass)
        return min(right + float(epsilon) - math.log(math.expm1(epsilon)), -1e-6)

    monkeypatch.setattr(mixing, "largest_log_delta", wrong)
    assert caught(rows, purifier.log_delta_required(epsilon), epsilon)


OUTSIDE: dict[str, Any] = {
    "gaussian-1d": [4.0],
    "gaussian-2d": [3.0, 3.0],
    "laplace-2d": [2.0, 2.0],
    "kernel-l2-1d": [8.0],
    "cube-1d": [3.0],
    "grid-1d": [2.0],
}
REACH = 10
"""A window that also holds the values above."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_value_that_is_not_projected_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    purifier: Any = MIXING[name]
    values = [*values_of(purifier), np.array(OUTSIDE[name])]

    def rows() -> list[Row]:
        return [row(purifier, value, REACH) for value in values]

    accepted = purifier.log_delta_required(T)
    assert holds(rows(), accepted)

    def unprojected_ball(self: BallLattice, value: Any) -> Any:
        offset = np.asarray(value, dtype=float) - self.ball.middle()
        return np.rint(offset / float(self.spacing)).astype(np.int64)

    def unprojected_grid(self: GridLattice, value: Any) -> Any:
        scaled = (np.asarray(value, dtype=float) - self.box.lower.floats()) * self.cells
        return np.floor(scaled / self.box.widths()).astype(np.int64)

    monkeypatch.setattr(BallLattice, "quantize", unprojected_ball)
    monkeypatch.setattr(GridLattice, "quantize", unprojected_grid)
    assert caught(rows(), accepted)


def test_rounding_to_nearest_instead_of_outwards_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ln N and the bound on ln δ rounded to nearest accept a δ beyond the exact threshold."""

    def nearest(evaluate: Any) -> float:
        value: arb = evaluate()
        return float(value.mid())

    def false_claims() -> int:
        """How many N accept a δ above B1's exact threshold (e^t - 1) w/((1-w) N)."""
        count = 0
        for size in range(2, 60):
            purifier = FiniteMix(space=Finite(size), mixing_weight=W)
            delta = exp_below(purifier.log_delta_required(T))
            excess = ball(delta * (1 - W) * size / W) - ball(T).expm1()
            count += int(excess > 0)
        return count

    assert false_claims() == 0
    monkeypatch.setattr(mixing, "upper", nearest)
    monkeypatch.setattr(mixing, "lower", nearest)
    assert false_claims() > 10
    for size in (2, 3, 4):  # and one of them is a violation that the enumeration finds
        purifier = FiniteMix(space=Finite(size), mixing_weight=W)
        if caught(rows_of(purifier), purifier.log_delta_required(T)):
            return
    for size, weight in itertools.product((2, 3), (F(1, n) for n in range(3, 40))):
        purifier = FiniteMix(space=Finite(size), mixing_weight=weight)
        if caught(rows_of(purifier), purifier.log_delta_required(T)):
            return
    pytest.fail("no false claim was confirmed by enumeration")


def per_coordinate(purifier: GridMix) -> Any:
    """A coin for each coordinate instead of one for the vector."""

    def apply(value: Any, bits: BitSource) -> Any:
        kept = purifier.lattice.quantize(value)
        d = purifier.lattice.dimension
        drawn = uniform_below(purifier.lattice.cells, size=d, bits=bits)
        coins = bernoulli(purifier.mixing_weight, size=d, bits=bits).astype(bool)
        return purifier.lattice.points(np.where(coins, drawn, kept))

    return apply


def test_a_coin_for_each_coordinate_is_caught() -> None:
    purifier = GridMix(lattice=Box(0, 1, dimension=2).grid(3), mixing_weight=F(1, 2))
    value = np.array([0.1, 0.9])
    law = row(purifier, value)
    assert fit(purifier, value, law, 3000).p_value > 1e-4
    assert fit(purifier, value, law, 3000, apply=per_coordinate(purifier)).p_value < 1e-9


def test_a_coin_that_never_lands_on_the_mixing_side_is_caught() -> None:
    """The law check sees a missing mixing branch even at a small weight."""
    purifier: Mixing = MIXING["grid-2d-9"]
    value = values_of(purifier)[0]
    law = row(purifier, value)
    assert largest_ratio(rows_of(purifier)) < 30
    kept = purifier.lattice  # type: ignore[attr-defined]
    never = fit(purifier, value, law, 2000, apply=lambda v, _: kept.points(kept.quantize(v)))
    assert never.p_value < 1e-9
