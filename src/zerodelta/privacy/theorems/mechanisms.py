"""What noise on exact sums, exact selection and a stated claim cost (theory R, R2, C10.1, C10.4).

Sensitivities and scales are in the same unit, usually quanta of the integer lattice; both are
exact, and so is the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claim_numbers import (
    check_claim_numbers,
    claim_from_numbers,
    explain_numbers,
)
from zerodelta.privacy.claims import ZCDP, GaussianDP
from zerodelta.privacy.domains import (
    Count,
    Domain,
    Flag,
    NotNegative,
    Positive,
    above,
    either,
    list_of,
    one_of,
    read_numbers,
)
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.theorem import Base, PureBase, domains_of
from zerodelta.value import value

OWN_UNITS = "each column's own"
"""The quantum of K-norm noise on more columns than a list has entries."""


def laplace_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: rounded Laplace noise of scale b on integers that move by Δ in the l1 norm.

    >>> laplace_epsilon(2, 10)
    Fraction(1, 5)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def k_norm_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: noise of density ∝ exp(-‖z‖/b), Δ in that same norm; the dimension is free.

    >>> k_norm_epsilon("1/2", 4)
    Fraction(1, 8)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def gaussian_mu_squared(sensitivity_squared: Rational, variance: Rational) -> Fraction:
    """Return μ² = Δ²/σ²: rounded Gaussian noise on integers that move by Δ in the l2 norm.

    Squares, because Δ and σ themselves are often irrational.

    >>> gaussian_mu_squared(2, 50)
    Fraction(1, 25)
    """
    squared = as_positive(sensitivity_squared, "sensitivity_squared")
    return squared / as_positive(variance, "variance")


def selection_epsilon(sensitivity: Rational, scale: Rational, monotone: bool) -> Fraction:
    """Return 2Δ/b: Gumbel or exponential noise of scale b on scores that move by at most Δ each.

    Half of it if `monotone`: between any two neighbors all scores move in the same direction.

    >>> selection_epsilon(1, 4, False), selection_epsilon(1, 4, True)
    (Fraction(1, 2), Fraction(1, 4))
    """
    if not isinstance(monotone, bool):
        raise ParameterError(
            "monotone", monotone, expected="True or False", remedy="pass a bool, nothing truthy"
        )
    moved = as_positive(sensitivity, "sensitivity") * (1 if monotone else 2)
    return moved / as_positive(scale, "scale")


@value
class Given(Base):
    """A claim that somebody states of the base mechanism."""

    label = "given"
    section = "B6"
    sentence = "the base mechanism is stated to satisfy {claim}."
    asserted = True

    stated: Annotated[Mapping[str, Any], Domain(expected="a claim", read=dict)]

    @classmethod
    def read(cls, numbers: Mapping[str, Any]) -> Given:
        """Return the claim's numbers, checked by the domains of its kind."""
        stated = {name: value for name, value in numbers.items() if name != "count"}
        check_claim_numbers(stated)
        often = {"count": numbers["count"]} if "count" in numbers else {}
        domain = {"count": domains_of(cls)["count"]}
        counted = read_numbers("step 'given'", often, domain, optional=domain)
        return cls(stated=stated, **counted)

    @classmethod
    def explain(cls, numbers: Mapping[str, Any]) -> str:
        """Say in words what is stated."""
        return f"given: {cls.sentence.format(claim=explain_numbers(numbers))}"

    def _claim(self, neighbors: Neighbors) -> Claim:
        return claim_from_numbers(self.stated, neighbors)


@value
class RoundedLaplace(PureBase):
    """Rounded Laplace noise on integer sums."""

    label = "rounded-laplace"
    section = "R"
    sentence = (
        "Laplace noise of scale {scale}, exactly rounded, on integer sums of l1 sensitivity "
        "{sensitivity}: pure DP."
    )
    inequality = staticmethod(laplace_epsilon)

    sensitivity: Positive
    scale: Positive


@value
class KNormNoise(PureBase):
    """Rounded noise of density exp(-‖z‖/b) on integer sums."""

    label = "k-norm-noise"
    section = "R"
    sentence = (
        "noise of scale {scale} in the norm {norm}, exactly rounded, on integer sums, in units of "
        "{quantum}, of sensitivity {sensitivity} in that norm: pure DP."
    )

    words: ClassVar[dict[str, dict[Any, str]]] = {
        "norm": {
            1: "l1",
            2: "l2",
            "inf": "l∞",
            "counts": "of counts (the larger of what goes up and what goes down)",
            "blocks": "of blocks (the sum of the l2 norms of the blocks, one for each cluster or "
            "class)",
        }
    }
    inequality = staticmethod(lambda sensitivity, scale, **_: k_norm_epsilon(sensitivity, scale))

    norm: Annotated[int | str, one_of(1, 2, "inf", "counts", "blocks")]
    quantum: Annotated[Any, either(above(0), list_of(above(0), fewest=1), one_of(OWN_UNITS))]
    sensitivity: Positive
    scale: Positive


@value
class RoundedGaussian(Base):
    """Rounded Gaussian noise on integer sums."""

    label = "rounded-gaussian"
    section = "R"
    sentence = (
        "Gaussian noise of variance {variance}, exactly rounded, on integer sums of squared l2 "
        "sensitivity {sensitivity_squared}: Gaussian DP."
    )

    sensitivity_squared: Positive
    variance: Positive

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        mu_squared = gaussian_mu_squared(self.sensitivity_squared, self.variance)
        return GaussianDP(mu_squared=mu_squared, neighbors=neighbors)


@value
class AdaptiveGaussian(Base):
    """Internal queries that share a planned μ²."""

    label = "adaptive-gaussian"
    section = "R2"
    sentence = (
        "up to {rounds} internal queries, chosen adaptively, each an exact integer sum with "
        "exactly rounded Gaussian noise of variance (its l2 sensitivity)² / (its share of μ²); "
        "together μ² = {mu_squared}: Gaussian DP."
    )

    mu_squared: NotNegative
    rounds: Count

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        return GaussianDP(mu_squared=self.mu_squared, neighbors=neighbors)


@value
class AdaptiveZCDP(Base):
    """Internal queries and selections that share a planned ρ."""

    label = "adaptive-zcdp"
    section = "R2"
    sentence = (
        "up to {rounds} internal queries, chosen adaptively: exact integer sums with exactly "
        "rounded Gaussian noise, and exponential-mechanism choices at ε²/8; together ρ = {rho}: "
        "zCDP."
    )

    rho: NotNegative
    rounds: Count

    def _claim(self, neighbors: Neighbors) -> ZCDP:
        return ZCDP(self.rho, neighbors=neighbors)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Selection(PureBase):
    """The index of the largest noisy score."""

    section = "C10.1"
    inequality = staticmethod(selection_epsilon)

    sensitivity: Positive
    scale: Positive
    monotone: Flag


@value
class ExponentialMechanism(_Selection):
    """Selection with Gumbel noise."""

    label = "exponential-mechanism"
    sentence = (
        "exponential mechanism (exact Gumbel argmax) of scale {scale} on scores of sensitivity "
        "{sensitivity}: pure DP."
    )
    bounded_range = True


@value
class PermuteAndFlip(_Selection):
    """Selection with exponential noise."""

    label = "permute-and-flip"
    sentence = (
        "permute-and-flip (exact) of scale {scale} on scores of sensitivity {sensitivity}: pure DP."
    )
