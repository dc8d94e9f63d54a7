"""Units: whose rows are protected together, and which of them count (theory V).

Of each unit the `max_rows` rows that come first in a fixed order are kept: the order of a hash of
the unit's id, the cells of all declared columns, and the number of the copy among equal rows. (A
hash of the contents alone would keep the same values in every unit.) Which rows of a unit are kept
is decided by its own rows alone, so replacing all of them changes at most `max_rows` of the rows
kept; the order of the rows and the batches in which they are read do not matter. The hash is public
and fixed: the guarantee needs no secret.
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

# -- What the ids of units are compared by, whatever the physical type of their column ------------
# Ids are read like categories; whole numbers are compared as such and other ids by their BLAKE2b
# hash of 128 bits, so a unit is what has one such hash. Rows without an id together are one unit.

Words: TypeAlias = npt.NDArray[np.uint64]

RULE = "zerodelta units 1"
"""The name of the rule by which rows are kept, and its version: another hash would keep others."""

ID = np.dtype([("high", np.uint64), ("low", np.uint64)])
WORDS = np.frombuffer(hashlib.blake2b(RULE.encode(), digest_size=32).digest(), dtype="<u8").astype(
    np.uint64
)
_MISSING, _FIRST, _SECOND, _ = WORDS
_NO_ID = np.array([(_MISSING, _FIRST)], dtype=ID)

_FEW = 64
"""Fewer cells are read one by one."""
_TEXTS = {id(str), id(type(None))}
_INTEGER = r"^-?[0-9]{1,18}\z"
_NAME = r"^[!-~]*[A-DF-Za-df-z_#@:/|][!-~]*\z"
"""A text that is no number; one of more than five letters, or with a digit, is no other word."""
_WHOLE = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}
"""Below this floats of so many bytes hold whole numbers that are their own shortest decimals."""


def unit_ids(column: Any) -> Array:
    """Return what the ids of a column are compared by, whatever its physical type.

    >>> alike = unit_ids(np.array([7, 7.0, "07", b"7"], dtype=object)), unit_ids(np.array([7] * 4))
    >>> bool((alike[0] == alike[1]).all())
    True
    """
    return read_column(column, _ids, _text_ids)


def _text_ids(texts: Any) -> Array:
    """Return the ids of an Arrow array of texts: whole numbers at once, names hashed as they are.

    What may be another number, a boolean or missing is read as a category, one distinct text after
    the other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = texts.cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary
    whole = pc.match_substring_regex(distinct, _INTEGER)
    named = pc.match_substring_regex(distinct, _NAME)
    longer = pc.greater(pc.binary_length(distinct), len("false"))
    named = pc.and_(named, pc.or_(longer, pc.match_substring_regex(distinct, "[0-9]")))
    rest = pc.invert(pc.or_(whole, named))
    found = np.empty(len(distinct) + 1, dtype=ID)
    found[-1] = _NO_ID[0]
    places = [each.to_numpy(zero_copy_only=False).nonzero()[0] for each in (whole, named, rest)]
    spelled = distinct.filter(whole).cast(pa.large_string()).cast(pa.int64())
    found[places[0]] = _whole_ids(spelled.to_numpy())
    found[places[1]] = _hashed(distinct.filter(named).to_pylist())
    found[places[2]] = _one_by_one(as_objects(distinct.filter(rest).to_pylist()))
    chosen: Array = found[encoded.indices.fill_null(len(distinct)).to_numpy()]
    return chosen


def _hashed(texts: list[bytes]) -> Array:
    """Return the ids of names."""
    begun, digests = hashlib.blake2b(digest_size=16, key=RULE.encode()), []
    for text in texts:
        each = begun.copy()
        each.update(text)
        digests.append(each.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).view(ID)


