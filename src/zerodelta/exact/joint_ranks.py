"""Rising sequences of points of a grid, drawn exactly from the joint exponential law (theory Q).

P(o_1 <= … <= o_m) ∝ Π_j e^(-rate·|F(o_j) - F(o_(j-1)) - gap_j|), F(o) the number of rows up to o,
F(o_0) = 0 and F(o_(m+1)) the number of all. Runs of equal F are drawn from the last point to the
first by their forward messages, each by one uniform of as many bits as it takes (theory R): floats
with a proven error decide nearly always, Arb the rest. Then all rising sequences of points within
one run are alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from flint import arb

from zerodelta.exact.arb import ball, precision
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_multiset
from zerodelta.exact.rank_bounds import Ranks
from zerodelta.exact.rank_messages import Messages, Numbers, Runs, joint_messages
from zerodelta.value import value

_UNIT = 2.0**-53
_WEIGHTS = 2600
"""Roundings of a weight e^-x, x <= 745, computed in floats: 3x and a few."""
_SMALLEST = -700.0
"""Weights from e^-700 on are floats of full precision."""


@value
class SortedRuns:
    """The runs of rows at hand, in rising order."""

    rows: Integers
    points: int

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Do nothing: all rows are here."""

    def borders(self, first: int, last: int) -> Integers:
        """Return where runs `first` to `last` begin, and where the last one ends.

        >>> SortedRuns(rows=np.array([2, 2, 5]), points=8).borders(0, 3).tolist()
        [0, 2, 2, 5, 8]
        """
        # an empty list is an array of floats, and would round the places of all rows above 2^53
        ends = np.array([0, self.points], dtype=np.int64)
        low, high = ends[: int(first == 0)], ends[2 - int(last == self.count) :]
        return np.concatenate([low, self.rows[max(0, first - 1) : last + 1], high])


_Terms: TypeAlias = tuple[Numbers, float, float]
"""Weights in their order, the logarithm of what all of them lack together, their relative error."""


def joint_points(
    runs: Runs, gaps: Sequence[Fraction], *, rate: Fraction, bits: BitSource
) -> list[int]:
    """Return m points in rising order, drawn from the law; the m + 1 gaps add up to all rows.

    >>> from zerodelta.exact.bits import SystemBits
    >>> runs = SortedRuns(rows=np.arange(1000), points=1000)
    >>> thirds = [Fraction(1000, 3)] * 3
    >>> found = joint_points(runs, thirds, rate=Fraction(2), bits=SystemBits())
    >>> [round(point / 100) for point in found]
    [3, 7]
    """
    draw = _Draw(runs, tuple(gaps), rate, bits)
    points: list[int] = []
    place, following = len(gaps) - 2, None
    while place >= 0:
        rank = draw.rank(place, following)
        shared = draw.shared(place, rank)
        start, end = (int(border) for border in runs.borders(rank, rank))
        members = uniform_multiset(end - start, size=shared, bits=bits)
        points = [start + int(member) for member in members] + points
        place, following = place - shared, rank
    return points


