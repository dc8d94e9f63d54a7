"""Minimize a perturbed objective in floats or integers, with a certified error (C9, N).

The float methods only propose points: each takes a bounded number of steps. `certified_gradient`
bounds the gradient at a proposed point, and so its distance from the minimizer. If no float method
reaches the target, exact integers and Arb do.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from flint import arb
from threadpoolctl import ThreadpoolController

from zerodelta.exact.arrays import Floats
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.logs import precision, to_float_up
from zerodelta.exact.noise import RealKNorm
from zerodelta.regression.certified_losses import (
    ROW_BITS,
    SLOPE_BITS,
    STEPS,
    CertifiedLoss,
    IntegerRows,
    Point,
    parameter_bits,
)
from zerodelta.value import value

Solve: TypeAlias = Callable[[Floats], Floats]
"""A function from a gradient to an approximate Newton step."""

# These constants change the time of a fit and nothing else: every point is certified. They were
# chosen by hand; no script fits them.

_DENSE = 300
"""The largest number of parameters for which the Hessian is formed as a matrix. With more,
conjugate gradients use Hessian-vector products."""

_CONJUGATE_STEPS = 60
_CONJUGATE_ACCURACY = 0.02
"""Conjugate gradients stop when the residual is this part of the gradient."""

_SAMPLE = 1 << 14
_SAMPLE_DIVISORS = (16, 4, 1)
"""Newton's method starts on samples of `_SAMPLE` rows divided by these numbers, smallest first."""

_ROWS_PER_COLUMN = 20
"""A sample with fewer rows per column is skipped: its minimizer is far from that of all rows."""

_NEWTON_STEPS = 30
_QUASI_STEPS = 50
_REFRESHED_STEP = 1
"""The quasi-Newton step after which a cheap Hessian is computed anew and kept to the end."""

_HALVINGS = 12
_STALE_FACTOR = 1 << 10
"""Newton's method keeps its Hessian while each step shortens the gradient by this factor."""

_MAXIMUM_ACCELERATED_STEPS = 1 << 20


