"""Ways down a perturbed objective in plain floats: Newton, quasi-Newton, accelerated gradient.

Each takes a bounded number of steps and returns the best point it met; none is trusted.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from zerodelta.regression.integer_rows import Floats
from zerodelta.regression.objective import Objective, Solve

__all__ = ["QuasiNewton", "accelerated", "approach"]

_SAMPLES = (16, 4, 1)
_SAMPLE = 1 << 14
_ROWS_A_COLUMN = 20
_NEWTON_STEPS = 30
_QUASI_STEPS = 50
_NEAR = 1
"""After so many of them a Hessian is taken that serves to the end."""

_HALVINGS = 12
_STALE = 1 << 10
_ACCELERATED_MOST = 1 << 20


def approach(objective: Objective, target: float) -> tuple[Floats, QuasiNewton]:
    """Return a point near the minimizer, and the quasi-Newton steps that led there.

    Newton's method on some one, four, then sixteen thousand rows, whose Hessian starts
    quasi-Newton steps on all; on few rows Newton's method alone.
    """
    every = max(1, objective.rows.count // _SAMPLE)
    enough = target if every == 1 else 0.3 * math.sqrt(objective.rows.count)
    theta = np.zeros(objective.linear.shape)
    for part in _SAMPLES:
        if part > 1 and _SAMPLE // part < _ROWS_A_COLUMN * objective.rows.dimension:
            continue
        sample = objective.thinned(every * part) if every * part > 1 else objective
        near = math.sqrt(objective.rows.count) if part > 1 else enough
        theta, solve = _newton(sample, theta, near)
    steps = QuasiNewton(solve)
    return (theta if every == 1 else _quasi_newton(objective, theta, steps, target)), steps


def _newton(objective: Objective, theta: Floats, enough: float) -> tuple[Floats, Solve]:
    """Return a point and the last Hessian used on the way, which need not be that of the point."""
    gradient, solve = objective.gradient(theta), objective.newton(theta)
    length, previous = _norm(gradient), math.inf
    for _ in range(_NEWTON_STEPS):
        if length <= enough:
            break
        if _STALE * length > previous:  # else the Hessian of an earlier point does well
            solve = objective.newton(theta)
        moved = _backtrack(objective, theta, solve(gradient), length)
        if moved is None:
            break
        theta, gradient = moved
        length, previous = _norm(gradient), length
    return theta, solve


def _quasi_newton(objective: Objective, theta: Floats, steps: QuasiNewton, enough: float) -> Floats:
    """Return where quasi-Newton steps lead.

    The Hessian of all rows helps slow ones and, where it is cheap, all that are near the end.
    """
    gradient, fresh = objective.gradient(theta), False
    for number in range(_QUASI_STEPS):
        length = _norm(gradient)
        if length <= enough:
            break
        moved = _backtrack(objective, theta, steps.step(gradient), length)
        if moved is not None:
            steps.learn(moved[0] - theta, moved[1] - gradient)
            theta, gradient = moved
        elif fresh:
            break
        fresh = moved is None or 2 * _norm(gradient) > length
        if fresh or (number == _NEAR and objective.bends_cheaply):
            steps.restart(objective.newton(theta))
    return theta


def _backtrack(
    objective: Objective, theta: Floats, step: Floats, length: float
) -> tuple[Floats, Floats] | None:
    """Return the first of θ - step, θ - step/2, … with a smaller gradient, and that gradient."""
    for _ in range(_HALVINGS):
        moved = theta - step
        gradient = objective.gradient(moved)
        if _norm(gradient) < length:
            return moved, gradient
        step = step / 2
    return None


@final
class QuasiNewton:
    """Newton steps with a fixed Hessian, corrected by what was seen since (BFGS, two loops)."""

    def __init__(self, solve: Solve) -> None:
        self._solve = solve
        self._pairs: list[tuple[Floats, Floats, float]] = []

    def restart(self, solve: Solve) -> None:
        """Begin anew with another Hessian."""
        self._solve = solve
        self._pairs.clear()

    def learn(self, step: Floats, change: Floats) -> None:
        """Take note of how the gradient changed along a step."""
        product = float(np.vdot(step, change))
        if product > 0:
            self._pairs.append((step, change, product))

    def step(self, gradient: Floats) -> Floats:
        """Return the step to be taken off."""
        rest, weights = gradient.copy(), []
        for step, change, product in reversed(self._pairs):
            weight = float(np.vdot(step, rest)) / product
            rest -= weight * change
            weights.append(weight)
        result = self._solve(rest)
        for (step, change, product), weight in zip(self._pairs, reversed(weights), strict=True):
            result = result + (weight - float(np.vdot(change, result)) / product) * step
        return result


def accelerated(objective: Objective, theta: Floats, enough: float) -> Floats:
    """Return a point whose gradient is at most `enough`, by Nesterov's steps.

    In real arithmetic √κ ln(2κ ‖g₀‖²/enough²) steps suffice, κ = smoothness/strength.
    """
    smooth, strong = objective.smoothness, objective.strength
    root = math.sqrt(smooth / strong)
    start = _norm(objective.gradient(theta))
    if not enough < start < math.inf:  # there already, or hopeless in floats; no logarithm of 0
        return theta
    most = math.ceil(root * (math.log(2 * root**2) + 2 * math.log(start / enough)) + 1)
    momentum, point = (root - 1) / (root + 1), theta
    for _ in range(min(most, _ACCELERATED_MOST)):
        gradient = objective.gradient(point)
        if _norm(gradient) <= enough:
            break
        lower = point - gradient / smooth
        point, theta = lower + momentum * (lower - theta), lower
    return point


def _norm(array: Floats) -> float:
    return float(np.linalg.norm(array))
