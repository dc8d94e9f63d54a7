"""Choose which rows of each unit count: at most `max_rows` of them (theory V).

A unit is a person, say, whose rows are protected together. Of each unit the `max_rows` rows that
come first in a fixed order are kept: the order of a hash of the unit's id, the cells of all
declared columns, and the number of the copy among equal rows. (A hash of the contents alone would
keep the same values in every unit.) Which rows of a unit are kept depends on that unit's rows only,
so replacing all of them changes at most `max_rows` of the rows kept; the order of the rows and the
batches in which they are read do not matter. The hash is public and fixed: the guarantee needs no
secret.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data import cells as one_cell
from zerodelta.data.arrow_cells import read_column
from zerodelta.data.columns import as_objects
from zerodelta.data.isolation import quietly
from zerodelta.data.readers import attempt
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count
from zerodelta.value import value

# -- Ids of units, as 128 bits that do not depend on the physical type of their column ------------
# Ids are read like categories. A whole number becomes its own 64 bits and a mix of them, any other
# id its BLAKE2b hash: two ids with the same 128 bits are one unit. All rows without an id are one
# unit.

Words: TypeAlias = npt.NDArray[np.uint64]

RULE = "zerodelta units 1"
"""The name and version of the rule that chooses rows: with another hash it chooses other rows."""

ID = np.dtype([("high", np.uint64), ("low", np.uint64)])
WORDS = np.frombuffer(hashlib.blake2b(RULE.encode(), digest_size=32).digest(), dtype="<u8").astype(
    np.uint64
)
_MISSING, _FIRST, _SECOND, _ = WORDS
_NO_ID = np.array([(_MISSING, _FIRST)], dtype=ID)

_FEWEST_AT_ONCE = 64
"""With fewer cells than this, converting them to Arrow costs more than reading them one by one."""
_TEXTS = {id(str), id(type(None))}
_INTEGER = r"^-?[0-9]{1,18}\z"
_NAME = r"^[!-~]*[A-DF-Za-df-z_#@:/|][!-~]*\z"
"""A text that is not a number. If it has a digit or more than five characters ("false" has five),
it is not one of the words that a category reads as a boolean or as missing either.
"""
_INTEGERS_BELOW = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""By the size of a float in bytes: whole numbers below this are their own shortest decimals."""


def unit_ids(column: Any) -> Array:
    """Return the 128 bits by which the ids of a column are compared, whatever its physical type.

    >>> alike = unit_ids(np.array([7, 7.0, "07", b"7"], dtype=object)), unit_ids(np.array([7] * 4))
    >>> bool((alike[0] == alike[1]).all())
    True
    """
    return read_column(column, _ids, _text_ids)


