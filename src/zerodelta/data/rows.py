"""Answer exact integer sums, and exact counts by key, from rows that a ticket has opened.

Each row becomes integers by itself, and integers are added, so the batch size, the order of the
rows and the number of threads and machines never change an answer (theory C0).
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

MOST_COLLECTED = 1 << 27
"""The most numbers that are brought from a cluster to this process: 1 GiB."""

_FEWEST_ENTRIES = 1 << 21
"""Fewer entries than this are added by one thread: starting more would take longer."""

_MOST_THREAD_ENTRIES = 1 << 25
"""The most entries in the sums of all threads together."""

_LARGE_TABLE = 1 << 12
"""With more keys than this, each row adds to one running table, not each block a new table."""


_MOST_KEPT_SUMS, _LARGEST_KEPT_SUM = 256, 1 << 14
"""The number of sums of named columns that are kept, and the entries of each: at most 32 MiB."""

UNIT: Any = ExtraColumn.UNIT
"""The name of the extra column with the number of each row's unit."""

_Result = TypeVar("_Result")


class Held(ABC):
    """Blocks of rows that a ticket has opened: in this process or, if not `here`, on a cluster."""

    __slots__ = ()

    keeping: Keeping = Keeping()
    """The storage for copies of the rows."""
    here: bool = True
    """Whether sums are added up in this process, not by the workers of a cluster."""
    sums: dict[Hashable, IntegerArray] | None = None
    """Sums of named columns by query; None if reading the rows again may give other rows."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; a missing cell is NaN."""

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows for the last time, so that no copy has to be made."""
        return self.blocks()

    def pieces(self, *, stored: bool = False) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time.

        With `stored`, rows of one column may come as `StoredColumn`.
        """
        return [self.blocks]

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the integers that `part`, a function of this library, picks from all blocks.

        Their order depends on the order in which blocks are read.
        """
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
        row_count: int | None,
    ) -> Iterator[IntegerArray]:
        """Yield partial sums, one from each thread, of what `work` computes from the blocks.

        With `stored`, `work` accepts a `StoredColumn` too. `row_count` is the number of rows for
        the progress bar, None where it is private.
        """
        pieces: Sequence[Piece] = [self.blocks]
        if threads > 1:
            pieces = self.pieces(stored=stored)

        def begin() -> RunningSum:
            return RunningSum(work, shape, bound, keyed=keyed)

        return (
            tally.total() for tally in tally_blocks(pieces, begin, threads=threads, rows=row_count)
        )


@final
class Blocks(Held):
    """Blocks in memory."""

    __slots__ = ("_blocks", "keeping")

    def __init__(self, blocks: Sequence[Block], keeping: Keeping) -> None:
        self._blocks, self.keeping = blocks, keeping

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks."""
        return iter(self._blocks)


