"""Several points drawn together: their messages, bounds and law, against the definition."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.joint_laws import joint_law, paths
from reference.chi_square import goodness_of_fit
from zerodelta.exact import joint_ranks
from zerodelta.exact import joint_ranks as rank_messages
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.joint_ranks import Messages, Ranks, SortedRuns, joint_messages, joint_points
from zerodelta.mechanisms.joint_quantiles import CELL_BITS
from zerodelta.mechanisms.ranks import MOST_POINTS

F = Fraction
HALVES = [F(3, 2)] * 2
CASES: dict[str, tuple[list[int], int, list[Fraction], Fraction]] = {
    "ties": ([1, 1, 3], 5, [F(1)] * 3, F(1, 2)),
    "all at one point": ([2] * 9, 5, [F(9, 5)] * 5, F(1, 5)),
    "all at the first point": ([0, 0, 0], 4, [F(3, 4)] * 4, F(1, 4)),
    "no rows": ([], 4, [F(0)] * 4, F(1)),
    "uneven gaps": ([3, 3, 0, 1], 4, [F(1, 2), F(1, 3), F(19, 6)], F(1, 3)),
    "ends": ([0, 2, 3], 4, [F(0), F(3), F(0)], F(2, 3)),
    "one point": (list(range(6)), 7, [F(2), F(4)], F(3, 2)),
    "a large rate": ([0, 2, 2, 6], 8, [F(4, 3)] * 3, F(400)),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

FINE = MOST_POINTS << CELL_BITS
"""The default grid: places up to 2^60, which floats would round to multiples of 128."""
TOP = 1 << 60
ON_THE_DEFAULT_GRID: dict[str, tuple[list[int], list[Fraction], Fraction]] = {
    "neighboring places": ([TOP - 2, TOP - 1, TOP, TOP + 1], [F(2), F(2)], F(21, 2)),
    "ties": ([TOP - 1, TOP, TOP, TOP, TOP + 3], [F(5, 2)] * 2, F(30)),
    "all at one place": ([TOP + 1] * 6, [F(5), F(1, 2), F(1, 2)], F(31, 5)),
    "several points": ([5, TOP // 2 + 1, TOP - 3, TOP - 2, TOP - 2, TOP], [F(3, 2)] * 4, F(29)),
    "at both ends": ([0, 0, 1, FINE - 2, FINE - 1], [F(2), F(0), F(3)], F(41)),
}
each_fine_case = pytest.mark.parametrize(
    "case", ON_THE_DEFAULT_GRID.values(), ids=ON_THE_DEFAULT_GRID
)


def runs_of(rows: Sequence[int], points: int) -> SortedRuns:
    return SortedRuns(rows=np.array(sorted(rows), dtype=np.int64), points=points)


def true_borders(rows: Sequence[int], points: int) -> list[int]:
    """Where each run begins, and where the last one ends, in Python's integers."""
    return [0, *sorted(rows), points]


def true_widths(rows: Sequence[int], points: int) -> list[int]:
    return [b - a for a, b in itertools.pairwise(true_borders(rows, points))]


def weight(
    path: Sequence[int], widths: Sequence[int], gaps: Sequence[Fraction], rate: Fraction
) -> arb:
    """What all rising sequences of points with these ranks weigh up to the last one."""
    ways = math.prod(
        math.comb(widths[rank] + shared - 1, shared) for rank, shared in Counter(path).items()
    )
    steps = zip([0, *path], path, gaps, strict=False)
    exponent = sum((abs(b - a - gap) for a, b, gap in steps), F(0)) * rate
    return (-arb(exponent.numerator) / exponent.denominator).exp() * ways


def _ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def true_left(
    rows: Sequence[int], points: int, gaps: Sequence[Fraction], rate: Fraction
) -> list[list[arb]]:
    """By place and rank: all sequences so far, the last of them at this rank."""
    widths = true_widths(rows, points)
    found = [[arb(0)] * (len(rows) + 1) for _ in gaps[1:]]
    for place in range(len(gaps) - 1):
        for path in paths(len(rows), place + 1):
            found[place][path[-1]] += weight(path, widths, gaps, rate)
    return found


