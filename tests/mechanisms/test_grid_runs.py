"""Runs on a fine grid: counted in cells, or sorted, they are the same; and tallies of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.data.keys import GroupKey, GroupKeys
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.joint_ranks import Ranks, SortedRuns
from zerodelta.mechanisms import joint_quantiles as module
from zerodelta.mechanisms import ranks as near_ranks
from zerodelta.mechanisms import runs as group_runs
from zerodelta.mechanisms.joint_quantiles import CELL_BITS, CountedRuns, fine_rows, grid_runs
from zerodelta.mechanisms.ranks import MOST_POINTS, GridRows, as_points
from zerodelta.mechanisms.runs import GroupedColumn


def column(rows: list[float], points: int) -> GridRows:
    shown = np.array(rows, dtype=np.float64).reshape(-1, 1)
    return GridRows(
        rows=opened(ArraySource(shown, missing="skip")),
        points=as_points((0, points - 1), points),
        skip=True,
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 63), min_size=8, max_size=60),
    st.sampled_from([3, 10]),
    st.sampled_from([4, 1 << 24]),
    st.sampled_from([1, 6, 1000]),
)
def test_counted_runs_are_those_of_the_sorted_rows(
    rows: list[int], held: int, one_pass: int, together: int
) -> None:
    """In small and large cells, points of few and of many rows; places are as if drawn first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_ranks, "_HELD", held)
        patch.setattr(near_ranks, "_ONE_PASS", one_pass)
        patch.setattr(near_ranks, "_CELL_BITS", 4)
        patch.setattr(module, "MAXIMUM_BATCH", together)
        runs = grid_runs(column([float(r) for r in rows], 64), ReplayBits("runs"))
        if one_pass == 1 << 24 and held == 10:
            held = 16  # a quarter of the points of a small grid may be held
        assert isinstance(runs, CountedRuns) == (len(rows) > max(held, 16 if one_pass > 64 else 0))
        n = runs.count
        assert (n, runs.points) == (len(rows), 64 << CELL_BITS)
        middle = [Ranks(first=n // 3, last=n // 2), Ranks(first=n // 2, last=n // 2)]
        runs.fetch(middle)
        parts = [runs.borders(ranks.first, ranks.last) for ranks in middle]
        borders = runs.borders(0, n)
        assert (np.diff(borders) >= 0).all()
        assert (borders[1:-1] >> CELL_BITS).tolist() == sorted(rows)
        for ranks, part in zip(middle, parts, strict=True):  # what was drawn once stays
            assert part.tolist() == borders[ranks.first : ranks.last + 2].tolist()
        whole = SortedRuns(rows=borders[1:-1], points=runs.points)
        for first, last in ((0, 0), (n, n), (1, n - 1), (2, 5)):
            assert runs.borders(first, last).tolist() == whole.borders(first, last).tolist()


@pytest.mark.parametrize("held", [3, 1 << 21], ids=["counted", "sorted"])
@pytest.mark.parametrize("together", [1, 1000])
def test_runs_on_the_default_grid_are_exact_to_the_last_bit(
    monkeypatch: pytest.MonkeyPatch, held: int, together: int
) -> None:
    """Places up to 2^60, rows on one point, and ranks of which none is at an end."""
    monkeypatch.setattr(near_ranks, "_HELD", held)
    monkeypatch.setattr(module, "MAXIMUM_BATCH", together)
    last = MOST_POINTS - 1
    points = [3, last // 3, last - 1, last - 1, last - 1, last, last]
    runs = grid_runs(column([float(point) for point in points], MOST_POINTS), ReplayBits("fine"))
    assert isinstance(runs, CountedRuns) == (held == 3)
    n, every = len(points), [int(place) for place in runs.borders(0, len(points))]
    assert [place >> CELL_BITS for place in every[1:-1]] == points
    assert every == sorted(every)
    assert len(set(every)) == n + 2  # ties are apart
    for first in range(n + 1):
        for end in range(first, n + 1):
            part = runs.borders(first, end)
            assert part.dtype == np.int64
            assert part.tolist() == every[first : end + 2]


@pytest.mark.parametrize("together", [10, 100_000])
def test_places_within_a_cell_are_uniform(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(near_ranks, "_HELD", 100)
    monkeypatch.setattr(near_ranks, "_ONE_PASS", 1)
    monkeypatch.setattr(module, "MAXIMUM_BATCH", together)
    runs: Any = grid_runs(column([5.0] * 20_000, 9), ReplayBits("places"))
    places = (runs.borders(0, 20_000)[1:-1] - (5 << CELL_BITS)) / 2**CELL_BITS
    expected = (np.arange(20_000) + 0.5) / 20_000
    assert 0 <= places[0] <= places[-1] < 1
    assert np.abs(places - expected).max() < 2.2 / np.sqrt(20_000)  # Kolmogorov: below 1e-4


@pytest.mark.parametrize("held", [0, 7, 20, 1000, "all", "all but one"])
def test_groups_are_the_same_however_many_fit_in_memory(
    monkeypatch: pytest.MonkeyPatch, held: int | str
) -> None:
    monkeypatch.setattr(near_ranks, "_HELD", 5)
    draw = np.random.default_rng(2)
    table = np.column_stack(
        [draw.integers(-1, 4, 60), draw.integers(0, 2, 60), draw.integers(0, 16, 60)]
    ).astype(np.float64)
    table[3, 0], table[5, 2] = 0.0, np.nan
    counting = int(((table[:, 0] >= 0) & (table[:, 0] < 3) & ~np.isnan(table[:, 2])).sum())
    exactly = {"all": counting, "all but one": counting - 1}
    monkeypatch.setattr(group_runs, "_HELD", exactly.get(str(held), held))
    grouped = GroupedColumn(
        rows=opened(ArraySource(table, missing="skip")),
        keys=GroupKeys(
            keys=(GroupKey(name="0", labels=(0, 1, 2)), GroupKey(name="1", labels=(0, 1)))
        ),
        column=2,
        points=as_points((0, 15), 16),
        skip=True,
    )
    found = [
        runs.borders(0, runs.count)[1:-1]
        for runs in grouped.runs(ReplayBits("groups"), read_first=lambda _: [])
    ]
    wanted = [
        sorted(table[(table[:, 0] == a) & (table[:, 1] == b) & ~np.isnan(table[:, 2]), 2])
        for a in range(3)
        for b in range(2)
    ]
    assert [(rows >> CELL_BITS).tolist() for rows in found] == wanted
    assert all((np.diff(rows) >= 0).all() for rows in found)
    counted = grouped.counts().reshape(6, 16)
    assert [np.repeat(np.arange(16), row).tolist() for row in counted] == wanted


def test_a_source_that_changes_between_passes_keeps_its_number_of_rows() -> None:
    tidy = module._as_counted
    points, counts = np.array([3, 4, 9]), np.array([2, 2, 2])
    for total in (1, 4, 6, 11):
        kept, found = tidy(points, counts, total)
        assert found.sum() == total
        assert (found >= 0).all()
        assert kept.tolist() == points.tolist()
    kept, found = tidy(points[:0], counts[:0], 5)
    assert (kept.tolist(), found.tolist()) == ([0], [5])


def test_fine_rows_stay_in_their_cells() -> None:
    points = np.array([0, 1, (1 << 40)])
    fine = fine_rows(points, ReplayBits("fine"))
    assert (fine >> CELL_BITS).tolist() == points.tolist()


def test_rows_of_a_heavy_point_are_where_they_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows, placed four at a time: they are counted by place and not kept."""
    drawn: list[int] = []

    def noted(points: Any, bits: Any) -> Any:
        found = fine_rows(points, bits)
        drawn.extend(found.tolist())
        return found

    monkeypatch.setattr(module, "MAXIMUM_BATCH", 4)
    monkeypatch.setattr(module, "fine_rows", noted)
    heavy = module.PlacedCell(np.array([3]), np.array([10]), ReplayBits("heavy"))
    rows = heavy.rows(0, 10).tolist()
    assert rows == [(3 << CELL_BITS) + place for place in sorted(drawn)]
