"""Define row queries: exact integer sums of bounded functions of rows, and their sensitivity.

A row query consists of public numbers and a function that was tried on public rows, before any row
of the data is read (theory C0, C8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.isolation import Internal, Watch, reveal
from zerodelta.data.isolation import quiet as no_warnings
from zerodelta.data.pieces import Keeping
from zerodelta.data.rows import Blocks, Rows
from zerodelta.data.rowwise import (
    Block,
    NamedColumns,
    RowFunction,
    Rowwise,
    as_function,
    evaluate,
    is_columns,
)
from zerodelta.errors import ParameterError, require
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_float
from zerodelta.exact.sums import IntegerArray
from zerodelta.value import value

Bounds: TypeAlias = tuple[Any, Any]
"""(lower, upper): two numbers for all coordinates, or two sequences with one for each."""

STEPS = 1 << 20
"""The number of quanta in half a bounded range: rounding moves a mean by at most 2^-21 of it."""

GRAM_STEPS = 1 << 15
"""The number of quanta in the norm of a row, where products of two entries are summed."""


def trial_rows(table: Block, names: tuple[str, ...], *, rows: int | None = None) -> Rows:
    """Return made-up rows with the column names of the data, for trying a program.

    They stand for `rows` rows (by default as many as there are): sums and counts are scaled up to
    that number, so that the ratio of noise to sum is the same as for the data.
    """
    count = len(table)
    return Rows(
        held=Blocks((table,), Keeping()),
        rows=count if rows is None else rows,
        columns=names,
        prepare=np.array,  # a copy, which the program may overwrite
        name=None,
        sample=count,
    )


@value
class RowQuery:
    """A function of rows on a public lattice; its integer sum has a public l2 sensitivity."""

    function: Callable[[Block], Any]
    lattice: FixedPoint
    rowwise: bool
    allowed: bool = True
    """Whether the plan covers it: a study planned for named columns answers no other function."""

    @property
    def sensitivity_squared(self) -> int:
        """The squared l2 sensitivity of the integer sum (replace-one)."""
        coordinates = self.lattice.dimension if self.lattice.norm == math.inf else 1
        return 4 * self.lattice.steps**2 * coordinates

    def total(self, source: Rows, *, joint: bool = False) -> IntegerArray:
        """Return the exact sum over the rows."""
        return source.sum(self.function, self.lattice, rowwise=self.rowwise, joint=joint)

    def gram(self, source: Rows) -> IntegerArray:
        """Return the exact sum over the rows of k kᵀ."""
        return source.gram(self.function, self.lattice, rowwise=self.rowwise)

    @property
    def joint(self) -> bool:
        """Whether a row with a missing value counts as missing: its values share one norm."""
        return self.lattice.norm != math.inf

    def present_sums(self, source: Rows) -> IntegerArray:
        """Return the number of present values, and their exact sums."""
        return source.present_sums(
            self.function, self.lattice, rowwise=self.rowwise, joint=self.joint
        )

    def present_gram(self, source: Rows) -> tuple[int, IntegerArray]:
        """Return the number of complete rows, and the exact sum of their k kᵀ."""
        return source.present_gram(self.function, self.lattice, rowwise=self.rowwise)

    def scales(self) -> list[tuple[Fraction, Fraction]]:
        """Return the center and the quantum of each coordinate."""
        d, ends = self.lattice.dimension, (self.lattice.center, self.lattice.quantum)
        columns = [list(end) if isinstance(end, tuple) else [end] * d for end in ends]
        return list(zip(*columns, strict=True))


def is_callers(function: Callable[[Block], Any]) -> bool:
    """Tell whether the caller wrote a query's function (as returned by `as_function`)."""
    return type(function) is not Rowwise and not is_columns(function)


def row_query(
    function: RowFunction,
    *,
    columns: Sequence[str],
    probe: Block,
    rowwise: bool,
    lattice: Callable[[int], FixedPoint],
    quiet: bool,
    allowed: bool = True,
) -> RowQuery:
    """Return the query, after trying its function on the public rows of `probe`.

    `lattice` returns the lattice for the number of values of a row. A function that fails on every
    public row, or does not treat them one by one, is refused before data is read. With `quiet` its
    error is not quoted, since it may know internal answers.
    """
    mapped = as_function(function, columns)
    if type(mapped) is NamedColumns:
        return RowQuery(
            function=mapped, lattice=lattice(mapped.width), rowwise=False, allowed=allowed
        )
    single = rowwise and is_callers(mapped)
    width = _width(mapped, columns, probe, single=single, quiet=quiet)
    return RowQuery(function=mapped, lattice=lattice(width), rowwise=single, allowed=allowed)


