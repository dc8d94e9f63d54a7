"""Algorithms 9 and 10: exact laws on every small dataset, and what breaks them (A7, C3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from channels.channel_laws import row
from data.opening import TICKET
from paper.free_releases import free_propose_test_release
from paper.test_mode import PASS, real_pass
from purity import assert_pure
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import (
    certainly_impure,
    certainly_pure,
    datasets,
    hockey_stick,
    neighbors,
    rounded_laplace_pmf,
)
from zerodelta.channels.kernels import Body
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.noisy_test import noisy_test
from zerodelta.mechanisms.stable_queries import CustomQuery, Median, StableQuery, TrimmedMean
from zerodelta.paper.algorithm_01_02 import AlgorithmOne
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_propose_test_release,
)
from zerodelta.privacy.theorems.testing import PureProposeTestRelease
from zerodelta.spaces import Box

F = Fraction
MEDIAN = Median(bounds=(0, 4), steps=2)
TRIMMED = TrimmedMean(bounds=(0, 2), steps=1, trim=1)
QUERIES: dict[str, tuple[StableQuery, range, int]] = {
    "median": (MEDIAN, range(5), 3),
    "median of 4": (Median(bounds=(0, 2), steps=1), range(3), 4),
    "trimmed mean": (TRIMMED, range(3), 4),
}
queries = pytest.mark.parametrize("name", QUERIES)


def table(rows: Any) -> Any:
    return np.array(rows, dtype=float)


def read(query: StableQuery, rows: Any) -> Any:
    """The rows as the query takes them."""
    source, _ = query.closed(table(rows))
    return query.read(source.open(TICKET))


@queries
def test_distance_and_local_sensitivity_are_those_of_brute_force(name: str) -> None:
    query, values, count = QUERIES[name]
    every = list(datasets(values, count))
    answers = {d: int(query.answer(read(query, d))[0]) for d in every}
    local = dict.fromkeys(every, 0)
    for a, b in neighbors(every):
        moved = abs(answers[a] - answers[b])
        local[a], local[b] = max(local[a], moved), max(local[b], moved)
    for d in every:
        assert query.local_sensitivity(read(query, d)) == local[d]
        for bound in range(1, max(local.values()) + 1):
            far = [
                sum(x != y for x, y in zip(d, e, strict=True)) for e in every if local[e] > bound
            ]
            assert query.distance(read(query, d), bound) == min(far, default=count + 1)


@queries
def test_answers_are_the_points_of_the_grid(name: str) -> None:
    query, values, count = QUERIES[name]
    for d in datasets(values, count):
        lattice, ordered = query.lattice(count), sorted(d)
        truth = (
            ordered[(count + 1) // 2 - 1]
            if isinstance(query, Median)
            else sum(ordered[1:-1]) / (count - 2)
        )
        assert lattice.points(query.answer(read(query, d)))[0] == pytest.approx(truth)


def law_of_the_test(
    query: StableQuery, rows: Any, bound: int, epsilons: Any, tau: Fraction, noise: str
) -> tuple[Any, Any]:
    """P(pass), and given that the law of the noisy answer inside the grid."""
    first, second = epsilons
    passed = PASS[noise](query.distance(read(query, rows), bound), first, tau)
    center, cells = int(query.answer(read(query, rows))[0]), query.lattice(len(rows)).cells
    return passed, {y: rounded_laplace_pmf(y - center, scale=bound / second) for y in range(cells)}


def free_law(query: StableQuery, rows: Any, bound: int, epsilons: Any, tau: Any, noise: str) -> Any:
    passed, inside = law_of_the_test(query, rows, bound, epsilons, tau, noise)
    kept = sum(inside.values(), F(0))
    failed = 1 - passed * kept
    return {y: passed * p + failed * F(1, len(inside)) for y, p in inside.items()}


def threshold(name: str, bound: int, epsilons: Any, noise: str) -> Fraction:
    query, _, count = QUERIES[name]
    return PureProposeTestRelease.smallest(
        points=query.lattice(count).cells,
        dimension=1,
        sensitivity=bound,
        test_epsilon=epsilons[0],
        release_epsilon=epsilons[1],
        noise=noise,
    ).threshold


def unstable_law(passed: Any, center: int, size: int, bound: int, epsilon: Fraction) -> Any:
    """C3's law for a dataset at distance 0 that passes with the given probability."""
    inside = {y: rounded_laplace_pmf(y - center, scale=bound / epsilon) for y in range(size)}
    failed = 1 - passed * sum(inside.values(), F(0))
    return {y: passed * p + failed * F(1, size) for y, p in inside.items()}


