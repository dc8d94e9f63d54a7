"""Theorem N on a line, exactly: adversarial errors, cells finer and far coarser than the noise.

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
    """One ideal value, errors in opposite directions: 1e-30 less is caught, and half the noise."""
    (p, q), (one, two) = (
        [output(built(error, b, spacing), (F(1), F(0), F(0)), (sign, 1, 1)) for sign in (-1, 1)]
        for b in (scale, scale / 2)
    )
    price = 2 * error / scale
    assert certainly_pure(p, q, price)
    assert certainly_impure(p, q, price - F(1, 10**30))
    assert certainly_impure(one, two, price)


def test_rounding_before_the_noise_is_caught() -> None:
    """A value rounded to the lattice first: two values an error apart become two cells apart."""
    purifier = built(F(1, 100), F(1, 50), F(1))
    p, q = cells(purifier, F(0)), cells(purifier, F(1))
    assert certainly_impure(p, q, 2 * purifier.error / purifier.scale)


def test_only_a_pure_ideal_mechanism_is_accepted() -> None:
    purifier = built(F(1, 100), F(1, 50), F(1))
    assert not purifier.proves(50, ApproxDP(1, -500.0))


# -- what the noise is added to -------------------------------------------------------------------


CHANNEL = NumericalError(
    space=Ball(1, 2**61), error=Fraction(1), scale=Fraction(1, 1000), spacing=Fraction(1)
)


@pytest.mark.parametrize(
    "value",
    [
        np.array([2**60 + 129]),
        [2**60 + 129],
        [Fraction(2**60 + 129)],
        np.array([2**60 + 129], dtype=object),
    ],
)
def test_big_integers_keep_their_last_digits(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    centers: list[Any] = []
    draw = CHANNEL.apply.__globals__["rounded_k_norm"]

    def spy(**options: Any) -> Any:
        centers.append(options["center"])
        return draw(**options)

    monkeypatch.setitem(CHANNEL.apply.__globals__, "rounded_k_norm", spy)
    CHANNEL.apply(value, ReplayBits("exact"))
    assert centers == [[Fraction(2**60 + 129)]]
