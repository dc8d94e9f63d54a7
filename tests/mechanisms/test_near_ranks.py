"""Ranks that follow a private number of rows, and rows around a rank found by counting."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from data.opening import opened
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import permute_and_flip_law
from zerodelta.data.arrays import ArraySource
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms import ranks as near_ranks
from zerodelta.mechanisms.ranks import Aim, GridRows, PrivateAim, aimed_ranks, as_points
from zerodelta.tasks import quantiles as module
from zerodelta.testing import replayed

levels = st.fractions(0, 1, max_denominator=50)


def distance(aim: Aim, below: int, not_above: int) -> int:
    """max(0, u·L - (u·a + f), (u·b - g) - u·U), as written."""
    u = aim.unit
    right, left = u * below - (u * aim.first + aim.after), u * aim.last - aim.before - u * not_above
    return max(0, right, left)


@settings(max_examples=40)
@given(levels, st.integers(0, 40), st.booleans())
def test_a_row_more_moves_every_distance_by_the_stated_sensitivity(
    q: Fraction, margin: int, follows: bool
) -> None:
    """Of up to 60 rows any number are below a point, and any of the others at it."""
    private = PrivateAim(q=q, margin=margin, follows=follows)
    for count in range(60):
        here, there = private.of(count), private.of(count + 1)
        assert 0 <= here.first <= here.last <= here.first + 1
        assert here.last <= count
        if follows:
            assert (there.first - here.first, there.last - here.last) in {
                (0, 0),
                (0, 1),
                (1, 0),
                (1, 1),
            }
        for below in range(count + 1):  # the new row is below the point, at it, or above it
            for not_above in {below, count, (below + count) // 2}:
                before = distance(here, below, not_above)
                assert before == here.distance(below, not_above)
                for row in ((1, 1), (0, 1), (0, 0)):
                    after = distance(there, below + row[0], not_above + row[1])
                    assert abs(after - before) <= private.sensitivity


def test_ranks_for_a_public_number_would_not_do() -> None:
    """They jump where the margin begins to hold: a row more above a point moves it by 2."""
    q, margin = Fraction(1, 20), 10
    moved = 0
    for n in range(1, 200):
        here, there = (aimed_ranks(q, count, margin=margin) for count in (n, n + 1))
        for below in range(n + 1):
            old, new = (
                max(0, low - ranks[0], ranks[1] - low)
                for low, ranks in ((below, here), (below, there))
            )
            moved = max(moved, abs(old - new))
    assert moved == 2


def scored(rows: list[int], aim: Aim, points: int) -> dict[int, list[int]]:
    """All points by their distance, from left to right."""
    found: dict[int, list[int]] = {}
    for point in range(points):
        below, not_above = sum(r < point for r in rows), sum(r <= point for r in rows)
        found.setdefault(distance(aim, below, not_above), []).append(point)
    return found


@settings(max_examples=100)
@given(
    st.data(),
    st.integers(1, 90),
    st.integers(0, 40),
    st.integers(1, 12),
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.sampled_from([4, 1 << 24])),
    levels,
    st.booleans(),
)
def test_counting_in_cells_gives_the_groups_of_the_definition(
    data: Any,
    points: int,
    count: int,
    reach: int,
    limits: tuple[int, int, int],
    q: Fraction,
    follows: bool,
) -> None:
    """Few rows held, small and large cells, heavy ones among them; beyond the reach all is left."""
    rows = data.draw(st.lists(st.integers(0, points - 1), min_size=count, max_size=count))
    missing = data.draw(st.integers(0, 3))
    counts_like_the_definition(
        rows, missing, points, reach, limits, PrivateAim(q=q, follows=follows, margin=2)
    )


def test_windows_begin_and_end_in_heavy_cells() -> None:
    """Sixteen cells of four points; what a window needs of its first and last one is counted."""
    draw, middle = np.random.default_rng(11), PrivateAim(q=Fraction(1, 2))
    for _ in range(100):
        rows = draw.choice(64, size=60, p=draw.dirichlet(np.full(64, 0.3))).tolist()
        limits = (int(draw.integers(0, 9)), 4, 4)
        counts_like_the_definition(rows, 2, 64, int(draw.integers(4, 25)), limits, middle)


def counts_like_the_definition(
    rows: list[int],
    missing: int,
    points: int,
    reach: int,
    limits: tuple[int, int, int],
    private: PrivateAim,
) -> None:
    cells = [*map(float, rows), *[np.nan] * missing]
    source = ArraySource(np.array(cells, dtype=float), missing="skip", batch=7)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("_HELD", "_CELL_BITS", "_ONE_PASS"), limits, strict=True):
            patch.setattr(near_ranks, name, limit)
        grid = as_points(None, list(range(points)))
        column = GridRows(rows=opened(source), points=grid, skip=True)
        found = column.groups(private.of, reach=reach)
    aim = private.of(len(rows))
    wanted = scored(rows, aim, points)
    assert found.aim == aim
    handed: dict[int, list[int]] = {}
    for group in range(len(found.scores) - found.beyond):
        places = range(int(found.members[group]))
        here = [found.point(group, place) for place in places]
        handed.setdefault(-int(found.scores[group]), []).extend(here)
    assert {d: sorted(each) for d, each in handed.items()} == {d: wanted[d] for d in handed}
    left = sorted(p for d, each in wanted.items() if d not in handed for p in each)
    assert found.beyond == bool(left)
    if left:
        assert [found.far_point(place) for place in range(len(left))] == left
        assert int(found.members[-1]) == len(left)
        for point in left:
            below, not_above = column.ranks(point)
            assert aim.distance(below, not_above) >= -int(found.scores[-1])


def test_a_median_has_the_law_whatever_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points two rows from the median are left to a pass of their own, and are often drawn."""
    rows, points = (1, 4, 4, 6, 9), 12
    monkeypatch.setattr(module, "_reach", lambda *_: 2)
    monkeypatch.setattr(near_ranks, "_HELD", 2)
    monkeypatch.setattr(near_ranks, "_ONE_PASS", 4)
    monkeypatch.setattr(near_ranks, "_CELL_BITS", 2)
    aim = Aim(first=2, last=3)
    distances = {p: d for d, each in scored(list(rows), aim, points).items() for p in each}
    exact = permute_and_flip_law([-distances[p] for p in range(points)], scale=2)
    bits = ReplayBits("median")
    asked = {"bounds": (0, 11), "grid": points, "epsilon": 1}
    with replayed(bits):
        drawn = Counter(round(zd.median(np.array(rows), **asked).value) for _ in range(600))  # type: ignore[arg-type]
    expected = [float(exact[p]) for p in range(points)]
    assert goodness_of_fit([drawn[p] for p in range(points)], expected) > 1e-4
    assert sum(drawn[p] for p in range(points) if distances[p] >= 2) > 100


