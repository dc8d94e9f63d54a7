"""State theorems that smooth with the last Gaussian step (S), or pay for displacements (N, B3).

A transcript of RDP a·ρ ends in Z = g + N(0, σ²I) with ‖g‖ <= r, where g has sensitivity Δ between
neighbors. Mixing with N(0, τ²I), τ > σ, is t-DP (Corollary S2) if for some order a > 1

    ln κ_a + (a-1)(aρ - t) + (d/2) ln(τ²/σ²) + (r + (a-1)Δ)²/(2(τ²-σ²))
        <= ln(w/(1-w)) + ln(e^t - 1),

κ_a = (a-1)^(a-1)/a^a. Rounding both branches to one lattice is post-processing of the mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

from flint import arb

from zerodelta.errors import CertificateError, ParameterError, require
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.composition import Composed, gaussian_share, simplest, zcdp_cost
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Dimension, NotNegative, Order, Positive, Weight, one_of
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.noise import GivenTheorem, RoundedGaussianTheorem
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, smallest_log_delta
from zerodelta.value import value


@value
class GaussianStep:
    """The last Gaussian step in lattice units: g + N(0, variance·I), ‖g‖ <= radius, ‖g-g'‖ <= Δ."""

    dimension: int
    variance: Fraction
    radius: Fraction
    sensitivity: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", as_count(self.dimension, "dimension", minimum=1))
        for name in ("variance", "radius", "sensitivity"):
            object.__setattr__(self, name, as_positive(getattr(self, name), name))

    @property
    def rho(self) -> Fraction:
        """The zCDP cost Δ²/(2σ²) of the step itself."""
        return self.sensitivity**2 / (2 * self.variance)

    def reach(self, order: Fraction) -> Fraction:
        """Return r_a = r + (a-1)Δ."""
        return self.radius + (order - 1) * self.sensitivity


def smoothing_slack(
    step: GaussianStep,
    *,
    rho: Rational,
    order: Rational,
    mixing_variance: Rational,
    weight: Rational,
    epsilon: Rational,
) -> float:
    """Return the right side minus the left side of S2's condition, rounded down: S2 needs >= 0.

    ρ is that of the whole transcript *including* the last step.
    """
    a, w = as_positive(order, "order"), as_weight(weight)
    tau = as_positive(mixing_variance, "mixing_variance")
    t, total_rho = as_positive(epsilon, "epsilon"), as_positive(rho, "rho")
    require(
        total_rho >= step.rho,
        "rho",
        rho,
        f"at least the last step's own cost Δ²/(2σ²) = {step.rho}",
        "count the last step among the base steps",
    )
    require(a > 1, "order", order, "a number above 1", "pass order=2")
    require(
        tau > step.variance,
        "mixing_variance",
        mixing_variance,
        f"more than the step's variance {step.variance}",
        "use best_mixing_variance(step, order)",
    )
    exact = (a - 1) * (a * total_rho - t) + step.reach(a) ** 2 / (2 * (tau - step.variance))
    growth, half = tau / step.variance, Fraction(step.dimension, 2)

    def slack() -> arb:
        log_kappa = ball(a - 1) * ball(a - 1).log() - ball(a) * ball(a).log()
        right = ball(w / (1 - w)).log() + ball(t).expm1().log()
        return right - log_kappa - ball(exact) - ball(growth).log() * ball(half)

    return lower(slack)


def best_mixing_variance(step: GaussianStep, order: Rational) -> Fraction:
    """Return τ² = σ² + v with v = (r_a² + √(r_a⁴ + 4 d r_a² σ²))/(2d), rounded to a rational."""
    reach = float(step.reach(as_positive(order, "order")))
    d, variance = step.dimension, float(step.variance)
    extra = (reach**2 + reach * math.sqrt(reach**2 + 4 * d * variance)) / (2 * d)
    return step.variance + Fraction(extra).limit_denominator(10**6) + Fraction(1, 10**6)


