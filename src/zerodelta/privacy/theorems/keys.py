"""What counts by key cost where noise differs upwards and downwards, and k options of one draw.

A row counts for at most one key of a public finite set; nothing is paid for the size of the set,
for thresholds, or for how many keys are published (theory U). k options chosen in one draw by
general scores: theory K2.
"""

from __future__ import annotations

from fractions import Fraction

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.domains import Count, Flag, Positive, Size
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.theorem import Base, PureBase
from zerodelta.value import value


def key_counts_epsilon(*, up: Rational, down: Rational, neighbors: Neighbors) -> Fraction:
    """Return the ε of noise with P(z) ∝ e^(-up·z) for z ≥ 0, e^(-down·|z|) below, on each count.

    A replaced row lowers one count and raises another: up + down. A row that is added or removed
    moves one count: the larger of the two.

    >>> rates = dict(up="3/4", down="1/4")
    >>> key_counts_epsilon(**rates, neighbors=Neighbors.REPLACE)
    Fraction(1, 1)
    >>> key_counts_epsilon(**rates, neighbors=Neighbors.ADD_REMOVE)
    Fraction(3, 4)
    """
    rates = as_positive(up, "up"), as_positive(down, "down")
    return sum(rates, Fraction(0)) if neighbors is Neighbors.REPLACE else max(rates)


def joint_top_k_epsilon(sensitivity: Rational, scale: Rational, monotone: bool) -> Fraction:
    """Return 4Δ/b: P(s) ∝ e^(u(s)/b), u = -max_i(the i-th largest score - that of option s_i).

    The i-th largest score may fall while that of s_i rises, each by Δ: u has sensitivity 2Δ, or Δ
    if `monotone` (between any two neighbors all scores move in the same direction).

    >>> joint_top_k_epsilon(1, 4, False), joint_top_k_epsilon(1, 4, True)
    (Fraction(1, 1), Fraction(1, 2))
    """
    if not isinstance(monotone, bool):
        raise ParameterError(
            "monotone", monotone, expected="True or False", remedy="pass a bool, nothing truthy"
        )
    moved = as_positive(sensitivity, "sensitivity") * (1 if monotone else 2)
    return 2 * moved / as_positive(scale, "scale")


@value
class KeyCounts(Base):
    """Counts by key with noise that differs upwards and downwards; what passes is published."""

    label = "key-counts"
    section = "U"
    sentence = (
        "a row counts for at most one of {keys} keys, which are public; each count has independent "
        "integer noise that falls by the factor e^-({up}) upwards and e^-({down}) downwards; "
        "whatever is published is a function of these numbers alone: pure DP."
    )

    keys: Size
    up: Positive
    down: Positive

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = key_counts_epsilon(up=self.up, down=self.down, neighbors=neighbors)
        return PureDP(epsilon, neighbors=neighbors)


@value
class JointTopK(PureBase):
    """Several options in one draw of the exponential mechanism."""

    label = "joint-top-k"
    section = "K2"
    sentence = (
        "{chosen} options, in order, by one exact draw of the exponential mechanism of scale "
        "{scale}; a list is as good as its worst place, on scores of sensitivity {sensitivity}: "
        "pure DP."
    )
    inequality = staticmethod(
        lambda sensitivity, scale, monotone, **_: joint_top_k_epsilon(sensitivity, scale, monotone)
    )
    bounded_range = True

    chosen: Count
    sensitivity: Positive
    scale: Positive
    monotone: Flag
