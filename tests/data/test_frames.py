"""Data frames of every library give the integers that the same array gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from zerodelta.data.arrays import ArraySource
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint

LATTICE = FixedPoint.box(dimension=4, lower=-4, upper=4, steps=1000)
NUMBERS: dict[str, list[Any]] = {
    "height": [0.5, None, -1.25],
    "age": [1, 2, 3],
    "member": [True, False, True],
    "note": ["1.5", "none", ""],
}
ARRAY = np.array(
    [[0.5, 1, 1, 1.5], [math.nan, 2, 0, math.nan], [-1.25, 3, 1, math.nan]], dtype=np.float64
)


def frame(library: str, columns: dict[str, list[Any]]) -> Any:
    module = pytest.importorskip(library)
    build = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    return getattr(module, build)(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_its_array(library: str) -> None:
    source = ArraySource(frame(library, NUMBERS))
    assert source.columns == ("height", "age", "member", "note")
    assert source.rows == 3
    np.testing.assert_array_equal(np.concatenate(list(source.blocks())), ARRAY)
    whole = ArraySource(ARRAY)
    assert source.sum(list(NUMBERS), LATTICE).tolist() == whole.sum([0, 1, 2, 3], LATTICE).tolist()
    assert source.counts("age", 4).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_named_columns_come_in_the_order_named(library: str) -> None:
    source = ArraySource(frame(library, NUMBERS), columns=["age", "height"], batch=2)
    assert source.columns == ("age", "height")
    np.testing.assert_array_equal(np.concatenate(list(source.blocks())), ARRAY[:, [1, 0]])
    with pytest.raises(ParameterError, match=r"^columns = "):
        ArraySource(frame(library, NUMBERS), columns=["weight"])
    with pytest.raises(ParameterError, match=r"^columns = "):
        ArraySource(frame(library, NUMBERS), columns="age")


def test_nullable_pandas_columns_hold_nan() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "whole": pandas.array([1, None], dtype="Int64"),
            "flag": pandas.array([True, None], dtype="boolean"),
            "odd": pandas.Series([{}, 2], dtype=object),
        }
    )
    blocks = list(ArraySource(table).blocks())
    np.testing.assert_array_equal(blocks[0], [[1, 1, math.nan], [math.nan, math.nan, 2]])


def test_a_lazy_frame_is_refused_with_the_remedy() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ParameterError, match=r"collect\(\)"):
        ArraySource(polars.LazyFrame({"a": [1.0]}))


def test_an_integer_beyond_floats_in_an_arrow_column_does_not_raise() -> None:
    """A checked cast of the whole column would raise, and name the value, because of one row."""
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [1, 2, 2**53 + 1]})
    (block,) = ArraySource(table).blocks()
    assert block.reshape(-1).tolist() == [1.0, 2.0, float(2**53 + 1)]
