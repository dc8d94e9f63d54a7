"""Read the cells of columns and rows of any container, once a ticket opens it.

Libraries convert a complete column because of one cell. So the type of an *untyped* column (a list,
an object array, a pandas column of objects or texts) has no influence here. A *declared* type
(Arrow, Polars, nullable pandas) is public; where numbers are needed, other types are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, final

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from zerodelta.data.cells import text_of
from zerodelta.data.isolation import quietly
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Array

READABLE = "biufcOUST"
"""The kinds of NumPy arrays that have readable cells; not dates, times and records."""

_FLOATS = (nw.Float16, nw.Float32, nw.Float64)
_WHOLE = (
    *(nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64),
    *(nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64),
)


_PLAIN = (
    *(*_FLOATS, *_WHOLE, nw.Int128, nw.UInt128, nw.Decimal, nw.Object),
    *(nw.String, nw.Binary, nw.Categorical, nw.Enum),
)
"""Polars types whose cells can all become Python objects; cells of other types are missing."""
_POLARS_TEXTS = (nw.String, nw.Categorical, nw.Enum)


def array_cells(values: Array) -> Array:
    """Return an array without its mask: masked floats as NaN, other masked cells as None."""
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values)
    return readable_texts(np.asarray(values))


def readable_texts(array: Array) -> Array:
    """Return an array, or its objects with None for texts that Python cannot represent.

    NumPy stores any integer as a character; converting an array with one that is too large raises
    an error for all its texts.
    """
    if array.dtype.kind != "U" or not array.size or not array.dtype.itemsize:
        return array
    flat = np.ascontiguousarray(array.reshape(-1))
    codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
    odd = (codes.reshape(len(flat), -1) > sys.maxunicode).any(axis=1)
    if not odd.any():
        return array
    cells = np.full(len(flat), None, dtype=object)
    cells[~odd] = flat[~odd]
    return cells.reshape(array.shape)


def as_objects(values: Any) -> Array:
    """Return the cells of an iterable as they are, in one dimension."""
    if not isinstance(values, Iterable):
        raise ParameterError(
            "values",
            type(values),
            expected="one column: a list, an array or a series",
            remedy="pass a list or np.array(values)",
        )
    listed: Any = values
    cells = builtin_sequence(listed) if issubclass(type(values), (list, tuple)) else list(listed)
    return np.fromiter(cells, dtype=object, count=len(cells))  # a cell may be a list


def as_rows(rows: Sequence[Any]) -> Array:
    """Return a list as a column of cells or, if its first row is a row, as a table of cells.

    A list, a tuple or a one-dimensional array is a row, and the width of the **first** row is the
    table's: it is public, like the shape of an array, so neighbors have the same. Each row is then
    read by itself; one of another width is a row of missing cells. In a column, [x] is x.

    >>> as_rows([[1, 2], [3, 4], 5, [6]]).tolist()
    [[1, 2], [3, 4], [None, None], [None, None]]
    >>> as_rows([1, [2], [3, 4]]).tolist()
    [1, 2, None]
    """
    rows = builtin_sequence(rows)
    if not any(map(_is_row, rows)):
        return as_objects(rows)
    width = first_width(rows) or 1
    missing = [None] * width
    table = (cell for row in map(_cells, rows) for cell in (row if len(row) == width else missing))
    cells = np.fromiter(table, dtype=object, count=len(rows) * width)
    return cells if width == 1 else cells.reshape(-1, width)


def first_width(rows: Sequence[Any]) -> int | None:
    """Return how many cells the first row of a list has, which is public; None if it is a cell.

    >>> first_width([[1, 2], 3]), first_width([3, [1, 2]]), first_width([])
    (2, None, None)
    """
    rows = builtin_sequence(rows)
    if not rows or not _is_row(rows[0]):
        return None
    if type(rows[0]) is np.ndarray:  # no cell of it is read: nothing may be paid for yet
        return len(rows[0]) or 1
    return len(_cells(rows[0]))


def builtin_sequence(values: Sequence[Any]) -> Sequence[Any]:
    """Return a list or a tuple as a built-in one, without calling a method of a subclass."""
    if type(values) in (list, tuple):
        return values
    base: Any = list if issubclass(type(values), list) else tuple
    return list(base.__iter__(values))


def is_series(values: Any) -> bool:
    """Tell whether this is one column of a data frame."""
    return bool(nw.dependencies.is_into_series(values)) and not isinstance(values, np.ndarray)


def as_frame(data: Any, name: str = "data") -> nw.DataFrame[Any]:
    """Return an eager data frame of any kind; refuse anything else by its type."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
        names = list(frame.columns)
    except TypeError:
        raise ParameterError(
            name,
            type(data),
            expected="an array, a list of rows, or an eager pandas, Polars, Modin or PyArrow frame",
            remedy="pass np.asarray(data), or collect() a lazy frame first",
        ) from None
    except DuplicateError:
        raise _duplicates(name) from None
    if len({str(column) for column in names}) < len(names):
        raise _duplicates(name)
    return frame


