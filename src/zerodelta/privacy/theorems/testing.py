"""Testing before releasing: when a failed test is itself the mixing (theory A7, A8, C3, C4, C5).

A test adds Laplace noise Z of rate r (scale 1/r) to an integer and passes above a threshold τ. Its
noise is "real", "rounded" to the nearest integer, or "discrete" Laplace; the three have different
tails, P(Z > τ) = e^(-rτ)/2, e^(-r(τ+1/2))/2 and e^(-r(τ+1))/(1+e^-r), and a threshold proved for
one under-protects another (rows of C3's table must not be mixed).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_at_least_zero
from zerodelta.privacy.theorems.mixing import as_weight

__all__ = [
    "bounded_release_claim",
    "bounded_release_epsilon",
    "bounded_release_threshold",
    "free_mode_epsilon",
    "free_mode_threshold",
    "free_test_epsilon",
    "free_test_threshold",
    "log_pass_probability",
    "proposed_release_claim",
]

_KINDS = ("real", "rounded", "discrete")


def log_pass_probability(*, rate: Rational, threshold: Rational, noise: str) -> float:
    """Return ln P(Z > τ) rounded up, Z Laplace noise of the rate, τ >= 0.

    >>> round(log_pass_probability(rate=1, threshold=10, noise="real"), 6)
    -10.693147
    """
    return upper(_log_tail(as_positive(rate, "rate"), _as_threshold(threshold, noise), noise))


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
    log_tail = _log_tail(
        as_positive(test_epsilon, "test_epsilon"), _as_threshold(threshold, noise), noise
    )
    spread = _spread(points, dimension, release_epsilon, sensitivity, noise)
    return _granted(
        t,
        "pure-propose-test-release",
        lambda: ball(t).expm1() - log_tail().exp() * (spread() + ball(t).exp()),
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
    spread = _spread(points, dimension, release_epsilon, sensitivity, noise)
    return _smallest(
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
    log_tail = _log_tail(t, _as_threshold(threshold, noise), noise)
    return _granted(
        t, "stable-mode", lambda: ball(t).expm1() - log_tail().exp() * (size + ball(t).expm1())
    )


def free_mode_threshold(*, points: int, epsilon: Rational, noise: str = "real") -> Fraction:
    """Return the smallest threshold that C5 allows, rounded up; an integer for integer noise.

    >>> [int(free_mode_threshold(points=4, epsilon=1, noise=n)) for n in ("rounded", "discrete")]
    [1, 0]
    """
    t, size = as_positive(epsilon, "epsilon"), as_count(points, "points", minimum=1)
    return _smallest(
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
    log_tail = _log_tail(rate, _as_threshold(threshold, noise), noise)
    spread = _spread(points, dimension, release_epsilon, smallest_bound, noise)
    return _granted(
        t,
        "pure-local-sensitivity",
        lambda: ball(w) * ball(t).expm1() - ball(1 - w) * log_tail().exp() * (spread() + 1),
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
    spread = _spread(points, dimension, release_epsilon, smallest_bound, noise)

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

    return _smallest(rate, noise, wanted, check)


def _rates(
    bound_epsilon: Rational, release_epsilon: Rational, local_change: Rational
) -> tuple[Fraction, Fraction]:
    """Return ε₁/γ and ε₁+ε₂, γ the change of the local sensitivity between neighbors."""
    first = as_positive(bound_epsilon, "bound_epsilon")
    rate = first / as_positive(local_change, "local_change")
    return rate, first + as_positive(release_epsilon, "release_epsilon")


def _log_tail(rate: Fraction, threshold: Fraction, noise: str) -> Callable[[], arb]:
    """Return a function that encloses ln P(Z > τ)."""
    if noise == "real":
        return lambda: ball(-rate * threshold) - ball(2).log()
    if noise == "rounded":
        return lambda: ball(-rate * (threshold + Fraction(1, 2))) - ball(2).log()
    return lambda: ball(-rate * (threshold + 1)) - ball(-rate).exp().log1p()


def _spread(
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


def _granted(epsilon: Fraction, theorem: str, slack: Callable[[], arb]) -> Fraction:
    if lower(slack) >= 0:
        return epsilon
    raise GuaranteeError(
        f"the threshold is too low for theorem {theorem} at ε = {epsilon}: raise it."
    )


def _smallest(
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
    if noise not in _KINDS:
        raise ParameterError(
            "noise", noise, expected=f"one of {', '.join(_KINDS)}", remedy='pass noise="real"'
        )


def _as_threshold(threshold: Rational, noise: str) -> Fraction:
    _check_noise(noise)
    exact = as_at_least_zero(threshold, "threshold")
    if noise != "real" and exact.denominator != 1:
        raise ParameterError(
            "threshold",
            threshold,
            expected=f"an integer for {noise} noise",
            remedy="round it up to an integer",
        )
    return exact
