"""Every statistic of a column sums one value at a time, within its bounds, and is read off sums.

Found in `COLUMN_STATISTICS`: what is new there is tried here.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from tasks.test_a_new_statistic import GeometricMean
from zerodelta.privacy import statistics
from zerodelta.privacy.statistics import COLUMN_STATISTICS, ColumnStatistic

STATISTICS = {**COLUMN_STATISTICS, "geometric_mean": GeometricMean()}
"""All there are, and one of the tests."""
LOWER, UPPER = 1, 1000
CELLS = [1.0, 1.5, 2.0, 3.7, 10.0, 999.5, 1000.0, 5e-324, 0.0, -0.0, -7.25, 1e308]
CELLS += [np.inf, -np.inf, np.nan, np.nextafter(1.0, 2.0), np.pi, 123.456789]


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


@pytest.mark.parametrize("name", STATISTICS)
def test_a_table_of_it_has_a_forecast_an_interval_and_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in (statistics.COLUMN_STATISTICS, statistics.STATISTICS):
        monkeypatch.setitem(known, name, STATISTICS[name])
    rows = np.zeros(6000, dtype=[("pay", float), ("town", int)])
    rows["pay"], rows["town"] = 1 + np.arange(6000) % 999, np.arange(6000) % 2
    columns = {"pay": zd.number(LOWER, UPPER), "town": zd.category([0, 1])}
    release = zd.table(zd.open(rows, columns=columns), by="town", of={"pay": [name]}, epsilon=1)
    column = "count" if name == "count" else f"pay_{name}"
    column = column if column in release.plan.errors else "pay_count"  # type: ignore[attr-defined]
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

    class Centered(GeometricMean):
        name = "centered"

        def summands(self, values: Any) -> Any:
            return values - values.mean()

    assert isinstance(Centered(), ColumnStatistic)
    summands = Centered().summands
    assert bits(summands(np.array([1.0, 2.0]))[[0]]) != bits(summands(np.array([1.0])))
