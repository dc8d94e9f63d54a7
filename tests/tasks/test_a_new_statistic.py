"""A statistic is one class: tables, forecasts, intervals and saved files know it by its name."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.privacy import statistics
from zerodelta.privacy.statistics import MEAN, ColumnStatistic, Covariances, PowerSums

if TYPE_CHECKING:
    from zerodelta.privacy.intervals import Ends, LineIntervals


@final
class ExampleMean(ColumnStatistic):
    """The geometric mean, exp of the mean of the logarithms of positive values: an example."""

    name = "example_mean"
    degree = 1

    def summands(self, values: Floats) -> Floats:
        """Return logarithms, one by one: those of whole arrays are rounded by position."""
        logs = [math.log(x) if x > 0 else -math.inf * (x == x) for x in values.ravel().tolist()]
        return np.reshape(logs, values.shape)

    def summand_bounds(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """Return logarithms, rounded outwards; bounds without logarithms are refused."""
        require(
            float(lower) > 0,
            "bounds",
            (float(lower), float(upper)),
            expected=f"a lower bound above 0 for {self.name!r}",
            remedy="declare a lower bound above 0, such as 1",
        )
        low, high = math.log(lower), math.log(upper)
        return Fraction(math.nextafter(low, -math.inf)), Fraction(math.nextafter(high, math.inf))

    def value(self, sums: PowerSums) -> Any:
        """Return exp of the mean."""
        return np.exp(MEAN.value(sums))

    def size(self, sums: PowerSums) -> Any:
        """Return the largest value."""
        return np.exp(sums.ends[1])

    def error(self, sums: PowerSums, noise: Covariances) -> Floats:
        """Return the derivative times the error of the mean."""
        return np.asarray(self.value(sums) * np.expm1(MEAN.error(sums, noise)))

    def forecast(self, noise: Covariances, *, rows: float, center: float, half: float) -> float:
        """Return it for the middle of the bounds."""
        error = MEAN.forecast(noise, rows=rows, center=center, half=half)
        return math.exp(center) * math.expm1(error)

    def interval(self, line: LineIntervals) -> Ends:
        """Return exp of those of the mean."""
        low, high = MEAN.interval(line)
        return np.exp(low) * (1 - 2.0**-40), np.exp(high) * (1 + 2.0**-40)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in (statistics.COLUMN_STATISTICS, statistics.STATISTICS):
        assert ExampleMean.name not in known, "the library has a statistic of this name"
        monkeypatch.setitem(known, ExampleMean.name, ExampleMean())


def people(values: Any, missing: Any) -> Any:
    table = np.zeros(len(values), dtype=[("pay", float), ("town", int)])
    table["pay"], table["town"] = values, np.arange(len(values)) % 2
    pay = zd.number(1, 1000, missing=missing)
    return zd.open(table, columns={"pay": pay, "town": zd.category([0, 1])})


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("missing", ["skip", None])
@pytest.mark.parametrize("also", [[], ["mean", "std"]])
def test_a_table_measures_what_the_statistic_sums(missing: Any, also: list[str]) -> None:
    values = np.exp(np.random.default_rng(0).uniform(0, 6, 20_000))
    values[:100] = np.nan
    data = people(values, missing)
    release = zd.table(data, by="town", of={"pay": [*also, "example_mean"]}, epsilon=10**6)
    for town in (0, 1):
        own = values[town::2]
        logs = np.log(own[~np.isnan(own)])
        if missing is None:  # as the middle of the bounds
            logs = np.append(logs, [math.log(500.5)] * 50)
        wanted = math.exp(logs.mean())
        assert release.value["pay_example_mean"][town] == pytest.approx(wanted, rel=1e-3)
    low, high = release.interval()
    found = release.value["pay_example_mean"]
    assert np.all(low["pay_example_mean"] <= found)
    assert np.all(found <= high["pay_example_mean"])


@pytest.mark.usefixtures("named")
def test_it_is_forecast_and_saved_like_all_others(tmp_path: Path) -> None:
    data = people(np.full(5000, 100.0), None)
    release = zd.table(data, of={"pay": ["mean", "example_mean"]}, epsilon=1)
    error = release.plan.errors["pay_example_mean"][0]  # type: ignore[attr-defined]
    assert 0 < error < 10
    release.save(tmp_path / "table.json")
    loaded = zd.load(tmp_path / "table.json")
    assert np.array_equal(loaded.value["pay_example_mean"], release.value["pay_example_mean"])
    low, high = loaded.interval()
    assert low["pay_example_mean"][0] < 110
    assert high["pay_example_mean"][0] > 90
    methods = zd.advise("table", n=5000, epsilon=1, of={"x": "example_mean"}, bounds=(1, 9))
    assert methods