def as_one_column(values: Any) -> Any:
    """Return a series, or an array that can become one, as a frame; anything else unchanged."""
    series = _as_series(values)
    if not is_series(series):
        return values
    wrapped = nw.from_native(series, series_only=True)
    nameless = wrapped.name is None or wrapped.name == ""
    return wrapped.alias("0" if nameless else wrapped.name).to_frame().to_native()


def check_number_column(frame: nw.DataFrame[Any], column: str) -> None:
    """Refuse a column by its declared type where numbers are needed; an empty frame will do."""
    series = frame.get_column(column)
    if _is_untyped(series):
        return
    decoded = _decoded(series)
    if not _holds_numbers(decoded):
        kind = decoded.dtype if decoded.dtype != nw.Unknown else _native_type(decoded)
        raise ParameterError(
            f"column {column!r}",
            f"a column of {kind}",
            expected="numbers or booleans",
            remedy="leave the column out or, if its texts spell numbers, convert it first",
        )


def series_cells(series: nw.Series[Any]) -> Array:
    """Return numbers of a declared type as an array of that type, anything else cell by cell.

    No cell raises an error: one that a library cannot convert is missing.
    """
    if _is_untyped(series):
        cells = quietly(_untyped_cells, series)
    elif series.implementation.is_polars() and series.dtype not in _PLAIN:
        cells = None  # dates and lists are missing cells; Polars panics over some of them
    else:
        cells = quietly(_number_cells, series)
        cells = as_objects(_listed(series)) if cells is None else cells
    fits = cells is not None and len(cells) == len(series)
    return cells if fits else as_objects([None] * len(series))


def _number_cells(series: nw.Series[Any]) -> Array | None:
    """Return numbers of a declared type without nulls, or with NaN for them; None for others."""
    series = _decoded(series)
    if series.dtype in _FLOATS:
        cells = np.asarray(series.to_numpy())  # a null is NaN
        return cells if cells.dtype.kind == "f" else None
    if series.dtype in _WHOLE and not series.is_null().any():
        cells = np.asarray(series.to_numpy())
        return cells if cells.dtype.kind in "biu" else None
    return None


def _is_untyped(series: nw.Series[Any]) -> bool:
    """Tell whether the type of a pandas column was inferred from its cells."""
    if not series.implementation.is_pandas_like():
        return False
    dtype = nw.to_native(series).dtype
    kind = type(dtype).__name__
    inferred = kind == "StringDtype" and isinstance(dtype.na_value, float)  # pandas' own `str`
    return inferred or kind == "CategoricalDtype" or str(dtype) == "object"


def _holds_numbers(series: nw.Series[Any]) -> bool:
    """Tell whether the declared type is numbers, booleans, nulls only, or objects of any type.

    Other types are refused where numbers are needed: texts and bytes, dates and times, intervals,
    lists, and unknown types.
    """
    declared = series.dtype
    if declared != nw.Unknown:
        return declared.is_numeric() or declared in (nw.Boolean, nw.Object)
    native = _native_type(series)
    kind = type(native).__name__
    if kind == "ArrowDtype":
        native = native.pyarrow_dtype
    elif kind == "SparseDtype":
        native = native.subtype
    if isinstance(native, np.dtype):
        return native.kind in "biufcO"
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(native, arrow.DataType):
        return bool(arrow.types.is_null(native) or arrow.types.is_decimal(native))
    return kind == "Null"  # of Polars


