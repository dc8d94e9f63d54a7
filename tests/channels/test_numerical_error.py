"""Theorem N on a line, exactly: adversarial errors ±r, cells finer and far coarser than the noise.

All laws are sums of exponentials of rationals, so that even a loss equal to its bound is decided.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from channels.noise_laws import HALF, laplace_cdf
from channels.verdicts import exp_below
from reference.chi_square import goodness_of_fit, tally
from zerodelta.audit.exact import ExpRational, certainly_impure, certainly_pure, extreme_pairs
from zerodelta.channels.channel import NumericalError
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.spaces import Ball

F = Fraction
IDEAL = (F(-1), F(1, 3), F(1))
"""The values the ideal mechanism takes."""


def cells(purifier: NumericalError, at: Fraction) -> dict[int, ExpRational]:
    """The law of round_s(at + K); both ends lie beyond every value, where all tails are alike."""
    s, b = purifier.spacing, purifier.scale
    last = int(2 / s) + 2
    steps = [laplace_cdf((k + HALF) * s - at, b) for k in range(-last, last)]
    ends = [ExpRational.of(0), *steps, ExpRational.of(1)]
    masses: list[ExpRational] = [high - low for low, high in itertools.pairwise(ends)]
    return dict(zip(range(-last, last + 1), masses, strict=True))


def output(
    purifier: NumericalError, law: tuple[Fraction, ...], errors: tuple[int, ...]
) -> dict[int, Any]:
    """The published law when the value x of the ideal mechanism is computed as x + sign·r."""
    total: dict[int, Any] = {}
    for weight, x, sign in zip(law, IDEAL, errors, strict=True):
        for k, p in cells(purifier, x + sign * purifier.error).items():
            total[k] = total.get(k, ExpRational.of(0)) + weight * p
    return total


CASES = [
    # error, scale, spacing
    (F(1, 10), F(1, 2), F(1, 4)),
    (F(1, 10), F(1, 5), F(2)),
    (F(1, 100), F(1, 50), F(1)),
]


def built(error: Fraction, scale: Fraction, spacing: Fraction) -> NumericalError:
    return NumericalError(space=Ball(1, 1), error=error, scale=scale, spacing=spacing)


@pytest.mark.parametrize(("error", "scale", "spacing"), CASES)
def test_an_approximately_computed_pure_mechanism_is_certainly_pure(
    error: Fraction, scale: Fraction, spacing: Fraction
) -> None:
    """Every extreme pure pair on three values, every pattern of errors of size r on both sides."""
    purifier, base = built(error, scale, spacing), F(1, 2)
    total = base + 2 * error / scale
    assert purifier.proves(total, PureDP(base))
    assert not purifier.proves(total - F(1, 10**9), PureDP(base))
    signs = list(itertools.product((-1, 1), repeat=3))
    pairs = [(p, q) for p, q in extreme_pairs(3, exp_below(base), 0) if p < q]
    assert pairs
    laws = {(p, e): output(purifier, p, e) for pair in pairs for p in pair for e in signs}
    for p, q in pairs:
        for e, f in itertools.product(signs, repeat=2):
            assert certainly_pure(laws[p, e], laws[q, f], total)


@pytest.mark.parametrize(("error", "scale", "spacing"), CASES)
def test_the_price_of_an_error_is_exactly_two_r_over_b(
    error: Fraction, scale: Fraction, spacing: Fraction
) -> None:
    """One ideal value, errors in opposite directions: half the price is caught, also 1e-30 less."""
    purifier = built(error, scale, spacing)
    p, q = (output(purifier, (F(1), F(0), F(0)), (sign, 1, 1)) for sign in (-1, 1))
    price = 2 * error / scale
    assert certainly_pure(p, q, price)
    assert certainly_impure(p, q, price - F(1, 10**30))
    assert certainly_impure(p, q, error / scale)


def test_half_the_noise_is_caught() -> None:
    purifier = built(F(1, 10), F(1, 2), F(1, 4))
    half = built(purifier.error, purifier.scale / 2, purifier.spacing)
    p, q = (output(half, (F(1), F(0), F(0)), (sign, 1, 1)) for sign in (-1, 1))
    assert certainly_impure(p, q, 2 * purifier.error / purifier.scale)


def test_rounding_before_the_noise_is_caught() -> None:
    """A value rounded to the lattice first: two values an error apart become two cells apart."""
    purifier = built(F(1, 100), F(1, 50), F(1))
    p, q = cells(purifier, F(0)), cells(purifier, F(1))
    assert certainly_impure(p, q, 2 * purifier.error / purifier.scale)


def test_only_a_pure_ideal_mechanism_is_accepted() -> None:
    purifier = built(F(1, 100), F(1, 50), F(1))
    assert not purifier.proves(50, ApproxDP(1, -500.0))


@pytest.mark.parametrize(("error", "scale", "spacing"), CASES[:2])
@pytest.mark.parametrize("value", [0.3, -0.875])
def test_apply_has_the_law(
    error: Fraction, scale: Fraction, spacing: Fraction, value: float
) -> None:
    """The published point is cut to [-1, 1]."""
    purifier = built(error, scale, spacing)
    law = cells(purifier, F(value))
    bits = ReplayBits(f"numerical error {spacing} {value}")
    draws = [float(purifier.apply(np.array([value]), bits)[0]) for _ in range(2000)]
    seen: dict[float, float] = {}
    for k, p in law.items():
        point = min(max(float(k * spacing), -1.0), 1.0)
        seen[point] = seen.get(point, 0.0) + float(p)
    keys = sorted(seen)
    indices = [keys.index(draw) for draw in draws]
    counts = tally(indices, 0, len(keys) - 1)
    assert goodness_of_fit(counts, [0.0, *(seen[key] for key in keys), 0.0]) > 1e-4
