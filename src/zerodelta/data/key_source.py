"""Rows as keys: how often each key of a public universe occurs, from any columns (theory U).

A key is one cell, or a tuple of several, read by itself; a row whose key is not in the universe (a
text that is too long, a number out of range, a missing cell) counts nowhere. Nothing is listed but
the keys that occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data import cells as one_cell
from zerodelta.data.arrow_cells import read_column
from zerodelta.data.columns import as_objects
from zerodelta.data.dataset import Dataset
from zerodelta.data.derived_source import DerivedSource
from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Number, Text
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import ours
from zerodelta.data.ticket import Ticket
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Array
from zerodelta.spaces.key_universe import CodeKeys, KeyUniverse, ProductKeys, RangeKeys, TextKeys

_EXACT_FLOATS = 1 << 53


def universe_of(kinds: Mapping[str, Kind]) -> KeyUniverse:
    """Return the keys that columns of these kinds can have; one without a size is refused.

    >>> from zerodelta.data.declare import number
    >>> universe_of({"hash": number(0, 2**64 - 1, integer=True)}).size == 2**64
    True
    """
    parts = [_universe(name, kind) for name, kind in kinds.items()]
    return parts[0] if len(parts) == 1 else ProductKeys(parts=tuple(parts))


def _universe(name: str, kind: Kind) -> KeyUniverse:
    if isinstance(kind, Text):
        if kind.alphabet is None:
            raise ParameterError(
                f"column {name!r}",
                str(kind),
                expected="a universe of keys with a size: texts over a public alphabet",
                remedy=f"declare zd.text({kind.length}, alphabet=…), all letters there can be",
            )
        return TextKeys(alphabet=kind.alphabet, length=kind.length)
    if isinstance(kind, Number):
        require(
            kind.integer,
            f"column {name!r}",
            str(kind),
            expected="a universe of keys with a size: whole numbers",
            remedy="declare zd.number(lower, upper, integer=True), or ask for a histogram",
        )
        return RangeKeys(lower=int(kind.lower), upper=int(kind.upper))
    return CodeKeys(labels=kind.labels or ())


@ours
@final
class KeySource(DerivedSource):
    """The keys of a data set's columns; opened by a ticket they are counted.

    As a source it has one column, 1 where a row has a key of the universe.
    """

    __slots__ = ("universe",)

    _of: Dataset

    def __init__(self, dataset: Dataset) -> None:
        require(
            not dataset.remote,
            "data",
            "a Spark DataFrame",
            expected="rows that this process reads: keys are not counted on a cluster",
            remedy="group and count there by a query of your own, or collect the key columns",
        )
        self._of = dataset
        self.universe = universe_of(dataset.kinds)

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return ("key",)

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The columns of which a key is made, and what they were declared as."""
        return self._of.kinds

    @property
    def may_miss(self) -> bool:
        """Whether a row may have no key."""
        return True

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield 1 for each row that has a key, NaN for all others."""
        for keys in self._keys(ticket):
            yield np.array([[np.nan if is_absent(key) else 1.0] for key in keys]).reshape(-1, 1)

    def open(self, ticket: Ticket, *, keep: bool = False) -> Any:
        """Return how often each key occurs, in no order that means anything."""
        if keep:  # for programs that ask many times
            rows: Rows = super().open(ticket, keep=keep)
            return rows
        counts: Counter[Any] = Counter()
        for keys in self._keys(ticket):
            counts.update(keys)
        return {key: count for key, count in counts.items() if not is_absent(key)}

    def _keys(self, ticket: Ticket) -> Iterator[list[Any]]:
        kinds = self._of.kinds
        for cells, counts in self._of.cells(ticket, whole=not_floats(kinds)):
            yield keys_in(kinds, cells, counts)


def not_floats(kinds: Mapping[str, Kind]) -> frozenset[str]:
    """Return the columns of keys that are numbers: floats would not tell them apart."""
    return frozenset(name for name, kind in kinds.items() if isinstance(kind, Number))


def keys_in(
    kinds: Mapping[str, Kind], cells: Mapping[str, Any], counts: npt.NDArray[np.bool_] | None
) -> list[Any]:
    """Return the key of each row of a batch that counts (None: all do); see `is_absent`."""
    columns = [_read(kind, cells[name]) for name, kind in kinds.items()]
    if counts is not None:
        columns = [column[counts] for column in columns]
    lists = [column.tolist() for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def is_absent(key: Any) -> bool:
    """Tell whether a row has no key of the universe."""
    return key is None or (type(key) is tuple and None in key)


def _read(kind: Kind, cells: Any) -> Array:
    """Return the key of each cell, each by itself; None where there is none."""
    if isinstance(kind, Text):
        return kind.read(cells)
    if isinstance(kind, Number):
        lower, upper = int(kind.lower), int(kind.upper)
        return read_column(cells, lambda found: _whole_numbers(found, lower, upper))
    codes = kind.read(cells)
    here = ~np.isnan(codes)
    keys = np.where(here, codes, 0).astype(np.int64)
    return keys if here.all() else _or_none(keys, here)


def _whole_numbers(cells: Array, lower: int, upper: int) -> Array:
    """Return whole numbers exactly, 64 bits and beyond; None for those out of range."""
    if cells.dtype.kind in "iu":
        here = _within(cells, lower, upper)
        return cells if here.all() else _or_none(cells, here)
    if cells.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a signaling NaN must not warn
            rounded = np.rint(cells.astype(np.float64))
            fits = np.abs(rounded) < _EXACT_FLOATS
        if fits.all():
            return _whole_numbers(rounded.astype(np.int64), lower, upper)
    keys = [_whole(one_cell.category(cell)) for cell in cells.tolist()]
    inside = [None if key is None or not lower <= key <= upper else key for key in keys]
    return as_objects(inside)


def _or_none(keys: Array, here: npt.NDArray[np.bool_]) -> Array:
    objects = keys.astype(object)
    objects[~here] = None
    return objects


def _within(cells: Array, lower: int, upper: int) -> npt.NDArray[np.bool_]:
    """Compare with ends that may not fit the array's own type."""
    info = np.iinfo(cells.dtype)
    here: npt.NDArray[np.bool_] = np.full(len(cells), lower <= info.max and upper >= info.min)
    if lower > info.min and lower <= info.max:
        here &= cells >= cells.dtype.type(lower)
    if info.min <= upper < info.max:
        here &= cells <= cells.dtype.type(upper)
    return here


def _whole(key: Any) -> int | None:
    if type(key) is int:
        return key
    return round(key) if type(key) is float and abs(key) < _EXACT_FLOATS else None
