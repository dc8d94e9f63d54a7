"""Declared kinds: every physical form of a column is read to the same numbers, codes or texts."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from data.odd_cells import ODD, objects
from data.test_cells import MISSING, NUMBERS
from zerodelta.data.columns import Unread
from zerodelta.data.kinds import Category, Kind
from zerodelta.errors import ParameterError

KINDS: dict[str, Kind] = {
    "number": zd.number(0, 120),
    "integer": zd.number(-5, 120, integer=True),
    "category": zd.category(["a", "b", 1, 2.5, "ä"]),
    "other": zd.category(["a", 0, "0.1", 2**53 + 1], other=True),
    "missing": zd.category(["a", "true", -1], missing=True),
    "both": zd.category(["yes", 7, 1e22], other=True, missing=True),
    "exact": zd.category(["01", "1", "a", "1.5"], exact=True, other=True),
    "boolean": zd.boolean(),
    "boolean or missing": zd.boolean(missing=True),
    "text": zd.text(6),
    "letters": zd.text(4, alphabet="abc01"),
    "exact text": zd.text(8, exact=True),
    "month": zd.date("1999-12-31", "2024-02-29"),
    "day": zd.date("1969-12-30", "1970-01-05", by="day"),
    "week": zd.date("2020-12-31", "2021-01-12", by="week", format="%Y%m%d"),
}


def one_by_one(kind: Kind, cells: list[Any]) -> list[Any]:
    """Return what each cell alone, in an array of objects, is read to; None if it is missing."""
    return plain([kind.read(objects([cell]))[0] for cell in cells])


def plain(values: Any) -> list[Any]:
    return [None if value is None or value != value else value for value in values]


def same(kind: Kind, column: Any, cells: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kind.read(column)
        assert found.shape == (len(cells),)
        assert found.dtype == (object if "text" in kind.declaration else np.float64)
        assert plain(found) == one_by_one(kind, cells)


TEXTS = ["", " ", "a", "b", "A", "ä", "1", "01", " 1 ", "+1", "1.0", "1.", ".5", "-0", "0.1", "1e3"]
TEXTS += ["1e999", "-1e999", "1e-999", "inf", "-Infinity", "nan", "NaN", "null", "None", "true"]
TEXTS += ["TRUE", "false ", "yes", "No", "1_000", "0x10", "1,5", "٣", "１", "1\xa0", "\t1", "1\n"]
TEXTS += ["2.5", "9007199254740993", "1" * 400, "7", "1e22", "--1", "+-1", "1e", "e5", "x\0y", "-1"]
TEXTS += ["2024-02-29", "2023-02-29", "2024-02-30T10:00", "1999-12-31 23:59", "1970-01-01Tx"]
TEXTS += [
    "0000-01-01",
    "20210101",
    "２０２１0101",
    "1970-1-1",
    "0.1000000000000000055511151231257827",
]
text_cells = st.one_of(
    st.sampled_from(TEXTS),
    st.text(alphabet=st.sampled_from("019.+-eE _xinfTa,"), max_size=8),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.dates().map(str),
)
kinds = st.sampled_from(sorted(KINDS)).map(lambda name: KINDS[name])


def chunks(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array[:1], array[1:]], type=array.type)


TEXT_FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "objects": objects,
    "bytes": lambda cells: objects([c if c is None else c.encode() for c in cells]),
    "string": lambda cells: pa.array(cells, type=pa.string()),
    "large string": lambda cells: pa.array(cells, type=pa.large_string()),
    "view": lambda cells: pa.array(cells, type=pa.string()).cast(pa.string_view()),
    "binary": lambda cells: pa.array(cells, type=pa.string()).cast(pa.binary()),
    "dictionary": lambda cells: pa.array(cells, type=pa.string()).dictionary_encode(),
    "slice": lambda cells: pa.array(["x", *cells, None], type=pa.string())[1:-1],
    "chunks": lambda cells: chunks(pa.array(cells, type=pa.string())),
    "run ends": lambda cells: pa.compute.run_end_encode(pa.array(cells, type=pa.string())),
    "polars": lambda cells: pl.Series(cells, dtype=pl.String).to_arrow(),
    "pandas": lambda cells: Unread(pd.Series(cells, dtype=object)).read()[0],
}


@given(st.lists(st.none() | text_cells, max_size=8), kinds, st.sampled_from(sorted(TEXT_FORMS)))
def test_texts_are_read_alike_in_every_column(cells: list[Any], kind: Kind, form: str) -> None:
    same(kind, TEXT_FORMS[form](cells), cells)


@pytest.mark.parametrize("form", TEXT_FORMS)
@pytest.mark.parametrize("name", KINDS)
def test_every_odd_text_is_read_alike_in_every_column(name: str, form: str) -> None:
    same(KINDS[name], TEXT_FORMS[form]([*TEXTS, None]), [*TEXTS, None])


@pytest.mark.parametrize("text", TEXTS)
def test_one_odd_text_among_plain_numbers_is_read_as_if_alone(text: str) -> None:
    """Whole columns of plain numbers are read at once: Arrow would take inf and nan for some."""
    for cells in (["1", text], [None, text, " 2.5"]):
        same(KINDS["number"], pa.array(cells, type=pa.string()), cells)
        same(KINDS["integer"], pa.array(cells, type=pa.string()), cells)


@pytest.mark.parametrize("name", KINDS)
def test_numpy_texts_are_read_like_their_cells(name: str) -> None:
    cells = [text for text in TEXTS if "\0" not in text]
    same(KINDS[name], np.array(cells), cells)
    same(KINDS[name], np.array([cell.encode() for cell in cells]), cells)
    same(KINDS[name], np.array(cells, dtype=np.dtypes.StringDType()), cells)


NUMBER_TYPES = ["f8", "f4", "f2", "i8", "u8", "i4", "u4", "i2", "i1", "u1", "?"]
SOME_NUMBERS: list[Any] = [0, 1, 2, 2.5, -1, 7, 0.1, -0.0, 120.5, 2**53 + 1, 2**63 - 1, 1e22, 1e300]
SOME_NUMBERS += [math.inf, -math.inf, math.nan, 20210101, 1e-7, 2**64 - 1, -(2**63)]


def fitting(values: list[Any], kind: str) -> list[Any]:
    """Return the values as scalars of a NumPy type, without those that it cannot hold."""
    if kind[0] == "f" or kind == "?":
        with np.errstate(all="ignore"):
            return [np.dtype(kind).type(value) for value in values]
    ends = np.iinfo(kind)
    whole = [v for v in values if isinstance(v, int) and ends.min <= v <= ends.max]
    return [np.dtype(kind).type(value) for value in whole]


@given(
    st.lists(st.sampled_from(SOME_NUMBERS) | st.floats() | st.integers(-(2**63), 2**64 - 1)),
    st.sampled_from(NUMBER_TYPES),
    kinds,
    st.data(),
)
def test_numbers_are_read_alike_in_every_column(
    values: list[Any], kind: str, declared: Kind, data: st.DataObject
) -> None:
    cells = fitting(values, kind)
    array = np.array(cells, dtype=kind)
    same(declared, array, cells)
    arrow = pa.array(array)
    same(declared, arrow, cells)
    same(declared, arrow.dictionary_encode(), cells)
    same(declared, chunks(arrow), cells)
    nulls = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))))
    nulls = nulls.astype(bool)
    holes = [None if null else cell for cell, null in zip(cells, nulls, strict=True)]
    same(declared, pa.array(array, mask=nulls), holes)
    same(declared, pa.array(array, mask=nulls).dictionary_encode(), holes)


@given(
    st.lists(st.none() | st.decimals(-(10**9), 10**9, places=4), max_size=6),
    st.sampled_from([pa.decimal128(18, 4), pa.decimal256(40, 4)]),
    kinds,
)
def test_decimals_are_read_like_their_texts(
    cells: list[Decimal | None], kind: Any, declared: Kind
) -> None:
    rounded = [None if cell is None else round(cell, 4) for cell in cells]
    column = pa.array(rounded, type=kind)
    same(declared, column, column.to_pylist())
    if "exact" not in declared.declaration:
        texts = [None if cell is None else str(cell) for cell in column.to_pylist()]
        same(declared, column, texts)


def test_arrow_decimals_are_correctly_rounded() -> None:
    """Arrow's own conversion is not, for a good part of such numbers."""
    digits = [Decimal(7919 * i * i + 31) * Decimal(10**9 + 7) / 10**4 for i in range(2000)]
    with decimal.localcontext() as context:
        context.prec = 40
        column = pa.array([round(cell, 4) for cell in digits], type=pa.decimal128(30, 4))
    found = zd.number(0, 10**18).read(column)
    assert found.tolist() == [float(cell) for cell in column.to_pylist()]


