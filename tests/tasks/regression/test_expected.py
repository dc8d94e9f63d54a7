"""What forecasts are told of unseen rows: they follow it, and no fit does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.tasks.regression.expected import LOG_ODDS, TARGETS, Expected
from zerodelta.tasks.regression.plan import plan_huber, plan_logistic, plan_multinomial


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
    with pytest.raises(zd.ParameterError, match=rf"^{name} = "):
        zd.advise("logistic", n=1000, dimension=5, epsilon=1, **hint)


def test_the_curvature_is_that_of_normal_log_odds() -> None:
    """Within 4 % of the mean slope of a sigmoid, by quadrature."""
    z = np.linspace(-10, 10, 20_001)
    weights = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for signal in (0.5, 1, 2, 4, 8):
        chance = 1 / (1 + np.exp(-signal * z))
        true = float((chance * (1 - chance)) @ weights)
        assert abs(Expected(signal=signal).curvature / true - 1) < 0.04


def test_noise_and_certificate_do_not_follow_what_is_expected() -> None:
    """Only the split for numerical error may move, by what the curvature says of its cost."""
    shape: dict[str, Any] = {"rows": 3000, "dimension": 4, "epsilon": 1}
    short = {name: replace(name, row_length=0.2) for name in (TARGETS, LOG_ODDS)}
    pairs = [
        (plan_huber(**shape), plan_huber(**shape, expected=short[TARGETS])),
        (plan_logistic(**shape), plan_logistic(**shape, expected=short[LOG_ODDS])),
        (
            plan_multinomial(**shape, classes=3),
            plan_multinomial(**shape, classes=3, expected=short[LOG_ODDS]),
        ),
    ]
    for usual, told in pairs:
        assert usual.steps == told.steps
        assert usual.predicted_error < told.predicted_error
