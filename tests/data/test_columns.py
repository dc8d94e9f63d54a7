"""Columns and lists of rows: what one entry is never decides how the others are read."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from zerodelta.data.cells import OptionIndex
from zerodelta.data.columns import Unread, array_cells, as_frame, as_objects, as_rows
from zerodelta.errors import ParameterError


def cells_of(values: Any) -> Any:
    return Unread(values).read()[0]


class Hostile:
    """An entry that raises whatever NumPy tries with it."""

    def __repr__(self) -> str:  # names of tests are the same in every process
        return "Hostile()"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    def __len__(self) -> int:
        raise RuntimeError("secret")

    def __float__(self) -> float:
        raise RuntimeError("secret")


class HostileList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("secret")

    def __len__(self) -> int:
        raise RuntimeError("secret")


ODD: list[Any] = [
    None,
    7,
    "text",
    [1],
    [1, 2, 3],
    [],
    {},
    Hostile(),
    HostileList(),
    np.ones((1, 1)),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("place", [1, 2, -1])
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_an_odd_row_of_a_table_is_missing_and_changes_no_other(
    kind: Any, place: int, odd: Any
) -> None:
    rows = [kind([i, i + 0.5]) for i in range(5)]
    plain = as_rows(rows)
    assert plain.shape == (5, 2)
    rows[place] = odd
    found = as_rows(rows)
    assert found[place].tolist() == [None, None]
    assert np.delete(found, place, axis=0).tolist() == np.delete(plain, place, axis=0).tolist()


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("place", [1, 2, -1])
def test_an_odd_entry_of_a_column_changes_no_other(place: int, odd: Any) -> None:
    """A list of one cell is that cell, any other is none; the first row has no width of its own."""
    column: list[Any] = [1.0, "2", None, 4]
    column[place] = odd
    found = as_rows(column)
    assert found.shape == (4,)
    column[place] = (1 if odd == [1] else None) if isinstance(odd, list) else odd
    assert all(entry is given for entry, given in zip(found, column, strict=True))


@pytest.mark.parametrize("listed", range(8))
def test_how_many_entries_of_a_column_are_lists_changes_none(listed: int) -> None:
    """No vote: the same numbers, whatever number of them comes in a list."""
    column = [[i] if i < listed else i for i in range(7)]
    assert as_rows(column).tolist() == list(range(7))


def test_entries_of_a_table_stay_what_they_are() -> None:
    odd = Hostile()
    found = as_rows([[1, odd], [[2, 3], 4]])
    assert found.shape == (2, 2)
    assert found[0, 1] is odd
    assert found[1, 0] == [2, 3]


def test_the_first_row_has_the_width_of_all() -> None:
    """No vote: whatever the other rows are, the shape is public."""
    assert as_rows([]).shape == (0,)
    assert as_rows([[1, 2], [3]]).tolist() == [[1, 2], [None, None]]
    assert as_rows([[1, 2], 3, 4, 5]).tolist() == [[1, 2], *[[None, None]] * 3]
    assert as_rows([1, [2, 3], [4, 5], [6, 7]]).tolist() == [1, None, None, None]
    assert as_rows([[], []]).tolist() == [None, None]
    assert as_rows([[1], [2, 3]]).tolist() == [1, None]
    tall = [[0.0, 1.0]] * 3
    for other in ([1], [1, 2, 3], 5, "text", None):
        assert as_rows([*tall, *[other] * 9]).shape == (12, 2)


def test_what_is_masked_is_missing() -> None:
    whole = array_cells(np.ma.masked_equal(np.array([1, 2, 2**60 + 1]), 2))
    assert whole.tolist() == [1, None, 2**60 + 1]
    short = array_cells(np.ma.masked_equal(np.array([1, 2], dtype=np.float32), 2))
    assert short.dtype == np.float32
    assert math.isnan(short[1])
    assert array_cells(np.ma.masked_equal(np.ones((2, 2), dtype=int), 1)).shape == (2, 2)


def test_what_is_no_column_is_refused_by_its_type() -> None:
    with pytest.raises(ParameterError, match=r"^values = "):
        as_objects(5)


@pytest.mark.parametrize("cell", [None, 2])
def test_a_null_in_an_arrow_array_raises_nothing(cell: Any) -> None:
    for build in (pa.array, lambda cells: pa.chunked_array([cells])):
        assert cells_of(build([1, cell, 2**60 + 1])).tolist() == [1, cell, 2**60 + 1]
        assert cells_of(build(["a", None])).tolist() == ["a", None]


LARGE, SHORT = [2**60 + 1, 3], [0.1, 0.2]
NULLABLE: list[tuple[list[Any], Callable[[list[Any]], Any]]] = [
    (LARGE, lambda cells: pd.array(cells, dtype="Int64")),
    (LARGE, lambda cells: pd.Index(cells, dtype="UInt64")),
    (LARGE, lambda cells: pd.array(cells, dtype="int64[pyarrow]")),
    (LARGE, lambda cells: pd.Series(pd.Categorical(cells))),
    (LARGE, lambda cells: pa.array(cells, type=pa.int64())),
    (LARGE, lambda cells: pa.array(cells, type=pa.int64()).dictionary_encode()),
    (LARGE, lambda cells: pl.Series(cells, dtype=pl.Int64)),
    (LARGE, lambda cells: pl.Series(cells, dtype=pl.Int128)),
    (SHORT, lambda cells: pa.array(cells, type=pa.float32())),
    (SHORT, lambda cells: pa.array(cells, type=pa.float32()).dictionary_encode()),
    (SHORT, lambda cells: pd.Index(cells, dtype="float32[pyarrow]")),
    (SHORT, lambda cells: pd.Series(cells, dtype="Float32")),
    (SHORT, lambda cells: pd.Series(pd.Categorical(np.array(cells, dtype=np.float32)))),
    (SHORT, lambda cells: pl.Series(cells, dtype=pl.Float32)),
]


@pytest.mark.parametrize("case", range(len(NULLABLE)))
def test_a_null_changes_no_other_cell(case: int) -> None:
    """Neither the integers beyond 2^53 nor the type of short floats."""
    cells, build = NULLABLE[case]
    options = OptionIndex([*LARGE, *SHORT])
    for column in (cells_of(build(cells)), cells_of(build([cells[0], None]))):
        assert options.find(column[0]) == (0 if cells is LARGE else 2)


@pytest.mark.parametrize("frames", [pd, pl], ids=["pandas", "polars"])
def test_a_series_and_a_frame_of_one_column_are_their_cells(frames: Any) -> None:
    for cells in ([1, 2], ["a", "b"], [0.5, 1.5]):
        series = frames.Series("x", cells) if frames is pl else frames.Series(cells, name="x")
        assert cells_of(series).tolist() == cells
        assert cells_of(series.to_frame()).tolist() == cells
    both = Unread(frames.DataFrame({"a": [1], "b": ["x"]})).read()
    assert [column.tolist() for column in both] == [[1], ["x"]]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["1", 1]),
        pa.table([[1], [2]], names=["a", "a"]),
    ],
    ids=["pandas", "pandas numbers", "arrow"],
)
def test_columns_of_one_name_are_refused(frame: Any) -> None:
    with pytest.raises(ParameterError, match=r"^columns of data = "):
        as_frame(frame)


def test_rows_of_a_subclass_are_read_without_its_methods() -> None:
    pair = namedtuple("pair", "a b")
    assert as_rows([pair(1, 2), pair(3, 4)]).tolist() == [[1, 2], [3, 4]]
    assert as_rows([[1, 2], HostileList([3, 4])]).tolist() == [[1, 2], [3, 4]]
