"""One line of a CSV file to its cells, by itself: the definition that faster ways must meet.

A line is decoded alone and split at delimiters. Quoting (RFC 4180) holds within the line, and an
open quote ends with it. A cell with bytes that cannot be decoded is missing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.data.cells import number
from zerodelta.data.columns import as_objects
from zerodelta.errors import require

Wanted: TypeAlias = tuple[tuple[int, bool], ...]
"""The places of the columns that are asked for, and whether each is wanted as numbers."""

BOM = codecs.BOM_UTF8

_SINGLE_BYTE = re.compile(r"ascii|iso8859-\d+|cp\d{3,4}|koi8-[rtu]|mac-\w+")
_TWO_BYTES = frozenset({"cp932", "gbk", "cp949", "cp950"})
"""Windows code pages in which a character's second byte may look like a delimiter, never like LF.
"""
_UNDECODED = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of bytes that mean nothing; no text that was decoded has these."""


@final
@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """How a CSV file is written: all of it declared, nothing guessed from the lines.

    A quote that begins a cell opens it, and two in it are one; elsewhere quotes are characters like
    any other, and everywhere with `quote=None`. Without a header the declared columns are the first
    ones of each line, in their order.
    """

    header: bool = True
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    quote: str | None = '"'

    def __post_init__(self) -> None:
        require(
            isinstance(self.header, bool),
            "header",
            self.header,
            expected="True or False",
            remedy="pass header=False if the first line is a row",
        )
        require(
            _is_mark(self.delimiter) and self.delimiter != '"',
            "delimiter",
            self.delimiter,
            expected="one ASCII character that is no letter, digit, quote or line end",
            remedy='pass ",", ";", "|" or "\\t"',
        )
        require(
            self.decimal in (".", ",") and self.decimal != self.delimiter,
            "decimal",
            self.decimal,
            expected='"." or ",", and not the delimiter',
            remedy='pass decimal="." or another delimiter',
        )
        require(
            self.quote is None or (_is_mark(self.quote) and self.quote != self.delimiter),
            "quote",
            self.quote,
            expected="None or one ASCII character other than the delimiter",
            remedy="pass quote=None if quotes are characters like any other",
        )
        require(
            _codec(self.encoding) is not None,
            "encoding",
            self.encoding,
            expected="UTF-8, Latin-1 or a Windows code page, in which the byte 0A only ends lines",
            remedy='convert the file to UTF-8 and pass encoding="utf-8"',
        )

    @property
    def codec(self) -> str:
        """The encoding as Python names it; a BOM is taken off the file's start in any case."""
        found = _codec(self.encoding)
        return "utf-8" if found is None else found

    @property
    def by_bytes(self) -> bool:
        """Whether the delimiter's byte always is one, so that a line can be split undecoded."""
        return self.codec not in _TWO_BYTES


def line_cells(line: bytes, form: CsvFormat) -> list[str | None]:
    r"""Return the cells of a line without its LF; None for one that cannot be decoded.

    >>> line_cells(b'a,"b,c",\xff\r', CsvFormat())
    ['a', 'b,c', None]
    >>> line_cells(b'"open, and "so" on', CsvFormat())
    ['open, and so" on']
    """
    if line.endswith(b"\r"):
        line = line[:-1]
    text = line.decode(form.codec, "surrogateescape")
    cells: list[str | None] = [*_split(text, form.delimiter, form.quote)]
    if line.isascii() or not _UNDECODED.search(text):
        return cells
    return [None if cell is None or _UNDECODED.search(cell) else cell for cell in cells]


def read_lines(lines: Sequence[bytes], form: CsvFormat, wanted: Wanted) -> tuple[Any, ...]:
    """Return the wanted columns of some lines: texts, or numbers as floats; line by line."""
    rows = [line_cells(line, form) for line in lines]
    columns: list[Any] = []
    for place, as_number in wanted:
        cells = [row[place] if place < len(row) else None for row in rows]
        if as_number:
            read = (spelled_number(cell, form) for cell in cells)
            columns.append(np.fromiter(read, dtype=np.float64, count=len(cells)))
        else:
            columns.append(as_objects(cells))
    return tuple(columns)


def spelled_number(cell: str | None, form: CsvFormat) -> float:
    """Return the number that a cell spells with the declared decimal mark; NaN if none.

    >>> comma = CsvFormat(delimiter=";", decimal=",")
    >>> [spelled_number(cell, comma) for cell in ("1,5", "1.5", "true", None)]
    [1.5, nan, 1.0, nan]
    """
    if cell is not None and form.decimal == ",":
        cell = None if "." in cell else cell.replace(",", ".")
    return number(cell)


def _split(text: str, delimiter: str, quote: str | None) -> list[str]:
    if quote is None or quote not in text:
        return text.split(delimiter)
    cells: list[str] = []
    place = 0
    while True:
        cell = ""
        if text[place : place + 1] == quote:
            place += 1
            while True:
                end = text.find(quote, place)
                if end < 0:  # open to the end of the line
                    return [*cells, cell + text[place:]]
                cell += text[place:end]
                place = end + 1
                if text[place : place + 1] != quote:
                    break
                cell += quote  # doubled
                place += 1
        end = text.find(delimiter, place)
        if end < 0:
            return [*cells, cell + text[place:]]
        cells.append(cell + text[place:end])
        place = end + 1


def _is_mark(mark: object) -> bool:
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii():
        return False
    return mark == "\t" or (mark.isprintable() and not mark.isalnum())


def _codec(encoding: object) -> str | None:
    """Return Python's name of an encoding in which lines can be cut as bytes, else None."""
    try:
        found = codecs.lookup(encoding).name if isinstance(encoding, str) else ""
    except (LookupError, ValueError):
        return None
    if found in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if found in _TWO_BYTES:
        return found
    return found if _SINGLE_BYTE.fullmatch(found) and _extends_ascii(found) else None


def _extends_ascii(codec: str) -> bool:
    """Tell whether each byte is one character, the first 128 those of ASCII and no other is."""
    low, high = bytes(range(128)), bytes(range(128, 256))
    text = low.decode(codec, "replace") + high.decode(codec, "replace")
    return (
        text[:128] == low.decode("ascii")
        and len(text) == 256
        and not any(character.isascii() for character in text[128:])
    )
