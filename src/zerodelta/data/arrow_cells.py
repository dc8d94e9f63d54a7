"""Columns of Arrow arrays read cell by cell, in whole arrays: distinct texts once, numbers at once.

What a cell is read to is decided elsewhere, for NumPy arrays (`kinds`); here an Arrow array becomes
such arrays. No type is refused: lists, structures, times and durations are columns of missing
cells. Arrow's own errors hold cells, so none leaves this file: the array is then read one by one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data import cells as one_cell
from zerodelta.data.columns import as_objects
from zerodelta.data.interrupts import quietly
from zerodelta.exact.arrays import Array

Reading: TypeAlias = Callable[[Array], Array]

_NUMBER = r"^ *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *\z"
"""The number cell of `cells` for Arrow's regular expressions, in which $ also ends a line."""


def read_column(column: Any, read: Reading, read_texts: Reading | None = None) -> Array:
    """Return what `read` makes of the cells of a NumPy array or an Arrow array, one- or many-piece.

    `read` gives what an array of cells is read to, each cell by itself; `read_texts` the same for
    an Arrow array of binary texts, where that is faster than reading the distinct ones.
    """
    if isinstance(column, np.ndarray):
        return read(column)
    chunks = getattr(column, "chunks", None)
    parts = [_read(part, read, read_texts) for part in ([column] if chunks is None else chunks)]
    if not parts:
        return read(as_objects([]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@final
class Distinct:
    """The distinct texts of a column that comes in several batches, and what they are read to.

    The batches of a file have the same texts, most often. Threads may share one of these.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Any, Array] = (None, np.empty(0))

    def read(self, column: Any, read: Reading, *, out: npt.NDArray[np.float64]) -> bool:
        """Read a batch of texts that come as a dictionary and indices; False if they do not."""
        found = self.places(column, read)
        if found is None:
            return False
        np.take(found[1], found[0], out=out, mode="clip")
        return True

    def places(self, column: Any, read: Reading) -> tuple[Array, Array] | None:
        """Return where each cell is in the dictionary, and what its texts are read to."""
        texts = getattr(column, "dictionary", None)
        if texts is None or isinstance(column, np.ndarray) or column.null_count:
            return None
        known, values = self._last
        if known is None or not known.equals(texts):
            values = read(texts)
            if not len(values) or values.dtype != np.float64:
                return None
            self._last = texts, values
        return column.indices.to_numpy(), values


def stored_integers(column: Any) -> Array | None:
    """Return the numbers of an Arrow array of 64-bit integers without nulls, which is not copied.

    >>> import pyarrow as pa
    >>> stored_integers(pa.array([3, 4])), stored_integers(pa.array([3, None]))
    (array([3, 4]), None)
    """
    kind = str(getattr(column, "type", ""))
    if kind not in ("int64", "uint64") or column.null_count:
        return None
    integers: Array = column.to_numpy()
    return integers


def _read(array: Any, read: Reading, read_texts: Reading | None) -> Array:
    try:
        return _typed(array, read, read_texts)
    except Exception:  # its text may hold a cell
        cells = quietly(_cells, array, otherwise=[None] * len(array))
        return read(as_objects(cells))


def _cells(array: Any) -> list[Any]:
    return [quietly(_cell, array, i) for i in range(len(array))]


def _cell(array: Any, index: int) -> Any:
    return array[index].as_py()


def _typed(array: Any, read: Reading, read_texts: Reading | None) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if types.is_run_end_encoded(kind):
        return _read(pc.run_end_decode(array), read, read_texts)
    if types.is_dictionary(kind):
        return _chosen(array.indices, _read(array.dictionary, read, read_texts), read)
    if _is_text(kind) or types.is_decimal(kind):
        if _is_text(kind):
            array = array.cast(pa.large_binary())  # texts of a file may be no valid UTF-8
        if read_texts is not None:  # of decimals, too: Arrow rounds them to floats wrongly
            return read_texts(array if _is_text(kind) else array.cast(pa.large_string()))
        encoded = array.dictionary_encode()
        return _chosen(encoded.indices, read(as_objects(encoded.dictionary.to_pylist())), read)
    if types.is_boolean(kind) or types.is_integer(kind):
        values = _filled(array, 0 if types.is_integer(kind) else False)
        return _without_nulls(array, read(values.to_numpy(zero_copy_only=False)), read)
    if types.is_floating(kind) or types.is_date(kind) or types.is_timestamp(kind):
        return read(array.to_numpy(zero_copy_only=False))  # a null is NaN or NaT
    if isinstance(array, pa.ExtensionArray) and type(kind).__module__ == pa.lib.__name__:
        if kind.extension_name == "arrow.uuid":
            listed = array.storage.to_pylist()
            return read(as_objects([cell and uuid.UUID(bytes=cell) for cell in listed]))
        if kind.extension_name == "arrow.json":
            return _read(array.storage, read, read_texts)
    return np.repeat(read(as_objects([None])), len(array))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    named = {"binary_view", "string_view"}  # of later versions than the oldest we read
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or str(kind) in named
    )


def _chosen(indices: Any, values: Array, read: Reading) -> Array:
    """Return the value at each index; that of a missing cell at a null."""
    if not len(values):
        values = read(as_objects([None]))  # there is one to take
    places = _filled(indices, 0).to_numpy(zero_copy_only=False)
    return _without_nulls(indices, values[places], read)


def _filled(array: Any, instead: Any) -> Any:
    return array.fill_null(instead) if array.null_count else array


def _without_nulls(array: Any, values: Array, read: Reading) -> Array:
    if array.null_count:
        values = np.array(values)
        values[_mask(array.is_null())] = read(as_objects([None]))[0]
    return values


# -- numbers as texts -------------------------------------------------------------------------


def text_numbers(texts: Any) -> Array:
    """Return what `cells.number` makes of each text of an Arrow array of binary texts: float64.

    >>> import pyarrow as pa
    >>> text_numbers(pa.array([b" 1.50 ", b"1e400", b"1_000", b"TRUE", b"inf", None]))
    array([1.50000000e+000, 1.79769313e+308,             nan, 1.00000000e+000,
                       nan,             nan])
    """
    for trimmed in (False, True):
        read = _cast(texts, trimmed=trimmed)
        if read is not None and np.count_nonzero(~np.isfinite(read)) == texts.null_count:
            return read  # no text says inf or nan, which Arrow reads and `cells` does not
    return _careful_numbers(texts)


def _careful_numbers(texts: Any) -> Array:
    """Return the texts that follow the grammar as Arrow reads them, all others as `cells` does."""
    import pyarrow.compute as pc

    found = np.full(len(texts), np.nan)
    spelled = pc.match_substring_regex(texts, _NUMBER).fill_null(False)
    numbers = _cast(texts.filter(spelled), trimmed=True)
    if numbers is None:
        spelled = pc.and_(spelled, False)
    else:
        found[_mask(spelled)] = np.clip(numbers, -one_cell.LARGEST, one_cell.LARGEST)
    others = pc.and_(pc.invert(spelled), texts.is_valid())
    encoded = texts.filter(others).dictionary_encode()
    distinct = one_cell.numbers(as_objects(encoded.dictionary.to_pylist()))
    found[_mask(others)] = distinct[encoded.indices.to_numpy()]
    return found


def _mask(flags: Any) -> Array:
    mask: Array = flags.to_numpy(zero_copy_only=False)
    return mask


def _cast(texts: Any, *, trimmed: bool) -> Array | None:
    """Return texts as the floats that Arrow reads; None if it refuses one of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        plain = texts.cast(pa.large_string(), safe=False)  # need not be valid UTF-8
        plain = pc.ascii_trim(plain, " ") if trimmed else plain
        values: Array = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return None
    return values
