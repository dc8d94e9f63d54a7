"""Arrays, lists of rows, and eager data frames, as the caller holds them in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, final

import narwhals as nw
import numpy as np

from zerodelta.data.arrow_reader import row_ranges
from zerodelta.data.columns import READABLE, as_frame, as_one_column, readable_texts, series_cells
from zerodelta.data.interrupts import quietly
from zerodelta.data.reader import Batch, Part, Reader, guarded, places
from zerodelta.data.source import FOREIGN_SOURCE
from zerodelta.data.unread import Unread, is_known
from zerodelta.errors import require
from zerodelta.exact.arrays import Array

_TEXTS = (nw.String, nw.Binary, nw.Categorical, nw.Enum, nw.Decimal)
_NO_TIME = int(np.iinfo(np.int64).min)
"""What a missing date is stored as, in NumPy."""


@final
class ArrayReader(Reader):
    """An array has the columns "0", "1", …, a structured one and a frame those that they name.

    The width of a list of rows is that of its first row. No cell is read but by `parts`.
    """

    __slots__ = ("_columns", "_known", "_lock", "_names", "_rows", "_text", "_unread")

    def __init__(self, data: Any) -> None:
        module = type(data).__module__.partition(".")[0]
        self._text = type(data).__name__ if module == "builtins" else _shown(module, data)
        self._columns: list[Any]
        self._known, self._unread, self._lock = is_known(data), None, threading.Lock()
        if isinstance(data, (list, tuple)) or _is_masked(data):
            self._unread = Unread(data)
            self._names, self._rows = self._unread.names, self._unread.rows
            self._columns = []
        elif isinstance(data, np.ndarray):
            table = _array(data)
            if table.dtype.names is not None:  # a field that is an array itself is no column
                kind = table.dtype
                self._names = tuple(name for name in kind.names or () if kind[name].shape == ())
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
    def premise(self) -> str | None:
        """None: the cells are read as they are; unless a container has code of its own."""
        return None if self._known else FOREIGN_SOURCE

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
        found = places(self._names, columns)
        with self._lock:
            if self._unread is not None:
                self._columns, self._unread = list(self._unread.read()), None
        chosen = [self._columns[place] for place in found]
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
