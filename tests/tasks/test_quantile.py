"""Quantiles: rank scores against their definition, exact laws on all neighbors, any grid."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from purity import assert_impure
from reference.chi_square import goodness_of_fit
from tasks.noise_laws import Scored, assert_chosen_purely
from tasks.spying import recorded, zero
from zerodelta.audit.exact import (
    datasets,
    neighbors,
    permute_and_flip_law,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.ranks import aimed_ranks, rank_distances, wanted_ranks
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.tasks import quantiles as module
from zerodelta.tasks.quantiles import median, quantile, quantile_methods
from zerodelta.testing import replayed


def distances(rows: tuple[int, ...], q: Fraction, points: int) -> list[int]:
    """How many rows must change for a point to be a q-quantile, by definition (theory C10.2)."""
    n = len(rows)
    return from_ranks(rows, (min(math.floor(q * n), n - 1), max(math.ceil(q * n), 1)), points)


def from_ranks(rows: tuple[int, ...], ranks: tuple[int, int], points: int) -> list[int]:
    """Return max(0, L - a, b - U) at every point."""
    most_below, least_not_above = ranks
    found = []
    for point in range(points):
        below = sum(row < point for row in rows)
        not_above = sum(row <= point for row in rows)
        found.append(max(0, below - most_below, least_not_above - not_above))
    return found


@given(st.data(), st.integers(1, 30), st.integers(1, 12))
def test_distances_are_the_definition_at_every_point(data: Any, points: int, count: int) -> None:
    rows = data.draw(st.lists(st.integers(0, points - 1), min_size=count, max_size=count))
    q = data.draw(st.fractions(0, 1, max_denominator=2 * count))
    ranks = wanted_ranks(q, count)
    within = rank_distances(np.sort(np.array(rows)), ranks=ranks, points=points)
    wanted = distances(tuple(rows), q, points)
    assert wanted[sorted(rows)[ranks[1] - 1]] == 0 == wanted[sorted(rows)[ranks[0]]]
    for level, size in enumerate(within.members().tolist()):
        drawn = [within.member(level, place) for place in range(size)]
        assert drawn == [point for point, distance in enumerate(wanted) if distance == level]
    assert len(within.members()) > max(wanted)


def scored(calls: list[Any], wanted: list[int]) -> Scored:
    """Check that the distances of all points were handed over; return them with the noise."""
    used, scores, *_, named = calls[-1]
    handed = dict(zip((-scores).tolist(), named["members"].tolist(), strict=True))
    assert handed == Counter(wanted)
    return used.scale, tuple(-distance for distance in wanted)


@pytest.mark.parametrize("ranks", [(0, 1), (1, 1), (1, 2), (2, 2), (2, 3)])
def test_any_public_ranks_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, ranks: tuple[int, int]
) -> None:
    """Aiming inside changes only which ranks the scores are about, not how far one row moves them.

    The ranks are handed in as an aim would; scores and law come from the definition.
    """
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    monkeypatch.setattr(module, "aimed_ranks", lambda *_, **__: ranks)
    epsilon, points, handed = Fraction(1, 2), 4, {}
    for rows in datasets(range(points), 3):
        quantile(np.array(rows), q=0, bounds=(0, 3), grid=points, epsilon=epsilon)
        handed[rows] = scored(calls, from_ranks(rows, ranks, points))
    assert_chosen_purely(handed, neighbors(handed), epsilon=epsilon)


@given(
    st.fractions(0, 1, max_denominator=1000),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_an_aim_is_inside_by_the_margin_and_moves_no_further(
    q: Fraction, n: int, stated: int
) -> None:
    wanted, aim = wanted_ranks(q, n), aimed_ranks(q, n, margin=stated)
    margin = min(stated, n // 2)
    assert aimed_ranks(q, n) == wanted
    assert 0 <= aim[0] <= aim[1] <= n
    assert aim[1] - aim[0] in (0, 1)
    assert aim[1] >= margin
    assert n - aim[0] >= margin
    if wanted[1] >= margin and n - wanted[0] >= margin:
        assert aim == wanted
    else:
        assert abs(aim[0] - wanted[0]) <= margin
    mirrored = aimed_ranks(1 - q, n, margin=stated)
    assert mirrored == (n - aim[1], n - aim[0])


@pytest.mark.parametrize(("q", "n"), [(0, 2000), ("0.001", 10_000), ("0.995", 2000), (1, 2000)])
def test_a_margin_keeps_end_quantiles_of_wide_bounds_among_the_rows(q: Any, n: int) -> None:
    """Nearly all points are beyond all rows, and no answer is; the forecast counts the aim."""
    forecast = quantile_methods(epsilon=1, n=n, q=q, margin=61)[0].error
    level, ranks = float(Fraction(q)), []
    for seed in range(40):
        rows = np.sort(np.random.default_rng(seed).normal(0, 1, n))
        found = quantile(rows, q=q, bounds=(-(10**6), 10**6), margin=61, epsilon=1).value
        assert rows[0] < found < rows[-1]
        ranks.append(abs(int(np.searchsorted(rows, found)) - level * n))
    assert 1 / 1.25 < np.mean(ranks) / forecast < 1.25


def test_no_margin_is_as_far_off_as_the_end_at_most() -> None:
    """The same wide bounds: a point beyond all rows is as far off as the wanted rank is inside."""
    for q, most in ((0, 1), ("0.001", 10), ("0.005", 10)):
        n, errors = 10_000 if q == "0.001" else 2000, []
        for seed in range(20):
            rows = np.sort(np.random.default_rng(seed).normal(0, 1, n))
            found = quantile(rows, q=q, bounds=(-(10**6), 10**6), epsilon=1).value
            errors.append(abs(int(np.searchsorted(rows, found)) - float(Fraction(q)) * n))
        assert np.mean(errors) <= most
        assert quantile_methods(epsilon=1, n=n, q=q)[0].error <= most + 3


def test_a_margin_of_none_aims_at_the_very_rank_where_rows_fill_the_bounds() -> None:
    rows, errors = np.arange(1, 1001) / 1000, []
    for _ in range(200):
        found = quantile(rows, q="0.01", bounds=(0, 1), epsilon=1).value
        errors.append(abs(found * 1000 - 10.5))
    assert np.mean(errors) < 5
    assert aimed_ranks(Fraction(0), 100, margin=7) == (7, 7)
    assert aimed_ranks(Fraction(0), 100, margin=99) == (50, 50)
    exact, moved = (quantile_methods(epsilon=1, n=1000, q="0.05", margin=m)[0] for m in (0, 61))
    assert exact.error < 5 < moved.error
    for wrong in (-1, 2.5, True, "many", None):
        with pytest.raises(zd.errors.ParameterError, match=r"^margin = "):
            quantile(rows, q=0, bounds=(0, 1), epsilon=1, margin=wrong)  # type: ignore[arg-type]


def test_the_forecast_counts_answers_beyond_all_rows() -> None:
    """100 rows in a hundredth of the bounds at ε = 1/10: most answers are beyond all of them."""
    forecast = quantile_methods(epsilon="1/10", n=100)[0].error
    errors = []
    for seed in range(300):
        rows = np.sort(np.random.default_rng(seed).uniform(49.5, 50.5, 100))
        found = median(rows, bounds=(0, 100), epsilon="1/10").value
        errors.append(abs(int(np.searchsorted(rows, found)) - 50))
    assert 1 / 1.25 < np.mean(errors) / forecast < 1.25


def test_the_default_grid_is_as_fine_for_wide_bounds() -> None:
    rows = np.random.default_rng(3).lognormal(10, 1, 10_001)
    errors = [
        abs(median(rows, bounds=(0, 10**12), epsilon=1).value - np.median(rows)) for _ in range(40)
    ]
    assert np.mean(errors) < 100  # 1024 points a row are 1e5 apart here


@pytest.mark.parametrize(("q", "count"), [("1/2", 3), ("1/2", 4), (0, 3), ("0.9", 3), ("3/4", 4)])
def test_quantiles_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, q: Any, count: int
) -> None:
    """Four grid points, few rows, some beyond the bounds; levels as handed to the mechanism."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    epsilon, points, handed = Fraction(3, 4), 4, {}
    for rows in datasets([0, 1, 2, 3, 7], count):
        quantile(np.array(rows), q=q, bounds=(0, 3), grid=points, epsilon=epsilon)
        clipped = tuple(min(row, 3) for row in rows)
        handed[rows] = scored(calls, distances(clipped, Fraction(q), points))
    assert_chosen_purely(handed, neighbors(handed), epsilon=epsilon)


