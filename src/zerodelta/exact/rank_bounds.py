"""Bounds, in logarithms, for what sequences of runs weigh together (theory Q).

Upper bounds leave out that sequences rise, and count W^r for r points in a run of W: then sums over
all of them are two scans for each point. They say which ranks matter, and how much is lost without
the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats
from zerodelta.value import value

Numbers = npt.NDArray[Any]
"""float64, or Arb balls as objects."""


@value
class Ranks:
    """Consecutive ranks `first`, …, `last`."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def part(self, values: Numbers, inner: Ranks) -> Numbers:
        """Return the values of some of these ranks."""
        return values[inner.first - self.first : inner.last - self.first + 1]


def carry(values: Floats, ranks: Ranks, gap: Fraction, to: Ranks, rate: Fraction) -> Floats:
    """Return the logarithms of the sums over all f' of e^(values(f') - rate·|f - f' - gap|)."""
    weight, places = float(rate), np.arange(len(ranks), dtype=np.float64)
    rising = np.logaddexp.accumulate(values + weight * places)
    falling = np.logaddexp.accumulate((values - weight * places)[::-1])[::-1]
    whole = math.ceil(gap)
    at = np.arange(to.first, to.last + 1) - (ranks.first + whole)
    exactly = at + float(whole - gap)
    end = len(ranks) - 1
    below = np.where(at >= 0, rising[np.clip(at, 0, end)] - weight * exactly, -np.inf)
    above = np.where(at < end, falling[np.clip(at + 1, 0, end)] + weight * exactly, -np.inf)
    return np.logaddexp(below, above)


def relaxed_weights(
    logs: Sequence[Floats], seen: Sequence[Ranks], gaps: Sequence[Fraction], rate: Fraction
) -> list[Floats]:
    """Return logarithms of bounds for `left`: points in one run and runs need not rise.

    C(W + r - 1, r) <= W^r, and what does not rise only adds.
    """
    start, found = Ranks(first=0, last=0), [np.zeros(1)]
    ranks = [start, *seen]
    for j, width in enumerate(logs):
        found.append(width + carry(found[-1], ranks[j], gaps[j], seen[j], rate))
    return found[1:]


def last_weights(ranks: Ranks, gaps: Sequence[Fraction], rate: Fraction) -> Floats:
    """Return the logarithms of the weights from the last point to the end."""
    end = Ranks(first=round(sum(gaps)), last=round(sum(gaps)))
    return carry(np.zeros(1), end, -gaps[-1], ranks, rate)


def ranks_that_matter(
    forward: Sequence[Floats],
    logs: Sequence[Floats],
    seen: Sequence[Ranks],
    gaps: Sequence[Fraction],
    rate: Fraction,
    threshold: float,
) -> tuple[Ranks, ...]:
    """Return the ranks of each point whose sequences, by that bound, weigh e^-threshold or more.

    Nothing rests on this but speed.
    """
    back, kept = last_weights(seen[-1], gaps, rate), []
    for j in reversed(range(len(logs))):
        through = forward[j] + back
        near = np.flatnonzero(through >= through.max() - threshold)
        first = seen[j].first
        kept.append(Ranks(first=first + int(near[0]), last=first + int(near[-1])))
        if j:
            back = carry(logs[j] + back, seen[j], -gaps[j], seen[j - 1], rate)
    return tuple(reversed(kept))


def lost_weights(
    forward: Sequence[Floats],
    logs: Sequence[Floats],
    seen: Sequence[Ranks],
    kept: Sequence[Ranks],
    gaps: Sequence[Fraction],
    rate: Fraction,
    *,
    under: Sequence[float] | None,
    slack: float,
) -> tuple[Floats, ...]:
    """Return logarithms of bounds for what `left` lacks: sequences that were left out somewhere."""
    lost: list[Floats] = []
    for j, (s, k) in enumerate(zip(seen, kept, strict=True)):
        here = forward[j] + slack
        inside = slice(k.first - s.first, k.last - s.first + 1)
        here[inside] = -np.inf
        if lost:
            came = logs[j] + carry(lost[-1], seen[j - 1], gaps[j], s, rate) + slack
            here[inside] = came[inside]
        if under is not None:
            here[inside] = np.logaddexp(here[inside], under[j])
        lost.append(here)
    return tuple(lost)


def log_multisets(points: int, size: int) -> float:
    """Return an upper bound for ln C(points + size - 1, size), the number of rising sequences."""
    return math.fsum(math.log((points + i) / (i + 1)) for i in range(size)) + 1e-6
