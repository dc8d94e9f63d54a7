"""Schemas survive a round trip, conditions are checked before a row is read, made-up rows fit."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from data.test_kinds import KINDS
from zerodelta.data.chosen import Predicate
from zerodelta.data.declare import Date
from zerodelta.data.kinds import Kind, Number, Text
from zerodelta.data.schema import Schema
from zerodelta.errors import ParameterError

FULL = """
name = "people 2026-Q3"
neighbors = "add-remove"

[columns]
age = {number = [0, 120], integer = true}
income = {number = [0, 200000], missing = "none"}
share = {number = ["1/3", 0.5], missing = 0.4}
city = {category = ["oslo", "rome"], other = true}
"zip code" = {category = ["01", "02"], exact = true, missing = true}
member = {boolean = true}
surname = {text = 20, alphabet = "abc"}
joined = {date = [2020-01-01, "2026-12-31"], by = "quarter", format = "%d.%m.%Y"}

[unit]
column = "customer_id"
max_rows = 3
number = 1000

[file]
header = false
delimiter = ";"
decimal = ","
quote = "none"
"""
COLUMNS: dict[str, Kind] = {
    "age": zd.number(0, 120, integer=True),
    "income": zd.number(0, 200_000, missing=None),
    "share": zd.number(Fraction(1, 3), "1/2", missing=0.4),
    "city": zd.category(["oslo", "rome"], other=True),
    "zip code": zd.category(["01", "02"], exact=True, missing=True),
    "member": zd.boolean(),
    "surname": zd.text(20, alphabet="abc"),
    "joined": zd.date(datetime.date(2020, 1, 1), "2026-12-31", by="quarter", format="%d.%m.%Y"),
}


def test_a_file_declares_what_code_does(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_text(FULL, encoding="utf-8")
    schema = zd.data.read_schema(path)
    assert dict(schema.columns) == COLUMNS
    assert list(schema.columns) == list(COLUMNS)
    assert (schema.unit, schema.max_rows, schema.units) == ("customer_id", 3, 1000)
    assert schema.file == {"header": False, "delimiter": ";", "decimal": ",", "quote": None}
    assert (schema.name, schema.neighbors) == ("people 2026-Q3", zd.records.Neighbors.ADD_REMOVE)
    assert Schema.from_toml(schema.to_toml()) == schema


numbers = st.floats(-1e100, 1e100) | st.integers(-(2**70), 2**70) | st.fractions(-9, 9)
options = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


def made(draw: st.DrawFn) -> Kind:
    kind = draw(st.sampled_from(["number", "category", "boolean", "text", "date"]))
    if kind == "number":
        ends = draw(st.sets(numbers.map(lambda end: Fraction(end)), min_size=3, max_size=3))
        lower, middle, upper = sorted(ends)
        return zd.number(lower, upper, missing=draw(st.sampled_from(["skip", None, middle])))
    if kind == "category":
        listed = draw(st.lists(options | st.floats(-9, 9) | st.integers() | st.booleans()))
        try:
            return zd.category(listed, other=draw(st.booleans()), missing=draw(st.booleans()))
        except ParameterError:  # read alike
            return zd.category(["a", '"\\\n\x7f\x01é'])
    if kind == "boolean":
        return zd.boolean(missing=draw(st.booleans()))
    if kind == "text":
        return zd.text(draw(st.integers(1, 99)), alphabet=draw(st.sampled_from([None, 'a"\\'])))
    first, last = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2)))
    return zd.date(first, last, by=draw(st.sampled_from(["day", "week", "year"])))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4),
        st.composite(made)(),
        min_size=1,
        max_size=4,
    ),
    st.none() | options,
)
def test_a_schema_survives_the_way_to_a_file_and_back(
    columns: dict[str, Kind], name: str | None
) -> None:
    schema = Schema(columns=columns, name=name, neighbors="replace")
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert list(again.columns) == list(columns)


REFUSED = {
    "not TOML": ("[columns", "schema: expected TOML"),
    "nothing": ("", "columns: expected one column or more"),
    "section": ("[colums]\na = {number = [0, 1]}", 'did you mean "columns"'),
    "no table": ("columns = 3", "columns = 3: expected a table"),
    "no kind": ("[columns]\na = {}", "exactly one of number"),
    "unknown kind": ("[columns]\na = {numbr = [0, 1]}", 'did you mean "number"'),
    "two kinds": ("[columns]\na = {number = [0, 1], text = 3}", "exactly one of number"),
    "no table of a column": ("[columns]\na = 3", "column 'a' = 3: expected a table"),
    "bounds reversed": ("[columns]\na = {number = [1, 0]}", "column 'a', bounds = .*lower < upper"),
    "one bound": ("[columns]\na = {number = 3}", "expected a list of two ends"),
    "option": ("[columns]\na = {number = [0, 1], other = true}", "option = 'other'"),
    "read alike": (
        '[columns]\na = {category = [1, "1.0"]}',
        "column 'a', options = .*different options",
    ),
    "no boolean": ("[columns]\na = {boolean = false}", "column 'a', boolean = "),
    "text": ('[columns]\na = {text = "x"}', "column 'a', length = "),
    "file": ('[columns]\na = {text = 3}\n[file]\nseparator = ";"', "file = 'separator'"),
    "unit": ('[columns]\na = {text = 3}\n[unit]\nid = "x"', "unit = 'id'"),
    "max_rows": ("[columns]\na = {text = 3}\n[unit]\nmax_rows = 0", "max_rows = 0"),
    "units": ("[columns]\na = {text = 3}\n[unit]\nnumber = 0", "units = 0"),
    "unit's column": ("[columns]\na = {text = 3}\n[unit]\ncolumn = 3", "unit = 3"),
    "neighbors": ('neighbors = "replac"\n[columns]\na = {text = 3}', 'did you mean "replace"'),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_schema_is_refused_with_the_reason(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(ParameterError, match=message):
        Schema.from_toml(text)


def test_a_schema_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ParameterError, match="UTF-8"):
        zd.data.read_schema(path)


def test_a_schema_cannot_be_changed() -> None:
    columns = {"a": zd.boolean()}
    schema = Schema(columns=columns)
    columns["b"] = zd.boolean()
    assert list(schema.columns) == ["a"]
    changing: Any = schema.columns
    with pytest.raises(TypeError):
        changing["c"] = zd.boolean()
    with pytest.raises(ParameterError, match="column 'a' = 3"):
        Schema(columns={"a": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["", "\0", "\x07", "a\nb", "\x7f", "\x85", 3, None])
def test_names_that_nobody_can_read_are_refused(name: Any) -> None:
    """Internal columns have no name that a text can be; a name without letters is a mistake."""
    kinds = {name: zd.number(0, 1)}
    plain = {"a": zd.number(0, 1)}
    rows = np.zeros(3, dtype=[("a", float), ("b", float)])
    calls: list[Callable[[], Any]] = [
        lambda: Schema(columns=kinds),
        lambda: zd.open(rows, columns=kinds),
        lambda: zd.open(rows, schema=Schema(columns=plain), columns=kinds),
    ]
    if name is not None:
        calls += [
            lambda: Schema(columns=plain, unit=name, max_rows=1),
            lambda: zd.open(rows, columns=plain, unit=name, max_rows=1),
            lambda: zd.open(rows, schema=Schema(columns=plain), unit=name, max_rows=1),
        ]
    if isinstance(name, str):
        table = f"{json.dumps(name)} = {{number = [0, 1]}}".replace("\x7f", "\\u007f")
        calls.append(lambda: Schema.from_toml(f"[columns]\n{table}"))
    for call in calls:
        with pytest.raises(ParameterError, match=r"^(columns|unit) = "):
            call()


def test_letters_of_any_language_are_names() -> None:
    for name in ("é", "年齢", " a b ", "a\u200db", "0"):
        assert list(Schema.from_toml(Schema(columns={name: zd.boolean()}).to_toml()).columns) == [
            name
        ]


# -- made-up rows ---------------------------------------------------------------------------------


def test_made_up_cells_are_read_to_everything_that_is_declared() -> None:
    rows = zd.fake(KINDS, rows=5000)
    assert rows.dtype.names == tuple(KINDS)
    for name, kind in KINDS.items():
        read = kind.read(rows[name])
        if isinstance(kind, Text):
            assert len(set(read) - {None}) > 5
        elif kind.size is None:
            assert isinstance(kind, Number)
            present = read[~np.isnan(read)]
            lower, upper = map(float, kind.bounds)
            width = upper - lower
            assert lower <= present.min() < lower + width / 100
            assert upper - width / 100 < present.max() <= upper
            assert 0 < np.isnan(read).sum() < 500
        else:
            expected = set(range(kind.size))
            assert set(read.tolist()) == expected, name
            if not isinstance(kind, Date):
                counts = np.bincount(read.astype(int))
                assert counts.min() > 0.9 * 5000 / kind.size


def test_columns_are_unrelated() -> None:
    kinds = {name: zd.number(-1, 1, missing=None) for name in "abcdef"}
    rows = zd.fake(kinds, rows=10_000)
    table = np.column_stack([rows[name] for name in kinds])
    correlations = np.corrcoef(table.T) - np.eye(6)
    assert np.abs(correlations).max() < 0.02


def test_made_up_rows_have_units() -> None:
    schema = Schema(columns={"age": zd.number(0, 9)}, unit="who", max_rows=3)
    counts = np.unique(zd.fake(schema, rows=300)["who"], return_counts=True)[1]
    assert len(counts) == 100
    many = Schema(columns={"age": zd.number(0, 9)}, unit="who", max_rows=3, units=20)
    assert len(np.unique(zd.fake(many, rows=300)["who"])) == 20
    opened = SimpleNamespace(
        kinds=schema.columns, protection=SimpleNamespace(unit="who", max_rows=3)
    )
    assert str(zd.fake(opened, rows=300).tolist()) == str(zd.fake(schema, rows=300).tolist())


def test_made_up_rows_are_always_the_same_and_make_a_frame() -> None:
    rows = zd.fake(KINDS, rows=50)
    assert str(rows.tolist()) == str(zd.fake(KINDS, rows=50).tolist())
    assert str(rows[:20].tolist()) != str(rows[20:40].tolist())
    assert list(pd.DataFrame(rows).columns) == list(KINDS)


def test_a_format_is_followed() -> None:
    kind = zd.date("0999-01-01", "2024-12-31", by="year", format="%%%d/%m,%Y")
    rows = zd.fake({"d": kind}, rows=100)
    assert not np.isnan(kind.read(rows["d"])).any()


def test_what_declares_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^people = "):
        zd.fake(3)
    with pytest.raises(ParameterError, match=r"^column 'a' = 3"):
        zd.fake({"a": 3})
    with pytest.raises(ParameterError, match=r"^rows = 0"):
        zd.fake(KINDS, rows=0)


# -- conditions on a row --------------------------------------------------------------------------


CONDITION_KINDS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "income": zd.number(0, 1000),
    "city": zd.category(["oslo", "rome", "bonn"], other=True),
    "member": zd.boolean(),
    "day": zd.date("2024-01-01", "2024-12-31", by="month"),
    "the member": zd.boolean(),
    "0": zd.number(0, 9),
    "class": zd.category([1, 2]),
}
NAN = float("nan")
CONDITION_COLUMNS = {
    "age": np.array([17.0, 18.0, 64.0, NAN, 65.0, 400.0]),
    "income": np.array([18.0, 18.0, 1.0, 5.0, NAN, 2.0]),
    "city": np.array([0.0, 1.0, 2.0, 3.0, NAN, 0.0]),
    "member": np.array([1.0, 0.0, NAN, 1.0, 1.0, 0.0]),
    "day": np.array([0.0, 2.0, 11.0, NAN, 5.0, 2.0]),
    "the member": np.array([0.0, 1.0, 1.0, NAN, 0.0, 0.0]),
    "0": np.array([0.0, 1.0, 2.0, NAN, 4.0, 5.0]),
    "class": np.array([0.0, 1.0, NAN, 0.0, 1.0, 0.0]),
}
TRUE, FALSE = True, False


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("age >= 18", [0, 1, 1, 0, 1, 1]),
        ("18 <= age < 65", [0, 1, 1, 0, 0, 0]),
        ("age > 64.5", [0, 0, 0, 0, 1, 1]),
        ("not age >= 18", [1, 0, 0, 0, 0, 0]),  # a missing cell is neither
        ("age == income", [0, 1, 0, 0, 0, 0]),
        ("age < income", [1, 0, 0, 0, 0, 0]),
        ('city == "oslo"', [1, 0, 0, 0, 0, 1]),
        ('city != "oslo"', [0, 1, 1, 1, 0, 0]),
        ('city in ("oslo", "bonn")', [1, 0, 1, 0, 0, 1]),
        ('city not in ["oslo", "bonn"]', [0, 1, 0, 1, 0, 0]),
        ('"rome" == city', [0, 1, 0, 0, 0, 0]),
        ("member", [1, 0, 0, 1, 1, 0]),
        ("not member", [0, 1, 0, 0, 0, 1]),
        ("member and age >= 18", [0, 0, 0, 0, 1, 0]),
        ("member or age >= 18", [1, 1, 1, 1, 1, 1]),
        ("not (member or age >= 18)", [0, 0, 0, 0, 0, 0]),
        ("the member", [0, 1, 1, 0, 0, 0]),
        ('day >= "2024-03-15"', [0, 1, 1, 0, 1, 1]),
        ("age > -1", [1, 1, 1, 0, 1, 1]),
        ("`0` > 1", [0, 0, 1, 0, 1, 1]),
        ("1 < `0` <= 4 and not `the member`", [0, 0, 0, 0, 1, 0]),
        ("`0` < `age` and`class`==2", [0, 1, 0, 0, 1, 0]),
        ("`the member`", [0, 1, 1, 0, 0, 0]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_holds(text: str, kept: list[int]) -> None:
    assert Predicate.of(text, CONDITION_KINDS)(CONDITION_COLUMNS).astype(int).tolist() == kept


@pytest.mark.parametrize(
    "text",
    [
        *("", "age", "18", "age = 18", "age >= ", "height > 3", "age + 1 > 3", "age > income + 1"),
        *('city > "oslo"', 'city == "paris"', "city == member", "len(age) > 3", "age.real > 3"),
        *("[a for a in age]", "lambda: age", "age if member else 3", "f'{age}' == 3", "age is 3"),
        *("member == 'perhaps'", "3 in age", "age in 3", "age in (income,)", "__import__('os')"),
        *("0 > 3", "`0 > 3", "`height` > 3", "`` > 3", "city == '`0`'", "column0 > 3", "`0` 3"),
        *("-city == 3", "age > nan", "age := 3", "(" * 3000, "age > 1" + " and age > 1" * 2000),
    ],
)
def test_anything_else_is_refused_before_a_row_is_read(text: str) -> None:
    with pytest.raises(zd.errors.ParameterError, match="where"):
        Predicate.of(text, CONDITION_KINDS)


@pytest.mark.parametrize("given", [None, 3, b"age > 3", lambda rows: rows])
def test_a_condition_is_a_text(given: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="where"):
        Predicate.of(given, CONDITION_KINDS)


def test_a_condition_names_its_columns() -> None:
    assert Predicate.of("age > 3 and not member or age < 1", CONDITION_KINDS).columns == (
        "age",
        "member",
    )


def test_names_that_are_no_identifiers() -> None:
    assert Predicate.of("`0` > 3 or `class` == 1 or `0` < 1", CONDITION_KINDS).columns == (
        "0",
        "class",
    )
    with pytest.raises(zd.errors.ParameterError, match="backticks: `the member`"):
        Predicate.of("0 > 3", CONDITION_KINDS)


def test_columns_of_an_array_are_named_by_their_numbers() -> None:
    rows = np.column_stack([np.arange(10.0), np.arange(10) % 2])
    people = zd.open(rows, columns={"0": zd.number(0, 10), "1": zd.boolean()})
    few = people.where("`0` >= 4 and `1`")
    assert zd.sum(few, "0", epsilon=10**6).value == pytest.approx(5 + 7 + 9, abs=0.01)