@pytest.mark.slow
def test_the_monotone_scale_is_caught() -> None:
    """Scores on both sides of the median move in opposite directions: the 2 stays."""
    scores = {
        rows: tuple(-d for d in distances(rows, Fraction(1, 2), 5))
        for rows in datasets(range(5), 5)
    }
    pairs = {(scores[a], scores[b]) for a, b in neighbors(scores)}
    assert_impure(lambda each: permute_and_flip_law(each, scale=1), pairs, epsilon=1)


def test_the_release_has_the_law() -> None:
    rows, points = (1, 4, 4, 6, 9), 12
    exact = permute_and_flip_law([-d for d in distances(rows, Fraction(1, 2), points)], scale=2)
    bits = ReplayBits("permute-and-flip")
    public: dict[str, Any] = {"bounds": (0, 11), "grid": points, "epsilon": 1}
    drawn = Counter(
        round(replayed(bits)(median)(np.array(rows), **public).value) for _ in range(800)
    )
    expected = [float(exact[i]) for i in range(points)]
    assert goodness_of_fit([drawn[i] for i in range(points)], expected) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"), [(1000, 1), (1001, 1), (1000, "1/10"), (10_000, "1/2"), (1000, 3)]
)
@pytest.mark.parametrize("shape", ["even", "normal"])
def test_the_forecast_is_the_rank_error_that_is_measured(n: int, epsilon: Any, shape: str) -> None:
    """Forty datasets, 25 releases each: the gaps between rows vary, the mean is within 1.5."""
    generator, (least, most) = np.random.default_rng(7), (n // 2, (n + 1) // 2)
    (forecast, _), errors = (m.error for m in quantile_methods(epsilon=epsilon, n=n)), []
    for _ in range(40):
        rows = generator.random(n) * 100 if shape == "even" else generator.normal(40, 3, n)
        ordered = np.sort(rows)
        values = [median(rows, bounds=(0, 100), epsilon=epsilon).value for _ in range(25)]
        below = np.searchsorted(ordered, values, "left")
        not_above = np.searchsorted(ordered, values, "right")
        errors.append(np.maximum(0, np.maximum(below - least, most - not_above)).mean())
    measured = float(np.mean(errors))
    assert 1 / 1.25 < measured / forecast < 1.25


def test_a_trillion_grid_points_cost_no_more_than_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    rows = np.random.default_rng(3).normal(0.5, 0.01, 10**5)
    release = quantile(rows, q="0.25", bounds=(0, 1), grid=2**40, epsilon=1)
    _, scores, *_, named = calls[-1]
    assert len(scores) <= len(rows) + 1
    assert int(named["members"].sum()) == 2**40
    assert abs(np.mean(rows <= release.value) - 0.25) < 1e-3
    assert zd.verify(release.certificate)
    assert release.certificate.status.value == "proven"


def test_rows_are_moved_to_the_nearest_point() -> None:
    odd = [math.nan, math.inf, -math.inf, "x", None, 1e300]
    for rows in (odd, [math.nan], [5]):
        assert 0 <= median(rows, bounds=(0, 10), grid=11, epsilon=1).value <= 10
    assert median([7.4] * 99, bounds=(0, 10), grid=11, epsilon=50).value == 7
    assert median([99.0] * 99, bounds=(0, 10), grid=11, epsilon=50).value == 10
    assert median([math.nan] * 99, bounds=(0, 10), grid=11, epsilon=50).value == 5
    assert median([2.6] * 99, grid=[1, 2, "3.5", 100], epsilon=50).value == 2
    assert median([2.8] * 99, grid=[1, 2, "3.5", 100], epsilon=50).value == 3.5
    assert median([-5.0] * 99, grid=[1, 2], epsilon=50).value == 1


@pytest.mark.parametrize(
    ("q", "wanted"),
    [
        (0, {1}),
        ("0.05", {1}),
        ("0.1", {1, 2}),
        ("0.11", {2}),
        (0.3, {3, 4}),
        ("0.95", {10}),
        (1, {10}),
    ],
)
def test_quantiles_are_the_order_statistics(q: Any, wanted: set[int]) -> None:
    rows = np.arange(1, 11)
    found = {quantile(rows, q=q, bounds=(0, 11), grid=12, epsilon=200).value for _ in range(30)}
    assert found == wanted
