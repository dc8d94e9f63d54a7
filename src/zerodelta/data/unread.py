"""Rows as a caller holds them, none of whose cells has been read: their shape, and the rest later.

Public are the number of rows, the width of the first row of a list, the names and declared types of
columns. What a library or a cell does when cells become arrays depends on them: so that happens
only once there is a ticket (`Unread.read`), and whatever it raises is a column of missing cells.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence, Sized
from typing import Any, final

import narwhals as nw
import numpy as np

from zerodelta.data.columns import (
    READABLE,
    as_cells,
    as_frame,
    as_objects,
    as_one_column,
    as_rows,
    check_number_column,
    first_width,
    own_sequence,
    series_cells,
)
from zerodelta.data.interrupts import quietly
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Array

_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")
_INSIDE = ("pyarrow_dtype", "subtype", "value_type", "key_type", "item_type", "storage_type")
"""Where types of columns have others inside them."""


def is_known(values: Any) -> bool:
    """Tell whether NumPy, pandas, Polars, Arrow or Python itself reads the cells of a container.

    Any other container runs code of its own, and what that makes of rows is caller-asserted. So do
    columns whose type such a library was taught by others. Lists, tuples and arrays are read by the
    methods of `list`, `tuple` and `ndarray`, whatever class inherits these.

    >>> is_known([1]), is_known(np.zeros(3)), is_known(range(3))
    (True, True, False)
    """
    kind = type(values)
    if issubclass(kind, (list, tuple)):
        return True
    if issubclass(kind, np.ndarray):
        return kind is np.ma.MaskedArray or not issubclass(kind, np.ma.MaskedArray)
    if not _is_of_library(kind):
        return False
    if kind.__module__.startswith("pyarrow"):
        types = [field.type for field in values.schema] if hasattr(type(values), "schema") else []
        return all(map(_is_known_type, types or [getattr(values, "type", None)]))
    if kind.__module__.startswith("pandas"):
        types = list(values.dtypes) if hasattr(type(values), "columns") else [values.dtype]
        return all(map(_is_known_type, types)) and all(map(_is_of_library, _arrays(values)))
    return True


def _arrays(values: Any) -> Iterator[type]:
    """Yield the classes of pandas' own arrays; a class of others may inherit such a type's."""
    columns = [] if hasattr(type(values), "levels") else [values]  # those would be read
    if hasattr(type(values), "columns"):
        columns = [values.iloc[:, place] for place in range(values.shape[1])]
    for column in columns:
        found = type(getattr(column, "_values", None))
        if not issubclass(found, (np.ndarray, type(None))):
            yield found


def _is_of_library(kind: type) -> bool:
    module = str(kind.__module__)
    home = sys.modules.get(module) if module.partition(".")[0] in _LIBRARIES else None
    return home is not None and getattr(home, kind.__name__, None) is kind


def _is_known_type(dtype: Any) -> bool:
    """Tell whether one of the libraries wrote the type of a column, and the types inside it."""
    if isinstance(dtype, np.dtype) or dtype is None:
        return True
    if not _is_of_library(type(dtype)):
        return False
    parts = [getattr(dtype, name, None) for name in _INSIDE]
    if hasattr(dtype, "field"):
        parts += [dtype.field(place).type for place in range(dtype.num_fields)]
    inside = [part for part in parts if part is not None and part is not dtype]
    categories = getattr(dtype, "categories", None)
    return all(map(_is_known_type, inside)) and (categories is None or is_known(categories))


@final
class Unread:
    """A column, or a table, that a caller passed; its cells are read by `read`, and only there.

    >>> rows = Unread([[1, 2], [3, 4], 5])
    >>> rows.shape, rows.names, [cells.tolist() for cells in rows.read()]
    ((3, 2), ('0', '1'), [[1, 3, None], [2, 4, None]])
    """

    __slots__ = ("_chosen", "_frame", "_values", "known", "names", "shape")

    known: bool
    """Whether no code of the caller's runs when cells are read (`is_known`)."""
    names: tuple[Any, ...]
    """The columns: "0", "1", … but for those of a frame."""
    shape: tuple[int, ...]
    """The number of rows and, unless this is one flat column, of columns."""

    def __init__(self, values: Any) -> None:
        if not issubclass(type(values), (np.ndarray, list, tuple)):
            values = nw.to_native(values, pass_through=True)
        self.known, self._values, self._frame = is_known(values), values, None
        kind = type(values)
        if issubclass(kind, (list, tuple)):
            self._values = values = own_sequence(values)
            width = first_width(values)
            self.shape = (len(values),) if width is None else (len(values), width)
        elif issubclass(kind, np.ndarray):
            if not issubclass(kind, np.ma.MaskedArray):
                self._values = values = np.asarray(values)
            _check_type(values.dtype)
            self.shape = tuple(values.shape)
        elif nw.dependencies.is_into_dataframe(one := as_one_column(values)):
            self._frame = as_frame(one)
            self.names = tuple(self._frame.columns)
            flat = one is not values
            self.shape = (len(self._frame),) if flat else (len(self._frame), len(self.names))
        else:
            self.shape = self._foreign_shape(values)
        if self._frame is None:
            self.names = tuple(str(i) for i in range(self.width))
        self._chosen = tuple(range(self.width))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.shape[0] if self.shape else 0

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1 if len(self.shape) < 2 else self.shape[1]

    @property
    def is_frame(self) -> bool:
        """Whether columns have names and declared types."""
        return self._frame is not None

    def choose(self, places: Sequence[int]) -> Unread:
        """Keep some of the columns only, in this order."""
        self._chosen = tuple(self._chosen[place] for place in places)
        self.names = tuple(self.names[place] for place in places)
        self.shape = (self.rows, len(self.names))
        return self

    def check_numbers(self) -> Unread:
        """Refuse columns of a frame whose declared type is not one of numbers."""
        if self._frame is not None:
            empty = self._frame.head(0)
            for name in self.names:
                check_number_column(empty, name)
        return self

    def read(self) -> list[Array]:
        """Return the cells of each column; called where there is a ticket, or rows are public."""
        if type(self._values) is np.ndarray:
            return self._read()  # views: nothing becomes anything else
        found = quietly(self._read, otherwise=[]) or [None] * len(self.names)
        return [
            cells if cells is not None and cells.shape == (self.rows,) else _missing(self.rows)
            for cells in found
        ]

    def read_column(self) -> Array:
        """Return the items of one column; in a list each item is one, a list or a tuple too."""
        if issubclass(type(self._values), (list, tuple)):
            return as_objects(self._values)
        return self.read()[0]

    def _read(self) -> list[Array]:
        if self._frame is not None:
            columns = [self._frame.get_column(self._frame.columns[i]) for i in self._chosen]
            return [quietly(series_cells, column) for column in columns]
        values, kind = self._values, type(self._values)
        if issubclass(kind, (list, tuple)):
            table = as_rows(values)
        elif issubclass(kind, np.ndarray):
            table = as_cells(values)
        else:
            table = np.asarray(values) if hasattr(values, "__array__") else as_objects(values)
        table = table.reshape(-1, 1) if table.ndim == 1 else table
        return [table[:, place] for place in self._chosen]

    def _foreign_shape(self, values: Any) -> tuple[int, ...]:
        """Return the shape of a container that we do not know, as it says itself."""
        shape = getattr(values, "shape", None)
        if hasattr(values, "__array__"):
            if not (isinstance(shape, tuple) and all(type(size) is int for size in shape)):
                # only its cells tell its shape: its own code runs now, which the caller vouches for
                self._values = values = np.asarray(values)
                _check_type(values.dtype)
                shape = values.shape
            return tuple(shape)
        if isinstance(values, Iterator) or not isinstance(values, Sized):
            raise ParameterError(
                "values",
                type(values),
                expected="a list, an array, a series or a frame, whose length is known",
                remedy="pass a list or np.array(values)",
            )
        return (len(values),)


def _check_type(dtype: Any) -> None:
    require(
        dtype.kind in READABLE,
        "dtype",
        dtype,
        expected="an array of numbers, booleans, texts or objects",
        remedy="convert dates and times to numbers or texts first",
    )


def _missing(rows: int) -> Array:
    return as_objects([None] * rows)
