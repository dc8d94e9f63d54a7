"""Every statistic of a column sums one value at a time, within its bounds, and is read off sums.

Found in `COLUMN_STATISTICS`: what is new there is tried here. What it states of itself is measured:
its value against NumPy, its interval, its error and its forecast among many releases.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import zerodelta as zd
from tasks.test_a_new_statistic import ExampleMean
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy import statistics
from zerodelta.privacy.statistics import COLUMN_STATISTICS, ColumnStatistic
from zerodelta.testing import replayed

STATISTICS = {ExampleMean.name: ExampleMean(), **COLUMN_STATISTICS}
"""One of the tests, and all there are."""

TRUE: dict[str, Callable[[Any], float]] = {
    "count": len,
    "sum": np.sum,
    "mean": np.mean,
    "variance": np.var,
    "std": np.std,
    ExampleMean.name: lambda values: np.exp(np.log(values).mean()),
}
"""What each statistic is of the values of a column, in NumPy."""

LOWER, UPPER = 1, 1000
CELLS = [1.0, 1.5, 2.0, 3.7, 10.0, 999.5, 1000.0, 5e-324, 0.0, -0.0, -7.25, 1e308]
CELLS += [np.inf, -np.inf, np.nan, np.nextafter(1.0, 2.0), np.pi, 123.456789]


def test_every_statistic_has_a_true_value_and_is_in_the_help() -> None:
    assert ExampleMean.name not in COLUMN_STATISTICS, "the library has a statistic of this name"
    for name in COLUMN_STATISTICS:
        assert name in TRUE, (
            f"add {name!r} to TRUE in tests/completeness/test_every_statistic.py: "
            "what it is of the values of a column, in NumPy"
        )
        told = inspect.getdoc(zd.table) or ""
        where = "the docstring of zd.table, under `of`, in src/zerodelta/tasks/table.py"
        assert f'"{name}"' in told, f"add {name!r} to {where}"
    assert TRUE.keys() == STATISTICS.keys()


@contextmanager
def offered(name: str, statistic: ColumnStatistic) -> Iterator[None]:
    """Let tables find a statistic by this name."""
    with (
        patch.dict(statistics.COLUMN_STATISTICS, {name: statistic}),
        patch.dict(statistics.STATISTICS, {name: statistic}),
    ):
        yield


# -- what is summed -------------------------------------------------------------------------------


def bits(values: Any) -> bytes:
    plain = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values), dtype=np.float64)
    return plain.tobytes()


@pytest.mark.parametrize("name", STATISTICS)
def test_what_is_summed_depends_on_one_value_alone_to_the_last_bit(name: str) -> None:
    """Wherever the value stands, and whatever stands beside it: rows must not move one another."""
    summands = STATISTICS[name].summands
    values = np.array(CELLS * 5)
    alone = [bits(summands(np.array([value]))) for value in values]
    for start in range(9):
        for end in (start + 1, start + 8, len(values)):
            block = summands(values[start:end])
            assert [bits(block[[i]]) for i in range(len(block))] == alone[start:end]
    turned = summands(values[::-1])
    assert [bits(turned[[i]]) for i in range(len(turned))] == alone[::-1]
    assert summands(values.reshape(-1, 2)).shape == (len(values) // 2, 2)


@pytest.mark.parametrize("name", STATISTICS)
def test_what_is_summed_lies_within_its_bounds(name: str) -> None:
    statistic = STATISTICS[name]
    lower, upper = statistic.summand_bounds(Fraction(LOWER), Fraction(UPPER))
    inside = statistic.summands(np.linspace(LOWER, UPPER, 1001))
    assert lower <= Fraction(float(inside.min()))
    assert Fraction(float(inside.max())) <= upper


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (-2, -1)], ids=str)
@pytest.mark.parametrize("name", STATISTICS)
def test_bounds_that_a_statistic_has_no_value_for_are_refused(
    name: str, bounds: tuple[int, int]
) -> None:
    rows = np.linspace(*bounds, 50)[:, None]
    with offered(name, STATISTICS[name]):
        try:
            release = zd.table(rows, of={"0": [name]}, bounds=bounds, epsilon=10**4)
        except ParameterError as refused:
            assert "bounds" in str(refused)  # noqa: PT017
            return
    column = "count" if name == "count" else f"0_{name}"
    assert release.value[column][0] == pytest.approx(TRUE[name](rows), abs=0.1)


# -- what it states of itself, among many releases ------------------------------------------------

GROUPS, ROWS = 300, 60
"""One release of so many equal groups is that many releases: each has noise of its own."""


def middle(statistic: ColumnStatistic, rows: int) -> Any:
    """Return values whose summands surround the middle of their bounds, as a forecast assumes.

    They fill 0.58 of the width: a third of half of it is their standard deviation.
    """
    values = np.linspace(LOWER, UPPER, 20_001)
    summands = statistic.summands(values)
    lower, upper = map(float, statistic.summand_bounds(Fraction(LOWER), Fraction(UPPER)))
    chosen: list[float] = []
    left = 0.0  # what the summands so far lack: few values are to be had of some statistics
    for wanted in (lower + upper) / 2 + 0.58 * (upper - lower) * (
        np.arange(rows) / (rows - 1) - 0.5
    ):
        place = np.abs(summands - (wanted + left)).argmin()
        left += wanted - summands[place]
        chosen.append(values[place])
    return np.array(chosen)


def what_is_wrong_with(name: str, statistic: ColumnStatistic, epsilon: Any) -> list[str]:
    """Return a line for each thing that a statistic states of itself and that is not so."""
    values = middle(statistic, ROWS)
    rows = np.zeros(GROUPS * ROWS, dtype=[("pay", float), ("group", int)])
    rows["pay"], rows["group"] = np.tile(values, GROUPS), np.repeat(np.arange(GROUPS), ROWS)
    pay = zd.number(LOWER, UPPER, missing=None)
    people = zd.open(rows, columns={"pay": pay, "group": zd.category(range(GROUPS))})
    with offered(name, statistic):
        table = replayed(ReplayBits("statistics"))(zd.table)
        release = table(people, by="group", of={"pay": [name]}, epsilon=epsilon)
        column = f"pay_{name}"
        errors = np.abs(release.value[column] - TRUE[name](values))
        stated = {
            "the forecast": release.plan.errors[column][0],  # type: ignore[attr-defined]
            "the error": np.mean(release.value[f"{column}_error"]),
        }
        ends = {level: release.interval(level) for level in ("0.5", "0.95")}
    found = [
        f"{what} is {each:.3g}, and the mean error {errors.mean():.3g}"
        for what, each in stated.items()
        if not errors.mean() / 3 < each < 3 * errors.mean()
    ]
    for level, (low, high) in ends.items():
        covers = (low[column] <= TRUE[name](values)) & (TRUE[name](values) <= high[column])
        least = float(level) - 4 * np.sqrt(float(level) * (1 - float(level)) / GROUPS)
        if covers.mean() < least:
            found.append(f"the interval of level {level} covers {covers.mean():.0%}")
        width = np.mean(np.subtract(high[column], low[column]))
        if width > 15 * errors.mean():
            found.append(f"the interval of level {level} is {width:.3g} wide")
    return found


@pytest.mark.parametrize("epsilon", ["1/2", 2])
@pytest.mark.parametrize("name", STATISTICS)
def test_what_a_statistic_states_of_itself_is_so(name: str, epsilon: Any) -> None:
    assert what_is_wrong_with(name, STATISTICS[name], epsilon) == []


HONEST = ExampleMean()
LIES: dict[str, dict[str, Any]] = {
    "forecast too small": {"forecast": lambda _, *a, **o: HONEST.forecast(*a, **o) / 100},
    "forecast too large": {"forecast": lambda _, *a, **o: HONEST.forecast(*a, **o) * 10},
    "error too large": {"error": lambda _, *a: HONEST.error(*a) * 100},
    "error too small": {"error": lambda _, *a: HONEST.error(*a) / 10},
    "interval too narrow": {"interval": lambda _, *a: scaled(HONEST.interval(*a), 0.1)},
    "interval too wide": {"interval": lambda _, *a: scaled(HONEST.interval(*a), 10)},
    "another value": {"value": lambda _, sums: HONEST.value(sums) * 1.5},
}


def scaled(ends: Any, factor: float) -> Any:
    low, high = ends
    return (low + high) / 2 - factor * (high - low) / 2, (low + high) / 2 + factor * (
        high - low
    ) / 2


@pytest.mark.parametrize("lie", LIES)
def test_what_is_not_so_is_found(lie: str) -> None:
    liar = type("Liar", (ExampleMean,), LIES[lie])()
    assert what_is_wrong_with(ExampleMean.name, liar, 2) != []


@pytest.mark.parametrize("name", STATISTICS)
def test_a_table_of_it_has_a_forecast_an_interval_and_a_file(name: str, tmp_path: Path) -> None:
    rows = np.zeros(6000, dtype=[("pay", float), ("town", int)])
    rows["pay"], rows["town"] = 1 + np.arange(6000) % 999, np.arange(6000) % 2
    columns = {"pay": zd.number(LOWER, UPPER), "town": zd.category([0, 1])}
    with offered(name, STATISTICS[name]):
        people = zd.open(rows, columns=columns)
        release = zd.table(people, by="town", of={"pay": [name]}, epsilon=1)
        column = f"pay_{name}"
        assert 0 < release.plan.errors[column][0] < np.inf  # type: ignore[attr-defined]
        low, high = release.interval()
        assert np.all(low[column] <= release.value[column])
        assert np.all(release.value[column] <= high[column])
        release.save(tmp_path / "table.json")
        loaded = zd.load(tmp_path / "table.json")
        assert np.array_equal(loaded.value[column], release.value[column])
        assert column in release.to_frame().columns


def test_a_statistic_whose_values_move_one_another_is_found() -> None:
    """As one that subtracts the mean of its block would."""

    def summands(values: Any) -> Any:
        return values - values.mean()

    assert bits(summands(np.array([1.0, 2.0]))[[0]]) != bits(summands(np.array([1.0])))