def test_far_more_rows_than_are_held_have_their_median() -> None:
    """Rows in one cell of the grid, in few, and in many, among millions of points."""
    rows = np.random.default_rng(5).normal(50, 10, 3_000_000)
    assert len(rows) > near_ranks._HELD
    for shown in (rows, 50 + rows * 1e-7, np.round(rows / 25) * 25.0):
        found = zd.median(shown, bounds=(0, 1000), epsilon=1).value
        spacing = 1000 / 2**40
        below, not_above = np.mean(shown < found - spacing), np.mean(shown <= found + spacing)
        assert below - 1e-4 < 0.5 < not_above + 1e-4
    assert zd.median(rows, bounds=(0, 1000), grid=1001, epsilon=1).value == 50


@pytest.mark.parametrize("held", [0, 3, 1000])
def test_rows_that_are_counted_in_several_parts_are_all_counted(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points of wanted cells, of which each part has some again."""
    for name, limit in (("_HELD", held), ("_CELL_BITS", 4), ("_ONE_PASS", 8)):
        monkeypatch.setattr(near_ranks, name, limit)
    rows = np.random.default_rng(2).integers(0, 64, size=200)
    source = ArraySource(rows.astype(float), batch=7)
    column = GridRows(rows=opened(source), points=as_points(None, list(range(64))), skip=True)
    cells = np.bincount(rows >> column.shift, minlength=16)
    wanted = np.array([0, 3, 15])
    points, counts = column.tally(wanted, cells)
    inside = rows[np.isin(rows >> column.shift, wanted)]
    right = np.unique(inside, return_counts=True)
    assert points.tolist() == right[0].tolist()
    assert counts.tolist() == right[1].tolist()
    for point in (0, 5, 17, 63):
        expected = int((rows < point).sum()), int((rows <= point).sum())
        assert column.ranks(point) == expected


def test_a_source_with_fewer_rows_than_the_aim_has_its_last_row() -> None:
    """Ranks are fixed by the number of rows that was planned, and rows can go in between."""
    grid = as_points(None, list(range(9)))
    column = GridRows(
        rows=opened(ArraySource(np.array([1.0, 4.0, 4.0]), missing="skip")), points=grid, skip=True
    )
    wanted = column.groups(lambda _: Aim(first=3, last=3), reach=5)
    for first, last in ((3, 4), (9, 9), (900, 901)):
        found = column.groups(lambda _, a=first, b=last: Aim(first=a, last=b), reach=5)  # type: ignore[misc]
        assert found.scores.tolist() == wanted.scores.tolist()
        assert found.members.tolist() == wanted.members.tolist()


def test_a_private_aim_is_the_public_one_where_no_end_is_near() -> None:
    """The ends have the first and the last rank, other levels ⌊qN⌋ and ⌈qN⌉."""
    for numerator, margin, count, ranks in (
        (0, 0, 7, (0, 1)),
        (4, 0, 7, (6, 7)),
        (1, 0, 5, (1, 2)),
        (3, 0, 5, (3, 4)),
        (4, 3, 40, (37, 37)),
        (0, 3, 40, (3, 3)),
    ):
        aim = PrivateAim(q=Fraction(numerator, 4), margin=margin).of(count)
        assert (aim.first, aim.last) == ranks


@pytest.mark.parametrize("size", [8, 9])
def test_cells_are_snapped_to_the_nearest_point_and_missing_ones_to_the_middle(size: int) -> None:
    cells = np.array([np.nan, -np.inf, np.inf, -1e308, 1e308, 2.25, 2.75])
    expected = [(size - 1) // 2, 0, size - 1, 0, size - 1, 2, 3]
    assert as_points((0, size - 1), size).snap(cells).tolist() == expected
    listed = as_points(None, list(range(size)))
    assert listed.snap(cells).tolist() == expected
    assert listed.snap(np.array([2.5, 3.5])).tolist() == [2, 3]  # the lower of two as near
