"""Testing before releasing: a failed test is itself the mixing; smooth sensitivity (A7, A8, C3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

from flint import arb

from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
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
)
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.theorem import Base, PureBase
from zerodelta.value import value

# -- The Laplace noise of a test: its tail, and the smallest threshold that a condition allows ----
# A test adds Laplace noise Z of rate r (scale 1/r) to an integer and passes above a threshold τ.
# Its noise is "real", "rounded" to the nearest integer, or "discrete" Laplace; the three have
# different tails, P(Z > τ) = e^(-rτ)/2, e^(-r(τ+1/2))/2 and e^(-r(τ+1))/(1+e^-r), and a threshold
# proved for one under-protects another (rows of C3's table must not be mixed).

_KINDS = ("real", "rounded", "discrete")


def log_pass_probability(*, rate: Rational, threshold: Rational, noise: str) -> float:
    """Return ln P(Z > τ) rounded up, Z Laplace noise of the rate, τ >= 0.

    >>> round(log_pass_probability(rate=1, threshold=10, noise="real"), 6)
    -10.693147
    """
    return upper(log_tail(as_positive(rate, "rate"), as_threshold(threshold, noise), noise))


def log_tail(rate: Fraction, threshold: Fraction, noise: str) -> Callable[[], arb]:
    """Return a function that encloses ln P(Z > τ)."""
    if noise == "real":
        return lambda: ball(-rate * threshold) - ball(2).log()
    if noise == "rounded":
        return lambda: ball(-rate * (threshold + Fraction(1, 2))) - ball(2).log()
    return lambda: ball(-rate * (threshold + 1)) - ball(-rate).exp().log1p()


def spread_mass(
    points: int, dimension: int, epsilon: Rational, sensitivity: Rational, noise: str
) -> Callable[[], arb]:
    """Return a function that encloses N·pm, pm = P(release noise = 0)."""
    _check_noise(noise)
    size, d = as_count(points, "points", minimum=1), as_count(dimension, "dimension", minimum=1)
    half = as_positive(epsilon, "epsilon") / (2 * as_positive(sensitivity, "sensitivity"))

    def enclosed() -> arb:
        peak = ball(half).tanh() if noise == "discrete" else -(ball(-half).expm1())
        return size * peak**d

    return enclosed


def granted(epsilon: Fraction, theorem: str, slack: Callable[[], arb]) -> Fraction:
    """Return ε if the slack of the theorem's condition certainly is not negative, else refuse."""
    if lower(slack) >= 0:
        return epsilon
    raise GuaranteeError(
        f"the threshold is too low for theorem {theorem} at ε = {epsilon}: raise it."
    )


def smallest_threshold(
    rate: Fraction, noise: str, log_odds: Callable[[], arb], check: Callable[[Fraction], Any]
) -> Fraction:
    """Return the smallest τ >= 0 with ln P(Z > τ) <= -log_odds, rounded up until `check` agrees."""

    def needed() -> arb:
        wanted = log_odds()
        if noise == "discrete":
            return (wanted - ball(-rate).exp().log1p()) / ball(rate) - 1
        gap = (wanted - ball(2).log()) / ball(rate)
        return gap - ball(Fraction(1, 2)) if noise == "rounded" else gap

    start = max(0.0, upper(needed))
    if math.isinf(start):
        raise GuaranteeError("ε is too small for any threshold: raise it, or its share.")
    whole = noise != "real"
    tau = Fraction(math.ceil(start)) if whole else Fraction(start)
    while True:
        try:
            check(tau)
        except GuaranteeError:
            tau = tau + 1 if whole else Fraction(math.nextafter(float(tau), math.inf))
        else:
            return tau


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


def proposed_release_claim(
    *,
    test_epsilon: Rational,
    release_epsilon: Rational,
    threshold: Rational,
    noise: str,
    neighbors: Neighbors,
) -> ApproxDP:
    """Return (ε₁+ε₂, dp)-DP of propose-test-release, dp = P(pass | distance 0) (theory A7).

    Of two neighbors either one is stable, and then both answers are within the proposed bound, or
    both distances are 0, and then each passes with probability at most dp.
    """
    log_pass = log_pass_probability(rate=test_epsilon, threshold=threshold, noise=noise)
    total = as_positive(test_epsilon, "test_epsilon") + as_at_least_zero(
        release_epsilon, "release_epsilon"
    )
    return ApproxDP(total, log_pass, neighbors=neighbors)