def _text_ids(texts: Any) -> Array:
    """Return the ids of an Arrow array of texts: integers all at once, names hashed as they are.

    A text that may be another number, a boolean or missing is read as a category, one distinct
    text after the other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = texts.cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary
    is_integer = pc.match_substring_regex(distinct, _INTEGER)
    is_name = pc.match_substring_regex(distinct, _NAME)
    longer = pc.greater(pc.binary_length(distinct), len("false"))
    is_name = pc.and_(is_name, pc.or_(longer, pc.match_substring_regex(distinct, "[0-9]")))
    is_other = pc.invert(pc.or_(is_integer, is_name))
    ids = np.empty(len(distinct) + 1, dtype=ID)
    ids[-1] = _NO_ID[0]
    places = [
        mask.to_numpy(zero_copy_only=False).nonzero()[0] for mask in (is_integer, is_name, is_other)
    ]
    spelled = distinct.filter(is_integer).cast(pa.large_string()).cast(pa.int64())
    ids[places[0]] = _integer_ids(spelled.to_numpy())
    ids[places[1]] = _name_ids(distinct.filter(is_name).to_pylist())
    ids[places[2]] = _ids_one_by_one(as_objects(distinct.filter(is_other).to_pylist()))
    chosen: Array = ids[encoded.indices.fill_null(len(distinct)).to_numpy()]
    return chosen


def _name_ids(texts: list[bytes]) -> Array:
    """Return the ids of texts that are names, in UTF-8."""
    keyed, digests = hashlib.blake2b(digest_size=16, key=RULE.encode()), []
    for text in texts:
        state = keyed.copy()  # faster than a new one for each text
        state.update(text)
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).view(ID)


def _ids(cells: Array) -> Array:
    """Return the ids of a NumPy array of cells; equal numbers and texts have equal ids."""
    kind, size = cells.dtype.kind, cells.dtype.itemsize
    if kind in "mMV":
        return np.repeat(_NO_ID, len(cells))
    if kind in "bi":
        return _integer_ids(cells.astype(np.int64))
    if kind == "u" or (kind == "f" and size <= 8):
        limit = _INTEGERS_BELOW[size] if kind == "f" else 1 << 63
        with np.errstate(invalid="ignore"):
            is_integer = (
                (cells < limit) & (cells > -limit) if kind == "f" else cells < np.uint64(limit)
            )
            is_integer &= cells == np.floor(cells) if kind == "f" else True
        ids = _integer_ids(np.where(is_integer, cells, 0).astype(np.int64))
        ids[~is_integer] = (
            _ids(as_objects(list(cells[~is_integer]))) if not is_integer.all() else _NO_ID[0]
        )
        return ids
    objects = as_objects(list(cells)) if kind in "fc" else cells
    texts = _as_texts(objects)
    return _ids_one_by_one(objects) if texts is None else _text_ids(texts)


def _as_texts(cells: Array) -> Any:
    """Return an array that holds only texts and None as an Arrow array; None for other arrays."""
    listed = cells.tolist()
    # by identity: a type may have a comparison or a hash of its own
    if len(listed) < _FEWEST_AT_ONCE or not _TEXTS.issuperset(map(id, map(type, listed))):
        return None
    try:
        import pyarrow as pa

        return pa.array(listed, pa.large_string())
    except Exception:  # no PyArrow, or a text that is not valid UTF-8; the message would show it
        return None


def _ids_one_by_one(cells: Array) -> Array:
    """Return the ids of cells, reading each distinct text or cell as a category."""
    distinct: dict[one_cell.Key, int] = {}

    def place(cell: Any) -> int:
        return distinct.setdefault(one_cell.category(cell), len(distinct))

    places = one_cell.read_all(cells, place)
    return _key_ids(list(distinct))[places]


def _integer_ids(integers: npt.NDArray[np.int64]) -> Array:
    """Return the ids of whole numbers: their 64 bits, and a mix of them."""
    ids = np.empty(len(integers), dtype=ID)
    ids["low"] = integers.view(np.uint64)
    ids["high"] = mixed(ids["low"] ^ _SECOND)
    return ids


def _key_ids(keys: list[one_cell.Key]) -> Array:
    """Return the ids of cells that were read as categories: integers, hashes of texts."""
    is_integer = [type(key) is int and -(1 << 63) <= key < 1 << 63 for key in keys]
    is_missing = [key is None or type(key) is tuple for key in keys]
    hashes = b"".join(text_hash(str(key), 16) for key in keys)
    ids = np.frombuffer(hashes, dtype="<u8").astype(np.uint64).view(ID)
    ids[is_missing] = _NO_ID[0]
    integers = [key for key, chosen in zip(keys, is_integer, strict=True) if chosen]
    ids[is_integer] = _integer_ids(np.array(integers, dtype=np.int64))
    return ids


def text_hash(text: str, size: int) -> bytes:
    """Return the BLAKE2b hash of a text's UTF-8, under the rule's name."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=size, key=RULE.encode()).digest()


