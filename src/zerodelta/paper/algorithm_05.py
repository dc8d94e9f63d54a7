"""Algorithm 5 (`alg: frank_wolfe`): the non-private Frank-Wolfe method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.polytopes import Domain, Floats, as_polytope

__all__ = ["curvature", "frank_wolfe", "optimization_error"]


def frank_wolfe(
    gradient: Callable[[Floats], Any],
    *,
    domain: Domain,
    iterations: int,
    start: Sequence[float] | Floats | None = None,
) -> Floats:
    """Return θ_T, **not private**: each step moves toward the vertex that falls fastest.

    `gradient(theta)` is the gradient of the whole loss. The paper's loop has T̃ - 1 steps and
    outputs θ_T (a typo); here `iterations` is the number of steps. Starts at 0 as Algorithm 6 does.

    >>> from zerodelta.spaces import Ball
    >>> target = np.array([0.25, -0.5])
    >>> theta = frank_wolfe(lambda t: t - target, domain=Ball(2, 1, norm=1), iterations=2000)
    >>> bool(abs(theta - target).max() < 0.01)
    True
    """
    polytope = as_polytope(domain)
    steps = as_count(iterations, "iterations", minimum=1)
    theta = np.zeros(polytope.dimension) if start is None else np.array(start, dtype=np.float64)
    if theta.shape != (polytope.dimension,) or not np.isfinite(theta).all():
        raise ParameterError(
            "start",
            start,
            expected=f"{polytope.dimension} finite numbers inside the domain",
            remedy="leave it out to start at 0",
        )
    for step in range(steps):
        slope = np.asarray(gradient(theta.copy()), dtype=np.float64)
        scores = polytope.scores(polytope.row(slope[np.newaxis])[0])
        theta = polytope.toward(theta, step, int(np.argmax(scores)))
    return theta


def curvature(*, smoothness: Rational, length: Rational) -> Fraction:
    """Return 4 β ‖C‖₁², at least the curvature Γ of a loss that is β-smooth in l1.

    >>> curvature(smoothness=1, length="1/2")
    Fraction(1, 1)
    """
    beta, width = as_positive(smoothness, "smoothness"), as_positive(length, "length")
    # theory C10.7: the diameter is 2 ‖C‖₁, so the paper's β ‖C‖₁² lacks a factor of 4
    return 4 * beta * width**2


def optimization_error(*, curvature: Rational, iterations: int) -> float:
    """Return 2Γ/(T + 2): what is left after T exact steps of size 2/(t + 2).

    >>> optimization_error(curvature=1, iterations=18)
    0.1
    """
    steps = as_count(iterations, "iterations", minimum=1)
    return float(2 * as_positive(curvature, "curvature") / (steps + 2))
