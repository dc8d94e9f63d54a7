"""Finite spaces: replace the answer by a public random one with probability w (Theorem B1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.channels.channel import Mixing, mix
from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import categorical, uniform_below
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.claims import ApproxDP, Claim
from zerodelta.privacy.proof import proves_epsilon
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight, largest_log_delta, prior_mass, uniform_mass
from zerodelta.spaces import FiniteSpace

__all__ = ["FiniteMix", "PriorMix", "ProfileMix"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class FiniteMix(Mixing):
    """A uniform element instead of the answer, with probability w.

    Guarantee: pure t-DP iff ln δ(t) + ln N <= ln(w/(1-w)) + ln(e^t - 1) for every base with that δ
    (B1; exactly minimax optimal by O1). Any object is projected into the space first.
    Error: P(another element) = w (1 - 1/N).
    """

    space: FiniteSpace
    mixing_weight: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))

    @property
    def log_mass(self) -> float:
        """Return ln N, rounded up."""
        return uniform_mass(self.space.size)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a uniform element."""
        kept = self.space.index(value)
        drawn = int(uniform_below(self.space.size, size=1, bits=bits)[0])
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the probability of publishing another element than the projected value."""
        return float(self.mixing_weight * (1 - Fraction(1, self.space.size)))

    def step(self) -> Step:
        """Return B1 with its numbers."""
        numbers = {"size": self.space.size, "weight": self.mixing_weight}
        return Step(theorem="uniform-mixing", numbers=numbers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PriorMix(Mixing):
    """A draw from a public prior Q, given by integer weights, instead of the answer.

    Guarantee: as `FiniteMix` with ln(1/q_min) for ln N. Error: w P_Q(another element) at most w.
    """

    space: FiniteSpace
    mixing_weight: Fraction
    prior: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        weights = tuple(as_count(weight, "prior", minimum=1) for weight in self.prior)
        _check_length(self.space, len(weights), "prior")
        object.__setattr__(self, "prior", weights)

    @property
    def log_mass(self) -> float:
        """Return ln(1/q_min), rounded up."""
        return prior_mass(self._smallest(), size=self.space.size)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a draw from the prior."""
        kept = self.space.index(value)
        drawn = int(categorical(self.prior, size=1, bits=bits)[0])
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the largest probability of publishing another element."""
        return float(self.mixing_weight * (1 - self._smallest()))

    def step(self) -> Step:
        """Return B1 for a prior."""
        numbers = {
            "size": self.space.size,
            "smallest_probability": self._smallest(),
            "weight": self.mixing_weight,
        }
        return Step(theorem="prior-mixing", numbers=numbers)

    def _smallest(self) -> Fraction:
        return Fraction(min(self.prior), sum(self.prior))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileMix:
    """The optimal prior when a pointwise profile is known: Q ∝ δ_t(y) (B1, "Which delta?").

    `profile[y]` bounds sup over neighbors of P_D(y) - e^t P_D'(y) at t = `epsilon`, for every
    index y of the space; it is the caller's word, so its step is `asserted`.

    Guarantee: pure t-DP with the smallest weight any prior allows, w/(1-w) = Σ_y δ_t(y)/(e^t - 1).
    """

    space: FiniteSpace
    epsilon: Fraction
    profile: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        exact = tuple(as_rational(entry, "profile") for entry in self.profile)
        _check_length(self.space, len(exact), "profile")
        if min(exact) < 0 or max(exact) == 0:
            raise ParameterError(
                "profile",
                self.profile,
                expected="numbers >= 0, not all 0",
                remedy="a mechanism whose profile is 0 everywhere is pure already",
            )
        object.__setattr__(self, "profile", exact)

    @property
    def mixing_weight(self) -> Fraction:
        """Return w = x/(1+x), x = Σδ_t(y)/(e^t - 1) rounded up."""
        total = sum(self.profile, Fraction(0))
        odds = Fraction(upper(lambda: ball(total) / ball(self.epsilon).expm1()))
        return odds / (1 + odds)

    def proves(self, epsilon: Rational, _: Claim) -> bool:
        """Tell whether the profile proves pure ε-DP; a claim would say less than it does."""
        return proves_epsilon(self.step(), None, as_positive(epsilon, "epsilon"))

    def claim(self) -> ApproxDP:
        """Return what the profile says of all sets together: δ(t) <= Σ_y δ_t(y)."""
        total = sum(self.profile, Fraction(0))
        return ApproxDP(self.epsilon, min(0.0, upper(lambda: ball(total).log())))

    def log_delta_required(self, epsilon: Rational) -> float:
        """Return the ln δ(ε) with which any base has a profile as good as this one."""
        smallest = min(self.profile) / sum(self.profile)
        if smallest == 0:
            return -math.inf
        log_mass = prior_mass(smallest, size=self.space.size)
        return largest_log_delta(epsilon=epsilon, weight=self.mixing_weight, log_mass=log_mass)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a draw from the optimal prior."""
        kept = self.space.index(value)
        unit = math.lcm(*(entry.denominator for entry in self.profile))
        weights = [int(entry * unit) for entry in self.profile]
        drawn = int(categorical(weights, size=1, bits=bits)[0])
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the largest probability of publishing another element."""
        return float(self.mixing_weight)

    def step(self) -> Step:
        """Return B1 for a pointwise profile."""
        numbers = {
            "epsilon": self.epsilon,
            "ratio": sum(self.profile, Fraction(0)),
            "weight": self.mixing_weight,
        }
        return Step(theorem="profile-mixing", numbers=numbers, status=Status.ASSERTED)


def _check_length(space: FiniteSpace, length: int, name: str) -> None:
    if length != space.size:
        raise ParameterError(
            name,
            f"{length} numbers",
            expected=f"one number for each of the {space.size} elements",
            remedy="list them in the order of the space's indices",
        )