DAYS = [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1, 1, 1), None]
DAYS += [datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), datetime.date(2021, 1, 3)]


@given(st.lists(st.none() | st.dates() | st.sampled_from(DAYS), max_size=6), kinds)
def test_dates_are_read_alike_in_every_column(cells: list[Any], kind: Kind) -> None:
    same(kind, pa.array(cells, type=pa.date32()), cells)
    same(kind, pa.array(cells, type=pa.date64()), cells)
    same(kind, np.array(cells, dtype="datetime64[D]"), cells)
    if "date" in kind.declaration and "format" not in kind.declaration:
        assert one_by_one(kind, cells) == one_by_one(kind, [c and str(c) for c in cells])
        days = [c and f"{c}T23:59:59.9Z" for c in cells]
        assert one_by_one(kind, cells) == one_by_one(kind, days)


@given(
    st.lists(st.none() | st.datetimes(datetime.datetime(1900, 1, 1)), max_size=6),
    st.sampled_from(["s", "ms", "us"]),
    kinds,
)
def test_timestamps_are_read_alike_in_every_column(cells: list[Any], unit: str, kind: Kind) -> None:
    same(kind, np.array(cells, dtype=f"datetime64[{unit}]"), cells)
    same(kind, pa.array(cells, type=pa.timestamp("us")), cells)
    same(kind, Unread(pd.Series(cells, dtype="datetime64[us]")).read()[0], cells)
    utc = [cell and cell.replace(tzinfo=datetime.timezone.utc) for cell in cells]
    same(kind, pa.array(utc, type=pa.timestamp("us", tz="Europe/Oslo")), cells)
    same(kind, objects(utc), cells)


