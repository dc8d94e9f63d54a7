"""Define channels: the law that `apply` must have, and the condition that removes δ (T0, B1, N)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli
from zerodelta.exact.logs import ball, lower
from zerodelta.exact.noise import rounded_k_norm
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.composition import CLAIM_TYPES, transcript_claim
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems import mixing as theorems
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.smoothing import numerical_error_epsilon
from zerodelta.privacy.verify import proves_epsilon
from zerodelta.spaces import Ball
from zerodelta.spaces.space import read_exactly
from zerodelta.value import value

Value = TypeVar("Value")

MAX_NATS = 34.0
"""The largest log-ratio per coordinate, e^34 ≈ 2^49 cells: floats cannot tell finer ones apart."""

_LARGEST_EPSILON = 2.0**20


class Purifier(ABC):
    """A randomized map that turns a base mechanism's output into a pure ε-DP release.

    **The law of `apply`.** For any object that is passed in,

    1. the value is first mapped to an element y of the space, as a function of the value alone;
    2. the draw has *exactly* the distribution given y that `step` certifies: it comes from `bits`
       through the exact samplers, and floats are used for y only;
    3. the result is a function of the draw and of public numbers (projection onto the space);
    4. nothing else is raised, logged or kept: an exception is an output (theory A14.4).
    """

    word: ClassVar[str] = ""
    """The name by which `plan(channel=…)` selects it; empty if no plan does."""
    title: ClassVar[str] = ""
    """Its description in the table of a printed plan."""
    reservation: ClassVar[str] = ""
    """The reason why a plan selects it by name only; empty otherwise."""
    rests_on_claim: ClassVar[bool] = True
    """Whether the condition uses the base's claim; False with a pointwise profile instead."""

    @abstractmethod
    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the element to publish, drawn by the law above."""

    @abstractmethod
    def expected_error(self) -> float:
        """Return the expected error this channel adds to a value of the space."""

    @abstractmethod
    def step(self) -> Step:
        """Return the certificate's step for this channel."""

    def proves(self, epsilon: Rational, claim: Claim) -> bool:
        """Tell whether a base with `claim` certainly becomes pure ε-DP: what `verify` decides."""
        base = transcript_claim([(claim, 1)]) if self.rests_on_claim else None
        return proves_epsilon(self.step(), base, as_positive(epsilon, "epsilon"))

    def epsilon(self, claim: Claim) -> float:
        """Return the smallest ε (rounded up) that the channel proves for a base with `claim`."""
        return smallest_epsilon(lambda epsilon: self.proves(epsilon, claim))


@dataclass(frozen=True, kw_only=True)
class Mixing(Purifier):
    """A channel (1-w)·T(y) + w·Q; only the largest ratio of T to Q matters (theory B1).

    **The law of `apply`**: with probability exactly w = `mixing_weight` a draw from the public
    distribution Q, else one from T(·|y). Both are drawn in either case, and nothing shows which of
    them was returned. Pure t-DP if ln δ(t) + ln M <= ln(w/(1-w)) + ln(e^t - 1).

    **Its forecast.** A plan compares classes of channels in floats, each represented by one channel
    on the space. Closed forms take a *log-ratio limit*, an upper bound on `log_mass` in nats:
    `rounding(limit)` is the error of the finest channel within it, and w times `displacement` is
    added. `finest(limit)` builds the chosen channel, whose exact numbers are then certified.
    """

    mixing_weight: Fraction
    """The probability w of publishing a draw from Q instead."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))

    @property
    @abstractmethod
    def theorem(self) -> theorems.MixingTheorem:
        """The theorem with the numbers of its proof step: it bounds ln M."""

    @property
    def log_mass(self) -> float:
        """An upper bound on ln M, M = sup_z T(z|y)/Q(z): what `verify` computes from the step."""
        return self.theorem.log_mass

    def step(self) -> Step:
        """Return the theorem with its numbers."""
        return self.theorem.step()

    def log_delta_required(self, epsilon: Rational) -> float:
        """Return what the base's ln δ(ε) may be: ln(w/(1-w)) + ln(e^ε - 1) - ln M."""
        return self.theorem.log_delta_required(epsilon)

    def expected_error(self) -> float:
        """Return the rms error of a draw from T, plus w times that of one from Q."""
        return self.kept_error() + float(self.mixing_weight) * self.displacement()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of coordinates that are rounded (0 on finite spaces)."""

    @abstractmethod
    def kept_error(self) -> float:
        """Return the l2 error (0-1 error on finite spaces) of a draw from T."""

    @abstractmethod
    def displacement(self) -> float:
        """Return the expected error of an answer that is replaced by a draw from Q."""

    @abstractmethod
    def rounding(self, limit: float) -> float:
        """Return the approximate `kept_error` of the finest channel within a log-ratio limit."""

    @abstractmethod
    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return the approximate log-ratio at a resolution; by default the coarsest useful one."""

    @abstractmethod
    def finest(self, limit: float, weight: Fraction) -> Mixing:
        """Return the finest channel of this class whose `log_mass` is within the limit."""


