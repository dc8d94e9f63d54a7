"""Read the cells of Arrow arrays, an array at once, and parse CSV lines by PyArrow.

How a cell is read is defined for NumPy arrays (`kinds`); here an Arrow array is converted to such
arrays. No type is refused: lists, structures, times and durations are columns of missing cells.
Arrow's error messages show cells, so none leaves this file: the cells are then read one by one.
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
"""The pattern of a number in `cells` for Arrow, where $ also matches before a line feed."""


def read_column(column: Any, read: Reading, read_texts: Reading | None = None) -> Array:
    """Return the values of the cells of a NumPy array, or an Arrow array in one or more chunks.

    `read` returns the values of a NumPy array of cells, each from one cell; `read_texts` those of
    an Arrow array of binary texts, where that is faster than `read` of the distinct texts.
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
    """A cache of the distinct texts of a column's last batch, and their values.

    The batches of a file mostly have the same texts. Threads may share one cache.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Any, Array] = (None, np.empty(0))

    def read(self, column: Any, read: Reading, *, out: npt.NDArray[np.float64]) -> bool:
        """Read a batch that is an Arrow dictionary into `out`; return False for another batch."""
        encoded = self.places(column, read)
        if encoded is None:
            return False
        np.take(encoded[1], encoded[0], out=out, mode="clip")
        return True

    def places(self, column: Any, read: Reading) -> tuple[Array, Array] | None:
        """Return the index of each cell in the dictionary, and the values of the dictionary."""
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
    """Return a view of an Arrow array of 64-bit integers without nulls; None for other arrays.

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
    """Read an Arrow array by its type; if Arrow fails, cell by cell as Python objects."""
    try:
        return _typed(array, read, read_texts)
    except Exception:  # not shown, since the message may hold a cell
        cells = quietly(_cells, array, otherwise=[None] * len(array))
        return read(as_objects(cells))


def _cells(array: Any) -> list[Any]:
    return [quietly(_cell, array, i) for i in range(len(array))]


def _cell(array: Any, index: int) -> Any:
    return array[index].as_py()


def _typed(array: Any, read: Reading, read_texts: Reading | None) -> Array:
    """Return the values of an Arrow array's cells, in the way that suits its type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = array.type, pa.types
    if types.is_run_end_encoded(kind):
        return _read(pc.run_end_decode(array), read, read_texts)
    if types.is_dictionary(kind):
        return _at_indices(array.indices, _read(array.dictionary, read, read_texts), read)
    if _is_text(kind) or types.is_decimal(kind):
        if _is_text(kind):
            array = array.cast(pa.large_binary())  # texts of a file may be invalid UTF-8
        if read_texts is not None:  # decimals too, which Arrow rounds to floats incorrectly
            return read_texts(array if _is_text(kind) else array.cast(pa.large_string()))
        encoded = array.dictionary_encode()
        return _at_indices(encoded.indices, read(as_objects(encoded.dictionary.to_pylist())), read)
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
    """Tell whether an Arrow type is one of texts or bytes."""
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


def _at_indices(indices: Any, values: Array, read: Reading) -> Array:
    """Return the value at each index; the value of a missing cell at a null."""
    if not len(values):
        values = read(as_objects([None]))  # so that index 0, put in the place of nulls, exists
    places = _filled(indices, 0).to_numpy(zero_copy_only=False)
    return _without_nulls(indices, values[places], read)


def _filled(array: Any, instead: Any) -> Any:
    return array.fill_null(instead) if array.null_count else array


def _without_nulls(array: Any, values: Array, read: Reading) -> Array:
    """Return the values with what `read` makes of a missing cell at each null."""
    if array.null_count:
        values = np.array(values)
        values[_mask(array.is_null())] = read(as_objects([None]))[0]
    return values


# -- numbers as texts -------------------------------------------------------------------------


def text_numbers(texts: Any) -> Array:
    """Return `cells.number` of each text of an Arrow array of binary texts, as float64.

    >>> import pyarrow as pa
    >>> text_numbers(pa.array([b" 1.50 ", b"1e400", b"1_000", b"TRUE", b"inf", None]))
    array([1.50000000e+000, 1.79769313e+308,             nan, 1.00000000e+000,
                       nan,             nan])
    """
    for trimmed in (False, True):
        read = _cast(texts, trimmed=trimmed)
        if read is not None and np.count_nonzero(~np.isfinite(read)) == texts.null_count:
            return read  # no text is inf or nan, which Arrow reads as numbers and `cells` does not
    return _careful_numbers(texts)


def _careful_numbers(texts: Any) -> Array:
    """Return the numbers of texts: Arrow reads those that match the grammar, `cells` all others."""
    import pyarrow.compute as pc

    result = np.full(len(texts), np.nan)
    spelled = pc.match_substring_regex(texts, _NUMBER).fill_null(False)
    numbers = _cast(texts.filter(spelled), trimmed=True)
    if numbers is None:
        spelled = pc.and_(spelled, False)
    else:
        result[_mask(spelled)] = np.clip(numbers, -one_cell.LARGEST, one_cell.LARGEST)
    others = pc.and_(pc.invert(spelled), texts.is_valid())
    encoded = texts.filter(others).dictionary_encode()
    distinct = one_cell.numbers(as_objects(encoded.dictionary.to_pylist()))
    result[_mask(others)] = distinct[encoded.indices.to_numpy()]
    return result


def _mask(flags: Any) -> Array:
    mask: Array = flags.to_numpy(zero_copy_only=False)
    return mask


def _cast(texts: Any, *, trimmed: bool) -> Array | None:
    """Return the floats that Arrow reads from texts; None if it refuses one of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        plain = texts.cast(pa.large_string(), safe=False)  # need not be valid UTF-8
        plain = pc.ascii_trim(plain, " ") if trimmed else plain
        values: Array = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        return None
    return values