def test_a_timestamp_is_the_day_in_utc() -> None:
    kind = zd.date("2024-01-01", "2024-01-09", by="day")
    east = datetime.timezone(datetime.timedelta(hours=5))
    cells = [
        datetime.datetime(2024, 1, 3, 4, 59, tzinfo=east),
        datetime.datetime(2024, 1, 3, 5, 0, tzinfo=east),
        pd.Timestamp("2024-01-03 04:59", tz="Asia/Karachi"),
        np.datetime64("2024-01-02T23:59:59"),
        datetime.datetime(1, 1, 1, tzinfo=east),  # the day before has no date
        pd.NaT,
    ]
    assert plain(kind.read(objects(cells))) == [1, 2, 1, 1, None, None]


class OwnZone(datetime.tzinfo):
    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        raise KeyboardInterrupt("a secret")

    dst = utcoffset

    def tzname(self, when: datetime.datetime | None) -> str:
        raise KeyboardInterrupt("a secret")


def test_no_code_of_a_cell_runs() -> None:
    cell = datetime.datetime(2024, 1, 3, tzinfo=OwnZone())
    assert plain(zd.date("2024-01-01", "2024-01-09").read(objects([cell]))) == [None]


@pytest.mark.filterwarnings("error")
def test_binary_dates_beyond_the_calendar_are_missing() -> None:
    kind = zd.date("0001-01-01", "9999-12-31", by="year")
    for unit in ("Y", "M", "W", "D", "h", "s", "ns", "25s", "7D"):
        cells = np.array([2**62, -(2**62), 2**63 - 1, 0], dtype=np.int64).view(f"M8[{unit}]")
        found = plain(kind.read(cells))
        assert found[3] == 1969
        if unit in ("Y", "M", "W", "D", "h", "s", "25s", "7D"):
            assert found[:3] == [None, None, None]
    assert plain(kind.read(np.array(["2020"], dtype=">M8[s]"))) == [2019]
    assert plain(kind.read(np.array([1, 2], dtype="m8[s]"))) == [None, None]


