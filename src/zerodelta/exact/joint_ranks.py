"""Draw rising sequences of grid points exactly from the joint exponential law (theory Q).

P(o_1 <= … <= o_m) ∝ Π_j e^(-rate·|F(o_j) - F(o_(j-1)) - gap_j|), where F(o) is the number of rows
up to o, F(o_0) = 0 and F(o_(m+1)) the number of all rows. Points with equal F form a run. First the
runs of the points are drawn, from the last point to the first, with probabilities from forward
messages (sums over all beginnings of sequences). Each draw uses one uniform of as many bits as it
needs (theory R): floats with a proven error decide nearly always, Arb otherwise. Then the points
within a run are drawn uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_multiset
from zerodelta.exact.logs import ball, precision
from zerodelta.value import value

# -- Upper bounds, in logarithms, of total weights of sequences of runs (theory Q) ----------------
# The bounds ignore that sequences must rise, and count W^r for r points in a run of W: then sums
# over all sequences take two scans for each point. They show which ranks matter, and bound the
# weight that is lost by leaving out the others.

Numbers = npt.NDArray[Any]
"""An array of float64, or of Arb balls as objects."""


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
    integer_gap = math.ceil(gap)
    at = np.arange(to.first, to.last + 1) - (ranks.first + integer_gap)
    exactly = at + float(integer_gap - gap)
    end = len(ranks) - 1
    below = np.where(at >= 0, rising[np.clip(at, 0, end)] - weight * exactly, -np.inf)
    above = np.where(at < end, falling[np.clip(at + 1, 0, end)] + weight * exactly, -np.inf)
    return np.logaddexp(below, above)


def relaxed_weights(
    logs: Sequence[Floats], seen: Sequence[Ranks], gaps: Sequence[Fraction], rate: Fraction
) -> list[Floats]:
    """Return logarithms of upper bounds of `Messages.left`, ignoring that sequences must rise.

    They are bounds since C(W + r - 1, r) <= W^r, and sequences that do not rise only add weight.
    """
    start, weights = Ranks(first=0, last=0), [np.zeros(1)]
    ranks = [start, *seen]
    for j, width in enumerate(logs):
        weights.append(width + carry(weights[-1], ranks[j], gaps[j], seen[j], rate))
    return weights[1:]


def last_weights(ranks: Ranks, gaps: Sequence[Fraction], rate: Fraction) -> Floats:
    """Return, for each rank of the last point, the logarithm of the weight of the last gap."""
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
    """Return the ranks of each point whose sequences weigh at least e^-threshold of the largest.

    The weights are the upper bounds. This affects speed only: `lost_weights` bounds the rest.
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
    """Return logarithms of bounds of the weight that is missing in `Messages.left`."""
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


# -- Sums over all rising sequences of runs, by forward messages in floats or in Arb (theory Q) ---
# A run is a set of neighboring grid points with the same number of rows up to them, its *rank*. The
# j-th of m points is in a run of rank f_j. The weight of a sequence of runs is Π e^(-rate·|f_j -
# f_(j-1) - gap_j|), times the number of rising sequences of points in these runs. Messages are
# computed for the ranks that matter, without subtraction (which would cancel), by window sums of
# geometric weights; the weight of other ranks is bounded from above.

_UNIT = 2.0**-53
_NEGLIGIBLE_LOG = 64.0
"""At level 0, ranks whose sequences have less than about e^-64 of the total weight are left out."""
_UNDERFLOW_LOG = -850 * math.log(2)
"""The logarithm of a bound of the weight that one step loses to underflow.

Messages have size about 1. Floats below 2^-1022 and weights below e^-700 are lost, times the number
of ranks and the number of points in a run: less than 2^-850.
"""


