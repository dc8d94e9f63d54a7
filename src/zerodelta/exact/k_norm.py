"""Rounded K-norm noise in Z^d: density proportional to exp(-‖z‖/scale) for the l1, l2, linf norm.

z = G·U with G ~ Gamma(d+1, scale) and U uniform in the unit *ball*. The crossed pair "Gamma(d+1)
and a uniform direction" has density zero at the origin and infinite privacy loss (theory R(ii)).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Draw, Integers, Reals, constant, rounded
from zerodelta.exact.noise import box_muller, rounded_laplace
from zerodelta.exact.rational import Rational, as_count, as_positive

__all__ = ["rounded_k_norm"]


def rounded_k_norm(
    *, norm: float, dimension: int, scale: Rational, size: int, bits: BitSource
) -> Integers:
    """Draw `size` vectors round(Z), Z with density ∝ exp(-‖z‖/scale); shape (size, dimension).

    `norm` is 1, 2 or ``math.inf``. E‖Z‖ = dimension · scale for every norm.

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_k_norm(norm=2, dimension=3, scale=10, size=2, bits=SystemBits()).shape
    (2, 3)
    """
    dimension = as_count(dimension, "dimension", minimum=1)
    scale, size = as_positive(scale, "scale"), as_count(size, "size")
    if norm == 1:  # the density is a product: independent Laplace coordinates
        return rounded_laplace(scale=scale, size=size * dimension, bits=bits).reshape(
            size, dimension
        )
    if norm == 2:
        pairs = -(-dimension // 2)
        formula, directions = partial(_euclidean, dimension, pairs), 2 * pairs + 1
    elif norm == math.inf:
        formula, directions = partial(_cube, dimension), dimension
    else:
        raise ParameterError(
            "norm", norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
        )
    draw = Draw(
        uniforms=directions + dimension + 1,
        outputs=dimension,
        formula=formula,
        constants=(constant(scale),),
    )
    return np.ascontiguousarray(rounded(draw, size, bits).T)


def _cube(dimension: int, uniforms: Reals, *constants: Reals) -> Reals:
    point = uniforms[:dimension] * 2 - 1
    return point * (_gamma(uniforms[dimension:]) * constants[0])


def _euclidean(dimension: int, pairs: int, uniforms: Reals, *constants: Reals) -> Reals:
    """Put a uniform point of the ball at a Gamma radius.

    The first d of d + 2 coordinates of a uniform point on the unit sphere are uniform in the unit
    ball, and two of the d + 2 squared normals sum to 2E, E a standard exponential.
    """
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:dimension]
    exponential = -uniforms[2 * pairs : 2 * pairs + 1].log()
    length = ((normals * normals).total() + exponential * 2).sqrt()
    radius = _gamma(uniforms[2 * pairs + 1 :]) * constants[0]
    return normals * (radius / length)


def _gamma(uniforms: Reals) -> Reals:
    return (-uniforms.log()).total()
