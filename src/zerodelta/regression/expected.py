"""What forecasts of a regression's error assume of unseen rows, and probabilities that follow."""

from __future__ import annotations

import math

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.value import value

_ENOUGH = 20.0
"""`informed` from which the forecast of the noise is taken as it is."""


@value
class Expected:
    """Rows that vary so much, evenly in all directions, and a model that explains so much.

    No fit depends on it. Rows that vary unevenly have larger errors than forecast.
    """

    signal: float
    """Root mean square of what a model predicts: targets within 1, or log-odds."""

    row_length: float = math.sqrt(0.5)
    """Root mean square distance of a row from the mean row, as a part of the rows' bound.

    Errors follow its inverse square: 1 for rows on a sphere, 3 for rows in a cube, 2 by default.
    """

    def given(self, *, row_length: Rational | None, signal: Rational | None) -> Expected:
        """Return these numbers where the user knows better.

        >>> LOG_ODDS.given(row_length="0.3", signal=None)
        Expected(signal=2.0, row_length=0.3)
        """
        length = self.row_length if row_length is None else _positive(row_length, "row_length")
        require(
            length <= 1,
            "row_length",
            row_length,
            expected="a part of data_norm, at most 1",
            remedy="pass the typical distance of a row from the mean row over data_norm",
        )
        return Expected(
            signal=self.signal if signal is None else _positive(signal, "signal"),
            row_length=length,
        )

    @property
    def spread(self) -> float:
        """The rows' variance, over all columns, if rows with their constant 1/2 have length 1."""
        return 0.8 * self.row_length**2

    def variances(self, columns: int, *, intercept: bool) -> tuple[float, ...]:
        """Return the mean squares along each of so many directions, the intercept's the last.

        >>> LOG_ODDS.given(row_length=1, signal=None).variances(3, intercept=True)
        (0.4, 0.4, 0.2)
        """
        if not intercept:
            return (self.row_length**2 / columns,) * columns
        return (self.spread / (columns - 1),) * (columns - 1) + (0.2,)

    @property
    def explained(self) -> float:
        """The mean square of what is predicted."""
        return self.signal**2

    @property
    def curvature(self) -> float:
        """The mean curvature of the logistic loss where log-odds are normal.

        σ(t) is about Φ(t√(π/8)); the mean of its slope is known then.

        >>> [round(Expected(signal=s).curvature, 2) for s in (1, 2, 4)]  # true: 0.21, 0.15, 0.09
        [0.21, 0.16, 0.09]
        """
        return 0.25 * math.sqrt(self.flatness)

    @property
    def flatness(self) -> float:
        """The part of that curvature that there is along the signal.

        Rows far out along it are told apart with certainty, and curve the loss the least.

        >>> [round(Expected(signal=s).flatness, 2) for s in (1, 2, 4)]  # true: 0.70, 0.40, 0.16
        [0.72, 0.39, 0.14]
        """
        return 1 / (1 + math.pi / 8 * self.explained)

    def shrunk(self, penalty: float) -> float:
        """Return the excess of the mean logistic loss if `penalty`/2 squared log-odds are added.

        Log-odds shrunk by t have the excess (2/π)(√(1+at²) - √(1+a) + a(1-t)/√(1+a)), a = πs²/8:
        the integral of the curvature, which grows on the way.

        >>> nothing_learned = LOG_ODDS.shrunk(math.inf)
        >>> 0 < LOG_ODDS.shrunk(0.1) < nothing_learned < math.log(2)
        True
        """
        a = math.pi / 8 * self.explained
        low, high = 0.0, 1.0
        for _ in range(50):
            t = (low + high) / 2
            rises = t / math.sqrt(1 + a * t * t) + 4 * penalty * t > math.sqrt(self.flatness)
            low, high = (low, t) if rises else (t, high)
        left = math.sqrt(1 + a * low * low) - math.sqrt(1 + a)
        return max(0.0, 2 / math.pi * (left + a * (1 - low) * math.sqrt(self.flatness)))


TARGETS = Expected(signal=0.3)
"""Targets in [-1, 1] of which a linear model explains 0.3."""

LOG_ODDS = Expected(signal=2.0)
"""Labels of which the best classifier tells four in five."""


def limited(excess: float, most: float) -> float:
    """Return a forecast that levels off at what a model without any slope loses."""
    return excess * most / (excess + most)


def temperature(*, noise: float, informed: float) -> float:
    """Return what a private classifier divides its scores by before they become probabilities.

    At least 1. Where noise dominates, probabilities made of noisy log-odds are worse than equal
    ones. A function of public numbers, so that it costs no privacy, and the same for all classes,
    so that it changes no prediction.

    `noise` is the variance that noise is expected to give to the log-odds of two classes, and
    `informed` the path of θ from 0 along the mean gradient over the variance of the noise of a
    coordinate: n/Λ over that variance for noise in an objective, the sum of all steps over it for a
    descent. Where log-odds are known up to a variance V, their mean probability is that of
    log-odds/√(1 + πV/8); where the rows say little, they count as noise too. Half of the root
    is least harmful: penalty and margin have shrunk the scores already
    (`bench/defaults_classifiers.py` prints log losses with and without).

    >>> temperature(noise=0.5, informed=100), round(temperature(noise=15, informed=2.5), 1)
    (1.0, 9.7)
    """
    weak = max(1.0, _ENOUGH / max(informed, 1e-9))
    return max(1.0, math.sqrt(1 + math.pi / 8 * noise * weak**2) / 2)


def expected_length(theta: Floats) -> Floats:
    """Clip a published point to twice the length that coefficients may be expected to have.

    Post-processing: a random point of the lattice, published with tiny probability, is far away.
    """
    most = 2 * math.sqrt(len(theta))
    return theta * min(1.0, most / max(float(np.linalg.norm(theta)), most / 2**10))


def _positive(value: Rational, name: str) -> float:
    return float(as_positive(value, name))
