"""Schemas: a file declares what code does, survives a round trip, and is refused with a reason."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from zerodelta.data.kinds import Kind
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
