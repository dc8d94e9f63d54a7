"""Map rows of floats to rows of integers on a public lattice, with the norm verified in integers.

Sums, noise and sensitivity are computed for integers only, so a sensitivity proved for them holds
on a real computer (theory C0, R). Each row is mapped by itself, whatever the other rows are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from fractions import Fraction
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.exact.sums import IntegerArray, arithmetic, exact_product, exact_sum
from zerodelta.value import value

# -- The kernel of `FixedPoint`: integers within a norm bound that is verified in integers --------
# Blocks are transposed, (dimension, rows), so that inner loops are long in any dimension. Integers
# stay in float64, which holds them exactly up to 2^53.
#
# A row's integers must be a function of that row alone. So they are computed by correctly rounded
# elementwise operations only (+ - * / sqrt rint trunc), and sums over coordinates add in an order
# fixed by the dimension. einsum and BLAS choose the order by the shape and layout of the batch;
# they are used where they cannot change an integer: to recognize rows that are clearly inside, and
# for sums of integers, which are exact in any order.

_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]

_FARTHEST = float(np.finfo(np.float64).max)
"""The value of an infinity."""

_MOST_SQUARES = 1 << 52
"""The largest squared bound for which norms are verified in floats, which are exact up to 2^53."""

_TINY = 2.0**-900

_SPARSE_PART = 4
"""If fewer than 1/4 of a block's rows are outside, they are copied and scaled by themselves."""

_ROUNDING = 2.0**-50
"""A bound of the relative error of a float sum of squares, for each coordinate."""


