"""The lattice on which rows of a mean are added up, and what a mean on it can be."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_positive, inner_ends
from zerodelta.spine.public_inputs import as_pair

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 52
_SUM_BITS = 62


def mean_lattice(
    bounds: tuple[Any, Any] | None,
    data_norm: Rational | None,
    norm: float,
    *,
    dimension: int,
    n: int,
    epsilon: Fraction,
) -> FixedPoint:
    """Return the lattice between the bounds, or of the ball of that norm; it takes just one."""
    require(
        (bounds is None) != (data_norm is None),
        "bounds, data_norm",
        (bounds, data_norm),
        expected="exactly one public bound on the rows",
        remedy="pass bounds=(lower, upper), or data_norm= the largest norm a row can have",
    )
    if data_norm is not None:
        bound, steps = as_positive(data_norm, "data_norm"), _steps(n, epsilon, dimension, norm)
        return FixedPoint.ball(dimension=dimension, bound=bound, norm=norm, steps=steps)
    lower, upper = as_pair(bounds)
    steps = _steps(n, epsilon, dimension, math.inf)
    return FixedPoint.box(dimension=dimension, lower=lower, upper=upper, steps=steps)


def _steps(n: int, epsilon: Fraction, dimension: int, norm: float) -> int:
    """Return the bound in quanta: 2^8·n·ε makes half a quantum 2^-10 of the noise on a mean.

    At most so many that n of them, and for l2 the squares of one row, add up in 64 bits.
    """
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    most = min(_MOST_STEPS, (1 << _SUM_BITS) // n)
    if norm == 2:
        most = min(most, math.isqrt((1 << _SUM_BITS) // dimension))
    return max(_LEAST_STEPS, min(wanted, most))


def stretch(norm: float, noise_norm: float, dimension: int) -> Fraction:
    """Return the largest l_noise norm of a vector of unit l_norm norm, rounded up."""
    if noise_norm >= norm:
        return Fraction(1)
    power = 1 / noise_norm - (0.0 if norm == math.inf else 1 / norm)
    if power == 1:
        return Fraction(dimension)
    root = math.isqrt((dimension << 64) - 1) + 1  # √d · 2^32, rounded up
    return Fraction(root, 1 << 32)


def average(bound: Fraction | tuple[Fraction, ...]) -> Fraction:
    """Return the bound of a coordinate, averaged over the columns."""
    return _average(bound) if isinstance(bound, tuple) else bound


def ends_of(lattice: FixedPoint) -> tuple[list[Fraction], list[Fraction]]:
    """Return the bounds of each coordinate."""
    center, bound = (
        list(each) if isinstance(each, tuple) else [each] * lattice.dimension
        for each in (lattice.center, lattice.bound)
    )
    return (
        [c - b for c, b in zip(center, bound, strict=True)],
        [c + b for c, b in zip(center, bound, strict=True)],
    )


def resolution_of(lattice: FixedPoint) -> Fraction:
    """Return how far quantizing moves a coordinate, the bound being 1: in a ball also inwards."""
    return Fraction(1, lattice.steps if lattice.norm != math.inf else 2 * lattice.steps)


def inside(value: Floats, lattice: FixedPoint) -> Floats:
    """Clip the noisy mean to where a mean can be: post-processing that never adds error."""
    if lattice.norm == 2:  # around 0
        most, length = average(lattice.bound), float(np.linalg.norm(value))
        return value * min(1.0, float(most) / length) if length > 0 else value
    each = itertools.repeat
    centers = lattice.center if isinstance(lattice.center, tuple) else each(lattice.center)
    bounds = lattice.bound if isinstance(lattice.bound, tuple) else each(lattice.bound)
    alike = not isinstance(lattice.center, tuple) and not isinstance(lattice.bound, tuple)
    pairs = itertools.islice(zip(centers, bounds, strict=False), 1 if alike else lattice.dimension)
    ends = np.array([inner_ends(center - bound, center + bound) for center, bound in pairs])
    return np.clip(value, ends[:, 0], ends[:, 1])


def _average(bounds: tuple[Fraction, ...]) -> Fraction:
    return reduce(add, bounds, Fraction(0)) / len(bounds)
