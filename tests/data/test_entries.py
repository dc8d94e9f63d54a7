"""Columns and lists of rows: what one entry is never decides how the others are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from zerodelta.data.entries import as_entries, as_objects, as_rows
from zerodelta.errors import ParameterError


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
def test_an_odd_entry_of_a_column_stays_and_changes_no_other(place: int, odd: Any) -> None:
    column: list[Any] = [1.0, "2", None, 4]
    column[place] = odd
    found = as_rows(column)
    assert found.shape == (4,)
    assert all(entry is given for entry, given in zip(found, column, strict=True))


def test_entries_of_a_table_stay_what_they_are() -> None:
    odd = Hostile()
    found = as_rows([[1, odd], [[2, 3], 4]])
    assert found.shape == (2, 2)
    assert found[0, 1] is odd
    assert found[1, 0] == [2, 3]


def test_without_a_form_that_most_rows_have_a_list_is_a_column() -> None:
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


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_and_a_frame_of_one_column_are_their_entries(library: str) -> None:
    frames = pytest.importorskip(library)
    for entries in ([1, 2], ["a", "b"], [0.5, 1.5]):
        series = frames.Series(entries)
        assert as_entries(series).tolist() == entries
        assert as_entries(series.to_frame()).tolist() == [[entry] for entry in entries]
    assert as_entries(frames.DataFrame({"a": [1], "b": ["x"]})).tolist() == [[1, "x"]]