@final
class _Draw:
    """One draw: its messages at each level of accuracy, computed when they are needed."""

    __slots__ = ("_bits", "_gaps", "_levels", "_rate", "_runs")

    def __init__(
        self, runs: Runs, gaps: tuple[Fraction, ...], rate: Fraction, bits: BitSource
    ) -> None:
        self._runs, self._gaps, self._rate, self._bits = runs, gaps, rate, bits
        self._levels: list[Messages] = []

    def rank(self, place: int, following: int | None) -> int:
        """Return the rank of a point, the last one in its run, from that of the next run."""
        at = self._runs.count if following is None else following

        def terms(messages: Messages) -> _Terms:
            kept = messages.kept[place]
            stop = len(kept) if following is None else max(0, min(len(kept), at - kept.first))
            gap = self._gaps[place + 1]
            whole = math.ceil(gap)
            distances = at - whole - kept.first - np.arange(stop)
            if messages.bits is None:
                exactly = np.abs(distances + float(whole - gap))
                weights: Any = np.exp(-float(self._rate) * exactly)
            else:
                powers = [messages.constant(abs(int(d) + (whole - gap))) for d in distances]
                weights = np.empty(stop, dtype=object)
                weights[:] = powers
            values = messages.left[place][:stop] * weights
            lost = messages.lost_before(place, following)
            if messages.bits is not None:
                return values, lost, 0.0
            # and what is lost to weights that are no floats, of messages of at most 1
            lost -= messages.scales[place + 1] * math.log(2)
            lost = float(np.logaddexp(lost, _SMALLEST + math.log(stop + 1)))
            return values, lost, messages.error + (stop + _WEIGHTS) * _UNIT

        def named(messages: Messages, found: int) -> int:
            return messages.kept[place].first + found

        return self._choose(terms, named)

    def shared(self, place: int, rank: int) -> int:
        """Return how many points are in the run of this rank, of which this is the last."""

        def terms(messages: Messages) -> _Terms:
            found: list[Any] = []
            ways, inner = arb(1), Fraction(0)
            for r in range(1, place + 2):
                first = place - r + 1
                kept = messages.kept[first]
                if not kept.first <= rank <= kept.last:
                    break
                width = int(messages.widths[first][rank - kept.first])
                ways = ways * (width + r - 1) / r
                entered = messages.entered[first][rank - kept.first]
                scale = arb(2) ** (messages.scales[first] - messages.scales[place + 1])
                weight = (-ball(self._rate * inner)).exp()
                found.append(arb(entered) * ways * weight * scale)
                inner += self._gaps[first]
            values = np.empty(len(found), dtype=object)
            values[:] = found
            lost = messages.lost_at(place, rank) - messages.scales[place + 1] * math.log(2)
            return values, lost, messages.error if messages.bits is None else 0.0

        return self._choose(terms, lambda messages, found: found + 1)

    def _choose(
        self, terms: Callable[[Messages], _Terms], named: Callable[[Messages, int], int]
    ) -> int:
        """Return which term a fresh uniform falls on; a level that cannot tell is left."""
        prefix, width, level = self._bits.integer(64), 64, 0
        while True:
            messages = self._level(level)
            with precision(width + (messages.bits or 128)):
                values, lost, error = terms(messages)
                if values.dtype == object:
                    found = _exact_place(values, lost, error, prefix, width)
                else:
                    found = _float_place(values, lost, error, prefix >> (width - 53))
            if found is not None:
                return named(messages, found)
            prefix, width = (prefix << width) | self._bits.integer(width), 2 * width
            level += 1

    def _level(self, level: int) -> Messages:
        while len(self._levels) <= level:
            found = joint_messages(self._runs, self._gaps, self._rate, level=len(self._levels))
            self._levels.append(found)
        return self._levels[level]


def _float_place(values: Numbers, lost: float, error: float, leading: int) -> int | None:
    """Return on which of the weights U of the sum of all falls, None if that is not certain.

    U is from leading/2^53 to (leading + 1)/2^53. Every partial sum is known up to the relative
    error, and may be larger by e^lost.
    """
    if not len(values) or not lost < 700:
        return None
    sums, more, safe = np.cumsum(values), math.exp(lost) * 1.01, 1 + 8 * _UNIT
    total = float(sums[-1])
    low = leading / 2.0**53 * total * (1 - error)
    high = (leading + 1) / 2.0**53 * (total * (1 + error) + more)
    found = int(np.searchsorted(sums, (low + high) / 2, side="right"))
    if found == len(sums) or not total > 0:
        return None
    before = float(sums[found - 1]) if found else 0.0
    after = float(sums[found]) * (1 - error)
    # nothing is before the first weight but what is lost
    starts = before * (1 + error) * safe + more * safe <= low
    return found if starts and after > high * safe else None


def _exact_place(values: Numbers, lost: float, error: float, prefix: int, width: int) -> int | None:
    """Return the same in Arb, U being from prefix/2^width to (prefix + 1)/2^width."""
    if not len(values) or not lost < 1e9:
        return None
    more = arb(0) if lost == -math.inf else (arb(lost) + arb("0.01")).exp()
    spread = arb(1, error) if error else arb(1)
    sums = [arb(0)]
    for entry in values:
        sums.append(sums[-1] + entry * spread)
    unit = arb(2) ** -width
    low = arb(prefix) * unit * sums[-1]
    high = arb(prefix + 1) * unit * (sums[-1] + more)
    for found, after in enumerate(sums[1:]):
        if after > high:
            return found if bool(sums[found] + more <= low) else None
    return None