@value(eq=False, repr=False)
class Rows:
    """Rows that a ticket has opened: they answer exact integer sums and exact counts by key."""

    held: Held
    """The blocks, in this process or on a cluster."""
    rows: int
    """The number of rows; where that is private, a public number to plan with."""
    columns: tuple[str, ...]
    """The public names of the columns, in the order in which a function sees them."""
    row_count_is_public: bool = True
    """Whether `rows` is the exact number of rows, which is then public."""
    may_miss: bool = False
    """Whether missing cells are ignored; a row without any cell is then ignored too."""
    prepare: Callable[[Block], Block] | None = None
    """A function of this library, row by row, applied to each held block; None changes nothing."""
    name: Hashable = ()
    """The part of the key of kept sums that names these rows; None: no sum is kept."""
    numbered: Callable[[], Rows] | None = None
    """Returns the rows with one more column, the number of their unit; None without units."""
    sample: int | None = None
    """The number of made-up rows held, if they stand for `rows` rows."""

    @property
    def keeping(self) -> Keeping:
        """The storage for copies of the rows."""
        return self.held.keeping

    @property
    def adds_here(self) -> bool:
        """Whether sums are added up in this process, not by the workers of a cluster."""
        return self.held.here

    def blocks(self) -> Iterator[Block]:
        """Yield all rows once, as (n, columns) arrays of floats; a missing cell is NaN."""
        blocks = self.held.blocks()
        return blocks if self.prepare is None else map(self.prepare, blocks)

    def blocks_once(self) -> Iterator[Block]:
        """Yield all rows for the last time, so that no copy has to be made."""
        return self.held.blocks_once() if self.prepare is None else self.blocks()

    def pieces(self) -> Sequence[Piece]:
        """Return the same blocks in pieces that threads may read at the same time."""
        pieces, prepare = self.held.pieces(), self.prepare
        if prepare is None:
            return pieces
        return [partial(_prepared, piece, prepare) for piece in pieces]

    def gathered(self, part: Callable[[Block], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the integers that `part`, a function of this library, picks from all blocks.

        Their order depends on the order in which blocks are read.
        """
        return self.held.gathered(self._after(part))

    def mapped(
        self, prepare: Callable[[Block], Block], columns: tuple[str, ...], *, may_miss: bool = False
    ) -> Rows:
        """Return rows computed from these, each from one row, by a function of this library.

        They are computed on every pass, where the rows are.
        """
        return replace(
            self,
            columns=columns,
            may_miss=may_miss,
            prepare=self._after(prepare),
            name=None,
            numbered=None,
        )

    def chosen(
        self, names: tuple[str, ...], *, may_miss: bool, presence: str | None = None
    ) -> Rows:
        """Return some columns, by name and in any order; `may_miss` is that of these columns.

        The cells of the column named `presence`, if any, become 1, or NaN where they are missing.
        If the last column of these rows is the number of each row's unit, so is that of the rows
        that `by_unit` of the result returns.
        """
        places = [self.columns.index(name) for name in names]
        contiguous = places == list(range(places[0], places[0] + len(places)))
        choice = _ChosenColumns(
            # a slice is a view of the block, a list a copy
            places=slice(places[0], places[0] + len(places)) if contiguous else places,
            presence=None if presence is None else names.index(presence),
        )
        has_units = self.columns[-1] is UNIT
        with_units = partial(self.chosen, (*names, UNIT), may_miss=may_miss, presence=presence)
        # the keys of kept sums hold positions of columns, so the name says of which columns
        name = None if self.name is None else (self.name, names, presence)
        return replace(
            self.mapped(choice, names, may_miss=may_miss),
            name=name,
            numbered=with_units if has_units else None,
        )

    def by_unit(self) -> Rows | None:
        """Return the rows with one more column, the number of their unit; None without units."""
        return None if self.numbered is None else self.numbered()

    def _after(self, work: Callable[[Block], _Result]) -> Callable[[Block], _Result]:
        """Return `work` of a prepared block as a function of a held one, for workers too."""
        return work if self.prepare is None else partial(_composed, self.prepare, work)

    def _answer(self, key: Hashable, compute: Callable[[], IntegerArray]) -> IntegerArray:
        """Return the sum that `compute` returns, or the one kept under `key` (None: not kept)."""
        sums = self.held.sums
        if sums is None or key is None or self.name is None:
            total = compute()
            return total if self.sample is None else self._scaled_up(total, self.sample)
        # an exact sum of the copy never changes: each release adds fresh noise to it
        full_key = (self.name, key)
        kept = sums.get(full_key)
        if kept is None:
            kept = compute()
            if kept.size <= _LARGEST_KEPT_SUM:
                while len(sums) >= _MOST_KEPT_SUMS:
                    del sums[next(iter(sums))]  # the oldest
                sums[full_key] = kept
        answer: IntegerArray = kept.copy()
        return answer

    def _scaled_up(self, total: IntegerArray, sample: int) -> IntegerArray:
        """Return the sum of `sample` made-up rows times the number of rows each stands for."""
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
        ``rowwise=True`` the function sees one row at a time, which is slower. `RowFunction` says
        when a function is proven to treat rows one by one.

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
        """Return the number of present values and their `sum`, as an array (2, dimension).

        A NaN is missing; with ``joint=True`` all values of its row are. With the numbers multiplied
        by s, the lattice's steps, a present value k adds (s, k) and a missing one (0, 0). Since
        |k| ≤ s, such pairs have the sensitivity of the sum alone: 2s for each coordinate of a box,
        or for a row in an l2 ball.
        """
        width = lattice.dimension

        def counted(values: Block) -> IntegerArray:
            kept_rows = whole_rows(values) if joint else values
            present = len(kept_rows) - np.count_nonzero(np.isnan(kept_rows), axis=0)
            return np.stack([present, lattice.sum(kept_rows)])

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
        """Return the number of complete rows, and their `gram`.

        With the number multiplied by s², s the norm of a row in steps, a complete row adds s² and
        its matrix k kᵀ: both together have the sensitivity of the matrix alone, √2·s².
        """
        width, steps = lattice.dimension, lattice.steps

        def product(values: Block) -> IntegerArray:
            """Return the Gram matrix of a block's quantized rows and its number of present rows."""
            complete_rows = whole_rows(values)
            integers = lattice.quantize(complete_rows)
            gram = exact_product(integers, integers, bounds=(steps, steps))
            present = len(complete_rows) - np.count_nonzero(np.isnan(complete_rows[:, 0]))
            flat: Any = np.append(gram.ravel(), present)
            answer: IntegerArray = flat
            return answer

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

        It is computed by exact matrix products. A row with a NaN counts as the zero row. For rows
        in an l2 ball of s steps it has sensitivity √2·s² in the Frobenius norm (replace-one).
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
        """Return the number of rows with each key 0..size-1, a function of a row or a column.

        `keys` maps an (n, columns) array to n numbers, or names a column. A key that is not one of
        the integers 0..size-1 (NaN, a fraction, out of range, a row that raised) counts as the
        public key `invalid`, or is ignored if that is None.

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
            """Return the number of rows of each code in a block, or the codes if there are many."""
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
        """Return for each group the number of its rows, of its values, and the sums of k, k², ….

        `by` names columns of codes 0..size-1, and the groups are all combinations, the last column
        fastest; a row with a missing code is in no group. Values are the cells of the column `of`
        that are present; k is the value quantized by the lattice, with powers up to k^degree. The
        shape is (groups, 2 + degree); (groups, 2) without a lattice, (groups, 1) without `of`.
        """
        count, named = math.prod(sizes), [*by, *([] if of is None else [of])]
        steps = 1 if lattice is None else lattice.steps
        width = 1 if of is None else 2 + (0 if lattice is None else degree)

        def tabulated(values: Block) -> IntegerArray:
            """Return row counts and sums of powers by group, of one block."""
            dtype = np.int64 if len(values) * bound <= INT64_MOST else np.object_
            sums: Any = np.zeros((count, width), dtype=dtype)
            codes, inside = group_codes(values.T[: len(by)], sizes, len(values))
            if not inside.all():
                codes, values = codes[inside], values[inside]
            sums[:, 0] = np.bincount(codes, minlength=count)
            if of is not None:
                add_powers(sums, codes, values[:, len(by) :], lattice, degree)
            return np.asarray(sums)

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
        """Return the sum over blocks of what `part`, a function of this library, computes.

        `part` gets some columns of a block. A row adds at most `bound` to an entry, whatever the
        other rows are. If `keyed`, `part` returns a key for each row, a position in an array of
        the given shape, and keys are counted.
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
        """Return the sum over blocks of what `part` computes from the function's values.

        The values are the `width` numbers that the function returns for each row. A row adds at
        most `bound` to an entry. If `keyed`, `part` returns keys, which are counted; if `stored`,
        it accepts a `StoredColumn` too. The sum is kept under `key` if that is not None.
        """
        mapped = row_function(function, self.columns, width=width)

        # holds nothing of self, since it may be sent to the workers of a cluster
        def work(block: Block | StoredColumn) -> IntegerArray:
            """Return the part of the total that one block contributes."""
            if isinstance(block, StoredColumn):
                return part(block)
            values = evaluate(mapped, block, width=width, rowwise=rowwise)
            # a dropped row has no cells: the function's value for it is ignored
            return part(without_blanks(values, block) if blanks else values)

        def added() -> IntegerArray:
            """Return the sum of all blocks' parts, with threads where that is worth it."""
            # a private number of rows must not decide the type of the result
            fits = self.row_count_is_public and arithmetic(self.rows, bound) != "python"
            total: npt.NDArray[Any] = np.zeros(shape, dtype=np.int64 if fits else np.object_)
            threads = 1
            # the caller's code runs in the calling thread, on one block after the other
            if (named or type(mapped) is Rowwise) and self.rows * width >= _FEWEST_ENTRIES:
                threads = min(processors(), max(1, _MOST_THREAD_ENTRIES // math.prod(shape)))
            partials = self.held.partials(
                self._after(work),
                shape,
                bound=bound,
                keyed=keyed,
                threads=threads,
                stored=stored and named and self.prepare is None and len(self.columns) == 1,
                row_count=self.rows if self.row_count_is_public else None,
            )
            for partial_sum in partials:
                total += partial_sum
            return total

        named = is_columns(mapped)
        blanks = self.may_miss and not named
        # sums of a function are computed each time: only those of named columns have a key
        if key is None or not named:
            return self._answer(None, added)
        return self._answer((mapped, *key), added)


@value
class _ChosenColumns:
    """Chooses columns of a block; the cells of column `presence` become 1, or NaN if missing."""

    places: slice | list[int]
    presence: int | None

    def __call__(self, block: Block) -> Block:
        chosen: Block = block[:, self.places]
        if self.presence is not None:
            chosen = np.array(chosen)
            chosen[:, self.presence] = np.where(np.isnan(chosen[:, self.presence]), np.nan, 1.0)
        return chosen


def _prepared(piece: Piece, prepare: Callable[[Block], Block]) -> Iterator[Block]:
    return map(prepare, piece())


def _composed(
    prepare: Callable[[Block], Block], work: Callable[[Block], _Result], block: Block
) -> _Result:
    return work(prepare(block))
