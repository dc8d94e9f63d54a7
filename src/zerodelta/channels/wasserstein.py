"""The paper's Algorithms 1 and 2: uniform mixing, then Laplace noise, for an extra ε'.

They are here for comparison. The route from total variation to W∞ uses Theorem W, so the transport
radius is half of the paper's for every l_q ball; values are projected before anything else (A1b).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier, mix
from zerodelta.channels.kernel import Body, noisy_pair
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli_exp, uniform_below
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.transport import log_transport_radius, product_laplace_radius
from zerodelta.spaces import FiniteSpace
from zerodelta.value import value


def laplace_scale(
    *,
    norm: float,
    dimension: int,
    diameter: Rational,
    weight: Rational,
    claim: Claim,
    epsilon: Rational,
    extra_epsilon: Rational,
) -> Fraction:
    """Return b = 2Δ_1/ε' rounded up: Algorithm 1's noise with Theorem W's transport radius.

    Δ_1 = d^(1-1/q) D_q ((1-w)δ/((1+e^ε)w))^(1/d), D_q the *diameter* of the ball that is mixed in.
    """
    extra = as_positive(extra_epsilon, "extra_epsilon")
    log_radius = log_transport_radius(
        dimension=dimension,
        diameter=diameter,
        weight=weight,
        epsilon=epsilon,
        log_delta=claim.log_delta(epsilon),
    )
    log_one = product_laplace_radius(dimension=dimension, norm=norm, log_radius=log_radius)
    return Fraction(upper(lambda: 2 * ball(log_one).exp() / ball(extra)))


@value
class AlgorithmOne(Purifier):
    """Algorithm 1 on a lattice: uniform mixing, product Laplace noise of `scale` lattice units.

    Guarantee: (ε + ε')-DP for an (ε, δ)-DP base, ε = `base_epsilon`, ε' = 2Δ_1/scale. The output is
    projected onto the space, which is post-processing.
    """

    body: Body
    scale: Fraction
    mixing_weight: Fraction
    base_epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        object.__setattr__(self, "base_epsilon", as_rational(self.base_epsilon, "base_epsilon"))

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the noisy answer, or a noisy uniform point, projected onto the space."""
        kept, drawn = noisy_pair(self.body, value, 1, self.scale, bits)
        return self.body.points(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms of the noise and the rounding, plus w times the width."""
        noise = math.sqrt(2 * self.body.lattice.dimension) * float(self.scale)
        return self.body.rounded(noise) + float(self.mixing_weight) * self.body.displacement()

    def step(self) -> Step:
        """Return the W∞ route with its numbers."""
        norm = "inf" if self.body.norm == math.inf else int(self.body.norm)
        return _step(self, norm, self.body.lattice.dimension, diameter=2 * self.body.radius)


@value
class AlgorithmTwo(Purifier):
    """Algorithm 2: Algorithm 1 on the binary code of a finite space, in the unit cube.

    d = ⌈log2 N⌉ bits, w = 2^-d. Laplace noise of scale b flips a bit of a vertex with probability
    e^(-1/(2b))/2 and makes a fair bit of a uniform point, so both are drawn as coins, exactly.
    Codes beyond the space stand for element 0 (post-processing). The cube is an linf ball of
    diameter 1, which mends the paper's proof (A4).
    """

    space: FiniteSpace
    scale: Fraction
    base_epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "base_epsilon", as_rational(self.base_epsilon, "base_epsilon"))

    @property
    def code_length(self) -> int:
        """The number of bits d, at least 1."""
        return max(1, (self.space.size - 1).bit_length())

    @property
    def mixing_weight(self) -> Fraction:
        """The paper's w = 2^-d."""
        return Fraction(1, 1 << self.code_length)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the element whose code survived the flips, or a uniform code's."""
        length = self.code_length
        noisy = bernoulli_exp(1 / (2 * self.scale), size=length, bits=bits)
        coins = bits.signs(length) > 0
        flips = sum(1 << i for i in range(length) if noisy[i] and coins[i])
        drawn = int(uniform_below(1 << length, size=1, bits=bits)[0])
        code = mix(self.space.index(value) ^ flips, drawn, self.mixing_weight, bits)
        return self.space.element(code if code < self.space.size else 0)

    def expected_error(self) -> float:
        """Return a bound on the probability of publishing another element."""
        flip = math.exp(-1 / (2 * float(self.scale))) / 2
        return 1 - (1 - float(self.mixing_weight)) * (1 - flip) ** self.code_length

    def step(self) -> Step:
        """Return the W∞ route on the unit cube with its numbers."""
        return _step(self, "inf", self.code_length, diameter=1)


def _step(
    channel: AlgorithmOne | AlgorithmTwo, norm: int | str, dimension: int, diameter: int
) -> Step:
    numbers = {
        "norm": norm,
        "dimension": dimension,
        "diameter": diameter,
        "scale": channel.scale,
        "weight": channel.mixing_weight,
        "base_epsilon": channel.base_epsilon,
    }
    return Step(theorem="wasserstein-transport", numbers=numbers)
