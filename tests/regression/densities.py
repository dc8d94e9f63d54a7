"""Exact densities of the perturbed minimizer with one parameter, in Arb, from first principles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from zerodelta.exact.logs import ball, precision

Record = tuple[Fraction, Fraction]
"""x in [-1, 1] and a target (Huber), or x times its label and nothing (logistic)."""

Derivatives = Callable[[arb, Record], tuple[arb, arb]]
"""First and second derivative of a record's loss in the parameter."""


def huber(theta: arb, record: Record) -> tuple[arb, arb]:
    x, y = (ball(part) for part in record)
    residual = x * theta - y
    root = (1 + residual**2).sqrt()
    return x * residual / root, x**2 / root**3


@dataclass(frozen=True)
class Logistic:
    """The balanced loss through its own definition u - a²/u = m - m₀, solved for u."""

    roundness: Fraction
    shift: Fraction

    def __call__(self, theta: arb, record: Record) -> tuple[arb, arb]:
        x = ball(record[0])
        m, a = x * theta - ball(self.shift), ball(self.roundness)
        u = (m + (m**2 + 4 * a**2).sqrt()) / 2
        slope = (-u).exp()
        return -x * slope, x**2 * slope / (1 + (a / u) ** 2)


def log_density(
    theta: Fraction,
    data: Sequence[Record],
    derivatives: Derivatives,
    *,
    rate: Fraction,
    strength: Fraction,
) -> arb:
    """ln of exp(-rate |v|) |dv/dθ| at v = -(Σ gradient + strength θ), up to one constant."""
    point = ball(theta)
    pairs = [derivatives(point, record) for record in data]
    first = sum((pair[0] for pair in pairs), ball(strength) * point)
    second = sum((pair[1] for pair in pairs), ball(strength))
    return -ball(rate) * abs(first) + second.log()


def loss_of_privacy(
    theta: Fraction,
    data: Sequence[Record],
    other: Sequence[Record],
    derivatives: Derivatives,
    *,
    rate: Fraction,
    strength: Fraction,
) -> arb:
    """ln of the ratio of the two densities at a point."""
    with precision(128):
        one = log_density(theta, data, derivatives, rate=rate, strength=strength)
        two = log_density(theta, other, derivatives, rate=rate, strength=strength)
        return one - two
