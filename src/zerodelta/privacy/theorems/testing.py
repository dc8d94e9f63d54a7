"""Testing before releasing: when a failed test is itself the mixing (theory A7, A8, C3, C4, C5)."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from zerodelta.exact.arb import ball
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.domains import Dimension, Noise, NotNegative, Positive, Size, Weight
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_at_least_zero
from zerodelta.privacy.theorems.laplace_tail import (
    as_threshold,
    granted,
    log_pass_probability,
    log_tail,
    smallest_threshold,
    spread_mass,
)
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.theorem import Base, PureBase
from zerodelta.value import value


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
    inequality = staticmethod(free_test_epsilon)

    points: Size
    dimension: Dimension
    sensitivity: Positive
    test_epsilon: Positive
    release_epsilon: Positive
    threshold: NotNegative
    noise: Noise


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
    inequality = staticmethod(bounded_release_epsilon)

    points: Size
    dimension: Dimension
    bound_epsilon: Positive
    release_epsilon: Positive
    local_change: Positive
    smallest_bound: Positive
    threshold: NotNegative
    weight: Weight
    noise: Noise


@value
class StableMode(PureBase):
    """The most frequent item if it is so by far, else a uniform one."""

    label = "stable-mode"
    section = "C5"
    sentence = (
        "the most frequent of {points} items is released if a test with {noise} Laplace noise of "
        "rate {epsilon} exceeds {threshold}, else a uniform item: pure DP."
    )
    inequality = staticmethod(free_mode_epsilon)

    points: Size
    epsilon: Positive
    threshold: NotNegative
    noise: Noise
