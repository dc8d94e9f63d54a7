"""Read cells from Arrow tables and streams, Parquet files, DuckDB and patterns of files."""

from __future__ import annotations

import glob
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from zerodelta.data.columns import builtin_sequence
from zerodelta.data.isolation import quietly
from zerodelta.errors import ParameterError, may_be_url, require, require_extra
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.data.spark import Cluster

# -- Paths and patterns of files that together hold one table, sorted by name ---------------------


def is_path(source: object) -> bool:
    """Tell whether this is a path or pattern, or a list of `pathlib.Path`.

    A list of texts is a column of cells: telling paths from cells would depend on the cells.
    """
    if isinstance(source, (list, tuple)):
        # the first element may be a cell, so only its type is looked at
        return any(issubclass(type(first), PurePath) for first in builtin_sequence(source)[:1])
    return isinstance(source, (str, PathLike))


def matching_files(source: Any) -> tuple[Path, ...]:
    """Return the files that a path, a pattern or a list of them names, sorted by name."""
    paths = source if isinstance(source, (list, tuple)) else [source]
    files: set[Path] = set()
    for path in paths:
        require(
            isinstance(path, (str, PathLike)),
            "source",
            type(path),
            expected="paths",
            remedy="pass a list of pathlib.Path",
        )
        name = fspath(path)
        try:
            matched = _matching(name)
        except (OSError, ValueError, RuntimeError):  # not a valid path on this system
            matched = []
        if not matched and may_be_url(name):
            raise ParameterError(
                "source",
                expected="a local path; a URL is not opened, nor shown here, since it may hold a "
                "password",
                remedy="open the URL with DuckDB, Polars or Spark, and pass the result",
            )
        if not matched:
            raise ParameterError(
                "source",
                name,
                expected="an existing file, or a pattern that matches files",
                remedy='check the path; for the files of a folder pass "folder/*.parquet"',
            )
        files.update(matched)
    return tuple(sorted(files, key=str))


def _matching(name: str) -> list[Path]:
    """Return the file of a path, or the existing files that a pattern matches."""
    path = Path(name).expanduser()
    if path.is_file():
        return [path]
    matches = [Path(match) for match in glob.glob(str(path), recursive=True)]
    return [match for match in matches if match.is_file()]


def same_names(names: Sequence[tuple[str, ...]], kind: str) -> tuple[str, ...]:
    """Return the column names of the first file; refuse files with other names (in any order)."""
    first = sorted(names[0])
    require(
        all(sorted(columns) == first for columns in names),
        "source",
        expected=f"{kind} files with the same column names",
        remedy="open files with other columns separately",
    )
    return names[0]


def shown_files(source: Any, files: Sequence[Path], kind: str) -> str:
    """Return a line that describes the files by kind, number and name, without their contents."""
    if len(files) == 1:
        return f"{kind} file {files[0].name}"
    if isinstance(source, (str, PathLike)):
        return f"{len(files)} {kind} files {Path(fspath(source)).name}"
    return f"{len(files)} {kind} files"


# -- Readers of files, frames and databases -------------------------------------------------------
# A reader yields the cells of a column as they are stored. Whether a cell is a number, a category
# or a date is declared, and a `Kind` reads each cell by itself. An error of an engine may depend on
# a row, so every error becomes the same message, without a cause or context.

Batch: TypeAlias = tuple[Any, ...]
"""Columns of equal length, in the order of the request: NumPy arrays of cells, or Arrow arrays."""

Part: TypeAlias = Callable[[], Iterator[Batch]]
"""A function that yields the batches of one part of the rows; any thread may call it again."""

FOREIGN_CODE = "the query treats base rows one by one, is deterministic and does not fail"
"""The premise of sources that run foreign code: SQL, lazy frames, clusters."""

Scan: TypeAlias = Callable[[tuple[str, ...], int, frozenset[str]], Sequence[Part]]
"""Returns the parts of some columns, given their names, the rows of a batch, and `numbers`."""

T = TypeVar("T")

_ENDED: Any = object()
_FAILED: Any = object()