Channel = TypeVar("Channel", bound=Mixing)


def coarsened(start: Fraction, limit: float, build: Callable[[Fraction], Channel]) -> Channel:
    """Return the first channel whose `log_mass` is within the limit, at growing spacings or scales.

    The start comes from a closed form in floats, so one or two steps are usually enough.
    """
    parameter = start
    while (channel := build(parameter)).log_mass > limit:
        parameter *= Fraction(1_000_001, 1_000_000)
    return channel


def as_claim(claim: Any, name: str) -> Claim:
    """Return the claim of a base mechanism, refusing anything that is not a claim."""
    require(
        type(claim) in CLAIM_TYPES,
        name,
        claim,
        expected="the claim of the base mechanism",
        remedy=f"pass {name}=zd.GaussianDP(...), zd.purification.ZCDP(...), zd.ApproxDP(...), …",
    )
    checked: Claim = claim
    return checked


def mix(kept: Value, drawn: Value, weight: Fraction, bits: BitSource) -> Value:
    """Return `drawn` with probability `weight`, else `kept` (theory C0).

    The caller computes both in either case, so that nothing, not even time, shows which it was.
    """
    return drawn if bool(bernoulli(weight, size=1, bits=bits)[0]) else kept


def smallest_epsilon(holds: Callable[[Fraction], bool]) -> float:
    """Return the smallest float ε that `holds`, up to one part in 1e12; inf if none does.

    `holds` must be monotone. It is for channels: a claim's δ(ε) falls as ε grows, and the δ that a
    channel can remove rises.
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
        low, high = (low, middle) if holds(Fraction(middle)) else (middle, high)
    return high


@value
class PurifierCheck:
    """The result of T0 for a channel: whether it purifies, its ratio c, the smallest ε it gives."""

    purifies: bool
    ratio: Fraction | None
    smallest_epsilon: float

    def __bool__(self) -> bool:
        return self.purifies


def is_purifier(
    channel_matrix: Sequence[Sequence[Rational]], epsilon: Rational, claim: Claim
) -> PurifierCheck:
    """Decide whether a finite channel makes every mechanism with `claim` pure ε-DP.

    Use it for a channel of your own; those of `plan` carry their proof with them.

    Parameters
    ----------
    channel_matrix : sequence of sequences of numbers
        Row y is the distribution of the output given input y. Rows must sum to exactly 1: pass
        Fractions or decimal strings.
    epsilon : int, float, Fraction or str
        The pure ε to reach.
    claim : PureDP, ApproxDP, GaussianDP, ZCDP or RDP
        The claim of the mechanisms before the channel.

    Returns
    -------
    PurifierCheck
        True or false as a condition. `ratio` is c, the largest ratio of two entries of one column
        (None if infinite), `smallest_epsilon` the least ε for which the check would hold.

    Notes
    -----
    **Guarantee**: theory T0, an *if and only if* over all mechanisms with that δ at ε: the channel
    purifies iff (c - 1) δ(ε) <= e^ε - 1. Decided with outward rounding, from the safe side.

    Examples
    --------
    >>> from zerodelta.privacy.claims import ApproxDP
    >>> keep = [["0.9", "0.1"], ["0.1", "0.9"]]
    >>> is_purifier(keep, 1, ApproxDP(1, delta=0.1)).ratio
    Fraction(9, 1)
    >>> bool(is_purifier(keep, 1, ApproxDP(1, delta=0.1)))
    True

    """
    rows = _stochastic(channel_matrix)
    target, claim = as_positive(epsilon, "epsilon"), as_claim(claim, "claim")
    ratio = _ratio(rows)

    def holds(t: Fraction) -> bool:
        """Tell whether (c - 1) δ(t) <= e^t - 1, in logarithms because δ may be tiny."""
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
    """Return the largest ratio of two entries of one column; None if it is infinite."""
    largest = Fraction(1)
    for column in zip(*rows, strict=True):
        if max(column) == 0:
            continue
        if min(column) == 0:
            return None
        largest = max(largest, max(column) / min(column))
    return largest


def _stochastic(matrix: Sequence[Sequence[Rational]]) -> list[list[Fraction]]:
    """Return the rows of a stochastic matrix exactly, refusing any other matrix."""
    try:
        entries = [list(row) for row in matrix]
    except TypeError:  # not a list of lists
        entries = []
    rows = [[as_rational(entry, "channel_matrix") for entry in row] for row in entries]
    equal = bool(rows) and all(len(row) == len(rows[0]) > 0 for row in rows)
    require(
        equal and all(min(row) >= 0 and sum(row) == 1 for row in rows),
        "channel_matrix",
        matrix,
        expected="rows of equal length with entries >= 0 that sum to exactly 1",
        remedy="give the entries as Fractions or decimal strings, so that they sum exactly",
    )
    return rows


# -- Publishing a pure value that was computed approximately (Theorem N) --------------------------


@value
class NumericalError(Purifier):
    """Publish round_s(value + K) for a value that is within `error` of an ideal pure mechanism.

    Guarantee: (ε₁ + 2·error/scale)-DP if the ideal mechanism is ε₁-DP and the error bound holds
    *surely*, for every dataset, in the norm of the noise (Theorem N). The spacing costs nothing.
    Error: E‖K‖ = dimension · scale, plus the rounding.
    """

    space: Ball
    error: Fraction
    scale: Fraction
    spacing: Fraction
    status: Status = Status.ASSERTED
    """Proven only where the error bound itself is: a certified solver, not a caller's assertion."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", as_rational(self.error, "error"))
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "spacing", as_positive(self.spacing, "spacing"))
        numerical_error_epsilon(error=self.error, scale=self.scale)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Clip the value, add K-norm noise, round to the lattice, and project onto the space.

        Floats are exact rationals and the *sum* is rounded: nothing is rounded before the noise.
        Each coordinate is first clipped to the ball's bounding box. That is exact and moves no two
        values further apart, so the error bound still holds; projecting in floats could break it.
        """
        middle, radius = self.space.middle(), self.space.radius
        origin = [Fraction(float(coordinate)) for coordinate in middle]
        vector = read_exactly(value, self.space.dimension) or origin
        center = [
            min(max(x - m, -radius), radius) / self.spacing
            for x, m in zip(vector, origin, strict=True)
        ]
        drawn = rounded_k_norm(
            norm=self.space.norm,
            dimension=self.space.dimension,
            scale=self.scale / self.spacing,
            size=1,
            bits=bits,
            center=center,
        )[0]
        return np.asarray(
            self.space.project(middle + drawn.astype(np.float64) * float(self.spacing))
        )

    def expected_error(self) -> float:
        """Return E‖K‖ plus the rms rounding error."""
        d = self.space.dimension
        return d * float(self.scale) + float(self.spacing) * math.sqrt(d / 12)

    def step(self) -> Step:
        """Return Theorem N with its numbers."""
        numbers = {"error": self.error, "scale": self.scale}
        return Step(theorem="numerical-error", numbers=numbers, status=self.status)
