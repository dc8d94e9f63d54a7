"""Rounded K-norm noise in Z^d: density proportional to exp(-‖z‖/scale) for the l1, l2, linf norm.

z = G·U with G ~ Gamma(d+1, scale) and U uniform in the unit *ball*. The crossed pair "Gamma(d+1)
and a uniform direction" has density zero at the origin and infinite privacy loss (theory R(ii)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Draw, Formula, Integers, Reals, constant, rounded
from zerodelta.exact.noise import box_muller, rounded_laplace
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational


def rounded_k_norm(
    *,
    norm: float,
    dimension: int,
    scale: Rational | list[Fraction],
    size: int,
    bits: BitSource,
    center: Sequence[float | Fraction] | None = None,
) -> Integers:
    """Draw `size` vectors round(c + Z), Z with density ∝ exp(-‖z‖/scale); shape (size, dimension).

    `norm` is 1, 2 or ``math.inf``. E‖Z‖ = dimension · scale for every norm. A `center` off the
    lattice is added before the sum is rounded as a whole; it must be finite. Several scales, one
    for each coordinate, stretch the ball: the density is ∝ exp(-‖z/scale‖).

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_k_norm(norm=2, dimension=3, scale=10, size=2, bits=SystemBits()).shape
    (2, 3)
    """
    dimension = as_count(dimension, "dimension", minimum=1)
    size, scales = as_count(size, "size"), _scales(scale, dimension)
    if norm == 1 and center is None and len(scales) == 1:
        # the density is a product: independent Laplace coordinates
        count = size * dimension
        return rounded_laplace(scale=scales[0], size=count, bits=bits).reshape(size, dimension)
    noise = _noise(norm, dimension)
    shift = (constant(*_center(center, dimension)),) if center is not None else ()

    def formula(uniforms: Reals, b: Reals, *shifts: Reals) -> Reals:
        noisy: Reals = noise.formula(uniforms) * b
        return noisy + shifts[0] if shifts else noisy

    draw = Draw(
        uniforms=noise.uniforms,
        outputs=dimension,
        formula=formula,
        constants=(constant(*scales), *shift),
    )
    return _vectors(draw, size, bits)


def _scales(scale: Rational | list[Fraction], dimension: int) -> list[Fraction]:
    if not isinstance(scale, list):
        return [as_positive(scale, "scale")]
    if len(scale) != dimension or not all(isinstance(b, Fraction) and b > 0 for b in scale):
        raise ParameterError(
            "scale",
            f"{len(scale)} scales",
            expected=f"one positive Fraction, or dimension = {dimension} of them",
            remedy="pass one scale for each coordinate",
        )
    return scale


def _center(center: Sequence[float | Fraction], dimension: int) -> list[Fraction]:
    if len(center) != dimension:
        raise ParameterError(
            "center",
            f"{len(center)} coordinates",
            expected=f"dimension = {dimension} coordinates",
            remedy="pass one number for each coordinate",
        )
    if not all(isinstance(x, (int, Fraction)) or math.isfinite(x) for x in center):
        raise ParameterError(  # never the coordinates themselves: they may be computed from data
            "center",
            "not finite",
            expected="finite coordinates",
            remedy="map NaN and infinities to a fixed point before the noise is added",
        )
    return [as_rational(coordinate, "center") for coordinate in center]


def rounded_uniform_plus_k_norm(
    *,
    ball_norm: float,
    radius: Rational,
    noise_norm: float,
    scale: Rational,
    dimension: int,
    size: int,
    bits: BitSource,
) -> Integers:
    """Draw `size` vectors round(V + Z), V uniform in a ball, Z K-norm noise; (size, dimension).

    The sum is rounded as a whole, as theorems about the *density* of V + Z require.
    """
    dimension = as_count(dimension, "dimension", minimum=1)
    point, noise = _ball_point(ball_norm, dimension), _noise(noise_norm, dimension)

    def formula(uniforms: Reals, r: Reals, b: Reals) -> Reals:
        inside: Reals = point.formula(uniforms[: point.uniforms])
        around: Reals = noise.formula(uniforms[point.uniforms :])
        return inside * r + around * b

    draw = Draw(
        uniforms=point.uniforms + noise.uniforms,
        outputs=dimension,
        formula=formula,
        constants=(
            constant(as_positive(radius, "radius")),
            constant(as_positive(scale, "scale")),
        ),
    )
    return _vectors(draw, as_count(size, "size"), bits)


def _vectors(draw: Draw, size: int, bits: BitSource) -> Integers:
    return np.ascontiguousarray(rounded(draw, size, bits).T)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    """A random vector as a formula of so many uniforms."""

    uniforms: int
    formula: Formula


def _noise(norm: float, dimension: int) -> _Point:
    """Return unit K-norm noise."""
    if norm == 1:
        return _Point(uniforms=2 * dimension, formula=partial(_laplace, dimension))
    point = _ball_point(norm, dimension)

    def formula(uniforms: Reals) -> Reals:
        inside: Reals = point.formula(uniforms[: point.uniforms])
        return inside * _gamma(uniforms[point.uniforms :])

    return _Point(uniforms=point.uniforms + dimension + 1, formula=formula)


def _ball_point(norm: float, dimension: int) -> _Point:
    """Return a uniform point of the unit ball."""
    if norm == 1:
        return _Point(uniforms=2 * dimension + 1, formula=partial(_cross_polytope, dimension))
    if norm == 2:
        pairs = -(-dimension // 2)
        return _Point(uniforms=2 * pairs + 1, formula=partial(_euclidean, dimension, pairs))
    if norm == math.inf:
        return _Point(uniforms=dimension, formula=_cube)
    raise ParameterError(
        "norm", norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
    )


def _cube(uniforms: Reals) -> Reals:
    return uniforms * 2 - 1


def _euclidean(dimension: int, pairs: int, uniforms: Reals) -> Reals:
    """Return a uniform point of the l2 ball.

    The first d of d + 2 coordinates of a uniform point on the unit sphere are uniform in the unit
    ball, and two of the d + 2 squared normals sum to 2E, E a standard exponential. So do the two
    partners of a Box-Muller pair: E = -ln U of its first uniform. If d is odd one has no partner.
    """
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:dimension]
    whole = dimension // 2
    exponentials = uniforms.stack([uniforms[:whole], uniforms[2 * pairs :]])
    single = normals[whole:pairs]
    square = uniforms.stack([exponentials.log_total() * -2, single * single]).total()
    return normals / square.sqrt()


def _cross_polytope(dimension: int, uniforms: Reals) -> Reals:
    """Return a uniform point of the l1 ball: signed exponentials over a sum of one more."""
    signed = _laplace(dimension, uniforms[: 2 * dimension])
    return signed / (abs(signed).total() - uniforms[2 * dimension :].log())


def _laplace(dimension: int, uniforms: Reals) -> Reals:
    """Return unit Laplace coordinates: differences of two exponentials."""
    return uniforms[dimension:].log() - uniforms[:dimension].log()


def _gamma(uniforms: Reals) -> Reals:
    return -uniforms.log_total()
