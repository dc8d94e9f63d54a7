"""What a plan weighs: the target that is fixed in advance, and the channels that may meet it."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, final

from zerodelta.channels.channel import Mixing
from zerodelta.channels.mix import ProfileMix
from zerodelta.channels.smooth import SmoothMix

__all__ = ["Candidate", "PlannedChannel", "Target", "decimal_down", "decimal_up"]

PlannedChannel: TypeAlias = Mixing | ProfileMix | SmoothMix


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A channel by its weight and its nats, with its predicted error.

    `channel` is the word by which `plan(channel=…)` picks it. One with a `reservation` is picked in
    no other way: it needs what only the caller knows of the value, or has no smaller error.
    """

    channel: str
    name: str
    weight: Fraction
    budget: float
    error: float
    build: Callable[[], PlannedChannel] = field(repr=False, compare=False)
    reservation: str = ""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is fixed in advance: ε, the largest weight; a base, a resolution, a sensitivity."""

    epsilon: Fraction
    mixing_probability: Fraction
    log_delta: float | None = None
    resolution: float | None = None
    sensitivity: Fraction | None = None

    def nats(self, weight: float) -> float:
        """Return ln(w/(1-w)) + ln(e^ε - 1)."""
        t = float(self.epsilon)
        grown = math.log(math.expm1(t)) if t < 700 else t
        return math.log(weight) - math.log1p(-weight) + grown

    def noise(self, budget: float, weight: float, dimension: int) -> float:
        """Return the l2 norm of the Gaussian noise that a base needs for this many nats.

        δ_μ(t) is about φ(a) μ/(a(a+μ)) with a = t/μ - μ/2 (the tails' leading terms).
        """
        if self.sensitivity is None:
            return 0.0
        t, nats = float(self.epsilon), max(budget - self.nats(weight), 1e-9)
        exponent = nats
        for _ in range(3):
            a = math.sqrt(2 * exponent)
            mu = 2 * t / (math.sqrt(a * a + 2 * t) + a)
            saved = math.log(math.sqrt(2 * math.pi) * max(a * (a + mu) / mu, 1.0))
            exponent = max(nats - saved, nats / 4)
        return float(self.sensitivity) / mu * math.sqrt(dimension)


def decimal_up(value: float, digits: int = 7) -> Fraction:
    """Round up to a few decimal digits, so that certificates are readable.

    >>> decimal_up(0.123456781, 3), decimal_down(0.19, 1)
    (Fraction(31, 250), Fraction(1, 10))
    """
    return _decimal(value, digits, decimal.ROUND_CEILING)


def decimal_down(value: float, digits: int = 7) -> Fraction:
    """Round down to a few decimal digits."""
    return _decimal(value, digits, decimal.ROUND_FLOOR)


def _decimal(value: float, digits: int, rounding: str) -> Fraction:
    context = decimal.Context(prec=digits, rounding=rounding)
    return Fraction(context.create_decimal_from_float(value))
