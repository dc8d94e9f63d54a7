"""Rows that a ticket has opened: they answer exact integer sums, and exact counts by key.

Each row is turned into integers by itself, and integers are added, so the batch size, the order of
the rows and the number of threads and machines never change an answer (theory C0).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.pieces import (
    Keeping,
    Keys,
    Piece,
    RunningSum,
    add_powers,
    codes_of,
    each_tally,
    group_codes,
    processors,
)
from zerodelta.data.rowwise import (
    Block,
    Column,
    OwnColumn,
    RowFunction,
    Rowwise,
    evaluate,
    is_columns,
    row_function,
    whole_rows,
    without_blanks,
)
from zerodelta.errors import require
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import as_count
from zerodelta.exact.sums import INT64_MOST, IntegerArray, arithmetic, exact_product
from zerodelta.value import value

MOST_HERE = 1 << 27
"""Numbers that may come from a cluster, for tasks that need rows together: 1 GiB."""

_FEW_ENTRIES = 1 << 21
"""Fewer entries than this are added by one thread: the others would cost more than they do."""

_MOST_ENTRIES = 1 << 25
"""Entries of all threads' sums together."""

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
    def may_miss(self) -> bool:
        """Whether missing cells count nowhere; then a row without any cell is no row at all."""
        return False

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The public names of the columns, in the order in which a function sees them."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN."""

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows, for the last time: no copy of them is needed afterwards."""
        return self.blocks()

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return what `part`, a function of this library's, picks from all blocks, in any order."""
        return np.concatenate([np.zeros(0, np.int64), *map(part, self.blocks())])

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return Keeping()

    def by_unit(self) -> Rows | None:
        """Return the rows with one more column, the number of their unit; None: each is one."""
        return None

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process, and not where the rows are."""
        return True

    def pieces(self) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time."""
        return [self.blocks]

    def stored_pieces(self) -> Sequence[Piece]:
        """Return the same pieces, in which the only column may be a block or `Keys`."""
        return self.pieces()

    def _partials(
        self,
        work: Callable[[Any], IntegerArray],
        shape: tuple[int, ...],
        *,
        bound: int,
        keyed: bool,
        threads: int,
        stored: bool = False,
    ) -> Iterator[IntegerArray]:
        """Yield what `work` makes of all rows, added up in several parts."""
        pieces: Sequence[Piece] = [self.blocks]
        if threads > 1:
            alone = stored and len(self.columns) == 1
            pieces = self.stored_pieces() if alone else self.pieces()

        def begin() -> RunningSum:
            return RunningSum(work, shape, bound, keyed=keyed)

        number = self.rows if self.whole else None
        return (tally.total() for tally in each_tally(pieces, begin, threads=threads, rows=number))

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
        to treat rows one by one: see `RowFunction`.

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

    def present_sums(
        self,
        function: RowFunction,
        lattice: FixedPoint,
        *,
        rowwise: bool = False,
        joint: bool = False,
    ) -> IntegerArray:
        """Return, of shape (2, dimension), how many values there are and the `sum` of them.

        What is NaN is missing, with ``joint=True`` in all of its row. With (s, k) for a value
        that is there, s the lattice's steps, and (0, 0) for one that is not, this has the
        sensitivity of the sum alone: 2s for each coordinate of a box, for a row in an l2 ball.
        """
        width = lattice.dimension

        def counted(values: Block) -> IntegerArray:
            found = whole_rows(values) if joint else values
            present = len(found) - np.count_nonzero(np.isnan(found), axis=0)
            return np.stack([present, lattice.sum(found)])

        return self._total(
            "present sums",
            row_function(function, self.columns, width=width),
            counted,
            shape=(2, width),
            bound=lattice.steps,
            rowwise=rowwise,
            key=(lattice, joint),
            width=width,
        )

    def present_gram(
        self, function: RowFunction, lattice: FixedPoint, *, rowwise: bool = False
    ) -> tuple[int, IntegerArray]:
        """Return how many rows are complete, and their `gram`.

        With s² for a complete row beside its k kᵀ the sensitivity is that of the matrix, √2·s².
        """
        width, steps = lattice.dimension, lattice.steps

        def product(values: Block) -> IntegerArray:
            found = whole_rows(values)
            integers = lattice.quantize(found)
            gram = exact_product(integers, integers, bounds=(steps, steps))
            present = len(found) - np.count_nonzero(np.isnan(found[:, 0]))
            joined: Any = np.append(gram.ravel(), present)
            together: IntegerArray = joined
            return together

        total = self._total(
            "present gram",
            row_function(function, self.columns, width=width),
            product,
            shape=(width * width + 1,),
            bound=steps**2,
            rowwise=rowwise,
            key=(lattice,),
            width=width,
        )
        return int(total[-1]), total[:-1].reshape(width, width)

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

        def counted(values: Block | Keys) -> IntegerArray:
            if isinstance(values, Keys):
                return values.counts(size, invalid)
            if large:
                return codes_of(values[:, 0], size, invalid)
            return Keys(values[:, 0]).counts(size, invalid)

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
            stored=not large,
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
        count, named = math.prod(sizes), [*by, *([] if of is None else [of])]
        steps = 1 if lattice is None else lattice.steps
        width = 1 if of is None else 2 + (0 if lattice is None else degree)

        def tabulated(values: Block) -> IntegerArray:
            sums = np.int64 if len(values) * bound <= INT64_MOST else np.object_
            found: Any = np.zeros((count, width), dtype=sums)
            codes, inside = group_codes(values.T[: len(by)], sizes, len(values))
            if not inside.all():
                codes, values = codes[inside], values[inside]
            found[:, 0] = np.bincount(codes, minlength=count)
            if of is not None:
                add_powers(found, codes, values[:, len(by) :], lattice, degree)
            return np.asarray(found)

        bound = max(1, steps**degree)
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
        keyed: bool = False,
    ) -> IntegerArray:
        """Add up what `part`, a function of this library's, makes of some columns of each block.

        A row adds at most `bound` to an entry, and nothing that another row decides. If `keyed`,
        `part` makes keys, places in an array of that shape, which are counted.
        """
        width = len(columns)
        function = row_function(columns, self.columns, width=width)
        how: Any = {"shape": shape, "bound": bound, "rowwise": False, "key": None, "width": width}
        return self._total("total", function, part, keyed=keyed, **how)

    def _total(
        self,
        kind: str,
        function: Callable[[Block], Any],
        part: Callable[[Any], IntegerArray],
        *,
        shape: tuple[int, ...],
        bound: int,
        rowwise: bool,
        key: tuple[Hashable, ...] | None,
        width: int | None = None,
        keyed: bool = False,
        stored: bool = False,
    ) -> IntegerArray:
        """Add up what `part` makes of the values in each block; a row adds at most `bound`.

        If `keyed`, it makes keys of them, which are counted. If `stored`, it also knows what to do
        with a column as it is stored.
        """

        def work(block: Block | Keys) -> IntegerArray:  # holds nothing of self: may run elsewhere
            if isinstance(block, Keys):
                return part(block)
            found = evaluate(function, block, width=read, rowwise=rowwise)
            # what a function makes of a row that was dropped is nothing
            return part(without_blanks(found, block) if blanks else found)

        def added() -> IntegerArray:
            # a number of rows that is not public must not decide anything
            fits = self.whole and arithmetic(self.rows, bound) != "python"
            total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
            threads = 1
            # code of the caller's runs where it was started, on one block after the other
            if (named or type(function) is Rowwise) and self.rows * read >= _FEW_ENTRIES:
                threads = min(processors(), max(1, _MOST_ENTRIES // math.prod(shape)))
            for found in self._partials(
                work, shape, bound=bound, keyed=keyed, threads=threads, stored=stored and named
            ):
                total += found
            return total

        named = is_columns(function)
        blanks = self.may_miss and not named
        read = width if width is not None else 1 if kind == "counts" else shape[0]
        # what a function makes of rows is computed each time
        if key is None or not named:
            return self._answer(None, added)
        return self._answer((function, kind, *key), added)


# -- Opened rows, each prepared by a function of this library's, where the rows are ---------------


@final
class PreparedRows(Rows):
    """What a function makes of other rows, of each by itself; sums are added where those are."""

    __slots__ = ("_names", "_prepare", "_rows")

    def __init__(
        self, rows: Rows, prepare: Callable[[Block], Block], columns: tuple[str, ...]
    ) -> None:
        self._rows, self._prepare, self._names = rows, prepare, columns

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows.rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._rows.whole

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the prepared columns."""
        return self._names

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._rows.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process."""
        return self._rows.adds_here

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        return map(self._prepare, self._rows.blocks())

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...], **how: Any
    ) -> Iterator[IntegerArray]:
        prepare = self._prepare  # and nothing of self: it is sent to where the rows are
        return self._rows._partials(lambda block: work(prepare(block)), shape, **how)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        return compute()