def within(messages: Messages, truth: list[list[arb]]) -> int:
    """Check every message against its proven error, and return how many ranks were left out."""
    out = 0
    for place, ranks in enumerate(truth):
        kept = messages.kept[place]
        for rank, total in enumerate(ranks):
            more = arb(messages.lost_at(place, rank)).exp()
            if not kept.first <= rank <= kept.last:
                assert bool(total <= more)
                out += 1
                continue
            left = messages.left[place][rank - kept.first]
            if messages.bits is None:
                left = arb(left) * arb(2) ** messages.scales[place + 1]
                assert bool(left * (1 - messages.error) <= total)
                assert bool(total <= left * (1 + messages.error) + more)
            else:
                assert bool(left.lower() <= total.upper())
                assert bool(total.lower() <= left.upper() + more)
                assert left.rel_accuracy_bits() > 100 or bool(total == 0)
    return out


@each_case
@pytest.mark.parametrize("level", [0, 1])
def test_messages_are_the_sums_of_the_definition(case: Any, level: int) -> None:
    rows, points, gaps, rate = case
    messages = joint_messages(runs_of(rows, points), gaps, rate, level=level)
    with ctx.workprec(400):
        within(messages, true_left(rows, points, gaps, rate))


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 29), min_size=12, max_size=12),
    st.fractions(F(1, 20), F(4), max_denominator=30),
    st.integers(1, 3),
    st.integers(0, 6),
    st.booleans(),
)
def test_what_is_left_out_is_bounded(
    rows: list[int], rate: Fraction, places: int, reach: int, few: bool
) -> None:
    """Few ranks are kept, and few are even looked at: the rest is no more than what is said."""
    gaps = [F(12, places + 1)] * (places + 1)
    with pytest.MonkeyPatch.context() as patch, ctx.workprec(400):
        patch.setattr(rank_messages, "_reach", lambda *_: reach)
        if few:
            patch.setattr(rank_messages, "ranks_that_matter", few_kept)
        messages = joint_messages(runs_of(rows, 30), gaps, rate)
        within(messages, true_left(rows, 30, gaps, rate))


def few_kept(forward: Any, logs: Any, seen: Any, *_: Any) -> Any:
    """Only the middle of what was seen."""
    middles = [(ranks.first + ranks.last) // 2 for ranks in seen]
    return tuple(Ranks(first=m, last=m) for m in middles)


def test_bounds_are_put_to_the_test() -> None:
    """With a reach of two rows most ranks are out of it, and what is kept really lacks some."""
    rows, gaps, rate = list(range(0, 36, 3)), [F(4)] * 3, F(1, 3)
    with pytest.MonkeyPatch.context() as patch, ctx.workprec(400):
        patch.setattr(rank_messages, "_reach", lambda *_: 2)
        messages = joint_messages(runs_of(rows, 36), gaps, rate)
        assert messages.beyond
        truth = true_left(rows, 36, gaps, rate)
        assert within(messages, truth) > 10
        middle = truth[1][8]
        kept = messages.left[1][8 - messages.kept[1].first]
        assert bool(arb(kept) * arb(2) ** messages.scales[2] < middle * arb("0.9"))


def test_floats_that_underflow_are_counted_as_lost() -> None:
    """Two far clusters: what goes through the other one is below the smallest float."""
    rows, gaps, rate = [0] * 6 + [40] * 6, [F(1, 2), F(23, 2)], F(150)
    messages = joint_messages(runs_of(rows, 50), gaps, rate)
    with ctx.workprec(4000):
        within(messages, true_left(rows, 50, gaps, rate))


def test_ranks_that_are_kept_may_underflow_too() -> None:
    """The last rank of the first point weighs e^-1725: 0 in floats, and all of it is lost."""
    rows, gaps, rate = list(range(12)), [F(1, 2), F(23, 2)], F(150)
    with pytest.MonkeyPatch.context() as patch, ctx.workprec(4000):
        patch.setattr(rank_messages, "_reach", lambda *_: 12)
        patch.setattr(rank_messages, "ranks_that_matter", lambda _, __, seen, *___: seen)
        messages = joint_messages(runs_of(rows, 50), gaps, rate)
        assert messages.left[0][-1] == 0
        assert not messages.beyond
        within(messages, true_left(rows, 50, gaps, rate))


@each_case
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "Arb"])
def test_points_have_the_law(monkeypatch: pytest.MonkeyPatch, case: Any, exact: bool) -> None:
    """At every level: when floats are never certain, Arb draws the same law."""
    if exact:
        monkeypatch.setattr(joint_ranks, "_place_by_floats", lambda *_: None)
    rows, points, gaps, rate = case
    law = {o: float(p.ball()) for o, p in joint_law(rows, points, gaps, rate).items()}
    size = 400 if exact else 600
    bits, runs = ReplayBits(f"{rows} {exact}"), runs_of(rows, points)
    drawn = Counter(tuple(joint_points(runs, gaps, rate=rate, bits=bits)) for _ in range(size))
    assert set(drawn) <= set(law)
    order = sorted(law, key=law.__getitem__)
    if law[order[-1]] > 1 - 1e-9:
        assert drawn == {order[-1]: size}
    else:
        shares = np.array([law[o] for o in order])
        assert goodness_of_fit([drawn[o] for o in order], (shares / shares.sum()).tolist()) > 1e-4


