"""Units: whose rows are protected together, and which of them count (theory V).

Of each unit the `max_rows` rows that come first in a fixed order are kept: the order of a hash of
the unit's id, the cells of all declared columns, and the number of the copy among equal rows. (A
hash of the contents alone would keep the same values in every unit.) Which rows of a unit are kept
is decided by its own rows alone, so replacing all of them changes at most `max_rows` of the rows
kept; the order of the rows and the batches in which they are read do not matter. The hash is public
and fixed: the guarantee needs no secret.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.interrupts import quietly
from zerodelta.data.reader import attempt
from zerodelta.data.unit_ids import ID, WORDS, Words, mixed, text_hash, unit_ids
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count

_MISSING, _FIRST, _SECOND, _STEP = WORDS
_ODD = _STEP | np.uint64(1)

_PART_BITS = np.uint64(40)
"""A row's place is its part and its number there: at most 2^40 rows in one."""
_GROUPS = 64
_RECORD = 40
"""Bytes of the five words of a row."""
_LIMIT = 1 << 27


@final
@dataclass(frozen=True, kw_only=True)
class Bounded:
    """Which rows are kept: one array of booleans for each part, in the order of its rows."""

    kept: tuple[npt.NDArray[np.bool_], ...]
    units: int
    """How many units have a row."""
    numbers: tuple[npt.NDArray[np.int64], ...] = ()
    """The number of each kept row's unit; what it is for other rows means nothing."""


@final
class Bounding:
    """Chooses at most `max_rows` rows of each unit, from rows that are added batch by batch.

    Threads may add rows of different parts at the same time; those of one part come in order. Only
    hashes are held, 40 bytes for a row; beyond `memory` bytes they are kept in a file without a
    name, in `folder` or where the system has such files. It is made before the first row: how many
    rows there are may be private, and must not decide whether it can be. What fails is one fixed
    message.

    >>> rows = Bounding(max_rows=1)
    >>> rows.add(0, np.array(["ann", "bob", "ann"], dtype=object), [np.array([1.0, 2.0, 3.0])])
    >>> found = rows.finish()
    >>> found.units, int(found.kept[0].sum()), bool(found.kept[0][1])
    (2, 2, True)
    """

    def __init__(self, *, max_rows: int, memory: int = _LIMIT, folder: str | None = None) -> None:
        self._most = as_count(max_rows, "max_rows", minimum=1)
        self._memory = memory
        self._lock = threading.Lock()
        self._held: list[Words] = []
        self._bytes = 0
        self._rows: dict[int, int] = {}
        self._known: dict[int, _Known] = {}
        self._file: Any = attempt(partial(tempfile.TemporaryFile, dir=folder))
        self._closed = weakref.finalize(self, quietly, self._file.close)
        self._runs: list[npt.NDArray[np.int64]] = []
        """Where the records of each group begin and end in the file, for each time it grew."""

    def add(self, part: int, ids: Any, columns: Sequence[Array]) -> None:
        """Add the next rows of a part: the cells of the id, and all declared columns as read.

        The columns are what `Kind.read` returns, in the order of the schema.
        """
        known = self._known.get(part)
        if known is None:
            self._known = {part: (known := _Known())}  # of one part at a time: a row group, say
        hashes = hashed_rows(ids, columns, known)
        count = hashes.shape[1]
        records = np.empty((5, count), dtype=np.uint64)
        records[:4] = hashes
        with self._lock:
            start = self._rows.get(part, 0)
            self._rows[part] = start + count
            places = np.arange(start, start + count, dtype=np.uint64)
            records[4] = (np.uint64(part) << _PART_BITS) | places
            self._held.append(records)
            self._bytes += records.nbytes
            if self._bytes > self._memory:
                self._spill()

    def finish(self) -> Bounded:
        """Return which rows are kept."""
        count = 1 + max(self._rows, default=-1)
        kept = [np.zeros(self._rows.get(part, 0), dtype=np.bool_) for part in range(count)]
        numbers = [np.zeros(len(part), dtype=np.int64) for part in kept]
        units = 0
        if self._runs:
            self._spill()
        for records in self._groups():
            places, unit, found = _first_rows(records, self._most)
            parts, rows = places >> _PART_BITS, places & ((np.uint64(1) << _PART_BITS) - 1)
            for part in np.unique(parts).tolist():
                here = parts == part
                kept[part][rows[here]] = True
                numbers[part][rows[here]] = units + unit[here]
            units += found
        self._closed()
        return Bounded(kept=tuple(kept), units=units, numbers=tuple(numbers))

    def _groups(self) -> Iterator[Words]:
        """Yield all records, those of one unit together."""
        if not self._runs:
            yield np.concatenate([np.empty((5, 0), dtype=np.uint64), *self._held], axis=1)
            return
        for group in range(_GROUPS):
            ranges = [(ends[group], ends[group + 1]) for ends in self._runs]
            records = b"".join(attempt(partial(self._read, *each)) for each in ranges)
            yield np.frombuffer(records, dtype=np.uint64).reshape(-1, 5).T

    def _read(self, start: int, stop: int) -> bytes:
        self._file.seek(start * _RECORD)
        found: bytes = self._file.read((stop - start) * _RECORD)
        return found

    def _spill(self) -> None:
        """Move the records that are held to the file, by the first bits of the hash of a unit."""
        records = np.concatenate([np.empty((5, 0), dtype=np.uint64), *self._held], axis=1).T
        group = (records[:, 0] // np.uint64(2**64 // _GROUPS)).astype(np.int64)
        order = np.argsort(group, kind="stable")
        first = self._runs[-1][-1] if self._runs else 0
        ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=_GROUPS))])
        self._runs.append((first + ends).astype(np.int64))
        attempt(partial(self._file.write, records[order].tobytes()))
        self._held, self._bytes = [], 0