def best_order(step: GaussianStep, *, rho: Rational, epsilon: Rational) -> Fraction:
    """Return a nearly optimal order, found in floats; any order above 1 is valid."""
    t, total_rho = float(as_positive(epsilon, "epsilon")), float(as_positive(rho, "rho"))
    d, variance = step.dimension, float(step.variance)
    radius, sensitivity = float(step.radius), float(step.sensitivity)

    def cost(log_excess: float) -> float:
        """Return what the order 1 + e^log_excess costs: the terms of S2 that depend on it."""
        excess = math.exp(log_excess)
        order = 1 + excess
        reach = radius + excess * sensitivity
        extra = (reach**2 + reach * math.sqrt(reach**2 + 4 * d * variance)) / (2 * d)
        log_kappa = excess * math.log(excess) - order * math.log(order)
        spread = d / 2 * math.log1p(extra / variance) + reach**2 / (2 * extra)
        return log_kappa + excess * (order * total_rho - t) + spread

    # t/(2ρ) minimizes (a-1)(aρ - t), the largest term, nearly
    start = math.log(max(t / (2 * total_rho), 1e-6))
    return 1 + Fraction(math.exp(_minimize(cost, start - 6, start + 6))).limit_denominator(10**9)


def _minimize(function: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search for the minimum of a function with one valley."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        third = (high - low) * ratio
        a, b = high - third, low + third
        if function(a) < function(b):
            high = b
        else:
            low = a
    return (low + high) / 2


@value
class GaussianSmoothing(ChannelTheorem):
    """The last Gaussian step, mixed with a wider Gaussian."""

    label = "gaussian-smoothing"
    section = "S2"
    sentence = (
        "the last Gaussian step (variance {variance}) is mixed with a Gaussian of variance "
        "{mixing_variance} with probability {weight}."
    )

    dimension: Dimension
    variance: Positive
    radius: Positive
    sensitivity: Positive
    order: Order
    mixing_variance: Positive
    weight: Weight

    @property
    def last(self) -> GaussianStep:
        """The step that is smoothed."""
        return GaussianStep(
            dimension=self.dimension,
            variance=self.variance,
            radius=self.radius,
            sensitivity=self.sensitivity,
        )

    def check_before(self, last: BaseTheorem, neighbors: Neighbors) -> None:
        """Refuse a last base step that is neither this Gaussian one nor a claim that covers it.

        Other steps do not cover it, whatever their cost.
        """
        if type(last) is RoundedGaussianTheorem:
            squared = self.sensitivity**2
            same = last.variance == self.variance and last.sensitivity_squared == squared
        else:
            same = type(last) is GivenTheorem and self._covered(last.claim(neighbors))
        if not same:
            raise CertificateError(
                "Theorem S smooths with the last Gaussian step: the step before it must be that "
                "step, with the same variance and sensitivity, or a stated claim that covers it."
            )

    def _covered(self, claim: Claim) -> bool:
        """Tell whether the claim's Gaussian part is large enough to contain the step."""
        return gaussian_share(claim) >= 2 * self.last.rho

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether S2's condition certainly holds, for a base that covers the last step."""
        rho = zcdp_cost(base)
        if not self._covered(base) or self.sensitivity > 2 * self.radius:  # ‖g - g'‖ <= 2r anyway
            return False
        slack = smoothing_slack(
            self.last,
            rho=rho,
            order=self.order,
            mixing_variance=self.mixing_variance,
            weight=self.weight,
            epsilon=epsilon,
        )
        return slack >= 0


# -- Transport: small displacements cost ε (theory N, B3/B4(i), A1, A4) ---------------------------
# `numerical_error_epsilon` is the cost of a value that is computed up to an error r. The other
# functions are the paper's way from total variation to W∞, with the constants of Theorem W.


def numerical_error_epsilon(*, error: Rational, scale: Rational) -> Fraction:
    """Return 2r/b: what an error of at most r costs under K-norm noise of scale b (Theorem N)."""
    r = as_rational(error, "error")
    require(r >= 0, "error", error, "a number >= 0", "pass a certain bound on the error")
    return 2 * r / as_positive(scale, "scale")


def log_transport_radius(
    *, dimension: int, diameter: Rational, weight: Rational, epsilon: Rational, log_delta: float
) -> float:
    """Return ln Δ_q rounded up, Δ_q = D_q · min(1, ((1-w)δ/((1+e^ε)w))^(1/d)) (Theorem W).

    D_q is the *diameter* of the l_q ball that is mixed in; the paper's proof needs twice as much.
    """
    d, w = as_count(dimension, "dimension", minimum=1), as_weight(weight)
    width, t = as_positive(diameter, "diameter"), as_rational(epsilon, "epsilon")
    require(t >= 0, "epsilon", epsilon, "at least 0", "pass 0 or more")

    def radius(shrink: bool) -> float:
        """Return ln D_q plus the logarithm of the minimum's second term, or of its 1."""

        def log() -> arb:
            tv = ball((1 - w) / w).log() - (1 + ball(t).exp()).log() + ball(log_delta)
            return ball(width).log() + (tv / d if shrink else 0)

        return upper(log)

    return min(radius(True), radius(False))


def product_laplace_radius(*, dimension: int, norm: float | Fraction, log_radius: float) -> float:
    """Return ln Δ_1 = ln Δ_q + (1 - 1/q) ln d rounded up: l_q to l_1, for product Laplace noise."""
    d = as_count(dimension, "dimension", minimum=1)
    if not isinstance(norm, (int, float, Fraction)) or not norm >= 1:  # also NaN
        raise ParameterError(
            "norm", norm, expected="a number of at least 1, or math.inf", remedy="pass norm=2"
        )
    power = 1 - (Fraction(0) if norm == math.inf else 1 / Fraction(norm))
    return upper(lambda: ball(log_radius) + ball(d).log() * ball(power))


@value
class NumericalErrorTheorem(ChannelTheorem):
    """A value that is computed up to an error, published with K-norm noise."""

    label = "numerical-error"
    section = "N"
    sentence = (
        "the value is computed with error at most {error} and published with K-norm noise of "
        "scale {scale}."
    )

    error: NotNegative
    scale: Positive

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether a pure ideal mechanism and 2r/b cost at most ε together."""
        ideal = simplest(base)
        extra = numerical_error_epsilon(error=self.error, scale=self.scale)
        return type(ideal) is PureDP and ideal.exact_epsilon + extra <= epsilon


@value
class WassersteinTransport(ChannelTheorem):
    """The paper's Algorithms 1 and 2: uniform mixing, then Laplace noise."""

    label = "wasserstein-transport"
    section = "B3"
    sentence = (
        "Algorithm 1: mixed with a uniform point with probability {weight}, then Laplace noise of "
        "scale {scale}."
    )

    norm: Annotated[int | str, one_of(1, 2, "inf")]
    dimension: Dimension
    diameter: Positive
    scale: Positive
    weight: Weight
    base_epsilon: NotNegative

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether the base ε plus 2Δ_1/b, for noise of scale b, is at most ε."""
        if self.base_epsilon > epsilon:
            return False
        log_radius = log_transport_radius(
            dimension=self.dimension,
            diameter=self.diameter,
            weight=self.weight,
            epsilon=self.base_epsilon,
            log_delta=smallest_log_delta(base, self.base_epsilon),
        )
        norm = math.inf if self.norm == "inf" else float(self.norm)
        log_l1 = product_laplace_radius(dimension=self.dimension, norm=norm, log_radius=log_radius)
        noise_epsilon = epsilon - self.base_epsilon
        return lower(lambda: ball(noise_epsilon) - 2 * ball(log_l1).exp() / ball(self.scale)) >= 0