@each_fine_case
def test_borders_are_those_of_the_rows_to_the_last_bit(case: Any) -> None:
    """From any run to any other: also where no end of the grid is among them."""
    rows = case[0]
    runs, n = runs_of(rows, FINE), len(rows)
    for first in range(n + 1):
        for last in range(first, n + 1):
            found = runs.borders(first, last)
            assert found.dtype == np.int64
            assert found.tolist() == true_borders(rows, FINE)[first : last + 2]


@each_fine_case
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("reach", [1, 2, 10])
def test_messages_on_the_default_grid_are_the_sums_of_the_definition(
    monkeypatch: pytest.MonkeyPatch, case: Any, level: int, reach: int
) -> None:
    """Also with ranks of which none is at an end of the grid."""
    monkeypatch.setattr(rank_messages, "_reach", lambda *_: reach)
    rows, gaps, rate = case
    messages = joint_messages(runs_of(rows, FINE), gaps, rate, level=level)
    widths = true_widths(rows, FINE)
    for kept, found in zip(messages.kept, messages.widths, strict=True):
        assert found.tolist() == widths[kept.first : kept.last + 1]  # at every level the same
    with ctx.workprec(400):
        within(messages, true_left(rows, FINE, gaps, rate))


@each_fine_case
@pytest.mark.parametrize("exact", [False, True], ids=["floats", "Arb"])
def test_runs_on_the_default_grid_have_the_law(
    monkeypatch: pytest.MonkeyPatch, case: Any, exact: bool
) -> None:
    """No drawn run is empty, and each is drawn as often as all sequences through it weigh."""
    if exact:
        monkeypatch.setattr(joint_ranks, "_place_by_floats", lambda *_: None)
    rows, gaps, rate = case
    n, widths, ends = len(rows), true_widths(rows, FINE), true_borders(rows, FINE)[1:]
    with ctx.workprec(400):
        weights = {
            path: weight(path, widths, gaps, rate)
            * (-_ball(rate * abs(n - path[-1] - gaps[-1]))).exp()
            for path in paths(n, len(gaps) - 1)
        }
        total = sum(weights.values(), arb(0))
        law = {path: float(part / total) for path, part in weights.items()}
    size = 200 if exact else 500
    bits, runs = ReplayBits(f"{rows} {exact}"), runs_of(rows, FINE)
    drawn: Counter[tuple[int, ...]] = Counter()
    for _ in range(size):
        points = joint_points(runs, gaps, rate=rate, bits=bits)
        drawn[tuple(sum(end <= point for end in ends) for point in points)] += 1
    assert all(widths[rank] > 0 for path in drawn for rank in path)
    order = sorted(law, key=law.__getitem__)
    assert sum(share > 0.01 for share in law.values()) > 1  # the case puts it to the test
    shares = np.array([law[path] for path in order])
    assert goodness_of_fit([drawn[p] for p in order], (shares / shares.sum()).tolist()) > 1e-4


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.integers(0, 2**64 - 1),
    st.sampled_from([-math.inf, -80.0, -30.0, -2.0]),
)
def test_floats_only_confirm_what_arb_says(values: list[float], prefix: int, lost: float) -> None:
    numbers = np.array(values)
    balls = np.empty(len(values), dtype=object)
    balls[:] = [arb(value) for value in values]
    found = joint_ranks._place_by_floats(numbers, lost, 1e-12, prefix >> 11)
    with ctx.workprec(200):
        certain = joint_ranks._place_by_arb(balls, lost, 0.0, prefix, 64)
        sums = np.cumsum(np.array([F(value) for value in values], dtype=object))
        place = sum(total * 2**64 <= prefix * sums[-1] for total in sums)
    if found is not None:
        assert certain == found
    if certain is not None:
        assert certain == place