def mixed(words: Words) -> Words:
    """Return 64-bit words in which every bit depends on all bits of the old word, one-to-one.

    This is the finalizer of splitmix64. Small whole numbers, as floats, differ in a few high bits
    only: without it different rows would get equal hashes.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    other = words >> np.uint64(30)
    other ^= words
    other *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(other, np.uint64(27), out=words)
    words ^= other
    words *= np.uint64(0x94D049BB133111EB)
    np.right_shift(words, np.uint64(31), out=other)
    other ^= words
    mixed: Words = other
    return mixed


_UNITS_MISSING, _UNITS_FIRST, _UNITS_SECOND, _STEP = WORDS
_ODD = _STEP | np.uint64(1)

_PART_BITS = np.uint64(40)
"""A row's place is one word: its part, and in the lower 40 bits its number within the part."""
_FILE_GROUPS = 64
_RECORD_BYTES = 40
"""Bytes of the record of a row: five words, its unit (two), its hashes (two) and its place."""
_DEFAULT_MEMORY = 1 << 27


@value
class Bounded:
    """The rows that are kept: one array of booleans for each part, in the order of its rows."""

    kept: tuple[npt.NDArray[np.bool_], ...]
    units: int
    """The number of units that have a row."""
    numbers: tuple[npt.NDArray[np.int64], ...] = ()
    """The number of the unit of each kept row; arbitrary for rows that are not kept."""


@final
class Bounding:
    """Chooses at most `max_rows` rows of each unit, from rows that are added batch by batch.

    Threads may add rows of different parts at the same time; the batches of one part come in order.
    Only hashes are held in memory, 40 bytes for a row; beyond `memory` bytes they go to a file
    without a name, in `folder` or the system's temporary folder. The file is created before the
    first row: the number of rows may be private, and must not decide whether creating it can fail.
    Every failure raises the same message.

    >>> rows = Bounding(max_rows=1)
    >>> rows.add(0, np.array(["ann", "bob", "ann"], dtype=object), [np.array([1.0, 2.0, 3.0])])
    >>> bounded = rows.finish()
    >>> bounded.units, int(bounded.kept[0].sum()), bool(bounded.kept[0][1])
    (2, 2, True)
    """

    def __init__(
        self, *, max_rows: int, memory: int = _DEFAULT_MEMORY, folder: str | None = None
    ) -> None:
        self._max_rows = as_count(max_rows, "max_rows", minimum=1)
        self._memory = memory
        self._lock = threading.Lock()
        self._held: list[Words] = []
        self._bytes = 0
        self._rows: dict[int, int] = {}  # the number of rows added so far, by part
        self._ids: dict[int, _CachedIds] = {}
        self._file: Any = attempt(partial(tempfile.TemporaryFile, dir=folder))
        self._closed = weakref.finalize(self, quietly, self._file.close)
        self._runs: list[npt.NDArray[np.int64]] = []
        """One array for each time the file grew: where the records of each group begin and end."""

    def add(self, part: int, ids: Any, columns: Sequence[Array]) -> None:
        """Add the next rows of a part: the cells of the id, and all declared columns as read.

        The columns are what `Kind.read` returns, in the order of the schema.
        """
        cached = self._ids.get(part)
        if cached is None:
            # only of the last part: another part, such as a row group, has its own dictionary
            self._ids = {part: (cached := _CachedIds())}
        hashes = hashed_rows(ids, columns, cached)
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
        """Return which rows are kept, at most `max_rows` of each unit, and their unit's number."""
        count = 1 + max(self._rows, default=-1)
        kept = [np.zeros(self._rows.get(part, 0), dtype=np.bool_) for part in range(count)]
        numbers = [np.zeros(len(part), dtype=np.int64) for part in kept]
        units = 0
        if self._runs:
            self._spill()
        for records in self._groups():
            places, unit, unit_count = _first_rows(records, self._max_rows)
            parts, rows = places >> _PART_BITS, places & ((np.uint64(1) << _PART_BITS) - 1)
            for part in np.unique(parts).tolist():
                here = parts == part
                kept[part][rows[here]] = True
                numbers[part][rows[here]] = units + unit[here]
            units += unit_count
        self._closed()
        return Bounded(kept=tuple(kept), units=units, numbers=tuple(numbers))

    def _groups(self) -> Iterator[Words]:
        """Yield all records in groups; all records of a unit are in one group."""
        if not self._runs:
            yield np.concatenate([np.empty((5, 0), dtype=np.uint64), *self._held], axis=1)
            return
        for group in range(_FILE_GROUPS):
            ranges = [(ends[group], ends[group + 1]) for ends in self._runs]
            records = b"".join(attempt(partial(self._read, *ends)) for ends in ranges)
            yield np.frombuffer(records, dtype=np.uint64).reshape(-1, 5).T

    def _read(self, start: int, stop: int) -> bytes:
        self._file.seek(start * _RECORD_BYTES)
        records: bytes = self._file.read((stop - start) * _RECORD_BYTES)
        return records

    def _spill(self) -> None:
        """Move the records in memory to the file, grouped by the first bits of their unit's id."""
        records = np.concatenate([np.empty((5, 0), dtype=np.uint64), *self._held], axis=1).T
        group = (records[:, 0] // np.uint64(2**64 // _FILE_GROUPS)).astype(np.int64)
        order = np.argsort(group, kind="stable")
        file_end = self._runs[-1][-1] if self._runs else 0
        ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=_FILE_GROUPS))])
        self._runs.append((file_end + ends).astype(np.int64))
        attempt(partial(self._file.write, records[order].tobytes()))
        self._held, self._bytes = [], 0


