"""Rows that a ticket has opened: they answer exact integer sums, and exact counts by key.

Each row is turned into integers by itself, and integers are added, so the batch size, the order of
the rows and the number of threads and machines never change an answer (theory C0).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.pieces import (
    Keeping,
    Piece,
    RunningSum,
    StoredColumn,
    add_powers,
    codes_of,
    group_codes,
    processors,
    tally_blocks,
)
from zerodelta.data.rowwise import (
    Block,
    Column,
    ExtraColumn,
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


_MOST_SUMS, _LARGEST_SUM = 256, 1 << 14
"""How many sums of named columns are kept, and of how many entries each: at most 32 MiB."""

UNIT: Any = ExtraColumn.UNIT
"""What stands for the name of a column with the number of each row's unit."""

_Made = TypeVar("_Made")


class Held(ABC):
    """Blocks of rows that a ticket has opened: in this process, unless said otherwise."""

    __slots__ = ()

    keeping: Keeping = Keeping()
    """Where what is made of the rows may be kept."""
    here: bool = True
    """Whether sums are added up in this process, and not where the rows are."""
    sums: dict[Hashable, IntegerArray] | None = None
    """Sums of named columns by what was asked; None where the next reading may be another."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN."""

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows, for the last time: no copy of them is needed afterwards."""
        return self.blocks()

    def pieces(self, *, stored: bool = False) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time.

        If `stored`, the only column may be there as `StoredColumn`, as it is stored.
        """
        return [self.blocks]

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return what `part`, a function of this library's, picks from all blocks, in any order."""
        return np.concatenate([np.zeros(0, np.int64), *map(part, self.blocks())])

    def partials(
        self,
        work: Callable[[Any], IntegerArray],
        shape: tuple[int, ...],
        *,
        bound: int,
        keyed: bool,
        threads: int,
        stored: bool,
        number: int | None,
    ) -> Iterator[IntegerArray]:
        """Yield what `work` makes of all rows, added up in several parts.

        If `stored`, it knows what to do with a column as it is stored. `number` is that of the
        rows, where it is public.
        """
        pieces: Sequence[Piece] = [self.blocks]
        if threads > 1:
            pieces = self.pieces(stored=stored)

        def begin() -> RunningSum:
            return RunningSum(work, shape, bound, keyed=keyed)

        return (
            tally.total() for tally in tally_blocks(pieces, begin, threads=threads, rows=number)
        )


@final
class Blocks(Held):
    """Blocks in memory."""

    __slots__ = ("_blocks", "keeping")

    def __init__(self, blocks: Sequence[Block], keeping: Keeping) -> None:
        self._blocks, self.keeping = blocks, keeping

    def blocks(self) -> Iterator[Block]:
        """Yield them."""
        return iter(self._blocks)


