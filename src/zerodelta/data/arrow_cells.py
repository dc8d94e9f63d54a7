"""Columns of Arrow arrays read cell by cell, a whole array at once; CSV lines read by PyArrow.

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
from zerodelta.data.csv import BOM, CsvFormat, Wanted, newlines, read_lines
from zerodelta.data.isolation import quietly
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


# -- Chunks of CSV lines parsed by PyArrow, to exactly the cells of `csv_cells.read_lines` --------
# PyArrow reads whole chunks, and one odd line or cell changes what it does with the others. So
# lines that it could see otherwise (bare carriage returns, wrong quotes, too few or too many
# cells) are taken out first and read by themselves, and columns in which a cell is no plain number
# are read as texts. An odd cell changes the way its chunk is read, never another cell.

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Places: TypeAlias = npt.NDArray[np.int64]

_LF, _CR = 10, 13
_LARGEST_CHUNK = 1 << 23
"""Two blocks of a MiB, each byte up to three bytes of UTF-8: PyArrow parses it as one block."""
_MOST_COLUMNS = 1 << 16
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "NONE", "n/a", "na", "-", "?"]
"""Texts that often stand for missing numbers: none spells one, so they need no slower way."""


@final
class ArrowChunks:
    """Reads chunks of whole lines; `width` is how many cells a line is expected to have."""

    __slots__ = ("_form", "_kinds", "_wanted", "_width")

    def __init__(self, form: CsvFormat, width: int, wanted: Wanted) -> None:
        self._form, self._width, self._wanted = form, width, wanted
        self._kinds: dict[int, bool] = {}  # a column may be asked for twice
        for place, as_number in wanted:
            self._kinds[place] = self._kinds.get(place, True) and as_number

    def read(self, chunk: bytes) -> tuple[Any, ...]:
        """Return the wanted columns of a chunk: dictionaries of bytes, objects, or floats."""
        form = self._form
        plain: bytes | None = chunk
        if not chunk.isascii():
            plain = _in_utf8(chunk, form) if form.by_bytes else None
        found = None
        if plain is not None and len(plain) < _LARGEST_CHUNK:
            found = self._columns(plain, chunk)
        return read_lines(_lines(chunk), form, self._wanted) if found is None else found

    def _columns(self, plain: bytes, chunk: bytes) -> tuple[Any, ...] | None:
        """Parse a chunk in UTF-8; None if PyArrow finds other rows in it than there are lines."""
        lines, odd = newlines(plain), self._odd_lines(plain)
        even = _without(plain, odd)
        typed = self._form.delimiter == "\t" or b"\t" not in plain  # it would trim tabs too
        width, table = self._width, self._parse(even, self._width, typed=typed)
        if table is None:
            cells = self._cells_by_line(even)
            cells[odd] = width
            if (cells != width).any():
                width = int(np.bincount(cells).argmax())
                odd = np.union1d(odd, np.flatnonzero(cells != width))
                even = _without(plain, odd)
                table = self._parse(even, width, typed=typed)
        if table is None and typed:
            table = self._parse(even, width, typed=False)
        if table is None or any(len(column) != lines for column in table.values()):
            return None
        columns = [self._column(table, *each, lines) for each in self._wanted]
        return self._mended(columns, odd, chunk) if len(odd) else tuple(columns)

    def _parse(self, chunk: bytes, width: int, *, typed: bool) -> dict[int, Any] | None:
        """Return the wanted columns; None if a line has other cells or a cell is no number.

        No `invalid_row_handler`: PyArrow prints a traceback for a line that it cannot decode.
        """
        import pyarrow as pa
        from pyarrow import csv

        if width > _MOST_COLUMNS:
            return None
        form, texts = self._form, pa.dictionary(pa.int32(), pa.binary())
        numbers = pa.float64() if typed else pa.binary()
        places = [place for place in self._kinds if place < width]
        # a column is parsed in any case: it tells how many rows PyArrow has found
        kinds = {place: numbers if self._kinds[place] else texts for place in places} or {0: texts}
        try:
            table = csv.read_csv(
                pa.BufferReader(chunk),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=_LARGEST_CHUNK,
                    column_names=[str(place) for place in range(width)],
                ),
                csv.ParseOptions(
                    delimiter=form.delimiter,
                    quote_char=self._quoted(chunk) and form.quote,
                    escape_char=False,
                    newlines_in_values=False,
                    ignore_empty_lines=False,
                ),
                csv.ConvertOptions(
                    column_types={str(place): kind for place, kind in kinds.items()},
                    include_columns=[str(place) for place in kinds],
                    null_values=_MISSING,
                    check_utf8=False,
                    decimal_point=form.decimal,
                ),
            )
        except pa.ArrowInvalid:  # its message holds the cell
            return None
        columns = [_combined(table.column(i)) for i in range(len(kinds))]
        if any(map(_is_unbounded, columns)):
            return None  # the text inf is no number, and 1e999 is
        return dict(zip(kinds, columns, strict=True))

    def _column(self, table: dict[int, Any], place: int, as_number: bool, lines: int) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = table.get(place)
        if column is None:
            return np.full(lines, np.nan) if as_number else as_objects([None] * lines)
        if not as_number or isinstance(column, np.ndarray):
            return column
        texts = column.cast(pa.binary())
        if self._form.decimal == ",":  # a dot is then in no number
            texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
        return text_numbers(texts)

    def _odd_lines(self, chunk: bytes) -> _Places:
        """Return the lines in which PyArrow would see something else than cells and an end."""
        odd = [np.zeros(int(chunk.startswith(BOM)), dtype=np.int64)]  # part of a cell here
        if self._quoted(chunk):
            odd.append(self._wrong_quotes(np.frombuffer(chunk, dtype=np.uint8)))
        if b"\r" in chunk and chunk.count(b"\r") != chunk.count(b"\r\n"):
            data = np.frombuffer(chunk, dtype=np.uint8)
            returns = np.flatnonzero(data == _CR)
            bare = returns[data[returns + 1] != _LF]
            odd.append(np.searchsorted(np.flatnonzero(data == _LF), bare))
        return np.unique(np.concatenate(odd))

    def _quoted(self, chunk: bytes) -> bool:
        return self._form.quote is not None and self._form.quote.encode() in chunk

    def _wrong_quotes(self, data: _Bytes) -> _Places:
        """Return the lines whose quotes do not all open or close a cell, or come doubled in one."""
        quote = ord(self._form.quote or "")
        before, after = np.zeros((2, 256), dtype=np.bool_)
        before[[ord(self._form.delimiter), _LF, quote]] = True
        after[[ord(self._form.delimiter), _LF, quote, _CR]] = True  # a bare return is odd anyway
        places, ends = np.flatnonzero(data == quote), np.flatnonzero(data == _LF)
        inside = np.diff(np.searchsorted(places, ends), prepend=0)
        unpaired = np.flatnonzero(inside & 1)
        if len(unpaired):
            places = places[np.repeat(inside & 1 == 0, inside)]
        opens, closes = places[::2], places[1::2]  # of each line, as each has pairs
        opens = opens[~before[data[opens - 1]]]  # the last byte is an LF, as before the first line
        closes = closes[~after[data[closes + 1]]]
        wrong = np.searchsorted(ends, np.concatenate([opens, closes]))
        return np.union1d(wrong, unpaired)

    def _cells_by_line(self, chunk: bytes) -> _Places:
        """Return the number of cells of each line; all quotes are in their places."""
        data = np.frombuffer(chunk, dtype=np.uint8)
        splits = data == ord(self._form.delimiter)
        if self._form.quote is not None:
            splits &= np.cumsum(data == ord(self._form.quote)) % 2 == 0
        ends = np.flatnonzero(data == _LF)
        return np.bincount(np.searchsorted(ends, np.flatnonzero(splits)), minlength=len(ends)) + 1

    def _mended(self, columns: list[Any], odd: _Places, chunk: bytes) -> tuple[Any, ...]:
        """Return the columns with the cells of lines that were read by themselves."""
        lines = _lines(chunk)
        alone = read_lines([lines[line] for line in odd], self._form, self._wanted)
        mended = []
        for column, cells in zip(columns, alone, strict=True):
            if isinstance(column, np.ndarray):
                whole = np.array(column)
            else:
                distinct = as_objects(column.dictionary.to_pylist())
                whole = distinct[column.indices.to_numpy()]
            whole[odd] = cells
            mended.append(whole)
        return tuple(mended)


def _in_utf8(chunk: bytes, form: CsvFormat) -> bytes:
    """Return the chunk in UTF-8; a byte that means nothing makes its cell undecodable there too."""
    if form.codec == "utf-8":
        return chunk
    return chunk.decode(form.codec, "surrogateescape").encode("utf-8", "surrogatepass")


def _lines(chunk: bytes) -> list[bytes]:
    return chunk.split(b"\n")[:-1]


def _without(chunk: bytes, odd: _Places) -> bytes:
    """Return the chunk with empty lines in the place of some."""
    if not len(odd):
        return chunk
    lines = chunk.split(b"\n")
    for line in odd.tolist():
        lines[line] = b""
    return b"\n".join(lines)


def _combined(column: Any) -> Any:
    """Return the one array that a column of a table is: floats as NumPy has them, NaN for null."""
    import pyarrow as pa

    return column.to_numpy() if pa.types.is_floating(column.type) else column.combine_chunks()


def _is_unbounded(column: Any) -> bool:
    return isinstance(column, np.ndarray) and bool(np.isinf(column).any())
