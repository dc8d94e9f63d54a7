"""Compute the minimizer of a perturbed objective with a certified error bound (theory C9, N).

The fast method is plain floats judged by `certified_gradient`: margins are exact sums rounded once,
slopes come with the radii of `FloatBalls`, their leading 18 bits are summed exactly and the rest,
below 2^-19, in floats. Nothing is assumed but IEEE float64 and a BLAS that adds products, in any
order, fused or not. Where floats cannot reach the public target, Arb does. Nothing tells which way
was taken, and no number of steps is kept.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from zerodelta.exact.arrays import Floats
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.real_k_norm import RealKNorm
from zerodelta.regression.approximate_minimum import (
    Objective,
    QuasiNewton,
    accelerated,
    approach,
)
from zerodelta.regression.certified_losses import CertifiedLoss
from zerodelta.regression.integer_rows import ROW_BITS, SLOPE_BITS, IntegerRows, Point
from zerodelta.regression.precise_minimum import PreciseObjective, as_float, finish
from zerodelta.value import value

_U = 2.0**-53
_MORE = 1 + 2.0**-20
"""Pays for the rounding of a bound that is itself a sum of fewer than 2^30 positive floats."""

_TINY = 2.0**-900
"""Pays for underflow."""

_EXACT_ROWS = 1 << 22
"""2^22 · 2^18 · 2^22 < 2^63: up to so many rows the exact part fits int64."""

_CERTIFIED_STEPS = 8


def certified_minimum(
    rows: IntegerRows, loss: CertifiedLoss, noise: RealKNorm, *, strength: Fraction, error: Fraction
) -> list[Fraction]:
    """Return θ, line by line, provably within `error` (l2) of the minimizer.

    The objective is `strength`-strongly convex, so ‖θ - θ*‖ <= ‖gradient‖/strength. It ends with
    probability 1, and, given the drawn noise, after a bounded number of steps.
    """
    target = error * strength
    shape = (rows.dimension, loss.outputs)
    with np.errstate(all="ignore"), _one_thread():
        drawn = noise.within(target / 64)
        linear = np.array([as_float(value) for value in drawn]).reshape(shape)
        objective = Objective(rows=rows, loss=loss, strength=float(strength), linear=linear)
        # what rounding the noise to floats and the noise's own error add to the gradient
        unseen = float(np.linalg.norm(linear)) * 1.01 * _U + float(target) / 32
        reach = float(target) * (1 - 2.0**-40)
        theta, steps = approach(objective, reach / 4)
        found = _certify(objective, theta, steps, reach, unseen)
        if found is None and unseen < reach:
            theta = accelerated(objective, _finite(theta), reach / 2)
            found = _certify(objective, theta, steps, reach, unseen)
    if found is not None:
        return found.exact()
    precise = PreciseObjective(
        rows=rows, loss=loss, strength=strength, linear=noise.within(target / 4)
    )
    start = [Fraction(float(value)) for value in _finite(theta).flat]
    return finish(precise, start, steps.step, target * 3 / 4)


def _certify(
    objective: Objective, theta: Floats, steps: QuasiNewton, reach: float, unseen: float
) -> Point | None:
    """Return a point whose gradient is provably at most `reach`, or None if floats find none."""
    point = Point.near(_finite(theta))
    for _ in range(_CERTIFIED_STEPS):
        gradient = certified_gradient(
            objective.rows,
            objective.loss,
            point,
            strength=objective.strength,
            linear=objective.linear,
        )
        doubt = (gradient.error + unseen) * (1 + 2.0**-40)
        if gradient.length + doubt <= reach:
            return point
        step = steps.step(gradient.value)
        if not doubt < reach or not np.isfinite(step).all():
            return None
        point = point.moved(step)
    return None


def _finite(theta: Floats) -> Floats:
    return theta if bool(np.isfinite(theta).all()) else np.zeros(theta.shape)


@value(eq=False)
class CertifiedGradient:
    """A gradient and a proven bound on its l2 error (NaN: unknown)."""

    value: Floats
    error: float

    @property
    def length(self) -> float:
        """An upper bound on the norm of the computed `value`."""
        return float(np.linalg.norm(self.value)) * _MORE


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
    with np.errstate(all="ignore"):  # unknown radii are NaN, and NaN is never certified
        for where, part in rows.blocks():
            margins = _margins(part, limbs, point.exponent, relative=loss.only_differences)
            slopes = loss.slope_balls(margins, where)
            middle = np.clip(slopes.middle, -1.0, 1.0)  # where the true slope is
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
    return CertifiedGradient(
        value=value, error=(radius + tail + 8 * _U * sum(sizes)) * _MORE + _TINY
    )


def _margins(
    part: Floats, limbs: tuple[Floats, Floats, int], exponent: int, *, relative: bool
) -> FloatBalls:
    """Return the margins as balls: two exact integer products, added with one rounding.

    If `relative`, margins less the (about) largest one of their row; its limbs are taken off
    exactly, so that large margins do not make large errors.
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
    """Holds NumPy's BLAS to one thread while any fit runs, then gives back what there was.

    Products with small blocks wait for other threads longer than they work: on a busy machine
    several times as long as the fit takes.
    """

    def __init__(self) -> None:
        self.libraries = ThreadpoolController().select(user_api="blas")
        self._limit: Any = None
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a process that was forked while other threads were fitting."""
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
