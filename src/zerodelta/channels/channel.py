"""Purifiers are exactly local-DP channels (Theorem T0), and the protocol all of ours share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, final

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.composition import CLAIM_TYPES, history
from zerodelta.privacy.proof import proves_epsilon
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import largest_log_delta

__all__ = [
    "Mixing",
    "Purifier",
    "PurifierCheck",
    "as_claim",
    "is_purifier",
    "mix",
    "smallest_epsilon",
]

Value = TypeVar("Value")

_LARGEST_EPSILON = 2.0**20


class Purifier(ABC):
    """A randomized map that turns a base mechanism's output into a pure ε-DP release."""

    @abstractmethod
    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the element to publish. Any value whatever is mapped into the space first."""

    @abstractmethod
    def expected_error(self) -> float:
        """Return the expected error this channel adds to a value of the space."""

    @abstractmethod
    def step(self) -> Step:
        """Return the certificate's step for this channel."""

    def proves(self, epsilon: Rational, claim: Claim) -> bool:
        """Tell whether a base with `claim` certainly becomes pure ε-DP: what `verify` decides."""
        base = history([(claim, 1)])
        return proves_epsilon(self.step(), base, as_positive(epsilon, "epsilon"))

    def epsilon(self, claim: Claim) -> float:
        """Return the smallest ε (rounded up) that the channel proves for a base with `claim`."""
        return smallest_epsilon(lambda epsilon: self.proves(epsilon, claim))


class Mixing(Purifier):
    """A channel (1-w)·T(y) + w·Q; all that matters is the mass ratio of T to Q (theory B1)."""

    @property
    @abstractmethod
    def mixing_weight(self) -> Fraction:
        """The probability w of publishing a draw from Q instead."""

    @property
    @abstractmethod
    def log_mass(self) -> float:
        """An upper bound on ln sup_z T(z|y)/Q(z)."""

    def log_delta_required(self, epsilon: Rational) -> float:
        """Return what the base's ln δ(ε) may be: ln(w/(1-w)) + ln(e^ε - 1) - ln(mass ratio)."""
        return largest_log_delta(epsilon=epsilon, weight=self.mixing_weight, log_mass=self.log_mass)


def as_claim(claim: Any, name: str) -> Claim:
    """Return what the base mechanism satisfies, refusing anything that is no claim."""
    if type(claim) not in CLAIM_TYPES:
        raise ParameterError(
            name,
            claim,
            expected="what the base mechanism satisfies",
            remedy=f"pass {name}=zd.GaussianDP(...), zd.ZCDP(...), zd.ApproxDP(...), …",
        )
    found: Claim = claim
    return found


def mix(kept: Value, drawn: Value, weight: Fraction, bits: BitSource) -> Value:
    """Return `drawn` with probability `weight`, else `kept` (theory C0).

    Both are computed by the caller in either case, and nothing tells which one it was.
    """
    return drawn if bool(bernoulli(weight, size=1, bits=bits)[0]) else kept


def smallest_epsilon(holds: Callable[[Fraction], bool]) -> float:
    """Return a float ε where `holds`, within one part in 1e12 of the smallest (inf if none).

    `holds` must be monotone: a claim's δ falls with ε, and what a channel can take rises.
    """
    high = 1.0
    while not holds(Fraction(high)):
        high *= 2
        if high > _LARGEST_EPSILON:
            return math.inf
    low = high / 2
    while low > 2.0**-60 and holds(Fraction(low)):
        low, high = low / 2, low
    while high - low > high * 1e-13:
        middle = (low + high) / 2
        if holds(Fraction(middle)):
            high = middle
        else:
            low = middle
    return high


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PurifierCheck:
    """What T0 says of a channel: its ratio c, whether it purifies, the smallest ε it gives."""

    purifies: bool
    ratio: Fraction | None
    smallest_epsilon: float

    def __bool__(self) -> bool:
        return self.purifies


def is_purifier(
    channel_matrix: Sequence[Sequence[Rational]], epsilon: Rational, claim: Claim
) -> PurifierCheck:
    """Decide whether a finite channel makes every mechanism with `claim` pure ε-DP (T0).

    Row y of the matrix is the distribution of the output given input y. The channel is c-bounded
    with c = max over columns of largest/smallest entry, and it purifies iff
    (c - 1) δ(ε) <= e^ε - 1 (if and only if, over all mechanisms with that δ at ε).

    >>> from zerodelta.privacy.claims import ApproxDP
    >>> keep = [["0.9", "0.1"], ["0.1", "0.9"]]
    >>> bool(is_purifier(keep, 1, ApproxDP(1, delta=0.1)))
    True
    """
    rows = _stochastic(channel_matrix)
    target, claim = as_positive(epsilon, "epsilon"), as_claim(claim, "claim")
    ratio = _ratio(rows)

    def holds(t: Fraction) -> bool:
        if ratio is None:
            return claim.log_delta(t) == -math.inf
        if ratio == 1:
            return True
        log_delta, excess = claim.log_delta(t), ratio - 1
        if log_delta == -math.inf:
            return True
        return lower(lambda: ball(t).expm1().log() - ball(excess).log() - ball(log_delta)) >= 0

    return PurifierCheck(
        purifies=holds(target),
        ratio=ratio,
        smallest_epsilon=0.0 if ratio == 1 else smallest_epsilon(holds),
    )


def _ratio(rows: list[list[Fraction]]) -> Fraction | None:
    """Return the largest ratio within a column; None if one is infinite."""
    largest = Fraction(1)
    for column in zip(*rows, strict=True):
        if max(column) == 0:
            continue
        if min(column) == 0:
            return None
        largest = max(largest, max(column) / min(column))
    return largest


def _stochastic(matrix: Sequence[Sequence[Rational]]) -> list[list[Fraction]]:
    try:
        entries = [list(row) for row in matrix]
    except TypeError:  # nothing to iterate over
        entries = []
    rows = [[as_rational(entry, "channel_matrix") for entry in row] for row in entries]
    good = bool(rows) and all(len(row) == len(rows[0]) > 0 for row in rows)
    if not good or any(min(row) < 0 or sum(row) != 1 for row in rows):
        raise ParameterError(
            "channel_matrix",
            matrix,
            expected="rows of equal length with entries >= 0 that sum to exactly 1",
            remedy="give the entries as Fractions or decimal strings, so that they sum exactly",
        )
    return rows
