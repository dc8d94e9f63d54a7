"""Data frames of every library give the integers that the same array gives."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.data.isolation import reveal
from zerodelta.data.source import is_trusted_source
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint

LATTICE = FixedPoint.box(dimension=3, lower=-4, upper=4, steps=1000)
NUMBERS: dict[str, list[Any]] = {
    "height": [0.5, None, -1.25],
    "age": [1, 2, 3],
    "member": [True, False, True],
}
ARRAY = np.array([[0.5, 1, 1], [math.nan, 2, 0], [-1.25, 3, 1]], dtype=np.float64)


BUILD: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def frame(library: str, columns: dict[str, Any]) -> Any:
    return BUILD[library](columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_its_array(library: str) -> None:
    source = ArraySource(frame(library, NUMBERS))
    assert source.columns == ("height", "age", "member")
    assert source.rows == 3
    np.testing.assert_array_equal(np.concatenate(list(opened(source).blocks())), ARRAY)
    whole = ArraySource(ARRAY)
    assert (
        opened(source).sum(list(NUMBERS), LATTICE).tolist()
        == opened(whole).sum([0, 1, 2], LATTICE).tolist()
    )
    assert opened(source).counts("age", 4).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_named_columns_come_in_the_order_named(library: str) -> None:
    source = ArraySource(frame(library, NUMBERS), columns=["age", "height"], batch=2)
    assert source.columns == ("age", "height")
    np.testing.assert_array_equal(np.concatenate(list(opened(source).blocks())), ARRAY[:, [1, 0]])
    with pytest.raises(ParameterError, match=r"^columns = "):
        ArraySource(frame(library, NUMBERS), columns=["weight"])
    with pytest.raises(ParameterError, match=r"^columns = "):
        ArraySource(frame(library, NUMBERS), columns="age")


def test_nullable_pandas_columns_hold_nan() -> None:
    table = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "flag": pd.array([True, None], dtype="boolean"),
            "odd": pd.Series([{}, 2], dtype=object),
        }
    )
    blocks = list(opened(ArraySource(table)).blocks())
    np.testing.assert_array_equal(blocks[0], [[1, 1, math.nan], [math.nan, math.nan, 2]])


def test_a_lazy_frame_is_refused_with_the_remedy() -> None:
    with pytest.raises(ParameterError, match=r"collect\(\)"):
        ArraySource(pl.LazyFrame({"a": [1.0]}))


def test_an_integer_beyond_floats_in_an_arrow_column_does_not_raise() -> None:
    """A checked cast of the whole column would raise, and name the value, because of one row."""
    table = pa.table({"a": [1, 2, 2**53 + 1]})
    (block,) = opened(ArraySource(table)).blocks()
    assert block.reshape(-1).tolist() == [1.0, 2.0, float(2**53 + 1)]


TEXTS: dict[str, Any] = {
    "arrow": pa.table({"income": [1.0, 2.0], "city": ["Rome", "7"]}),
    "arrow large": pa.table({"city": pa.array(["Rome", "7"], type=pa.large_string())}),
    "arrow dictionary": pa.table({"city": pa.array(["Rome", "7"]).dictionary_encode()}),
    "polars": pl.DataFrame({"income": [1.0, 2.0], "city": ["Rome", "7"]}),
    "polars categorical": pl.DataFrame({"city": pl.Series(["Rome"], dtype=pl.Categorical)}),
    "polars enum": pl.DataFrame({"city": pl.Series(["7"], dtype=pl.Enum(["7"]))}),
    "pandas string": pd.DataFrame({"city": pd.Series(["Rome", "7"], dtype="string")}),
    "pandas arrow": pd.DataFrame({"city": pd.Series(["7"], dtype=pd.ArrowDtype(pa.string()))}),
    "lists": pl.DataFrame({"city": [[1], [2]]}),
    "dates": pd.DataFrame({"city": pd.to_datetime(["2020-01-01"])}),
    "periods": pd.DataFrame({"city": pd.period_range("2020", periods=2, freq="D")}),
    "intervals": pd.DataFrame({"city": pd.interval_range(0, 2)}),
    "sparse dates": pd.DataFrame(
        {"city": pd.Series(pd.arrays.SparseArray(pd.to_datetime(["2020-01-01"]).to_numpy()))}
    ),
    "bytes": pa.table({"city": [b"7", b"8"]}),
    "polars bytes": pl.DataFrame({"city": [b"7", b"8"]}),
    "large bytes": pa.table({"city": pa.array([b"7"], type=pa.large_binary())}),
    "fixed bytes": pa.table({"city": pa.array([b"7"], type=pa.binary(1))}),
    "maps": pa.table({"city": pa.array([[("a", 1)]], type=pa.map_(pa.string(), pa.int64()))}),
    "months": pa.table({"city": pa.nulls(2, pa.month_day_nano_interval())}),
    "pandas arrow maps": pd.DataFrame(
        {
            "city": pd.Series(
                pd.arrays.ArrowExtensionArray(pa.nulls(2, pa.map_(pa.string(), pa.int64())))
            )
        }
    ),
}

HOLD_NUMBERS: dict[str, Any] = {
    "null": pa.table({"a": pa.nulls(2)}),
    "polars null": pl.DataFrame({"a": [None, None]}),
    "pandas arrow null": pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(2)))}),
    "decimal": pa.table({"a": pa.array([Decimal("1.5"), None])}),
    "wide decimal": pa.table({"a": pa.array([Decimal("1.5"), None], type=pa.decimal256(50, 2))}),
    "polars decimal": pl.DataFrame({"a": [Decimal("1.5"), None]}),
    "pandas decimal": pd.DataFrame(
        {"a": pd.Series([Decimal("1.5"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2)))}
    ),
    "sparse": pd.DataFrame({"a": pd.Series(pd.arrays.SparseArray([1.5, np.nan]))}),
    "sparse objects": pd.DataFrame(
        {"a": pd.Series(pd.arrays.SparseArray(np.array(["1.5", None], dtype=object)))}
    ),
    "complex": pd.DataFrame({"a": pd.Series([1.5 + 0j, 1j])}),
    "long double": pd.DataFrame({"a": np.array([1.5, np.nan], dtype=np.longdouble)}),
    "half": pd.DataFrame({"a": np.array([1.5, np.nan], dtype=np.float16)}),
    "objects": pl.DataFrame({"a": pl.Series(["1.5", {}], dtype=pl.Object)}),
    "dictionary": pa.table({"a": pa.array([1.5, None]).dictionary_encode()}),
    "wide integers": pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Int128)}),
}


@pytest.mark.parametrize("name", HOLD_NUMBERS)
def test_a_type_of_numbers_is_read_whatever_its_library_calls_it(name: str) -> None:
    (block,) = opened(ArraySource(HOLD_NUMBERS[name])).blocks()
    expected = {"wide integers": 1.0}.get(name, math.nan if "null" in name else 1.5)
    np.testing.assert_array_equal(block[:, 0], [expected, math.nan])


@pytest.mark.parametrize("name", TEXTS)
def test_a_column_that_is_text_by_type_is_refused_where_numbers_are_needed(name: str) -> None:
    """By its type alone, before anything is spent; naming the column and the remedy."""
    bounds: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}
    table = TEXTS[name]
    for ask in (
        lambda: ArraySource(table),
        lambda: zd.mean(table, **bounds),
        lambda: zd.quantile(table, **bounds, q=0.5),
        lambda: zd.kmeans(table, clusters=2, **bounds),
        lambda: zd.Study(table, epsilon=1, publish=zd.Finite(2), rounds=1),
        lambda: zd.sklearn.KMeans(n_clusters=2, epsilon=1, bounds=(0, 1)).fit(table),
    ):
        with pytest.raises(ParameterError, match=r"^column 'city' = .*leave the column out"):
            ask()


@pytest.mark.parametrize("dtype", [object, "str"])
def test_objects_and_texts_of_pandas_are_read_cell_by_cell(dtype: Any) -> None:
    """Their type follows from the cells: it must decide nothing."""
    (block,) = opened(
        ArraySource(pd.DataFrame({"a": pd.Series(["1.5", "true", "x"], dtype=dtype)}))
    ).blocks()
    assert block[:2, 0].tolist() == [1.5, 1.0]
    assert math.isnan(block[2, 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", ["maybe", "", None, 5, {}])
def test_one_odd_cell_among_truths_changes_no_other(odd: Any) -> None:
    """A CSV reader makes booleans of such a column, and texts beside one odd cell."""
    clean = ["true", "TRUE", "True", "tRuE"]
    lattice = FixedPoint.box(dimension=1, lower=0, upper=1, steps=100)
    alone = opened(ArraySource([odd])).sum(0, lattice)
    for cells in (clean, [True] * 4):
        for frame_of in (pd.Series, lambda cells: pd.Series(cells, dtype=object)):
            total = opened(ArraySource(frame_of([*cells, odd]))).sum(0, lattice)
            assert (total - alone).tolist() == [400]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_missing_cell_moves_no_other_column(library: str) -> None:
    lattice = FixedPoint.box(dimension=2, lower=0, upper=1, steps=100)
    table = {"a": [1.0, 1.0, 1.0], "b": [None, math.nan, 0.0]}
    assert opened(ArraySource(frame(library, table))).sum([0, 1], lattice).tolist() == [300, -100]


def test_a_study_reads_its_rows_once() -> None:
    rows = np.ones((50, 2))
    kept = opened(ArraySource(rows), keep=True)
    lattice = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=100)
    assert kept.sum(0, lattice).tolist() == [5000]
    rows[:] = -1.0
    assert kept.sum(0, lattice).tolist() == kept.sum(1, lattice).tolist() == [5000]
    assert opened(ArraySource(rows)).sum(0, lattice).tolist() == [-5000]
    (block,) = kept.blocks()
    assert not block.flags.writeable
    answers = []

    def program(study: Any) -> int:
        for value in (1.0, -1.0, 0.5):
            rows[:] = value
            answers.append(reveal(study.mean(0)))
        return 0

    study = zd.Study(rows, epsilon=1e6, publish=zd.Finite(2), rounds=3, bounds=(-1, 1))
    study.run(program, rehearse=False)
    assert all(abs(float(answer) - 1.0) < 0.1 for answer in answers)


def test_only_our_own_classes_are_ours() -> None:
    class Pretender(ArraySource):  # type: ignore[misc]
        pass

    assert is_trusted_source(ArraySource(np.zeros(2)))
    assert not is_trusted_source(Pretender(np.zeros(2)))
    assert not is_trusted_source(np.zeros(2))
