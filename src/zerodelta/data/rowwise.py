"""Evaluate a function of rows so that no row can raise, warn or change another's value (theory C0).

A block of rows is evaluated at once. If that raises an error or returns another shape, rows are
evaluated one by one; those that fail become NaN, which the lattice maps to the zero row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.isolation import Watch, is_trusted_code, quiet
from zerodelta.errors import ParameterError, require
from zerodelta.value import value

Block: TypeAlias = npt.NDArray[np.float64]
"""Rows as an (n, columns) array."""


@final
class ExtraColumn(Enum):
    """A column that a data set adds to the declared ones; not a text, so that no name equals it."""

    PRESENT = "1 in every row that counts"
    UNIT = "the number of each row's unit"


Column: TypeAlias = int | str | ExtraColumn | np.integer[Any]

RowFunction: TypeAlias = Callable[[Block], Any] | Column | Sequence[Column]
"""A function of a block of rows, one column, or several columns.

Columns are proven to treat each row by itself. A function is caller-asserted: its value for row i
must depend on that row, on i and on the number of rows only, to the last bit. ``rows -
rows.mean(axis=0)`` is not such a function. ``rows @ weights`` is, but BLAS rounds by the layout of
the batch, so its last bits, unlike those of elementwise functions, change with the batch size and
the order of the rows. Even a function that sees one row at a time may remember earlier rows, so it
is caller-asserted too.
"""


def as_function(function: RowFunction, columns: Sequence[str]) -> Callable[[Block], Any]:
    """Return named columns as a `NamedColumns`, and a function unchanged.

    The argument is inspected here only: a caller's object may behave differently the next time.

    >>> is_columns(as_function(["b"], ("a", "b"))), is_columns(as_function(len, ("a", "b")))
    (True, False)
    """
    kind = type(function)
    if kind is NamedColumns:
        return function  # type: ignore[return-value]
    if issubclass(kind, (int, str, np.integer)):
        return NamedColumns(positions=(_position(function, columns),))
    if issubclass(kind, Sequence) and not callable(function):
        chosen: tuple[Any, ...] = tuple(function)  # type: ignore[arg-type]
        return NamedColumns(positions=tuple(_position(column, columns) for column in chosen))
    if not callable(function):
        raise ParameterError(
            "function",
            kind,
            expected="a function of rows, a column, or a list of columns",
            remedy="pass study.mean('age', …) or study.mean(lambda rows: rows[:, 0], …)",
        )
    return function


def row_function(
    function: RowFunction, columns: Sequence[str], *, width: int
) -> Callable[[Block], Any]:
    """Return a function of blocks, refusing named columns that are not `width` many.

    A caller's function is not tried: it may know internal answers, and an error would reveal
    something about them. Try it before there are internal answers, with `try_function`.
    """
    mapped = as_function(function, columns)
    if type(mapped) is NamedColumns and mapped.width != width:
        raise ParameterError(
            "columns",
            function,
            expected=f"{width} columns, the dimension of the result",
            remedy="name as many columns as the lattice has dimensions (one for keys)",
        )
    return mapped


@value
class NamedColumns:
    """A function that returns the chosen columns of a block, without copying the others."""

    positions: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.positions)

    def __call__(self, rows: Block) -> Block:
        """Return the columns, as a view if they are contiguous."""
        first = self.positions[0]
        if self.positions == tuple(range(first, first + self.width)):
            return rows[:, first : first + self.width]
        return rows[:, list(self.positions)]


def is_columns(function: object) -> bool:
    """Tell whether a function is that of named columns."""
    return type(function) is NamedColumns


@final
@dataclass(frozen=True, slots=True)
class Rowwise:
    """A function of this library's tasks: elementwise, so that no row changes another's value.

    It is evaluated on blocks and its treatment of rows is `proven`, so a function or class of the
    caller is refused (`is_trusted_code`).
    """

    function: Callable[[Block], Any]

    def __post_init__(self) -> None:
        require(
            is_trusted_code(self.function),
            "function",
            type(self.function),
            expected="a function of this library's tasks that holds no object of the caller",
            remedy="pass the function itself to the study",
        )

    def __call__(self, rows: Block) -> Any:
        """Return the function's values for a block."""
        return self.function(rows)