@value(eq=False)
class Objective:
    """weight · Σ loss + (strength/2) ‖θ‖² + ⟨linear, θ⟩, θ of shape (d, outputs)."""

    rows: IntegerRows
    loss: CertifiedLoss
    strength: float
    linear: Floats
    weight: float = 1.0

    @property
    def smoothness(self) -> float:
        """A bound on the Hessian: rows have length at most 1."""
        return self.weight * self.rows.count * self.loss.curvature_bound + self.strength

    @property
    def has_cheap_hessian(self) -> bool:
        """Whether the Hessian of all rows costs no more than a few gradients."""
        return self.linear.size * (self.loss.outputs + 1) <= 2 * _DENSE

    def thinned(self, every: int) -> Objective:
        """Return the objective of every k-th row, weighted by k = `every`."""
        return Objective(
            rows=self.rows.thinned(every),
            loss=self.loss.thinned(every),
            strength=self.strength,
            linear=self.linear,
            weight=self.weight * every,
        )

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradient of the objective at θ, in floats."""
        scaled, total = theta / STEPS, np.zeros(theta.shape)
        for where, part in self.rows.blocks():
            total += (self.loss.slope((part @ scaled).T, where) @ part).T
        return total * (self.weight / STEPS) + self.strength * theta + self.linear

    def newton(self, theta: Floats) -> Solve:
        """Return the function that turns a gradient near `theta` into a Newton step."""
        if theta.size <= _DENSE:
            return self._factored(theta)
        scaled = theta / STEPS
        curved = [
            (part, self.loss.curvature((part @ scaled).T, where))
            for where, part in self.rows.blocks()
        ]

        def product(step: Floats) -> Floats:
            """Return the Hessian of the objective times a step."""
            small, total = step / STEPS, np.zeros(step.shape)
            for part, curvature in curved:
                total += (self.loss.hessian_product(curvature, (part @ small).T) @ part).T
            return total * (self.weight / STEPS) + self.strength * step

        return lambda gradient: _conjugate_gradients(product, gradient)

    def _factored(self, theta: Floats) -> Solve:
        """Return the function gradient -> Newton step, by the inverse Hessian at `theta`."""
        d, outputs = theta.shape
        scaled, hessian = theta / STEPS, np.zeros((outputs, d, outputs, d))
        for where, part in self.rows.blocks():
            curvature = self.loss.curvature((part @ scaled).T, where)
            for a in range(outputs):
                for b in range(a, outputs):
                    weights = self.loss.pair_weights(curvature, a, b)
                    hessian[a, :, b, :] += _weighted(part, weights, square=a == b)
        for a in range(outputs):
            for b in range(a):
                hessian[a, :, b, :] = hessian[b, :, a, :]
        matrix = hessian.reshape(theta.size, theta.size) * (self.weight / STEPS**2)
        matrix[np.diag_indices(theta.size)] += self.strength
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            # whether the matrix is singular depends on the rows, so the error must not leave; any
            # step will do, as every point is certified
            return lambda gradient: gradient / self.smoothness

        def solve(gradient: Floats) -> Floats:
            lines: Floats = (inverse @ gradient.T.reshape(-1)).reshape(outputs, d).T
            return lines

        return solve


def _weighted(part: Floats, weights: Floats, *, square: bool) -> Floats:
    """Return Σ weight · row rowᵀ.

    With `square` the weights are nonnegative, and the product is that of one array with itself:
    BLAS computes one triangle of it, in half the time.
    """
    if not square:
        return np.asarray((part.T * weights) @ part)
    roots = part * np.sqrt(np.maximum(weights, 0.0))[:, None]
    return np.asarray(roots.T @ roots)


def _conjugate_gradients(product: Solve, gradient: Floats) -> Floats:
    """Return an approximate solution `step` of H step = gradient; `product` multiplies by H."""
    step, rest = np.zeros(gradient.shape), gradient.copy()
    direction, square = rest.copy(), float(np.vdot(rest, rest))
    enough = square * _CONJUGATE_ACCURACY**2
    for _ in range(_CONJUGATE_STEPS):
        if not square > enough:
            break
        curved = product(direction)
        length = square / float(np.vdot(direction, curved))
        step += length * direction
        rest -= length * curved
        previous, square = square, float(np.vdot(rest, rest))
        direction = rest + (square / previous) * direction
    return step


def approach(objective: Objective, target: float) -> tuple[Floats, QuasiNewton]:
    """Return a point near the minimizer, and the quasi-Newton method that led there.

    Newton's method runs on samples of about 1000, 4000 and 16 000 rows. Its last Hessian starts
    quasi-Newton steps on all rows. If there are at most 16 000 rows, Newton's method ends on all.
    """
    every = max(1, objective.rows.count // _SAMPLE)
    # A sample's minimizer misses that of all n rows by sampling error, where the gradient of all
    # rows has length about √n. Going much below that on a sample is wasted.
    enough = target if every == 1 else 0.3 * math.sqrt(objective.rows.count)
    theta = np.zeros(objective.linear.shape)
    for divisor in _SAMPLE_DIVISORS:
        if divisor > 1 and _SAMPLE // divisor < _ROWS_PER_COLUMN * objective.rows.dimension:
            continue
        sample = objective.thinned(every * divisor) if every * divisor > 1 else objective
        near = math.sqrt(objective.rows.count) if divisor > 1 else enough
        theta, solve = _newton(sample, theta, near)
    steps = QuasiNewton(solve)
    return (theta if every == 1 else _quasi_newton(objective, theta, steps, target)), steps


def _newton(objective: Objective, theta: Floats, enough: float) -> tuple[Floats, Solve]:
    """Return the point that Newton's method ends at and the last Hessian that it used.

    The Hessian of an earlier point is kept while it still shortens the gradient fast.
    """
    gradient, solve = objective.gradient(theta), objective.newton(theta)
    length, previous = _norm(gradient), math.inf
    for _ in range(_NEWTON_STEPS):
        if length <= enough:
            break
        if _STALE_FACTOR * length > previous:
            solve = objective.newton(theta)
        moved = _backtrack(objective, theta, solve(gradient), length)
        if moved is None:
            break
        theta, gradient = moved
        length, previous = _norm(gradient), length
    return theta, solve


def _quasi_newton(objective: Objective, theta: Floats, steps: QuasiNewton, enough: float) -> Floats:
    """Return the point where quasi-Newton steps reach the tolerance, or stop to descend.

    The Hessian is computed anew when a step does not halve the gradient and, where it is cheap,
    once after `_REFRESHED_STEP` steps.
    """
    gradient, fresh = objective.gradient(theta), False
    for number in range(_QUASI_STEPS):
        length = _norm(gradient)
        if length <= enough:
            break
        moved = _backtrack(objective, theta, steps.step(gradient), length)
        if moved is not None:
            steps.learn(moved[0] - theta, moved[1] - gradient)
            theta, gradient = moved
        elif fresh:
            break
        fresh = moved is None or 2 * _norm(gradient) > length
        if fresh or (number == _REFRESHED_STEP and objective.has_cheap_hessian):
            steps.restart(objective.newton(theta))
    return theta


def _backtrack(
    objective: Objective, theta: Floats, step: Floats, length: float
) -> tuple[Floats, Floats] | None:
    """Return the first of θ - step, θ - step/2, … with a smaller gradient, and that gradient."""
    for _ in range(_HALVINGS):
        moved = theta - step
        gradient = objective.gradient(moved)
        if _norm(gradient) < length:
            return moved, gradient
        step = step / 2
    return None


@final
class QuasiNewton:
    """Newton steps with a fixed Hessian, corrected by later steps (BFGS, two-loop recursion)."""

    def __init__(self, solve: Solve) -> None:
        self._solve = solve
        self._pairs: list[tuple[Floats, Floats, float]] = []

    def restart(self, solve: Solve) -> None:
        """Replace the Hessian and forget the steps taken with the previous one."""
        self._solve = solve
        self._pairs.clear()

    def learn(self, step: Floats, change: Floats) -> None:
        """Record how the gradient changed along a step."""
        product = float(np.vdot(step, change))
        if product > 0:  # a convex function has no other, but rounding may
            self._pairs.append((step, change, product))

    def step(self, gradient: Floats) -> Floats:
        """Return the step to subtract from θ where the gradient is `gradient`."""
        rest, weights = gradient.copy(), []
        for step, change, product in reversed(self._pairs):
            weight = float(np.vdot(step, rest)) / product
            rest -= weight * change
            weights.append(weight)
        result = self._solve(rest)
        for (step, change, product), weight in zip(self._pairs, reversed(weights), strict=True):
            result = result + (weight - float(np.vdot(change, result)) / product) * step
        return result


def accelerated(objective: Objective, theta: Floats, enough: float) -> Floats:
    """Return a point whose gradient is at most `enough`, by Nesterov's steps.

    In real arithmetic √κ ln(2κ ‖g₀‖²/enough²) steps suffice, κ = smoothness/strength.
    """
    smooth, strong = objective.smoothness, objective.strength
    root = math.sqrt(smooth / strong)
    start = _norm(objective.gradient(theta))
    if not enough < start < math.inf:  # the target is reached, or floats overflow
        return theta
    steps = math.ceil(root * (math.log(2 * root**2) + 2 * math.log(start / enough)) + 1)
    momentum, point = (root - 1) / (root + 1), theta
    for _ in range(min(steps, _MAXIMUM_ACCELERATED_STEPS)):
        gradient = objective.gradient(point)
        if _norm(gradient) <= enough:
            break
        lower = point - gradient / smooth
        point, theta = lower + momentum * (lower - theta), lower
    return point


def _norm(array: Floats) -> float:
    """Return the l2 norm of all entries."""
    return float(np.linalg.norm(array))


# -- Minimize in exact integers and Arb, to any accuracy, where floats fail (theory C9) -----------
# A step that does not halve the gradient is replaced by a plain gradient step, which shortens it
# by the factor 1 - strength/smoothness for any data. So the loop ends without a limit on its steps.

_Integers: TypeAlias = npt.NDArray[np.object_]
_GUARD_BITS = 32


@value(eq=False)
class PreciseObjective:
    """Σ loss + (strength/2) ‖θ‖² + ⟨linear, θ⟩ with rational numbers.

    `linear` and θ are lists of the d · outputs entries, row by row.
    """

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
        # n · outputs slopes are each rounded to 2^-fraction_bits: half of `error` in total
        entries = max(1, self.rows.count * self.loss.outputs)
        fraction_bits = math.ceil(2 * entries / error).bit_length()
        digits = -(-fraction_bits // SLOPE_BITS)
        working = digits * SLOPE_BITS + _GUARD_BITS
        while True:
            total, error_bound = self._sum(integers, exponent, digits, working)
            if error_bound <= error:
                break
            working *= 2  # Arb's balls were too wide: compute with twice the precision
        unit = Fraction(1, 1 << (digits * SLOPE_BITS + ROW_BITS))
        return [
            int(t) * unit + self.strength * x + v
            for t, x, v in zip(total.flat, theta, self.linear, strict=True)
        ]

    def _sum(
        self, theta: _Integers, exponent: int, digits: int, working: int
    ) -> tuple[_Integers, Fraction]:
        """Return Σ row ⊗ slope in units of the last digit, and a bound on its l2 error.

        θ and the slopes are cut into digits, so small that BLAS multiplies them with rows exactly.
        """
        width = parameter_bits(self.rows.dimension)
        limbs = _digits(theta, width)
        total: _Integers = np.zeros(theta.shape, dtype=object)
        places = digits * SLOPE_BITS
        error_bound = Fraction(0)
        for where, part in self.rows.blocks():
            margins = sum(
                _exact((part @ limb).T) * (1 << (width * place)) for place, limb in enumerate(limbs)
            )
            slopes, radius = self._slopes(np.asarray(margins), exponent, where, places, working)
            error_bound += radius
            for place, digit in enumerate(_digits(slopes, SLOPE_BITS)):
                total += _exact((digit @ part).T) * (1 << (SLOPE_BITS * place))
        return total, error_bound

    def _slopes(
        self, margins: _Integers, exponent: int, where: slice, places: int, working: int
    ) -> tuple[_Integers, Fraction]:
        """Return slopes as integers over 2^places, and the sum of their errors."""
        rounded: _Integers = np.zeros(margins.shape, dtype=object)
        with precision(working):
            radius = arb(0)
            for row in range(margins.shape[1]):
                row_margins = [arb((int(m), exponent - ROW_BITS)) for m in margins[:, row]]
                for j, slope in enumerate(self.loss.slope_arb(row_margins, where.start + row)):
                    radius += slope.rad()
                    rounded[j, row] = _scaled(slope, places)
            total_radius = to_float_up(radius)
        if not math.isfinite(total_radius):  # so that `gradient` doubles the precision
            return np.zeros(margins.shape, dtype=object), Fraction(2) ** 1000
        return rounded, Fraction(total_radius) + Fraction(margins.size, 1 << places)


def finish(
    objective: PreciseObjective,
    theta: list[Fraction],
    step: Callable[[Floats], Floats],
    target: Fraction,
) -> list[Fraction]:
    """Return a point whose gradient is provably at most `target`, starting from a dyadic `theta`.

    `step` proposes a step for a gradient given as floats. It is taken if it halves the gradient,
    so that any function may be passed.
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
    """Return the nearest float, or NaN for a number too large for one."""
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


