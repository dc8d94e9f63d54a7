"""Read CSV files, plain or .gz, into cells: each physical line by itself.

A line is decoded by itself and split at delimiters. Quoting (RFC 4180) holds within the line, and
an open quote ends with it. A cell with bytes that cannot be decoded is missing.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from zerodelta.data.cells import number
from zerodelta.data.columns import as_objects
from zerodelta.data.readers import (
    Batch,
    Part,
    Reader,
    attempt,
    guarded,
    matching_files,
    places,
    same_names,
    shown_files,
)
from zerodelta.errors import ParameterError, require
from zerodelta.value import value

Wanted: TypeAlias = tuple[tuple[int, bool], ...]
"""For each requested column its position in a line, and whether it is needed as numbers only."""

BOM = codecs.BOM_UTF8

_SINGLE_BYTE = re.compile(r"ascii|iso8859-\d+|cp\d{3,4}|koi8-[rtu]|mac-\w+")
_TWO_BYTES = frozenset({"cp932", "gbk", "cp949", "cp950"})
"""Windows code pages in which a character's second byte may look like a delimiter, never like LF.
"""
_UNDECODED = re.compile("[\udc80-\udcff]")
"""The characters that `surrogateescape` decodes invalid bytes to; no valid text has them."""


@value
class CsvFormat:
    """The format of a CSV file, all of it declared and nothing inferred from the lines.

    A quote at the start of a cell opens it, and a doubled quote within it is one character;
    elsewhere, and everywhere with `quote=None`, quotes are ordinary characters. Without a header
    the declared columns are the first ones of each line, in their order.
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
            expected="one ASCII character other than a letter, digit, quote or line end",
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
            remedy="pass quote=None if quotes are ordinary characters",
        )
        require(
            _codec(self.encoding) is not None,
            "encoding",
            self.encoding,
            expected="UTF-8, Latin-1 or a Windows code page, where the byte 0A always ends a line",
            remedy='convert the file to UTF-8 and pass encoding="utf-8"',
        )

    @property
    def codec(self) -> str:
        """The encoding as Python names it; a byte order mark at the file's start is dropped."""
        codec = _codec(self.encoding)
        return "utf-8" if codec is None else codec

    @property
    def by_bytes(self) -> bool:
        """Whether the delimiter's byte is never part of another character."""
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
    """Return the wanted columns of some lines, as texts or floats, reading one line at a time."""
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
    """Return the cells of a line, split at delimiters that are not quoted."""
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
        name = codecs.lookup(encoding).name if isinstance(encoding, str) else ""
    except (LookupError, ValueError):
        return None
    if name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if name in _TWO_BYTES:
        return name
    return name if _SINGLE_BYTE.fullmatch(name) and _extends_ascii(name) else None


def _extends_ascii(codec: str) -> bool:
    """Tell whether each byte is one character, and exactly the first 128 are those of ASCII."""
    low, high = bytes(range(128)), bytes(range(128, 256))
    text = low.decode(codec, "replace") + high.decode(codec, "replace")
    return (
        text[:128] == low.decode("ascii")
        and len(text) == 256
        and not any(character.isascii() for character in text[128:])
    )


# -- The physical lines of a text file, as bytes --------------------------------------------------
# A record ends at LF. Lines are cut before anything is decoded or split into cells, so that no line
# can change how another is read. Threads read parts of a file: a part has the lines that begin in
# it.

LONGEST_LINE = 1 << 20
"""The most bytes before the LF; a longer line becomes an empty one, a row of missing cells."""

_BLOCK = 1 << 20


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressing one that ends in .gz."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb", buffering=0)


def first_line(file: IO[bytes], *, longest: int = LONGEST_LINE) -> tuple[bytes | None, int]:
    r"""Return the first line, None if it is too long, and where the second one begins.

    >>> import io
    >>> first_line(io.BytesIO(b"age,income\n40,100\n"))
    (b'age,income', 11)
    """
    file.seek(0)
    start = b""
    while len(start) <= longest and b"\n" not in start and (block := file.read(_BLOCK)):
        start += block
    line, end, _ = start.partition(b"\n")
    return (None if len(line) > longest else line), len(line) + len(end)


def count_lines(file: IO[bytes]) -> int:
    r"""Return the number of lines; the last one may lack its LF.

    >>> import io
    >>> count_lines(io.BytesIO(b"a\n\nb")), count_lines(io.BytesIO(b""))
    (3, 0)
    """
    file.seek(0)
    lines, last = 0, b"\n"
    while block := file.read(_BLOCK):
        lines += newlines(block)
        last = block[-1:]
    return lines + (last != b"\n")


def newlines(chunk: bytes) -> int:
    """Return the number of LF bytes."""
    return int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == 10))