def box_lattice(bounds: Bounds | None, *, steps: int = STEPS) -> Callable[[int], FixedPoint]:
    """Return the lattice between two bounds, for any number of coordinates."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError(
            "bounds",
            bounds,
            expected="a public pair (lower, upper)",
            remedy="pass bounds=(0, 1), for example: values of the function are clipped to them",
        )
    lower, upper = _usable(*bounds) if any(isinstance(end, Internal) for end in bounds) else bounds
    return lambda width: FixedPoint.box(dimension=width, lower=lower, upper=upper, steps=steps)


def _usable(lower: Any, upper: Any) -> Bounds:
    """Return bounds computed from internal answers; (0, 1) if they are not valid bounds.

    An error would reveal something about the answers (theory C8), and the noise is calibrated to
    whatever lattice is used.
    """
    with np.errstate(all="ignore"):
        ends = np.stack(np.broadcast_arrays(reveal(lower), reveal(upper))).astype(np.float64)
        usable = (np.abs(ends) < 1e100) & (ends[1] - ends[0] > 1e-100)  # NaN: not usable
    return (ends[0], ends[1]) if bool(usable.all()) else (0, 1)


def norm_lattice(
    bound: Rational | None, name: str, *, steps: int = STEPS
) -> Callable[[int], FixedPoint]:
    """Return the lattice of the l2 ball of this radius around 0."""
    if bound is None:
        raise ParameterError(
            name,
            None,
            expected="a public bound on the l2 norm of a row's values",
            remedy=f"pass {name}=1.0, for example; longer rows are scaled down to it",
        )
    return lambda width: FixedPoint.ball(dimension=width, bound=bound, steps=steps)


def public_rows(
    columns: int, bounds: Bounds | None, data_norm: Rational | None, *, count: int = 7
) -> Block:
    """Return made-up rows on which functions are tried: a fixed sequence within the bounds.

    Columns are multiples of different irrational numbers modulo 1, so that with more rows than
    columns no column is nearly a linear function of the others.

    >>> public_rows(1, (0, 10), None)[:, 0].round(2).tolist()
    [0.0, 6.18, 2.36, 8.54, 4.72, 0.9, 7.08]
    """
    others = [prime for prime in primes(columns + 2) if prime != 5]  # √5 is in the golden ratio
    slopes = [(math.sqrt(5) - 1) / 2, *map(math.sqrt, others[: columns - 1])]
    places = np.arange(count)[:, None] * np.array(slopes) % 1.0
    with no_warnings():
        lower, upper = (-1.0, 1.0) if bounds is None else bounds
        low, high = (np.asarray(end, dtype=np.float64) for end in (lower, upper))
        if (low.ndim and len(low) != columns) or (high.ndim and len(high) != columns):
            low, high = low.min(), high.max()
        rows: npt.NDArray[np.float64] = low + places * (high - low)
    if data_norm is not None:
        norm = as_float(data_norm, "data_norm")
        rows = rows * min(1.0, norm / float(np.abs(rows).sum(axis=1).max()))
    return rows


def primes(count: int) -> list[int]:
    """Return the first `count` primes.

    >>> primes(4)
    [2, 3, 5, 7]
    """
    primes_so_far: list[int] = []
    candidate = 2
    while len(primes_so_far) < count:
        if all(candidate % prime for prime in primes_so_far):
            primes_so_far.append(candidate)
        candidate += 1
    return primes_so_far


def _width(
    function: Callable[[Block], Any],
    columns: Sequence[str],
    probe: Block,
    *,
    single: bool,
    quiet: bool,
) -> int:
    """Return how many numbers the function returns for a row, by trying it on public rows.

    A function whose value for a row depends on the other rows, or on earlier calls, is refused.
    """
    widths: set[int] = set()
    errors: list[BaseException] = []

    def tried(rows: Block, watch: Watch) -> npt.NDArray[Any] | None:
        """Return the values of a block, None if they fail; note errors and their width."""
        try:
            values = np.asarray(function(rows.copy()))
        except BaseException as error:  # also a KeyboardInterrupt of its own
            if watch.arrived:
                raise
            errors.append(error)
            return None
        if values.dtype.kind not in "biuf" or (not single and values.shape[:1] != (len(rows),)):
            return None
        widths.add(values.size // len(rows) if values.ndim <= 2 else -1)
        return values

    with no_warnings(), Watch() as watch:
        together = None if single else tried(probe, watch)
        alone = [tried(probe[i : i + 1], watch) for i in range(len(probe))]
        if len(widths) == 1 and (width := min(widths)) > 0:
            if not _same(together, None if single else tried(probe[::-1], watch), alone):
                _check_row_by_row(function, probe, width, single=single)
            return width
    reason = "" if quiet or not errors else f" {type(errors[0]).__name__}: {errors[0]}"
    raise ParameterError(
        "function",
        f"raised{reason}" if errors else f"{sorted(widths)} numbers a row",
        expected=f"(n,) or (n, d) real numbers for n public rows of {len(columns)} columns",
        remedy="correct the function, or pass Study(example=…) with made-up rows on which it works",
    )


def _same(together: Any, backwards: Any, alone: list[Any]) -> bool:
    """Tell whether all three evaluations gave identical numbers, a quick test that most pass."""
    if together is None or backwards is None or any(values is None for values in alone):
        return False
    one_by_one = np.concatenate([values.ravel() for values in alone])
    return np.array_equal(together, backwards[::-1]) and np.array_equal(
        together.ravel(), one_by_one
    )


def _check_row_by_row(
    function: Callable[[Block], Any], probe: Block, width: int, *, single: bool
) -> None:
    """Refuse a function whose value for a row depends on other rows, up to rounding."""
    together = evaluate(function, probe, width=width, rowwise=single)
    backwards = evaluate(function, probe[::-1], width=width, rowwise=single)[::-1]
    alone = evaluate(function, probe, width=width, rowwise=True)
    require(
        all(
            np.allclose(together, other, rtol=1e-6, atol=1e-9, equal_nan=True)
            for other in (backwards, alone)
        ),
        "function",
        "a row's value changes with the other rows",
        expected="a function that treats rows one by one",
        remedy="compute means, ranks or random numbers outside, from public numbers",
    )