class Runs(Protocol):
    """The positions at which the runs begin: a row at point x begins the next run at x."""

    @property
    def count(self) -> int:
        """The number of rows, the largest rank."""
        ...  # pragma: no cover

    @property
    def points(self) -> int:
        """The number of points of the grid."""
        ...  # pragma: no cover

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Prepare to return the borders of these ranks."""
        ...  # pragma: no cover

    def borders(self, first: int, last: int) -> Integers:
        """Return the first points of the runs `first` to `last`, and the end of the last run."""
        ...  # pragma: no cover


@value
class Messages:
    """Forward messages: total weights of the first j + 1 points, by the rank of point j + 1.

    `entered[j]` sums the sequences in which point j + 1 is the first one in its run, without the
    factor for the number of points of that run; `left[j]` those in which it is the last one in its
    run. Their units are 2^scales[j] and 2^scales[j + 1]. Their relative error is at most `error`
    (Arb balls hold their own). `lost[j]` is the logarithm of a bound of the weight that is missing
    in `left[j]`.
    """

    rate: Fraction
    gaps: tuple[Fraction, ...]
    kept: tuple[Ranks, ...]
    """The ranks of each point that have messages."""
    seen: tuple[Ranks, ...]
    """The ranks of each point that have an entry in `lost`, a larger range."""
    widths: tuple[Integers, ...]
    entered: tuple[Numbers, ...]
    left: tuple[Numbers, ...]
    lost: tuple[Floats, ...]
    scales: tuple[int, ...]
    error: float
    slack: float
    """The error of the logarithms."""
    reach: int
    """The distance from its target to which each point's ranks are in `seen`."""
    beyond: bool
    """Whether there are ranks outside of `seen`."""
    points: int
    bits: int | None
    """The precision of Arb, None for floats."""

    def constant(self, exponent: Fraction) -> Any:
        """Return e^(-rate·exponent), at the working precision."""
        return _power(self.rate * exponent, exact=self.bits is not None)

    def lost_at(self, place: int, rank: int) -> float:
        """Return the logarithm of a bound of the weight missing in `left[place]` at this rank."""
        at, seen = -math.inf, self.seen[place]
        if seen.first <= rank <= seen.last:
            at = float(self.lost[place][rank - seen.first])
        return _sum_logs(at, self._far(place, rank))

    def lost_before(self, place: int, rank: int | None) -> float:
        """Return the logarithm of a bound of the missing weight of all steps from here to a rank.

        A rank of None is the end.
        """
        at = rank if rank is not None else round(sum(self.gaps))
        ranks = Ranks(first=at, last=at)
        carried = carry(self.lost[place], self.seen[place], self.gaps[place + 1], ranks, self.rate)
        return _sum_logs(float(carried[0]) + self.slack, self._far(place + 1, at))

    def _far(self, place: int, rank: int) -> float:
        """Return the logarithm of a bound of the weight of sequences with a rank outside of `seen`.

        A sequence that is farther than D from a target on its way to an offset d has distances that
        add up to at least 2D - d.
        """
        if not self.beyond:
            return -math.inf
        offset = abs(float(rank - sum(self.gaps[: place + 1])))
        ways = log_multisets(self.points, min(place + 1, len(self.kept)))
        return ways - float(self.rate) * (2 * self.reach - offset)


def ranks_asked_first(
    count: int, gaps: Sequence[Fraction], rate: Fraction, *, points: int
) -> tuple[Ranks, ...]:
    """Return the ranks around each target that a draw from `count` rows is likely to need."""
    return _around(
        gaps, _reach(_NEGLIGIBLE_LOG + log_multisets(points, len(gaps) - 1), rate), count
    )


def joint_messages(
    runs: Runs, gaps: Sequence[Fraction], rate: Fraction, *, level: int = 0
) -> Messages:
    """Return the messages of the m = len(gaps) - 1 points, at a level of accuracy.

    Level 0 uses floats. Each further level uses Arb with four times the bits and a wider range of
    ranks, in the end all.
    """
    m, exact, spared = len(gaps) - 1, level > 0, _NEGLIGIBLE_LOG * 4**level
    ways = log_multisets(runs.points, m)
    # the weight near the targets is a lower estimate of the total, which tells how far away ranks
    # are negligible
    seen, _, logs = _runs_near_targets(runs, gaps, _reach(spared, rate))
    near = relaxed_weights(logs, seen, gaps, rate)[-1] + last_weights(seen[-1], gaps, rate)
    weight = float(np.logaddexp.reduce(near))
    reach = _reach(spared + ways - (weight if weight > -math.inf else 0.0), rate)
    reach = max(reach, _reach(spared, rate))
    seen, widths, logs = _runs_near_targets(runs, gaps, reach)
    beyond = any(ranks.first > 0 or ranks.last < runs.count for ranks in seen)
    forward = relaxed_weights(logs, seen, gaps, rate)
    # with close targets, sequences that do not rise have much of the upper bound's weight
    crowded = min(gaps) * rate < 4
    threshold = spared + (math.lgamma(m + 1) if crowded else 0.0)
    kept = ranks_that_matter(forward, logs, seen, gaps, rate, threshold)
    bits = 128 * 4**level if exact else None
    inner = tuple(s.part(w, k) for s, w, k in zip(seen, widths, kept, strict=True))
    if bits is None:
        entered, left, scales = _messages(inner, kept, gaps, rate, exact=False)
    else:
        with precision(bits):
            entered, left, scales = _messages(inner, kept, gaps, rate, exact=True)
    # the error of the logarithms after all sums, given the size of the largest one
    longest = max(len(ranks) for ranks in seen)
    largest_log = (m + 1) * (48 + float(rate) * (reach + 2 * longest + 2))
    slack = 16 * _UNIT * (m + 1) * (longest + 16) * largest_log
    under = None if exact else [scale * math.log(2) + _UNDERFLOW_LOG for scale in scales]
    lost = lost_weights(forward, logs, seen, kept, gaps, rate, under=under, slack=slack)
    return Messages(
        rate=rate,
        gaps=tuple(gaps),
        kept=kept,
        seen=seen,
        widths=inner,
        entered=tuple(entered),
        left=tuple(left),
        lost=lost,
        scales=tuple(scales),
        # all roundings on a path through all steps: scans, products, sums over shared runs
        error=1.1 * _UNIT * ((m + 1) * (400 + m) + 16 * m),
        slack=slack,
        reach=reach,
        beyond=beyond,
        points=runs.points,
        bits=bits,
    )