def _ids(cells: Array) -> Array:
    kind, size = cells.dtype.kind, cells.dtype.itemsize
    if kind in "mMV":
        return np.repeat(_NO_ID, len(cells))
    if kind in "bi":
        return _whole_ids(cells.astype(np.int64))
    if kind == "u" or (kind == "f" and size <= 8):
        limit = _WHOLE[size] if kind == "f" else 1 << 63
        with np.errstate(invalid="ignore"):
            plain = (cells < limit) & (cells > -limit) if kind == "f" else cells < np.uint64(limit)
            plain &= cells == np.floor(cells) if kind == "f" else True
        found = _whole_ids(np.where(plain, cells, 0).astype(np.int64))
        found[~plain] = _ids(as_objects(list(cells[~plain]))) if not plain.all() else _NO_ID[0]
        return found
    objects = as_objects(list(cells)) if kind in "fc" else cells
    texts = _as_texts(objects)
    return _one_by_one(objects) if texts is None else _text_ids(texts)


def _as_texts(cells: Array) -> Any:
    """Return an array of nothing but texts and None as one of Arrow's; None for any other."""
    listed = cells.tolist()
    # by identity: a type may have a comparison or a hash of its own
    if len(listed) < _FEW or not _TEXTS.issuperset(map(id, map(type, listed))):
        return None
    try:
        import pyarrow as pa

        return pa.array(listed, pa.large_string())
    except Exception:  # not there, or a text that is no valid UTF-8; the message would hold it
        return None


def _one_by_one(cells: Array) -> Array:
    distinct: dict[one_cell.Key, int] = {}

    def place(cell: Any) -> int:
        return distinct.setdefault(one_cell.category(cell), len(distinct))

    places = one_cell.read_all(cells, place)
    return _key_ids(list(distinct))[places]


def _whole_ids(whole: npt.NDArray[np.int64]) -> Array:
    found = np.empty(len(whole), dtype=ID)
    found["low"] = whole.view(np.uint64)
    found["high"] = mixed(found["low"] ^ _SECOND)
    return found


def _key_ids(keys: list[one_cell.Key]) -> Array:
    whole = [type(key) is int and -(1 << 63) <= key < 1 << 63 for key in keys]
    none = [key is None or type(key) is tuple for key in keys]
    texts = (str(key) if not (w or n) else "" for key, w, n in zip(keys, whole, none, strict=True))
    hashes = b"".join(text_hash(text, 16) for text in texts)
    found = np.frombuffer(hashes, dtype="<u8").astype(np.uint64).view(ID)
    found[none] = _NO_ID[0]
    numbers = [key for key, is_whole in zip(keys, whole, strict=True) if is_whole]
    found[whole] = _whole_ids(np.array(numbers, dtype=np.int64))
    return found


def text_hash(text: str, size: int) -> bytes:
    """Return the BLAKE2b hash of a text's UTF-8, under the rule's name."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=size, key=RULE.encode()).digest()


def mixed(words: Words) -> Words:
    """Return words that any bit of the old ones changes (the finalizer of splitmix64, one-to-one).

    Small whole numbers differ in a few high bits as floats: without it rows would collide.
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
"""A row's place is its part and its number there: at most 2^40 rows in one."""
_GROUPS = 64
_RECORD = 40
"""Bytes of the five words of a row."""
_LIMIT = 1 << 27


@value
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
        self._known: dict[int, _SeenIds] = {}
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
            self._known = {part: (known := _SeenIds())}  # of one part at a time: a row group, say
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
class _SeenIds:
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


def hashed_rows(ids: Any, columns: Sequence[Array], known: _SeenIds | None = None) -> Words:
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
    first = mixed(mixed(units["high"] ^ _UNITS_FIRST) ^ units["low"])
    second = mixed(mixed(units["low"] ^ _UNITS_SECOND) ^ units["high"])
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
            _UNITS_MISSING if t is None else int.from_bytes(text_hash(t, 8), "little")
            for t in distinct
        ]
        return np.array(hashes, dtype=np.uint64)[np.array(places, dtype=np.int64)]
    values = column + 0.0  # no minus zero
    words: Words = np.where(np.isnan(values), _UNITS_MISSING, values.view(np.uint64))
    return words