@value(eq=False, repr=False)  # an object that holds rows is never compared, and never shown
class Reader:
    """Cells of named columns, batch by batch; every row is in exactly one batch.

    Which rows are together in a batch or a part changes no cell. What else a good reader promises:

    - Making it reads a header or a footer, and no row; `count` may read rows.
    - Any thread may call each part, and call it again; a part opens its file itself. Files are not
      mapped into memory: one that shrinks would end the process.
    - `scan` gets columns in any order, also one of them twice, and yields them as asked for. A name
      that occurs twice in the source is refused by `places`, whoever asks for it.
    - Whatever the engine may raise on rows goes through `guarded` or `attempt`, which say one fixed
      sentence. What can be seen before the first row (no such file, no footer) is a
      `ParameterError` without a cause.
    - A reader of files can be pickled: functions are named, their arguments bound by `partial`.
    - A file that this library reads by itself has no `premise` and is not `bare`: its names and
      types are what the file says. `premise` is for code of others that computes rows; `bare` is
      for tables that the caller prepared.
    """

    text: str
    """The source in one line, without any of its contents."""
    names: tuple[str, ...]
    """The names of all columns in the source, which are public; a name may occur twice."""
    row: str
    """The meaning of one row, in the words of a certificate: "one line of the file"."""
    count: Callable[[], int]
    """Returns the number of rows; called only where it is public."""
    scan: Scan
    """Returns the rows of some columns in independent parts."""
    premise: str | None = None
    """The caller's assertion about foreign code; None for a plain scan by this library."""
    bare: bool = False
    """Whether the caller prepared the columns, so that their types are assumed to be public."""
    cluster: Cluster | None = None
    """The workers of a cluster that add up the rows; None if this process reads them."""

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the rows of some columns in independent parts, at most `batch` rows at a time.

        A column in `numbers` is needed as numbers only: a reader of texts may return it as floats,
        read by the rules of `cells.number`, with NaN for missing cells.
        """
        places(self.names, columns)
        return self.scan(columns, batch, numbers)


def query_reader(
    text: str,
    names: Iterable[Any],
    count: Callable[[], Any],
    rows: Callable[[tuple[str, ...], int], Iterator[Batch]],
) -> Reader:
    """Return the reader of a query that foreign code runs; the rows of its result are protected.

    ``rows(columns, batch)`` runs the query. That columns were prepared is part of the premise.
    """
    return Reader(
        text=text,
        names=tuple(map(str, names)),
        row="one row of the result",
        count=partial(_counted, count),
        scan=partial(one_part, rows),
        premise=FOREIGN_CODE,
    )


def _counted(count: Callable[[], Any]) -> int:
    return int(attempt(count))


def one_part(
    rows: Callable[[tuple[str, ...], int], Iterator[Batch]],
    columns: tuple[str, ...],
    batch: int,
    _: frozenset[str],
) -> list[Part]:
    """Return all rows that an engine yields as one part."""
    return [partial(guarded, partial(rows, columns, batch))]


def computed_once(compute: Callable[[], T]) -> Callable[[], T]:
    """Return a function that calls `make` the first time only, whichever thread asks."""
    results: list[T] = []
    lock = threading.Lock()

    def get() -> T:
        """Return the result, computed by the first caller while others wait."""
        with lock:
            if not results:
                results.append(compute())
            return results[0]

    return get


def places(names: Sequence[str], columns: Iterable[str]) -> list[int]:
    """Return the position of each column among the names; it must occur exactly once.

    >>> places(("age", "income"), ("income",))
    [1]
    """
    standing: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        standing.setdefault(name, []).append(place)
    positions = []
    for column in columns:
        here = standing.get(column, [])
        if len(here) != 1:
            # the message shows no name of the source: without a header they are a person's cells
            raise ParameterError(
                f"column {column!r}",
                expected="exactly one column of that name in the source",
                remedy="rename or drop the others" if here else "check the name in the source",
            )
        positions += here
    return positions


def attempt(function: Callable[[], T]) -> T:
    """Return the result of an engine's code on rows; any error raises the same message instead."""
    outcome: Any = quietly(function, otherwise=_FAILED)
    if outcome is not _FAILED:
        result: T = outcome
        return result
    raise ParameterError(
        "source",
        expected="rows that can be read to the end",
        remedy="check the file or the query with its own tools",
    )


