"""Arrays, lists of rows, and eager data frames, as the caller holds them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, final

import narwhals as nw
import numpy as np

from zerodelta.data.arrow_reader import row_ranges
from zerodelta.data.columns import (
    READABLE,
    Array,
    as_cells,
    as_frame,
    as_one_column,
    as_rows,
    series_cells,
)
from zerodelta.data.reader import Batch, Part, Reader, guarded, places
from zerodelta.errors import require

__all__ = ["ArrayReader", "polars_cells"]

_NUMBERS = (nw.Float64, nw.Float32, nw.Int64, nw.Int32, nw.Int16, nw.Int8, nw.Boolean)
_NO_ARROW = (nw.Object, nw.Unknown)


@final
class ArrayReader(Reader):
    """An array has the columns "0", "1", …, a structured one and a frame those that they name.

    The width of a list of rows is that of its first row.
    """

    __slots__ = ("_columns", "_names", "_rows", "_text")

    def __init__(self, data: Any) -> None:
        module = type(data).__module__.partition(".")[0]
        self._text = type(data).__name__ if module == "builtins" else _shown(module, data)
        self._columns: list[Any]
        if isinstance(data, (np.ndarray, list, tuple)):
            table = as_rows(data) if isinstance(data, (list, tuple)) else _array(data)
            if table.dtype.names is not None:
                self._names = tuple(table.dtype.names)
                self._columns = [table[name] for name in self._names]
            else:
                table = table.reshape(-1, 1) if table.ndim == 1 else table
                self._names = tuple(map(str, range(table.shape[1])))
                self._columns = [table[:, place] for place in range(table.shape[1])]
            self._rows = len(table)
        else:
            frame = as_frame(as_one_column(data))
            self._names = tuple(map(str, frame.columns))
            self._columns = [frame.get_column(name) for name in frame.columns]
            self._rows = len(frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    @property
    def premise(self) -> None:
        """None: the cells are read as they are."""
        return None

    @property
    def bare(self) -> bool:
        """True: the caller prepared them."""
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
        return self._rows

    def parts(
        self, columns: tuple[str, ...], *, batch: int, numbers: frozenset[str] = frozenset()
    ) -> Sequence[Part]:
        """Return ranges of rows."""
        chosen = [self._columns[place] for place in places(self._names, columns)]
        return [
            partial(guarded, partial(_slices, chosen, rows, batch))
            for rows in row_ranges(self._rows)
        ]


def _slices(columns: list[Any], rows: range, batch: int) -> Iterator[Batch]:
    for start in rows[::batch]:
        stop = min(start + batch, rows.stop)
        yield tuple(_cells(column[start:stop]) for column in columns)


def _cells(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return column
    if column.implementation.is_polars():
        return polars_cells(nw.to_native(column))
    return series_cells(column)


def polars_cells(series: Any) -> Any:
    """Return the cells of a Polars series: as Arrow has them, where that is faster."""
    wrapped = nw.from_native(series, series_only=True)
    kind = wrapped.dtype
    if kind in _NUMBERS or kind in _NO_ARROW or find_spec("pyarrow") is None:
        return series_cells(wrapped)
    try:
        return series.to_arrow()
    except Exception:  # no Arrow type for it, or for one cell: then cell by cell
        return series_cells(wrapped)


def _array(data: Array) -> Array:
    """Return an array of any type, without its mask; dates and records stay what they are."""
    require(
        1 <= data.ndim <= 2,
        "source",
        f"an array of {data.ndim} dimensions",
        expected="one or two dimensions",
        remedy="pass rows times columns",
    )
    return as_cells(data) if data.dtype.kind in READABLE else np.asarray(data)


def _shown(module: str, data: Any) -> str:
    names = {"numpy": "NumPy", "pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow"}
    return f"{names.get(module, module)} {type(data).__name__}"
