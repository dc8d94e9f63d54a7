"""CSV files, plain or .gz: a row is one physical line of the file, whatever stands in it.

PyArrow parses whole chunks where it is installed; without it lines are read one by one, to the same
cells. Nothing is inferred: not the delimiter, not a type, and no line tells how another is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from zerodelta.data.csv_cells import BOM, CsvFormat, Wanted, line_cells, read_lines
from zerodelta.data.csv_lines import count_lines, first_line, line_chunks, open_bytes
from zerodelta.data.files import found_files, same_names, shown_files
from zerodelta.data.reader import Batch, Part, Reader, attempt, guarded, places
from zerodelta.errors import ParameterError

_PART = 1 << 24
"""Bytes of a file that one thread reads: a few hundred thousand lines."""


@final
class CsvReader(Reader):
    """The lines of CSV files; `declared` names the columns of files without a header."""

    __slots__ = ("_files", "_form", "_names", "_part", "_starts", "_text")

    def __init__(
        self,
        source: Any,
        form: CsvFormat | None = None,
        *,
        declared: Sequence[str] = (),
        part: int = _PART,
    ) -> None:
        self._form = CsvFormat() if form is None else form
        self._files = found_files(source)
        self._text, self._part = shown_files(source, self._files, "CSV"), part
        self._names: list[tuple[str, ...]] = []
        self._starts: list[int] = []
        for path in self._files:
            names, start = (tuple(declared), 0) if not self._form.header else self._header(path)
            self._names.append(names)
            self._starts.append(start)
        same_names(self._names, "CSV")

    @property
    def names(self) -> tuple[str, ...]:
        """The cells of the first file's header, or the declared names."""
        return self._names[0]

    @property
    def premise(self) -> None:
        """None: this library cuts and reads the lines."""
        return None

    @property
    def bare(self) -> bool:
        """False: nobody prepared the cells."""
        return False

    @property
    def row(self) -> str:
        """What is protected."""
        return "one line of the file"

    @property
    def text(self) -> str:
        """The name of the file or pattern."""
        return self._text

    def count(self) -> int:
        """Return the number of lines after the header."""
        return attempt(lambda: sum(map(self._count, self._files)))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return pieces of the files by position; of a compressed file there is one."""
        parts: list[Part] = []
        for path, names, start in zip(self._files, self._names, self._starts, strict=True):
            found = places(names, columns)
            asked = tuple((at, name in numbers) for at, name in zip(found, columns, strict=True))
            for begin, end in self._ranges(path, start):
                parts.append(partial(self._piece, path, len(names), asked, begin, end, batch))
        return parts

    def _piece(
        self, path: Path, width: int, asked: Wanted, begin: int, end: int | None, batch: int
    ) -> Iterator[Batch]:
        return guarded(partial(self._batches, path, width, asked, begin, end, batch))

    def _batches(
        self, path: Path, width: int, asked: Wanted, begin: int, end: int | None, batch: int
    ) -> Iterator[Batch]:
        read = self._chunk_reader(width, asked)
        with open_bytes(path) as file:
            for place, chunk in enumerate(line_chunks(file, begin, end)):
                at_start = begin == 0 and place == 0 and self._form.codec == "utf-8"
                columns = read(chunk.removeprefix(BOM) if at_start else chunk)
                for row in range(0, len(columns[0]), batch):
                    yield tuple(column[row : row + batch] for column in columns)

    def _chunk_reader(self, width: int, asked: Wanted) -> Callable[[bytes], Batch]:
        if find_spec("pyarrow") is None:
            return lambda chunk: read_lines(chunk.split(b"\n")[:-1], self._form, asked)
        from zerodelta.data.csv_arrow import ArrowChunks

        return ArrowChunks(self._form, width, asked).read

    def _ranges(self, path: Path, start: int) -> list[tuple[int, int | None]]:
        if path.suffix.lower() == ".gz":
            return [(start, None)]
        size = attempt(lambda: path.stat().st_size)
        bounds: list[int] = [*range(start, max(size, start + 1), self._part)]
        return list(zip(bounds, [*bounds[1:], None], strict=True))

    def _count(self, path: Path) -> int:
        with open_bytes(path) as file:
            return count_lines(file) - self._form.header

    def _header(self, path: Path) -> tuple[tuple[str, ...], int]:
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
        if self._form.codec == "utf-8":
            line = line.removeprefix(BOM)
        return tuple("" if cell is None else cell for cell in line_cells(line, self._form)), start
