"""The gradient of a regression objective, with a proven bound on its error (theory C9, "E").

Margins are exact sums rounded once; slopes come with the radii of `FloatBalls`; their leading 18
bits are summed exactly and the rest, below 2^-19, in floats. Nothing is assumed but IEEE float64
and a BLAS that adds products, in any order, fused or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.float_balls import FloatBalls
from zerodelta.regression.integer_rows import ROW_BITS, SLOPE_BITS, Floats, IntegerRows
from zerodelta.regression.loss import Loss
from zerodelta.regression.point import Point

__all__ = ["CertifiedGradient", "certified_gradient"]

_U = 2.0**-53
_MORE = 1 + 2.0**-20
"""Pays for the rounding of a bound that is itself a sum of fewer than 2^30 positive floats."""

_TINY = 2.0**-900
"""Pays for underflow."""

_EXACT_ROWS = 1 << 22
"""2^22 · 2^18 · 2^22 < 2^63: up to so many rows the exact part fits int64."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CertifiedGradient:
    """A gradient and a number that its l2 error surely does not exceed (NaN: unknown)."""

    value: Floats
    error: float

    @property
    def length(self) -> float:
        """An upper bound on the norm of the computed `value`."""
        return float(np.linalg.norm(self.value)) * _MORE


def certified_gradient(
    rows: IntegerRows, loss: Loss, point: Point, *, strength: float, linear: Floats
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
