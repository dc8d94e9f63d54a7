"""Minimize a perturbed objective in plain floats: Newton, quasi-Newton, accelerated gradient.

Each method takes a bounded number of steps and returns the best point it met. Whatever is computed
here only proposes points; `certified_gradient` judges them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np

from zerodelta.exact.arrays import Floats
from zerodelta.regression.certified_losses import CertifiedLoss
from zerodelta.regression.integer_rows import STEPS, IntegerRows
from zerodelta.value import value

Solve: TypeAlias = Callable[[Floats], Floats]
"""Gradient to Newton step, about."""

_DENSE = 300
"""Up to so many parameters the Hessian is formed; beyond, conjugate gradients use products."""

_CONJUGATE_STEPS = 60
_CONJUGATE_ACCURACY = 0.02
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


@value(eq=False)
class Objective:
    """weight · Σ loss + (strength/2) ‖θ‖² + ⟨linear, θ⟩, θ of shape (d, outputs)."""

    rows: IntegerRows
    loss: CertifiedLoss
    strength: float
    linear: Floats
    weight: float = 1.0

    @property
    def smoothness(self) -> float:
        """A bound on the Hessian: rows have length at most 1."""
        return self.weight * self.rows.count * self.loss.curvature_bound + self.strength

    @property
    def has_cheap_hessian(self) -> bool:
        """Whether the Hessian of all rows costs no more than a few gradients."""
        return self.linear.size * (self.loss.outputs + 1) <= 2 * _DENSE

    def thinned(self, every: int) -> Objective:
        """Return the objective of every k-th row, each counting k = `every` times."""
        return Objective(
            rows=self.rows.thinned(every),
            loss=self.loss.thinned(every),
            strength=self.strength,
            linear=self.linear,
            weight=self.weight * every,
        )

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradient."""
        scaled, total = theta / STEPS, np.zeros(theta.shape)
        for where, part in self.rows.blocks():
            total += (self.loss.slope((part @ scaled).T, where) @ part).T
        return total * (self.weight / STEPS) + self.strength * theta + self.linear

    def newton(self, theta: Floats) -> Solve:
        """Return what turns a gradient near `theta` into a Newton step."""
        if theta.size <= _DENSE:
            return self._factored(theta)
        scaled = theta / STEPS
        curved = [
            (part, self.loss.curvature((part @ scaled).T, where))
            for where, part in self.rows.blocks()
        ]

        def product(step: Floats) -> Floats:
            small, total = step / STEPS, np.zeros(step.shape)
            for part, curvature in curved:
                total += (self.loss.hessian_product(curvature, (part @ small).T) @ part).T
            return total * (self.weight / STEPS) + self.strength * step

        return lambda gradient: _conjugate_gradients(product, gradient)

    def _factored(self, theta: Floats) -> Solve:
        d, outputs = theta.shape
        scaled, hessian = theta / STEPS, np.zeros((outputs, d, outputs, d))
        for where, part in self.rows.blocks():
            curvature = self.loss.curvature((part @ scaled).T, where)
            for a in range(outputs):
                for b in range(a, outputs):
                    weights = self.loss.pair_weights(curvature, a, b)
                    hessian[a, :, b, :] += _weighted(part, weights, square=a == b)
        for a in range(outputs):
            for b in range(a):
                hessian[a, :, b, :] = hessian[b, :, a, :]
        matrix = hessian.reshape(theta.size, theta.size) * (self.weight / STEPS**2)
        matrix[np.diag_indices(theta.size)] += self.strength
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:  # an exception would be an output: a poor step is none
            return lambda gradient: gradient / self.smoothness

        def solve(gradient: Floats) -> Floats:
            lines: Floats = (inverse @ gradient.T.reshape(-1)).reshape(outputs, d).T
            return lines

        return solve


def _weighted(part: Floats, weights: Floats, *, square: bool) -> Floats:
    """Return Σ weight · row rowᵀ; a `square` has no negative weight, and takes half the time."""
    if not square:
        return np.asarray((part.T * weights) @ part)
    halves = part * np.sqrt(np.maximum(weights, 0.0))[:, None]
    return np.asarray(halves.T @ halves)  # of one array with itself: BLAS computes a half


def _conjugate_gradients(product: Solve, gradient: Floats) -> Floats:
    """Solve H step = gradient roughly."""
    step, rest = np.zeros(gradient.shape), gradient.copy()
    direction, square = rest.copy(), float(np.vdot(rest, rest))
    enough = square * _CONJUGATE_ACCURACY**2
    for _ in range(_CONJUGATE_STEPS):
        if not square > enough:
            break
        curved = product(direction)
        length = square / float(np.vdot(direction, curved))
        step += length * direction
        rest -= length * curved
        previous, square = square, float(np.vdot(rest, rest))
        direction = rest + (square / previous) * direction
    return step


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
        if fresh or (number == _NEAR and objective.has_cheap_hessian):
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