def _first_rows(records: Words, max_rows: int) -> tuple[Words, Array, int]:
    """Return the places of the rows kept, the numbers of their units, and the number of units."""
    high, low, first, second, places = records
    if not len(high):
        return places, np.zeros(0, dtype=np.int64), 0
    order = np.argsort(high)
    if ((np.diff(high[order]) == 0) & (np.diff(low[order]) != 0)).any():
        order = np.lexsort((low, high))  # two units share the upper half of their ids
    unit = _run_numbers(high[order], low[order])
    sizes = np.bincount(unit)
    crowded = (sizes > max_rows)[unit]  # most units keep all rows: only the others are sorted
    rows, unit_of_row = order[crowded], unit[crowded]
    chosen = _chosen_rows(unit_of_row, first[rows], second[rows], places[rows], max_rows)
    kept = np.concatenate([places[order[~crowded]], places[rows[chosen]]])
    return kept, np.concatenate([unit[~crowded], unit_of_row[chosen]]), len(sizes)


def _chosen_rows(unit: Array, first: Words, second: Words, places: Words, max_rows: int) -> Array:
    """Return the rows that are among the first `max_rows` of their unit; every unit has more."""
    order, tied = _hash_order(unit, first, second, places)
    if tied.any():  # equal rows: every copy but the first gets a new hash
        rows = order[tied]
        copy = _ranks_within_runs(_run_numbers(unit[rows], first[rows], second[rows])).astype(
            np.uint64
        )
        first = first.copy()
        first[rows] = with_copies(first[rows], copy)
        order, _ = _hash_order(unit, first, second, places)
    return order[_ranks_within_runs(unit[order]) < max_rows]