def _first_rows(records: Words, most: int) -> tuple[Words, Array, int]:
    """Return the places of the rows kept and the numbers of their units, and how many there are."""
    high, low, first, second, places = records
    if not len(high):
        return places, np.zeros(0, dtype=np.int64), 0
    order = np.argsort(high)
    if ((np.diff(high[order]) == 0) & (np.diff(low[order]) != 0)).any():
        order = np.lexsort((low, high))  # half of the hash is not enough
    unit = _numbered(high[order], low[order])
    sizes = np.bincount(unit)
    crowded = (sizes > most)[unit]
    rows, of = order[crowded], unit[crowded]
    chosen = _ranks_below(of, first[rows], second[rows], places[rows], most)
    kept = np.concatenate([places[order[~crowded]], places[rows[chosen]]])
    return kept, np.concatenate([unit[~crowded], of[chosen]]), len(sizes)


def _ranks_below(unit: Array, first: Words, second: Words, places: Words, most: int) -> Array:
    """Return the rows that are among the first `most` of their unit, all of which have more."""
    order, tied = _sorted(unit, first, second, places)
    if tied.any():  # equal rows: each but the first gets a hash of its own
        rows = order[tied]
        copy = _ranks(_numbered(unit[rows], first[rows], second[rows])).astype(np.uint64)
        first = first.copy()
        first[rows] = with_copies(first[rows], copy)
        order, _ = _sorted(unit, first, second, places)
    return order[_ranks(unit[order]) < most]


