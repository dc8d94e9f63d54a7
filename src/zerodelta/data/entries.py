"""Columns and rows of any kind as arrays of their entries: none is read with the help of another.

Converting a whole column may raise, or give other types, because of one entry; what has no type
of its own is therefore taken entry by entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError

__all__ = [
    "as_entries",
    "as_objects",
    "as_rows",
    "is_series",
    "series_entries",
    "series_list",
]

Array = npt.NDArray[Any]

_ROWS = (list, tuple, np.ndarray)


def as_entries(values: Any) -> Array:
    """Return a column as an array of numbers, texts or objects, in the shape of an array or frame.

    What is masked or missing is NaN among floats, else None. Refuses by the column's type only.
    """
    if isinstance(values, np.ma.MaskedArray):
        return _without(np.asarray(values), np.ma.getmaskarray(values))
    values = _as_series(values)
    if is_series(values):
        return series_entries(nw.from_native(values, series_only=True))
    if nw.dependencies.is_into_dataframe(values):
        return _frame_entries(nw.from_native(values, eager_only=True))
    if hasattr(values, "__array__") and not hasattr(values, "to_numpy"):
        return np.asarray(values)
    return as_objects(values)  # of an unknown column: its conversion may depend on one entry


def _as_series(values: Any) -> Any:
    """Return columns that are no series yet as one: their own conversion changes with a null."""
    arrow, pandas = nw.dependencies.get_pyarrow(), nw.dependencies.get_pandas()
    if arrow is not None and isinstance(values, arrow.Array):
        return arrow.chunked_array([values])
    if pandas is not None and isinstance(
        values, (pandas.Index, pandas.api.extensions.ExtensionArray)
    ):
        return pandas.Series(values)
    return values


def as_objects(values: Any) -> Array:
    """Return the entries of an iterable as they are, in one dimension."""
    if not isinstance(values, Iterable):
        raise ParameterError(
            "values",
            type(values),
            expected="one column: a list, an array or a series",
            remedy="pass a list or np.array(values)",
        )
    entries = values if isinstance(values, (list, tuple)) else list(values)
    return np.fromiter(entries, dtype=object, count=len(entries))  # an entry may be a list


def as_rows(rows: Sequence[Any]) -> Array:
    """Return a list as a column of entries or, if it is one of rows, as a table of entries.

    A list, a tuple or a one-dimensional array of d > 1 entries is a row of width d; whatever else
    an entry is, it is a row of width 1 (of [x], x). The width of more than half of the rows, or
    1 if there is none, is the table's, and **public**, like the shape of an array: neighbours have
    the same. Each row is then read by itself; one of another width is a row of None.

    >>> as_rows([[1, 2], [3, 4], 5]).tolist()
    [[1, 2], [3, 4], [None, None]]
    >>> as_rows([1, [2], [3, 4]]).tolist()
    [1, 2, None]
    """
    if not any(issubclass(type(row), _ROWS) for row in rows):
        return as_objects(rows)
    cells = [_cells(row) for row in rows]
    ((width, times),) = Counter(map(len, cells)).most_common(1)
    width = width if 2 * times > len(cells) else 1
    missing = [None] * width
    table = (entry for row in cells for entry in (row if len(row) == width else missing))
    entries = np.fromiter(table, dtype=object, count=len(cells) * width)
    return entries if width == 1 else entries.reshape(-1, width)


def is_series(values: Any) -> bool:
    """Tell whether this is one column of a data frame."""
    return bool(nw.dependencies.is_into_series(values)) and not isinstance(values, np.ndarray)


def series_entries(series: nw.Series[Any]) -> Array:
    """Return numbers (and dates) as an array of that type, anything else entry by entry."""
    try:
        kind = series.dtype
        whole = kind.is_numeric() and not series.is_null().any()
        if whole or kind.is_float() or kind.is_temporal():
            return np.asarray(series.to_numpy())
    except KeyboardInterrupt:  # the person at the keyboard, not the data
        raise
    except BaseException:  # because of one entry
        pass
    return as_objects(series_list(series))


def series_list(series: nw.Series[Any]) -> list[Any]:
    """Return all entries, None for one that cannot be had."""
    try:
        return list(series.to_list())
    except KeyboardInterrupt:
        raise
    except BaseException:
        return [_entry(series, i) for i in range(len(series))]


def _without(array: Array, missing: npt.NDArray[np.bool_]) -> Array:
    """Return the array with NaN, or None among objects if it has none, in these places."""
    changed = array.copy() if array.dtype.kind in "fc" else array.astype(object)
    changed[missing] = np.nan if array.dtype.kind in "fc" else None
    return changed


def _entry(series: nw.Series[Any], index: int) -> Any:
    try:
        return series.item(index)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def _frame_entries(frame: nw.DataFrame[Any]) -> Array:
    parts = [series_entries(column) for column in frame.iter_columns()]
    if len(parts) == 1:
        return parts[0].reshape(-1, 1)
    table = np.empty((len(frame), len(parts)), dtype=object)
    for i, part in enumerate(parts):
        table[:, i] = part
    return table


def _cells(row: Any) -> list[Any]:
    """Return the entries of a row, or the one that it is; an empty list is a missing one."""
    if not issubclass(type(row), _ROWS):
        return [row]
    try:
        if isinstance(row, np.ndarray) and row.ndim != 1:
            return [row]
        return list(row) or [None]
    except KeyboardInterrupt:  # the person at the keyboard, not the data
        raise
    except BaseException:  # whatever a row does, it must not become an output
        return [None]
