"""What a claim is: a promise about a mechanism's output, and the profile ln δ(ε) it proves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

from zerodelta.errors import require
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.threshold import excess_over, safe_end


class Claim(ABC):
    """A promise about a mechanism's output on every pair of neighboring datasets."""

    __slots__ = ()

    neighbors: Neighbors

    @abstractmethod
    def log_delta(self, epsilon: Rational) -> float:
        """Return a float at least ln δ(ε), in [-inf, 0]: the mechanism is (ε, δ(ε))-DP."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Return "kind" and exact numbers from which `claim_from_numbers` restores it."""

    def epsilon(self, log_delta: float) -> float:
        """Return a float ε, rounded up, with ``self.log_delta(ε) <= log_delta``; inf if none.

        >>> from zerodelta.privacy.claims import GaussianDP, PureDP
        >>> PureDP("1/2").epsilon(-math.inf), GaussianDP(1).epsilon(-math.inf)
        (0.5, inf)
        """
        require(
            log_delta <= 0,
            "log_delta",
            log_delta,
            "a logarithm of a probability, at most 0",
            "pass ln δ, such as -30.0, not δ",
        )  # also NaN

        def excess(epsilon: float) -> float:
            return excess_over(self.log_delta(epsilon), log_delta)

        if excess(0.0) <= 0:
            return 0.0
        unsafe, safe = 0.0, 1.0
        while excess(safe) > 0:
            unsafe, safe = safe, 4 * safe * safe
            if math.isinf(safe):
                return math.inf
        return safe_end(excess, safe=safe, unsafe=unsafe)

    def __repr__(self) -> str:
        numbers = self.numbers()
        del numbers["kind"]
        shown = ", ".join(f"{name}={_text(value)}" for name, value in numbers.items())
        return f"{type(self).__name__}({shown}, neighbors={self.neighbors.value})"


def _text(value: Any) -> str:
    return number_text(value) if isinstance(value, (int, Fraction)) else str(value)
