"""Where cells come from: Arrow tables and streams, Parquet files, DuckDB, patterns of files."""

from __future__ import annotations

import glob
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any, TypeAlias, TypeVar, final

from zerodelta.data.columns import own_sequence
from zerodelta.data.isolation import quietly
from zerodelta.errors import ParameterError, may_be_url, require, require_extra

# -- Paths and patterns of files that hold one table together, in the order of their names --------


def is_path(source: object) -> bool:
    """Tell whether this is a path or pattern, or a list of `pathlib.Path`.

    A list of texts is a column: that would have to be decided by what its rows are.
    """
    if isinstance(source, (list, tuple)):
        # a cell may be there: nothing but its type is looked at
        return any(issubclass(type(first), PurePath) for first in own_sequence(source)[:1])
    return isinstance(source, (str, PathLike))


def found_files(source: Any) -> tuple[Path, ...]:
    """Return the files that a path, a pattern or a list of them names, sorted by name."""
    given = source if isinstance(source, (list, tuple)) else [source]
    files: set[Path] = set()
    for each in given:
        require(
            isinstance(each, (str, PathLike)),
            "source",
            type(each),
            expected="paths",
            remedy="pass a list of pathlib.Path",
        )
        name = fspath(each)
        try:
            matched = _matching(name)
        except (OSError, ValueError, RuntimeError):  # no path of this system
            matched = []
        if not matched and may_be_url(name):
            raise ParameterError(
                "source",
                expected="a path of this machine: a URL is neither opened nor repeated here, as it "
                "may hold a password",
                remedy="open what it leads to with DuckDB, Polars or Spark, and pass that",
            )
        if not matched:
            raise ParameterError(
                "source",
                name,
                expected="a file, or a pattern that matches some",
                remedy='check the path; name the files of a folder as "folder/*.parquet"',
            )
        files.update(matched)
    return tuple(sorted(files, key=str))


