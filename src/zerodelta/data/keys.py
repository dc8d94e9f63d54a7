"""Group rows by public keys, and count items and keys of a public universe (theory U).

Each item is looked up in the universe by itself, whatever the other items are. An item that is not
in the universe is ignored, or counted as a public item. No item raises an error. Rows of a source
are counted block by block.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data import cells as one_cell
from zerodelta.data.arrow_cells import read_column
from zerodelta.data.cells import OptionIndex
from zerodelta.data.columns import Unread, as_frame, as_objects
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Bounds, Kind, Number, Text
from zerodelta.data.pieces import as_one_table, copied_blocks, group_codes
from zerodelta.data.rows import Blocks, Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import DerivedSource, Sealed, Source, Ticket, trusted_source
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Array, Integers
from zerodelta.exact.rational import Rational, as_rational, number_text
from zerodelta.exact.sums import IntegerArray
from zerodelta.spaces import Finite
from zerodelta.spaces.keys import CodeKeys, KeyUniverse, ProductKeys, RangeKeys, TextKeys
from zerodelta.value import value

# -- Group keys -----------------------------------------------------------------------------------
# The keys of a table: each row is in one of several public groups, by its own cells (theory P).
#
# A key is a column of codes (a category, a boolean, a date), or a column of numbers cut at public
# edges (`zd.bins`). Groups are all combinations of codes, the last key fastest; a row with a
# missing code is in no group.

Codes: TypeAlias = npt.NDArray[np.int64]
Inside: TypeAlias = npt.NDArray[np.bool_]


@value
class Bins:
    """Intervals between public edges, made by `zd.bins`.

    Each interval includes its lower edge; the last one includes both of its edges.
    """

    edges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        floats = [float(edge) for edge in self.edges]
        require(
            len(floats) >= 2 and all(a < b for a, b in itertools.pairwise(floats)),
            "bins",
            [number_text(edge) for edge in self.edges],
            expected="two or more edges, each larger than the one before",
            remedy="pass edges in rising order, as in zd.bins([0, 18, 65, 120])",
        )

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins as texts.

        >>> bins([0, "0.5", 2]).labels
        ('[0, 0.5)', '[0.5, 2]')
        """
        ends = [_edge_text(edge) for edge in self.edges]
        pairs = list(itertools.pairwise(ends))
        return (*(f"[{a}, {b})" for a, b in pairs[:-1]), f"[{pairs[-1][0]}, {pairs[-1][1]}]")

    def codes(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the number of the bin that holds each value; NaN outside the edges and for NaN.

        >>> bins([0, 18, 65]).codes(np.array([-1.0, 0.0, 18.0, 65.0, 66.0, np.nan]))
        array([nan,  0.,  1.,  1., nan, nan])
        """
        edges = np.array([float(edge) for edge in self.edges])
        places = np.searchsorted(edges, values, side="right") - 1
        places = np.where(values == edges[-1], self.size - 1, places)
        inside = (values >= edges[0]) & (values <= edges[-1])
        return np.where(inside, places, np.nan)


def bins(edges: Iterable[Rational]) -> Bins:
    """Declare public edges that cut a column of numbers into groups.

    As in `np.histogram`, a bin includes its lower edge and the last bin both edges; a number
    outside the edges is in no bin.

    Parameters
    ----------
    edges : list of numbers
        The edges in rising order, chosen without looking at the rows.

    Returns
    -------
    Bins
        For ``by={"age": zd.bins([0, 18, 65, 120])}``.

    Examples
    --------
    >>> bins([0, 18, 65, 120]).labels
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """
    remedy = "pass edges in rising order, as in zd.bins([0, 18, 65, 120])"
    require(is_list(edges), "bins", edges, "a list of edges", remedy)
    return Bins(edges=tuple(as_rational(edge, "bins") for edge in edges))


@value
class GroupKey:
    """One column by which rows are grouped, and the labels of its codes.

    With `bins` the column holds numbers, which are clipped to `clip_bounds` (if declared) and cut
    at the bins' edges. Without `bins` it holds the codes 0, 1, … themselves.
    """

    name: str
    labels: tuple[Any, ...]
    bins: Bins | None = None
    clip_bounds: Bounds | None = None
    complete: bool = False
    """Whether every row that counts has a code."""

    def codes(self, column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the code of each cell; NaN or another number for a cell in no group."""
        if self.bins is None:
            return column
        if self.clip_bounds is not None:
            column = np.clip(column, float(self.clip_bounds[0]), float(self.clip_bounds[1]))
        return self.bins.codes(column)


@value
class GroupKeys:
    """The keys of a table; without any, all rows are one group."""

    keys: tuple[GroupKey, ...] = ()
    possible: int | None = None
    """The largest number of groups, where keys are found by a release and have no labels yet."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of codes of each key."""
        return tuple(len(key.labels) for key in self.keys)

    @property
    def count(self) -> int:
        """The number of groups."""
        return math.prod(self.sizes) if self.possible is None else self.possible

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the keys."""
        return tuple(key.name for key in self.keys)

    @property
    def complete(self) -> bool:
        """Whether every row that counts is in a group."""
        return all(key.complete for key in self.keys)

    def labels(self) -> Iterator[tuple[Any, ...]]:
        """Yield the labels of each group, the last key fastest."""
        return itertools.product(*(key.labels for key in self.keys))

    def codes(self, block: Block) -> tuple[Codes, Inside]:
        """Return the group of each row, and whether it is in one, from the columns of the keys."""
        codes = (key.codes(block[:, place]) for place, key in enumerate(self.keys))
        return group_codes(codes, self.sizes, len(block))


def _edge_text(edge: Fraction) -> str:
    """Return an edge as a short text; different edges of a `Bins` have different texts."""
    if edge.denominator == 1 and abs(edge) < 10**15:
        return str(edge.numerator)
    return repr(float(edge))  # the edges differ as floats, so their reprs differ


_LARGEST_DENSE = 1 << 24
"""The largest universe that gets a counter for each item; in a larger one items are sorted."""
_LARGEST_BLOCK_TABLE = 1 << 12
"""The largest table that is computed for each block; a larger one is added to item by item."""
_BLOCK = 1 << 17
_MOST_WAITING = 1 << 22


@value
class KeyCounts:
    """The indices that occur, in rising order, and their counts; all others have count 0."""

    indices: Integers
    counts: Integers

    def dense(self, size: int) -> Integers:
        """Return one count for each of 0..size-1."""
        every = np.zeros(size, dtype=np.int64)
        every[self.indices] = self.counts
        return every


def as_items(items: Any, column: str | None = None) -> tuple[Source | Sealed[Any], int]:
    """Return one column of items, closed until there is a ticket, and their public number.

    `column` names a column of a data frame. A text, a mapping, a set, a single number or a
    generator is refused by its type, several columns by their shape; no item is read.

    >>> as_items("abc")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: items = <class 'str'>: expected one column of items; pass a \
list, an array or a series with one item for each row.
    """
    if column is not None:
        items = _frame_column(items, column)
    if isinstance(items, Source):
        shape: tuple[int, ...] = (items.rows, len(items.columns))
    else:
        listed = isinstance(items, Iterable) or hasattr(items, "__len__")
        single = isinstance(items, np.ndarray) and items.ndim == 0
        odd = isinstance(items, (str, bytes, bytearray, Mapping, Set, Iterator))
        require(
            listed and not single and not odd,
            "items",
            type(items),
            expected="one column of items",
            remedy="pass a list, an array or a series with one item for each row",
        )
        unread = Unread(items)
        # every element of a list is one item, even if it is a list or a tuple
        shape = unread.shape[:1] if isinstance(items, (list, tuple)) else unread.shape
    require(
        shape[1:] in ((), (1,)),
        "dimensions of items",
        shape,
        expected="one column",
        remedy="pass the column whose items are counted",
    )
    if isinstance(items, Source):
        return items, items.rows
    return Sealed(items, known=unread.known, read=unread.read_column), unread.rows


def _frame_column(items: Any, column: str) -> Any:
    """Return one column of a data frame."""
    frame = None if isinstance(items, (Source, np.ndarray, list, tuple)) else as_frame(items)
    require(
        frame is not None and isinstance(column, str) and column in frame.columns,
        "columns",
        column,
        expected="one column of a data set or a frame",
        remedy="name a column of a frame, or leave columns out",
    )
    return None if frame is None else frame[column].to_native()


def column(rows: Rows) -> Block:
    """Return the first column of opened rows as floats, NaN for a non-numeric cell."""
    first = (block[:, :1] for block in rows.blocks())
    table = as_one_table(
        first,
        1,
        planned=rows.rows,
        keeping=rows.keeping,
        count_is_public=rows.row_count_is_public,
    )
    return table[:, 0]


def tally(items: Any, space: Finite, *, unknown: int | None = None) -> KeyCounts:
    """Count opened items; one outside the universe counts as item `unknown`, or is ignored if None.

    Replacing one item changes at most two counts, each by one.
    """
    options = OptionIndex(space)
    if space.size <= _LARGEST_DENSE and isinstance(items, Rows):
        known, outside = _total_counts(items, options, space.size)
    else:
        places = (options.places(cells) for cells in _blocks(items))
        if space.size > _LARGEST_DENSE:
            known, outside = _sparse_counts(places)
        else:
            known, outside = _dense_counts(places, space.size)
    if unknown is None or outside == 0:
        return known
    place = int(np.searchsorted(known.indices, unknown))
    if place < len(known.indices) and known.indices[place] == unknown:
        counts = known.counts.copy()
        counts[place] += outside
        return KeyCounts(indices=known.indices, counts=counts)
    return KeyCounts(
        indices=np.insert(known.indices, place, unknown),
        counts=np.insert(known.counts, place, outside),
    )


def _blocks(items: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield the items as columns of cells; an item of a list may be a tuple."""
    if isinstance(items, Rows):
        yield from (block[:, 0] for block in items.blocks())
        return
    column = items if type(items) is np.ndarray else Unread(items).read_column()
    column = column[:, 0] if column.ndim == 2 else column
    yield from (column[start : start + _BLOCK] for start in range(0, len(column), _BLOCK))


def _dense_counts(blocks: Iterator[Integers], size: int) -> tuple[KeyCounts, int]:
    """Return the counts of the places 0..size-1, and the number of places that are -1."""
    every = np.zeros(size + 1, dtype=np.int64)  # the first counter is for place -1
    for places in blocks:
        if size < len(places):
            every += np.bincount(places + 1, minlength=size + 1)
        else:
            np.add.at(every, places + 1, 1)
    return _split_counts(every)


def _split_counts(every: Integers) -> tuple[KeyCounts, int]:
    """Return the counts of places from the second counter on, and the first counter."""
    indices = np.flatnonzero(every[1:])
    return KeyCounts(indices=indices, counts=every[1:][indices]), int(every[0])


def _total_counts(rows: Rows, options: OptionIndex, size: int) -> tuple[KeyCounts, int]:
    """Return what `_dense_counts` does for the first column of rows, counted where the rows are."""
    keyed = size > _LARGEST_BLOCK_TABLE

    def counted(values: Block) -> IntegerArray:
        places = options.places(values[:, 0]) + 1
        return places if keyed else np.bincount(places, minlength=size + 1)

    every = rows.total(counted, [0], shape=(size + 1,), bound=1, keyed=keyed)
    return _split_counts(every.astype(np.int64))


def _sparse_counts(blocks: Iterator[Integers]) -> tuple[KeyCounts, int]:
    """Return what `_dense_counts` does, with memory only for the places that occur."""
    indices, counts = np.zeros((2, 0), dtype=np.int64)
    waiting: list[Integers] = []
    missing = 0
    for places in itertools.chain(blocks, [None]):
        if places is not None:
            waiting.append(places[places >= 0])
            missing += len(places) - len(waiting[-1])
        if places is None or sum(map(len, waiting)) > max(_MOST_WAITING, len(indices)):
            joined = np.concatenate([indices, *waiting])
            added = np.ones(len(joined), dtype=np.int64)
            added[: len(indices)] = counts
            indices, where = np.unique(joined, return_inverse=True)
            counts = np.zeros(len(indices), dtype=np.int64)
            np.add.at(counts, where, added)
            waiting = []
    return KeyCounts(indices=indices, counts=counts), missing


# -- Counts of the keys of a public universe, from any columns (theory U) -------------------------
# A key is one cell, or a tuple of several, each read by itself. A row whose key is not in the
# universe (a text that is too long, a number out of range, a missing cell) is ignored. Only keys
# that occur are held in memory.

_EXACT_FLOATS = 1 << 53


def universe_of(kinds: Mapping[str, Kind]) -> KeyUniverse:
    """Return the universe of keys of columns of these kinds; one without a size is refused.

    >>> from zerodelta.data.declare import number
    >>> universe_of({"hash": number(0, 2**64 - 1, integer=True)}).size == 2**64
    True
    """
    parts = [_universe(name, kind) for name, kind in kinds.items()]
    return parts[0] if len(parts) == 1 else ProductKeys(parts=tuple(parts))


def _universe(name: str, kind: Kind) -> KeyUniverse:
    """Return all keys one column may have; a kind without a public set of them is refused."""
    if isinstance(kind, Text):
        if kind.alphabet is None:
            raise ParameterError(
                f"column {name!r}",
                str(kind),
                expected="texts over a public alphabet, so that the possible keys are known",
                remedy=f"declare zd.text({kind.length}, alphabet=…) with all characters to expect",
            )
        return TextKeys(alphabet=kind.alphabet, length=kind.length)
    if isinstance(kind, Number):
        require(
            kind.integer,
            f"column {name!r}",
            str(kind),
            expected="whole numbers, so that the possible keys are known",
            remedy="declare zd.number(lower, upper, integer=True), or use zd.histogram",
        )
        return RangeKeys(lower=int(kind.lower), upper=int(kind.upper))
    return CodeKeys(labels=kind.labels or ())


@trusted_source
@final
class KeySource(DerivedSource):
    """The keys of a data set's columns; a ticket opens it as the counts of these keys.

    As a source it has one column, which is 1 where a row has a key of the universe. With columns of
    numbers (`of`) it has those columns, and a ticket opens it as `KeyedRows`.
    """

    __slots__ = ("_keys", "_numbers", "universe")

    may_miss = True  # a row may have no key
    _of: Dataset

    def __init__(self, keys: Dataset, of: Sequence[str] = ()) -> None:
        require(
            not keys.remote,
            "data",
            "a Spark DataFrame",
            expected="rows that this process reads: keys are not counted on a cluster",
            remedy="collect the key columns, or declare the keys as a category",
        )
        self._keys, self._numbers = keys, keys[list(of)] if of else None
        self._of = keys if not of else keys[list(dict.fromkeys([*keys.columns, *of]))]
        self.universe = universe_of(keys.kinds)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of numbers; without any, the key."""
        return ("key",) if self._numbers is None else self._numbers.columns

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The declared kinds of the columns of the key."""
        return self._keys.kinds

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield the columns of numbers; without any, 1 for a row with a key and NaN for others."""
        if self._numbers is not None:
            yield from self._numbers.blocks(ticket)
            return
        for keys in self._keys_of_rows(ticket):
            yield np.array([[np.nan if is_absent(key) else 1.0] for key in keys]).reshape(-1, 1)

    def open(self, ticket: Ticket, *, keep: bool = False) -> Any:
        """Return the count of each key, in an order without meaning; or `KeyedRows`."""
        if keep:  # for the program of a study, which reads the rows many times
            return super().open(ticket, keep=keep)
        if self._numbers is not None:
            Ticket.check(ticket)
            return KeyedRows(self, ticket)
        counts: Counter[Any] = Counter()
        for keys in self._keys_of_rows(ticket):
            counts.update(keys)
        return {key: count for key, count in counts.items() if not is_absent(key)}

    def _keys_of_rows(self, ticket: Ticket) -> Iterator[list[Any]]:
        """Yield the keys of the rows that count, batch by batch."""
        kinds = self.kinds
        for cells, counts in self._of.cells(ticket, as_cells=not_floats(kinds)):
            yield keys_in(kinds, cells, counts)

    def coded(self, ticket: Ticket, codes_of_keys: dict[Any, int]) -> Iterator[Block]:
        """Yield the rows that count: the code of their key, -1 without one, and their numbers.

        New keys are added to `codes_of_keys`.
        """
        kinds, values = self.kinds, (self._numbers or self._of).chosen
        for cells, counts in self._of.cells(ticket, as_cells=not_floats(kinds)):
            block = values.read({name: cells[name] for name in values.needed})
            keys = keys_in(kinds, cells, counts)
            codes = [
                -1 if is_absent(key) else codes_of_keys.setdefault(key, len(codes_of_keys))
                for key in keys
            ]
            kept_rows = block if counts is None else block[counts]
            yield np.column_stack([np.array(codes, dtype=np.float64), kept_rows])


def not_floats(kinds: Mapping[str, Kind]) -> frozenset[str]:
    """Return the columns of keys that are numbers: as floats, large ones would become equal."""
    return frozenset(name for name, kind in kinds.items() if isinstance(kind, Number))


def keys_in(
    kinds: Mapping[str, Kind], cells: Mapping[str, Any], counts: npt.NDArray[np.bool_] | None
) -> list[Any]:
    """Return the key of each row of a batch that counts (None: all do); see `is_absent`."""
    columns = [_keys_of_column(kind, cells[name]) for name, kind in kinds.items()]
    if counts is not None:
        columns = [column[counts] for column in columns]
    lists = [column.tolist() for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def is_absent(key: Any) -> bool:
    """Tell whether a row has no key of the universe."""
    return key is None or (type(key) is tuple and None in key)


def _keys_of_column(kind: Kind, cells: Any) -> Array:
    """Return the key of each cell, from that cell alone; None for a cell without one."""
    if isinstance(kind, Text):
        return kind.read(cells)
    if isinstance(kind, Number):
        lower, upper = int(kind.lower), int(kind.upper)
        return read_column(cells, lambda column: _exact_integers(column, lower, upper))
    codes = kind.read(cells)
    present = ~np.isnan(codes)
    keys = np.where(present, codes, 0).astype(np.int64)
    return keys if present.all() else _none_where_absent(keys, present)


def _exact_integers(cells: Array, lower: int, upper: int) -> Array:
    """Return whole numbers exactly, of any size; None for those out of range."""
    if cells.dtype.kind in "iu":
        in_range = _in_range(cells, lower, upper)
        return cells if in_range.all() else _none_where_absent(cells, in_range)
    if cells.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a signaling NaN must not warn
            rounded = np.rint(cells.astype(np.float64))
            fits = np.abs(rounded) < _EXACT_FLOATS
        if fits.all():
            return _exact_integers(rounded.astype(np.int64), lower, upper)
    keys = [_integer_key(one_cell.category(cell)) for cell in cells.tolist()]
    inside = [None if key is None or not lower <= key <= upper else key for key in keys]
    return as_objects(inside)


def _none_where_absent(keys: Array, present: npt.NDArray[np.bool_]) -> Array:
    """Return the keys as objects, with None where they are not present."""
    objects = keys.astype(object)
    objects[~present] = None
    return objects


def _in_range(cells: Array, lower: int, upper: int) -> npt.NDArray[np.bool_]:
    """Tell which integers are between two ends, which may not fit the type of the array."""
    info = np.iinfo(cells.dtype)
    in_range: npt.NDArray[np.bool_] = np.full(len(cells), lower <= info.max and upper >= info.min)
    if lower > info.min and lower <= info.max:
        in_range &= cells >= cells.dtype.type(lower)
    if info.min <= upper < info.max:
        in_range &= cells <= cells.dtype.type(upper)
    return in_range


def _integer_key(key: Any) -> int | None:
    """Return an integer key as it is, an exact float as the nearest integer, None for others."""
    if type(key) is int:
        return key
    return round(key) if type(key) is float and abs(key) < _EXACT_FLOATS else None


# -- Rows by key ----------------------------------------------------------------------------------
# Rows with a key and numbers. A release first chooses keys by their noisy counts, and then releases
# sums of the numbers by these keys.
#
# A query may yield other rows the next time, so both steps read one copy. In the copy a key is its
# code, numbered in the order in which keys occur.

GROUP = "\1"
"""The name of the column with the group of each row, which no declared column can have."""


@final
class KeyedRows:
    """Rows that a ticket has opened: the count of each key, then the rows by groups of keys."""

    __slots__ = ("_blocks", "_codes", "_source", "_ticket")

    def __init__(self, source: KeySource, ticket: Ticket) -> None:
        self._source, self._ticket = source, ticket
        self._codes: dict[Any, int] = {}
        self._blocks: tuple[Block, ...] | None = None

    def _copy(self) -> tuple[Block, ...]:
        """Return the rows with the code of their key, read at the first call."""
        if self._blocks is None:
            blocks = self._source.coded(self._ticket, self._codes)
            self._blocks = copied_blocks(blocks, self._source.keeping)
        return self._blocks

    def counts(self) -> dict[Any, int]:
        """Return the count of each key, in an order without meaning."""
        blocks = self._copy()  # first, since it fills `_codes`
        total = np.zeros(len(self._codes), dtype=np.int64)
        for block in blocks:
            codes = block[:, 0].astype(np.int64)
            total += np.bincount(codes[codes >= 0], minlength=len(total))
        return dict(zip(self._codes, total.tolist(), strict=True))

    def by_group(self, groups: Mapping[Any, int], rest: int) -> Rows:
        """Return the rows with a column `GROUP`: the group of their key, `rest` for other keys."""
        blocks = self._copy()
        # one more entry, at index -1, for rows without a key
        group_of_code = np.full(len(self._codes) + 1, rest, dtype=np.float64)
        for key, group in groups.items():
            if key in self._codes:
                group_of_code[self._codes[key]] = group
        copied = Rows(
            held=Blocks(blocks, self._source.keeping),
            rows=self._source.rows,
            columns=(GROUP, *self._source.columns),
            row_count_is_public=False,  # ignored rows were left out
        )
        return copied.mapped(partial(_with_group, group_of_code), copied.columns, may_miss=True)


def _with_group(group_of_code: Block, block: Block) -> Block:
    """Return the rows with the group in the place of the key's code, their first column."""
    return np.column_stack([group_of_code[block[:, 0].astype(np.int64)], block[:, 1:]])
