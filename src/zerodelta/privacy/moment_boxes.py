"""Where deviations, covariances and correlations lie, given where means of y, z, yz and y² lie.

Values are scaled so that their bounds are -1 and 1. Boxes only: whatever holds for all means of a
box holds for the true ones, with the probability that all of these are inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from zerodelta.exact.arrays import Floats

Ends: TypeAlias = tuple[Floats, Floats]

PAIR_SHARES: Mapping[int, tuple[Fraction, ...]] = {
    3: tuple(Fraction(part, 10) for part in (1, 1, 8)),
    5: tuple(Fraction(part, 10) for part in (1, 1, 4, 2, 2)),
}
"""By the number of means, how much of the error probability each one has: most for yz, because the
means of y and z, for values around the middle of their bounds, matter little."""

_ROUNDED = 2.0**-48
"""More than the float arithmetic of numbers up to 1 is off."""


_LEAST = 1e-100
"""What a deviation counts as that may be 0."""


def covariance_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the mean of yz less that of y times that of z.

    Values that moved by at most ρ move it by at most 2ρ + ρ²: no deviation exceeds 1.
    """
    first, second, product = means[:3]
    corners = [one * other for one in first for other in second]
    slack = 2 * resolution + resolution**2 + _ROUNDED
    low = product[0] - np.maximum.reduce(corners) - slack
    high = product[1] - np.minimum.reduce(corners) + slack
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def correlation_ends(means: Sequence[Ends], resolution: float) -> Ends:
    """Return the ends of the covariance over both deviations, which may be as good as 0."""
    low, high = covariance_ends(means, resolution)
    pairs = zip(means[:2], means[3:], strict=True)
    ends = [deviation_ends(mean, square) for mean, square in pairs]
    least, most = (
        np.prod([np.clip(each[side] + move, _LEAST, 1.0) for each in ends], axis=0)
        for side, move in ((0, -resolution), (1, resolution))
    )
    low = low / np.where(low < 0, least, most) * (1 + _ROUNDED * np.sign(-low))
    high = high / np.where(high > 0, least, most) * (1 + _ROUNDED * np.sign(high))
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def deviation_ends(mean: Ends, square: Ends) -> Ends:
    """Return the ends of √(the mean of y² less the square of the mean)."""
    sizes = np.abs(mean[0]), np.abs(mean[1])
    nearest = np.where((mean[0] <= 0) & (mean[1] >= 0), 0.0, np.minimum(*sizes))
    low = np.clip(square[0] - np.maximum(*sizes) ** 2 - _ROUNDED, 0, 1)
    high = np.clip(square[1] - nearest**2 + _ROUNDED, 0, 1)
    return np.sqrt(low) * (1 - _ROUNDED), np.sqrt(high) * (1 + _ROUNDED)
