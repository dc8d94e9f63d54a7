"""Rows held in memory: arrays, lists of rows, and data frames; and which reader a source needs."""

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
    """Says of itself in signatures what it stands for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return '"skip" or None'

    def __reduce__(self) -> str:
        return "DEFAULT_MISSING"


DEFAULT_MISSING: Any = _DefaultMissing()
"""What a missing cell counts as was not said: nowhere in a frame, as the center in an array."""

_BLOCK_ENTRIES = 1 << 20


@trusted_source
@final
class ArraySource(Source):
    """The rows of an array or a list (one column, or several), or named columns of a data frame.

    No cell is read, or becomes another object, before a ticket is shown. A container that is of no
    library we know (`is_known`) runs code of its own, so its rows are caller-asserted.

    An array has the columns "0", "1", …; a one-dimensional one has one column. The width of a list
    of rows is that of its first row. Of a frame, name the columns that may be used; one whose
    declared type is text (Arrow, Polars, pandas "string") is refused. Every cell is read by itself
    as a number (`cells.number`): a text is the number it spells, an infinity the largest float, and
    what is missing or no number is NaN. So one odd cell, which may turn a whole array of integers
    into texts, changes no other row. (A float32 spells another float64: convert such an array
    before texts can get into it.) `missing`: "skip" (counts nowhere; for frames), None (counts as
    the center; for arrays), or the number that it counts as.

    >>> source = ArraySource(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]))
    >>> source.rows, source.columns
    (3, ('0', '1'))
    """

    # nothing can be put in the place of a method
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
                expected="None for an array",
                remedy="select columns by slicing",
            )
            table = _as_table(data)
        else:
            table = data if isinstance(data, Unread) else _as_frame(data)
            chosen = _chosen(columns, table.names)
            table = table.choose([table.names.index(name) for name in chosen]).check_numbers()
        self._tables: tuple[Unread, ...] = (table,)
        self._names = tuple(map(str, table.names))  # pandas numbers them by default
        self._rows = table.rows
        entries = max(1, _BLOCK_ENTRIES // max(1, len(self._names)))
        self._batch = entries if batch is None else as_count(batch, "batch", minimum=1)

    @classmethod
    def with_labels(cls, features: Any, labels: Any) -> ArraySource:
        """Return features with a column of labels, one for each row, behind them.

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
        """Whether a missing cell counts nowhere."""
        return self._skip

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def protection(self) -> Protection:
        """One row is protected; what a container that we do not know yields is asserted."""
        known = all(table.known for table in self._tables)
        return Protection(premise=None if known else FOREIGN_SOURCE)

    @property
    def unfilled(self) -> ArraySource:
        """The same rows, in which a missing cell is NaN whatever it counts as."""
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
        """Yield one block."""
        stop = min(start + self._batch, self._rows)
        block = np.empty((len(parts), stop - start)).T  # each column in one piece
        for i, part in enumerate(parts):
            numbers(part[start:stop], out=block[:, i])
        if self._fill is not None:
            block[np.isnan(block)] = self._fill
        yield block


def public_table(data: Any, *, columns: Sequence[str] | None = None) -> Block:
    """Return all rows of what the caller gave as public: made-up examples, centers, queries.

    Never the rows of the data, which are read with a ticket only.
    """
    source = data if isinstance(data, ArraySource) else ArraySource(data, columns=columns)
    return np.concatenate([np.empty((0, len(source.columns))), *source._public()])


def _as_table(data: Any) -> Unread:
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
    as_frame(as_one_column(data))  # what is none is refused by its type
    return Unread(data)


def _as_missing(missing: Any, *, skip: bool) -> tuple[bool, float | None]:
    """Return whether missing cells count nowhere, and else the number that they count as."""
    if missing is DEFAULT_MISSING or missing is None:
        return skip and missing is DEFAULT_MISSING, None
    if isinstance(missing, str) and missing == "skip":
        return True, None
    return False, as_float(missing, "missing")


