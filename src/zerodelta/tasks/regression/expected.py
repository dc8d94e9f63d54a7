"""What forecasts of a regression's error assume of rows that nobody has seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive

__all__ = ["LOG_ODDS", "TARGETS", "Expected"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """Rows of this length and a model that explains so much; no fit depends on it.

    The defaults were fitted to rows on a sphere and in a cube (bench/tasks_forecasts.py).
    """

    signal: float
    """Root mean square of what a model predicts: targets within 1, or log-odds."""

    row_length: float = 0.76
    """Root mean square length of a row, as a part of its bound."""

    def given(self, *, row_length: Rational | None, signal: Rational | None) -> Expected:
        """Return these numbers where the user knows better.

        >>> LOG_ODDS.given(row_length="0.3", signal=None)
        Expected(signal=2.0, row_length=0.3)
        """
        length = self.row_length if row_length is None else _positive(row_length, "row_length")
        if length > 1:
            raise ParameterError(
                "row_length",
                row_length,
                expected="a part of data_norm, at most 1",
                remedy="pass the typical length of a row divided by data_norm",
            )
        return Expected(
            signal=self.signal if signal is None else _positive(signal, "signal"),
            row_length=length,
        )

    @property
    def spread(self) -> float:
        """Mean squared length of a row with its intercept if its bound is 1."""
        return 0.8 * self.row_length**2

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
        return 0.25 / math.sqrt(1 + math.pi / 8 * self.explained)


TARGETS = Expected(signal=0.3)
"""Targets in [-1, 1] of which a linear model explains 0.3."""

LOG_ODDS = Expected(signal=2.0)
"""Labels of which the best classifier tells four in five."""


def _positive(value: Rational, name: str) -> float:
    return float(as_positive(value, name))