def _messages(
    widths: Sequence[Integers],
    kept: Sequence[Ranks],
    gaps: Sequence[Fraction],
    rate: Fraction,
    *,
    exact: bool,
) -> tuple[list[Numbers], list[Numbers], list[int]]:
    """Return the forward sums over rising sequences of ranks: `entered`, `left`, `scales`."""
    entered: list[Numbers] = []
    left: list[Numbers] = []
    scales = [0]
    shared: list[Numbers] = []  # entry r - 1: sequences whose last r points share a run
    for j, (width, ranks) in enumerate(zip(widths, kept, strict=True)):
        size = _numbers(width, exact=exact)
        if j == 0:
            start = Ranks(first=0, last=0)
            arrived = _geometric(_numbers([1], exact=exact), start, gaps[0], ranks, rate, upto=True)
        else:
            arrived = _geometric(left[-1], kept[j - 1], gaps[j], ranks, rate, upto=False)
        states = [size * arrived]
        inside = _power(rate * gaps[j], exact=exact)
        for r, state in enumerate(shared, start=2):  # C(W + r - 1, r) for r points in a run of W
            moved = _at_ranks(state, kept[j - 1], ranks)
            if moved is None:
                break
            states.append(moved * (size + (r - 1)) / r * inside)
        total = states[0]
        for state in states[1:]:
            total = total + state
        shift = 0 if exact or not total.max() > 0 else math.frexp(total.max())[1]
        if shift:  # by a power of two: exact
            total, states = np.ldexp(total, -shift), [np.ldexp(s, -shift) for s in states]
        entered.append(arrived)
        left.append(total)
        shared = states
        scales.append(scales[-1] + shift)
    return entered, left, scales


def _at_ranks(values: Numbers, ranks: Ranks, to: Ranks) -> Numbers | None:
    """Return the values at the ranks `to`, 0 outside of `ranks`; None if both are disjoint."""
    first, last = max(ranks.first, to.first), min(ranks.last, to.last)
    if first > last:
        return None
    moved: Numbers = np.zeros(len(to), dtype=values.dtype)
    inner = Ranks(first=first, last=last)
    moved[first - to.first : last - to.first + 1] = ranks.part(values, inner)
    return moved


def _geometric(
    values: Numbers, ranks: Ranks, gap: Fraction, to: Ranks, rate: Fraction, *, upto: bool
) -> Numbers:
    """Return the sums over f' < f (f' <= f if `upto`) of values(f')·e^(-rate·|f - f' - gap|)."""
    exact = values.dtype == object
    integer_gap = math.floor(gap)
    part = gap - integer_gap
    length = integer_gap + 1 if upto else integer_gap  # the number of f' that are not below f - gap
    first = min(ranks.first, to.first - integer_gap - 1)
    last = max(ranks.last, to.last - integer_gap)
    wide = Ranks(first=first, last=last)
    moved = _at_ranks(values, ranks, wide)
    padded = np.zeros(len(wide), dtype=values.dtype) if moved is None else moved
    # The sums over f' below f - gap and over the others are computed by doubling: a window of
    # 2·step terms is the window of `step` terms plus the same window, shifted and weighted.
    far, step = padded, 1
    while step < len(far):
        power = _power(rate * step, exact=exact)
        if not exact and power == 0.0:
            break
        added = far[step:] + power * far[:-step]
        far = np.concatenate([far[:step], added])
        step *= 2
    near, behind = np.zeros(len(wide), dtype=values.dtype), 0
    block, step = padded, 1
    while length and behind < len(near):
        if length & 1:
            power = _power(rate * behind, exact=exact)
            near[: len(near) - behind] += power * block[behind:]
            behind += step
        length >>= 1
        if length and step < len(block):
            power = _power(rate * step, exact=exact)
            added = block[:-step] + power * block[step:]
            block = np.concatenate([added, block[-step:]])
        step *= 2
    shifted = Ranks(first=to.first - integer_gap, last=to.last - integer_gap)
    before = Ranks(first=shifted.first - 1, last=shifted.last - 1)
    sums: Numbers = wide.part(near, shifted) * _power(rate * part, exact=exact)
    sums += wide.part(far, before) * _power(rate * (1 - part), exact=exact)
    return sums


