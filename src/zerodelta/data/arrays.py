"""Read arrays, lists of rows and data frames in memory, and choose the reader of any source."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.data.cells import numbers
from zerodelta.data.columns import (
    READABLE,
    Unread,
    as_frame,
    as_one_column,
    is_known,
    readable_texts,
    series_cells,
)
from zerodelta.data.csv import CsvFormat, csv_reader
from zerodelta.data.isolation import quietly
from zerodelta.data.kinds import Bounds
from zerodelta.data.pieces import Piece
from zerodelta.data.readers import (
    Batch,
    Part,
    Reader,
    arrow_reader,
    attempt,
    computed_once,
    dataset_reader,
    duckdb_reader,
    guarded,
    is_path,
    matching_files,
    parquet_reader,
    places,
    query_reader,
    row_ranges,
)
from zerodelta.data.rowwise import Block
from zerodelta.data.source import (
    FOREIGN_SOURCE,
    DerivedSource,
    Protection,
    Source,
    Ticket,
    trusted_source,
)
from zerodelta.data.spark import is_spark, spark_reader
from zerodelta.errors import ParameterError, did_you_mean, is_list, require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import as_count, as_float, inner_ends


@final
class _DefaultMissing:
    """The type of `DEFAULT_MISSING`, whose repr explains the default in signatures."""

    __slots__ = ()

    def __repr__(self) -> str:
        return '"skip" or None'

    def __reduce__(self) -> str:
        return "DEFAULT_MISSING"


DEFAULT_MISSING: Any = _DefaultMissing()
"""The default of `missing`: "skip" for frames, None (the center) for arrays and lists."""

_BLOCK_ENTRIES = 1 << 20


@trusted_source
@final
class ArraySource(Source):
    """The rows of an array or a list (one column, or several), or named columns of a data frame.

    No cell is read or converted before there is a ticket. A container of a library that we do not
    know (`is_known`) runs code of its own, so its rows are caller-asserted.

    An array has the columns "0", "1", …; a one-dimensional one has one column. The width of a list
    of rows is that of its first row. For a frame, `columns` names the columns to use; one whose
    declared type is text (Arrow, Polars, pandas "string") is refused. Every cell is read by itself
    as a number (`cells.number`): a text is the number it spells, an infinity the largest float, and
    a missing or non-numeric cell is NaN. So one odd cell, which may turn an array of integers into
    texts, changes no other row. (The text of a float32 spells another float64: convert such an
    array before texts can get into it.) `missing` is "skip" to ignore missing cells (default for
    frames), None to count them as the center of the bounds (default for arrays), or a number that
    takes their place.

    >>> source = ArraySource(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]))
    >>> source.rows, source.columns
    (3, ('0', '1'))
    """

    # slots, so that no method of an object can be replaced
    __slots__ = ("__weakref__", "_batch", "_fill", "_names", "_rows", "_skip", "_tables")

    def __init__(
        self,
        data: Any,
        *,
        columns: Sequence[str] | None = None,
        missing: Any = DEFAULT_MISSING,
        batch: int | None = None,
    ) -> None:
        array = isinstance(data, (np.ndarray, list, tuple))
        self._skip, self._fill = _as_missing(missing, skip=not array)
        if array or (isinstance(data, Unread) and not data.is_frame):
            require(
                columns is None,
                "columns",
                columns,
                expected="None, since an array has no column names",
                remedy="select columns by slicing the array",
            )
            table = _as_table(data)
        else:
            table = data if isinstance(data, Unread) else _as_frame(data)
            chosen = _chosen(columns, table.names)
            table = table.choose([table.names.index(name) for name in chosen]).check_numbers()
        self._tables: tuple[Unread, ...] = (table,)
        self._names = tuple(map(str, table.names))  # pandas names columns by numbers by default
        self._rows = table.rows
        entries = max(1, _BLOCK_ENTRIES // max(1, len(self._names)))
        self._batch = entries if batch is None else as_count(batch, "batch", minimum=1)

    @classmethod
    def with_labels(cls, features: Any, labels: Any) -> ArraySource:
        """Return the features with a last column of labels, one for each row.

        >>> ArraySource.with_labels(np.zeros((3, 2)), [0, 1, 1]).columns
        ('0', '1', '2')
        """
        table, answers = cls(features), cls(labels)
        require(
            (answers.rows, len(answers.columns)) == (table.rows, 1),
            "labels",
            f"shape ({answers.rows}, {len(answers.columns)})",
            expected=f"one label for each of the {table.rows} rows",
            remedy="pass a one-dimensional array as long as features",
        )
        table._tables = (*table._tables, *answers._tables)
        table._names = tuple(str(i) for i in range(len(table.columns) + 1))
        return table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def may_miss(self) -> bool:
        """Whether missing cells are ignored."""
        return self._skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def protection(self) -> Protection:
        """The protection of one row; the rows of an unknown container are caller-asserted."""
        known = all(table.known for table in self._tables)
        return Protection(premise=None if known else FOREIGN_SOURCE)

    @property
    def unfilled(self) -> ArraySource:
        """The same rows with NaN for every missing cell, even if `missing` is a number."""
        bare = copy(self)
        bare._fill = None
        return bare

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield all rows in order, `batch` at a time; a block may be read-only."""
        for piece in self.pieces(ticket):
            yield from piece()

    def pieces(self, ticket: Ticket, *, stored: bool = False) -> Sequence[Piece]:
        """Return each block as a piece."""
        Ticket.use(ticket)
        return self._pieces([ticket.compute_once(table, table.read) for table in self._tables])

    def _public(self) -> Iterator[Block]:
        for piece in self._pieces([table.read() for table in self._tables]):
            yield from piece()

    def _pieces(self, tables: list[list[Array]]) -> list[Piece]:
        parts = [part for table in tables for part in table]
        return [partial(self._blocks, parts, start) for start in range(0, self._rows, self._batch)]

    def _blocks(self, parts: list[Array], start: int) -> Iterator[Block]:
        """Yield the block of rows from `start`, as floats; missing cells are filled if declared."""
        stop = min(start + self._batch, self._rows)
        block = np.empty((len(parts), stop - start)).T  # each column in one piece
        for i, part in enumerate(parts):
            numbers(part[start:stop], out=block[:, i])
        if self._fill is not None:
            block[np.isnan(block)] = self._fill
        yield block


