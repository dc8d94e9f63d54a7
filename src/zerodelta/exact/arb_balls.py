"""The numbers of one draw as Arb balls, with the operations of `FloatBalls`.

A formula for noise is written once, over either kind of ball: `FloatBalls` evaluates it fast for
thousands of draws, `ArbBalls` to any precision for the one draw that is still undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
import numpy.typing as npt
from flint import arb

__all__ = ["ArbBalls"]

Balls = npt.NDArray[np.object_]


def _each(function: Callable[[arb], Any], results: int = 1) -> Any:
    return np.frompyfunc(function, 1, results)


_log, _sqrt, _exp = _each(arb.log), _each(arb.sqrt), _each(arb.exp)
_floor, _unique_integer = _each(arb.floor), _each(arb.unique_fmpz)
_sin_cos_pi = _each(arb.sin_cos_pi, 2)
_HALF = arb(0.5)


@cache
def _cell(width: int) -> tuple[arb, arb]:
    """Return 2^-width and the ball [0, 2^-width]; slow to make, so made once."""
    return arb((1, -width)), arb((1, -width - 1), (1, -width - 1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArbBalls:
    """A one-dimensional array of Arb balls at the working precision."""

    values: Balls

    @staticmethod
    def of(values: Sequence[arb]) -> ArbBalls:
        """Return the given balls as one array."""
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return ArbBalls(array)

    @staticmethod
    def uniform(prefixes: Sequence[int], width: int) -> ArbBalls:
        """Return uniforms whose first `width` bits are `prefixes`: U in [m, m+1] / 2^width."""
        unit, cell = _cell(width)
        return ArbBalls.of([unit * prefix + cell for prefix in prefixes])

    @staticmethod
    def stack(parts: list[ArbBalls]) -> ArbBalls:
        """Join the arrays."""
        return ArbBalls(np.concatenate([part.values for part in parts]))

    def __getitem__(self, rows: slice) -> ArbBalls:
        return ArbBalls(self.values[rows])

    def __abs__(self) -> ArbBalls:
        return ArbBalls(abs(self.values))

    def __neg__(self) -> ArbBalls:
        return ArbBalls(-self.values)

    def __add__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values + _plain(other))

    __radd__ = __add__

    def __sub__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values - _plain(other))

    def __mul__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values * _plain(other))

    __rmul__ = __mul__

    def __truediv__(self, other: ArbBalls) -> ArbBalls:
        return ArbBalls(self.values / other.values)

    def sqrt(self) -> ArbBalls:
        """Square root."""
        return ArbBalls(_sqrt(self.values))

    def log(self) -> ArbBalls:
        """Natural logarithm."""
        return ArbBalls(_log(self.values))

    def exp(self) -> ArbBalls:
        """Exponential."""
        return ArbBalls(_exp(self.values))

    def cos_sin_pi(self) -> tuple[ArbBalls, ArbBalls]:
        """Return cos(πx) and sin(πx)."""
        sine, cosine = _sin_cos_pi(self.values)
        return ArbBalls(cosine), ArbBalls(sine)

    def total(self) -> ArbBalls:
        """Sum of all."""
        return ArbBalls.of([sum(self.values, arb(0))])

    def log_total(self) -> ArbBalls:
        """Sum of the logarithms of all: the logarithm of their product."""
        return ArbBalls.of([math.prod(self.values, start=arb(1)).log()])

    def nearest(self) -> list[int] | None:
        """Return the integers that the balls round to, or None if one of them is undecided."""
        integers = _unique_integer(_floor(self.values + _HALF))
        if any(integer is None for integer in integers):
            return None
        return [int(integer) for integer in integers]


def _plain(other: ArbBalls | int) -> Balls | int:
    return other.values if isinstance(other, ArbBalls) else other
