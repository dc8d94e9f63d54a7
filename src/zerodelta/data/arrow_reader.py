"""Arrow tables, record batches, streams and datasets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, final

from zerodelta.data.parquet_reader import ParquetReader
from zerodelta.data.reader import FOREIGN_CODE, Batch, Part, Reader, attempt, guarded, places
from zerodelta.errors import require

_PART = 1 << 20


def row_ranges(rows: int, part: int = _PART) -> list[range]:
    """Return the rows in pieces, each for one thread.

    >>> row_ranges(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + part, rows)) for start in range(0, rows, part)]


@final
class ArrowReader(Reader):
    """A table or a record batch; a stream, which can be read once, is read into a table."""

    __slots__ = ("_lock", "_schema", "_stream", "_table", "_text")

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self._lock = threading.Lock()
        self._text = f"Arrow {type(source).__name__}"
        self._table: Any = source if isinstance(source, pa.Table) else None
        self._stream: Any = None
        if isinstance(source, pa.RecordBatch):
            self._table = pa.Table.from_batches([source])
        elif self._table is None:
            self._stream = source
        self._schema = source.schema

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._schema.names)

    @property
    def premise(self) -> str | None:
        """None for a table; a stream is made by code that is not ours."""
        return None if self._stream is None else FOREIGN_CODE

    @property
    def bare(self) -> bool:
        """True: the caller made the table."""
        return True

    @property
    def row(self) -> str:
        """What is protected."""
        return "one row of the table"

    @property
    def text(self) -> str:
        """The type of the source."""
        return self._text

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._whole().num_rows)

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return ranges of rows."""
        found = places(self.names, columns)
        table = self._whole()
        chosen = [table.column(place) for place in found]
        return [partial(_slices, chosen, rows, batch) for rows in row_ranges(table.num_rows)]

    def _whole(self) -> Any:
        with self._lock:
            if self._table is None:
                self._table = attempt(self._stream.read_all)
            return self._table


def _slices(columns: list[Any], rows: range, batch: int) -> Iterator[Batch]:
    for start in rows[::batch]:
        size = min(batch, rows.stop - start)
        yield tuple(column.slice(start, size) for column in columns)


@final
class ArrowDatasetReader(Reader):
    """A dataset that is more than a scan of local files: partitions, filters, other systems.

    PyArrow casts what it reads to the dataset's types, and a value that does not fit fails.
    """

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._dataset.schema.names)

    @property
    def premise(self) -> str:
        """The scan may filter and cast rows."""
        return FOREIGN_CODE

    @property
    def bare(self) -> bool:
        """True: the caller made the dataset."""
        return True

    @property
    def row(self) -> str:
        """What is protected."""
        return "one row of the dataset"

    @property
    def text(self) -> str:
        """The type of the source."""
        return f"Arrow {type(self._dataset).__name__}"

    def count(self) -> int:
        """Return the number of rows."""
        return int(attempt(self._dataset.count_rows))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part: PyArrow's scanner."""
        places(self.names, columns)
        return [partial(guarded, partial(_scan, self._dataset, columns, batch))]


def _scan(dataset: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    found = dataset.to_batches(
        columns=list(dict.fromkeys(columns)), batch_size=batch, batch_readahead=1
    )
    for each in found:
        yield tuple(each.column(name) for name in columns)


def dataset_reader(dataset: Any) -> Reader:
    """Return the reader of a dataset: local Parquet files without a filter are plainly scanned."""
    from pyarrow import dataset as datasets
    from pyarrow import fs

    if type(dataset) is not datasets.FileSystemDataset:
        return ArrowDatasetReader(dataset)
    require(
        not isinstance(dataset.format, (datasets.CsvFileFormat, datasets.JsonFileFormat)),
        "source",
        "a dataset of CSV or JSON files",
        expected="a dataset of files with types of their own: PyArrow infers these from rows",
        remedy='pass the CSV files themselves, as "folder/*.csv"',
    )
    plain = (
        isinstance(dataset.format, datasets.ParquetFileFormat)
        and isinstance(dataset.filesystem, fs.LocalFileSystem)
        and getattr(dataset, "_scan_options", None) == {}
    )
    if plain and dataset.files:
        from pathlib import Path

        reader = ParquetReader([Path(file) for file in dataset.files])
        if sorted(reader.names) == sorted(dataset.schema.names):
            return reader
    return ArrowDatasetReader(dataset)
