"""Algorithm 5 (`alg: frank_wolfe`): the non-private Frank-Wolfe method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import as_count
from zerodelta.training.polytopes import Domain, as_polytope


def frank_wolfe(
    gradient: Callable[[Floats], Any],
    *,
    domain: Domain,
    iterations: int,
    start: Sequence[float] | Floats | None = None,
) -> Floats:
    """Return θ_T, **not private**: each step moves toward the vertex that falls fastest.

    Use it on public data, to see what `frank_wolfe_pure` would find without privacy.

    Parameters
    ----------
    gradient : callable
        gradient(theta), the gradient ∇L(θ) of the whole loss.
    domain : Ball or array
        C = conv(S): an l1 ball around 0, or the vertices S, one line each.
    iterations : int
        The number T of steps. (The paper's loop has T̃ - 1 steps and outputs θ_T, a typo.)
    start : array, optional
        θ_0, where to start: at 0 by default, as Algorithm 6 does.

    Returns
    -------
    array
        A point of the domain.

    Examples
    --------
    >>> from zerodelta.spaces import Ball
    >>> target = np.array([0.25, -0.5])
    >>> theta = frank_wolfe(lambda t: t - target, domain=Ball(2, 1, norm=1), iterations=2000)
    >>> theta.round(2)
    array([ 0.25, -0.5 ])

    """
    polytope = as_polytope(domain)
    steps = as_count(iterations, "iterations", minimum=1)
    theta = np.zeros(polytope.dimension) if start is None else np.array(start, dtype=np.float64)
    require(
        theta.shape == (polytope.dimension,) and np.isfinite(theta).all(),
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
