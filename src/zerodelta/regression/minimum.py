"""Compute the minimizer of a perturbed objective with a *sure* error: what Theorem N asks for.

The fast way is plain floats judged by `certified_gradient`; where floats cannot reach the public
target, Arb does. Nothing tells which way was taken, and no number of steps is kept.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from zerodelta.exact.real_k_norm import RealKNorm
from zerodelta.regression.certified_gradient import certified_gradient
from zerodelta.regression.descent import QuasiNewton, accelerated, approach
from zerodelta.regression.integer_rows import Floats, IntegerRows
from zerodelta.regression.loss import Loss
from zerodelta.regression.objective import Objective
from zerodelta.regression.one_thread import one_thread
from zerodelta.regression.point import Point
from zerodelta.regression.precise import PreciseObjective, as_float, finish

__all__ = ["certified_minimum"]

_U = 2.0**-53
_CERTIFIED_STEPS = 8


def certified_minimum(
    rows: IntegerRows, loss: Loss, noise: RealKNorm, *, strength: Fraction, error: Fraction
) -> list[Fraction]:
    """Return θ, line by line, surely within `error` (l2) of the minimizer.

    The objective is `strength`-strongly convex, so ‖θ - θ*‖ <= ‖gradient‖/strength. It ends with
    probability 1, and, given the drawn noise, after a bounded number of steps.
    """
    target = error * strength
    shape = (rows.dimension, loss.outputs)
    with np.errstate(all="ignore"), one_thread():
        drawn = noise.within(target / 64)
        linear = np.array([as_float(value) for value in drawn]).reshape(shape)
        objective = Objective(rows=rows, loss=loss, strength=float(strength), linear=linear)
        # what rounding the noise to floats and the noise's own error add to the gradient
        unseen = float(np.linalg.norm(linear)) * 1.01 * _U + float(target) / 32
        reach = float(target) * (1 - 2.0**-40)
        theta, steps = approach(objective, reach / 4)
        found = _certify(objective, theta, steps, reach, unseen)
        if found is None and unseen < reach:
            theta = accelerated(objective, _finite(theta), reach / 2)
            found = _certify(objective, theta, steps, reach, unseen)
    if found is not None:
        return found.exact()
    precise = PreciseObjective(
        rows=rows, loss=loss, strength=strength, linear=noise.within(target / 4)
    )
    start = [Fraction(float(value)) for value in _finite(theta).flat]
    return finish(precise, start, steps.step, target * 3 / 4)


def _certify(
    objective: Objective, theta: Floats, steps: QuasiNewton, reach: float, unseen: float
) -> Point | None:
    """Return a point whose gradient is surely at most `reach`, or None if floats find none."""
    point = Point.near(_finite(theta))
    for _ in range(_CERTIFIED_STEPS):
        gradient = certified_gradient(
            objective.rows,
            objective.loss,
            point,
            strength=objective.strength,
            linear=objective.linear,
        )
        doubt = (gradient.error + unseen) * (1 + 2.0**-40)
        if gradient.length + doubt <= reach:
            return point
        step = steps.step(gradient.value)
        if not doubt < reach or not np.isfinite(step).all():
            return None
        point = point.moved(step)
    return None


def _finite(theta: Floats) -> Floats:
    return theta if bool(np.isfinite(theta).all()) else np.zeros(theta.shape)
