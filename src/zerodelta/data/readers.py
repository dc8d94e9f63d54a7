"""Where cells come from: Arrow tables and streams, Parquet files, DuckDB, patterns of files."""

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

# -- Paths and patterns of files that hold one table together, in the order of their names --------


def is_path(source: object) -> bool:
    """Tell whether this is a path or pattern, or a list of `pathlib.Path`.

    A list of texts is a column: that would have to be decided by what its rows are.
    """
    if isinstance(source, (list, tuple)):
        # a cell may be there: nothing but its type is looked at
        return any(issubclass(type(first), PurePath) for first in builtin_sequence(source)[:1])
    return isinstance(source, (str, PathLike))


def matching_files(source: Any) -> tuple[Path, ...]:
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

Scan: TypeAlias = Callable[[tuple[str, ...], int, frozenset[str]], Sequence[Part]]
"""What `Reader.parts` returns, for columns that are there: their names, the batch, `numbers`."""

T = TypeVar("T")

_ENDED: Any = object()
_FAILED: Any = object()


@value(eq=False, repr=False)  # what holds rows is never compared, and never shown
class Reader:
    """Cells of named columns, batch by batch; every row is in exactly one batch.

    Which rows are together in a batch or a part changes no cell.
    """

    text: str
    """The source in one line, without any of its contents."""
    names: tuple[str, ...]
    """The physical names of all columns, which are public; one may be there twice."""
    row: str
    """What one row is, in the words of a certificate: "one line of the file"."""
    count: Callable[[], int]
    """Returns the number of rows; asked only where it is public."""
    scan: Scan
    """Returns the rows of some columns in independent pieces."""
    premise: str | None = None
    """None for a plain scan by this library; else what the caller asserts of other code."""
    bare: bool = False
    """Whether the caller prepared the columns, so that their types are assumed to be public."""
    cluster: Cluster | None = None
    """The workers that add up the rows where these are, if they do."""

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return the rows of some columns in independent pieces, at most `batch` rows at a time.

        A column in `numbers` is wanted as numbers only: a reader of texts may hand it out as
        floats, read by the rules of `cells.number`, NaN for what is missing.
        """
        places(self.names, columns)
        return self.scan(columns, batch, numbers)


def query_reader(
    text: str,
    names: Iterable[Any],
    count: Callable[[], Any],
    rows: Callable[[tuple[str, ...], int], Iterator[Batch]],
) -> Reader:
    """Return the reader of a query, whose rows are protected; its code is not ours.

    ``rows(columns, batch)`` runs the query. Whether columns were prepared is part of the premise.
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
    """Return all rows as one part, which an engine yields."""
    return [partial(guarded, partial(rows, columns, batch))]


def computed_once(make: Callable[[], T]) -> Callable[[], T]:
    """Return a function that calls `make` the first time only, whichever thread asks."""
    made: list[T] = []
    lock = threading.Lock()

    def get() -> T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return get


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


def duckdb_reader(source: Any) -> Reader:
    """Return the reader of a relation, or of a query on a connection.

    One part, and one pass at a time: an open result blocks its connection.
    """
    require_extra("pyarrow", "data")  # rows come as Arrow batches
    text, relation = "DuckDB relation", source
    if isinstance(source, tuple):
        text, relation = "DuckDB query", _bound(*source)

    def count() -> Any:
        return relation.aggregate("count(*)").fetchall()[0][0]

    return query_reader(text, relation.columns, count, partial(_rows, relation))


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


def parquet_reader(source: Any) -> Reader:
    """Return the reader of Parquet files, which all have the columns of the first; by row group."""
    require_extra("pyarrow", "data")
    files = matching_files(source)
    footers = {path: _footer(path) for path in files}
    schemas = {path: footer.schema.to_arrow_schema() for path, footer in footers.items()}
    return Reader(
        text=shown_files(source, files, "Parquet"),
        names=same_names([tuple(each.names) for each in schemas.values()], "Parquet"),
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
    parts: list[Part] = []
    for path, footer in footers.items():
        schema = schemas[path]
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


def arrow_reader(source: Any) -> Reader:
    """Return the reader of a table or a record batch; a stream is read into a table, once."""
    import pyarrow as pa

    premise, table = None, computed_once(lambda: source)
    if isinstance(source, pa.RecordBatch):
        table = computed_once(lambda: pa.Table.from_batches([source]))
    elif not isinstance(source, pa.Table):  # it is made by code that is not ours
        unread = [source]  # one that failed is empty by then: what it has left is not its rows
        premise, table = (
            FOREIGN_CODE,
            computed_once(lambda: attempt(lambda: unread.pop().read_all())),
        )
    names = tuple(source.schema.names)

    def scan(columns: tuple[str, ...], batch: int, _: frozenset[str]) -> list[Part]:
        whole = table()
        chosen = [whole.column(place) for place in places(names, columns)]
        return [partial(_slices, chosen, rows, batch) for rows in row_ranges(whole.num_rows)]

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
    found = dataset.to_batches(
        columns=list(dict.fromkeys(columns)), batch_size=batch, batch_readahead=1
    )
    for each in found:
        yield tuple(each.column(name) for name in columns)


def dataset_reader(dataset: Any) -> Reader:
    """Return the reader of a dataset: local Parquet files without a filter are plainly scanned.

    Any other is asserted: PyArrow casts what it reads to the dataset's types, and a value that does
    not fit fails; partitions and filters are code of others.
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
        expected="a dataset of files with types of their own: PyArrow infers these from rows",
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
