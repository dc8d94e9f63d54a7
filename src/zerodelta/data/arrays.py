"""Rows held in memory: NumPy arrays, and data frames of any kind that narwhals reads."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, final

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.data.entries import as_objects, series_list
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source, ours
from zerodelta.errors import ParameterError
from zerodelta.exact.rational import as_count

__all__ = ["ArraySource", "as_float", "as_frame"]

_BLOCK_ENTRIES = 1 << 20
_NUMBERS, _READABLE = "biuf", "biufcOUS"
_TRUTHS = {"True": 1.0, "False": 0.0}


@ours
@final
class ArraySource(Source):
    """The rows of a NumPy array (one or two dimensions) or of named columns of a data frame.

    An array has the columns "0", "1", …; a one-dimensional one has one column. Of a frame, name
    the columns that may be used. Booleans become 0 and 1, texts the number they spell, and
    whatever is not a real number NaN: so one stray text, which turns a whole column of booleans,
    integers or float64 into texts, changes no other row. (A float32 spells another float64: convert
    such an array before texts can get into it.)

    >>> from zerodelta.exact.fixed_point import FixedPoint
    >>> source = ArraySource(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]))
    >>> lattice = FixedPoint.box(dimension=1, lower=0, upper=4, steps=100)
    >>> source.sum(0, lattice)
    array([0])
    >>> source.counts(lambda rows: rows[:, 1], size=2)
    array([1, 2])
    """

    def __init__(
        self, data: Any, *, columns: Sequence[str] | None = None, batch: int | None = None
    ) -> None:
        if isinstance(data, np.ndarray):
            _refuse_names(columns)
            table = _as_table(data)
            self._parts = [table[:, i] for i in range(table.shape[1])]
            self._names = tuple(str(i) for i in range(table.shape[1]))
            self._rows = len(table)
        else:
            frame = as_frame(data)
            chosen = _chosen(columns, frame.columns)
            self._names = tuple(str(name) for name in chosen)  # pandas numbers them by default
            self._parts = [_from_series(frame.get_column(name)) for name in chosen]
            self._rows = len(frame)
        entries = max(1, _BLOCK_ENTRIES // max(1, len(self._names)))
        self._batch = entries if batch is None else as_count(batch, "batch", minimum=1)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in order, `batch` at a time."""
        for start in range(0, self._rows, self._batch):
            stop = min(start + self._batch, self._rows)
            block = np.empty((stop - start, len(self._parts)))
            for i, part in enumerate(self._parts):
                block[:, i] = _as_floats(part[start:stop])
            yield block


def _as_table(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if data.ndim not in (1, 2) or data.dtype.kind not in _READABLE:
        raise ParameterError(
            "data",
            f"{data.dtype} array with {data.ndim} dimensions",  # never an entry
            expected="an array of real numbers with 1 or 2 dimensions",
            remedy="convert dates to numbers, and reshape to (rows, columns)",
        )
    if isinstance(data, np.ma.MaskedArray):
        data = np.where(np.ma.getmaskarray(data), np.nan, np.asarray(data))
    table = np.asarray(data)
    return table.reshape(-1, 1) if table.ndim == 1 else table


def as_frame(data: Any, name: str = "data") -> nw.DataFrame[Any]:
    """Return an eager data frame of any kind; what is none is refused by its type."""
    try:
        return nw.from_native(data, eager_only=True)
    except TypeError:
        raise ParameterError(
            name,
            type(data),
            expected="a NumPy array, or an eager pandas, Polars, Modin or PyArrow data frame",
            remedy="pass np.asarray(data), or collect() a lazy frame first",
        ) from None


def _chosen(columns: Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
    if columns is None:
        return tuple(available)
    if isinstance(columns, str) or not columns or not set(columns) <= set(available):
        raise ParameterError(
            "columns",
            columns,
            expected=f"a list of some of {list(available)[:10]}",
            remedy="name columns of the frame",
        )
    return tuple(columns)


def _refuse_names(columns: Sequence[str] | None) -> None:
    if columns is not None:
        raise ParameterError(
            "columns", columns, expected="None for an array", remedy="select columns by slicing"
        )


def _from_series(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Return the values as numbers, or as objects that `_as_floats` reads one by one.

    Casts and conversions of whole columns may raise because of one entry, so a column that cannot
    be taken as it is, is read entry by entry.
    """
    if series.dtype.is_temporal():
        raise ParameterError(
            "columns",
            f"a column of {series.dtype}",
            expected="numbers, booleans or texts",
            remedy="convert dates and times to numbers first",
        )
    try:
        if series.dtype.is_numeric():
            numbers = series.to_numpy()
            if numbers.dtype.kind in _NUMBERS:
                return numbers
    except KeyboardInterrupt:  # the person at the keyboard, not the data
        raise
    except BaseException:  # because of one entry
        pass
    return as_objects(series_list(series))


def _as_floats(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if values.dtype.kind in _NUMBERS:
        with np.errstate(all="ignore"):  # an extended float may overflow: a value never warns
            return values.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning because of a value is an output
        return np.array([as_float(value) for value in values], dtype=np.float64)


def as_float(value: Any) -> float:
    """Return a real number, or one that a text spells, and NaN for anything else."""
    try:
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str) and value in _TRUTHS:  # what NumPy writes for a boolean
            return _TRUTHS[value]
        if isinstance(value, (complex, np.complexfloating)):
            return float(value.real) if value.imag == 0 else math.nan
        return float(value)
    except KeyboardInterrupt:  # the person at the keyboard, not the data
        raise
    except BaseException:  # whatever a value does, it must not become an output
        return math.nan
