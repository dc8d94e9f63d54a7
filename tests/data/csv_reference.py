"""CSV by its definition, byte by byte: what every faster way of reading must agree with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerodelta.data.cells import number
from zerodelta.data.csv import CsvFormat

Row = list[str | None]
TWO_BYTES = {"cp932", "gbk", "cp949", "cp950"}


def reference_rows(data: bytes, form: CsvFormat, *, longest: int = 1 << 20) -> list[Row]:
    """Return the cells of all lines after the header; "" for what cannot be told from missing."""
    lines, line = [], bytearray()
    for byte in data:
        if byte == 0x0A:
            lines.append(bytes(line))
            line.clear()
        else:
            line.append(byte)
    if line:
        lines.append(bytes(line))
    lines = [b"" if len(each) > longest else each for each in lines]
    if lines and form.encoding.lower().startswith("utf") and lines[0][:3] == b"\xef\xbb\xbf":
        lines[0] = lines[0][3:]
    return [_cells(each, form) for each in lines[form.header :]]


def _cells(line: bytes, form: CsvFormat) -> Row:
    if line[-1:] == b"\r":
        line = line[:-1]
    if form.encoding in TWO_BYTES:  # a delimiter may be half of a character
        text = line.decode(form.encoding, "surrogateescape")
        return [_clean(cell) for cell in _split(text, form)]
    # one character for each byte, to split before anything is decoded
    raw = [cell.encode("latin-1") for cell in _split(line.decode("latin-1"), form)]
    return [_decoded(cell, form.encoding) for cell in raw]


def _split(text: str, form: CsvFormat) -> list[str]:
    cells, cell, state = [], "", "start"
    for character in text:
        if state == "start" and character == form.quote:
            state = "quoted"
        elif state == "quoted":
            if character == form.quote:
                state = "closed"
            else:
                cell += character
        elif state == "closed" and character == form.quote:
            cell, state = cell + character, "quoted"
        elif character == form.delimiter:
            cells.append(cell)
            cell, state = "", "start"
        else:
            cell, state = cell + character, "plain"
    return [*cells, cell]


def _clean(cell: str) -> str | None:
    return None if any("\udc80" <= character <= "\udcff" for character in cell) else cell


def _decoded(cell: bytes, encoding: str) -> str | None:
    try:
        return cell.decode(encoding)
    except UnicodeDecodeError:
        return None


def reference_column(rows: list[Row], place: int, form: CsvFormat, *, as_number: bool) -> list[Any]:
    """Return a column as `plain` shows one: numbers (None for NaN), or texts ("" for missing)."""
    cells = [row[place] if place < len(row) else None for row in rows]
    if not as_number:
        return [cell or "" for cell in cells]
    if form.decimal == ",":
        swap = {ord(","): ".", ord("."): ","}
        cells = [None if cell is None else cell.translate(swap) for cell in cells]
    return [None if math.isnan(value) else value for value in map(number, cells)]


def plain(column: Any) -> list[Any]:
    """Return what a reader has handed out, in the same form."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return [None if math.isnan(value) else value for value in column.tolist()]
    cells = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    texts = [_decoded(cell, "utf-8") if isinstance(cell, bytes) else cell for cell in cells]
    return [text or "" for text in texts]
