"""Forecasts for classifiers: noise in the objective, or a hidden descent (theory C9, C1)."""

from __future__ import annotations

import math
from fractions import Fraction

from zerodelta.exact.rational import Rational, as_positive
from zerodelta.regression.expected import LOG_ODDS, Expected
from zerodelta.regression.objective_plan import (
    RegressionPlan,
    limited,
    plan_logistic,
    plan_multinomial,
    softmax_curvature,
)
from zerodelta.regression.temperature import temperature
from zerodelta.spine.methods import Method, ranked

__all__ = ["descent_temperature", "logistic_methods", "multinomial_methods"]

_STEPS = 100


def logistic_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the ways to fit a classifier for two classes, best first.

    Errors are expected excesses of the mean logistic loss, for rows and a signal as in `Expected`.

    >>> [m.name for m in logistic_methods(epsilon=1, n=10_000, dimension=10)]
    ['objective', 'descent']
    """
    expected = LOG_ODDS.given(row_length=row_length, signal=signal)
    plan = plan_logistic(
        rows=n, dimension=dimension, epsilon=epsilon, intercept=intercept, expected=expected
    )
    return _methods(plan, expected, n, dimension + bool(intercept), classes=2)


def multinomial_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    classes: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the ways to fit a classifier for several classes, best first.

    >>> multinomial_methods(epsilon=1, n=10_000, dimension=10, classes=3)[0].name
    'objective'
    """
    expected = LOG_ODDS.given(row_length=row_length, signal=signal)
    plan = plan_multinomial(
        rows=n,
        dimension=dimension,
        classes=classes,
        epsilon=epsilon,
        intercept=intercept,
        expected=expected,
    )
    return _methods(plan, expected, n, dimension + bool(intercept), classes=classes)


def descent_temperature(*, epsilon: Rational, n: int, columns: int, classes: int) -> float:
    """Return what the scores of a hidden descent are divided by before they are probabilities.

    The noise of a coordinate is held below 1.4 by a shorter path: `Study.minimize` keeps it to a
    part of the ball's radius. Of several classes the one with the largest noise decides the loss,
    and the path is shared among all: the divisor grows with their number (fitted to small real
    data, see `bench/defaults_classifiers.py`).
    """
    noise = _descent_noise(as_positive(epsilon, "epsilon"), n, columns * (classes - 1))
    held = min(noise, 1.4)
    return temperature(
        noise=held**2 * (1 if classes == 2 else classes**2 / 2) * (LOG_ODDS.spread + 0.2),
        informed=2 * _STEPS * held / noise / held**2,
    )


def _methods(
    plan: RegressionPlan, expected: Expected, n: int, columns: int, *, classes: int
) -> tuple[Method, ...]:
    outputs = classes - 1
    descent = _descent(plan.epsilon, expected, n, columns, classes)
    part = float(2 * plan.channel.error / plan.channel.scale / plan.epsilon)
    return ranked(
        Method(
            name="objective",
            error=plan.predicted_error,
            spends=f"ε on the objective, {part:.2%} of it on numerical error",
            why=f"one draw of noise for {columns * outputs} coefficients, none for the way there",
        ),
        Method(
            name="descent",
            error=limited(descent, 2 * math.log(classes)),
            spends=f"ε on a lattice of {columns * outputs} dimensions, {_STEPS} hidden gradients",
            why="Study.minimize: every step adds noise; pays for losses that are not convex",
        ),
    )


def _descent(epsilon: Fraction, expected: Expected, n: int, columns: int, classes: int) -> float:
    """Forecast: noise 2RT/(√3 n μ) a coordinate, and what so few steps leave of the way.

    Steps have length 4, what the curvature of at most 1/4 allows, and shrink to 0.
    """
    outputs = classes - 1
    curvature = softmax_curvature(classes, expected) if outputs > 1 else expected.curvature
    size = columns * outputs
    noise = _descent_noise(epsilon, n, size)
    pull = curvature * expected.spread / columns
    left = min(1.0, 1.5 / (4 * pull * _STEPS))
    behind = 2 * curvature * outputs * math.exp(-4 * pull * _STEPS)
    return pull / 2 * size * noise**2 * left + behind


def _descent_noise(epsilon: Fraction, n: int, size: int) -> float:
    """Return the noise of a coordinate if all steps have their full length."""
    mu = float(epsilon) / math.sqrt(2 * (size * math.log(max(n, 2)) + 7))
    return 2 * 4 * _STEPS / (math.sqrt(3) * max(1, n) * mu)