def as_source(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    missing: Any = DEFAULT_MISSING,
    texts: bool = False,
) -> Source:
    """Return rows, or some columns of them, as a source; a series is one column.

    Columns of texts are refused, unless `texts`: for questions that only need to know whether a
    cell is present.
    """
    if not isinstance(rows, Source):
        named = [columns] if isinstance(columns, str) else columns
        return ArraySource(rows, columns=named, missing=missing)
    require(
        missing is DEFAULT_MISSING,
        "missing",
        missing,
        expected="no missing=, which is for arrays and frames: a data set has it declared",
        remedy="declare it: zd.open(…, columns={…: zd.number(0, 100, missing=…)})",
    )
    return rows.choose(columns, texts=texts)


def public_table(data: Any, *, columns: Sequence[str] | None = None) -> Block:
    """Return the rows of a public array or frame: made-up examples, centers, queries.

    Rows of the data are never read by this; they need a ticket.
    """
    source = data if isinstance(data, ArraySource) else ArraySource(data, columns=columns)
    return np.concatenate([np.empty((0, len(source.columns))), *source._public()])


def _as_table(data: Any) -> Unread:
    """Return an array or a list as an `Unread` table, refusing other types and dimensions."""
    if isinstance(data, np.ndarray):
        require(
            data.ndim in (1, 2) and data.dtype.kind in READABLE,
            "data",
            f"{data.dtype} array with {data.ndim} dimensions",  # never a cell
            expected="an array of real numbers with 1 or 2 dimensions",
            remedy="convert dates to numbers, and reshape to (rows, columns)",
        )
    return data if isinstance(data, Unread) else Unread(data)


def _as_frame(data: Any) -> Unread:
    as_frame(as_one_column(data))  # refuses anything but a frame or a column, by its type
    return Unread(data)


def _as_missing(missing: Any, *, skip: bool) -> tuple[bool, float | None]:
    """Return whether missing cells are ignored, and the number that takes their place, if any."""
    if missing is DEFAULT_MISSING or missing is None:
        return skip and missing is DEFAULT_MISSING, None
    if isinstance(missing, str) and missing == "skip":
        return True, None
    return False, as_float(missing, "missing")