def free_test_epsilon(
    *,
    points: int,
    dimension: int,
    sensitivity: Rational,
    test_epsilon: Rational,
    release_epsilon: Rational,
    threshold: Rational,
    noise: str,
) -> Fraction:
    """Return t = ε₁+ε₂ if C3's condition N·dp·pm <= e^t(1-dp) - 1 certainly holds, else refuse.

    N lattice points in all, pm the largest probability of the release noise, rounded Laplace of
    scale sensitivity/ε₂ per coordinate (discrete Laplace if the test noise is discrete).
    """
    t = as_positive(test_epsilon, "test_epsilon") + as_positive(release_epsilon, "release_epsilon")
    tail = log_tail(
        as_positive(test_epsilon, "test_epsilon"), as_threshold(threshold, noise), noise
    )
    spread = spread_mass(points, dimension, release_epsilon, sensitivity, noise)
    return granted(
        t,
        "pure-propose-test-release",
        lambda: ball(t).expm1() - tail().exp() * (spread() + ball(t).exp()),
    )


def free_test_threshold(
    *,
    points: int,
    dimension: int,
    sensitivity: Rational,
    test_epsilon: Rational,
    release_epsilon: Rational,
    noise: str = "real",
) -> Fraction:
    """Return the smallest threshold that C3 allows, rounded up; an integer for integer noise.

    >>> float(free_test_threshold(points=101, dimension=1, sensitivity=5, test_epsilon=1,
    ...                           release_epsilon=1))
    0.28550767257749876
    """
    rate = as_positive(test_epsilon, "test_epsilon")
    t = rate + as_positive(release_epsilon, "release_epsilon")
    spread = spread_mass(points, dimension, release_epsilon, sensitivity, noise)
    return smallest_threshold(
        rate,
        noise,
        lambda: ((spread() + ball(t).exp()) / ball(t).expm1()).log(),
        lambda tau: free_test_epsilon(
            points=points,
            dimension=dimension,
            sensitivity=sensitivity,
            test_epsilon=rate,
            release_epsilon=release_epsilon,
            threshold=tau,
            noise=noise,
        ),
    )


def free_mode_epsilon(
    *, points: int, epsilon: Rational, threshold: Rational, noise: str
) -> Fraction:
    """Return ε if C5's condition dp·(N+e^ε-1) <= e^ε-1 certainly holds, else refuse."""
    t, size = as_positive(epsilon, "epsilon"), as_count(points, "points", minimum=1)
    tail = log_tail(t, as_threshold(threshold, noise), noise)
    return granted(
        t, "stable-mode", lambda: ball(t).expm1() - tail().exp() * (size + ball(t).expm1())
    )


def free_mode_threshold(*, points: int, epsilon: Rational, noise: str = "real") -> Fraction:
    """Return the smallest threshold that C5 allows, rounded up; an integer for integer noise.

    >>> [int(free_mode_threshold(points=4, epsilon=1, noise=n)) for n in ("rounded", "discrete")]
    [1, 0]
    """
    t, size = as_positive(epsilon, "epsilon"), as_count(points, "points", minimum=1)
    return smallest_threshold(
        t,
        noise,
        lambda: (1 + size / ball(t).expm1()).log(),
        lambda tau: free_mode_epsilon(points=size, epsilon=t, threshold=tau, noise=noise),
    )


def bounded_release_claim(
    *,
    bound_epsilon: Rational,
    release_epsilon: Rational,
    local_change: Rational,
    threshold: Rational,
    noise: str,
    neighbors: Neighbors,
) -> ApproxDP:
    """Return (ε₁+ε₂, db)-DP of a release scaled to a noisy local sensitivity (theory A8).

    db = P(noise < -τ): the noisy bound falls short of the local sensitivity. Jointly with the
    bound, the ratio is at most e^(ε₁+ε₂) wherever it does not.
    """
    rate, total = _rates(bound_epsilon, release_epsilon, local_change)
    log_short = log_pass_probability(rate=rate, threshold=threshold, noise=noise)
    return ApproxDP(total, log_short, neighbors=neighbors)


