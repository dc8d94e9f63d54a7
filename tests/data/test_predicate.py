"""A public condition on one row: what it keeps, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.chosen import Predicate

KINDS: dict[str, Any] = {
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
COLUMNS = {
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
    assert Predicate.of(text, KINDS)(COLUMNS).astype(int).tolist() == kept


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
        Predicate.of(text, KINDS)


@pytest.mark.parametrize("given", [None, 3, b"age > 3", lambda rows: rows])
def test_a_condition_is_a_text(given: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="where"):
        Predicate.of(given, KINDS)


def test_a_condition_names_its_columns() -> None:
    assert Predicate.of("age > 3 and not member or age < 1", KINDS).columns == ("age", "member")


def test_names_that_are_no_identifiers() -> None:
    assert Predicate.of("`0` > 3 or `class` == 1 or `0` < 1", KINDS).columns == ("0", "class")
    with pytest.raises(zd.errors.ParameterError, match="backticks: `the member`"):
        Predicate.of("0 > 3", KINDS)


def test_columns_of_an_array_are_named_by_their_numbers() -> None:
    rows = np.column_stack([np.arange(10.0), np.arange(10) % 2])
    people = zd.open(rows, columns={"0": zd.number(0, 10), "1": zd.boolean()})
    few = people.where("`0` >= 4 and `1`")
    assert zd.sum(few, "0", epsilon=10**6).value == pytest.approx(5 + 7 + 9, abs=0.01)