def _numbers(values: Any, *, exact: bool) -> Numbers:
    """Return values as floats, or as Arb balls if `exact`."""
    if not exact:
        return np.asarray(values, dtype=np.float64)
    balls = np.empty(len(values), dtype=object)
    balls[:] = [arb(int(value)) for value in values]
    return balls


def _power(exponent: Fraction, *, exact: bool) -> Any:
    """Return e^-exponent as an Arb ball, or as a float with a relative error of at most 2^-52."""
    if exact:
        return (-ball(exponent)).exp()
    if exponent > 700:
        return 0.0  # counted as an underflow
    with precision(128):
        return float((-ball(exponent)).exp().mid())


def _runs_near_targets(
    runs: Runs, gaps: Sequence[Fraction], reach: int
) -> tuple[tuple[Ranks, ...], tuple[Integers, ...], list[Floats]]:
    """Return the ranks around each target, the numbers of points of their runs, and their logs."""
    seen = _around(gaps, reach, runs.count)
    runs.fetch(seen)
    widths = tuple(np.diff(runs.borders(ranks.first, ranks.last)) for ranks in seen)
    with np.errstate(divide="ignore"):
        return seen, widths, [np.log(width.astype(np.float64)) for width in widths]


def _around(gaps: Sequence[Fraction], reach: int, count: int) -> tuple[Ranks, ...]:
    """Return the ranks within `reach` of each target."""
    targets = [sum(gaps[: j + 1], Fraction(0)) for j in range(len(gaps) - 1)]
    return tuple(
        Ranks(first=max(0, math.floor(t) - reach), last=min(count, math.ceil(t) + reach))
        for t in targets
    )


def _reach(logarithm: float, rate: Fraction) -> int:
    """Return the offset from a target beyond which a sequence weighs less than e^-logarithm."""
    return math.ceil(logarithm / (2 * float(rate))) + 2


def _sum_logs(first: float, second: float) -> float:
    return float(np.logaddexp(first, second))


_WEIGHT_ROUNDINGS = 2600
"""The roundings of a weight e^-x, x <= 745, computed in floats: about 3x."""
_SMALLEST_LOG = -700.0
"""Weights of at least e^-700 are floats of full precision."""