def evaluate(function: Callable[[Block], Any], rows: Block, *, width: int, rowwise: bool) -> Block:
    """Return the function's values for each row as an (n, width) array; NaN where it fails.

    The function gets a read-only block first and, if that fails, a copy that it may overwrite. The
    result may share memory with the block: do not write into it.

    >>> evaluate(lambda rows: 1 / rows, np.array([[4.0], [0.0]]), width=1, rowwise=False)
    array([[0.25],
           [ inf]])
    """
    if type(function) is NamedColumns:
        return function(rows)
    with quiet(), Watch() as watch:
        if not rowwise:
            values = _attempt(function, _read_only(rows), width, watch)
            if values is None:
                values = _attempt(function, rows.copy(), width, watch)
            if values is not None:
                return values
        return _one_by_one(function, rows, width, rowwise, watch)


def _read_only(rows: Block) -> Block:
    view: Block = rows.view()
    view.flags.writeable = False
    return view


def whole_rows(rows: Block) -> Block:
    """Return the rows, with NaN throughout a row in which any number is missing.

    For statistics that use the numbers of a row together; the lattice maps such a row to zero.

    >>> whole_rows(np.array([[1.0, 2.0], [3.0, np.nan]])).tolist()
    [[1.0, 2.0], [nan, nan]]
    """
    missing = np.isnan(rows).any(axis=1, keepdims=True)
    return np.where(missing, np.nan, rows) if missing.any() else rows


def _one_by_one(
    function: Callable[[Block], Any], rows: Block, width: int, rowwise: bool, watch: Watch
) -> Block:
    """Return the function's values of each row by itself, NaN where it fails."""
    result = np.full((len(rows), width), np.nan)
    failed = np.zeros(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        single = _attempt(function, rows[i : i + 1].copy(), width, watch)
        if single is None:
            failed[i] = True
        else:
            result[i] = single[0]
    if rowwise or failed.all():
        return result
    # BLAS may round a single row differently from the same row inside a block, so that one row that
    # fails would change the values of all others. So the block is evaluated again in its own
    # layout, with a row that works in the place of each failed one.
    repaired = rows.copy()
    repaired[failed] = rows[np.argmin(failed)]
    values = _attempt(function, repaired, width, watch)
    if values is not None:
        result[~failed] = values[~failed]
    return result


def _attempt(
    function: Callable[[Block], Any], rows: Block, width: int, watch: Watch
) -> Block | None:
    """Return the function's values as (n, width) floats; None if it fails or has another shape."""
    try:
        values = np.asarray(function(rows))
    except BaseException:  # no error of any kind may become an output
        if watch.arrived:
            raise
        return None
    return _in_shape(values, len(rows), width)


def _in_shape(values: npt.NDArray[Any], rows: int, width: int) -> Block | None:
    """Return real values as (n, width) floats; None if they have another type or shape."""
    # Objects and texts are not read: NumPy chooses such a type for a block because of one row.
    if values.dtype.kind not in "biuf":
        return None
    one_number_per_row = width == 1 and values.shape == (rows,)
    one_row = rows == 1 and values.ndim < 2 and values.size == width
    if values.shape == (rows, width) or one_number_per_row or one_row:
        return values.astype(np.float64, copy=False).reshape(rows, width)
    return None


def try_function(function: Callable[[Block], Any], columns: int, *, width: int) -> None:
    """Refuse a function that does not return `width` numbers for a public row of zeros.

    Called while planning. A function that raises an error for that row is accepted, since it may
    work for others.
    """
    with quiet(), Watch() as watch:
        try:
            values = np.asarray(function(np.zeros((1, columns))))
            fits = _in_shape(values, 1, width) is not None
            seen = f"returns {values.dtype} of shape {values.shape} for one row"
        except BaseException:  # also a KeyboardInterrupt of its own
            if watch.arrived:
                raise
            return
    if not fits:
        raise ParameterError(
            "function",
            seen,
            expected=f"real numbers of shape (n, {width}) for a block of n rows",
            remedy=f"return {width} number(s) for each row, and pass a lattice of that dimension",
        )


def _position(column: Any, columns: Sequence[str]) -> int:
    """Return the position of a column that is named, or given by its position."""
    if isinstance(column, (str, ExtraColumn)) and column in columns:
        return list[Any](columns).index(column)
    is_integer = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if is_integer and 0 <= column < len(columns):
        return int(column)
    raise ParameterError(
        "column",
        column,
        expected=f"one of {list(columns)[:10]}, or its position",
        remedy="name a column of the source",
    )


def without_blanks(values: Block, rows: Block) -> Block:
    """Return a function's values for the rows, with NaN for a row without any cell.

    >>> without_blanks(np.array([[1.0], [0.0]]), np.array([[3.0, np.nan], [np.nan, np.nan]]))
    array([[ 1.],
           [nan]])
    """
    blank = np.isnan(rows).all(axis=1, keepdims=True)
    return np.where(blank, np.nan, values) if blank.any() else values