def _native_type(series: nw.Series[Any]) -> Any:
    native = nw.to_native(series)
    return native.type if series.implementation.is_pyarrow() else native.dtype


def _untyped_cells(series: nw.Series[Any]) -> Array:
    """Return the cells of a pandas column of objects or of a Categorical."""
    native = nw.to_native(series)
    if type(native.dtype).__name__ != "CategoricalDtype":
        return as_objects(_listed(series))
    categories = nw.from_native(_as_series(native.cat.categories), series_only=True)
    cells = dict(enumerate(series_cells(categories)))
    return as_objects([cells.get(code) for code in native.cat.codes.tolist()])  # code -1: missing


def _decoded(series: nw.Series[Any]) -> nw.Series[Any]:
    """Return the values of an Arrow dictionary as a column of their own type."""
    arrow, native = nw.dependencies.get_pyarrow(), nw.to_native(series)
    if arrow is None or not series.implementation.is_pyarrow():
        return series
    if not arrow.types.is_dictionary(native.type):
        return series
    return nw.from_native(native.cast(native.type.value_type), series_only=True)


def _listed(series: nw.Series[Any]) -> list[Any]:
    """Return all cells as Python objects, None for one that cannot be converted."""
    if series.implementation.is_polars() and series.dtype in _POLARS_TEXTS:
        return _polars_texts(nw.to_native(series))
    converted = quietly(lambda: list(_decoded(series).to_list()))
    cells: list[Any] = quietly(_items, series, otherwise=[]) if converted is None else converted
    return cells


def _polars_texts(series: Any) -> list[Any]:
    """Return texts from their bytes: for invalid UTF-8 Polars panics and prints a message."""
    import polars

    stored = series.cast(polars.String).cast(polars.Binary).to_list()
    return [None if cell is None else text_of(cell) for cell in stored]


def _items(series: nw.Series[Any]) -> list[Any]:
    return [quietly(series.item, i) for i in range(len(series))]


def _as_series(values: Any) -> Any:
    """Return an Arrow or pandas array as a series of its own type.

    Other conversions infer a type, which changes with a single null.
    """
    arrow, pandas = nw.dependencies.get_pyarrow(), nw.dependencies.get_pandas()
    if arrow is not None and isinstance(values, arrow.Array):
        return arrow.chunked_array([values])
    if pandas is not None and isinstance(
        values, (pandas.Index, pandas.api.extensions.ExtensionArray)
    ):
        if isinstance(values, pandas.arrays.NumpyExtensionArray):
            values = np.asarray(values)  # pandas 2 looks for nulls, and a signaling NaN raises
        # without a type pandas looks at the cells of an object array, and may find dates
        return pandas.Series(values, dtype=values.dtype)
    return values


def _unmasked(values: np.ma.MaskedArray[Any, Any]) -> Array:
    """Return the array with NaN, or None in an array without floats, for masked cells."""
    mask, array = np.ma.getmaskarray(values), readable_texts(np.array(np.ma.getdata(values)))
    if array.dtype.kind not in "fc" and mask.any():
        array = as_objects(list(array.reshape(-1))).reshape(array.shape)
        array[mask] = None
    elif mask.any():
        array[mask] = np.nan
    return array


def _is_row(row: Any) -> bool:
    return issubclass(type(row), (list, tuple)) or (type(row) is np.ndarray and row.ndim == 1)


def _cells(row: Any) -> list[Any]:
    """Return the cells of a row, or a list of the one cell that is not a row.

    No method of a subclass is called.
    """
    if not _is_row(row):
        return [row]
    if type(row) is np.ndarray:
        cells = list(readable_texts(row))
    else:
        base: Any = list if issubclass(type(row), list) else tuple
        cells = list(base.__iter__(row))
    return cells or [None]


def _duplicates(name: str) -> ParameterError:
    return ParameterError(
        f"columns of {name}",
        "several with the same name",
        expected="a different name for each column",
        remedy="rename or drop the repeated columns",
    )


# -- Containers whose cells have not been read ----------------------------------------------------
# Public are the number of rows, the width of the first row of a list, the names and declared types
# of columns. Converting cells to arrays may call code that depends on the cells, so it happens only
# once there is a ticket (`Unread.read`), and a column whose conversion raises an error becomes one
# of missing cells.