def _chosen(columns: Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
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


# -- Arrays, lists of rows, and eager data frames, as the caller holds them in memory -------------

_TEXTS = (nw.String, nw.Binary, nw.Categorical, nw.Enum, nw.Decimal)
_NO_TIME = int(np.iinfo(np.int64).min)
"""What a missing date is stored as, in NumPy."""


def array_reader(data: Any) -> Reader:
    """Return the reader of an array, a list of rows or a frame; no cell is read but by `parts`.

    An array has the columns "0", "1", …, a structured one and a frame those that they name. The
    width of a list of rows is that of its first row.
    """
    module = type(data).__module__.partition(".")[0]
    columns: Callable[[], Sequence[Any]]
    if isinstance(data, (list, tuple)) or _is_masked(data):
        unread = Unread(data)
        names, rows, columns = unread.names, unread.rows, computed_once(unread.read)
    else:
        split = _array_columns if isinstance(data, np.ndarray) else _frame_columns
        rows, found = split(data)
        names, columns = tuple(found), lambda: list(found.values())

    def scan(wanted: tuple[str, ...], batch: int, _: frozenset[str]) -> list[Part]:
        known = columns()
        chosen = [known[place] for place in places(names, wanted)]
        slices = [partial(_slices, chosen, part, batch) for part in row_ranges(rows)]
        return [partial(guarded, each) for each in slices]

    return Reader(
        text=type(data).__name__ if module == "builtins" else _shown(module, data),
        names=names,
        row="one row of the table",
        count=lambda: rows,
        scan=scan,
        # the cells are read as they are; unless a container has code of its own
        premise=None if is_known(data) else FOREIGN_SOURCE,
        bare=True,
    )


def _array_columns(data: Array) -> tuple[int, dict[str, Any]]:
    table = _array(data)
    if table.dtype.names is not None:  # a field that is an array itself is no column
        kind = table.dtype
        names = [name for name in table.dtype.names if kind[name].shape == ()]
        return len(table), {name: table[name] for name in names}
    table = table.reshape(-1, 1) if table.ndim == 1 else table
    return len(table), {str(place): table[:, place] for place in range(table.shape[1])}


def _frame_columns(data: Any) -> tuple[int, dict[str, Any]]:
    frame = as_frame(as_one_column(data))
    return len(frame), {str(name): frame.get_column(name) for name in frame.columns}


def _slices(columns: list[Any], rows: range, batch: int) -> Iterator[Batch]:
    for start in rows[::batch]:
        stop = min(start + batch, rows.stop)
        yield tuple(_cells(column[start:stop]) for column in columns)


def _cells(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return readable_texts(column)
    if column.implementation.is_polars():
        return polars_cells(nw.to_native(column))
    return nw.to_native(column) if column.implementation.is_pyarrow() else series_cells(column)


def polars_cells(series: Any) -> Any:
    """Return the cells of a Polars series: as Arrow has them, where that is faster.

    Dates are the integers that they are stored as: of one that Python has none for, Polars would
    panic. Times and lists have no cells that are read, and are missing.
    """
    wrapped = nw.from_native(series, series_only=True)
    kind = wrapped.dtype
    if kind in (nw.Date, nw.Datetime):
        import polars

        unit = "D" if kind == nw.Date else kind.time_unit
        stored = series.to_physical().cast(polars.Int64).fill_null(_NO_TIME)
        return stored.to_numpy().view(f"datetime64[{unit}]")
    found = quietly(series.to_arrow) if kind in _TEXTS and find_spec("pyarrow") else None
    return series_cells(wrapped) if found is None else found


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


# -- Polars lazy frames: rows of a query that Polars runs, batch by batch -------------------------


def polars_reader(frame: Any) -> Reader:
    """Return the reader of a lazy frame's result, in one part."""
    names = attempt(lambda: frame.collect_schema().names())
    count, rows = partial(_count, frame), partial(_rows, frame)
    return query_reader("Polars LazyFrame", names, count, rows)


def _count(frame: Any) -> Any:
    import polars

    return frame.select(polars.len()).collect().item()


def _rows(frame: Any, columns: tuple[str, ...], batch: int) -> Iterator[Batch]:
    chosen = frame.select(list(dict.fromkeys(columns)))
    if hasattr(chosen, "collect_batches"):
        found = chosen.collect_batches(chunk_size=batch, maintain_order=True)
    else:  # older versions hold the result in memory
        found = [chosen.collect()]
    for each in found:
        for part in each.iter_slices(batch):
            yield tuple(polars_cells(part.get_column(name)) for name in columns)


# -- Find reader ----------------------------------------------------------------------------------
# Which reader reads a source: decided by its type, or a path's ending, never by what it holds.

_OPTIONS = tuple(each.name for each in fields(CsvFormat))
_CSV, _PARQUET = (".csv", ".txt", ".tsv"), (".parquet", ".pq")


def reader_of(
    source: Any, file: Mapping[str, Any] | None = None, *, declared: Sequence[str] = ()
) -> Reader:
    """Return the reader of a source.

    Parameters
    ----------
    source : array, list of rows, frame, path, query
        A NumPy array, a list of rows, a pandas, Polars (eager or lazy) or PyArrow frame, an Arrow
        stream or dataset, a DuckDB relation or ``(sql, connection)``, a Spark DataFrame, the path
        of a CSV or Parquet file, a pattern of several, or a list of `pathlib.Path`.
    file : dict, optional
        How CSV files are written, as `CsvFormat` has it; other sources do not look at it.
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
        require(name in _OPTIONS, "option", name, "one that says how a CSV file is written", remedy)
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
        "a DuckDB relation or (sql, connection), a Spark DataFrame, or the path of a CSV or "
        "Parquet file",
        remedy="pass one of these, or np.asarray(source)",
    )


def _file_reader(source: Any, file: dict[str, Any], declared: Sequence[str]) -> Reader:
    endings = {_ending(path) for path in matching_files(source)}
    if endings == {".tsv"}:
        file = {"delimiter": "\t", **file}
    if endings <= set(_CSV):
        return csv_reader(source, CsvFormat(**file), declared=declared)
    if endings <= set(_PARQUET):
        return parquet_reader(source)
    raise ParameterError(
        "source",
        expected="files that end in .csv, .tsv, .txt (or these with .gz), or all in .parquet",
        remedy="rename the files, or open each kind by itself",
    )


def _ending(path: Path) -> str:
    name = path.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    return ending + ".gz" if name.endswith(".gz") and ending in _PARQUET else ending


def _is_query(source: Any) -> bool:
    duckdb = sys.modules.get("duckdb")
    if duckdb is None or type(source) is not tuple or len(source) != 2:
        return False
    # these may be cells: nothing but their types is looked at
    return type(source[0]) is str and issubclass(type(source[1]), duckdb.DuckDBPyConnection)


def _is_frame(source: Any) -> bool:
    known = nw.dependencies
    return bool(known.is_into_dataframe(source) or known.is_into_series(source)) or (
        type(source).__module__.partition(".")[0] in ("pandas", "pyarrow")
    )


# -- How each row was read: as it is, clipped to its bounds, or with a cell that cannot be read ---

USED, CLIPPED, UNREADABLE = 0, 1, 2

Limits: TypeAlias = tuple[Bounds | None, ...]
"""The bounds of each column; None for one whose cells are not clipped."""

TooLong: TypeAlias = Callable[[Block], npt.NDArray[np.bool_]]
"""Tells which rows are clipped as a whole, each by itself: those that are too long."""


def readings_of(
    columns: Sequence[npt.NDArray[Any]], limits: Limits, beyond: TooLong | None = None
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
    if beyond is not None:
        clipped |= beyond(np.stack(columns, axis=1))
    return np.where(unreadable, float(UNREADABLE), np.where(clipped, float(CLIPPED), float(USED)))


@trusted_source
@final
class Readings(DerivedSource):
    """One column that says how each row of another source was read."""

    __slots__ = ("_beyond", "_limits")

    columns = ("reading",)

    def __init__(self, source: Source, limits: Limits, beyond: TooLong | None = None) -> None:
        self._of = source.unfilled if isinstance(source, ArraySource) else source
        self._limits, self._beyond = limits, beyond

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        """Yield the readings of all rows."""
        for block in self._of.blocks(ticket):
            yield readings_of(list(block.T), self._limits, self._beyond)[:, None]