def _chosen(columns: Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
    """Return the named columns of a frame, all of them if `columns` is None."""
    if columns is None:
        return tuple(available)
    named = tuple(columns) if is_list(columns) else ()
    names = all(isinstance(name, (str, int)) for name in named)
    require(
        named and names and len(set(named)) == len(named) and set(named) <= set(available),
        "columns",
        columns,
        expected=f"a list of some of {list(available)[:10]}, each once",
        remedy="name columns of the frame",
    )
    return named


# -- The reader of arrays, lists of rows, and eager data frames, for `zd.open` --------------------

_TEXTS = (nw.String, nw.Binary, nw.Categorical, nw.Enum, nw.Decimal)
_NO_TIME = int(np.iinfo(np.int64).min)
"""The integer that NumPy stores for a missing date."""


def array_reader(data: Any) -> Reader:
    """Return the reader of an array, a list of rows or a frame; only its `parts` read cells.

    An array has the columns "0", "1", …; a structured array and a frame have their named columns.
    The width of a list of rows is that of its first row.
    """
    module = type(data).__module__.partition(".")[0]
    columns: Callable[[], Sequence[Any]]
    if isinstance(data, (list, tuple)) or _is_masked(data):
        unread = Unread(data)
        names, rows, columns = unread.names, unread.rows, computed_once(unread.read)
    else:
        split = _array_columns if isinstance(data, np.ndarray) else _frame_columns
        rows, by_name = split(data)
        names, columns = tuple(by_name), lambda: list(by_name.values())

    def scan(wanted: tuple[str, ...], batch: int, _: frozenset[str]) -> list[Part]:
        """Return the wanted columns of the array as parts of consecutive rows."""
        known = columns()
        chosen = [known[place] for place in places(names, wanted)]
        slices = [partial(_slices, chosen, part, batch) for part in row_ranges(rows)]
        return [partial(guarded, piece) for piece in slices]

    return Reader(
        text=type(data).__name__ if module == "builtins" else _shown(module, data),
        names=names,
        row="one row of the table",
        count=lambda: rows,
        scan=scan,
        # a plain scan, unless the container runs code of its own
        premise=None if is_known(data) else FOREIGN_SOURCE,
        bare=True,
    )


def _array_columns(data: Array) -> tuple[int, dict[str, Any]]:
    """Return the number of rows of an array, and its columns by field name or position."""
    table = _array(data)
    if table.dtype.names is not None:  # a field that is an array itself is left out
        kind = table.dtype
        names = [name for name in table.dtype.names if kind[name].shape == ()]
        return len(table), {name: table[name] for name in names}
    table = table.reshape(-1, 1) if table.ndim == 1 else table
    return len(table), {str(place): table[:, place] for place in range(table.shape[1])}


def _frame_columns(data: Any) -> tuple[int, dict[str, Any]]:
    frame = as_frame(as_one_column(data))
    return len(frame), {str(name): frame.get_column(name) for name in frame.columns}


def _slices(columns: list[Any], rows: range, batch: int) -> Iterator[Batch]:
    """Yield the rows of a range as batches of cells."""
    for start in rows[::batch]:
        stop = min(start + batch, rows.stop)
        yield tuple(_cells(column[start:stop]) for column in columns)


def _cells(column: Any) -> Any:
    """Return the cells of a column or series, as an array or an Arrow array."""
    if isinstance(column, np.ndarray):
        return readable_texts(column)
    if column.implementation.is_polars():
        return polars_cells(nw.to_native(column))
    return nw.to_native(column) if column.implementation.is_pyarrow() else series_cells(column)


def polars_cells(series: Any) -> Any:
    """Return the cells of a Polars series, as an Arrow array where that is faster.

    Dates are taken as the stored integers, since Polars panics over a date that Python does not
    have. Times and lists are missing cells.
    """
    wrapped = nw.from_native(series, series_only=True)
    kind = wrapped.dtype
    if kind in (nw.Date, nw.Datetime):
        import polars

        unit = "D" if kind == nw.Date else kind.time_unit
        stored = series.to_physical().cast(polars.Int64).fill_null(_NO_TIME)
        return stored.to_numpy().view(f"datetime64[{unit}]")
    arrow_array = quietly(series.to_arrow) if kind in _TEXTS and find_spec("pyarrow") else None
    return series_cells(wrapped) if arrow_array is None else arrow_array


def _is_masked(data: Any) -> bool:
    return isinstance(data, np.ma.MaskedArray) and data.dtype.kind in READABLE


def _array(data: Array) -> Array:
    """Return an array of any type, without its mask; dates and records stay what they are."""
    require(
        1 <= data.ndim <= 2,
        "source",
        f"an array of {data.ndim} dimensions",
        expected="one or two dimensions",
        remedy="pass rows times columns",
    )
    return np.asarray(data)


def _shown(module: str, data: Any) -> str:
    names = {"numpy": "NumPy", "pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow"}
    return f"{names.get(module, module)} {type(data).__name__}"


# -- The reader of Polars lazy frames, whose query Polars runs batch by batch ---------------------


def polars_reader(frame: Any) -> Reader:
    """Return the reader of a lazy frame's result, in one part."""
    names = attempt(lambda: frame.collect_schema().names())
    count, rows = partial(_count, frame), partial(_rows, frame)
    return query_reader("Polars LazyFrame", names, count, rows)


def _count(frame: Any) -> Any:
    import polars

    return frame.select(polars.len()).collect().item()


def _rows(frame: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    """Yield batches of a lazy Polars frame's columns, in order."""
    chosen = frame.select(list(dict.fromkeys(columns)))
    if hasattr(chosen, "collect_batches"):
        frames = chosen.collect_batches(chunk_size=batch, maintain_order=True)
    else:  # older versions hold the result in memory
        frames = [chosen.collect()]
    for batch_frame in frames:
        for part in batch_frame.iter_slices(batch):
            yield tuple(polars_cells(part.get_column(name)) for name in columns)


# -- The choice of a reader -----------------------------------------------------------------------
# It depends on the type of the source or the ending of a path, never on contents.

_OPTIONS = tuple(option.name for option in fields(CsvFormat))

FILES: Mapping[str, Callable[..., Reader]] = {
    ".csv": csv_reader,
    ".tsv": csv_reader,
    ".txt": csv_reader,
    ".parquet": parquet_reader,
    ".pq": parquet_reader,
}
"""The reader of files, by their ending. Files other than CSV store the names of their columns."""

_ENDINGS = ", ".join(FILES)


def reader_of(
    source: Any, file: Mapping[str, Any] | None = None, *, declared: Sequence[str] = ()
) -> Reader:
    """Return the reader of a file, frame, array or query, chosen by its type.

    Parameters
    ----------
    source : array, list of rows, frame, path, query
        A NumPy array, a list of rows, a pandas, Polars (eager or lazy) or PyArrow frame, an Arrow
        stream or dataset, a DuckDB relation or ``(sql, connection)``, a Spark DataFrame, the path
        of a file with an ending of `FILES`, a pattern of several, or a list of `pathlib.Path`.
    file : dict, optional
        The format of CSV files, by the fields of `CsvFormat`; ignored for other sources.
    declared : sequence of str
        The columns of CSV files without a header, in their order.

    Returns
    -------
    Reader

    >>> reader_of(np.zeros((3, 2))).names
    ('0', '1')
    """
    for name in file or {}:
        remedy = did_you_mean(name, _OPTIONS, f"pass some of {', '.join(_OPTIONS)}")
        require(name in _OPTIONS, "option", name, "an option of the format of CSV files", remedy)
    if is_path(source):
        return _file_reader(source, dict(file or {}), declared)
    module, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if _is_query(source) or (module in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation"):
        return duckdb_reader(source)
    if module == "pyarrow" and kind in ("Table", "RecordBatch", "RecordBatchReader"):
        return arrow_reader(source)
    if module == "pyarrow" and kind.endswith("Dataset"):
        return dataset_reader(source)
    if module == "polars" and kind == "LazyFrame":
        return polars_reader(source)
    if is_spark(source):
        return spark_reader(source)
    if isinstance(source, (np.ndarray, list, tuple)) or _is_frame(source):
        return array_reader(source)
    raise ParameterError(
        "source",
        type(source),
        expected="an array, a list of rows, a pandas, Polars or PyArrow frame, an Arrow dataset, "
        "a DuckDB relation or (sql, connection), a Spark DataFrame, or the path of a file that "
        f"ends in {_ENDINGS}",
        remedy="pass one of these, or np.asarray(source)",
    )


def _file_reader(source: Any, file: dict[str, Any], declared: Sequence[str]) -> Reader:
    """Return the reader of files, chosen by their endings."""
    endings = {_ending(path) for path in matching_files(source)}
    readers = {FILES.get(ending) for ending in endings}
    reader = readers.pop()
    if reader is None or readers:
        raise ParameterError(
            "source",
            expected=f"files that end in {_ENDINGS} (texts also with .gz), all of one format",
            remedy="rename the files, or open each format separately",
        )
    if reader is not csv_reader:
        return reader(source)
    if endings == {".tsv"}:
        file = {"delimiter": "\t", **file}
    return csv_reader(source, CsvFormat(**file), declared=declared)


def stores_names(path: Path) -> bool:
    """Tell by its ending whether a file names its columns; of CSV the caller says so."""
    return FILES.get(_ending(path), csv_reader) is not csv_reader


def _ending(path: Path) -> str:
    """Return the ending in lower case; texts may be compressed, with .gz after it."""
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    is_text = FILES.get(ending, csv_reader) is csv_reader
    return ending if is_text or not name.endswith(".gz") else f"{ending}.gz"


def _is_query(source: Any) -> bool:
    """Tell whether a source is a pair of SQL text and DuckDB connection."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is None or type(source) is not tuple or len(source) != 2:
        return False
    # a list of two cells would look like this too, so only types are looked at
    return type(source[0]) is str and issubclass(type(source[1]), duckdb.DuckDBPyConnection)


def _is_frame(source: Any) -> bool:
    known = nw.dependencies
    return bool(known.is_into_dataframe(source) or known.is_into_series(source)) or (
        type(source).__module__.partition(".")[0] in ("pandas", "pyarrow")
    )


# -- Readings, for diagnoses: a row is used as it is, clipped to bounds, or has an unreadable cell -

USED, CLIPPED, UNREADABLE = 0, 1, 2

Limits: TypeAlias = tuple[Bounds | None, ...]
"""The bounds of each column; None for a column whose cells are not clipped."""

TooLong: TypeAlias = Callable[[Block], npt.NDArray[np.bool_]]
"""Tells which rows of a block exceed a bound on their norm, so that they are clipped as a whole."""


def readings_of(
    columns: Sequence[npt.NDArray[Any]], limits: Limits, too_long: TooLong | None = None
) -> npt.NDArray[np.float64]:
    """Return 0 (used), 1 (clipped) or 2 (unreadable) for each row, from its own cells alone.

    >>> from fractions import Fraction
    >>> ages = np.array([17.0, 130.0, np.nan])
    >>> readings_of([ages], ((Fraction(0), Fraction(120)),)).tolist()
    [0.0, 1.0, 2.0]
    """
    clipped = np.zeros(len(columns[0]), dtype=np.bool_)
    unreadable = np.zeros(len(columns[0]), dtype=np.bool_)
    for values, bounds in zip(columns, limits, strict=True):
        if values.dtype == np.object_:  # texts
            unreadable |= np.fromiter((text is None for text in values), np.bool_, len(values))
            continue
        unreadable |= np.isnan(values)
        if bounds is not None:
            lower, upper = inner_ends(*bounds)
            clipped |= (values < lower) | (values > upper)
    if too_long is not None:
        clipped |= too_long(np.stack(columns, axis=1))
    return np.where(unreadable, float(UNREADABLE), np.where(clipped, float(CLIPPED), float(USED)))


@trusted_source
@final
class Readings(DerivedSource):
    """A source of one column that says how each row of another source was read."""

    __slots__ = ("_limits", "_too_long")

    columns = ("reading",)

    def __init__(self, source: Source, limits: Limits, too_long: TooLong | None = None) -> None:
        self._of = source.unfilled if isinstance(source, ArraySource) else source
        self._limits, self._too_long = limits, too_long

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield the readings of all rows."""
        for block in self._of.blocks(ticket):
            yield readings_of(list(block.T), self._limits, self._too_long)[:, None]