def _matching(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if path.is_file():
        return [path]
    found = [Path(each) for each in glob.glob(str(path), recursive=True)]
    return [each for each in found if each.is_file()]


def same_names(names: Sequence[tuple[str, ...]], kind: str) -> tuple[str, ...]:
    """Return the names of the columns, which all files must have, in any order."""
    first = sorted(names[0])
    require(
        all(sorted(each) == first for each in names),
        "source",
        expected=f"{kind} files with the same column names",
        remedy="open files of other columns by themselves",
    )
    return names[0]


def shown_files(source: Any, files: Sequence[Path], kind: str) -> str:
    """Return what a source of files is, in one line: its own name, no contents."""
    if len(files) == 1:
        return f"{kind} file {files[0].name}"
    if isinstance(source, (str, PathLike)):
        return f"{len(files)} {kind} files {Path(fspath(source)).name}"
    return f"{len(files)} {kind} files"


# -- Where cells come from: files, frames, databases; what a cell means is decided elsewhere ------
# A reader hands out the cells of a column as they are stored. What they are read to (a number, a
# category, a date) is declared, and a `kind` reads each by itself. Whatever an engine raises while
# it reads rows may depend on one of them, so it becomes one fixed message that chains nothing.

Batch: TypeAlias = tuple[Any, ...]
"""Columns in the order asked, all of one length: NumPy arrays of cells, or Arrow arrays."""

Part: TypeAlias = Callable[[], Iterator[Batch]]
"""A piece of the rows; threads may read several at the same time, each as often as it likes."""

FOREIGN_CODE = "the query treats base rows one by one, is deterministic and does not fail"
"""The premise of sources that run code we did not write: SQL, lazy frames, clusters."""

T = TypeVar("T")

_ENDED: Any = object()
_FAILED: Any = object()


class Reader(ABC):
    """Cells of named columns, batch by batch; every row is in exactly one batch.

    Which rows are together in a batch or a part changes no cell.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The physical names of all columns, which are public; one may be there twice."""

    @property
    @abstractmethod
    def premise(self) -> str | None:
        """None for a plain scan by this library; else what the caller asserts of other code."""

    @property
    @abstractmethod
    def bare(self) -> bool:
        """Whether the caller prepared the columns, so that their types are assumed to be public."""

    @property
    @abstractmethod
    def row(self) -> str:
        """What one row is, in the words of a certificate: "one line of the file"."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The source in one line, without any of its contents."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows; asked only where it is public."""

    @abstractmethod
    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the rows of some columns in independent pieces, at most `batch` rows at a time.

        A column in `numbers` is wanted as numbers only: a reader of texts may hand it out as
        floats, read by the rules of `cells.number`, NaN for what is missing.
        """


class QueryReader(Reader):
    """The result of a query, which is code that is not ours; what is protected is a row of it."""

    __slots__ = ("_names",)

    _names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the result."""
        return self._names

    @property
    def premise(self) -> str:
        """What the caller asserts of the query."""
        return FOREIGN_CODE

    @property
    def bare(self) -> bool:
        """False: types and preparation are the query's, which the premise covers."""
        return False

    @property
    def row(self) -> str:
        """What is protected."""
        return "one row of the result"


def places(names: Sequence[str], columns: Iterable[str]) -> list[int]:
    """Return where each wanted column stands among the names; it must be there once.

    >>> places(("age", "income"), ("income",))
    [1]
    """
    standing: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        standing.setdefault(name, []).append(place)
    found = []
    for column in columns:
        here = standing.get(column, [])
        if len(here) != 1:
            # no name of the source: where a header is missing, its "names" are a person's cells
            raise ParameterError(
                f"column {column!r}",
                expected="one column of that name in the source",
                remedy="rename or drop the others" if here else "check the name in the source",
            )
        found += here
    return found


def attempt(function: Callable[[], T]) -> T:
    """Return what an engine does with rows: without warnings, and with one fixed message."""
    found: Any = quietly(function, otherwise=_FAILED)
    if found is not _FAILED:
        result: T = found
        return result
    raise ParameterError(
        "source",
        expected="rows that can be read to the end",
        remedy="check the file or the query with its own tools",
    )


def guarded(batches: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an engine yields, each batch by `attempt`."""
    iterator = attempt(batches)
    try:
        while (found := attempt(lambda: next(iterator, _ENDED))) is not _ENDED:
            yield found
    finally:
        close = getattr(iterator, "close", None)  # an open result may block its connection
        if close is not None:
            attempt(close)


# -- DuckDB relations, and SQL with its connection: rows of a result that DuckDB computes ---------


@final
class DuckDBReader(QueryReader):
    """The rows of a relation, or of a query on a connection.

    One part, and one pass at a time: an open result blocks its connection.
    """

    __slots__ = ("_relation", "_text")

    def __init__(self, source: Any) -> None:
        require_extra("pyarrow", "data")  # rows come as Arrow batches
        self._text = "DuckDB relation"
        if isinstance(source, tuple):
            query, connection = source
            self._text = "DuckDB query"
            source = _bound(query, connection)
        self._relation = source
        self._names = tuple(map(str, source.columns))

    @property
    def text(self) -> str:
        """What kind of source this is."""
        return self._text

    def count(self) -> int:
        """Return the number of rows of the result."""
        return int(attempt(lambda: self._relation.aggregate("count(*)").fetchall()[0][0]))

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return one part."""
        places(self.names, columns)
        return [partial(guarded, partial(_rows, self._relation, columns, batch))]


def _rows(relation: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    import duckdb

    distinct = list(dict.fromkeys(columns))
    chosen = relation.select(*map(duckdb.ColumnExpression, distinct))
    to_reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
    reader = to_reader(batch)
    try:
        for found in reader:
            yield tuple(found.column(distinct.index(name)) for name in columns)
    finally:
        reader.close()  # else the connection stays blocked


def _bound(query: str, connection: Any) -> Any:
    """Return the relation of a query, which is not run yet; DuckDB's own message is not shown."""
    try:
        found = connection.sql(query)
    except Exception:
        found = None
    if found is None:
        raise ParameterError(
            "source",
            query,
            expected="a query that selects rows from tables of its connection",
            remedy="run the query with connection.sql first",
        )
    return found


# -- Parquet files, row group by row group, in bounded memory: the file's own types are public ----
# Each part opens its file again with a small read buffer; without one PyArrow holds a whole row
# group in memory (`bench/data.py`).

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
