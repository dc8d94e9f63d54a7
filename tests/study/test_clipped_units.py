"""Gradients of a unit's rows clipped together: integers, sensitivity, and the weight chosen."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from data.opening import opened
from study.stages import gradients_in
from zerodelta.models import Logistic, Multinomial, TanhNetwork
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.study.study import Study
from zerodelta.training.gradient_sums import clipped_units

NAN = math.nan
COLUMNS: dict[str, Any] = {"x": zd.number(-1, 1), "y": zd.number(0, 1)}


def table(*units: Any) -> pyarrow.Table:
    """Rows (x, y) of units 0, 1, …"""
    rows = [(*row, i) for i, unit in enumerate(units) for row in unit]
    cells = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return pyarrow.table({"x": cells[:, 0], "y": cells[:, 1], "who": cells[:, 2]})


def people(source: Any, *, max_rows: int = 3, **options: Any) -> Any:
    given = {"units": 2, **options}
    return zd.open(source, columns=COLUMNS, unit="who", max_rows=max_rows, **given)


def study(data: Any, *, dimension: int = 1, **options: Any) -> Study:
    publish = Ball(dimension, 10)
    return Study(data, epsilon=1, publish=publish, rounds=3, **options)


def network() -> TanhNetwork:
    return TanhNetwork(lower=(-1,), upper=(1,), classes=(0, 1), units=1)


def function(theta: Any, rows: Any) -> Any:
    return np.column_stack([rows[:, 0] - theta[0], 3 * rows[:, 1]])


OBJECTIVES: dict[str, tuple[Any, int, dict[str, Any], float]] = {
    "logistic": (Logistic(), 1, {"data_norm": 1}, 0.74),  # slopes of 1/2: three of them
    "logistic, clipped": (Logistic(), 1, {"data_norm": 1, "clip": "1/4"}, 0.999),
    "multinomial": (Multinomial(classes=(0, 1)), 2, {"data_norm": 1}, 0.6),
    "network": (network(), network().parameters, {"clip": "1/8"}, 0.7),
    "function": (function, 2, {"clip": 1}, 0.6),
    "layers": (function, 2, {"layers": [(1, 1), (1, 2)]}, 0.6),
}
every = pytest.mark.parametrize("name", OBJECTIVES)


def sums(name: str, data: Any, weight: int, theta: float = 0.0) -> tuple[list[int], int]:
    """The exact gradient sum, and the bound of one row."""
    gradients = planned(name, weight).on(opened(data))
    point = np.zeros(gradients.dimension)
    point[0] = theta
    return [int(k) for k in gradients.total(point)], gradients.bound


@functools.cache
def planned(name: str, weight: int) -> Any:
    """The gradients in a study of five rows a unit; a plan is the same whatever the rows are."""
    objective, dimension, options, _ = OBJECTIVES[name]
    made = study(people(table([(1.0, 0.0)]), max_rows=5), dimension=dimension)
    return gradients_in(made, objective, unit_weight=weight, **options)[1]


ROWS = [(1.0, 0.0), (-1.0, 1.0), (1.0, 1.0), (-1.0, 0.0), (0.3, 1.0), (NAN, 1.0), (7.0, NAN)]
CONTENTS = [c for n in range(4) for c in itertools.combinations_with_replacement(ROWS, n)]


@every
@pytest.mark.parametrize("weight", [1, 2])
def test_no_unit_moves_a_sum_by_more_than_its_weight(name: str, weight: int) -> None:
    """Up to three rows of a unit replaced by up to three others, in integers."""
    found = [sums(name, people(table(unit, [(0.5, 0.0)])), weight) for unit in CONTENTS]
    most = (2 * weight * found[0][1]) ** 2
    squares = [
        sum((a - b) ** 2 for a, b in zip(one, two, strict=True))
        for (one, _), (two, _) in itertools.combinations(found, 2)
    ]
    assert OBJECTIVES[name][3] ** 2 <= Fraction(max(squares), most) <= 1


@every
def test_what_a_unit_adds_is_the_sum_of_its_rows_unless_that_is_longer(name: str) -> None:
    agreeing = [(1.0, 0.0)] * 3
    alone, bound = sums(name, people(table([agreeing[0]])), 2)
    three, _ = sums(name, people(table(agreeing)), 3)
    assert three == [3 * k for k in alone]
    length = math.sqrt(sum(k * k for k in alone))
    two, _ = sums(name, people(table(agreeing)), 2)
    expected = min(3 * length, 2 * bound)
    assert math.sqrt(sum(k * k for k in two)) == pytest.approx(expected, rel=1e-5)
    both, _ = sums(name, people(table(agreeing, agreeing)), 2)
    assert both == [2 * k for k in two]  # each unit by itself


def scattered() -> pyarrow.Table:
    """A hundred units of one to five rows, mixed up."""
    rng = np.random.default_rng(4)
    who = rng.permutation(np.repeat(np.arange(100), rng.integers(1, 6, 100)))
    x = rng.uniform(-1, 1, len(who))
    return pyarrow.table({"x": x, "y": (x > 0).astype(float), "who": who})


@every
def test_sources_batches_and_memory_do_not_matter(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zerodelta.data import chosen as base
    from zerodelta.data import units
    from zerodelta.training import gradients
    from zerodelta.training import gradients as linear_gradients

    rows = scattered()
    options = {"max_rows": 4, "units": 100}
    expected = sums(name, people(rows, **options), 2)
    back = rows.take(list(reversed(range(len(rows)))))
    assert sums(name, people(back, **options), 2) == expected
    for source in (duckdb.from_arrow(rows), pl.from_arrow(rows).lazy()):  # type: ignore[union-attr]
        assert sums(name, people(source, **options), 2) == expected
    monkeypatch.setattr(base, "_BATCH", 7)
    monkeypatch.setattr(gradients, "_UNIT_BATCH", 5)
    monkeypatch.setattr(linear_gradients, "_MAXIMUM_ROWS", 5)
    finish = units.Bounding.finish

    def spilled(self: Any) -> Any:
        self._spill()
        return finish(self)

    monkeypatch.setattr(units.Bounding, "finish", spilled)
    assert sums(name, people(rows, **options), 2) == expected


def test_a_condition_leaves_a_unit_the_rows_for_which_it_holds() -> None:
    units = [(1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)]
    kept = sums("logistic", people(table(units)).where("x > 0"), 1)
    assert kept == sums("logistic", people(table(units[:2])), 1)
    assert sums("logistic", people(table(units)).where("x > 2"), 1)[0] == [0]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    st.sampled_from([1, 7, 1 << 10, (1 << 20) + 3, 3 << 30, 1 << 40]),
)
def test_a_cut_sum_is_inside_the_ball_and_hardly_shorter(rows: list[Any], bound: int) -> None:
    cut = clipped_units(np.array(rows), np.array([0]), bound)
    whole = [sum(column) for column in zip(*rows, strict=True)]
    length = math.isqrt(sum(k * k for k in whole))
    assert sum(k * k for k in cut) <= bound**2
    assert math.isqrt(sum(k * k for k in cut)) + 3 >= min(length, bound) * (1 - 1e-5)
    if length < bound * (1 - 1e-5) - 3:
        assert cut == whole


def test_the_weight_follows_from_declared_numbers() -> None:
    rows = scattered()

    def weight(**options: Any) -> int | None:
        made = study(people(rows, **{"max_rows": 5, **options}))
        return made.plan_minimize(Logistic(), data_norm=1).weight

    assert weight(units=100, expected_rows=300) == 3
    assert weight(units=100, expected_rows=201) == 3
    assert weight(units=100, expected_rows=3) == 1
    assert weight(units=100, expected_rows=900) is None  # all rows count
    assert weight(units=100) is None
    assert weight(units=None, expected_rows=200) is None  # nobody said how many units
    assert weight(units=100, expected_rows=300, memory=100) is None  # too large, by these numbers


def test_less_weight_is_less_noise_and_the_certificate_says_so() -> None:
    data = people(scattered(), max_rows=5, units=100, expected_rows=300)
    errors = {}
    for weight in (1, 3, 5):
        made = study(data)
        descent = made.plan_minimize(Logistic(), data_norm=1, unit_weight=weight, step=1)
        errors[weight] = descent.error
        shown = "up to 5 rows" if weight == 5 else f"clipped to that of {weight}"
        assert shown in repr(descent)
        release = made.minimize(Logistic(), data_norm=1, unit_weight=weight, step=1)
        assert verify(
            release.certificate, epsilon=1, unit="who", proven=False
        ) == zd.purification.PureDP(1)
        step = release.certificate.steps[-2]
        numbers = {"max_rows": 5} if weight == 5 else {"max_rows": 5, "weight": weight}
        assert step.numbers == numbers
        assert step.theorem == ("units" if weight == 5 else "clipped-units")
    assert errors[1] < errors[3] < errors[5]


def test_weights_that_make_no_sense_are_refused() -> None:
    data = people(scattered(), max_rows=5)
    for weight in (0, 6, -1, 1.5, "x"):
        with pytest.raises(zd.errors.ParameterError, match="unit_weight"):
            study(data).plan_minimize(Logistic(), data_norm=1, unit_weight=weight)
    rows = np.array([[0.5, 1.0]] * 4)
    assert study(rows).plan_minimize(Logistic(), data_norm=1, unit_weight=1).weight is None
    with pytest.raises(zd.errors.ParameterError, match="unit_weight"):
        study(rows).plan_minimize(Logistic(), data_norm=1, unit_weight=2)


def test_with_diagnostics_a_query_of_units_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from zerodelta.data import readers as duckdb_reader

    runs: list[Any] = []
    rows = duckdb_reader._rows

    def counted(*asked: Any) -> Any:
        runs.append(asked)
        return rows(*asked)

    monkeypatch.setattr(duckdb_reader, "_rows", counted)
    data = people(duckdb.from_arrow(scattered()), max_rows=4, units=100)
    made = study(data, functions=False, diagnostics="1/10")
    release = made.minimize(Logistic(), data_norm=1, unit_weight=1)
    assert len(runs) == 1
    assert release.diagnostics is not None
    assert verify(release.certificate, epsilon=1, unit="who") == zd.purification.PureDP(1)


@pytest.mark.parametrize("columns", [1, 3, 40])
@pytest.mark.parametrize("bits", [3, 20, 30, 31, 32, 45, 60])
def test_no_clipped_sum_is_longer_than_the_bound_however_large_it_was(
    bits: int, columns: int
) -> None:
    """In Python integers: squares of what 64 bits hold do not fit into them."""
    rng, bound = np.random.default_rng(bits), (1 << bits) - 3
    for large in (1 << bits, 1 << 40, 1 << 61, (1 << 62) - 1):
        rows = rng.integers(-large, large, size=(1, columns), endpoint=True)
        rows[0, 0] = large  # one coordinate is at its largest
        found = clipped_units(rows, np.array([0]), bound)
        assert sum(int(k) ** 2 for k in found) <= bound**2


def test_squares_of_thousands_of_columns_do_not_wrap_around() -> None:
    """4096 squares of nearly 2^52 are less than nothing in 64 bits."""
    bound = (1 << 31) - 1
    found = clipped_units(np.full((1, 4096), ((1 << 26) - 1) << 5), np.array([0]), bound)
    assert 0 < sum(k**2 for k in found) <= bound**2


def test_what_many_units_add_up_to_may_be_beyond_64_bits() -> None:
    rows = np.full((40, 1), 1 << 60)
    assert clipped_units(rows, np.arange(40), 1 << 62) == [40 << 60]


def test_the_rows_of_a_unit_are_clipped_together_wherever_they_are() -> None:
    """Rows of two units in turn: each unit's sum is cut, not that of neighboring rows."""
    alternating = pyarrow.table({"x": [1.0, 0.5] * 3, "y": [0.0, 0.0] * 3, "who": [0.0, 1.0] * 3})
    together = pyarrow.table(
        {"x": [1.0] * 3 + [0.5] * 3, "y": [0.0] * 6, "who": [0.0] * 3 + [1.0] * 3}
    )
    for name in OBJECTIVES:
        assert sums(name, people(alternating), 1) == sums(name, people(together), 1)
