"""Which reader reads a source: decided by its type, or a path's ending, never by what it holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from zerodelta.data.array_reader import ArrayReader
from zerodelta.data.arrow_reader import ArrowReader, dataset_reader
from zerodelta.data.csv_cells import CsvFormat
from zerodelta.data.csv_reader import CsvReader
from zerodelta.data.duckdb_reader import DuckDBReader
from zerodelta.data.files import found_files, is_path
from zerodelta.data.parquet_reader import ParquetReader
from zerodelta.data.polars_reader import PolarsLazyReader
from zerodelta.data.reader import Reader
from zerodelta.data.spark_reader import SparkReader, is_spark
from zerodelta.errors import ParameterError, did_you_mean, require

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
        return DuckDBReader(source)
    if module == "pyarrow" and kind in ("Table", "RecordBatch", "RecordBatchReader"):
        return ArrowReader(source)
    if module == "pyarrow" and kind.endswith("Dataset"):
        return dataset_reader(source)
    if module == "polars" and kind == "LazyFrame":
        return PolarsLazyReader(source)
    if is_spark(source):
        return SparkReader(source)
    if isinstance(source, (np.ndarray, list, tuple)) or _is_frame(source):
        return ArrayReader(source)
    raise ParameterError(
        "source",
        type(source),
        expected="an array, a list of rows, a pandas, Polars or PyArrow frame, an Arrow dataset, "
        "a DuckDB relation or (sql, connection), a Spark DataFrame, or the path of a CSV or "
        "Parquet file",
        remedy="pass one of these, or np.asarray(source)",
    )


def _file_reader(source: Any, file: dict[str, Any], declared: Sequence[str]) -> Reader:
    endings = {_ending(path) for path in found_files(source)}
    if endings == {".tsv"}:
        file = {"delimiter": "\t", **file}
    if endings <= set(_CSV):
        return CsvReader(source, CsvFormat(**file), declared=declared)
    if endings <= set(_PARQUET):
        return ParquetReader(source)
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
