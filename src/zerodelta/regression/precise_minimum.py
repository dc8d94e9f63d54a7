"""The last resort: minimize in exact integers and Arb, to any accuracy (theory C9).

A step that does not halve the gradient is replaced by a plain gradient step, which shortens it by
the factor 1 - strength/smoothness whatever the data; so the loop ends, and needs no cap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arb import precision, to_float_up
from zerodelta.exact.arrays import Floats
from zerodelta.regression.certified_losses import CertifiedLoss
from zerodelta.regression.integer_rows import ROW_BITS, SLOPE_BITS, IntegerRows, parameter_bits
from zerodelta.value import value

_Integers: TypeAlias = npt.NDArray[np.object_]
_GUARD_BITS = 32


@value(eq=False)
class PreciseObjective:
    """Σ loss + (strength/2) ‖θ‖² + ⟨linear, θ⟩ with rational numbers; `linear` line by line."""

    rows: IntegerRows
    loss: CertifiedLoss
    strength: Fraction
    linear: list[Fraction]

    @property
    def smoothness(self) -> Fraction:
        """A bound on the Hessian: rows have length at most 1."""
        return self.rows.count * Fraction(self.loss.curvature_bound) + self.strength

    def gradient(self, theta: list[Fraction], error: Fraction) -> list[Fraction]:
        """Return the gradient at a dyadic point, provably within `error` in l2."""
        shape = (self.rows.dimension, self.loss.outputs)
        exponent = -max(value.denominator.bit_length() - 1 for value in theta)
        scaled = np.array([int(value / Fraction(2) ** exponent) for value in theta], dtype=object)
        integers = scaled.reshape(shape)
        entries = max(1, self.rows.count * self.loss.outputs)
        fraction_bits = math.ceil(2 * entries / error).bit_length()
        digits = -(-fraction_bits // SLOPE_BITS)
        working = digits * SLOPE_BITS + _GUARD_BITS
        while True:
            total, spread = self._sum(integers, exponent, digits, working)
            if spread <= error:
                break
            working *= 2
        unit = Fraction(1, 1 << (digits * SLOPE_BITS + ROW_BITS))
        return [
            int(t) * unit + self.strength * x + v
            for t, x, v in zip(total.flat, theta, self.linear, strict=True)
        ]

    def _sum(
        self, theta: _Integers, exponent: int, digits: int, working: int
    ) -> tuple[_Integers, Fraction]:
        """Return Σ row ⊗ slope in units of the last digit, and a bound on its l2 error."""
        width = parameter_bits(self.rows.dimension)
        limbs = _digits(theta, width)
        total: _Integers = np.zeros(theta.shape, dtype=object)
        places = digits * SLOPE_BITS
        spread = Fraction(0)
        for where, part in self.rows.blocks():
            margins = sum(
                _exact((part @ limb).T) * (1 << (width * place)) for place, limb in enumerate(limbs)
            )
            slopes, radius = self._slopes(np.asarray(margins), exponent, where, places, working)
            spread += radius
            for place, digit in enumerate(_digits(slopes, SLOPE_BITS)):
                total += _exact((digit @ part).T) * (1 << (SLOPE_BITS * place))
        return total, spread

    def _slopes(
        self, margins: _Integers, exponent: int, where: slice, places: int, working: int
    ) -> tuple[_Integers, Fraction]:
        """Return slopes as integers over 2^places, and the sum of their errors."""
        rounded: _Integers = np.zeros(margins.shape, dtype=object)
        with precision(working):
            radius = arb(0)
            for column in range(margins.shape[1]):
                own = [arb((int(m), exponent - ROW_BITS)) for m in margins[:, column]]
                for j, slope in enumerate(self.loss.slope_arb(own, where.start + column)):
                    radius += slope.rad()
                    rounded[j, column] = _scaled(slope, places)
            spread = to_float_up(radius)
        if not math.isfinite(spread):
            return np.zeros(margins.shape, dtype=object), Fraction(2) ** 1000
        return rounded, Fraction(spread) + Fraction(margins.size, 1 << places)


def finish(
    objective: PreciseObjective,
    theta: list[Fraction],
    step: Callable[[Floats], Floats],
    target: Fraction,
) -> list[Fraction]:
    """Return a point whose gradient is provably at most `target`, starting from a dyadic `theta`.

    `step` proposes what to take off, given a gradient as floats; it may be as bad as it likes.
    """
    smooth, strong = objective.smoothness, objective.strength
    # gradient steps with these errors still shorten a gradient of at least target/2
    error = min(target / 8, target * strong / (8 * smooth))
    unit = _power_below(target * strong / (8 * smooth * smooth * len(theta)))
    theta = _moved(theta, [Fraction(0)] * len(theta), unit)
    gradient = objective.gradient(theta, error)
    while not _square(gradient) <= (target - error) ** 2:
        floats = np.array([as_float(value) for value in gradient])
        with np.errstate(all="ignore"):
            shape = (objective.rows.dimension, objective.loss.outputs)
            proposed = step(floats.reshape(shape)).reshape(-1)
        if np.isfinite(proposed).all():
            moved = _moved(theta, [Fraction(float(value)) for value in proposed], unit)
            shorter = objective.gradient(moved, error)
            if 4 * _square(shorter) <= _square(gradient):
                theta, gradient = moved, shorter
                continue
        theta = _moved(theta, [value / smooth for value in gradient], unit)
        gradient = objective.gradient(theta, error)
    return theta


def _moved(theta: list[Fraction], step: list[Fraction], unit: Fraction) -> list[Fraction]:
    """Return θ - step, each entry rounded to a multiple of `unit`."""
    return [round((x - s) / unit) * unit for x, s in zip(theta, step, strict=True)]


def as_float(value: Fraction) -> float:
    """Return the nearest float, NaN if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _square(vector: list[Fraction]) -> Fraction:
    return sum((value * value for value in vector), Fraction(0))


def _power_below(value: Fraction) -> Fraction:
    """Return a power of two between a quarter of a positive number and the number."""
    bits = value.numerator.bit_length() - value.denominator.bit_length() - 1
    return Fraction(2) ** bits


def _scaled(slope: arb, places: int) -> int:
    """Return the middle of a ball over 2^-places, rounded down (any integer if not finite)."""
    if not slope.is_finite():
        return 0
    mantissa, exponent = (int(part) for part in slope.mid().man_exp())
    shift = exponent + places
    return mantissa << shift if shift >= 0 else mantissa >> -shift


def _digits(integers: _Integers, width: int) -> list[Floats]:
    """Cut integers into digits in [-2^(width-1), 2^(width-1)), lowest first."""
    half, digits = 1 << (width - 1), []
    rest = integers
    while rest.any():
        digit = ((rest + half) & ((1 << width) - 1)) - half
        digits.append(digit.astype(np.float64))
        rest = (rest - digit) >> width
    return digits or [np.zeros(integers.shape)]


def _exact(product: Floats) -> _Integers:
    """Return integers below 2^53 held in floats as Python integers."""
    exact: _Integers = product.astype(np.int64).astype(object)
    return exact
