"""Rows that a ticket has opened: they answer exact integer sums, and exact counts by key.

Each row is turned into integers by itself, and integers are added, so the batch size, the order of
the rows and the number of threads and machines never change an answer (theory C0).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.rowwise import (
    Block,
    Column,
    RowFunction,
    Rowwise,
    evaluate,
    is_columns,
    row_function,
)
from zerodelta.data.threads import Piece, each_tally, processors
from zerodelta.errors import require
from zerodelta.exact.exact_sums import INT64_MOST, IntegerArray, arithmetic
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import as_count

__all__ = ["Rows"]

_MOST_IN_BLOCK = 1 << 40

_FEW_ENTRIES = 1 << 21
"""Fewer entries than this are added by one thread: the others would cost more than they do."""

_MOST_ENTRIES = 1 << 25
"""Entries of all threads' sums together."""

_CACHED = 1 << 14
"""Keys that are looked at while they are in the cache."""

_LARGE_TABLE = 1 << 12
"""Counts of more keys than this are added where they are, not as a table for each block."""


class Rows(ABC):
    """Rows that a ticket has opened: they answer exact integer sums and exact counts by key."""

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, or where that is private (not `whole`) one to plan with."""

    @property
    def whole(self) -> bool:
        """Whether there are just `rows` rows."""
        return True

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN."""

    def pieces(self) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time."""
        return [self.blocks]

    @abstractmethod
    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        """Return the computed sum over the rows; a `key` names an answer that may be kept."""

    def sum(
        self,
        function: RowFunction,
        lattice: FixedPoint,
        *,
        rowwise: bool = False,
        joint: bool = False,
    ) -> IntegerArray:
        """Return the exact integer sum over rows of lattice.quantize(function(row)).

        `function` maps an (n, columns) array to (n, lattice.dimension) numbers, or names columns.
        A row for which it raises, or returns another shape, counts as the zero row; a NaN is the
        center of its own coordinate or, with ``joint=True``, makes its row the zero row. With
        ``rowwise=True`` it only ever sees one row at a time, which is slower. Whether it is proven
        to treat rows one by one: see `row_status`.

        The sum has sensitivity 2 · lattice.steps in the lattice's norm (replace-one).
        """
        return self._total(
            "sum",
            row_function(function, self.columns, width=lattice.dimension),
            lambda values: lattice.sum(values, joint=joint),
            shape=(lattice.dimension,),
            bound=lattice.steps,
            rowwise=rowwise,
            key=(lattice, joint),
        )

    def gram(
        self, function: RowFunction, lattice: FixedPoint, *, rowwise: bool = False
    ) -> IntegerArray:
        """Return the exact sum over rows of k kᵀ, k = lattice.quantize(function(row)).

        This is a `sum` too, of d² products for each row, computed by exact matrix products. A row
        with a NaN counts as the zero row.
        Within an l2 ball of s steps it has sensitivity √2·s² in the Frobenius norm (replace-one).
        """
        width, steps = lattice.dimension, lattice.steps

        return self._total(
            "gram",
            row_function(function, self.columns, width=width),
            lattice.gram,
            shape=(width, width),
            bound=steps**2,
            rowwise=rowwise,
            key=(lattice,),
        )

    def counts(
        self,
        keys: RowFunction,
        size: int,
        *,
        invalid: int | None = None,
        rowwise: bool = False,
    ) -> npt.NDArray[np.int64]:
        """Return how many rows have each key 0..size-1.

        `keys` maps an (n, columns) array to n numbers, or names a column. A key that is not one of
        the integers 0..size-1 (NaN, a fraction, out of range, a row that raised) is counted at the
        public key `invalid`, or nowhere if that is None.

        Replacing one row changes at most two counts, each by one: l1 sensitivity 2, l2 √2.
        """
        size = as_count(size, "size", minimum=1)
        if invalid is not None:
            require(
                as_count(invalid, "invalid") < size,
                "invalid",
                invalid,
                expected=f"a key below {size}",
                remedy="pass such a key or None",
            )

        def counted(values: Block) -> IntegerArray:
            if large:
                return _codes(values[:, 0], size, invalid)
            counts = np.zeros(size, dtype=np.int64)
            for start in range(0, len(values), _CACHED):
                part = _codes(values[start : start + _CACHED, 0], size, invalid)
                counts += np.bincount(part, minlength=size)
            return counts

        large = size > _LARGE_TABLE
        total = self._total(
            "counts",
            row_function(keys, self.columns, width=1),
            counted,
            shape=(size,),
            bound=1,
            rowwise=rowwise,
            key=(size, invalid),
            keyed=large,
        )
        return total.astype(np.int64, copy=False)

    def group_sums(
        self,
        by: Sequence[Column],
        sizes: Sequence[int],
        of: Column | None,
        lattice: FixedPoint | None,
        *,
        degree: int = 1,
    ) -> IntegerArray:
        """Return for each group its rows, those with a value, and the sums of k, k², … of these.

        `by` names columns of codes 0..size-1, and the groups are all combinations, the last column
        fastest; a row whose code is missing is in none. k = lattice.quantize(value of `of`), up to
        k^degree. Of shape (groups, 2 + degree); (groups, 2) without a lattice, (groups, 1) without
        `of`.
        """
        keyed, count = len(by), math.prod(sizes)
        named = [*by, *([] if of is None else [of])]
        steps = 1 if lattice is None else lattice.steps
        width = 1 if of is None else 2 + (0 if lattice is None else degree)

        def tabulated(values: Block) -> IntegerArray:
            codes = np.zeros(len(values), dtype=np.int64)
            inside = np.ones(len(values), dtype=np.bool_)
            for i, size in enumerate(sizes):
                column = values[:, i]
                known = (column >= 0) & (column < size)  # NaN: in no group
                if not known.all():
                    column = np.where(known, column, 0)
                    inside &= known
                codes *= size
                codes += column.astype(np.int64)
            shape = (count, width)
            found: IntegerArray = np.zeros(shape, np.int64) if fits else np.zeros(shape, np.object_)
            if not inside.all():
                codes, values = codes[inside], values[inside]
            found[:, 0] = np.bincount(codes, minlength=count)
            if of is not None:
                _add_powers(found, codes, values[:, keyed:], lattice, degree)
            return found

        bound = max(1, steps**degree)
        fits = bound < _MOST_IN_BLOCK  # no block has 2^22 rows
        return self._total(
            "group sums",
            row_function(named, self.columns, width=len(named)),
            tabulated,
            shape=(count, width),
            bound=bound,
            rowwise=False,
            key=(tuple(sizes), lattice, degree, of is None),
            width=len(named),
        )

    def total(
        self,
        part: Callable[[Block], IntegerArray],
        columns: Sequence[Column],
        *,
        shape: tuple[int, ...],
        bound: int,
    ) -> IntegerArray:
        """Add up what `part`, a function of this library's, makes of some columns of each block.

        A row adds at most `bound` to an entry, and nothing that another row decides.
        """
        width = len(columns)
        function = row_function(columns, self.columns, width=width)
        return self._total(
            "total", function, part, shape=shape, bound=bound, rowwise=False, key=None, width=width
        )

    def _total(
        self,
        kind: str,
        function: Callable[[Block], Any],
        part: Callable[[Block], IntegerArray],
        *,
        shape: tuple[int, ...],
        bound: int,
        rowwise: bool,
        key: tuple[Hashable, ...] | None,
        width: int | None = None,
        keyed: bool = False,
    ) -> IntegerArray:
        """Add up what `part` makes of the values in each block; a row adds at most `bound`.

        If `keyed`, it makes keys of them, which are counted.
        """

        def values(block: Block) -> IntegerArray:
            return part(evaluate(function, block, width=read, rowwise=rowwise))

        def added() -> IntegerArray:
            # a number of rows that is not public must not decide anything
            fits = self.whole and arithmetic(self.rows, bound) != "python"
            total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
            threads = 1
            # code of the caller's runs where it was started, on one block after the other
            if (named or type(function) is Rowwise) and self.rows * read >= _FEW_ENTRIES:
                threads = min(processors(), max(1, _MOST_ENTRIES // math.prod(shape)))
            pieces = self.pieces() if threads > 1 else [self.blocks]

            def begin() -> _Sum:
                return _Sum(values, shape, bound, keyed=keyed)

            for tally in each_tally(pieces, begin, threads=threads):
                total += tally.total()
            return total

        named = is_columns(function)
        read = width if width is not None else 1 if kind == "counts" else shape[0]
        # what a function makes of rows is computed each time
        if key is None or not named:
            return self._answer(None, added)
        return self._answer((function, kind, *key), added)


@final
class _Sum:
    """An exact sum in 64 bits, and in Python integers beyond what these hold."""

    __slots__ = ("_bound", "_keyed", "_many", "_part", "_room", "_sums")

    def __init__(
        self,
        part: Callable[[Block], IntegerArray],
        shape: tuple[int, ...],
        bound: int,
        *,
        keyed: bool,
    ) -> None:
        self._part, self._bound, self._keyed = part, bound, keyed
        self._sums: npt.NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self._room = INT64_MOST // bound
        """How many more rows fit, whatever is in them."""
        self._many: npt.NDArray[np.object_] | None = None

    def add(self, block: Block) -> None:
        """Add what the rows of a block have."""
        added: npt.NDArray[Any] = self._part(block)
        if len(block) > self._room:
            self._many, self._room = self._exact(), INT64_MOST // self._bound
            self._sums[...] = 0
        if added.dtype == np.object_:
            self._many = added if self._many is None else self._many + added
        elif self._keyed:
            np.add.at(self._sums, added, 1)
        else:
            self._sums += added
        self._room -= len(block)

    def total(self) -> IntegerArray:
        """Return the sum."""
        return self._sums if self._many is None else self._exact()

    def _exact(self) -> npt.NDArray[np.object_]:
        known = self._sums.astype(np.object_)
        return known if self._many is None else known + self._many


def _codes(found: npt.NDArray[np.float64], size: int, invalid: int | None) -> npt.NDArray[np.int64]:
    """Return the keys 0..size-1 among some numbers, and `invalid` for all others, or nothing."""
    with np.errstate(all="ignore"):
        codes = found.astype(np.int64)
    valid = codes == found  # NaN and fractions: not valid
    valid &= codes.view(np.uint64) < np.uint64(size)
    if valid.all():
        return codes
    return codes[valid] if invalid is None else np.where(valid, codes, invalid)


def _add_powers(
    found: IntegerArray,
    codes: npt.NDArray[np.int64],
    values: Block,
    lattice: FixedPoint | None,
    degree: int,
) -> None:
    """Add to each group the number of its values, and the sums of their powers, exactly."""
    present = ~np.isnan(values[:, 0])
    if not present.all():
        codes, values = codes[present], values[present]
    found[:, 1] = np.bincount(codes, minlength=len(found))
    if lattice is None:
        return
    integers = lattice.quantize(values)[:, 0]
    for power in range(1, degree + 1):
        added, bound = integers.astype(found.dtype) ** power, lattice.steps**power
        if len(found) == 1:
            found[0, 1 + power] = added.sum()
        elif (most := (1 << 53) // bound) >= 1:  # so many add up exactly in floats
            for start in range(0, len(codes), most):
                part = slice(start, start + most)
                sums = np.bincount(
                    codes[part], weights=added[part].astype(np.float64), minlength=len(found)
                )
                found[:, 1 + power] += sums.astype(np.int64)
        else:
            np.add.at(found[:, 1 + power], codes, added)
