"""A source of rows answers two queries: an exact integer sum, and exact counts by key.

Each row is turned into integers by itself, and integers are added, so the batch size, the order of
the rows and the number of machines never change an answer (theory C0).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.protection import Protection
from zerodelta.data.rowwise import (
    Block,
    Column,
    RowFunction,
    evaluate,
    is_columns,
    row_function,
    whole_rows,
)
from zerodelta.data.ticket import Ticket
from zerodelta.errors import require
from zerodelta.exact.exact_sums import IntegerArray, arithmetic, exact_product
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import as_count

__all__ = ["FOREIGN_SOURCE", "Rows", "Source", "is_ours", "ours", "protection_of"]

FOREIGN_SOURCE = "the source's own code yields each row by itself, keeps no state and shows nothing"
"""The premise of a certificate whose rows come from a source that is not `is_ours`."""

_MOST_SUMS, _LARGEST_SUM = 256, 1 << 14
"""How many sums of named columns are kept, and of how many entries each: at most 32 MiB."""

_MOST_IN_BLOCK = 1 << 40

_Kind = TypeVar("_Kind", bound=type)

_OURS: list[type] = []
"""Final classes that this library wrote, compared by identity: no other class can pass for one.

They have slots: nothing can take the place of an object's method either.
"""


class Source(ABC):
    """Rows of numbers that yield nothing without a ticket.

    A new kind of source gives `rows`, `columns` and `blocks`; what it is asked follows (`Rows`).
    """

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, or where that is private a public number to plan with."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN.

        Infinities are clipped like any large number. A block may be read-only.
        """

    @property
    def whole(self) -> bool:
        """Whether the number of rows is public, and each of them is yielded."""
        return True

    @property
    def may_miss(self) -> bool:
        """Whether a missing cell counts nowhere, so that the number of those present is private."""
        return False

    @property
    def protection(self) -> Protection:
        """Who is protected, and what that assumes."""
        return Protection()

    def open(self, ticket: Ticket, *, keep: bool = False) -> Rows:
        """Return the rows, for one release.

        With `keep` they are read once, when first asked, into a copy from which all answers come:
        changing the data in between changes nothing. Sums of named columns are kept too.
        """
        Ticket.check(ticket)
        return _OpenRows(self, ticket, keep=keep)


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

    @abstractmethod
    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...]
    ) -> Iterator[IntegerArray]:
        """Yield what `work` makes of all rows: block by block, or of several added up."""

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
            lambda values: lattice.sum(whole_rows(values) if joint else values),
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

        def product(values: Block) -> IntegerArray:
            integers = lattice.quantize(whole_rows(values))
            return exact_product(integers, integers, bounds=(steps, steps))

        return self._total(
            "gram",
            row_function(function, self.columns, width=width),
            product,
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
            found = values[:, 0]
            valid = (found >= 0) & (found < size) & (found == np.floor(found))  # NaN: not valid
            counts = np.bincount(found[valid].astype(np.int64), minlength=size)
            if invalid is not None:
                counts[invalid] += int(np.count_nonzero(~valid))
            return counts

        mapped = row_function(keys, self.columns, width=1)
        total = self._total(
            "counts", mapped, counted, shape=(size,), bound=1, rowwise=rowwise, key=(size, invalid)
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
                codes = codes * size + np.where(known, column, 0).astype(np.int64)
                inside &= known
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

    def _total(
        self,
        kind: str,
        function: Callable[[Block], Any],
        part: Callable[[Block], IntegerArray],
        *,
        shape: tuple[int, ...],
        bound: int,
        rowwise: bool,
        key: tuple[Hashable, ...],
        width: int | None = None,
    ) -> IntegerArray:
        """Add up what `part` makes of the values in each block; a row adds at most `bound`."""

        def added() -> IntegerArray:
            # a number of rows that is not public must not decide anything
            fits = self.whole and arithmetic(self.rows, bound) != "python"
            total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
            for found in self._partials(work, shape):
                total += found
            return total

        def work(block: Block) -> IntegerArray:
            return part(evaluate(function, block, width=read, rowwise=rowwise))

        read = width if width is not None else 1 if kind == "counts" else shape[0]
        # what a function makes of rows is computed each time
        return self._answer((function, kind, *key) if is_columns(function) else None, added)


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


@final
class _OpenRows(Rows):
    """The rows of a source."""

    __slots__ = ("_keep", "_kept", "_names", "_rows", "_source", "_sums", "_ticket", "_whole")

    def __init__(self, source: Source, ticket: Ticket, *, keep: bool) -> None:
        self._rows, self._whole, self._names = source.rows, source.whole, source.columns
        self._source: Source | None = source
        self._ticket, self._keep = ticket, keep
        self._kept: tuple[Block, ...] = ()
        self._sums: dict[Hashable, IntegerArray] = {}

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._whole

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a block may be read-only."""
        if self._source is None:
            yield from self._kept
        elif not self._keep:
            Ticket.use(self._ticket)
            yield from self._source.blocks(self._ticket)
        else:
            Ticket.use(self._ticket)
            # whole before it is kept: an interrupt leaves no table half filled
            kept = tuple(map(_column_by_column, self._source.blocks(self._ticket)))
            self._kept, self._source = kept, None
            yield from kept

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...]
    ) -> Iterator[IntegerArray]:
        return map(work, self.blocks())

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # an exact sum of the copy is the same whenever it is computed; only noise is fresh
        if key is None or not self._keep:
            return compute()
        known = self._sums.get(key)
        if known is None:
            known = compute()
            if known.size <= _LARGEST_SUM:
                while len(self._sums) >= _MOST_SUMS:
                    del self._sums[next(iter(self._sums))]
                self._sums[key] = known
        answer: IntegerArray = known.copy()
        return answer


def _column_by_column(block: Block) -> Block:
    """Return a read-only copy in which each column is contiguous."""
    kept = np.array(block, dtype=np.float64, order="F").tobytes(order="F")
    # bytes cannot be made writable again, whatever a function of rows tries
    return np.frombuffer(kept).reshape(block.shape, order="F")


def ours(kind: _Kind) -> _Kind:
    """Register a final class of sources whose reading of rows is proven (a decorator)."""
    _OURS.append(kind)
    return kind


def is_ours(source: object) -> bool:
    """Tell whether this library reads the rows; any other source is caller-asserted.

    >>> from zerodelta.data.arrays import ArraySource
    >>> is_ours(ArraySource(np.zeros(3)))
    True
    """
    return any(type(source) is kind for kind in _OURS)


def protection_of(*sources: Any) -> Protection:
    """Return who is protected where all of these are read together; they must not differ in it.

    What a source that is not ours says of itself is not believed: it is caller-asserted.
    """
    found = [
        each.protection if is_ours(each) else Protection(premise=FOREIGN_SOURCE)
        for each in sources
        if isinstance(each, Source)
    ]
    for other in found[1:]:
        require(
            other == found[0],
            "data",
            "from several data sets",
            expected="rows of one data set, protected in one way",
            remedy="take all columns from one people = zd.open(…)",
        )
    return found[0] if found else Protection()
