"""Parquet files, row group by row group, in bounded memory: the file's own types are public.

Each part opens its file again with a small read buffer; without one PyArrow holds a whole row group
in memory (`bench/data.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

from zerodelta.data.files import found_files, same_names, shown_files
from zerodelta.data.reader import Batch, Part, Reader, guarded, places
from zerodelta.errors import ParameterError, require_extra

_BUFFER = 1 << 20


@final
class ParquetReader(Reader):
    """The rows of Parquet files; a row group is a part."""

    __slots__ = ("_files", "_footers", "_names", "_schemas", "_text")

    def __init__(self, source: Any) -> None:
        require_extra("pyarrow", "data")
        self._files = found_files(source)
        self._text = shown_files(source, self._files, "Parquet")
        self._footers = [_footer(path) for path in self._files]
        self._schemas = [footer.schema.to_arrow_schema() for footer in self._footers]
        self._names = same_names([tuple(each.names) for each in self._schemas], "Parquet")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file; all files have the same."""
        return self._names

    @property
    def premise(self) -> None:
        """None: a plain scan."""
        return None

    @property
    def bare(self) -> bool:
        """False: the file's types are part of what a row is."""
        return False

    @property
    def row(self) -> str:
        """What is protected."""
        return "one row of the file, its column types fixed"

    @property
    def text(self) -> str:
        """The name of the file or pattern."""
        return self._text

    def count(self) -> int:
        """Return the number of rows that the files say they have."""
        return sum(footer.num_rows for footer in self._footers)

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part for each row group of each file."""
        parts: list[Part] = []
        for path, footer, schema in zip(self._files, self._footers, self._schemas, strict=True):
            found = places(schema.names, columns)
            # distinct texts only: what a text is read to is then looked up once
            coded = [
                name
                for name, place in zip(columns, found, strict=True)
                if name not in numbers and _is_text(schema.field(place).type)
            ]
            for group in range(footer.num_row_groups):
                read = partial(_read, path, footer, group, columns, coded, batch)
                parts.append(partial(guarded, read))
        return parts


def _read(
    path: Path, footer: Any, group: int, columns: tuple[str, ...], coded: list[str], batch: int
) -> Iterator[Batch]:
    from pyarrow import parquet

    with parquet.ParquetFile(
        path, metadata=footer, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER
    ) as file:
        batches = file.iter_batches(
            batch, row_groups=[group], columns=list(dict.fromkeys(columns)), use_threads=False
        )
        for found in batches:
            # by name: PyArrow orders columns as the file does, and "a.b" is also b of the struct a
            yield tuple(found.column(found.schema.get_field_index(name)) for name in columns)


def _footer(path: Path) -> Any:
    from pyarrow import parquet

    try:
        return parquet.read_metadata(path)
    except Exception:
        pass
    raise ParameterError(
        "source",
        path.name,
        expected="a whole Parquet file",
        remedy="write or copy the file again: its end cannot be read",
    )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