@value(eq=False)
class RowRounding:
    """A lattice in floats; `center` and `quantum` have one line, or one for each coordinate."""

    dimension: int
    norm: float
    steps: int
    center: _Floats
    quantum: _Floats

    def integers(self, rows: npt.NDArray[np.generic], *, joint: bool = False) -> _Floats:
        """Return the integers of a (dimension, n) block, whose columns are the rows of the data.

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
            missing = self._project_ball(scaled, rows, joint=joint)
        else:
            if joint:
                missing = np.flatnonzero(np.isnan(scaled).any(axis=0))
            outside = ~self._within(scaled)  # negated, so that NaN counts as outside
            if outside.any():
                scaled[:, outside] = self._clipped(rows[:, outside])
        if missing is not None:
            scaled[:, missing] = 0.0
        if self.norm == 2 and self.steps**2 <= _MOST_SQUARES:
            return self._rounded_in_ball(scaled)
        # Exact, and right for every norm, since no coordinate exceeds the norm of its row. For norm
        # inf nothing more is needed; for others it makes the cast safe, and `_exceeds` chooses its
        # arithmetic by this bound.
        np.clip(scaled, -float(self.steps), float(self.steps), out=scaled)
        if self.norm == math.inf:
            return np.rint(scaled, out=scaled)
        integers = np.rint(scaled)
        excess = self._exceeds(integers.astype(np.int64))
        if excess.any():
            integers[:, excess] = self._truncated(scaled[:, excess])
        return integers

    def _project_ball(
        self, scaled: _Floats, rows: npt.NDArray[np.generic], *, joint: bool
    ) -> npt.NDArray[np.intp] | None:
        """Scale rows outside of the l2 ball down to it; with `joint` return the rows with a NaN.

        Most rows are clearly inside or outside, even with the rounding of `_squares`; `_within`
        decides for the others.
        """
        squares = _squares(scaled)
        limit, error = float(self.steps) ** 2, (self.dimension + 8) * _ROUNDING
        inside = squares < limit * (1 - error)
        if inside.all():
            return None
        outside = (squares > limit * (1 + error)) & (squares <= _FARTHEST)
        others = np.flatnonzero(~(inside | outside))  # at the border, or not finite
        if len(others):
            scaled[:, others] = self._clipped(rows[:, others])
        if np.count_nonzero(outside) * _SPARSE_PART > len(outside):
            np.copyto(scaled, self._scaled_to_bound(rows), where=outside)
        elif outside.any():
            places = np.flatnonzero(outside)
            scaled[:, places] = self._scaled_to_bound(rows[:, places])
        return others[np.isnan(squares[others])] if joint else None

    def _rounded_in_ball(self, scaled: _Floats) -> _Floats:
        """Round rows of an l2 ball whose squared norms fit float64; `scaled` may be overwritten.

        If a float sum of squares of integers is at most 2^52, every partial sum was exact, since a
        partial sum beyond 2^53 cannot become smaller again. So the comparison is exact.
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
        """Tell, up to rounding, which rows are inside the bound; only accuracy depends on it."""
        if self.norm == 1:
            return _halving_sum(np.abs(scaled)) <= self.steps
        if self.norm == 2:
            return _halving_sum(scaled * scaled) <= float(self.steps) ** 2
        return _largest(scaled) <= self.steps

    def _clipped(self, rows: npt.NDArray[np.generic]) -> _Floats:
        """Return rows of any floats in quanta, NaN as the center, scaled down to the bound."""
        far = np.ascontiguousarray(rows, dtype=np.float64)
        far = np.where(np.isnan(far), self.center, np.clip(far, -_FARTHEST, _FARTHEST))
        scaled: _Floats = (far - self.center) / self.quantum
        if self.norm != math.inf:  # the caller clips every coordinate of a box anyway
            beyond = ~self._within(scaled)
            scaled[:, beyond] = self._scaled_to_bound(far[:, beyond])
        return scaled

    def _scaled_to_bound(self, rows: npt.NDArray[np.generic]) -> _Floats:
        """Scale finite rows to exactly the norm bound, in quanta, keeping directions."""
        floats: _Floats = rows.astype(np.float64, copy=False)
        direction: _Floats
        if self._small:
            direction = floats / _largest(floats)
        else:
            # A quarter of the difference cannot overflow. Dividing by the largest coordinate keeps
            # the norm from overflow and underflow, so that 1e308 keeps its direction.
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
        """Whether no quarter is needed: without a center, and underflow only rounds to 0."""
        return not self.center.any() and bool((self.quantum > _TINY).all())

    def _exceeds(self, integers: _Integers) -> _Flags:
        """Tell exactly which rows of integers, each at most `steps`, exceed the norm bound."""
        power = int(self.norm)
        fits = arithmetic(self.dimension, self.steps**power) != "python"
        exact: npt.NDArray[Any] = integers if fits else integers.astype(np.object_)
        terms = np.abs(exact) if power == 1 else exact * exact
        return np.asarray(np.add.reduce(terms, axis=0) > self.steps**power, dtype=np.bool_)

    def _truncated(self, scaled: _Floats) -> _Floats:
        """Round toward 0, then move toward 0 while a row is outside because of float errors.

        A step of 1 in every nonzero coordinate reduces the norm by at least 1, and the excess is a
        few quanta. Steps double, so the loop ends soon (at 0 at the latest) whatever the errors.
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
    """Return the sum of the lines of `terms` (overwritten), adding the second half to the first.

    The order of additions depends on the number of lines only.
    """
    while len(terms) > 1:
        half, odd = divmod(len(terms), 2)
        if odd:
            terms[0] += terms[-1]
        terms[:half] += terms[half : 2 * half]
        terms = terms[:half]
    total: _Floats = terms[0]
    return total


def _largest(values: _Floats) -> _Floats:
    """Return the largest magnitude of each column, which is exact in any order."""
    largest: _Floats = np.maximum.reduce(values, axis=0)
    np.maximum(largest, -np.minimum.reduce(values, axis=0), out=largest)
    return largest


_Numbers: TypeAlias = Rational | Sequence[Rational] | npt.NDArray[np.generic]
_Exact: TypeAlias = Fraction | tuple[Fraction, ...]

_BLOCK_ENTRIES = 1 << 17
"""Entries processed at a time, in a few buffers of 1 MiB (chosen by timing `quantize`)."""

_SUM_ENTRIES = 1 << 15
"""Entries of a box summed at a time, in one buffer of 256 KiB."""

_MOST_STEPS = 1 << 53
"""The largest number of steps: up to it integers are exact in float64, and so is clipping."""

_FEWEST_ROWS = 256
"""If floats are exact for fewer rows than this at a time, slower exact functions are used."""

_LARGEST = Fraction(2**1000)
"""Bounds centers and quanta, so that floats neither overflow nor lose bits to underflow."""


@value
class FixedPoint:
    """A public lattice and a public norm bound that every quantized row satisfies.

    A row x becomes the integers ``k ≈ (x - center) / quantum``, with ``quantum = bound / steps``.

    **Guarantee** (theory C0). Every row that `quantize` returns satisfies, in integers, ``sum |k|
    <= steps`` (norm 1), ``sum k^2 <= steps^2`` (norm 2) or ``max |k| <= steps`` (norm inf), and is
    a function of that row alone. So the integer sum of the rows has sensitivity ``2 * steps`` in
    that norm when one row is replaced, and ``steps`` when one is added or removed.

    **Public**: everything stored here. With ``norm=inf``, `bound` may hold one number per
    coordinate; `center` always may.

    >>> lattice = FixedPoint.ball(dimension=2, bound=1, steps=1000)
    >>> lattice.quantize(np.array([[0.25, -0.5], [3.0, 4.0], [math.nan, 0.5]]))
    array([[ 250, -500],
           [ 600,  800],
           [   0,  500]])
    """

    dimension: int
    norm: float
    bound: _Exact
    steps: int
    center: _Exact = Fraction(0)

    def __post_init__(self) -> None:
        dimension = as_count(self.dimension, "dimension", minimum=1)
        steps = _as_steps(self.steps)
        if isinstance(self.norm, bool) or self.norm not in (1, 2, math.inf):
            raise ParameterError(
                "norm", self.norm, expected="1, 2 or math.inf", remedy="pass one of these norms"
            )
        bound = _as_exact(self.bound, "bound", dimension)
        center = _as_exact(self.center, "center", dimension)
        if isinstance(bound, tuple) and self.norm != math.inf:
            raise ParameterError(
                "bound",
                self.bound,
                expected="a single number for norms 1 and 2",
                remedy="rescale the columns, or pass norm=math.inf for one bound per coordinate",
            )
        for entry in _entries(bound):
            if not 1 / _LARGEST <= entry / steps <= _LARGEST:
                raise ParameterError(
                    "bound",
                    self.bound,
                    expected="above 0, with bound/steps between 2^-1000 and 2^1000",
                    remedy="rescale the columns",
                )
        if any(abs(entry) > _LARGEST for entry in _entries(center)):
            raise ParameterError(
                "center", self.center, expected="at most 2^1000", remedy="rescale the columns"
            )
        normalized = (dimension, float(self.norm), bound, steps, center)
        for field, stored in zip(fields(self), normalized, strict=True):
            object.__setattr__(self, field.name, stored)

    @classmethod
    def ball(
        cls,
        *,
        dimension: int,
        bound: Rational,
        norm: float = 2,
        steps: int | None = None,
        quantum: Rational | None = None,
        center: _Numbers = 0,
    ) -> FixedPoint:
        """Return the lattice for rows within `bound` of `center` in a norm.

        Pass either `steps` (the bound in quanta), or `quantum`; the latter lowers the bound to the
        largest multiple of the quantum.

        >>> FixedPoint.ball(dimension=3, bound=1, quantum="0.3", norm=1).bound
        Fraction(9, 10)
        """
        dimension = as_count(dimension, "dimension", minimum=1)
        exact = as_rational(bound, "bound")
        if steps is not None and quantum is None:
            count = _as_steps(steps)
        elif quantum is not None and steps is None:
            spacing = as_rational(quantum, "quantum")
            if not 0 < spacing <= exact:
                raise ParameterError(
                    "quantum",
                    quantum,
                    expected=f"above 0 and at most the bound {bound}",
                    remedy="pass a finer quantum, for example a thousandth of the bound",
                )
            count = _as_steps(exact // spacing)
            exact = count * spacing
        else:
            raise ParameterError(
                "steps, quantum",
                (steps, quantum),
                expected="exactly one of the two",
                remedy="pass steps= or quantum=",
            )
        return cls(
            dimension=dimension,
            norm=norm,
            bound=exact,
            steps=count,
            center=_as_exact(center, "center", dimension),
        )

    @classmethod
    def box(cls, *, dimension: int, lower: _Numbers, upper: _Numbers, steps: int) -> FixedPoint:
        """Return the lattice for columns between `lower` and `upper`, centered in the middle.

        >>> lattice = FixedPoint.box(dimension=2, lower=[0, -5], upper=[1, 15], steps=100)
        >>> lattice.quantize(np.array([[0.0, 5.0], [1.0, 99.0], [-math.inf, math.nan]]))
        array([[-100,    0],
               [ 100,  100],
               [-100,    0]])
        """
        dimension = as_count(dimension, "dimension", minimum=1)
        lows = _entries(_as_exact(lower, "lower", dimension))
        highs = _entries(_as_exact(upper, "upper", dimension))
        length = max(len(lows), len(highs))  # 1 if both ends serve all columns
        ends = zip(lows * (length // len(lows)), highs * (length // len(highs)), strict=True)
        centers, bounds = zip(*(_middle(*pair) for pair in ends), strict=True)
        return cls(
            dimension=dimension,
            norm=math.inf,
            bound=bounds if length > 1 else bounds[0],
            steps=steps,
            center=centers if length > 1 else centers[0],
        )

    @property
    def quantum(self) -> Fraction | tuple[Fraction, ...]:
        """The lattice spacing, ``bound / steps``; one per coordinate where the bound is."""
        if isinstance(self.bound, tuple):
            return tuple(bound / self.steps for bound in self.bound)
        return self.bound / self.steps

    @property
    def ends(self) -> tuple[list[Fraction], list[Fraction]]:
        """The lower and the upper bounds of all coordinates."""
        places = [self.place(coordinate) for coordinate in range(self.dimension)]
        return [c - b for c, b in places], [c + b for c, b in places]

    @property
    def resolution(self) -> Fraction:
        """The largest change of a coordinate by quantizing, relative to the bound.

        In a box values are rounded to nearest; in a ball a whole step inwards is possible, too.
        """
        return Fraction(1, self.steps if self.norm != math.inf else 2 * self.steps)

    def place(self, coordinate: int) -> tuple[Fraction, Fraction]:
        """Return the center and the bound of one coordinate."""
        center, bound = self.center, self.bound
        return (
            center[coordinate] if isinstance(center, tuple) else center,
            bound[coordinate] if isinstance(bound, tuple) else bound,
        )

    def quantize(self, rows: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
        """Return the (n, dimension) integers of an (n, dimension) array of real numbers.

        A row inside the bound is rounded to the nearest lattice point. A row outside is first
        scaled down to the bound (norms 1 and 2), or clipped coordinate by coordinate (norm inf,
        where clipping gives the nearest point). An infinity is clipped like any large number; a NaN
        counts as the center of its own coordinate (to treat a row as missing, pass NaN in all
        coordinates). No value in `rows` raises an error or a warning; only a wrong shape or dtype
        does.

        Rows are read as float64, which rounds only integers above 2^53 and extended floats.
        """
        self._check_rows(rows)
        rows = np.asarray(rows)  # a subclass may index and add in its own way
        integers = np.empty(rows.shape, dtype=np.int64)
        for start, block in self.blocks(rows):
            # integers of at most 2^53
            np.copyto(integers[start : start + block.shape[1]], block.T, casting="unsafe")
        return integers

    def sum(self, rows: npt.NDArray[np.generic], *, joint: bool = False) -> IntegerArray:
        """Return the exact column sums of ``quantize(rows)`` without storing the integers.

        With `joint` a row with a NaN is the zero row.

        >>> lattice = FixedPoint.box(dimension=1, lower=0, upper=1, steps=100)
        >>> lattice.sum(np.array([[0.25], [7.0], [math.nan]]))
        array([50])
        """
        self._check_rows(rows)
        rows = np.asarray(rows)
        fits = arithmetic(len(rows), self.steps) != "python"
        total: npt.NDArray[Any] = np.zeros(self.dimension, dtype=np.int64 if fits else np.object_)
        exact_rows = _MOST_STEPS // self.steps  # floats add this many rows exactly, in any order
        size = min(_SUM_ENTRIES // self.dimension, exact_rows)
        if self.norm == math.inf and rows.dtype == np.float64 and size > 1 and not joint:
            for sums in self._box_sums(rows, size):
                total += sums.astype(np.int64)
            return total
        for _, block in self.blocks(rows, joint=joint, largest_block=exact_rows):
            if exact_rows < _FEWEST_ROWS:
                total += exact_sum(block.T.astype(np.int64), bound=self.steps)
            else:
                total += np.add.reduce(block, axis=1).astype(np.int64)
        return total

    def gram(self, rows: npt.NDArray[np.generic]) -> IntegerArray:
        """Return the exact sum of k kᵀ over the rows k of ``quantize(rows)``.

        A row with a NaN is the zero row.

        >>> lattice = FixedPoint.ball(dimension=2, bound=1, steps=10)
        >>> lattice.gram(np.array([[0.5, 0.1], [6.0, 8.0], [math.nan, 0.5]])).tolist()
        [[61, 53], [53, 65]]
        """
        self._check_rows(rows)
        rows = np.asarray(rows)
        shape, square = (self.dimension, self.dimension), self.steps**2
        fits = arithmetic(len(rows), square) != "python"
        total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
        exact_rows = _MOST_STEPS // square  # BLAS adds the products of this many rows exactly
        for _, block in self.blocks(rows, joint=True):
            if exact_rows < _FEWEST_ROWS:
                integers = block.T.astype(np.int64)
                total += exact_product(integers, integers, bounds=(self.steps, self.steps))
                continue
            for start in range(0, block.shape[1], exact_rows):
                part = block[:, start : start + exact_rows]
                with np.errstate(all="ignore"):  # some BLAS raise flags for no reason
                    total += (part @ part.T).astype(np.int64)
        return total

    def blocks(
        self,
        rows: npt.NDArray[np.generic],
        *,
        joint: bool = False,
        largest_block: int = _MOST_STEPS,
    ) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield blocks of ``quantize(rows)``, and the number of the first row of each.

        A block is a (dimension, n) array of floats with integer values. It has at most
        `largest_block` rows, unless that is below 256. With `joint` a row with a NaN is the zero
        row.
        """
        rounding = RowRounding(
            dimension=self.dimension,
            norm=self.norm,
            steps=self.steps,
            center=_as_column(self.center),
            quantum=_as_column(self.quantum),
        )
        size = max(1, _BLOCK_ENTRIES // self.dimension)
        if largest_block >= _FEWEST_ROWS:
            size = min(size, largest_block)
        for start in range(0, len(rows), size):
            with np.errstate(all="ignore"):
                integers = rounding.integers(rows[start : start + size].T, joint=joint)
            yield start, integers

    def _box_sums(
        self, rows: npt.NDArray[np.generic], size: int
    ) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the sums of `size` rows of a box at a time, computed in one buffer."""
        columns, limit = rows.T.view(np.float64), float(self.steps)
        center, quantum = _as_column(self.center), _as_column(self.quantum)
        buffer = np.empty((self.dimension, min(size, len(rows))))
        for start in range(0, len(rows), size):
            part = columns[:, start : start + size]
            with np.errstate(all="ignore"):
                scaled = np.subtract(part, center, out=buffer[:, : part.shape[1]])
                scaled /= quantum
                np.clip(scaled, -limit, limit, out=scaled)
                np.rint(scaled, out=scaled)
                sums = np.add.reduce(scaled, axis=1)
                if np.isnan(sums).any():  # a NaN counts as the center
                    sums = np.add.reduce(np.nan_to_num(scaled, copy=False), axis=1)
            yield sums

    def dequantize(self, sums: IntegerArray, *, rows: int = 1) -> npt.NDArray[np.float64]:
        """Return ``rows * center + quantum * sums``, the sum of `rows` rows in their own units.

        It is exact up to one rounding to float64 (to infinity if too large). Use it for sums with
        noise, as post-processing.

        >>> lattice = FixedPoint.box(dimension=1, lower=0, upper=1, steps=100)
        >>> lattice.dequantize(np.array([50]), rows=4)
        array([2.25])
        """
        count = as_count(rows, "rows")
        if sums.shape[-1:] != (self.dimension,):
            raise ParameterError(
                "shape of sums",
                sums.shape,
                expected=f"a last axis of length {self.dimension}",
                remedy="pass the column sums of quantized rows",
            )
        centers, quanta = cycle(_entries(self.center)), cycle(_entries(self.quantum))
        exact = [
            next(quanta) * integer + next(centers) * count for integer in sums.ravel().tolist()
        ]
        return np.array([_as_float(value) for value in exact]).reshape(sums.shape)

    def _check_rows(self, rows: npt.NDArray[np.generic]) -> None:
        """Refuse a wrong type, shape or dtype; the message shows no entry and no row count."""
        if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "biuf":
            raise ParameterError(
                "dtype of rows",
                rows.dtype if isinstance(rows, np.ndarray) else type(rows),
                expected="a NumPy array of floats, integers or booleans",
                remedy="convert the columns first, missing values to NaN",
            )
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ParameterError(
                "shape of rows",
                ("n", *rows.shape[1:]),
                expected=f"(n, {self.dimension})",
                remedy="pass one line per row and one column per dimension",
            )


def wanted_steps(n: int, epsilon: Fraction) -> int:
    """Return the steps of a lattice between bounds, for a mean or sum of about n values.

    With 2^8·n·ε steps half a quantum is 2^-10 of the noise on a mean.
    """
    return 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))


def _middle(lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """Return the middle of two ends and half their distance."""
    if not lower < upper:
        raise ParameterError(
            "lower, upper",
            (str(lower), str(upper)),
            expected="lower < upper in every coordinate",
            remedy="drop constant columns, and pass the lower end first",
        )
    return (lower + upper) / 2, (upper - lower) / 2


def _as_steps(steps: int) -> int:
    """Return a number of steps from 1 to 2^53, refusing others."""
    count = as_count(steps, "steps", minimum=1)
    if count > _MOST_STEPS:
        raise ParameterError(
            "steps", count, expected="at most 2^53", remedy="use a coarser quantum, or fewer steps"
        )
    return count


def _as_exact(value: _Numbers, name: str, dimension: int) -> _Exact:
    """Return an exact number, or a tuple of one for each coordinate if a list is passed."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(plain, str) or not isinstance(plain, Sequence):
        return as_rational(plain, name)
    if len(plain) != dimension:
        raise ParameterError(
            name,
            plain,
            expected=f"one number, or {dimension} numbers, one for each coordinate",
            remedy="pass one number for each coordinate",
        )
    exact = tuple(as_rational(item, name) for item in plain)
    return exact[0] if dimension == 1 else exact


def _entries(exact: _Exact) -> tuple[Fraction, ...]:
    """Return one number, or one for each coordinate, as a tuple."""
    return exact if isinstance(exact, tuple) else (exact,)


def _as_column(exact: _Exact) -> _Floats:
    """Return one number, or one for each coordinate, as a column of floats."""
    return np.array([[float(value)] for value in _entries(exact)])


def _as_float(exact: Fraction) -> float:
    """Return the nearest float, an infinity if the number is too large."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