@value
class SortedRuns:
    """The runs of rows in memory, which are sorted."""

    rows: Integers
    points: int

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Do nothing, since all rows are in memory."""

    def borders(self, first: int, last: int) -> Integers:
        """Return the first points of the runs `first` to `last`, and the end of the last run.

        >>> SortedRuns(rows=np.array([2, 2, 5]), points=8).borders(0, 3).tolist()
        [0, 2, 2, 5, 8]
        """
        # integers explicitly: an empty list would be an array of floats, which rounds above 2^53
        ends = np.array([0, self.points], dtype=np.int64)
        low, high = ends[: int(first == 0)], ends[2 - int(last == self.count) :]
        return np.concatenate([low, self.rows[max(0, first - 1) : last + 1], high])


_Terms: TypeAlias = tuple[Numbers, float, float]
"""Weights in order, the logarithm of a bound of their missing total, and their relative error."""


def joint_points(
    runs: Runs, gaps: Sequence[Fraction], *, rate: Fraction, bits: BitSource
) -> list[int]:
    """Draw m points in rising order from the law; the m + 1 gaps add up to the number of rows.

    >>> from zerodelta.exact.bits import SystemBits
    >>> runs = SortedRuns(rows=np.arange(1000), points=1000)
    >>> thirds = [Fraction(1000, 3)] * 3
    >>> points = joint_points(runs, thirds, rate=Fraction(2), bits=SystemBits())
    >>> [round(point / 100) for point in points]
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
    """One draw, with its messages at each level of accuracy, computed when they are needed."""

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
            """Return the weights of the ranks this point may have, and bounds on their errors."""
            kept = messages.kept[place]
            stop = len(kept) if following is None else max(0, min(len(kept), at - kept.first))
            gap = self._gaps[place + 1]
            integer_gap = math.ceil(gap)
            distances = at - integer_gap - kept.first - np.arange(stop)
            if messages.bits is None:
                exactly = np.abs(distances + float(integer_gap - gap))
                weights: Any = np.exp(-float(self._rate) * exactly)
            else:
                powers = [messages.constant(abs(int(d) + (integer_gap - gap))) for d in distances]
                weights = np.empty(stop, dtype=object)
                weights[:] = powers
            values = messages.left[place][:stop] * weights
            lost = messages.lost_before(place, following)
            if messages.bits is not None:
                return values, lost, 0.0
            # plus the weights below the range of floats, of messages of at most 1
            lost -= messages.scales[place + 1] * math.log(2)
            lost = float(np.logaddexp(lost, _SMALLEST_LOG + math.log(stop + 1)))
            return values, lost, messages.error + (stop + _WEIGHT_ROUNDINGS) * _UNIT

        def named(messages: Messages, position: int) -> int:
            return messages.kept[place].first + position

        return self._choose(terms, named)

    def shared(self, place: int, rank: int) -> int:
        """Return the number of points in the run of this rank, of which this is the last."""

        def terms(messages: Messages) -> _Terms:
            """Return the weights of 1, 2, … points in this run, and bounds on their errors."""
            weights_of_counts: list[Any] = []
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
                weights_of_counts.append(arb(entered) * ways * weight * scale)
                inner += self._gaps[first]
            values = np.empty(len(weights_of_counts), dtype=object)
            values[:] = weights_of_counts
            lost = messages.lost_at(place, rank) - messages.scales[place + 1] * math.log(2)
            return values, lost, messages.error if messages.bits is None else 0.0

        return self._choose(terms, lambda messages, weights_of_counts: weights_of_counts + 1)

    def _choose(
        self, terms: Callable[[Messages], _Terms], named: Callable[[Messages, int], int]
    ) -> int:
        """Return the term on which a fresh uniform falls, raising the level until it is certain."""
        prefix, width, level = self._bits.integer(64), 64, 0
        while True:
            messages = self._level(level)
            with precision(width + (messages.bits or 128)):
                values, lost, error = terms(messages)
                if values.dtype == object:
                    position = _place_by_arb(values, lost, error, prefix, width)
                else:
                    position = _place_by_floats(values, lost, error, prefix >> (width - 53))
            if position is not None:
                return named(messages, position)
            prefix, width = (prefix << width) | self._bits.integer(width), 2 * width
            level += 1

    def _level(self, level: int) -> Messages:
        """Return the messages at a level of accuracy, computed when first needed."""
        while len(self._levels) <= level:
            messages = joint_messages(self._runs, self._gaps, self._rate, level=len(self._levels))
            self._levels.append(messages)
        return self._levels[level]


def _place_by_floats(values: Numbers, lost: float, error: float, leading: int) -> int | None:
    """Return the weight on which the point U · (sum of weights) falls; None if not certain.

    U is from leading/2^53 to (leading + 1)/2^53. Every partial sum is known up to the relative
    error, and may be larger by e^lost.
    """
    if not len(values) or not lost < 700:
        return None
    sums, more, safe = np.cumsum(values), math.exp(lost) * 1.01, 1 + 8 * _UNIT
    total = float(sums[-1])
    low = leading / 2.0**53 * total * (1 - error)
    high = (leading + 1) / 2.0**53 * (total * (1 + error) + more)
    position = int(np.searchsorted(sums, (low + high) / 2, side="right"))
    if position == len(sums) or not total > 0:
        return None
    before = float(sums[position - 1]) if position else 0.0
    after = float(sums[position]) * (1 - error)
    # before the first weight there is at most the lost weight
    starts = before * (1 + error) * safe + more * safe <= low
    return position if starts and after > high * safe else None


def _place_by_arb(
    values: Numbers, lost: float, error: float, prefix: int, width: int
) -> int | None:
    """Return the weight as `_place_by_floats` does, for U from prefix to prefix + 1, by 2^width."""
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
    for position, after in enumerate(sums[1:]):
        if after > high:
            return position if bool(sums[position] + more <= low) else None
    return None