# -- Compute the minimizer of a perturbed objective with a certified error bound (theory C9, N) ---
# The fast way is plain floats, checked by `certified_gradient`: margins are exact sums rounded
# once, slopes come with the radii of `FloatBalls`, their leading 18 bits are summed exactly and
# the rest, below 2^-19, in floats. Only IEEE float64 is assumed, and a BLAS that adds products in
# any order, fused or not. Where floats cannot reach the public target, Arb does. Which way was
# taken, and in how many steps, depends on the rows: neither is recorded.

_U = 2.0**-53
_ROUNDED_UP = 1 + 2.0**-20
"""A factor that covers the rounding of a bound, a sum of fewer than 2^30 positive floats."""

_UNDERFLOW = 2.0**-900
"""A term that covers underflow."""

_EXACT_ROWS = 1 << 22
"""The most rows whose exact sum fits int64: 2^22 · 2^18 · 2^22 < 2^63."""

_CERTIFIED_STEPS = 8
"""Quasi-Newton steps that `_certify` takes before it gives up on floats."""


def certified_minimum(
    rows: IntegerRows, loss: CertifiedLoss, noise: RealKNorm, *, strength: Fraction, error: Fraction
) -> list[Fraction]:
    """Return θ, row by row, provably within `error` (l2) of the minimizer.

    The objective is `strength`-strongly convex, so ‖θ - θ*‖ <= ‖gradient‖/strength. The loop ends
    with probability 1 and, for each draw of the noise, after a bounded number of steps.
    """
    target = error * strength
    shape = (rows.dimension, loss.outputs)
    with np.errstate(all="ignore"), _one_thread():
        drawn = noise.within(target / 64)
        linear = np.array([as_float(value) for value in drawn]).reshape(shape)
        objective = Objective(rows=rows, loss=loss, strength=float(strength), linear=linear)
        # the gradient's error because the noise was drawn to within target/64, then rounded
        noise_error = float(np.linalg.norm(linear)) * 1.01 * _U + float(target) / 32
        float_target = float(target) * (1 - 2.0**-40)
        theta, steps = approach(objective, float_target / 4)
        point = _certify(objective, theta, steps, float_target, noise_error)
        if point is None and noise_error < float_target:
            theta = accelerated(objective, _finite(theta), float_target / 2)
            point = _certify(objective, theta, steps, float_target, noise_error)
    if point is not None:
        return point.exact()
    precise = PreciseObjective(
        rows=rows, loss=loss, strength=strength, linear=noise.within(target / 4)
    )
    start = [Fraction(float(value)) for value in _finite(theta).flat]
    return finish(precise, start, steps.step, target * 3 / 4)


