"""Choosing the best of several options: exponential mechanism, permute-and-flip (theory C10.1).

Both add noise to exact scores and release only *which* noisy score is largest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt

from zerodelta.exact.argmax import Members, Rest, Scores, exponential_argmax, gumbel_argmax
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count, as_float, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mechanisms import selection_epsilon
from zerodelta.spine.methods import Method

_S = TypeVar("_S", bound="Selection")


@dataclass(frozen=True, slots=True, init=False)
class Selection(ABC):
    """Public configuration of a noisy argmax; each subclass adds its own noise."""

    theorem: ClassVar[str]

    sensitivity: Fraction
    scale: Fraction
    monotone: bool
    neighbors: Neighbors

    def __init__(
        self,
        *,
        sensitivity: Rational,
        scale: Rational,
        monotone: bool = False,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        selection_epsilon(sensitivity, scale, monotone)  # refuses what is malformed
        object.__setattr__(self, "sensitivity", as_positive(sensitivity, "sensitivity"))
        object.__setattr__(self, "scale", as_positive(scale, "scale"))
        object.__setattr__(self, "monotone", monotone)
        object.__setattr__(self, "neighbors", neighbors)

    @classmethod
    def for_epsilon(
        cls: type[_S],
        *,
        epsilon: Rational,
        sensitivity: Rational,
        monotone: bool = False,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> _S:
        """Return the mechanism with exactly this ε."""
        target = as_positive(epsilon, "epsilon")
        scale = selection_epsilon(sensitivity, target, monotone)  # ε = c/b, so b = c/ε
        return cls(sensitivity=sensitivity, scale=scale, monotone=monotone, neighbors=neighbors)

    @property
    def epsilon(self) -> Fraction:
        """The ε of one choice, exactly."""
        return selection_epsilon(self.sensitivity, self.scale, self.monotone)

    @property
    @abstractmethod
    def claim(self) -> PureDP:
        """What one choice costs."""

    @abstractmethod
    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions.

        With `members`, each score is that of so many options: the index of the winner's score.
        With `rest`, the last one is a bound for its members, and an index from there on says which.
        """

    def select_member(
        self, scores: Scores, members: Members, bits: BitSource, *, rest: Rest | None = None
    ) -> tuple[int, int]:
        """Return the index of the winner's score, and which of its members the winner is.

        With `rest`, the last score is a bound for its members, and `rest(place)` that of one.
        """
        if rest is not None:
            winner, last = self.select(scores, bits, members=members, rest=rest), len(scores) - 1
            if winner >= last:
                return last, winner - last
        else:
            winner = self.select(scores, bits, members=members)
        return winner, int(uniform_below(int(members[winner]), size=1, bits=bits)[0])

    def step(self) -> Step:
        """Return the proof step of one choice."""
        numbers = {
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "monotone": self.monotone,
        }
        return Step(theorem=self.theorem, numbers=numbers, neighbors=self.neighbors)

    def error(self, options: int) -> float:
        """Return scale · ln(options), at least the expected gap between best and chosen score."""
        return float(self.scale) * math.log(as_count(options, "options", minimum=1))


