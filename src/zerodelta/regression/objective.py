"""The perturbed objective in plain floats: where a minimizer is looked for, never what is proved.

Whatever is computed here only proposes points; `certified_gradient` judges them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from zerodelta.regression.integer_rows import STEPS, Floats, IntegerRows
from zerodelta.regression.loss import Loss

__all__ = ["Objective", "Solve"]

Solve: TypeAlias = Callable[[Floats], Floats]
"""Gradient to Newton step, about."""

_DENSE = 300
"""Up to so many parameters the Hessian is formed; beyond, conjugate gradients use products."""

_CONJUGATE_STEPS = 60
_CONJUGATE_ACCURACY = 0.02


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Objective:
    """weight · Σ loss + (strength/2) ‖θ‖² + ⟨linear, θ⟩, θ of shape (d, outputs)."""

    rows: IntegerRows
    loss: Loss
    strength: float
    linear: Floats
    weight: float = 1.0

    @property
    def smoothness(self) -> float:
        """A bound on the Hessian: rows have length at most 1."""
        return self.weight * self.rows.count * self.loss.curvature_bound + self.strength

    @property
    def bends_cheaply(self) -> bool:
        """Whether the Hessian of all rows costs no more than a few gradients."""
        return self.linear.size * (self.loss.outputs + 1) <= 2 * _DENSE

    def thinned(self, every: int) -> Objective:
        """Return the objective of every so-manyth row, each counting so often."""
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
        bent = [
            (part, self.loss.curvature((part @ scaled).T, where))
            for where, part in self.rows.blocks()
        ]

        def product(step: Floats) -> Floats:
            small, total = step / STEPS, np.zeros(step.shape)
            for part, curvature in bent:
                total += (self.loss.bend(curvature, (part @ small).T) @ part).T
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
        bent = product(direction)
        length = square / float(np.vdot(direction, bent))
        step += length * direction
        rest -= length * bent
        previous, square = square, float(np.vdot(rest, rest))
        direction = rest + (square / previous) * direction
    return step