def _certify(
    objective: Objective, theta: Floats, steps: QuasiNewton, target: float, noise_error: float
) -> Point | None:
    """Return a point whose gradient is provably at most `target`, or None if floats fail."""
    point = Point.near(_finite(theta))
    for _ in range(_CERTIFIED_STEPS):
        gradient = certified_gradient(
            objective.rows,
            objective.loss,
            point,
            strength=objective.strength,
            linear=objective.linear,
        )
        error = (gradient.error + noise_error) * (1 + 2.0**-40)
        if gradient.length + error <= target:
            return point
        step = steps.step(gradient.value)
        if not error < target or not np.isfinite(step).all():
            return None
        point = point.moved(step)
    return None


def _finite(theta: Floats) -> Floats:
    """Return θ, or zeros if an entry is not finite."""
    return theta if bool(np.isfinite(theta).all()) else np.zeros(theta.shape)


@value(eq=False)
class CertifiedGradient:
    """A gradient and a proven bound on its l2 error (NaN: unknown)."""

    value: Floats
    error: float

    @property
    def length(self) -> float:
        """An upper bound on the norm of the computed `value`."""
        return float(np.linalg.norm(self.value)) * _ROUNDED_UP


def certified_gradient(
    rows: IntegerRows, loss: CertifiedLoss, point: Point, *, strength: float, linear: Floats
) -> CertifiedGradient:
    """Return Σ row ⊗ slope + strength · θ + linear at the point, with its error bound.

    `linear` is taken as exact; `strength` is a float.
    """
    shape = (rows.dimension, loss.outputs)
    wide = rows.count > _EXACT_ROWS
    exact: npt.NDArray[Any] = np.zeros(shape, dtype=np.object_ if wide else np.int64)
    rest, radius = np.zeros(shape), 0.0
    limbs = point.limbs()
    with np.errstate(all="ignore"):  # unknown radii are NaN, which fails every comparison
        for where, part in rows.blocks():
            margins = _margins(part, limbs, point.exponent, relative=loss.only_differences)
            slopes = loss.slope_balls(margins, where)
            middle = np.clip(slopes.middle, -1.0, 1.0)  # the true slope lies there, too
            leading = np.rint(middle * 2.0**SLOPE_BITS)
            trailing = middle - leading * 2.0**-SLOPE_BITS  # exact
            block = (leading @ part).T
            finite = bool(np.isfinite(block).all())
            exact += (block if finite else np.zeros(shape)).astype(np.int64)
            rest += (trailing @ part).T
            radius += float(np.sum(slopes.radius)) if finite else math.nan
        data = np.ldexp(exact.astype(np.float64), -SLOPE_BITS - ROW_BITS) + rest * 2.0**-ROW_BITS
        theta = point.floats()
        value = data + (strength * theta + linear)
        sizes = [float(np.linalg.norm(part)) for part in (data, strength * theta, linear)]
    # rows of length <= 1: Σ ‖row‖ |trailing| <= n √outputs 2^-19, each term rounded 2^13 + n/64
    # times at most; then six roundings of numbers that are at most the three sizes
    tail = rows.count * math.sqrt(loss.outputs) * 2.0**-19 * (2**13 + rows.count / 64) * 1.01 * _U
    error = (radius + tail + 8 * _U * sum(sizes)) * _ROUNDED_UP + _UNDERFLOW
    return CertifiedGradient(value=value, error=error)


