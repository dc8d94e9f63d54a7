"""Accuracy first: the ε, or the rows, that an error takes; the list of all tasks."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from tasks.test_advise import ASKED
from zerodelta.tasks.advise import solved
from zerodelta.tasks.registry import TASKS

IN_ROWS = {"mode", "quantile", "median", "count", "sum", "quantiles", "top_k", "heavy_hitters"}
"""Tasks whose error is that of a number of rows, or of a sum: more of them do not help."""


def digits(number: Any) -> int:
    return len(Decimal(str(number)).normalize().as_tuple().digits)


@pytest.mark.parametrize("task", ASKED)
def test_the_least_epsilon_of_three_digits_is_found(task: str) -> None:
    given = {name: value for name, value in ASKED[task].items() if name != "epsilon"}
    wanted = zd.advise(task, **given, epsilon="3/7").best.error
    advice = zd.advise(task, **given, error=wanted)
    found = advice.epsilon
    assert advice.best.error <= wanted
    assert digits(advice.numbers["epsilon"]) <= 3
    assert found <= Fraction("0.429")  # 3/7 rounded up
    unit = Fraction(10) ** (math.floor(math.log10(found)) - 2)
    assert zd.advise(task, **given, epsilon=found - unit).best.error > wanted
    assert f"ε = {advice.numbers['epsilon']}" in str(advice).split("\n")[1]


FLOOR = {"classifier"}  # its forecast has some rows mistaken however many there are


@pytest.mark.parametrize(
    "task", [t for t, a in ASKED.items() if "n" in a and t not in IN_ROWS | FLOOR]
)
def test_the_fewest_rows_are_found(task: str) -> None:
    given = {name: value for name, value in ASKED[task].items() if name != "n"}
    wanted = zd.advise(task, **given, n=5555).best.error
    advice = zd.advise(task, **given, error=wanted)
    found = advice.n
    assert found is not None
    assert found <= 5560
    assert digits(found) <= 3
    assert advice.best.error <= wanted
    fewer = found - 10 ** max(0, len(str(found)) - 3)
    assert zd.advise(task, **given, n=fewer).best.error > wanted
    assert "for an error of at most" in str(advice)


@pytest.mark.parametrize("task", sorted(IN_ROWS))
def test_rows_are_not_sought_where_they_do_not_help(task: str) -> None:
    given = {name: value for name, value in ASKED[task].items() if name != "n"}
    with pytest.raises(zd.errors.ParameterError, match="does not depend on it; pass n="):
        zd.advise(task, **given, error=3)


def test_an_error_that_is_met_exactly_is_met() -> None:
    assert zd.advise("mean", n=1000, bounds=(0, 100), error="0.1").epsilon == 1
    assert zd.advise("mean", n=1000, bounds=(0, 100), error=0.1).epsilon == 1
    assert zd.advise("mean", epsilon=1, bounds=(0, 100), error="1/10").n == 1000


def test_what_it_buys_is_printed_for_every_cell_of_a_table() -> None:
    asked = {name: value for name, value in ASKED["table"].items() if name != "epsilon"}
    told = str(zd.advise("table", **asked, error="0.01"))
    for cell in ("count ±", "age_mean ±", "age_variance ±", "pay_sum ±", "8 groups by city, age"):
        assert cell in told


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        ({"n": 1000, "epsilon": 1, "error": 1}, "leave out the number to solve for"),
        ({"error": 1}, "leave out the number to solve for"),
        ({"n": 1000, "error": "1e-9"}, "pass a larger error, or more rows with n="),
        ({"epsilon": "1e-6", "error": "1e-9"}, "pass a larger error, or a larger epsilon"),
        ({"n": 1000, "error": 1e9}, "pass a smaller error"),
        ({"n": 1000, "error": 0}, "pass an int"),
        ({"n": 1000, "error": -1}, "pass an int"),
        ({"n": 1000, "error": "much"}, "pass an int"),
        ({"n": 0, "error": 1}, "n"),
        ({"n": 1000, "error": 1, "bounds": (5, 1)}, "lower end first"),
    ],
)
def test_what_cannot_be_solved_is_refused_with_the_remedy(
    asked: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(zd.errors.ParameterError) as caught:
        zd.advise("mean", **{"bounds": (0, 100), **asked})
    assert remedy in str(caught.value)


def test_without_rows_only_epsilon_is_sought() -> None:
    found = zd.advise("histogram", universe=10, error=2).epsilon
    less = found - Fraction("0.001")  # three digits are told
    errors = [
        zd.advise("histogram", universe=10, epsilon=each).best.error for each in (found, less)
    ]
    assert errors[0] <= 2 < errors[1]
    with pytest.raises(zd.errors.ParameterError, match="leave it out"):
        zd.advise("histogram", universe=10, epsilon=1, error=2)


def test_what_cannot_be_planned_does_not_reach_the_error() -> None:
    def planned(n: int) -> float:
        if n < 400:
            raise zd.errors.ParameterError("n", n, expected="more rows", remedy="pass more")
        return 1.0 + 300 / n

    assert solved(planned, "n", 2.0, "rows") == 400
    with pytest.raises(zd.errors.ParameterError, match="more rows"):
        solved(lambda n: planned(n // 100), "n", 2.0, "rows")  # at the start, so it is told


def test_all_tasks_are_listed_with_the_rows_from_which_on_they_are_useful() -> None:
    everything = zd.advise()
    forecast = [name for name, task in TASKS.items() if task.forecast is not None]
    assert [advice.task for advice in everything] == forecast
    assert len(everything) == len(forecast)
    told = str(everything).split("\n")
    for advice, line in zip(everything, told[1:], strict=False):
        least = advice.useful_from
        assert advice.blind is None or least is not None
        shown = "any" if least is None else f"{least:,}".replace(",", " ")
        assert line.startswith(advice.task)
        assert f" {shown}   " in line
    strict = zd.advise(epsilon="1/10")
    assert strict["mean"].useful_from == 10 * (everything["mean"].useful_from or 0)
    for name in ("n", "dimension", "error", "bounds"):
        with pytest.raises(zd.errors.ParameterError, match="name a task"):
            zd.advise(None, **{name: 1})