@pytest.mark.parametrize("name", KINDS)
def test_texts_that_are_no_utf8_are_missing(name: str) -> None:
    raw = pa.array([b"\xff", b"1", b"a\xc3", None], type=pa.binary())
    cells = [None, "1", None, None]
    same(KINDS[name], raw, cells)
    same(KINDS[name], raw.cast(pa.string(), safe=False), cells)
    same(KINDS[name], raw.cast(pa.string(), safe=False).dictionary_encode(), cells)
    same(KINDS[name], objects(raw.to_pylist()), cells)


UNREAD = {
    "null": pa.nulls(3),
    "list": pa.array([[1], None, [2, 3]]),
    "structure": pa.array([{"a": 1}, None, {"a": 2}]),
    "time": pa.array([1, None, 2], type=pa.time64("us")),
    "duration": pa.array([1, None, 2], type=pa.duration("s")),
    "durations": np.array([1, 2, 3], dtype="m8[s]"),
    "records": np.zeros(3, dtype=[("a", "f8")]),
}


@pytest.mark.parametrize("column", UNREAD)
@pytest.mark.parametrize("name", KINDS)
def test_columns_of_other_types_are_missing_and_none_is_refused(name: str, column: str) -> None:
    same(KINDS[name], UNREAD[column], [None] * 3)


LARGEST = {
    "decimals": pa.array([Decimal("9" * 60), Decimal("-" + "9" * 60), None], pa.decimal256(70, 6)),
    "integers": pa.array([2**63 - 1, -(2**63), None]),
    "bytes": pa.array([b"9" * 5000, b"\xff", None], pa.binary()),
    **{unit: pa.array([2**62, -(2**63), 0], pa.timestamp(unit)) for unit in ("s", "us")},
}


@pytest.mark.parametrize("column", LARGEST)
@pytest.mark.parametrize("name", KINDS)
def test_the_largest_cells_of_arrow_raise_nothing_and_change_no_other(
    name: str, column: str
) -> None:
    cells, kind = LARGEST[column], KINDS[name]
    alone = [kind.read(cells[place : place + 1])[0] for place in range(len(cells))]
    assert plain(kind.read(cells)) == plain(alone)


@pytest.mark.parametrize("name", KINDS)
def test_no_cells_are_read_to_no_values(name: str) -> None:
    for column in (objects([]), np.zeros(0), pa.array([], type=pa.string()), pa.nulls(0)):
        same(KINDS[name], column, [])
    same(KINDS[name], pa.chunked_array([], type=pa.float64()), [])
    same(KINDS[name], pa.array([None], type=pa.dictionary(pa.int8(), pa.string())), [None])


def test_uuids_are_texts() -> None:
    ids = [uuid.UUID(int=i << 100) for i in (1, 2)]
    kind = zd.text(36)
    assert kind.read(objects(ids)).tolist() == [str(each) for each in ids]
    if hasattr(pa, "uuid"):
        column = pa.array([*(each.bytes for each in ids), None], type=pa.uuid())
        assert kind.read(column).tolist() == [*map(str, ids), None]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", KINDS)
def test_an_odd_cell_changes_no_other_and_raises_nothing(name: str) -> None:
    kind, others = KINDS[name], ["a", 1, "2024-02-01", None, 2.5]
    alone = one_by_one(kind, others)
    for odd in ODD:
        found = plain(kind.read(objects([*others, ODD[odd]])))
        assert found[:-1] == alone, odd
        if kind.size is not None:
            assert found[-1] is None or 0 <= found[-1] < kind.size, odd


# -- numbers ----------------------------------------------------------------------------------


