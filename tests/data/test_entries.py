"""Columns and lists of rows: what one entry is never decides how the others are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from zerodelta.data.entries import as_entries, as_objects, as_rows
from zerodelta.data.lookup import Lookup
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite


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
@pytest.mark.parametrize("place", [0, 1, -1])
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
@pytest.mark.parametrize("place", [0, 1, -1])
def test_an_odd_entry_of_a_column_changes_no_other(place: int, odd: Any) -> None:
    """A list of one entry is that entry, any other is none."""
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


def test_without_a_width_that_most_rows_have_a_list_is_a_column() -> None:
    assert as_rows([]).shape == (0,)
    assert as_rows([[1, 2], [3]]).shape == (2,)
    assert as_rows([[1, 2], 3]).shape == (2,)
    assert as_rows([[], []]).shape == (2,)


def test_what_is_masked_is_missing() -> None:
    whole = as_entries(np.ma.masked_equal(np.array([1, 2, 2**60 + 1]), 2))
    assert whole.tolist() == [1, None, 2**60 + 1]
    short = as_entries(np.ma.masked_equal(np.array([1, 2], dtype=np.float32), 2))
    assert short.dtype == np.float32
    assert math.isnan(short[1])
    assert as_entries(np.ma.masked_equal(np.ones((2, 2), dtype=int), 1)).shape == (2, 2)


def test_what_is_no_column_is_refused_by_its_type() -> None:
    with pytest.raises(ParameterError, match=r"^values = "):
        as_objects(5)


@pytest.mark.parametrize("entry", [None, 2])
def test_a_null_in_an_arrow_array_raises_nothing(entry: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    for build in (arrow.array, lambda entries: arrow.chunked_array([entries])):
        assert as_entries(build([1, entry, 2**60 + 1])).tolist() == [1, entry, 2**60 + 1]
        assert as_entries(build(["a", None])).tolist() == ["a", None]


def test_a_null_changes_no_other_entry_of_a_column_that_is_no_series() -> None:
    """Neither the integers beyond 2^53 nor the type of short floats, which an option is read in."""
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    large, short = [2**60 + 1, 3], [0.1, 0.2]
    builds: list[tuple[list[Any], Callable[[list[Any]], Any]]] = [
        (large, lambda entries: pandas.array(entries, dtype="Int64")),
        (large, lambda entries: pandas.Index(entries, dtype="UInt64")),
        (large, lambda entries: pandas.array(entries, dtype="int64[pyarrow]")),
        (large, lambda entries: arrow.array(entries, type=arrow.int64())),
        (short, lambda entries: arrow.array(entries, type=arrow.float32())),
        (short, lambda entries: pandas.Index(entries, dtype="float32[pyarrow]")),
    ]
    for entries, build in builds:
        whole, holed = as_entries(build(entries)), as_entries(build([entries[0], None]))
        options = Finite([*large, *short])
        found = [Lookup(options, column.dtype).find(column[0]) for column in (whole, holed)]
        assert found == [options.find(entries[0])] * 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_and_a_frame_of_one_column_are_their_entries(library: str) -> None:
    frames = pytest.importorskip(library)
    for entries in ([1, 2], ["a", "b"], [0.5, 1.5]):
        series = frames.Series(entries)
        assert as_entries(series).tolist() == entries
        assert as_entries(series.to_frame()).tolist() == [[entry] for entry in entries]
    assert as_entries(frames.DataFrame({"a": [1], "b": ["x"]})).tolist() == [[1, "x"]]
