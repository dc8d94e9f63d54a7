"""Forecasts for classifiers: noise in the objective, or a hidden descent (theory C9, C1)."""

from __future__ import annotations

import math
from fractions import Fraction

from zerodelta.exact.rational import Rational, as_positive
from zerodelta.tasks.methods import Method, ranked
from zerodelta.tasks.regression.plan import (
    SPREAD,
    RegressionPlan,
    limited,
    plan_logistic,
    plan_multinomial,
)

__all__ = ["logistic_methods", "multinomial_methods"]

_STEPS = 100
_SLOPE = 0.15
"""The mean curvature of the logistic loss; of softmax with C classes, 1/(2C)."""


def logistic_methods(
    *, epsilon: Rational, n: int, dimension: int, intercept: bool = True
) -> tuple[Method, ...]:
    """Return the ways to fit a classifier for two classes, best first.

    Errors are expected excesses of the mean logistic loss, for rows that fill their bound.

    >>> [m.name for m in logistic_methods(epsilon=1, n=10_000, dimension=10)]
    ['objective', 'descent']
    """
    plan = plan_logistic(rows=n, dimension=dimension, epsilon=epsilon, intercept=intercept)
    columns = dimension + bool(intercept)
    return _methods(plan, n, columns, outputs=1, curvature=_SLOPE, most=2 * math.log(2))


def multinomial_methods(
    *, epsilon: Rational, n: int, dimension: int, classes: int, intercept: bool = True
) -> tuple[Method, ...]:
    """Return the ways to fit a classifier for several classes, best first.

    >>> multinomial_methods(epsilon=1, n=10_000, dimension=10, classes=3)[0].name
    'objective'
    """
    plan = plan_multinomial(
        rows=n, dimension=dimension, classes=classes, epsilon=epsilon, intercept=intercept
    )
    columns, outputs = dimension + bool(intercept), max(1, classes - 1)
    return _methods(
        plan, n, columns, outputs=outputs, curvature=0.5 / classes, most=2 * math.log(classes)
    )


def _methods(
    plan: RegressionPlan, n: int, columns: int, *, outputs: int, curvature: float, most: float
) -> tuple[Method, ...]:
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
            error=limited(_descent(plan.epsilon, n, columns, outputs, curvature), most),
            spends=f"ε on a lattice of {columns * outputs} dimensions, {_STEPS} hidden gradients",
            why="Study.minimize: every step adds noise; pays for losses that are not convex",
        ),
    )


def _descent(epsilon: Fraction, n: int, columns: int, outputs: int, curvature: float) -> float:
    """Forecast: noise 2RT/(√3 n μ) a coordinate, and what so few steps leave of the way.

    Steps have length 4, what the curvature of at most 1/4 allows, and shrink to 0.
    """
    size = columns * outputs
    mu = float(as_positive(epsilon, "epsilon")) / math.sqrt(2 * (size * math.log(max(n, 2)) + 7))
    noise = 2 * 4 * _STEPS / (math.sqrt(3) * max(1, n) * mu)
    pull = curvature * SPREAD / columns
    left = min(1.0, 1.5 / (4 * pull * _STEPS))
    behind = 2 * curvature * outputs * math.exp(-4 * pull * _STEPS)
    return pull / 2 * size * noise**2 * left + behind