@value(eq=False, repr=False)
class Rows:
    """Rows that a ticket has opened: they answer exact integer sums and exact counts by key."""

    held: Held
    """Who has them: this process, or a cluster."""
    rows: int
    """The number of rows, or where that is private (not `whole`) one to plan with."""
    columns: tuple[str, ...]
    """The public names of the columns, in the order in which a function sees them."""
    row_count_is_public: bool = True
    """Whether there are just `rows` rows."""
    may_miss: bool = False
    """Whether missing cells count nowhere; then a row without any cell is no row at all."""
    prepare: Callable[[Block], Block] | None = None
    """What is made of each block that is held: of each row by itself, by this library."""
    name: Hashable = ()
    """What tells their sums from others of the same blocks; None: no sum is kept."""
    numbered: Callable[[], Rows] | None = None
    """Returns the rows with one more column, the number of their unit; None: each is one."""
    sample: int | None = None
    """How many made-up rows stand for all of them, if they do."""

    @property
    def keeping(self) -> Keeping:
        """Where what is made of the rows may be kept."""
        return self.held.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process, and not where the rows are."""
        return self.held.here

    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; what is missing is NaN."""
        blocks = self.held.blocks()
        return blocks if self.prepare is None else map(self.prepare, blocks)

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows, for the last time: no copy of them is needed afterwards."""
        return self.held.blocks_once() if self.prepare is None else self.blocks()

    def pieces(self) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time."""
        pieces, prepare = self.held.pieces(), self.prepare
        return pieces if prepare is None else [partial(_prepared, each, prepare) for each in pieces]

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return what `part`, a function of this library's, picks from all blocks, in any order."""
        return self.held.gathered(self._after(part))

    def mapped(
        self, prepare: Callable[[Block], Block], columns: tuple[str, ...], *, may_miss: bool = False
    ) -> Rows:
        """Return what a function of this library's makes of the rows, of each by itself.

        It is made where the rows are, each time.
        """
        return replace(
            self,
            columns=columns,
            may_miss=may_miss,
            prepare=self._after(prepare),
            name=None,
            numbered=None,
        )

    def chosen(self, names: tuple[str, ...], *, may_miss: bool, itself: str | None = None) -> Rows:
        """Return some columns, by name and in any order; `may_miss` is theirs.

        Of the column `itself`, if named, only whether it is there is taken: as 1. The number of
        each row's unit, if known, is the last column.
        """
        places = [self.columns.index(name) for name in names]
        together = places == list(range(places[0], places[0] + len(places)))
        choice = _Choice(
            # then a block is only looked at, not copied
            places=slice(places[0], places[0] + len(places)) if together else places,
            itself=None if itself is None else names.index(itself),
        )
        known = self.columns[-1] is UNIT
        again = partial(self.chosen, (*names, UNIT), may_miss=may_miss, itself=itself)
        # sums name columns by their places, which are those of other columns of the copy
        name = None if self.name is None else (self.name, names, itself)
        return replace(
            self.mapped(choice, names, may_miss=may_miss),
            name=name,
            numbered=again if known else None,
        )

    def by_unit(self) -> Rows | None:
        """Return the rows with one more column, the number of their unit; None: each is one."""
        return None if self.numbered is None else self.numbered()

    def _after(self, work: Callable[[Block], _Made]) -> Callable[[Block], _Made]:
        """Return what is made of a block that is held: it may be sent to where the rows are."""
        return work if self.prepare is None else partial(_made_of, self.prepare, work)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        """Return the computed sum over the rows; a `key` names an answer that may be kept."""
        sums = self.held.sums
        if sums is None or key is None or self.name is None:
            total = compute()
            return total if self.sample is None else self._enlarged(total, self.sample)
        # an exact sum of the copy is the same whenever it is computed; only noise is fresh
        named = (self.name, key)
        known = sums.get(named)
        if known is None:
            known = compute()
            if known.size <= _LARGEST_SUM:
                while len(sums) >= _MOST_SUMS:
                    del sums[next(iter(sums))]
                sums[named] = known
        answer: IntegerArray = known.copy()
        return answer

    def _enlarged(self, total: IntegerArray, sample: int) -> IntegerArray:
        exact = [int(entry) * self.rows // sample for entry in total.ravel()]
        scaled: npt.NDArray[Any] = np.array(exact, dtype=np.object_).reshape(total.shape)
        return scaled if total.dtype == np.object_ else scaled.astype(np.int64)

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
            function,
            lambda values: lattice.sum(values, joint=joint),
            width=lattice.dimension,
            shape=(lattice.dimension,),
            bound=lattice.steps,
            rowwise=rowwise,
            key=("sum", lattice, joint),
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
            function,
            counted,
            width=width,
            shape=(2, width),
            bound=lattice.steps,
            rowwise=rowwise,
            key=("present sums", lattice, joint),
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
            function,
            product,
            width=width,
            shape=(width * width + 1,),
            bound=steps**2,
            rowwise=rowwise,
            key=("present gram", lattice),
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
        width = lattice.dimension
        return self._total(
            function,
            lattice.gram,
            width=width,
            shape=(width, width),
            bound=lattice.steps**2,
            rowwise=rowwise,
            key=("gram", lattice),
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

        def counted(values: Block | StoredColumn) -> IntegerArray:
            if isinstance(values, StoredColumn):
                return values.counts(size, invalid)
            if large:
                return codes_of(values[:, 0], size, invalid)
            return StoredColumn(values[:, 0]).counts(size, invalid)

        large = size > _LARGE_TABLE
        total = self._total(
            keys,
            counted,
            width=1,
            shape=(size,),
            bound=1,
            rowwise=rowwise,
            key=("counts", size, invalid),
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
            named,
            tabulated,
            width=len(named),
            shape=(count, width),
            bound=bound,
            key=("group sums", tuple(sizes), lattice, degree, of is None),
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
        return self._total(columns, part, width=len(columns), shape=shape, bound=bound, keyed=keyed)

    def _total(
        self,
        function: RowFunction,
        part: Callable[[Any], IntegerArray],
        *,
        width: int,
        shape: tuple[int, ...],
        bound: int,
        rowwise: bool = False,
        key: tuple[Hashable, ...] | None = None,
        keyed: bool = False,
        stored: bool = False,
    ) -> IntegerArray:
        """Add up what `part` makes of the values in each block; a row adds at most `bound`.

        The values are the `width` numbers that the function makes of each row. If `keyed`, `part`
        makes keys of them, which are counted. If `stored`, it also knows what to do with a column
        as it is stored. The sum may be kept under a `key`.
        """
        mapped = row_function(function, self.columns, width=width)

        def work(
            block: Block | StoredColumn,
        ) -> IntegerArray:  # holds nothing of self: may run elsewhere
            if isinstance(block, StoredColumn):
                return part(block)
            found = evaluate(mapped, block, width=width, rowwise=rowwise)
            # what a function makes of a row that was dropped is nothing
            return part(without_blanks(found, block) if blanks else found)

        def added() -> IntegerArray:
            # a number of rows that is not public must not decide anything
            fits = self.row_count_is_public and arithmetic(self.rows, bound) != "python"
            total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
            threads = 1
            # code of the caller's runs where it was started, on one block after the other
            if (named or type(mapped) is Rowwise) and self.rows * width >= _FEW_ENTRIES:
                threads = min(processors(), max(1, _MOST_ENTRIES // math.prod(shape)))
            partials = self.held.partials(
                self._after(work),
                shape,
                bound=bound,
                keyed=keyed,
                threads=threads,
                stored=stored and named and self.prepare is None and len(self.columns) == 1,
                number=self.rows if self.row_count_is_public else None,
            )
            for found in partials:
                total += found
            return total

        named = is_columns(mapped)
        blanks = self.may_miss and not named
        # what a function makes of rows is computed each time
        if key is None or not named:
            return self._answer(None, added)
        return self._answer((mapped, *key), added)


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


def _prepared(piece: Piece, prepare: Callable[[Block], Block]) -> Iterator[Block]:
    return map(prepare, piece())


def _made_of(
    prepare: Callable[[Block], Block], work: Callable[[Block], _Made], block: Block
) -> _Made:
    return work(prepare(block))
