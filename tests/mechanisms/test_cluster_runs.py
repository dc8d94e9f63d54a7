"""Rows on a cluster: whatever is counted there, the runs are those of all rows in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerodelta.exact.bits import SystemBits
from zerodelta.exact.joint_ranks import Ranks, SortedRuns
from zerodelta.mechanisms import joint_quantiles as grid_runs
from zerodelta.mechanisms import runs as module
from zerodelta.mechanisms.joint_quantiles import CELL_BITS, JointExponential
from zerodelta.mechanisms.runs import ClusterLine, ClusterRuns, cluster_runs


class There:
    """Keys on a cluster, of which only sums and picked ones come back."""

    columns = ("0",)

    def __init__(self, keys: npt.NDArray[np.int64]) -> None:
        self.blocks = [block[:, None] for block in np.array_split(keys, 3)]
        self.jobs: list[int] = []
        self.fetched = 0
        self.forgets = False

    def total(self, part: Callable[[Any], Any], columns: Any, *, shape: Any, **_: Any) -> Any:
        found = np.zeros(shape, dtype=np.int64)
        for block in self.blocks:
            np.add.at(found, part(block), 1)
        self.jobs.append(found.size)
        return found

    def gathered(self, part: Callable[[Any], Any]) -> Any:
        found = np.concatenate([part(block) for block in self.blocks])
        self.jobs.append(len(found))
        self.fetched += len(found)
        return found[:0] if self.forgets else found


def line_of(there: There, groups: int, size: int) -> ClusterLine:
    rows: Any = there
    return ClusterLine(rows, lambda block: block[:, 0].astype(np.int64), groups=groups, size=size)


def all_ranks(count: int) -> Sequence[Ranks]:
    return [Ranks(first=0, last=count)]


def no_ranks(_count: int) -> Sequence[Ranks]:
    return []


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_borders_are_those_of_all_rows_in_order(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([1, 2, 7, 1000, (1 << 40) + 1]))
    groups = data.draw(st.sampled_from([1, 2, 5]))
    places = st.one_of(st.integers(0, groups * size - 1), st.sampled_from([0, groups * size - 1]))
    keys = np.array(data.draw(st.lists(places, max_size=40)), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CELLS", data.draw(st.sampled_from([1, 4, 64, 1 << 20])))
        patch.setattr(module, "_FETCHED", data.draw(st.sampled_from([0, 1, 7, 1 << 20])))
        patch.setattr(module, "_SPLIT", data.draw(st.sampled_from([1, 3, 1 << 16])))
        for each in (module, grid_runs):
            patch.setattr(each, "MAXIMUM_BATCH", data.draw(st.sampled_from([2, 1 << 22])))
        near = data.draw(st.sampled_from([all_ranks, no_ranks]))
        runs = list(cluster_runs(line_of(There(keys), groups, size), SystemBits(), read_first=near))
        assert len(runs) == groups
        for group, one in enumerate(runs):
            points = np.sort(keys[keys // size == group] - group * size)
            known = SortedRuns(rows=points << CELL_BITS, points=size << CELL_BITS)
            assert (one.count, one.points) == (known.count, known.points)
            ends = st.lists(st.integers(0, one.count), min_size=2, max_size=2).map(sorted)
            for first, last in [data.draw(ends), data.draw(ends), [0, one.count]]:
                found = one.borders(first, last)
                assert (found >> CELL_BITS).tolist() == (
                    known.borders(first, last) >> CELL_BITS
                ).tolist()
                assert all(a <= b for a, b in pairwise(found.tolist()))
                again = one.borders(0, one.count)
                begins = 0 if first == 0 else first  # a place that was drawn is kept
                assert again[begins : begins + len(found)].tolist() == found.tolist()


def test_few_rows_come_to_the_driver_for_medians_of_many_groups() -> None:
    size, groups, rows = (1 << 40) + 1, 50, 200_000
    generator = np.random.default_rng(0)
    codes = generator.integers(0, groups, rows)
    points = (generator.gamma(2, 0.01, rows) * size).astype(np.int64)  # most in a small part
    there = There(codes * size + np.minimum(points, size - 1))
    joint = JointExponential.for_epsilon(epsilon=4, levels=["1/2"], groups=groups)
    runs = cluster_runs(
        line_of(there, groups, size),
        SystemBits(),
        read_first=lambda count: joint.ranks_read_first(count, points=size),
    )
    for group, one in enumerate(runs):
        drawn = joint.draw(one, SystemBits())
        below = np.count_nonzero((codes == group) & (points <= drawn[0]))
        assert abs(below - one.count / 2) < 100
    assert len(there.jobs) == 2  # one for all counts, one for all points
    assert there.fetched < rows / 5


def test_a_crowded_point_is_counted_and_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FETCHED", 100)
    monkeypatch.setattr(module, "_CELLS", 64)
    size = 1 << 40
    keys = np.array([12345] * 5000 + list(range(size - 50, size)) + [7] * 3, dtype=np.int64)
    there = There(keys)
    runs = ClusterRuns(line_of(there, 1, size), 0, SystemBits())
    found = runs.borders(0, runs.count)
    assert (found[1:-1] >> CELL_BITS).tolist() == sorted(keys.tolist())
    assert there.fetched <= 100
    assert max(there.jobs) <= 64


def test_there_are_as_many_rows_as_were_counted_whatever_the_source_does() -> None:
    size = 1 << 40
    there = There(np.arange(0, size, size // 90, dtype=np.int64))
    line = line_of(there, 1, size)
    there.forgets = True  # the rows are other ones when they are read again
    runs = ClusterRuns(line, 0, SystemBits())
    found = runs.borders(0, runs.count)
    assert len(found) == runs.count + 2 == len(np.arange(0, size, size // 90)) + 2
    assert all(a <= b for a, b in pairwise(found.tolist()))