def test_a_threshold_one_lower_violates() -> None:
    """Two unstable neighbors with answers at both ends of a long grid: theory's second case."""
    size, bound, epsilons = 400, 1, (F(1, 2), F(1, 2))
    tau = PureProposeTestRelease.smallest(
        points=size, dimension=1, sensitivity=bound, test_epsilon=F(1, 2), release_epsilon=F(1, 2)
    ).threshold
    for lower, violated in ((tau, False), (tau - 1, True), (tau - F(1, 5), True)):
        passed = real_pass(0, F(1, 2), lower)
        laws = [unstable_law(passed, c, size, bound, epsilons[1]) for c in (100, 300)]
        assert certainly_impure(laws[0], laws[1], 1) is violated
        assert certainly_pure(laws[0], laws[1], 1) is not violated


def test_the_threshold_of_another_noise_violates() -> None:
    """τ of discrete noise with rounded noise: the test under-protects by cosh(ε₁/2)."""
    size, first, second = 400, F(2), F(2)
    tau, rounded = (
        PureProposeTestRelease.smallest(
            points=size,
            dimension=1,
            sensitivity=1,
            test_epsilon=first,
            release_epsilon=second,
            noise=noise,
        ).threshold
        for noise in ("discrete", "rounded")
    )
    laws = [
        unstable_law(PASS["rounded"](0, first, tau), center, size, 1, second)
        for center in (100, 300)
    ]
    peaks = [{y: law[y] for y in (100, 300)} for law in laws]  # the outcomes that matter
    assert tau < rounded
    assert certainly_impure(peaks[0], peaks[1], first + second)


def test_a_third_of_the_release_noise_violates() -> None:
    """A mutant: stable answers 3 apart, noise for 1."""
    passed = real_pass(50, F(1, 2), F(2))
    for bound, violated in ((3, False), (1, True)):
        pair = [unstable_law(passed, center, 40, bound, F(1, 2)) for center in (10, 13)]
        assert certainly_impure(pair[0], pair[1], 1) is violated


@queries
def test_algorithm_9_is_approximate_with_half_of_delta(name: str) -> None:
    query, values, count = QUERIES[name]
    epsilon, log_delta, bound = F(1), -3.0, 1
    tau = F(3)
    laws = {}
    for d in datasets(values, count):
        passed, inside = law_of_the_test(query, d, bound, (epsilon, epsilon), tau, "real")
        rest = 1 - sum(inside.values(), F(0))
        laws[d] = {**{y: passed * p for y, p in inside.items()}, "out": passed * rest}
        laws[d]["nothing"] = 1 - passed
    claim = propose_test_release(
        table(next(iter(laws))),
        query=query,
        proposed_bound=query.lattice(count).box.widths()[0] / query.lattice(count).cells,
        epsilon=2 * epsilon,
        log_delta=log_delta,
    ).certificate.claim
    assert claim.log_delta(2) == pytest.approx(log_delta - math.log(2), abs=1e-12)
    delta = math.exp(claim.log_delta(2))
    for a, b in neighbors(laws):
        for p, q in ((laws[a], laws[b]), (laws[b], laws[a])):
            assert float(hockey_stick(p, q, 2)) <= delta


def test_algorithm_10_is_pure_on_every_pair_of_neighbors() -> None:
    query, count, epsilon, extra = Median(bounds=(0, 2), steps=1), 3, F(1), F(1)
    lattice = query.lattice(count)
    release = pure_propose_test_release(
        table((0, 1, 2)),
        query=query,
        proposed_bound=1,
        epsilon=2 * epsilon + extra,
        base_epsilon=epsilon,
        log_delta=-6.0,
        mixing_weight="1/10",
    )
    base, channel = release.certificate.steps
    tau = F(str(base.numbers["threshold"]))
    purifier = AlgorithmOne(
        body=Body(lattice=lattice),
        scale=F(str(channel.numbers["scale"])),
        mixing_weight=F(1, 10),
        base_epsilon=2 * epsilon,
    )
    matrix = [row(purifier, lattice.points(np.array([y])), None) for y in range(lattice.cells)]
    laws = {}
    for d in datasets(range(3), count):
        passed, inside = law_of_the_test(query, d, 1, (epsilon, epsilon), tau, "real")
        center = int(query.answer(read(query, d))[0])
        cells = dict(inside)
        for edge, beyond in ((0, -1), (lattice.cells - 1, 1)):  # projected before purifying
            tail = sum(
                (rounded_laplace_pmf(edge + beyond * k - center, scale=1) for k in range(1, 60)),
                F(0),
            )
            cells[edge] = cells[edge] + tail
        mixed = {y: (passed * p + (1 - passed) * F(1, 3)) for y, p in cells.items()}
        laws[d] = {
            z: sum((matrix[y][z] * mixed[y] for y in mixed), start=0 * matrix[0][z])
            for z in matrix[0]
        }
    assert_pure(laws, epsilon=3)


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, GeneratorExit, ValueError])
def test_no_exception_of_the_caller_s_functions_surfaces(error: type[BaseException]) -> None:
    def raising(*_: Any) -> Any:
        raise error("secret")

    check_mapped(raising)


