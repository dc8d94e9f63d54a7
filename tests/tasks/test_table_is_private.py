"""Tables: what the verbs hand to their noise, over all neighbors of tiny data, costs ε exactly.

The lattice has one step, so that every value is -1, 0 or 1, and laws are small: they are compared
exactly, equality included, for the sums that the real code made of the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from mechanisms.exact_laws import block_law, counts_law, laplace_law
from purity import assert_pure
from sampling import Replace
from zerodelta.mechanisms import moments, partition_noise
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise

EPSILON = Fraction(3, 4)
NAN = math.nan
Row = tuple[float, ...]
Rows = tuple[Row, ...]
Handed = tuple[Any, tuple[int, ...]]

KEY = zd.category([0, 1])
VALUE, SKIPPED = zd.number(-1, 1, missing=None), zd.number(-1, 1)
KEYED = {"0": KEY, "1": VALUE}
"""Two groups; a row with another key, or none, is in neither."""


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Handed]:
    """Return what the noise is handed, with no noise on it, on the coarsest lattice."""
    seen: list[Handed] = []

    def without_noise(mechanism: Any, sums: Any, bits: Any) -> Any:
        seen.append((mechanism, tuple(map(int, sums))))
        return np.array(sums, dtype=object)

    for kind in (PartitionNoise, BlockNoise):
        monkeypatch.setattr(kind, "apply", without_noise)
    monkeypatch.setattr(moments, "steps_for", lambda *_, **__: 1)
    return seen


def table(rows: Rows, columns: dict[str, Any], **options: Any) -> Any:
    cells = np.array(rows, dtype=float).reshape(-1, len(columns))
    return zd.open(pd.DataFrame(cells, columns=list(columns)), columns=columns, **options)


def replaced(cells: Sequence[Row], count: int) -> Iterator[tuple[Rows, Rows]]:
    for others in itertools.combinations_with_replacement(cells, count - 1):
        for one, two in itertools.combinations(cells, 2):
            yield (one, *others), (two, *others)


def added(cells: Sequence[Row], count: int) -> Iterator[tuple[Rows, Rows]]:
    for others in itertools.combinations_with_replacement(cells, count - 1):
        for one in cells:
            yield (one, *others), others


def norm(mechanism: Any, moved: list[int]) -> int:
    """How far sums move, in the norm of the noise."""
    if isinstance(mechanism, BlockNoise):
        d = mechanism.dimension
        blocks = [moved[place : place + d] for place in range(0, len(moved), d)]
        return sum(max(map(abs, block)) for block in blocks)
    if mechanism.method == "laplace":
        return sum(map(abs, moved))
    return max(sum(max(x, 0) for x in moved), sum(max(-x, 0) for x in moved))


def law_of(mechanism: Any, high: int) -> Callable[[tuple[int, ...]], Any]:
    if isinstance(mechanism, BlockNoise):
        assert mechanism.dimension == 2
        return partial(block_law, scale=mechanism.scale, window=range(-high - 1, high + 2))
    if mechanism.method == "laplace":
        return partial(laplace_law, scale=mechanism.scale, high=high)
    window = range(-2, high + 3, 2 if mechanism.cells > 3 else 1)
    return partial(counts_law, scale=mechanism.scale, window=window)


def check(
    handed: list[Handed],
    pairs: Iterator[tuple[Rows, Rows]],
    ask: Callable[[Rows], Any],
    *,
    high: int | None = None,
    units: int = 1,
) -> Any:
    """All pairs cost at most ε, and some pair costs ε; by exact laws if `high` is given."""
    known: dict[Hashable, Handed] = {}

    def sums_of(rows: Rows) -> Handed:
        if rows not in known:
            handed.clear()
            ask(rows)
            (known[rows],) = handed
        return known[rows]

    moved = {(sums_of(a)[1], sums_of(b)[1]) for a, b in pairs}
    mechanism = next(iter(known.values()))[0]
    assert all(each[0] == mechanism for each in known.values())  # nothing of it is the rows'
    sizes = [norm(mechanism, [x - y for x, y in zip(a, b, strict=True)]) for a, b in moved]
    assert max(sizes) / mechanism.scale == EPSILON
    assert mechanism.claim.exact_epsilon * units == EPSILON
    if high is not None:
        assert_pure(law_of(mechanism, high), moved, epsilon=EPSILON, tight=True)
    return mechanism


CELLS = [*itertools.product((0.0, 1.0), (-1.0, 0.0, 1.0, NAN)), (2.0, 1.0), (NAN, NAN)]
CORNERS = [*itertools.product((0.0, 1.0), (-1.0, 1.0)), (2.0, 1.0)]
"""The rows that move most, for laws that take long."""


def mean_by_group(rows: Rows, **options: Any) -> Any:
    return zd.mean(table(rows, KEYED, **options), "1", by="0", epsilon=EPSILON)


def test_one_draw_over_all_groups_costs_epsilon(handed: list[Handed]) -> None:
    found = check(handed, replaced(CORNERS, 1), mean_by_group, high=2)
    assert (found.method, found.cells) == ("k-norm", 4)
    assert check(handed, replaced(CELLS, 2), mean_by_group) == found


def test_independent_noise_on_all_groups_costs_epsilon(
    handed: list[Handed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_noise, "_MOST_JOINT", 0)
    found = check(handed, replaced(CORNERS, 1), mean_by_group, high=2)
    assert (found.method, found.cells) == ("laplace", 4)
    assert check(handed, replaced(CELLS, 2), mean_by_group) == found


@pytest.mark.parametrize("rows", [1, 2])
def test_a_row_that_comes_or_goes_costs_epsilon(handed: list[Handed], rows: int) -> None:
    ask = partial(mean_by_group, neighbors="add-remove", expected_rows=2)
    found = check(handed, added(CELLS, rows), ask, high=2 if rows == 1 else None)
    assert (found.method, found.cells, found.scale) == ("laplace", 4, 2 / EPSILON)


def test_a_filter_and_missing_values_cost_epsilon(handed: list[Handed]) -> None:
    """Two cells for the values that are there and one for the others; a dropped row has none."""
    columns = {"0": zd.boolean(), "1": SKIPPED}

    def ask(rows: Rows) -> Any:
        return zd.table(table(rows, columns).where("0"), of={"1": "mean"}, epsilon=EPSILON)

    found = check(handed, replaced(CELLS, 1), ask, high=2)
    assert (found.method, found.cells) == ("k-norm", 3)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_known_number_of_rows_leaves_one_cell_out(handed: list[Handed], rows: int) -> None:
    cells = [(value,) for value in (-1.0, 0.0, 1.0, NAN)]

    def ask(chosen: Rows) -> Any:
        return zd.variance(np.array(chosen), bounds=(-1, 1), epsilon=EPSILON)

    found = check(handed, replaced(cells, rows), ask, high=4 * rows if rows < 3 else None)
    assert (found.method, found.cells, found.row_total) == ("k-norm", 2, 4)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_block_of_two_columns_costs_epsilon(handed: list[Handed], rows: int) -> None:
    cells = list(itertools.product((-1.0, 0.0, 1.0, NAN), repeat=2))
    columns = {"0": VALUE, "1": VALUE}

    def ask(chosen: Rows) -> Any:
        return zd.table(table(chosen, columns), of={"0": "mean", "1": "mean"}, epsilon=EPSILON)

    found = check(handed, replaced(cells, rows), ask, high=2 if rows == 1 else None)
    assert (found.blocks, found.dimension) == (1, 2)


SEVERAL: dict[str, dict[str, Any]] = {
    "means": {"a": "mean", "b": ["sum", "mean"]},
    "a mean and a variance": {"a": "mean", "b": ["variance", "count"]},
    "a count and a std": {"a": "count", "b": "std"},
    "variances": {"a": ["variance"], "b": "std"},
}


@pytest.mark.parametrize("of", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("relation", ["replace", "add-remove", "where"])
def test_several_columns_of_groups_cost_epsilon(
    handed: list[Handed], replace: Replace, of: dict[str, Any], relation: str
) -> None:
    """One column may miss values and the other not; all are one block of a group."""
    replace("table._MOST_APART", 0)
    columns = {"key": KEY, "a": SKIPPED, "b": VALUE}
    values = (-1.0, 0.0, 1.0, NAN)
    cells = [*itertools.product((0.0, 1.0, 5.0), values, values)]
    options: dict[str, Any] = {}
    if relation == "add-remove":
        options = {"neighbors": relation, "expected_rows": 5}

    def ask(rows: Rows) -> Any:
        data = table(rows, columns, **options)
        chosen = data.where("b >= 0") if relation == "where" else data
        return zd.table(chosen, by="key", of=of, epsilon=EPSILON)

    moves = added if relation == "add-remove" else replaced
    found = check(handed, moves(cells, 1), ask)
    assert isinstance(found, BlockNoise)
    assert found.blocks == 2


@pytest.mark.parametrize("statistic", ["count", "mean", "std"])
def test_the_rows_of_a_unit_cost_epsilon_together(handed: list[Handed], statistic: str) -> None:
    """A unit of two rows, which may be in two groups, beside one that stays."""
    columns = {"0": KEY, "1": VALUE}
    cells = [*itertools.product((0.0, 1.0), (-1.0, 1.0)), (5.0, 0.0)]
    rows = [each for size in (1, 2) for each in itertools.combinations(cells, size)]

    def ask(chosen: Rows) -> Any:
        ids = np.array([[*row, 7.0] for row in chosen] + [[0.0, 1.0, 8.0]])
        people = zd.open(ids, columns=columns, unit="2", max_rows=2)
        return zd.table(people, by="0", of={"1": statistic}, epsilon=EPSILON)

    found = check(handed, itertools.combinations(rows, 2), ask, units=2)
    assert found.unit_rows == 1  # the certificate multiplies


def test_numbers_in_bins_cost_epsilon(handed: list[Handed]) -> None:
    """A value beyond the edges is in no bin; one column is key and value."""
    cells = [(value,) for value in (-1.0, 0.0, 0.5, 1.0, 7.0, NAN)]

    def ask(rows: Rows) -> Any:
        by = {"0": zd.bins([-1, 0, "1/2"])}
        return zd.mean(table(rows, {"0": SKIPPED}), "0", by=by, epsilon=EPSILON)

    found = check(handed, replaced(cells, 2), ask)
    assert found.cells == 6
