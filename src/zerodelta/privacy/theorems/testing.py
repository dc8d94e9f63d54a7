"""State the theorems of releases after a test, whose failure is the mixing (C3-C5), and C10.3."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeVar

from flint import arb

from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.parameters import Neighbors, as_at_least_zero
from zerodelta.privacy.steps import (
    Dimension,
    Noise,
    NotNegative,
    Positive,
    Size,
    Weight,
    at_least,
    between,
    plain,
)
from zerodelta.privacy.theorems.theorem import BaseTheorem, PureTheorem
from zerodelta.value import value

# -- The Laplace noise of a test: its tail, and the smallest threshold that a condition allows ----
# A test adds Laplace noise Z of rate r (scale 1/r) to an integer and passes above a threshold τ.
# Its noise is "real", "rounded" to the nearest integer, or "discrete" Laplace. The three have
# different tails, P(Z > τ) = e^(-rτ)/2, e^(-r(τ+1/2))/2 and e^(-r(τ+1))/(1+e^-r), so a threshold
# that is proven for one kind may be too low for another (rows of C3's table must not be mixed).

_T = TypeVar("_T", bound="_Tested")
_KINDS = ("real", "rounded", "discrete")


def log_pass_probability(*, rate: Rational, threshold: Rational, noise: str) -> float:
    """Return ln P(Z > τ) rounded up, Z Laplace noise of the rate, τ >= 0.

    >>> round(log_pass_probability(rate=1, threshold=10, noise="real"), 6)
    -10.693147
    """
    return upper(log_tail(as_positive(rate, "rate"), as_threshold(threshold, noise), noise))


def log_tail(rate: Fraction, threshold: Fraction, noise: str) -> Callable[[], arb]:
    """Return a function that computes an enclosure of ln P(Z > τ), at any precision."""
    if noise == "real":
        return lambda: ball(-rate * threshold) - ball(2).log()
    if noise == "rounded":
        return lambda: ball(-rate * (threshold + Fraction(1, 2))) - ball(2).log()
    return lambda: ball(-rate * (threshold + 1)) - ball(-rate).exp().log1p()


def _check_noise(noise: str) -> None:
    require(noise in _KINDS, "noise", noise, f"one of {', '.join(_KINDS)}", 'pass noise="real"')


def as_threshold(threshold: Rational, noise: str) -> Fraction:
    """Return the threshold, at least 0 and an integer for integer noise."""
    _check_noise(noise)
    exact = as_at_least_zero(threshold, "threshold")
    require(
        not (noise != "real" and exact.denominator != 1),
        "threshold",
        threshold,
        f"an integer for {noise} noise",
        "round it up to an integer",
    )
    return exact


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tested(PureTheorem):
    """A release after a test of rate r that passes rarely where the release would be unsafe."""

    usual_noise: ClassVar[str] = "real"

    threshold: NotNegative
    noise: Noise

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The rate of the test's noise."""

    @property
    @abstractmethod
    def total(self) -> Fraction:
        """The ε that is proven if the condition holds."""

    @abstractmethod
    def slack(self, tail: Callable[[], arb]) -> arb:
        """Return the slack of the condition for P(Z > τ) = e^tail; it holds if this is >= 0."""

    @abstractmethod
    def log_odds(self) -> arb:
        """Return the -ln P(Z > τ) for which the slack is 0."""

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return ε if the condition certainly holds, else refuse."""
        tail = log_tail(self.rate, as_threshold(self.threshold, self.noise), self.noise)
        if lower(lambda: self.slack(tail)) >= 0:
            return self.total
        raise GuaranteeError(
            f"the threshold is too low for theorem {self.label} at ε = {self.total}: raise it."
        )

    def with_smallest_threshold(self: _T) -> _T:
        """Return the theorem with the smallest τ >= 0 for which it holds, rounded up."""

        def solution() -> arb:
            """Return the real τ for which the slack of the condition is 0."""
            log_odds = self.log_odds()
            if self.noise == "discrete":
                return (log_odds - ball(-self.rate).exp().log1p()) / ball(self.rate) - 1
            tau = (log_odds - ball(2).log()) / ball(self.rate)
            return tau - ball(Fraction(1, 2)) if self.noise == "rounded" else tau

        start = max(0.0, upper(solution))
        if math.isinf(start):
            raise GuaranteeError("ε is too small for any threshold: raise it, or its share.")
        integer = self.noise != "real"
        tau = Fraction(math.ceil(start)) if integer else Fraction(start)
        # the certified check rounds once more, so the solution may be one step too low
        while True:
            theorem = replace(self, threshold=tau)
            try:
                theorem.cost(Neighbors.REPLACE)
            except GuaranteeError:
                tau = tau + 1 if integer else Fraction(math.nextafter(float(tau), math.inf))
            else:
                return theorem

    @classmethod
    def smallest(cls: type[_T], **numbers: Any) -> _T:
        """Return the theorem with these numbers and the smallest threshold that they allow.

        >>> kinds = ("rounded", "discrete")
        >>> modes = [StableMode.smallest(points=4, epsilon=1, noise=kind) for kind in kinds]
        >>> [int(mode.threshold) for mode in modes]
        [1, 0]
        """
        fields = {"noise": cls.usual_noise, "threshold": 0, **numbers}
        theorem = cls.read({name: plain(number) for name, number in fields.items()})
        return theorem.with_smallest_threshold()


def _mass(points: int, dimension: int, epsilon: Fraction, sensitivity: Fraction, noise: str) -> arb:
    """Return N·pm for N points, pm = P(release noise = 0) its largest probability."""
    half = epsilon / (2 * sensitivity)
    peak = ball(half).tanh() if noise == "discrete" else -(ball(-half).expm1())
    return points * peak**dimension


@value
class ProposeTestRelease(BaseTheorem):
    """Propose-test-release: (ε₁+ε₂, dp)-DP, dp = P(pass | distance 0) (theory A7).

    If one of two neighbors is stable, their answers differ by at most the proposed bound. Otherwise
    both distances are 0, and each passes the test with probability at most dp.
    """

    label = "propose-test-release"
    every_row = True
    section = "C3"
    sentence = (
        "the answer is released, at a cost of {release_epsilon}, only if a test with {noise} "
        "Laplace noise of rate {test_epsilon} exceeds {threshold}: approximate DP."
    )

    test_epsilon: Positive
    release_epsilon: NotNegative
    threshold: NotNegative
    noise: Noise

    def _claim(self, neighbors: Neighbors) -> ApproxDP:
        log_pass = log_pass_probability(
            rate=self.test_epsilon, threshold=self.threshold, noise=self.noise
        )
        return ApproxDP(self.test_epsilon + self.release_epsilon, log_pass, neighbors=neighbors)


@value
class PureProposeTestRelease(_Tested):
    """Propose-test-release where a failed test publishes a uniform point: N·dp·pm <= e^t(1-dp) - 1.

    N lattice points in all, pm the largest probability of the release noise, rounded Laplace of
    scale sensitivity/ε₂ per coordinate (discrete Laplace if the test noise is discrete).
    """

    label = "pure-propose-test-release"
    every_row = True
    section = "C3"
    sentence = (
        "the answer, one of {points} points in {dimension} dimensions and of sensitivity "
        "{sensitivity} where it is stable, is released at a cost of {release_epsilon} if a test "
        "with {noise} Laplace noise of rate {test_epsilon} exceeds {threshold}, else a uniform "
        "point: pure DP."
    )

    points: Size
    dimension: Dimension
    sensitivity: Positive
    test_epsilon: Positive
    release_epsilon: Positive

    @property
    def rate(self) -> Fraction:
        """That of the test."""
        return self.test_epsilon

    @property
    def total(self) -> Fraction:
        """T = ε₁+ε₂."""
        return self.test_epsilon + self.release_epsilon

    def _mass(self) -> arb:
        return _mass(
            self.points, self.dimension, self.release_epsilon, self.sensitivity, self.noise
        )

    def slack(self, tail: Callable[[], arb]) -> arb:
        """Return e^t - 1 - dp (N·pm + e^t)."""
        t, spread = self.total, self._mass
        return ball(t).expm1() - tail().exp() * (spread() + ball(t).exp())

    def log_odds(self) -> arb:
        """Return ln((N·pm + e^t)/(e^t - 1))."""
        t = self.total
        return ((self._mass() + ball(t).exp()) / ball(t).expm1()).log()


@value
class NoisyLocalSensitivity(BaseTheorem):
    """Noise scaled to a noisy bound on the local sensitivity: (ε₁+ε₂, db)-DP (theory A8).

    db = P(noise < -τ): the noisy bound falls short of the local sensitivity. Jointly with the
    bound, the ratio is at most e^(ε₁+ε₂) wherever it does not.
    """

    label = "noisy-local-sensitivity"
    every_row = True
    section = "C4"
    sentence = (
        "the answer is released, at a cost of {release_epsilon}, with noise for its local "
        "sensitivity, itself released with {noise} Laplace noise at a cost of {bound_epsilon}, of "
        "sensitivity {local_change}, plus {threshold}: approximate DP."
    )

    bound_epsilon: Positive
    release_epsilon: Positive
    local_change: Positive
    threshold: NotNegative
    noise: Noise

    def _claim(self, neighbors: Neighbors) -> ApproxDP:
        rate = self.bound_epsilon / self.local_change
        log_short = log_pass_probability(rate=rate, threshold=self.threshold, noise=self.noise)
        return ApproxDP(self.bound_epsilon + self.release_epsilon, log_short, neighbors=neighbors)


@value
class PureLocalSensitivity(_Tested):
    """Noise scaled to a noisy bound on the local sensitivity, mixed with a uniform point.

    (1-w)(N·db·pm + db) <= w(e^t - 1), pm the largest probability of the release noise at the
    smallest bound.
    """

    label = "pure-local-sensitivity"
    every_row = True
    section = "C4"
    sentence = (
        "the answer, one of {points} points in {dimension} dimensions, is released at a cost of "
        "{release_epsilon} with noise for a bound of at least {smallest_bound} on its local "
        "sensitivity, which has sensitivity {local_change} and is released with {noise} Laplace "
        "noise at a cost of {bound_epsilon} plus {threshold}; replaced by a uniform point with "
        "probability {weight}: pure DP."
    )
    usual_noise = "rounded"

    points: Size
    dimension: Dimension
    bound_epsilon: Positive
    release_epsilon: Positive
    local_change: Positive
    smallest_bound: Positive
    weight: Weight

    @property
    def rate(self) -> Fraction:
        """ε₁/γ, γ the change of the local sensitivity between neighbors."""
        return self.bound_epsilon / self.local_change

    @property
    def total(self) -> Fraction:
        """T = ε₁+ε₂."""
        return self.bound_epsilon + self.release_epsilon

    def _mass(self) -> arb:
        return _mass(
            self.points, self.dimension, self.release_epsilon, self.smallest_bound, self.noise
        )

    def slack(self, tail: Callable[[], arb]) -> arb:
        """Return w(e^t - 1) - (1-w)·db·(N·pm + 1)."""
        t, w, spread = self.total, self.weight, self._mass
        return ball(w) * ball(t).expm1() - ball(1 - w) * tail().exp() * (spread() + 1)

    def log_odds(self) -> arb:
        """Return ln((N·pm + 1)(1-w)/(w(e^t - 1)))."""
        t, w = self.total, self.weight
        return ((self._mass() + 1) * ball((1 - w) / w) / ball(t).expm1()).log()


@value
class StableMode(_Tested):
    """The most frequent item if it leads by far, else a uniform item: dp(N+e^ε-1) <= e^ε-1."""

    label = "stable-mode"
    section = "C5"
    sentence = (
        "the most frequent of {points} items is released if a test with {noise} Laplace noise of "
        "rate {epsilon} exceeds {threshold}, else a uniform item: pure DP."
    )

    points: Size
    epsilon: Positive

    @property
    def rate(self) -> Fraction:
        """The rate of the test, which is all of ε."""
        return self.epsilon

    @property
    def total(self) -> Fraction:
        """ε."""
        return self.epsilon

    def slack(self, tail: Callable[[], arb]) -> arb:
        """Return e^ε - 1 - dp (N + e^ε - 1)."""
        t, size = self.epsilon, self.points
        return ball(t).expm1() - tail().exp() * (size + ball(t).expm1())

    def log_odds(self) -> arb:
        """Return ln(1 + N/(e^ε - 1))."""
        return (1 + self.points / ball(self.epsilon).expm1()).log()


# -- Student-t noise scaled to a smooth sensitivity is pure DP (theory C10.3) ---------------------
# S(D) is at least the local sensitivity, and S(D) <= e^β S(D') for neighbors. q + (S/c)·T, T
# Student-t with ν >= 1 degrees of freedom, is pure with ε = ((ν+1)√(c²/ν + β²) + (ν-1)β)/2.


def smooth_sensitivity_epsilon(
    *, epsilon: Rational, degrees: Rational, decay: Rational, ratio: Rational
) -> Fraction:
    """Return ε if C10.3 proves it for ν = degrees, β = -ln(decay), c = ratio; else refuse.

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
    while True:  # the certified check rounds once more, so the ratio may be a little too large
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
class SmoothSensitivity(PureTheorem):
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

    epsilon: Positive
    degrees: Annotated[Fraction, at_least(1)]
    decay: Annotated[Fraction, between(0, 1, ends="()")]
    ratio: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the stated ε if the theorem certainly proves it."""
        return smooth_sensitivity_epsilon(**self.values())