def line_chunks(
    file: IO[bytes],
    start: int = 0,
    stop: int | None = None,
    *,
    block: int = _BLOCK,
    longest: int = LONGEST_LINE,
) -> Iterator[bytes]:
    r"""Yield the lines that begin in [start, stop) as chunks of whole lines, each ended by LF.

    A line of more than `longest` bytes is replaced by an empty one, and never held in memory.

    >>> import io
    >>> list(line_chunks(io.BytesIO(b"1\n22\n333"), 1, 6))
    [b'22\n', b'333\n']
    """
    block = min(block, longest)  # so that only a line begun in an earlier block can be too long
    position = max(0, start - 1)  # a line begins at `start` if the byte before it is LF
    file.seek(position)
    skipping, last, dropped = start > 0, False, False
    rest = b""
    while not last and (data := file.read(block)):
        if skipping:
            begin = data.find(b"\n") + 1
            skipping = begin == 0
            position += begin or len(data)
            data = data[begin or len(data) :]
            if stop is not None and position >= stop:
                return
        if stop is not None and position + len(data) >= stop:
            end = data.find(b"\n", max(0, stop - 1 - position)) + 1
            last, data = end > 0, data[: end or len(data)]
        position += len(data)
        first, cut = data.find(b"\n"), data.rfind(b"\n") + 1
        if dropped or len(rest) + (first if cut else len(data)) > longest:
            dropped, rest = True, b""
        if not cut:
            rest = b"" if dropped else rest + data
            continue
        yield data[first:cut] if dropped else rest + data[:cut]
        dropped, rest = False, data[cut:]
    if rest or dropped:
        yield rest + b"\n"


# -- The reader of CSV files ----------------------------------------------------------------------
# PyArrow, if installed, parses chunks of lines; without it lines are read one by one, to the same
# cells. Nothing is inferred from the lines, neither the delimiter nor a type.

_PART = 1 << 24
"""Bytes of a file that one thread reads: a few hundred thousand lines."""


def csv_reader(
    source: Any,
    form: CsvFormat | None = None,
    *,
    declared: Sequence[str] = (),
    part: int = _PART,
) -> Reader:
    """Return the reader of the lines of CSV files; `declared` names columns without a header."""
    form, files = CsvFormat() if form is None else form, matching_files(source)
    plain = (tuple(declared), 0)
    headers = {path: _header(path, form) if form.header else plain for path in files}
    return Reader(
        text=shown_files(source, files, "CSV"),
        names=same_names([names for names, _ in headers.values()], "CSV"),
        row="one line of the file",
        count=partial(_count, files, form),
        scan=partial(_ranges_of_files, form, headers, part),
    )


def _ranges_of_files(
    form: CsvFormat,
    headers: Mapping[Path, tuple[tuple[str, ...], int]],
    part: int,
    columns: tuple[str, ...],
    batch: int,
    numbers: frozenset[str],
) -> list[Part]:
    """Return parts of the files by position; a compressed file has one part."""
    parts: list[Part] = []
    for path, (names, start) in headers.items():
        positions = places(names, columns)
        wanted = tuple((at, name in numbers) for at, name in zip(positions, columns, strict=True))
        read = partial(_chunk_reader, form, len(names), wanted)
        for begin, end in _ranges(path, start, part):
            batches = partial(_batches, path, form, read, begin, end, batch)
            parts.append(partial(guarded, batches))
    return parts


def _batches(
    path: Path,
    form: CsvFormat,
    reader: Callable[[], Callable[[bytes], Batch]],
    begin: int,
    end: int | None,
    batch: int,
) -> Iterator[Batch]:
    """Yield the batches of the lines that begin in a part of a file."""
    read = reader()
    with open_bytes(path) as file:
        for place, chunk in enumerate(line_chunks(file, begin, end)):
            at_start = begin == 0 and place == 0 and form.codec == "utf-8"
            columns = read(chunk.removeprefix(BOM) if at_start else chunk)
            for row in range(0, len(columns[0]), batch):
                yield tuple(column[row : row + batch] for column in columns)


def _chunk_reader(form: CsvFormat, width: int, wanted: Wanted) -> Callable[[bytes], Batch]:
    """Return a function that reads a chunk of lines, by PyArrow if it is installed."""
    if find_spec("pyarrow") is None:
        return lambda chunk: read_lines(chunk.split(b"\n")[:-1], form, wanted)
    from zerodelta.data.arrow_cells import ArrowChunks

    return ArrowChunks(form, width, wanted).read


def _ranges(path: Path, start: int, part: int) -> list[tuple[int, int | None]]:
    """Return consecutive ranges of bytes of a file, the last one open-ended."""
    if path.suffix.lower() == ".gz":
        return [(start, None)]
    size = attempt(lambda: path.stat().st_size)
    bounds: list[int] = [*range(start, max(size, start + 1), part)]
    return list(zip(bounds, [*bounds[1:], None], strict=True))


def _count(files: Sequence[Path], form: CsvFormat) -> int:
    """Return the number of records of all files; header lines are not counted."""

    def lines(path: Path) -> int:
        with open_bytes(path) as file:
            return count_lines(file) - form.header

    return attempt(lambda: sum(map(lines, files)))


def _header(path: Path, form: CsvFormat) -> tuple[tuple[str, ...], int]:
    """Return the names in the first line, and the position of the second line."""
    try:
        with open_bytes(path) as file:
            line, start = first_line(file)
    except (OSError, EOFError, ValueError):
        line, start = None, 0
    if line is None or start == 0:
        raise ParameterError(
            "source",
            path.name,
            expected="a CSV file that can be read and whose first line names the columns",
            remedy="pass header=False if the first line is a row",
        )
    if form.codec == "utf-8":
        line = line.removeprefix(BOM)
    return tuple("" if cell is None else cell for cell in line_cells(line, form)), start