@pytest.mark.parametrize("answer", ["text", None, math.nan, math.inf, -math.inf])
def test_failures_of_the_caller_s_functions_are_mapped(answer: Any) -> None:
    if not isinstance(answer, float) or math.isnan(answer):
        check_mapped(lambda *_: answer)
    grid = Box(0, 1).grid(11)
    query = CustomQuery(function=lambda _: 0.5, grid=grid, stability=lambda *_: answer)
    release = free_propose_test_release([1, 2], query=query, proposed_bound="1/10", epsilon=1)
    assert 0 <= release.value[0] <= 1


def check_mapped(bad: Callable[..., Any]) -> None:
    grid = zd.Box([0, 0], [1, 1]).grid(11)
    query = CustomQuery(function=bad, grid=grid, stability=bad, local=bad, change=1)
    release = free_propose_test_release([1, 2], query=query, proposed_bound="0.1", epsilon=1)
    assert release.value.shape == (2,)
    assert release.certificate.status.value == "asserted"
    assert "caller assertion" in release.certificate.summary
    assert query.distance([1], 3) == 0
    assert query.local_sensitivity([1]) == 20


def test_cells_of_a_box_with_unequal_sides_are_counted_by_the_smaller_one() -> None:
    """Rounding can add a cell in each coordinate, to an answer and to what it is compared with."""
    seen: list[float] = []
    query = CustomQuery(
        function=lambda rows: rows,
        grid=Box([0, 0], [8, 4]).grid(16),
        stability=lambda rows, bound: seen.append(bound),
        local=lambda rows: rows,
        change=1,
    )
    ends = [0.0, 0.124, 0.126, 0.249, 0.251, 1.7, 3.99]
    points = [np.array([2 * x, y]) for x, y in itertools.product(ends, repeat=2)]
    for one, two in itertools.product(points, repeat=2):
        moved = float(np.abs(one - two).sum())
        cells = int(np.abs(query.answer(one) - query.answer(two)).sum())
        if moved > 0:
            assert cells <= query.bound_in_cells(moved, 5)
            assert cells <= query.local_sensitivity(moved)
    for bound in (3, 4, 10):
        query.distance([1], bound)
        assert query.bound_in_cells(seen.pop(), 5) <= bound


@pytest.mark.parametrize("distance", [-3, 0, 1, 2, 5])
def test_the_noisy_test_has_the_tail_of_laplace_noise(distance: int) -> None:
    """P(distance + Laplace(1/ε) > 1), at ε = 1/2."""
    size, bits = 3000, ReplayBits(f"tail {distance}")
    passed = sum(
        noisy_test(distance, epsilon=F(1, 2), threshold=F(1), bits=bits) for _ in range(size)
    )
    tail = math.exp(-abs(1 - distance) / 2) / 2
    expected = tail if distance <= 1 else 1 - tail
    assert goodness_of_fit([passed, size - passed], [expected, 1 - expected]) > 1e-4


def test_a_caller_s_distance_is_rounded_down() -> None:
    """It promises so many rows, and no part of one."""
    for found, whole in ((0.0, 0), (0.9, 0), (1.0, 1), (3.999, 3), (-2.5, 0), (math.inf, 2**53)):
        query = CustomQuery(
            function=len, grid=Box(0, 9).grid(9), stability=lambda rows, bound: rows
        )
        assert query.distance(found, 2) == whole


def test_the_cells_of_a_bound_are_those_that_are_whole_in_it() -> None:
    for bound, cells in (("1/2", 1), ("0.99", 1), (1, 2), ("1.25", 2)):
        assert Median(bounds=(0, 2), steps=2).bound_in_cells(bound, 5) == cells