def guarded(batches: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield the batches that an engine yields, each by `attempt`."""
    iterator = attempt(batches)
    try:
        while (batch := attempt(lambda: next(iterator, _ENDED))) is not _ENDED:
            yield batch
    finally:
        close = getattr(iterator, "close", None)  # an open result may block its connection
        if close is not None:
            attempt(close)


# -- DuckDB relations, and SQL with its connection ------------------------------------------------


def duckdb_reader(source: Any) -> Reader:
    """Return the reader of a relation, or of a query on a connection.

    It has one part, read by one pass at a time: an open result blocks its connection.
    """
    require_extra("pyarrow", "data")  # rows come as Arrow batches
    text, relation = "DuckDB relation", source
    if isinstance(source, tuple):
        text, relation = "DuckDB query", _bound(*source)

    def count() -> Any:
        return relation.aggregate("count(*)").fetchall()[0][0]

    return query_reader(text, relation.columns, count, partial(_rows, relation))


def _rows(relation: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    """Yield the rows of a relation as batches of Arrow columns."""
    import duckdb

    distinct = list(dict.fromkeys(columns))
    chosen = relation.select(*map(duckdb.ColumnExpression, distinct))
    to_reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
    reader = to_reader(batch)
    try:
        for record_batch in reader:
            yield tuple(record_batch.column(distinct.index(name)) for name in columns)
    finally:
        reader.close()  # else the connection stays blocked


def _bound(query: str, connection: Any) -> Any:
    """Return the relation of a query without running it; DuckDB's own message is not shown."""
    try:
        relation = connection.sql(query)
    except Exception:
        relation = None
    if relation is None:
        raise ParameterError(
            "source",
            query,
            expected="a query that selects rows from tables of its connection",
            remedy="run the query with connection.sql first",
        )
    return relation


# -- Parquet files, one part for each row group, in bounded memory --------------------------------
# The types of the columns in the file are public. Each part opens its file again with a small read
# buffer; without one PyArrow holds a complete row group in memory (`bench/data.py`).

_BUFFER = 1 << 20


def parquet_reader(source: Any) -> Reader:
    """Return the reader of Parquet files, all with the columns of the first."""
    require_extra("pyarrow", "data")
    files = matching_files(source)
    footers = {path: _footer(path) for path in files}
    schemas = {path: footer.schema.to_arrow_schema() for path, footer in footers.items()}
    return Reader(
        text=shown_files(source, files, "Parquet"),
        names=same_names([tuple(schema.names) for schema in schemas.values()], "Parquet"),
        row="one row of the file, its column types fixed",
        count=partial(_rows_of_files, footers),
        scan=partial(_row_groups, footers, schemas),
    )


def _rows_of_files(footers: Mapping[Path, Any]) -> int:
    return sum(footer.num_rows for footer in footers.values())


def _row_groups(
    footers: Mapping[Path, Any],
    schemas: Mapping[Path, Any],
    columns: tuple[str, ...],
    batch: int,
    numbers: frozenset[str],
) -> list[Part]:
    """Return one part for each row group of the files."""
    parts: list[Part] = []
    for path, footer in footers.items():
        schema = schemas[path]
        positions = places(schema.names, columns)
        # as dictionaries, so that each distinct text is read once
        coded = [
            name
            for name, place in zip(columns, positions, strict=True)
            if name not in numbers and _is_text(schema.field(place).type)
        ]
        for group in range(footer.num_row_groups):
            read = partial(_read, path, footer, group, columns, coded, batch)
            parts.append(partial(guarded, read))
    return parts


def _read(
    path: Path, footer: Any, group: int, columns: tuple[str, ...], coded: list[str], batch: int
) -> Iterator[Batch]:
    """Yield the rows of one row group as batches of Arrow columns."""
    from pyarrow import parquet

    with parquet.ParquetFile(
        path, metadata=footer, read_dictionary=coded, pre_buffer=False, buffer_size=_BUFFER
    ) as file:
        batches = file.iter_batches(
            batch, row_groups=[group], columns=list(dict.fromkeys(columns)), use_threads=False
        )
        for record_batch in batches:
            # not by name or position: PyArrow takes "a.b" for a field of the struct a, and orders
            # columns as the file does
            yield tuple(
                record_batch.column(record_batch.schema.get_field_index(name)) for name in columns
            )


def _footer(path: Path) -> Any:
    """Return the metadata of a Parquet file, refusing one that cannot be read."""
    from pyarrow import parquet

    try:
        return parquet.read_metadata(path)
    except Exception:
        pass
    raise ParameterError(
        "source",
        path.name,
        expected="a complete Parquet file, whose footer can be read",
        remedy="write or copy the file again",
    )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


_PART = 1 << 20


def row_ranges(rows: int, part: int = _PART) -> list[range]:
    """Return consecutive ranges of at most `part` rows, each for one thread.

    >>> row_ranges(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + part, rows)) for start in range(0, rows, part)]


def arrow_reader(source: Any) -> Reader:
    """Return the reader of a table or a record batch; a stream is read into a table once."""
    import pyarrow as pa

    premise, table = None, computed_once(lambda: source)
    if isinstance(source, pa.RecordBatch):
        table = computed_once(lambda: pa.Table.from_batches([source]))
    elif not isinstance(source, pa.Table):  # a stream, which foreign code produces
        # popped, so that a stream that failed is not read again from where it stopped
        unread = [source]
        premise, table = (
            FOREIGN_CODE,
            computed_once(lambda: attempt(lambda: unread.pop().read_all())),
        )
    names = tuple(source.schema.names)

    def scan(columns: tuple[str, ...], batch: int, _: frozenset[str]) -> list[Part]:
        loaded = table()
        chosen = [loaded.column(place) for place in places(names, columns)]
        return [partial(_slices, chosen, rows, batch) for rows in row_ranges(loaded.num_rows)]

    return Reader(
        text=f"Arrow {type(source).__name__}",
        names=names,
        row="one row of the table",
        count=lambda: int(table().num_rows),
        scan=scan,
        premise=premise,
        bare=True,
    )


def _slices(columns: list[Any], rows: range, batch: int) -> Iterator[Batch]:
    for start in rows[::batch]:
        size = min(batch, rows.stop - start)
        yield tuple(column.slice(start, size) for column in columns)


def _scan(dataset: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    record_batches = dataset.to_batches(
        columns=list(dict.fromkeys(columns)), batch_size=batch, batch_readahead=1
    )
    for record_batch in record_batches:
        yield tuple(record_batch.column(name) for name in columns)


def dataset_reader(dataset: Any) -> Reader:
    """Return the reader of a dataset; local Parquet files without a filter are a plain scan.

    Any other dataset is caller-asserted: PyArrow casts cells to the dataset's types and fails if
    one does not fit, and partitions and filters are foreign code.
    """
    from pyarrow import dataset as datasets
    from pyarrow import fs

    scanned = Reader(
        text=f"Arrow {type(dataset).__name__}",
        names=tuple(dataset.schema.names),
        row="one row of the dataset",
        count=partial(_counted, dataset.count_rows),
        scan=partial(one_part, partial(_scan, dataset)),
        premise=FOREIGN_CODE,
        bare=True,
    )
    if type(dataset) is not datasets.FileSystemDataset:
        return scanned
    require(
        not isinstance(dataset.format, (datasets.CsvFileFormat, datasets.JsonFileFormat)),
        "source",
        "a dataset of CSV or JSON files",
        expected="a dataset of files that store their types; PyArrow infers those of CSV from rows",
        remedy='pass the CSV files themselves, as "folder/*.csv"',
    )
    plain = (
        isinstance(dataset.format, datasets.ParquetFileFormat)
        and isinstance(dataset.filesystem, fs.LocalFileSystem)
        and getattr(dataset, "_scan_options", None) == {}
    )
    if plain and dataset.files:
        reader = parquet_reader([Path(file) for file in dataset.files])
        if sorted(reader.names) == sorted(dataset.schema.names):
            return reader
    return scanned
