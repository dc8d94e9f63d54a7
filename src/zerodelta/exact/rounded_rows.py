"""Rows of floats to rows of integers within a norm bound that is verified in integers (theory C0).

The kernel of `fixed_point`. Blocks lie on their side, (dimension, rows): long inner loops whatever
the dimension; integers stay in float64, which holds them exactly up to 2^53.

A row's integers are a function of that row alone. So only correctly rounded elementwise operations
make them (+ - * / sqrt rint trunc), and sums over coordinates add in an order fixed by the
dimension: einsum and BLAS choose theirs by the shape and layout of the whole batch. Those are used
where they cannot change an integer: to tell rows that are clearly inside, and for sums of integers
that are exact in any order.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.exact_sums import arithmetic
from zerodelta.value import value

_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

_FARTHEST = float(np.finfo(np.float64).max)
"""Infinities count as this."""

_MOST_SQUARES = 1 << 52
"""Squared norms up to here are verified in floats."""

_TINY = 2.0**-900

_FEW = 4
"""Up to a quarter of a block is taken out and worked on by itself."""

_ROUNDING = 2.0**-50
"""More than a float sum of squares is off by, for each coordinate, in relative terms."""


@value(eq=False)
class RowRounding:
    """The numbers of a lattice as floats: `center` and `quantum` are columns, one line or all."""

    dimension: int
    norm: float
    steps: int
    center: _Floats
    quantum: _Floats

    def integers(self, rows: npt.NDArray[np.generic], *, joint: bool = False) -> _Floats:
        """Return the integers of a (dimension, n) block of rows that lie on their side.

        A NaN is the center of its own coordinate; with `joint` its row is the zero row.
        """
        scaled = np.empty(rows.shape)
        if rows.dtype == np.float64 and not self.center.any():
            np.divide(rows, self.quantum, out=scaled)
        else:
            np.copyto(scaled, rows)
            scaled -= self.center
            scaled /= self.quantum
        missing: npt.NDArray[np.intp] | None = None
        if self.norm == 2:
            missing = self._pull_in(scaled, rows, joint=joint)
        else:
            if joint:
                missing = np.flatnonzero(np.isnan(scaled).any(axis=0))
            outside = ~self._within(scaled)  # not "exceeds": NaN must land here
            if outside.any():
                scaled[:, outside] = self._clipped(rows[:, outside])
        if missing is not None:
            scaled[:, missing] = 0.0
        if self.norm == 2 and self.steps**2 <= _MOST_SQUARES:
            return self._rounded(scaled)
        # Exact; no coordinate of a bounded row exceeds its norm. It is the whole clip of norm inf,
        # it makes the cast safe, and `_exceeds` chooses its arithmetic on the strength of it.
        np.clip(scaled, -float(self.steps), float(self.steps), out=scaled)
        if self.norm == math.inf:
            return np.rint(scaled, out=scaled)
        integers = np.rint(scaled)
        excess = self._exceeds(integers.astype(np.int64))
        if excess.any():
            integers[:, excess] = self._truncated(scaled[:, excess])
        return integers

    def _pull_in(
        self, scaled: _Floats, rows: npt.NDArray[np.generic], *, joint: bool
    ) -> npt.NDArray[np.intp] | None:
        """Scale rows outside of the l2 ball down to it; return those that are missing as a whole.

        Most rows are clearly inside or outside; only for the others does `_within` decide.
        """
        squares = _squares(scaled)
        limit, error = float(self.steps) ** 2, (self.dimension + 8) * _ROUNDING
        inside = squares < limit * (1 - error)
        if inside.all():
            return None
        outside = (squares > limit * (1 + error)) & (squares <= _FARTHEST)
        others = np.flatnonzero(~(inside | outside))  # on the border, or not finite
        if len(others):
            scaled[:, others] = self._clipped(rows[:, others])
        if np.count_nonzero(outside) * _FEW > len(outside):
            np.copyto(scaled, self._shortened(rows), where=outside)
        elif outside.any():
            places = np.flatnonzero(outside)
            scaled[:, places] = self._shortened(rows[:, places])
        return others[np.isnan(squares[others])] if joint else None

    def _rounded(self, scaled: _Floats) -> _Floats:
        """Round rows of an l2 ball whose squared norms float64 holds; `scaled` may be overwritten.

        A sum of squares of integers that comes out as at most 2^52 was exact at every step: a
        partial sum beyond 2^53 never comes back. So the comparison decides in integers.
        """
        integers, limit = np.rint(scaled), float(self.steps**2)
        excess = np.flatnonzero(~(_squares(integers) <= limit))
        if not len(excess):
            return integers
        scaled = scaled[:, excess]
        cut = np.trunc(scaled)
        rest = np.flatnonzero(~(_squares(cut) <= limit))
        if len(rest):
            cut[:, rest] = self._truncated(scaled[:, rest])
        integers[:, excess] = cut
        return integers

    def _within(self, scaled: _Floats) -> _Flags:
        """Say roughly which rows lie inside the bound; only accuracy depends on the answer."""
        if self.norm == 1:
            return _halving_sum(np.abs(scaled)) <= self.steps
        if self.norm == 2:
            return _halving_sum(scaled * scaled) <= float(self.steps) ** 2
        return _largest(scaled) <= self.steps

    def _clipped(self, rows: npt.NDArray[np.generic]) -> _Floats:
        """Return rows of any floats in quanta, finite ones scaled down to the bound."""
        far = np.ascontiguousarray(rows, dtype=np.float64)
        far = np.where(np.isnan(far), self.center, np.clip(far, -_FARTHEST, _FARTHEST))
        scaled: _Floats = (far - self.center) / self.quantum
        if self.norm != math.inf:  # the caller clips every coordinate of a box anyway
            beyond = ~self._within(scaled)
            scaled[:, beyond] = self._shortened(far[:, beyond])
        return scaled

    def _shortened(self, rows: npt.NDArray[np.generic]) -> _Floats:
        """Scale finite rows down to the bound, in quanta."""
        floats: _Floats = rows.astype(np.float64, copy=False)
        direction: _Floats
        if self._small:
            direction = floats / _largest(floats)
        else:
            # A quarter cannot overflow, and a largest coordinate of 1 lets the norm neither
            # overflow nor underflow, so that 1e308 keeps its direction.
            direction = floats * 0.25 - self.center * 0.25
            direction /= _largest(direction)
        if self.norm == 1:
            length = _halving_sum(np.abs(direction))
        else:
            length = np.sqrt(_halving_sum(direction * direction))
        direction *= self.steps / length
        return direction

    @property
    def _small(self) -> bool:
        """Whether a quarter changes nothing: no center, and what underflows in it rounds to 0."""
        return not self.center.any() and bool((self.quantum > _TINY).all())

    def _exceeds(self, integers: _Integers) -> _Flags:
        """Say exactly which rows of integers, each at most `steps`, exceed the norm bound."""
        power = int(self.norm)
        fits = arithmetic(self.dimension, self.steps**power) != "python"
        exact: npt.NDArray[Any] = integers if fits else integers.astype(np.object_)
        terms = np.abs(exact) if power == 1 else exact * exact
        return np.asarray(np.add.reduce(terms, axis=0) > self.steps**power, dtype=np.bool_)

    def _truncated(self, scaled: _Floats) -> _Floats:
        """Round toward 0, then step toward 0 while float error still leaves a row outside.

        A step of 1 in every nonzero coordinate takes at least 1 from the norm, and the excess is
        a few quanta. Steps double, so the loop is short (and ends at 0) whatever the floats did.
        """
        limit = float(self.steps)
        integers = np.trunc(np.clip(scaled, -limit, limit)).astype(np.int64)
        step = 1
        while (excess := self._exceeds(integers)).any():
            row = integers[:, excess]
            integers[:, excess] = row - np.sign(row) * np.minimum(np.abs(row), step)
            step *= 2
        return integers.astype(np.float64)


def _squares(values: _Floats) -> _Floats:
    """Return the sum of squares of each column, added in any order."""
    squares: _Floats = np.einsum("ij,ij->j", values, values)
    return squares


def _halving_sum(terms: _Floats) -> _Floats:
    """Add the lines of `terms` (overwritten), second half onto first until one is left."""
    while len(terms) > 1:
        half, odd = divmod(len(terms), 2)
        if odd:
            terms[0] += terms[-1]
        terms[:half] += terms[half : 2 * half]
        terms = terms[:half]
    total: _Floats = terms[0]
    return total


def _largest(values: _Floats) -> _Floats:
    """Return the largest magnitude of each column: a maximum is exact in any order."""
    largest: _Floats = np.maximum.reduce(values, axis=0)
    np.maximum(largest, -np.minimum.reduce(values, axis=0), out=largest)
    return largest
