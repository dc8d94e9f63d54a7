"""What Student-t noise scaled to a smooth sensitivity costs: pure DP (theory C10.3).

S(D) is at least the local sensitivity, and S(D) <= e^β S(D') for neighbors. q + (S/c)·T, T
Student-t with ν >= 1 degrees of freedom, is pure with ε = ((ν+1)√(c²/ν + β²) + (ν-1)β)/2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from flint import arb

from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.domains import Positive, at_least, between
from zerodelta.privacy.theorems.theorem import PureBase
from zerodelta.value import value


def smooth_sensitivity_epsilon(
    *, epsilon: Rational, degrees: Rational, decay: Rational, ratio: Rational
) -> Fraction:
    """Return ε if the formula for ν = degrees, β = -ln(decay), c = ratio is certainly at most it.

    >>> smooth_sensitivity_epsilon(epsilon=1, degrees=3, decay="0.9", ratio="0.7")
    Fraction(1, 1)
    """
    target, nu, r = as_positive(epsilon, "epsilon"), _degrees(degrees), _decay(decay)
    c = as_positive(ratio, "ratio")

    def slack() -> arb:
        beta = -ball(r).log()
        spread = (ball(c * c / nu) + beta * beta).sqrt()
        return 2 * ball(target) - ball(nu + 1) * spread - ball(nu - 1) * beta

    if lower(slack) >= 0:
        return target
    raise GuaranteeError(
        f"too little noise for theorem C10.3 at ε = {target}: lower the ratio or raise the decay."
    )


def largest_noise_ratio(*, epsilon: Rational, degrees: Rational, decay: Rational) -> Fraction:
    """Return the largest c that C10.3 allows, rounded down: √ν √(((2ε-(ν-1)β)/(ν+1))² - β²).

    >>> round(float(largest_noise_ratio(epsilon=1, degrees=1, decay="0.9")), 6)  # √(1 - ln² 0.9)
    0.994434
    """
    target, nu, r = as_positive(epsilon, "epsilon"), _degrees(degrees), _decay(decay)

    def squared() -> arb:
        beta = -ball(r).log()
        rate = (2 * ball(target) - ball(nu - 1) * beta) / ball(nu + 1)
        return ball(nu) * (rate - beta) * (rate + beta)

    if lower(lambda: ball(target) + ball(nu) * ball(r).log()) <= 0 or lower(squared) <= 0:
        raise GuaranteeError(
            f"β = -ln({r}) leaves nothing of ε = {target}: it must be below ε/ν; raise the decay."
        )
    ratio = Fraction(lower(lambda: squared().sqrt()))
    while True:  # the check rounds once more
        try:
            smooth_sensitivity_epsilon(epsilon=target, degrees=nu, decay=r, ratio=ratio)
        except GuaranteeError:
            ratio *= 1 - Fraction(1, 1 << 50)
        else:
            return ratio


def _degrees(degrees: Rational) -> Fraction:
    nu = as_rational(degrees, "degrees")
    require(nu >= 1, "degrees", degrees, "at least 1 degree of freedom", "pass degrees=3")
    return nu


def _decay(decay: Rational) -> Fraction:
    r = as_rational(decay, "decay")
    require(0 < r < 1, "decay", decay, "e^-β, a number in (0, 1)", 'pass decay="0.9"')
    return r


@value
class SmoothSensitivity(PureBase):
    """Student-t noise scaled to a smooth bound on the local sensitivity."""

    label = "smooth-sensitivity"
    every_row = True
    section = "C10.3"
    sentence = (
        "Student-t noise with {degrees} degrees of freedom, exactly rounded, of scale S/{ratio}, "
        "S a bound on the answer's local sensitivity that falls by at most the factor {decay} "
        "between neighbors: pure DP with ε = {epsilon}."
    )
    replace_only = True
    inequality = staticmethod(smooth_sensitivity_epsilon)

    epsilon: Positive
    degrees: Annotated[Fraction, at_least(1)]
    decay: Annotated[Fraction, between(0, 1, ends="()")]
    ratio: Positive
