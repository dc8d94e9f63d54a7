"""Rounded K-norm noise for counts: density ∝ exp(-max(Σz⁺, Σz⁻)/scale) in Z^d (theory C10.4).

One replaced row takes 1 from one count and adds 1 to another; {max(Σz⁺, Σz⁻) <= 1} is the convex
hull of these moves, so no K-norm noise for counts is smaller.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_subset
from zerodelta.exact.lazy import Draw, Integers, Reals, constant, rounded
from zerodelta.exact.rational import Rational, as_count, as_positive


def rounded_count_noise(*, dimension: int, scale: Rational, bits: BitSource) -> Integers:
    """Draw one vector round(Z), Z with density ∝ exp(-max(Σz⁺, Σz⁻)/scale).

    Z = G·U, G ~ Gamma(d+1, scale), U uniform in the unit ball. The part of the ball with k
    positive coordinates is a product of a k- and a (d-k)-dimensional simplex, C(d,k) times: its
    volume is C(d,k)/(k! (d-k)!) ∝ C(d,k)². So many of d places lie in the first half of 2d if d
    are drawn without replacement, and those places are the positive coordinates.

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_count_noise(dimension=4, scale=10, bits=SystemBits()).shape
    (4,)
    """
    d, exact = as_count(dimension, "dimension", minimum=1), as_positive(scale, "scale")
    places = uniform_subset(2 * d, size=d, bits=bits)
    positive = np.zeros(d, dtype=np.bool_)
    positive[places[places < d]] = True
    above = int(np.count_nonzero(positive))
    draw = Draw(
        uniforms=2 * d + 3,
        outputs=d,
        formula=partial(_two_simplices, d, above),
        constants=(constant(exact),),
    )
    drawn = rounded(draw, 1, bits)[:, 0]
    noise = np.empty(d, dtype=drawn.dtype)
    noise[positive], noise[~positive] = drawn[:above], drawn[above:]
    return noise


def _two_simplices(dimension: int, above: int, uniforms: Reals, *constants: Reals) -> Reals:
    """Return G · (a uniform point of a simplex, minus one of another), the positive part first.

    Exponentials over their sum and one more are uniform in {z >= 0, Σz <= 1}.
    """
    first, second = -uniforms[: above + 1].log(), -uniforms[above + 1 : dimension + 2].log()
    radius = -uniforms[dimension + 2 :].log_total() * constants[0]
    up, down = first[:above] / first.total(), second[1:] / second.total()
    return uniforms.stack([up, -down]) * radius