def bounded_release_epsilon(
    *,
    points: int,
    dimension: int,
    bound_epsilon: Rational,
    release_epsilon: Rational,
    local_change: Rational,
    smallest_bound: Rational,
    threshold: Rational,
    weight: Rational,
    noise: str,
) -> Fraction:
    """Return t = ε₁+ε₂ if C4's (1-w)(N·db·pm + db) <= w(e^t - 1) certainly holds, else refuse.

    pm is the largest probability of the release noise at the smallest bound.
    """
    rate, t = _rates(bound_epsilon, release_epsilon, local_change)
    w = as_weight(weight, "weight")
    tail = log_tail(rate, as_threshold(threshold, noise), noise)
    spread = spread_mass(points, dimension, release_epsilon, smallest_bound, noise)
    return granted(
        t,
        "pure-local-sensitivity",
        lambda: ball(w) * ball(t).expm1() - ball(1 - w) * tail().exp() * (spread() + 1),
    )


def bounded_release_threshold(
    *,
    points: int,
    dimension: int,
    bound_epsilon: Rational,
    release_epsilon: Rational,
    local_change: Rational,
    smallest_bound: Rational,
    weight: Rational,
    noise: str = "rounded",
) -> Fraction:
    """Return the smallest τ that C4 allows at this mixing weight, rounded up.

    >>> int(bounded_release_threshold(points=101, dimension=1, bound_epsilon=1, release_epsilon=1,
    ...                               local_change=1, smallest_bound=1, weight="0.01"))
    6
    """
    rate, t = _rates(bound_epsilon, release_epsilon, local_change)
    w = as_weight(weight, "weight")
    spread = spread_mass(points, dimension, release_epsilon, smallest_bound, noise)

    def wanted() -> arb:
        return ((spread() + 1) * ball((1 - w) / w) / ball(t).expm1()).log()

    def check(tau: Fraction) -> Fraction:
        return bounded_release_epsilon(
            points=points,
            dimension=dimension,
            bound_epsilon=bound_epsilon,
            release_epsilon=release_epsilon,
            local_change=local_change,
            smallest_bound=smallest_bound,
            threshold=tau,
            weight=w,
            noise=noise,
        )

    return smallest_threshold(rate, noise, wanted, check)


def _rates(
    bound_epsilon: Rational, release_epsilon: Rational, local_change: Rational
) -> tuple[Fraction, Fraction]:
    """Return ε₁/γ and ε₁+ε₂, γ the change of the local sensitivity between neighbors."""
    first = as_positive(bound_epsilon, "bound_epsilon")
    rate = first / as_positive(local_change, "local_change")
    return rate, first + as_positive(release_epsilon, "release_epsilon")


@value
class ProposeTestRelease(Base):
    """Propose-test-release."""

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
        return proposed_release_claim(**self.values(), neighbors=neighbors)


@value
class PureProposeTestRelease(PureBase):
    """Propose-test-release in which a failed test is the mixing."""

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
    threshold: NotNegative
    noise: Noise

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the stated ε if the theorem certainly proves it."""
        return free_test_epsilon(**self.values())


@value
class NoisyLocalSensitivity(Base):
    """Noise scaled to a noisy bound on the local sensitivity."""

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
        return bounded_release_claim(**self.values(), neighbors=neighbors)


@value
class PureLocalSensitivity(PureBase):
    """Noise scaled to a noisy bound on the local sensitivity, mixed with a uniform point."""

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

    points: Size
    dimension: Dimension
    bound_epsilon: Positive
    release_epsilon: Positive
    local_change: Positive
    smallest_bound: Positive
    threshold: NotNegative
    weight: Weight
    noise: Noise

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the stated ε if the theorem certainly proves it."""
        return bounded_release_epsilon(**self.values())


@value
class StableMode(PureBase):
    """The most frequent item if it is so by far, else a uniform one."""

    label = "stable-mode"
    section = "C5"
    sentence = (
        "the most frequent of {points} items is released if a test with {noise} Laplace noise of "
        "rate {epsilon} exceeds {threshold}, else a uniform item: pure DP."
    )

    points: Size
    epsilon: Positive
    threshold: NotNegative
    noise: Noise

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the stated ε if the theorem certainly proves it."""
        return free_mode_epsilon(**self.values())


# -- What Student-t noise scaled to a smooth sensitivity costs: pure DP (theory C10.3) ------------
# S(D) is at least the local sensitivity, and S(D) <= e^β S(D') for neighbors. q + (S/c)·T, T
# Student-t with ν >= 1 degrees of freedom, is pure with ε = ((ν+1)√(c²/ν + β²) + (ν-1)β)/2.


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

    epsilon: Positive
    degrees: Annotated[Fraction, at_least(1)]
    decay: Annotated[Fraction, between(0, 1, ends="()")]
    ratio: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the stated ε if the theorem certainly proves it."""
        return smooth_sensitivity_epsilon(**self.values())
