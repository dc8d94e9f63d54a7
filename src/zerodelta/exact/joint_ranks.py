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
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_multiset
from zerodelta.exact.logs import ball, precision
from zerodelta.value import value

# -- Bounds, in logarithms, for what sequences of runs weigh together (theory Q) ------------------
# Upper bounds leave out that sequences rise, and count W^r for r points in a run of W: then sums
# over all of them are two scans for each point. They say which ranks matter, and how much is lost
# without the others.

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


# -- Sums over all rising sequences of runs, by forward messages in floats or in Arb (theory Q) ---
# A run is a set of neighboring points of a grid with equally many rows up to them, its *rank*. The
# j-th of m points is in a run of rank f_j, and a sequence of runs weighs Π e^(-rate·|f_j - f_(j-1)
# - gap_j|), times the number of rising sequences of points that are in them. Messages are computed
# for the ranks that matter, without subtraction, by window sums of geometric weights; what other
# ranks could add is bounded from above.

_UNIT = 2.0**-53
_NEGLIGIBLE = 64.0
"""At level 0 ranks are left out whose sequences weigh less than about e^-64 of all."""
_UNDERFLOW = -850 * math.log(2)
"""Whatever one step loses of messages of size 1 to floats below 2^-1022 and weights below e^-700,
times the number of ranks and that of points in a run: less than 2^-850."""


class Runs(Protocol):
    """Where the runs begin: a row at point x begins the next one there."""

    @property
    def count(self) -> int:
        """The number of rows; runs have ranks from 0 to that."""
        ...  # pragma: no cover

    @property
    def points(self) -> int:
        """The number of points of the grid."""
        ...  # pragma: no cover

    def fetch(self, ranges: Sequence[Ranks]) -> None:
        """Prepare for the borders of these ranks, which will be asked for."""
        ...  # pragma: no cover

    def borders(self, first: int, last: int) -> Integers:
        """Return where runs `first` to `last` begin, and where the last one ends."""
        ...  # pragma: no cover


@value
class Messages:
    """Forward messages: what all sequences weigh together that have come so far.

    `entered[j]` is the weight of those whose point j + 1 is the first one in a run, without the
    number of that run's points; `left[j]` of those whose point j + 1 is the last one in it. Both
    are in units of 2^scales[j] and 2^scales[j + 1], with a relative error of at most `error` (Arb
    balls hold their own). `lost[j]` is the logarithm of what they lack at most.
    """

    rate: Fraction
    gaps: tuple[Fraction, ...]
    kept: tuple[Ranks, ...]
    """The ranks of each point for which there are messages."""
    seen: tuple[Ranks, ...]
    """Those of `lost`, which are more; beyond these is `beyond`."""
    widths: tuple[Integers, ...]
    entered: tuple[Numbers, ...]
    left: tuple[Numbers, ...]
    lost: tuple[Floats, ...]
    scales: tuple[int, ...]
    error: float
    slack: float
    """The error of the logarithms."""
    reach: int
    beyond: bool
    points: int
    bits: int | None
    """The precision of Arb, None for floats."""

    def constant(self, exponent: Fraction) -> Any:
        """Return e^(-rate·exponent), at the working precision."""
        return _power(self.rate * exponent, exact=self.bits is not None)

    def lost_at(self, place: int, rank: int) -> float:
        """Return the logarithm of what `left[place]` may lack at this rank, and all others too."""
        at, seen = -math.inf, self.seen[place]
        if seen.first <= rank <= seen.last:
            at = float(self.lost[place][rank - seen.first])
        return _sum_logs(at, self._far(place, rank))

    def lost_before(self, place: int, rank: int | None) -> float:
        """Return the logarithm of what may be lacking of all that goes on from here to a rank.

        None: to the end.
        """
        at = rank if rank is not None else round(sum(self.gaps))
        ranks = Ranks(first=at, last=at)
        carried = carry(self.lost[place], self.seen[place], self.gaps[place + 1], ranks, self.rate)
        return _sum_logs(float(carried[0]) + self.slack, self._far(place + 1, at))

    def _far(self, place: int, rank: int) -> float:
        """Return the logarithm of a bound for sequences with a rank beyond all that were seen.

        With an offset beyond D on the way to an offset d the distances add up to at least 2D - d.
        """
        if not self.beyond:
            return -math.inf
        offset = abs(float(rank - sum(self.gaps[: place + 1])))
        ways = log_multisets(self.points, min(place + 1, len(self.kept)))
        return ways - float(self.rate) * (2 * self.reach - offset)


def ranks_asked_first(
    count: int, gaps: Sequence[Fraction], rate: Fraction, *, points: int
) -> tuple[Ranks, ...]:
    """Return the ranks around each target that a draw is likely to need, of so many rows."""
    return _around(gaps, _reach(_NEGLIGIBLE + log_multisets(points, len(gaps) - 1), rate), count)