def _margins(
    part: Floats, limbs: tuple[Floats, Floats, int], exponent: int, *, relative: bool
) -> FloatBalls:
    """Return the margins as balls: two exact integer products, added with one rounding.

    If `relative`, the (approximately) largest margin of each row is subtracted from its margins.
    The limbs are subtracted exactly, so that large margins do not make large errors.
    """
    high, low, bits = limbs
    upper, lower = (part @ high).T, (part @ low).T
    if relative:
        top = upper.argmax(axis=0)[None]
        upper = upper - np.take_along_axis(upper, top, axis=0)
        lower = lower - np.take_along_axis(lower, top, axis=0)
    total = upper * 2.0**bits + lower
    margins = np.ldexp(total, exponent - ROW_BITS)
    return FloatBalls(margins, np.abs(margins) * (_U * (1 + 2.0**-20)) + 2.0**-1000)


class _OneThread:
    """Hold NumPy's BLAS to one thread while any fit runs, then restore the number of threads.

    With several threads, products with small blocks spend more time waiting than working: on a
    busy machine several times as long as the fit takes.
    """

    def __init__(self) -> None:
        self.libraries = ThreadpoolController().select(user_api="blas")
        self._limit: Any = None
        self.forget()

    def forget(self) -> None:
        """Reset the count, in a process that was forked while other threads were fitting."""
        self._lock, self._fits = threading.Lock(), 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._fits == 0:
                self._limit = self.libraries.limit(limits=1)
            self._fits += 1
        try:
            yield
        finally:
            with self._lock:
                self._fits -= 1
                if self._fits == 0:
                    self._limit.restore_original_limits()


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.forget)