@final
@dataclass(frozen=True, slots=True, init=False)
class ExponentialMechanism(Selection):
    """Releases the index of the largest score + scale · Gumbel: P(i) ∝ e^(score_i / scale).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = 2 sensitivity / scale, if each score has this sensitivity;
    ε = sensitivity / scale if `monotone` (all scores always move in the same direction). The loss
    has range ε, so inside a composition it costs ε²/8 of zCDP (C10.1, R2).
    **Public**: everything stored here, and the number of options.
    **Error**: the chosen score is below the best by at most scale · ln(options) on average.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = ExponentialMechanism.for_epsilon(epsilon=1, sensitivity=1)
    >>> mechanism.scale, mechanism.select([0, 10_000, 3], SystemBits())
    (Fraction(2, 1), 1)
    """

    theorem: ClassVar[str] = "exponential-mechanism"

    @property
    def claim(self) -> PureDP:
        """What one choice costs; its loss has bounded range."""
        return PureDP(self.epsilon, bounded_range=True, neighbors=self.neighbors)

    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions."""
        found = gumbel_argmax(scores, scale=self.scale, size=1, bits=bits, members=members, **rest)
        return int(found[0])


@final
@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip(Selection):
    """Releases the index of the largest score + scale · Exponential: never worse than the above.

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = 2 sensitivity / scale (sensitivity / scale if `monotone`), as
    for the exponential mechanism (C10.1). Its loss is *not* of range ε: inside a composition it
    costs what any pure step does.
    **Public**: everything stored here, and the number of options.
    **Error**: at equal ε the gap to the best score is stochastically smaller than the exponential
    mechanism's, at most scale · ln(options) on average.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = PermuteAndFlip.for_epsilon(epsilon="1/2", sensitivity=1, monotone=True)
    >>> mechanism.scale, mechanism.select([0, 10_000, 3], SystemBits())
    (Fraction(2, 1), 1)
    """

    theorem: ClassVar[str] = "permute-and-flip"

    @property
    def claim(self) -> PureDP:
        """What one choice costs, as a plain pure step."""
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def select(
        self, scores: Scores, bits: BitSource, *, members: Members | None = None, **rest: Rest
    ) -> int:
        """Return the index of the chosen option; scores are integers or Fractions."""
        found = exponential_argmax(
            scores, scale=self.scale, size=1, bits=bits, members=members, **rest
        )
        return int(found[0])


SELECTIONS: dict[str, type[Selection]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
}
"""By the names that ``method=`` accepts."""


def selection_methods(error: Callable[[str], float], *reasons: str) -> tuple[Method, ...]:
    """Return both selections as methods of a task, with their forecasts and reasons."""
    return tuple(
        Method(name=name, error=error(name), spends="ε on one choice", why=why)
        for name, why in zip(SELECTIONS, reasons, strict=True)
    )


def worst_gap(options: int, scale: Rational, *, method: str = "permute-and-flip") -> float:
    """Return max over a of a·P(not the best): one option leads N-1 tied ones by a.

    With x = e^(-a/b), P(the best) = (1 - (1-x)^N)/(N x) for permute-and-flip and 1/(1 + (N-1)x)
    for the exponential mechanism; at most b ln N (theory C10.1).

    >>> worst_gap(2, 2) < worst_gap(100, 2) < 2 * math.log(100)
    True
    """
    count = as_count(options, "options", minimum=1)
    return as_float(as_positive(scale, "scale"), "scale") * _unit_gap(count, method)


@lru_cache(maxsize=256)
def _unit_gap(count: int, method: str) -> float:
    """Return the worst gap at scale 1."""
    if count == 1:
        return 0.0
    leads = np.linspace(0.0, 4.0 + 2.0 * math.log(count), 4000)[1:]
    return float((leads * _wrong(count, leads, method)).max())


def gap_at(options: int, scale: Rational, lead: float, *, method: str) -> float:
    """Return the expected gap where one option leads all others, which are tied, by `lead`.

    >>> gap_at(100, 2, 40, method="permute-and-flip") < worst_gap(100, 2)
    True
    """
    leads = np.array([lead / float(as_positive(scale, "scale"))])
    return lead * float(_wrong(as_count(options, "options", minimum=1), leads, method)[0])


def _wrong(count: int, leads: npt.NDArray[np.float64], method: str) -> npt.NDArray[np.float64]:
    """Return the probability that one of the others is chosen, for leads at scale 1."""
    leads = np.clip(leads, 1e-15, 700)  # e^-lead is neither 0 nor 1
    x = np.exp(-leads)
    if method == "exponential":
        found: npt.NDArray[np.float64] = (count - 1) * x / (1 + (count - 1) * x)
        return found
    wrong: npt.NDArray[np.float64] = 1 + np.expm1(count * np.log1p(-x)) / (count * x)
    return wrong
