"""The iterate that a list of chosen vertices leads to, with the paper's steps of 2/(t + 2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zerodelta.exact.arrays import Floats
from zerodelta.training.polytopes import Polytope


def iterate(polytope: Polytope, chosen: Iterable[int]) -> Floats:
    """Return θ_T from θ_0 = 0."""
    theta = np.zeros(polytope.dimension)
    for step, index in enumerate(chosen):
        theta = polytope.toward(theta, step, index)
    return theta