def test_number_cells_are_those_of_the_rule() -> None:
    cells = objects([*(cell for cell, _ in NUMBERS), *MISSING])
    expected = [*(value for _, value in NUMBERS), *[None] * len(MISSING)]
    assert plain(zd.number(0, 1).read(cells)) == expected


def test_floats_are_not_copied_where_they_can_be_used_as_they_are() -> None:
    column = pa.array(np.arange(5.0))
    assert np.shares_memory(zd.number(0, 9).read(column), column.to_numpy())


def test_missing_numbers_are_filled_as_declared() -> None:
    values = np.array([1.0, np.nan])
    assert plain(zd.number(0, 9).filled(values)) == [1, None]
    assert plain(zd.number(0, 9, missing=7).filled(values)) == [1, 7]
    assert plain(zd.number(0, 9, missing=None).filled(values)) == [1, 4.5]
    assert plain(zd.number(0, 9, missing=None, integer=True).filled(values)) == [1, 4]
    assert plain(values) == [1, None]


def test_whole_numbers_are_rounded() -> None:
    kind = zd.number(0, 120, integer=True)
    for column in (
        objects(["1.5", 2.5, 3.4]),
        np.array([1.5, 2.5, 3.4]),
        pa.array([1.5, 2.5, 3.4]),
    ):
        assert kind.read(column).tolist() == [2, 2, 3]
    assert kind.read(pa.array(["1.5", "2.5", " 3.4"])).tolist() == [2, 2, 3]


# -- what codes stand for ---------------------------------------------------------------------


def test_missing_cells_and_other_cells_have_the_last_codes() -> None:
    cells = objects(["a", "z", None, "b", ""])
    expected = {
        (False, False): ([0, None, None, 1, None], ("a", "b")),
        (True, False): ([0, 2, 2, 1, 2], ("a", "b", "other")),
        (False, True): ([0, None, 2, 1, 2], ("a", "b", "missing")),
        (True, True): ([0, 3, 2, 1, 2], ("a", "b", "missing", "other")),
    }
    for (other, missing), (codes, labels) in expected.items():
        kind = zd.category(["a", "b"], other=other, missing=missing)
        assert plain(kind.read(cells)) == codes
        assert kind.labels == labels
        assert kind.size == len(labels)
        assert kind.bounds == (Fraction(0), Fraction(len(labels) - 1))


@pytest.mark.parametrize("by", ["day", "week", "month", "quarter", "year"])
def test_the_label_of_a_date_is_that_of_its_period(by: str) -> None:
    first, last = datetime.date(2019, 12, 25), datetime.date(2021, 1, 9)
    kind = zd.date(first, last, by=by)
    days = [first + datetime.timedelta(i) for i in range((last - first).days + 1)]
    labels = {
        "day": [str(d) for d in days],
        "week": [f"{d.isocalendar()[0]}-W{d.isocalendar()[1]:02}" for d in days],
        "month": [f"{d:%Y-%m}" for d in days],
        "quarter": [f"{d.year}-Q{(d.month + 2) // 3}" for d in days],
        "year": [str(d.year) for d in days],
    }[by]
    codes = kind.read(objects(days)).astype(int)
    assert [kind.labels[code] for code in codes] == labels
    assert kind.size == len(set(labels)) == len(kind.labels)
    outside = [first - datetime.timedelta(1), last + datetime.timedelta(1)]
    assert plain(kind.read(objects(outside))) == [None, None]


def test_formats_are_declared() -> None:
    kind = zd.date("2024-01-01", "2024-12-31", by="day", format="%d.%m.%Y")
    cells = ["2.1.2024", "02.01.2024 10:00", "2024-01-02", "31.2.2024", "2.1.24", "٢.1.2024"]
    assert plain(kind.read(objects(cells))) == [1, 1, None, None, None, None]
    short = zd.date("1969-01-01", "2068-12-31", by="year", format="%m/%d/%y")
    assert plain(short.read(objects(["1/2/69", "01/02/00", "1/2/68", "13/1/00"]))) == [
        0,
        31,
        99,
        None,
    ]
    joined = zd.date("2024-01-01", "2024-12-31", by="day", format="%Y%m%d")
    for column in (objects([20240103, 20240103.0, "20240103"]), np.array([20240103.0] * 3)):
        assert plain(joined.read(column)) == [2, 2, 2]
    assert plain(joined.read(objects(["2024103", 2024103, True, 10**300]))) == [None] * 4