def joint_messages(
    runs: Runs, gaps: Sequence[Fraction], rate: Fraction, *, level: int = 0
) -> Messages:
    """Return the messages of the m = len(gaps) - 1 points, at a level of accuracy.

    Level 0 is in floats. Each further one is in Arb, at more bits, for more ranks; in the end all.
    """
    m, exact, spared = len(gaps) - 1, level > 0, _NEGLIGIBLE * 4**level
    ways = log_multisets(runs.points, m)
    # what is near the targets says how much there is, and so how far away nothing matters
    seen, _, logs = _widths(runs, gaps, _reach(spared, rate))
    near = relaxed_weights(logs, seen, gaps, rate)[-1] + last_weights(seen[-1], gaps, rate)
    weight = float(np.logaddexp.reduce(near))
    reach = _reach(spared + ways - (weight if weight > -math.inf else 0.0), rate)
    reach = max(reach, _reach(spared, rate))
    seen, widths, logs = _widths(runs, gaps, reach)
    beyond = any(ranks.first > 0 or ranks.last < runs.count for ranks in seen)
    forward = relaxed_weights(logs, seen, gaps, rate)
    crowded = min(gaps) * rate < 4  # then sequences that do not rise weigh much in the bound
    threshold = spared + (math.lgamma(m + 1) if crowded else 0.0)
    kept = ranks_that_matter(forward, logs, seen, gaps, rate, threshold)
    bits = 128 * 4**level if exact else None
    inner = tuple(s.part(w, k) for s, w, k in zip(seen, widths, kept, strict=True))
    if bits is None:
        entered, left, scales = _messages(inner, kept, gaps, rate, exact=False)
    else:
        with precision(bits):
            entered, left, scales = _messages(inner, kept, gaps, rate, exact=True)
    # logarithms of size at most `most` have this error after all sums together
    longest = max(len(ranks) for ranks in seen)
    most = (m + 1) * (48 + float(rate) * (reach + 2 * longest + 2))
    slack = 16 * _UNIT * (m + 1) * (longest + 16) * most
    under = None if exact else [scale * math.log(2) + _UNDERFLOW for scale in scales]
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
        # roundings of a path through all steps: scans, products, sums over shared runs
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
    """Return what enters and leaves each point's ranks, and the scales of these."""
    entered: list[Numbers] = []
    left: list[Numbers] = []
    scales = [0]
    shared: list[Numbers] = []  # by how many points are in the run already
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
            moved = _moved(state, kept[j - 1], ranks)
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


def _moved(values: Numbers, ranks: Ranks, to: Ranks) -> Numbers | None:
    """Return the values at other ranks, 0 where there are none; None if that is everywhere."""
    first, last = max(ranks.first, to.first), min(ranks.last, to.last)
    if first > last:
        return None
    found: Numbers = np.zeros(len(to), dtype=values.dtype)
    inner = Ranks(first=first, last=last)
    found[first - to.first : last - to.first + 1] = ranks.part(values, inner)
    return found


def _geometric(
    values: Numbers, ranks: Ranks, gap: Fraction, to: Ranks, rate: Fraction, *, upto: bool
) -> Numbers:
    """Return the sums over f' < f (f' <= f if `upto`) of values(f')·e^(-rate·|f - f' - gap|)."""
    exact = values.dtype == object
    whole = math.floor(gap)
    part = gap - whole
    length = whole + 1 if upto else whole  # how many f' are not farther than the gap
    first = min(ranks.first, to.first - whole - 1)
    last = max(ranks.last, to.last - whole)
    wide = Ranks(first=first, last=last)
    moved = _moved(values, ranks, wide)
    padded = np.zeros(len(wide), dtype=values.dtype) if moved is None else moved
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
    shifted = Ranks(first=to.first - whole, last=to.last - whole)
    before = Ranks(first=shifted.first - 1, last=shifted.last - 1)
    found: Numbers = wide.part(near, shifted) * _power(rate * part, exact=exact)
    found += wide.part(far, before) * _power(rate * (1 - part), exact=exact)
    return found


def _numbers(values: Any, *, exact: bool) -> Numbers:
    if not exact:
        return np.asarray(values, dtype=np.float64)
    found = np.empty(len(values), dtype=object)
    found[:] = [arb(int(value)) for value in values]
    return found


def _power(exponent: Fraction, *, exact: bool) -> Any:
    """Return e^-exponent as an Arb ball, or as a float that is off by at most 2^-52 of it."""
    if exact:
        return (-ball(exponent)).exp()
    if exponent > 700:
        return 0.0  # counted as an underflow
    with precision(128):
        return float((-ball(exponent)).exp().mid())


def _widths(
    runs: Runs, gaps: Sequence[Fraction], reach: int
) -> tuple[tuple[Ranks, ...], tuple[Integers, ...], list[Floats]]:
    """Return the ranks around each target, and the numbers of points of their runs, and logs."""
    seen = _around(gaps, reach, runs.count)
    runs.fetch(seen)
    widths = tuple(np.diff(runs.borders(ranks.first, ranks.last)) for ranks in seen)
    with np.errstate(divide="ignore"):
        return seen, widths, [np.log(width.astype(np.float64)) for width in widths]


def _around(gaps: Sequence[Fraction], reach: int, count: int) -> tuple[Ranks, ...]:
    targets = [sum(gaps[: j + 1], Fraction(0)) for j in range(len(gaps) - 1)]
    return tuple(
        Ranks(first=max(0, math.floor(t) - reach), last=min(count, math.ceil(t) + reach))
        for t in targets
    )


def _reach(logarithm: float, rate: Fraction) -> int:
    """Return beyond which offset a single sequence weighs less than e^-logarithm."""
    return math.ceil(logarithm / (2 * float(rate))) + 2


def _sum_logs(first: float, second: float) -> float:
    return float(np.logaddexp(first, second))


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
