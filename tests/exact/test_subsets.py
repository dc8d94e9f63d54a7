"""Subsets and multisets: all alike, one at a time or in batches, however large the universe.

Their laws over all outcomes are checked with those of the other integer samplers (test_integers).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from exact.integer_cases import (
    MILLION,
    large_subset_tally,
    multiset_tally,
    row_counts,
    subset_tally,
)
from reference.chi_square import goodness_of_fit
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits
from zerodelta.exact.integers import (
    uniform_below,
    uniform_multiset,
    uniform_multisets,
    uniform_subset,
    uniform_subsets,
)

Rows = npt.NDArray[np.int64]


# --- mutants --------------------------------------------------------------------------------


def independent_items(universe: int, *, size: int, count: int, bits: BitSource) -> Rows:
    """As if a multiset were `size` independent items: {0, 1} twice as likely as {0, 0}."""
    drawn = uniform_below(universe, size=count * size, bits=bits)
    return np.sort(drawn.reshape(count, size), axis=1)


def next_places(places: int, *, size: int, count: int, bits: BitSource) -> Rows:
    """As if a place that is taken could be replaced by the next one."""
    rows = independent_items(places, size=size, count=count, bits=bits)
    while (taken := rows[:, 1:] == rows[:, :-1]).any():
        rows[:, 1:] += taken
        rows %= places
        rows.sort(axis=1)
    return rows


def smallest_places(places: int, *, size: int, count: int, bits: BitSource) -> Rows:
    """As if of one draw too many the largest could be dropped."""
    return uniform_subsets(places, size=size + 1, count=count, bits=bits)[:, :size]


def next_large(places: int, *, size: int, bits: BitSource) -> Rows:
    return next_places(places, size=size, count=1, bits=bits).reshape(-1)


def test_independent_items_are_not_a_uniform_multiset() -> None:
    for universe, size, cells in ((4, 3, 20), (2, 4, 5)):
        counts = multiset_tally(universe, size, independent_items)(MILLION, ReplayBits("iid"))
        assert goodness_of_fit(counts.tolist(), [1 / cells] * cells) < 1e-9


@pytest.mark.parametrize("mutant", [next_places, smallest_places])
def test_places_chosen_by_their_values_are_not_a_uniform_subset(
    mutant: Callable[..., Rows],
) -> None:
    for places, size, cells in ((5, 2, 10), (6, 4, 15)):
        counts = subset_tally(places, size, mutant)(MILLION, ReplayBits("by value"))
        assert goodness_of_fit(counts.tolist(), [1 / cells] * cells) < 1e-9


def test_replacing_by_the_next_place_is_seen_in_one_large_subset() -> None:
    counts = large_subset_tally(next_large)(1000, ReplayBits("large"))
    assert goodness_of_fit(counts.tolist(), [1 / 10] * 10) < 1e-9


# --- one at a time --------------------------------------------------------------------------


def subset_p_value(places: int, size: int, draws: int, bits: BitSource) -> float:
    drawn = [uniform_subset(places, size=size, bits=bits) for _ in range(draws)]
    cells = list(itertools.combinations(range(places), size))
    counts = row_counts(np.sort(np.array(drawn), axis=1), cells)
    return goodness_of_fit(counts.tolist(), [1 / len(cells)] * len(cells))


@pytest.mark.parametrize(("places", "size"), [(4, 1), (5, 2), (6, 3), (5, 3), (5, 4), (8, 4)])
def test_all_subsets_are_alike(places: int, size: int) -> None:
    assert subset_p_value(places, size, 10_000, ReplayBits(f"{size} of {places}")) > 1e-3


def test_a_subset_draws_on_while_its_draws_are_equal() -> None:
    """Hundreds of zero words, all the same place: the rest of the subset comes later, uniformly."""
    others = Counter(
        min(set(uniform_subset(9, size=2, bits=ReplayBits(str(i), tape=bytes(800))).tolist()) - {0})
        for i in range(2000)
    )
    assert goodness_of_fit([others[place] for place in range(1, 9)], [1 / 8] * 8) > 1e-3


@pytest.mark.parametrize(("places", "size"), [(0, 0), (5, 0), (1, 1), (3, 3)])
def test_trivial_subsets_take_no_bits(places: int, size: int) -> None:
    bits = ReplayBits("none", tape=b"tape")
    assert uniform_subset(places, size=size, bits=bits).tolist() == list(range(size))
    rows = uniform_subsets(places, size=size, count=2, bits=bits)
    assert rows.tolist() == [list(range(size))] * 2
    assert bits.read(4) == b"tape"


@pytest.mark.parametrize("size", [2000, 50_000, 99_000])
def test_places_of_a_large_subset_are_different_and_spread_out(size: int) -> None:
    bits = ReplayBits("large")
    single = uniform_subset(100_000, size=size, bits=bits)
    for drawn in (single, *uniform_subsets(100_000, size=size, count=2, bits=bits)):
        assert len(np.unique(drawn)) == len(drawn) == size
        assert drawn.min() >= 0
        assert drawn.max() < 100_000
        below = np.count_nonzero(drawn < 50_000)  # hypergeometric
        deviation = math.sqrt(size / 4 * (1 - size / 100_000))
        assert abs(below - size / 2) < 5 * deviation


# --- batches --------------------------------------------------------------------------------


def test_rows_draw_on_while_their_draws_are_equal() -> None:
    """All first draws of three rows are the same place: each row goes on by itself, uniformly."""
    rows = np.concatenate(
        [
            uniform_subsets(9, size=2, count=3, bits=ReplayBits(str(i), tape=bytes(48)))
            for i in range(2000)
        ]
    )
    assert (rows[:, 0] == 0).all()
    joint = rows[:, 1].reshape(-1, 3)[:, :2]
    counts = row_counts(joint, itertools.product(range(1, 9), repeat=2))
    assert goodness_of_fit(counts.tolist(), [1 / 64] * 64) > 1e-3


@pytest.mark.parametrize(("places", "size"), [(5, 2), (5, 3)])
def test_neighboring_rows_are_independent(places: int, size: int) -> None:
    rows = uniform_subsets(places, size=size, count=MILLION, bits=ReplayBits("neighbors"))
    subsets = list(itertools.combinations(range(places), size))
    pairs = [first + second for first, second in itertools.product(subsets, repeat=2)]
    counts = row_counts(rows.reshape(-1, 2 * size), pairs)
    assert goodness_of_fit(counts.tolist(), [1 / 100] * 100) > 1e-3


@pytest.mark.parametrize("universe", [6, 2**40, 2**63 - 1, 2**63, 2**63 + 1, 2**100, 7**400])
def test_multisets_of_any_universe_have_their_law(universe: int) -> None:
    """In six buckets of the universe: all multisets with so many items in each."""
    ends = [-(-bucket * universe // 6) for bucket in range(7)]
    whole, law = math.comb(universe + 2, 3), {}
    for buckets in itertools.combinations_with_replacement(range(6), 3):
        held = Counter(buckets)
        ways = (math.comb(ends[b + 1] - ends[b] + m - 1, m) for b, m in held.items())
        law[buckets] = float(Fraction(math.prod(ways), whole))
    drawn = uniform_multisets(universe, size=3, count=30_000, bits=ReplayBits("wide")).tolist()
    found = Counter(tuple(item * 6 // universe for item in row) for row in drawn)
    assert goodness_of_fit([found[b] for b in law], list(law.values())) > 1e-3


@pytest.mark.parametrize(
    ("universe", "size"), [(1, 5), (5, 0), (2, 1000), (2**40, 1000), (2**63, 2), (2**100, 3)]
)
def test_multiset_extremes(universe: int, size: int) -> None:
    single = uniform_multiset(universe, size=size, bits=SystemBits())
    batch = uniform_multisets(universe, size=size, count=4, bits=SystemBits())
    assert batch.shape == (4, size)
    for drawn in (single, *batch):
        assert drawn.dtype == (np.int64 if universe <= 2**63 else object)
        items = drawn.tolist()
        assert len(items) == size
        assert items == sorted(items)
        assert all(isinstance(item, int) and 0 <= item < universe for item in items)


def test_an_empty_batch_has_its_shape() -> None:
    assert uniform_subsets(5, size=2, count=0, bits=SystemBits()).shape == (0, 2)
    assert uniform_subsets(5, size=4, count=0, bits=SystemBits()).shape == (0, 4)
    assert uniform_multisets(5, size=2, count=0, bits=SystemBits()).shape == (0, 2)


BITS = SystemBits()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("universe", lambda: uniform_multiset(0, size=1, bits=BITS)),
        ("universe", lambda: uniform_multisets(0, size=1, count=1, bits=BITS)),
        ("size", lambda: uniform_multisets(3, size=-1, count=1, bits=BITS)),
        ("count", lambda: uniform_multisets(3, size=1, count=-1, bits=BITS)),
        ("places", lambda: uniform_subset(-1, size=0, bits=BITS)),
        ("places", lambda: uniform_subsets(-1, size=0, count=1, bits=BITS)),
        ("size", lambda: uniform_subset(3, size=4, bits=BITS)),
        ("size", lambda: uniform_subsets(3, size=4, count=1, bits=BITS)),
        ("count", lambda: uniform_subsets(3, size=1, count=-1, bits=BITS)),
    ],
)
def test_bad_parameters_are_named(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        call()


def test_multisets_of_more_items_than_int64_has_are_python_integers() -> None:
    for universe in (2**63, 2**64):
        drawn = uniform_multiset(universe, size=60, bits=ReplayBits("wide")).tolist()
        assert drawn == sorted(drawn)
        assert 0 <= drawn[0] < universe // 4
        assert universe - universe // 4 < drawn[-1] < universe