# -- what is refused --------------------------------------------------------------------------

REFUSED: dict[str, Callable[[], Any]] = {
    "bounds reversed": lambda: zd.number(1, 0),
    "equal bounds": lambda: zd.number(1, 1),
    "no bounds": lambda: zd.number(None, 1),  # type: ignore[arg-type]
    "infinite": lambda: zd.number(0, math.inf),
    "too far": lambda: zd.number(0, 1e200),
    "bounds of integers": lambda: zd.number(0, 1.5, integer=True),
    "missing outside": lambda: zd.number(0, 1, missing=2),
    "missing word": lambda: zd.number(0, 1, missing="drop"),
    "a text for a flag": lambda: zd.number(0, 1, integer="yes"),  # type: ignore[arg-type]
    "one text": lambda: zd.category("ab"),
    "a set has no order": lambda: zd.category({"a", "b"}),
    "a frozen set": lambda: zd.category(frozenset("ab")),
    "a dict": lambda: zd.category({"a": 1}),
    "no options": lambda: zd.category([]),
    "read alike": lambda: zd.category([1, "1.0"]),
    "missing option": lambda: zd.category(["a", None]),
    "empty option": lambda: zd.category(["a", ""]),
    "exact empty option": lambda: zd.category(["a", ""], exact=True),
    "exact number": lambda: zd.category(["01", 1], exact=True),
    "exact twice": lambda: zd.category(["01", "01"], exact=True),
    "option other": lambda: zd.category(["a", "other"], other=True),
    "option missing": lambda: zd.category(["a", "missing"], missing=True),
    "option of objects": lambda: zd.category([object()]),
    "option of pairs": lambda: zd.category([(1, 2)]),
    "no length": lambda: zd.text(0),
    "alphabet twice": lambda: zd.text(3, alphabet="aa"),
    "empty alphabet": lambda: zd.text(3, alphabet=""),
    "dates reversed": lambda: zd.date("2024-01-02", "2024-01-01"),
    "no date": lambda: zd.date("2024-02-30", "2024-03-01"),
    "another form": lambda: zd.date("20240101", "2024-03-01"),
    "a week": lambda: zd.date("2024-W01-1", "2024-03-01"),
    "by": lambda: zd.date("2024-01-01", "2024-03-01", by="months"),
    "format": lambda: zd.date("2024-01-01", "2024-03-01", format="%d %B %Y"),
    "format without a day": lambda: zd.date("2024-01-01", "2024-03-01", format="%m.%Y"),
    "open format": lambda: zd.date("2024-01-01", "2024-03-01", format="%Y%m%d%"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_declarations_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=r".*: expected .*; .*[.?]$"):
        REFUSED[name]()


def test_options_are_kept_as_plain_values() -> None:
    kind = zd.category([np.str_("a"), np.float32(0.1), np.int64(7), np.True_, Fraction(1, 2)])
    assert kind.options == ("a", 0.1, 7, True, 0.5)
    assert [type(option) for option in kind.options] == [str, float, int, bool, float]
    assert isinstance(kind, Category)
    assert kind == zd.category(["a", 0.1, 7, True, 0.5])
    assert hash(kind) == hash(zd.category(["a", 0.1, 7, True, 0.5]))


def test_a_kind_is_printed_as_it_is_declared() -> None:
    assert str(zd.number(0, "1/3", missing=None)) == "number(0, '1/3', missing='none')"
    assert str(zd.category(["a"], other=True)) == "category(['a'], other=True)"
    assert str(zd.boolean()) == "boolean()"
    assert str(zd.text(9)) == "text(9)"
    assert str(zd.date("2024-01-01", "2024-02-01")) == "date(2024-01-01, 2024-02-01, by='month')"
