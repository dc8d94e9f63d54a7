"""Finite spaces: replace the answer by a public random one with probability w (Theorem B1)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from zerodelta.channels.channel import Mixing, Purifier, mix
from zerodelta.errors import require
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import categorical, uniform_below
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import largest_log_delta, prior_mass, uniform_mass
from zerodelta.spaces import FiniteSpace, Space


@dataclass(frozen=True, kw_only=True)
class _FiniteMixing(Mixing):
    """The projected answer, or a draw from Q: nothing is rounded, only the weight is searched."""

    space: FiniteSpace

    @abstractmethod
    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a draw from Q."""
        kept = self.space.index(value)
        drawn = self.draw(bits)
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def dimension(self) -> int:
        return 0

    def kept_error(self) -> float:
        return 0.0

    def rounding(self, limit: float) -> float:
        return 0.0

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        return self.log_mass

    def finest(self, limit: float, weight: Fraction) -> _FiniteMixing:
        return replace(self, mixing_weight=weight)


@final
@dataclass(frozen=True, kw_only=True)
class FiniteMix(_FiniteMixing):
    """A uniform element instead of the answer, with probability w.

    Guarantee: M = N, the number of elements; no other channel needs less (B1, exactly minimax
    optimal by O1). Error: P(another element) = w (1 - 1/N).
    """

    word = "uniform"
    title = "a uniform element (B1)"

    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""
        return int(uniform_below(self.space.size, size=1, bits=bits)[0])

    def displacement(self) -> float:
        """Return the largest probability that a draw from Q is another element."""
        return float(1 - Fraction(1, self.space.size))

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return B1: ln N."""
        return "uniform-mixing", uniform_mass, {"size": self.space.size}


@final
@dataclass(frozen=True, kw_only=True)
class PriorMix(_FiniteMixing):
    """A draw from a public prior Q instead of the answer; of its numbers only the ratios count.

    Guarantee: M = 1/q_min. Error: w P_Q(another element), at most w.

    >>> from zerodelta.spaces import Finite
    >>> PriorMix(space=Finite(3), mixing_weight="1/9", prior=["1/2", "1/3", "1/6"]).prior
    (3, 2, 1)
    """

    prior: tuple[int, ...]
    word = "prior"
    title = "a draw from a public prior (B1)"

    def __post_init__(self) -> None:
        super().__post_init__()
        exact = [as_positive(p, "prior") for p in _one_for_each(self.prior, "prior", self.space)]
        object.__setattr__(self, "prior", _whole(exact))

    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""
        return int(categorical(self.prior, size=1, bits=bits)[0])

    def displacement(self) -> float:
        """Return the largest probability that a draw from Q is another element."""
        return float(1 - self._smallest())

    def condition(self) -> tuple[str, Callable[..., float], dict[str, Any]]:
        """Return B1 for a prior: ln(1/q_min)."""
        numbers = {"size": self.space.size, "smallest_probability": self._smallest()}
        return "prior-mixing", prior_mass, numbers

    def _smallest(self) -> Fraction:
        return Fraction(min(self.prior), sum(self.prior))


@final
@dataclass(frozen=True, kw_only=True)
class ProfileMix(Purifier):
    """The optimal prior when a pointwise profile is known: Q ∝ δ_t(y) (B1, "Which delta?").

    `profile[y]` bounds sup over neighbors of P_D(y) - e^t P_D'(y) at t = `at_epsilon`, for every
    index y of the space; it is caller-asserted, so its step is `asserted`.

    Guarantee: pure t-DP with the smallest weight any prior allows, w/(1-w) = Σ_y δ_t(y)/(e^t - 1).
    A claim would say less than the profile does, and is not read.
    """

    space: FiniteSpace
    at_epsilon: Fraction
    profile: tuple[Fraction, ...]
    word = "profile"
    title = "a draw in proportion to a profile (B1)"
    rests_on_claim = False

    def __post_init__(self) -> None:
        entries = _one_for_each(self.profile, "profile", self.space)
        exact = tuple(as_rational(entry, "profile") for entry in entries)
        require(
            min(exact) >= 0 and max(exact) > 0,
            "profile",
            self.profile,
            expected="numbers >= 0, not all 0",
            remedy="a mechanism whose profile is 0 everywhere is pure already",
        )
        object.__setattr__(self, "profile", exact)
        target = as_positive(self.at_epsilon, "epsilon")
        object.__setattr__(self, "at_epsilon", target)

    @property
    def mixing_weight(self) -> Fraction:
        """Return w = x/(1+x), x = Σδ_t(y)/(e^t - 1) rounded up."""
        total = sum(self.profile, Fraction(0))
        odds = Fraction(upper(lambda: ball(total) / ball(self.at_epsilon).expm1()))
        return odds / (1 + odds)

    def claim(self) -> ApproxDP:
        """Return what the profile says of all sets together: δ(t) <= Σ_y δ_t(y)."""
        total = sum(self.profile, Fraction(0))
        return ApproxDP(self.at_epsilon, min(0.0, upper(lambda: ball(total).log())))

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
        drawn = int(categorical(_whole(self.profile), size=1, bits=bits)[0])
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the largest probability of publishing another element."""
        return float(self.mixing_weight)

    def step(self) -> Step:
        """Return B1 for a pointwise profile."""
        numbers = {
            "epsilon": self.at_epsilon,
            "ratio": sum(self.profile, Fraction(0)),
            "weight": self.mixing_weight,
        }
        return Step(theorem="profile-mixing", numbers=numbers, status=Status.ASSERTED)


def _whole(exact: Sequence[Fraction]) -> tuple[int, ...]:
    """Return integers in the same proportions."""
    unit = math.lcm(*(entry.denominator for entry in exact))
    return tuple(int(entry * unit) for entry in exact)


def _one_for_each(numbers: Sequence[Any], name: str, space: Space) -> list[Any]:
    """Return the numbers, one for each element of a finite space."""
    try:
        entries = [] if isinstance(numbers, str) else list(numbers)
    except TypeError:  # nothing to iterate over
        entries = []
    require(
        isinstance(space, FiniteSpace) and len(entries) == space.size,
        name,
        numbers,
        expected="one number for each element of a finite space",
        remedy="list them in the order of the space's indices",
    )
    return entries
