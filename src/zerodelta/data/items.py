"""One column of items of any type, and how often each item of a public universe occurs.

An item is found in the universe by itself, whatever the other items are; one that is not there is
counted nowhere, or for a public item. No item raises. Rows of a source are counted block by block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.columns import as_frame
from zerodelta.data.given import Given
from zerodelta.data.kept_copy import together
from zerodelta.data.options import Options
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source
from zerodelta.data.unread import Unread
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.spaces import Finite
from zerodelta.value import value

_MOST_DENSE = 1 << 24
"""Up to here one counter for each item of the universe is cheaper than sorting the items."""
_FEW = 1 << 12
"""A table of so many counts is made of each block of rows."""
_BLOCK = 1 << 17
_WAITING = 1 << 22


@value
class Tally:
    """The indices that occur, in rising order, and how often; all others occur 0 times."""

    indices: Integers
    counts: Integers

    def dense(self, size: int) -> Integers:
        """Return one count for each of 0..size-1."""
        every = np.zeros(size, dtype=np.int64)
        every[self.indices] = self.counts
        return every


def as_items(items: Any, column: str | None = None) -> tuple[Source | Given[Any], int]:
    """Return one column of items, closed until there is a ticket, and their public number.

    `column` names one of a data frame. A text, a mapping, a set, a single number or a generator is
    refused by its type, several columns by their shape; no item is read.

    >>> as_items("abc")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: items = <class 'str'>: expected one column of items; pass a \
list, an array or a series with one item for each row.
    """
    if column is not None:
        items = _named(items, column)
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
        # in a list each item is one, a list or a tuple too
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
    return Given(items, known=unread.known, read=unread.read_column), unread.rows


def _named(items: Any, column: str) -> Any:
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
    """Return the first column of opened rows as floats, NaN for what is no number."""
    first = (block[:, :1] for block in rows.blocks())
    many, keeping = rows.rows, rows.keeping
    return together(first, 1, planned=many, keeping=keeping, whole=rows.whole)[:, 0]


def tally(items: Any, space: Finite, *, unknown: int | None = None) -> Tally:
    """Count opened items; what is no item of the universe counts at `unknown`, or nowhere.

    Replacing one item moves at most two counts, each by one.
    """
    options = Options(space)
    if space.size <= _MOST_DENSE and isinstance(items, Rows):
        found, missing = _added(items, options, space.size)
    else:
        places = (options.places(cells) for cells in _blocks(items))
        found, missing = _sparse(places) if space.size > _MOST_DENSE else _dense(places, space.size)
    if unknown is None or missing == 0:
        return found
    place = int(np.searchsorted(found.indices, unknown))
    if place < len(found.indices) and found.indices[place] == unknown:
        counts = found.counts.copy()
        counts[place] += missing
        return Tally(indices=found.indices, counts=counts)
    return Tally(
        indices=np.insert(found.indices, place, unknown),
        counts=np.insert(found.counts, place, missing),
    )


def _blocks(items: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield the items as columns of cells; an item of a list may be a tuple."""
    if isinstance(items, Rows):
        yield from (block[:, 0] for block in items.blocks())
        return
    column = items if type(items) is np.ndarray else Unread(items).read_column()
    column = column[:, 0] if column.ndim == 2 else column
    yield from (column[start : start + _BLOCK] for start in range(0, len(column), _BLOCK))


def _dense(blocks: Iterator[Integers], size: int) -> tuple[Tally, int]:
    """Return the tally of places 0..size-1, and how often the place is -1."""
    every = np.zeros(size + 1, dtype=np.int64)  # the first: of no item
    for places in blocks:
        if size < len(places):
            every += np.bincount(places + 1, minlength=size + 1)
        else:
            np.add.at(every, places + 1, 1)
    return _of_counts(every)


def _of_counts(every: Integers) -> tuple[Tally, int]:
    indices = np.flatnonzero(every[1:])
    return Tally(indices=indices, counts=every[1:][indices]), int(every[0])


def _added(rows: Rows, options: Options, size: int) -> tuple[Tally, int]:
    """Return the same of the first column of rows, counted where these are."""
    keyed = size > _FEW

    def counted(values: Block) -> IntegerArray:
        places = options.places(values[:, 0]) + 1
        return places if keyed else np.bincount(places, minlength=size + 1)

    every = rows.total(counted, [0], shape=(size + 1,), bound=1, keyed=keyed)
    return _of_counts(every.astype(np.int64))


def _sparse(blocks: Iterator[Integers]) -> tuple[Tally, int]:
    """Return the same in memory for the places that occur."""
    indices, counts = np.zeros((2, 0), dtype=np.int64)
    waiting: list[Integers] = []
    missing = 0
    for places in itertools.chain(blocks, [None]):
        if places is not None:
            waiting.append(places[places >= 0])
            missing += len(places) - len(waiting[-1])
        if places is None or sum(map(len, waiting)) > max(_WAITING, len(indices)):
            joined = np.concatenate([indices, *waiting])
            added = np.ones(len(joined), dtype=np.int64)
            added[: len(indices)] = counts
            indices, where = np.unique(joined, return_inverse=True)
            counts = np.zeros(len(indices), dtype=np.int64)
            np.add.at(counts, where, added)
            waiting = []
    return Tally(indices=indices, counts=counts), missing
