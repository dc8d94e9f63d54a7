"""Declared columns as features, and what forecasts are told of rows that nobody has seen."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from regression.fits import fit_linear
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.objective import (
    LOG_ODDS,
    TARGETS,
    Expected,
    Shape,
    plan_huber,
    plan_logistic,
    plan_multinomial,
)
from zerodelta.testing import replayed

pandas = pytest.importorskip("pandas")

NAN = float("nan")
KINDS = {
    "age": zd.number(0, 100),
    "change": zd.number(-10, 30, missing=None),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
    "smokes": zd.boolean(missing=True),
    "since": zd.date("2020-01-01", "2020-12-31", by="month"),
}
ENCODING = Encoding.of(KINDS)


def test_a_category_is_one_column_for_each_label() -> None:
    assert ENCODING.names == (
        *("age", "change", "city=oslo", "city=rome", "city=other", "member"),
        *("smokes=False", "smokes=True", "smokes=missing", "since"),
    )
    assert ENCODING.width == len(ENCODING.names) == 10
    rows = np.array([[30.0, 99.0, 2.0, 1.0, 0.0, 11.0], [NAN, 0.0, NAN, 0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(
        ENCODING(rows),
        [[30, 30, 0, 0, 1, 1, 1, 0, 0, 11], [NAN, 0, NAN, NAN, NAN, 0, 0, 0, 1, 0]],
    )


def test_numbers_are_scaled_by_their_bounds_and_categories_are_not() -> None:
    rows = np.array([[0.0, -10.0, 0.0, 0.0, 0.0, 0.0], [75.0, 40.0, 1.0, 1.0, 1.0, 11.0]])
    np.testing.assert_array_equal(
        ENCODING.to_unit(centered=True)(rows),
        [[-1, -1, 1, 0, 0, -1, 1, 0, 0, -1], [0.5, 1, 0, 1, 0, 1, 0, 1, 0, 1]],
    )
    np.testing.assert_array_equal(
        ENCODING.to_unit(centered=False)(rows),
        [[0, -1 / 3, 1, 0, 0, 0, 1, 0, 0, 0], [0.75, 1, 0, 1, 0, 1, 0, 1, 0, 1]],
    )


cells = st.floats(allow_nan=False, allow_infinity=True, width=64)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(cells, cells, st.integers(0, 2), st.integers(0, 1)), min_size=1),
    st.booleans(),
)
def test_no_scaled_row_is_longer_than_the_corner(
    rows: list[tuple[float, ...]], centered: bool
) -> None:
    kinds = {name: KINDS[name] for name in ("age", "change", "city", "member")}
    encoding = Encoding.of(kinds).to_unit(centered=centered)
    found = encoding(np.array(rows))
    squares = [math.fsum(entry * entry for entry in row) for row in found]
    assert max(squares) <= encoding.box.corner**2 + 1e-15 == 4 + 1e-15
    # each row by itself: whatever the others are
    np.testing.assert_array_equal(found[-1:], encoding(np.array(rows[-1:])))


def test_categories_count_in_full_half_way_of_the_numbers() -> None:
    numbers = {str(i): zd.number(0, 1) for i in range(16)}
    boxes = [Encoding.of(dict(list(numbers.items())[:k])).box for k in (1, 4, 16)]
    assert [box.half_way for box in boxes] == [1, 1, 2]
    assert [box.reach(Fraction(1, 4)) for box in boxes] == [0.25, 0.5, 1]
    city = {"city": KINDS["city"]}
    assert Encoding.of(city).box.half_way == Encoding.of(city).box.corner == 1
    both = Encoding.of({**numbers, **city}).box
    assert (both.half_way, both.corner) == (math.sqrt(5), math.sqrt(17))
    assert both.reach(Fraction(1, 2)) == math.sqrt(5)


@pytest.mark.parametrize("centered", [True, False])
def test_coefficients_in_units_give_the_same_scores(centered: bool) -> None:
    encoding = ENCODING.to_unit(centered=centered)
    rng = np.random.default_rng(3)
    rows = np.column_stack(
        [
            rng.uniform(0, 100, 50),
            rng.uniform(-10, 30, 50),
            *(rng.integers(0, size, 50) for size in (3, 2, 3, 12)),
        ]
    )
    lines, constants = rng.normal(size=(2, 10)), rng.normal(size=2)
    slopes, intercept = encoding.in_units(lines, constants)
    np.testing.assert_allclose(
        ENCODING(rows) @ slopes.T + intercept, encoding(rows) @ lines.T + constants, atol=1e-12
    )
    if not centered:  # lines through the origin stay so
        np.testing.assert_array_equal(intercept, constants)


def test_rows_to_predict_are_read_by_the_schema() -> None:
    names = ["age", "city", "member"]
    encoding = Encoding.of({name: KINDS[name] for name in names}).to_unit(centered=True)
    frame = pandas.DataFrame(
        {"member": ["yes", "no", None], "city": ["rome", "bonn", None], "age": ["20", 400, "x"]}
    )
    expected = [[20, 0, 1, 0, 1], [100, 0, 0, 1, 0], [50, 0, 0, 1, 0.5]]
    np.testing.assert_array_equal(encoding.read(frame), expected)
    np.testing.assert_array_equal(encoding.read(frame[names].to_numpy()), expected)
    np.testing.assert_array_equal(encoding.read(frame[names].to_numpy().tolist()), expected)
    closed = Encoding.of({"city": zd.category(["oslo", "rome"])})
    np.testing.assert_array_equal(closed.read([["oslo"], ["bonn"]]), [[1, 0], [0, 0]])
    with pytest.raises(zd.errors.ParameterError, match="3 columns"):
        encoding.read(np.zeros((2, 4)))
    with pytest.raises(zd.errors.ParameterError, match="age"):
        encoding.read(frame[["city", "member"]])


def test_texts_are_no_features() -> None:
    with pytest.raises(zd.errors.ParameterError, match="note"):
        Encoding.of({"note": zd.text(length=20)})


# -- forecasts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["linear", "logistic", "multinomial"])
def test_short_rows_and_strong_signals_are_forecast_to_cost_more(task: str) -> None:
    asked: dict[str, Any] = {"n": 10_000, "dimension": 5, "epsilon": 1}
    asked |= {"classes": 3} if task == "multinomial" else {}
    usual = zd.advise(task, **asked)
    short = zd.advise(task, **asked, row_length="0.3")
    strong = zd.advise(task, **asked, row_length="0.3", signal=0.9 if task == "linear" else 4)
    assert usual.best.error < short.best.error / 3
    assert short.best.error < strong.best.error


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        ({"row_length": 2}, "row_length"),
        ({"row_length": 0}, "row_length"),
        ({"signal": -1}, "signal"),
    ],
)
def test_hints_that_cannot_be_are_refused(hint: dict[str, Any], name: str) -> None:
    with pytest.raises(zd.errors.ParameterError, match=rf"^{name} = "):
        zd.advise("logistic", n=1000, dimension=5, epsilon=1, **hint)


def test_the_curvature_is_that_of_normal_log_odds() -> None:
    """Within 4 % of the mean slope of a sigmoid, by quadrature."""
    z = np.linspace(-10, 10, 20_001)
    weights = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for signal in (0.5, 1, 2, 4, 8):
        chance = 1 / (1 + np.exp(-signal * z))
        true = float((chance * (1 - chance)) @ weights)
        assert abs(Expected(signal=signal).curvature / true - 1) < 0.04


def normal_loss(signal: float, shrunk: Any) -> Any:
    """Return the mean logistic loss of normal log-odds shrunk to a part of them, by quadrature."""
    z = np.linspace(-8, 8, 801)
    weights = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    chance = 1 / (1 + np.exp(-signal * z))
    odds = np.multiply.outer(shrunk, signal * z)
    return (np.logaddexp(0, odds) - chance * odds) @ weights


@pytest.mark.parametrize("signal", [0.5, 1, 2, 4])
def test_the_loss_is_flatter_along_the_signal(signal: float) -> None:
    """The second difference of the loss along the signal, over the mean curvature there."""
    step = 1e-3
    below, there, above = normal_loss(signal, np.array([1 - step, 1, 1 + step]))
    along = (below - 2 * there + above) / (step * signal) ** 2
    expected = Expected(signal=signal)
    assert abs(expected.curvature * expected.flatness / along - 1) < 0.2


@pytest.mark.parametrize("signal", [0.5, 1, 2, 4])
@pytest.mark.parametrize("penalty", [0.001, 0.02, 0.3, 10])
def test_what_a_penalty_costs_is_what_its_minimum_loses(signal: float, penalty: float) -> None:
    parts = 1 - np.linspace(1, 0, 401) ** 2
    losses = normal_loss(signal, parts)
    best = int(np.argmin(losses + penalty / 2 * (parts * signal) ** 2))
    true = losses[best] - losses[-1]
    assert 0.7 < Expected(signal=signal).shrunk(penalty) / true < 1.4


@pytest.mark.parametrize("intercept", [True, False])
def test_variances_are_those_of_rows_on_a_sphere(intercept: bool) -> None:
    rows = np.random.default_rng(1).normal(size=(20_000, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if intercept:
        rows = np.column_stack([rows, np.full(len(rows), 0.5)]) / math.sqrt(1.25)
    found = np.linalg.eigvalsh(rows.T @ rows / len(rows))
    wanted = replace(TARGETS, row_length=1.0).variances(rows.shape[1], intercept=intercept)
    assert np.allclose(found, np.sort(wanted), atol=0.01)


@pytest.mark.parametrize(("off", "signal"), [(0.0, 0.15), (0.5, 0.15), (0.5, 0.5)])
def test_rows_are_forecast_by_their_distance_from_the_mean_row(off: float, signal: float) -> None:
    """Their length says nothing: the intercept takes care of the mean row."""
    rng = np.random.default_rng(3)
    x = rng.uniform(off - 0.5, off + 0.5, size=(2000, 3)) / math.sqrt(3)
    line = (x - x.mean(axis=0)) @ np.array([1.0, -0.5, 0.3])
    y = signal * line / line.std() + 0.15 * rng.normal(size=2000)
    best = np.column_stack([x, np.ones(2000)])
    best = best @ np.linalg.lstsq(best, y, rcond=None)[0]
    errors = []
    for run in range(30):
        model = replayed(f"run {run}")(fit_linear)(
            x, y, epsilon=1, data_norm=1, bounds_y=(-1, 1)
        ).value
        errors.append(np.mean((model.decision(x)[:, 0] - best) ** 2))
    length = float(np.sqrt(x.var(axis=0).sum()))
    told = zd.advise("linear", n=2000, dimension=3, epsilon=1, row_length=length, signal=signal)
    assert 1 / 3 < told.best.error / np.mean(errors) < 3


def test_noise_and_certificate_do_not_follow_what_is_expected() -> None:
    """Only the split for numerical error may move, by what the curvature says of its cost."""
    shape: dict[str, Any] = {"rows": 3000, "dimension": 4, "epsilon": 1}
    short = {name: replace(name, row_length=0.2) for name in (TARGETS, LOG_ODDS)}
    pairs = [
        (plan_huber(Shape.of(**shape)), plan_huber(Shape.of(**shape, expected=short[TARGETS]))),
        (
            plan_logistic(Shape.of(**shape)),
            plan_logistic(Shape.of(**shape, expected=short[LOG_ODDS])),
        ),
        (
            plan_multinomial(Shape.of(**shape), classes=3),
            plan_multinomial(Shape.of(**shape, expected=short[LOG_ODDS]), classes=3),
        ),
    ]
    for usual, told in pairs:
        assert usual.steps == told.steps
        assert usual.predicted_error < told.predicted_error