def test_a_uniform_in_what_is_lost_is_undecided() -> None:
    values = np.array([1.0, 1.0])
    place = joint_ranks._place_by_floats
    near = 2**52 - 2**8
    assert place(values, -math.inf, 0.0, near) == 0
    assert place(values, math.log(0.1), 0.0, near) is None
    assert place(values, math.log(0.1), 0.0, 2**51) == 0
    assert place(values, math.log(0.1), 0.0, 0) is None
    assert place(np.zeros(2), -math.inf, 0.0, 5) is None
    assert place(values, math.nan, 0.0, 5) is None
    balls = np.array([arb(1), arb(1)], dtype=object)
    assert joint_ranks._place_by_arb(balls, -math.inf, 0.0, 5, 64) == 0
    assert joint_ranks._place_by_arb(balls, math.log(0.1), 0.0, 5, 64) is None
    assert joint_ranks._place_by_arb(balls, math.log(0.1), 0.0, 1 << 62, 64) == 0


@pytest.mark.parametrize("rows", [0, 3, 2000])
def test_many_points_in_one_run(rows: int) -> None:
    """All 99 share runs if there are hardly any rows; they rise, and are on the grid."""
    gaps = [F(rows, 100)] * 100
    runs = runs_of([7] * rows, 1 << 60)
    found = joint_points(runs, gaps, rate=F(1, 4), bits=ReplayBits("run"))
    assert len(found) == 99
    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] < 1 << 60


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("lost", [-math.inf, math.log(1 / 300)])
def test_a_place_is_certain_whatever_the_weights_are_within_their_error(
    exact: bool, lost: float
) -> None:
    """Sums may be a thousandth more or less, and what is lost may be before a place or behind."""
    weights, error = [1, 2, 3], F(1, 1000)
    more = F(1, 300) if lost > -math.inf else F(0)
    sums = [F(sum(weights[:i])) for i in range(4)]
    balls = np.empty(3, dtype=object)
    balls[:] = [arb(weight) for weight in weights]
    seen = set()
    for u in (F(i, 2400) for i in range(2400)):
        if exact:
            found = joint_ranks._place_by_arb(balls, lost, float(error), int(u * 2**64), 64)
        else:
            floats = np.array(weights, dtype=float)
            found = joint_ranks._place_by_floats(floats, lost, float(error), int(u * 2**53))
        if found is not None:
            seen.add(found)
            assert sums[found] * (1 + error) + more <= (u + F(1, 2**50)) * sums[-1] * (1 - error)
            assert u * (sums[-1] * (1 + error) + more) < sums[found + 1] * (1 - error)
    assert seen == {0, 1, 2}


def test_a_place_is_certain_for_all_that_follows_in_its_string() -> None:
    """Two bits are known: U is in a quarter, and nothing more."""
    for weights, quarter, place in (
        ([1, 1], 0, 0),
        ([1, 1], 1, None),  # up to the border
        ([1, 1], 2, 1),
        ([1, 3], 1, 1),
        ([3, 1], 1, 0),
        ([2, 1], 2, None),
    ):
        balls = np.empty(2, dtype=object)
        balls[:] = [arb(weight) for weight in weights]
        assert joint_ranks._place_by_arb(balls, -math.inf, 0.0, quarter, 2) == place