# -- Shared copy ----------------------------------------------------------------------------------
# Some columns of rows that several parts of one release read: a query is run once for a ticket.
#
# A query may yield other rows the next time, so all that a release asks comes from one copy.

UNIT: Any = OwnColumn.UNIT
"""What stands for the name of a column with the number of each row's unit."""


@final
class ColumnsOf(Rows):
    """Columns of opened rows, by name and in any order; `may_miss` is that of the columns.

    Of the column `itself`, if named, only whether it is there is taken: as 1.
    """

    __slots__ = ("_choice", "_itself", "_may_miss", "_names", "_shared")

    def __init__(
        self, shared: Rows, names: tuple[str, ...], *, may_miss: bool, itself: str | None = None
    ) -> None:
        self._shared, self._names, self._may_miss = shared, names, may_miss
        self._itself = itself
        places = [shared.columns.index(name) for name in names]
        together = places == list(range(places[0], places[0] + len(places)))
        self._choice = _Choice(
            # then a block is only looked at, not copied
            places=slice(places[0], places[0] + len(places)) if together else places,
            itself=None if itself is None else names.index(itself),
        )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._shared.rows

    @property
    def whole(self) -> bool:
        """Whether there are just so many."""
        return self._shared.whole

    @property
    def may_miss(self) -> bool:
        """Whether missing cells of these columns count nowhere."""
        return self._may_miss

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self._shared.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process."""
        return self._shared.adds_here

    def by_unit(self) -> Rows | None:
        """Return the rows with the number of their unit, the last column of the copy if known."""
        last = self._shared.columns[-1]
        if last is not UNIT:
            return None
        names, itself = (*self._names, UNIT), self._itself
        return ColumnsOf(self._shared, names, may_miss=self._may_miss, itself=itself)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows."""
        return map(self._choice, self._shared.blocks())

    def pieces(self) -> Sequence[Piece]:
        """Return the blocks in pieces that threads may read."""
        return [partial(_chosen, piece, self._choice) for piece in self._shared.pieces()]

    def _partials(
        self, work: Callable[[Block], IntegerArray], shape: tuple[int, ...], **how: Any
    ) -> Iterator[IntegerArray]:
        """Yield sums, added up where the rows are."""
        return self._shared._partials(partial(_of, work, self._choice), shape, **how)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        # a key names columns by their places, which are those of other columns of the copy
        return self._shared._answer(
            None if key is None else (self._names, self._itself, key), compute
        )


@value
class _Choice:
    """Some columns of a block, one of which may say only that it is there."""

    places: slice | list[int]
    itself: int | None

    def __call__(self, block: Block) -> Block:
        chosen: Block = block[:, self.places]
        if self.itself is not None:
            chosen = np.array(chosen)
            chosen[:, self.itself] = np.where(np.isnan(chosen[:, self.itself]), np.nan, 1.0)
        return chosen


def _chosen(piece: Piece, choice: _Choice) -> Iterator[Block]:
    return map(choice, piece())


def _of(work: Callable[[Block], IntegerArray], choice: _Choice, block: Block) -> IntegerArray:
    return work(choice(block))