def _hash_order(
    unit: Array, first: Words, second: Words, places: Words
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the rows in order of unit and hashes, and which have the hashes of a neighbor there.

    Sorts 64-bit words of the unit's number and the start of the first hash, then the ties among
    them. Different rows that agree in both hashes (an attacker may construct two) stay in the order
    in which they were read, which does not depend on the rows of other units.
    """
    bits = np.uint64(int(unit.max(initial=0)).bit_length() + 1)
    key = (unit.astype(np.uint64) << (np.uint64(64) - bits)) | (first >> bits)
    order = np.argsort(key)
    tied = _equal_to_neighbor(key[order])
    rows = order[tied]
    order[tied] = rows[np.lexsort((places[rows], second[rows], first[rows], unit[rows]))]
    rows = order[tied]
    tied[tied] = _equal_to_neighbor(unit[rows], first[rows], second[rows])
    return order, tied


def _equal_to_neighbor(*sorted_keys: Array) -> npt.NDArray[np.bool_]:
    """Return which rows have the same keys as the row before or the row after."""
    same = np.ones(max(len(sorted_keys[0]) - 1, 0), dtype=np.bool_)
    for key in sorted_keys:
        same &= key[1:] == key[:-1]
    equal = np.zeros(len(sorted_keys[0]), dtype=np.bool_)
    equal[1:] |= same
    equal[:-1] |= same
    return equal


def _run_numbers(*sorted_keys: Array) -> Array:
    """Return the number of the run of equal keys in which each row is: 0, 1, …."""
    changes = np.zeros(len(sorted_keys[0]), dtype=np.bool_)
    for key in sorted_keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.cumsum(changes)


def _ranks_within_runs(run: Array) -> Array:
    """Return the position of each row within its run of equal numbers: 0, 1, …."""
    place = np.arange(len(run))
    starts = np.zeros(len(run), dtype=np.int64)
    starts[1:] = np.where(run[1:] != run[:-1], place[1:], 0)
    return place - np.maximum.accumulate(starts)


# -- hashes -----------------------------------------------------------------------------------


@final
class _CachedIds:
    """The ids of a column's distinct texts, kept because the batches of a file often share them."""

    __slots__ = ("_ids", "_texts")

    def __init__(self) -> None:
        self._texts: Any = None
        self._ids: Array = np.empty(0, dtype=ID)

    def read(self, column: Any) -> Array:
        """Return `unit_ids` of one batch of the column."""
        texts = None if isinstance(column, np.ndarray) else getattr(column, "dictionary", None)
        if texts is None or column.null_count or not len(texts):
            return unit_ids(column)
        if self._texts is None or not self._texts.equals(texts):
            self._texts, self._ids = texts, unit_ids(texts)
        ids: Array = self._ids[column.indices.to_numpy()]
        return ids


def hashed_rows(ids: Any, columns: Sequence[Array], cached: _CachedIds | None = None) -> Words:
    """Return four words for each row: two that name its unit, and two hashes of the row.

    Within a unit, rows are chosen in the order of the first hash, then of the second. Rows that
    agree in all four words count as equal, and `with_copies` gives their copies different hashes.
    """
    units = unit_ids(ids) if cached is None else cached.read(ids)
    hashes = np.empty((4, len(units)), dtype=np.uint64)
    hashes[0], hashes[1] = units["high"], units["low"]
    hashes[2], hashes[3] = _row_hashes(units, columns)
    return hashes


def with_copies(first: Words, copy: Words) -> Words:
    """Return the first hash of copy number 0, 1, … of a row; copy 0 keeps the row's own hash.

    Without it all copies of a row would be chosen, or left out, together.
    """
    words: Words = np.where(copy, mixed(first + copy * _ODD), first)
    return words


def _row_hashes(units: Array, columns: Sequence[Array]) -> tuple[Words, Words]:
    """Return two hashes of each row's unit and contents: one to order rows by, one to break ties.

    Rows that agree in both count as equal.
    """
    first = mixed(mixed(units["high"] ^ _UNITS_FIRST) ^ units["low"])
    second = mixed(mixed(units["low"] ^ _UNITS_SECOND) ^ units["high"])
    for column in columns:
        words = _value_words(column)
        first, second = mixed(first ^ words), mixed(second + words)
    return first, second


def _value_words(column: Array) -> Words:
    """Return each number or text of a column that was read (`Kind.read`) as a 64-bit word."""
    if column.dtype == object:
        distinct: dict[Any, int] = {}
        places = [distinct.setdefault(text, len(distinct)) for text in column.tolist()]
        hashes = [
            _UNITS_MISSING if t is None else int.from_bytes(text_hash(t, 8), "little")
            for t in distinct
        ]
        return np.array(hashes, dtype=np.uint64)[np.array(places, dtype=np.int64)]
    values = column + 0.0  # no minus zero
    words: Words = np.where(np.isnan(values), _UNITS_MISSING, values.view(np.uint64))
    return words