def _sorted(
    unit: Array, first: Words, second: Words, places: Words
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the order by all, and which rows of it agree in both hashes with one beside.

    One sort of 64 bits, the unit and the start of the first hash; then the ties among these. Rows
    that agree in both hashes (somebody may have made two such) stay in the order in which they
    came, which no other unit's rows change.
    """
    bits = np.uint64(int(unit.max(initial=0)).bit_length() + 1)
    key = (unit.astype(np.uint64) << (np.uint64(64) - bits)) | (first >> bits)
    order = np.argsort(key)
    tied = _with_equals(key[order])
    rows = order[tied]
    order[tied] = rows[np.lexsort((places[rows], second[rows], first[rows], unit[rows]))]
    rows = order[tied]
    tied[tied] = _with_equals(unit[rows], first[rows], second[rows])
    return order, tied


def _with_equals(*sorted_keys: Array) -> npt.NDArray[np.bool_]:
    """Return which rows have the keys of the row before or after."""
    same = np.ones(max(len(sorted_keys[0]) - 1, 0), dtype=np.bool_)
    for key in sorted_keys:
        same &= key[1:] == key[:-1]
    found = np.zeros(len(sorted_keys[0]), dtype=np.bool_)
    found[1:] |= same
    found[:-1] |= same
    return found


def _numbered(*sorted_keys: Array) -> Array:
    """Return 0, 1, ... for the runs of equal keys."""
    changes = np.zeros(len(sorted_keys[0]), dtype=np.bool_)
    for key in sorted_keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.cumsum(changes)


def _ranks(run: Array) -> Array:
    """Return 0, 1, ... within each run of equal numbers."""
    place = np.arange(len(run))
    starts = np.zeros(len(run), dtype=np.int64)
    starts[1:] = np.where(run[1:] != run[:-1], place[1:], 0)
    return place - np.maximum.accumulate(starts)


# -- hashes -----------------------------------------------------------------------------------


@final
class _Known:
    """The distinct ids of a column that comes in several batches, which often have the same."""

    __slots__ = ("_ids", "_texts")

    def __init__(self) -> None:
        self._texts: Any = None
        self._ids: Array = np.empty(0, dtype=ID)

    def read(self, column: Any) -> Array:
        """Return `unit_ids` of a batch."""
        texts = None if isinstance(column, np.ndarray) else getattr(column, "dictionary", None)
        if texts is None or column.null_count or not len(texts):
            return unit_ids(column)
        if self._texts is None or not self._texts.equals(texts):
            self._texts, self._ids = texts, unit_ids(texts)
        found: Array = self._ids[column.indices.to_numpy()]
        return found


def hashed_rows(ids: Any, columns: Sequence[Array], known: _Known | None = None) -> Words:
    """Return four words for each row: two that name its unit, and two hashes of it.

    The rows of a unit are kept in the order of the hashes, the first one first; rows that agree in
    all four are equal, and `with_copies` tells them apart.
    """
    units = unit_ids(ids) if known is None else known.read(ids)
    hashes = np.empty((4, len(units)), dtype=np.uint64)
    hashes[0], hashes[1] = units["high"], units["low"]
    hashes[2], hashes[3] = _digests(units, columns)
    return hashes


def with_copies(first: Words, copy: Words) -> Words:
    """Return the first hash of each copy of equal rows; number 0 has that of the row itself."""
    words: Words = np.where(copy, mixed(first + copy * _ODD), first)
    return words


def _digests(units: Array, columns: Sequence[Array]) -> tuple[Words, Words]:
    """Return two hashes of each row, of its unit and its contents: an order, and what settles ties.

    Rows that agree in both count as equal.
    """
    first = mixed(mixed(units["high"] ^ _FIRST) ^ units["low"])
    second = mixed(mixed(units["low"] ^ _SECOND) ^ units["high"])
    for column in columns:
        words = _words(column)
        first, second = mixed(first ^ words), mixed(second + words)
    return first, second


def _words(column: Array) -> Words:
    """Return each value of a column that was read as 64 bits."""
    if column.dtype == object:
        distinct: dict[Any, int] = {}
        places = [distinct.setdefault(text, len(distinct)) for text in column.tolist()]
        hashes = [
            _MISSING if t is None else int.from_bytes(text_hash(t, 8), "little") for t in distinct
        ]
        return np.array(hashes, dtype=np.uint64)[np.array(places, dtype=np.int64)]
    values = column + 0.0  # no minus zero
    words: Words = np.where(np.isnan(values), _MISSING, values.view(np.uint64))
    return words
