"""Columns and frames of any container: one entry never decides how the others are read."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
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
from zerodelta.data.cells import OptionIndex
from zerodelta.data.columns import Unread, array_cells, as_frame, as_objects, as_rows
from zerodelta.data.isolation import reveal
from zerodelta.data.source import is_trusted_source
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint


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


# -- frames ---------------------------------------------------------------------------------------


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


def test_a_study_reads_its_rows_once() -> None:
    rows, answers = np.ones((50, 2)), []

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


# -- columns of texts -----------------------------------------------------------------------------


KINDS: dict[str, Any] = {"name": zd.text(20), "x": zd.number(0, 10), "g": zd.boolean()}


def people(cell: Any = "Ann Smith", rows: int = 60) -> Any:
    table = np.zeros(rows, dtype=[("name", "U40"), ("x", float), ("g", int)])
    table["name"], table["name"][3] = "7", cell
    return zd.open(table, columns=KINDS)


@pytest.mark.parametrize("cell", ["Ann Smith", "7", "nan", "1e400", "x" * 30, ""])
def test_texts_are_counted_whatever_they_say(cell: str) -> None:
    found = np.concatenate(list(opened(people(cell)["name"]).blocks()))
    there = cell not in ("nan", "", "x" * 30)
    assert np.nansum(found) == 60 - (not there)
    release = zd.count(people(cell), "name", epsilon=20, diagnostics="1/100")
    assert 50 < release.value < 70
    assert 50 < zd.count(people(cell).where("x >= 0"), "name", epsilon=20).value < 70


@pytest.mark.parametrize(
    "ask",
    [
        lambda p, **o: zd.mean(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.mean(p, ["name", "x"], data_norm=3, **o),
        lambda p, **o: zd.sum(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.variance(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.median(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.quantiles(p, "name", q=[0.5], bounds=(0, 1), **o),
        lambda p, **o: zd.cdf(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.trimmed_mean(p, "name", trim="1/10", bounds=(0, 1), **o),
        lambda p, **o: zd.select(p, ["name", "x"], bounds=(0, 1), **o),
        lambda p, **o: zd.queries.vote(p, lambda rows: 0, options=[0], **o),
        lambda p, **o: zd.select_model(p, {"a": 0}, score=lambda i, rows: rows[:, i], **o),
        lambda p, **o: zd.Study(p["name"], publish=zd.Finite(2), rounds=1, **o),
    ],
)
def test_nothing_else_is_made_of_texts(ask: Any) -> None:
    messages = set()
    for cell in ("7", "Ann Smith"):
        with pytest.raises(zd.errors.ParameterError, match=r"text|column of numbers") as refused:
            ask(people(cell), epsilon=1)
        messages.add(str(refused.value))
    assert len(messages) == 1


def test_a_study_has_the_other_columns() -> None:
    study = zd.Study(people(), epsilon=1, publish=zd.Finite(2), rounds=1)
    assert study.run(lambda s: int(float(s.mean("x")) > 5)).value in (0, 1)
