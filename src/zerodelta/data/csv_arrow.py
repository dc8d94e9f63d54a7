"""Chunks of CSV lines parsed by PyArrow, to exactly the cells of `csv_cells.read_lines`.

PyArrow reads whole chunks, and one odd line or cell changes what it does with the others. So lines
that it could see otherwise (bare carriage returns, wrong quotes, too few or too many cells) are
taken out first and read by themselves, and columns in which a cell is no plain number are read as
texts. An odd cell changes the way its chunk is read, never another cell.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import text_numbers
from zerodelta.data.columns import as_objects
from zerodelta.data.csv_cells import BOM, CsvFormat, Wanted, read_lines
from zerodelta.data.csv_lines import newlines

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