# -- Chunks of CSV lines parsed by PyArrow, to exactly the cells of `csv.read_lines` --------------
# PyArrow parses a chunk at once, and one irregular line or cell changes how it reads the others. So
# lines that PyArrow might read differently (bare carriage returns, wrong quotes, too few or too
# many cells) are taken out first and read by themselves, and a column with a cell that is not a
# plain number is read as texts. An irregular cell may slow down its chunk, but changes no other
# cell.

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Places: TypeAlias = npt.NDArray[np.int64]

_LF, _CR = 10, 13
_LARGEST_CHUNK = 1 << 23
"""PyArrow parses a chunk of this size as one block: 2 MiB, three bytes of UTF-8 for each byte."""
_MOST_COLUMNS = 1 << 16
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "NONE", "n/a", "na", "-", "?"]
"""Frequent texts for missing numbers, which PyArrow itself may read as null."""


@final
class ArrowChunks:
    """Reads chunks of complete lines; `width` is the expected number of cells of a line."""

    __slots__ = ("_form", "_kinds", "_wanted", "_width")

    def __init__(self, form: CsvFormat, width: int, wanted: Wanted) -> None:
        self._form, self._width, self._wanted = form, width, wanted
        # whether each column is needed as numbers only; it may be requested twice
        self._kinds: dict[int, bool] = {}
        for place, as_number in wanted:
            self._kinds[place] = self._kinds.get(place, True) and as_number

    def read(self, chunk: bytes) -> tuple[Any, ...]:
        """Return the wanted columns of a chunk: dictionaries of bytes, objects, or floats."""
        form = self._form
        plain: bytes | None = chunk
        if not chunk.isascii():
            plain = _in_utf8(chunk, form) if form.by_bytes else None
        columns = None
        if plain is not None and len(plain) < _LARGEST_CHUNK:
            columns = self._columns(plain, chunk)
        return read_lines(_lines(chunk), form, self._wanted) if columns is None else columns

    def _columns(self, plain: bytes, chunk: bytes) -> tuple[Any, ...] | None:
        """Parse a chunk at once, odd lines one by one; None if PyArrow's rows are not the lines."""
        lines, odd = newlines(plain), self._irregular_lines(plain)
        even = _with_lines_emptied(plain, odd)
        typed = self._form.delimiter == "\t" or b"\t" not in plain  # it would trim tabs too
        width, table = self._width, self._parse(even, self._width, typed=typed)
        if table is None:
            cells = self._cells_by_line(even)
            cells[odd] = width
            if (cells != width).any():
                width = int(np.bincount(cells).argmax())
                odd = np.union1d(odd, np.flatnonzero(cells != width))
                even = _with_lines_emptied(plain, odd)
                table = self._parse(even, width, typed=typed)
        if table is None and typed:
            table = self._parse(even, width, typed=False)
        if table is None or any(len(column) != lines for column in table.values()):
            return None
        columns = [self._column(table, *entry, lines) for entry in self._wanted]
        return self._with_irregular_lines(columns, odd, chunk) if len(odd) else tuple(columns)

    def _parse(self, chunk: bytes, width: int, *, typed: bool) -> dict[int, Any] | None:
        """Return the wanted columns; None if a line has another width or a cell is not a number.

        No `invalid_row_handler`: PyArrow prints a traceback for a line that it cannot decode.
        """
        import pyarrow as pa
        from pyarrow import csv

        if width > _MOST_COLUMNS:
            return None
        form, texts = self._form, pa.dictionary(pa.int32(), pa.binary())
        numbers = pa.float64() if typed else pa.binary()
        places = [place for place in self._kinds if place < width]
        # at least one column is parsed, to compare the number of rows with that of lines
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
        columns = [_as_one_array(table.column(i)) for i in range(len(kinds))]
        if any(map(_has_infinity, columns)):
            return None  # PyArrow reads "inf" as a number, and "1e999" as infinity
        return dict(zip(kinds, columns, strict=True))

    def _column(self, table: dict[int, Any], place: int, as_number: bool, lines: int) -> Any:
        """Return a wanted column of a parsed table, as numbers if these are needed."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = table.get(place)
        if column is None:
            return np.full(lines, np.nan) if as_number else as_objects([None] * lines)
        if not as_number or isinstance(column, np.ndarray):
            return column
        texts = column.cast(pa.binary())
        if self._form.decimal == ",":  # a text with a dot is then not a number
            texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
        return text_numbers(texts)

    def _irregular_lines(self, chunk: bytes) -> _Places:
        """Return the numbers of lines that PyArrow might split differently."""
        # a byte order mark at the start of a chunk is part of a cell, which PyArrow would drop
        odd = [np.zeros(int(chunk.startswith(BOM)), dtype=np.int64)]
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
        """Return the lines with a quote that neither opens or closes a cell nor is doubled in one.

        In a correct line the first, third, … quote opens a cell or continues a doubled quote, and
        the second, fourth, … closes one or begins a doubled quote.
        """
        quote = ord(self._form.quote or "")
        before, after = np.zeros((2, 256), dtype=np.bool_)
        before[[ord(self._form.delimiter), _LF, quote]] = True
        # a bare carriage return makes its line irregular anyway
        after[[ord(self._form.delimiter), _LF, quote, _CR]] = True
        places, ends = np.flatnonzero(data == quote), np.flatnonzero(data == _LF)
        inside = np.diff(np.searchsorted(places, ends), prepend=0)
        unpaired = np.flatnonzero(inside & 1)
        if len(unpaired):
            places = places[np.repeat(inside & 1 == 0, inside)]
        opens, closes = places[::2], places[1::2]  # alternating, since each line has pairs
        # index -1, before the first byte, is the last byte: an LF
        opens = opens[~before[data[opens - 1]]]
        closes = closes[~after[data[closes + 1]]]
        wrong = np.searchsorted(ends, np.concatenate([opens, closes]))
        return np.union1d(wrong, unpaired)

    def _cells_by_line(self, chunk: bytes) -> _Places:
        """Return the number of cells of each line, in a chunk whose quotes are all correct."""
        data = np.frombuffer(chunk, dtype=np.uint8)
        splits = data == ord(self._form.delimiter)
        if self._form.quote is not None:
            splits &= np.cumsum(data == ord(self._form.quote)) % 2 == 0
        ends = np.flatnonzero(data == _LF)
        return np.bincount(np.searchsorted(ends, np.flatnonzero(splits)), minlength=len(ends)) + 1

    def _with_irregular_lines(
        self, columns: list[Any], odd: _Places, chunk: bytes
    ) -> tuple[Any, ...]:
        """Return the columns with the cells of the irregular lines, each read by itself."""
        lines = _lines(chunk)
        alone = read_lines([lines[line] for line in odd], self._form, self._wanted)
        mended = []
        for column, cells in zip(columns, alone, strict=True):
            if isinstance(column, np.ndarray):
                cells_of_column = np.array(column)
            else:
                distinct = as_objects(column.dictionary.to_pylist())
                cells_of_column = distinct[column.indices.to_numpy()]
            cells_of_column[odd] = cells
            mended.append(cells_of_column)
        return tuple(mended)


def _in_utf8(chunk: bytes, form: CsvFormat) -> bytes:
    """Return the chunk in UTF-8; an invalid byte makes its cell undecodable in UTF-8 too."""
    if form.codec == "utf-8":
        return chunk
    return chunk.decode(form.codec, "surrogateescape").encode("utf-8", "surrogatepass")


def _lines(chunk: bytes) -> list[bytes]:
    return chunk.split(b"\n")[:-1]


def _with_lines_emptied(chunk: bytes, odd: _Places) -> bytes:
    """Return the chunk with the lines of these numbers replaced by empty ones."""
    if not len(odd):
        return chunk
    lines = chunk.split(b"\n")
    for line in odd.tolist():
        lines[line] = b""
    return b"\n".join(lines)


def _as_one_array(column: Any) -> Any:
    """Return a column of a table as one array: floats as a NumPy array with NaN for null."""
    import pyarrow as pa

    return column.to_numpy() if pa.types.is_floating(column.type) else column.combine_chunks()


def _has_infinity(column: Any) -> bool:
    return isinstance(column, np.ndarray) and bool(np.isinf(column).any())