_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")
_INSIDE = ("pyarrow_dtype", "subtype", "value_type", "key_type", "item_type", "storage_type")
"""The attributes of column types that hold other types."""


def is_known(values: Any) -> bool:
    """Tell whether NumPy, pandas, Polars, Arrow or Python itself reads the cells of a container.

    Any other container runs code of its own, so its rows are caller-asserted; so are columns of an
    extension type from elsewhere. Subclasses of lists, tuples and arrays are known too, since they
    are read by the methods of `list`, `tuple` and `ndarray`.

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
    """Yield the classes of the arrays inside a pandas object, which other packages may define."""
    columns = [] if hasattr(type(values), "levels") else [values]  # a MultiIndex would be read
    if hasattr(type(values), "columns"):
        columns = [values.iloc[:, place] for place in range(values.shape[1])]
    for column in columns:
        kind = type(getattr(column, "_values", None))
        if not issubclass(kind, (np.ndarray, type(None))):
            yield kind


def _is_of_library(kind: type) -> bool:
    """Tell whether a class is what its library's module has under its name."""
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
    """A column or table that a caller passed, whose cells are read by `read` only.

    >>> rows = Unread([[1, 2], [3, 4], 5])
    >>> rows.shape, rows.names, [cells.tolist() for cells in rows.read()]
    ((3, 2), ('0', '1'), [[1, 3, None], [2, 4, None]])
    """

    __slots__ = ("_chosen", "_frame", "_values", "known", "names", "shape")

    known: bool
    """Whether reading the cells runs no code of the caller (`is_known`)."""
    names: tuple[Any, ...]
    """The names of a frame's columns; "0", "1", … for other containers."""
    shape: tuple[int, ...]
    """The number of rows and, unless this is a one-dimensional column, of columns."""

    def __init__(self, values: Any) -> None:
        if not issubclass(type(values), (np.ndarray, list, tuple)):
            values = nw.to_native(values, pass_through=True)
        self.known, self._values, self._frame = is_known(values), values, None
        kind = type(values)
        if issubclass(kind, (list, tuple)):
            self._values = values = builtin_sequence(values)
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
        """Keep only these columns, in this order, and return this object."""
        self._chosen = tuple(self._chosen[place] for place in places)
        self.names = tuple(self.names[place] for place in places)
        self.shape = (self.rows, len(self.names))
        return self

    def check_numbers(self) -> Unread:
        """Refuse columns of a frame whose declared type is not a number type."""
        if self._frame is not None:
            empty = self._frame.head(0)
            for name in self.names:
                check_number_column(empty, name)
        return self

    def read(self) -> list[Array]:
        """Return the cells of each column; called with a ticket, or for public rows."""
        if type(self._values) is np.ndarray:
            return self._read()  # views, without any conversion that might fail
        columns = quietly(self._read, otherwise=[]) or [None] * len(self.names)
        return [
            cells if cells is not None and cells.shape == (self.rows,) else _missing(self.rows)
            for cells in columns
        ]

    def read_column(self) -> Array:
        """Return the items of one column; every element of a list is one item, even a list."""
        if issubclass(type(self._values), (list, tuple)):
            return as_objects(self._values)
        return self.read()[0]

    def _read(self) -> list[Array]:
        """Return the cells of the chosen columns; a cell or a library may raise an error."""
        if self._frame is not None:
            columns = [self._frame.get_column(self._frame.columns[i]) for i in self._chosen]
            return [quietly(series_cells, column) for column in columns]
        values, kind = self._values, type(self._values)
        if issubclass(kind, (list, tuple)):
            table = as_rows(values)
        elif issubclass(kind, np.ndarray):
            table = array_cells(values)
        else:
            table = np.asarray(values) if hasattr(values, "__array__") else as_objects(values)
        table = table.reshape(-1, 1) if table.ndim == 1 else table
        return [table[:, place] for place in self._chosen]

    def _foreign_shape(self, values: Any) -> tuple[int, ...]:
        """Return the shape an unknown container reports; refuse one whose length is unknown."""
        shape = getattr(values, "shape", None)
        if hasattr(values, "__array__"):
            if not (isinstance(shape, tuple) and all(type(size) is int for size in shape)):
                # the shape is known only after converting the cells: the container's code runs
                # before there is a ticket, and the caller vouches for it
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
