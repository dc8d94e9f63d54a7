"""k-means: what is noised moves by no more than was paid for, and the rest is post-processing."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.cluster import KMeans

import zerodelta as zd
from purity import assert_pure
from tasks.noise_laws import laplace, product
from zerodelta.audit.exact import (
    datasets,
    neighbors,
)
from zerodelta.clustering.center_mechanisms import kmeans_methods
from zerodelta.clustering.kmeans import Centers, Frame, Seeds, grid_for
from zerodelta.data.arrays import ArraySource
from zerodelta.mechanisms.sum_noise import KNorm, RoundedLaplace
from zerodelta.privacy.verify import verify
from zerodelta.tasks.kmeans import kmeans
from zerodelta.testing import replayed

Floats = npt.NDArray[np.float64]
VALUES = (0.1, 0.4, 0.6, 0.9, 7.0, math.nan, -math.inf)
EPSILON = Fraction(3, 4)


@dataclass
class Spy:
    """Keeps what is handed to the noise, and puts fixed public vectors in place of noisy ones."""

    scales: list[Fraction] = field(default_factory=list)
    counts: list[tuple[int, ...]] = field(default_factory=list)
    blocks: list[npt.NDArray[Any]] = field(default_factory=list)
    paid: set[Fraction] = field(default_factory=set)
    fixed: int = 1000

    def laplace(self, mechanism: RoundedLaplace, sums: npt.NDArray[Any], bits: Any) -> Any:
        self.scales.append(mechanism.scale)
        self.counts.append(tuple(sums.tolist()))
        cells = np.arange(len(sums))
        return self.fixed * (cells % 2) + 5 * cells

    def k_norm(self, mechanism: KNorm, sums: npt.NDArray[Any], bits: Any) -> Any:
        assert mechanism.norm == 2
        self.scales.append(mechanism.scale / mechanism.sensitivity)
        self.paid.add(mechanism.sensitivity)
        self.blocks.append(sums.copy())
        return np.full(len(sums), 10**9)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    spying = Spy()
    monkeypatch.setattr(RoundedLaplace, "apply", lambda m, s, b: spying.laplace(m, s, b))
    monkeypatch.setattr(KNorm, "apply", lambda m, s, b: spying.k_norm(m, s, b))
    return spying


def blobs(rows: int, columns: int, clusters: int) -> Floats:
    rng = np.random.default_rng(11)
    centers = rng.uniform(0.1, 0.9, (clusters, columns))
    spread = rng.normal(0, 0.05, (rows, columns))
    return np.asarray(centers[rng.integers(0, clusters, rows)] + spread)


def inertia(rows: Floats, centers: Floats) -> float:
    squares = sum((rows[:, [j]] - centers[:, j]) ** 2 for j in range(rows.shape[1]))
    return float(np.asarray(squares).min(axis=1).sum())


def centers_of(rows: Floats, *, method: str = "auto", clusters: int = 2, **options: Any) -> Floats:
    given: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1), **options}
    return np.asarray(kmeans(rows, clusters=clusters, method=method, **given).value)


# -- privacy ----------------------------------------------------------------------------------


def test_the_noisy_histogram_is_exactly_epsilon(spy: Spy) -> None:
    """All datasets of two rows, through `kmeans` itself.

    Counts that agree have the same independent noise, so the loss is that of those that differ.
    """
    tables = {}
    for rows in datasets(range(len(VALUES)), 2):
        values = np.array([[VALUES[i]] for i in rows])
        centers_of(values, method="histogram", clusters=1, epsilon=EPSILON)
        tables[rows] = spy.counts[-1]
    assert len(tables[0, 0]) >= 4
    assert len(set(spy.scales)) == 1
    scale, moves = spy.scales[0], set()
    for a, b in neighbors(tables):
        pairs = [(x, y) for x, y in zip(tables[a], tables[b], strict=True) if x != y]
        if pairs:
            moves.add(tuple(sorted(pairs)))
    assert any(len(move) == 2 for move in moves)

    def joint_law(counts: tuple[int, ...], scale: Fraction = scale) -> Any:
        return product([laplace(count, scale, high=3) for count in counts])

    sides: list[Any] = [tuple(zip(*move, strict=True)) for move in moves]
    half = partial(joint_law, scale=scale / 2)
    assert_pure(joint_law, sides, epsilon=EPSILON, tight=True, mistake=half)


def at_most(blocks: npt.NDArray[Any], limit: int) -> bool:
    """Tell exactly whether the l2 norms of at most two nonzero blocks of integers add up to it."""
    squares = [sum(int(x) ** 2 for x in block) for block in blocks]
    first, second, *others = [*sorted(squares, reverse=True), 0]
    assert not any(others)
    rest = limit**2 - first - second
    return rest >= 0 and 4 * first * second <= rest**2


@pytest.mark.parametrize("columns", [1, 2, 6])
def test_a_round_moves_by_no_more_than_its_sensitivity(columns: int, spy: Spy) -> None:
    """All pairs of one-row datasets from an ugly universe: one block each, the norms add up."""
    rng = np.random.default_rng(0)
    universe = [rng.choice(VALUES, columns) for _ in range(30)]
    universe += [rng.uniform(size=columns) for _ in range(10)]
    sums = []
    for row in universe:
        spy.blocks.clear()
        centers_of(row[None, :], method="lloyd", clusters=3, epsilon=EPSILON)
        rounds = 1 if columns <= 5 else 2
        assert len(spy.blocks) == 3 * rounds
        sums.append(np.array(spy.blocks))
    paid = int(spy.paid.pop())
    for a, b in itertools.combinations(sums, 2):
        for start in range(0, len(a), 3):  # each round given the same answers before it
            moved = a[start : start + 3] - b[start : start + 3]
            assert at_most(moved, paid)
    tight = [not at_most(a[:3] - b[:3], paid * 9 // 10) for a, b in itertools.combinations(sums, 2)]
    assert any(tight)  # a smaller sensitivity would be caught
    laplace, *others = spy.scales[-1 - rounds * 3 :]
    assert 2 / laplace + sum(1 / scale for scale in others[::3]) == EPSILON


@pytest.mark.parametrize("method", ["histogram", "lloyd"])
def test_the_centers_are_a_function_of_what_was_noised(method: str, spy: Spy) -> None:
    """Other rows, but the same noisy counts and sums: the same centers to the last bit."""
    first = centers_of(blobs(500, 2, 3), method=method, clusters=3)
    again = centers_of(np.full((500, 2), 0.3), method=method, clusters=3)
    assert spy.counts[0] != spy.counts[1]
    assert (first == again).all()
    spy.fixed = -1000
    assert (first != centers_of(blobs(500, 2, 3), method=method, clusters=3)).any()


def test_batches_and_order_do_not_change_what_is_summed(spy: Spy) -> None:
    rows = blobs(300, 7, 3)
    rows[5, 2] = math.nan
    options: dict[str, Any] = {"bounds": ([-0.5] * 7, [1, 1, 1, 1, 1, 1, 3])}
    sources = [rows, ArraySource(rows, batch=1), ArraySource(rows[::-1].copy(), batch=7)]
    for source in sources:
        kmeans(source, clusters=3, epsilon=1, method="lloyd", **options)
    assert spy.counts[0] == spy.counts[1] == spy.counts[2]
    assert sum(spy.counts[0]) == 299
    one, two, three = np.array(spy.blocks).reshape(3, -1)
    assert (one == two).all()
    assert (one == three).all()


def test_a_row_is_in_one_block_within_the_norm() -> None:
    frame, places = Frame(lower=np.zeros(2), unit=1.0, sides=np.ones(2)), np.eye(2)
    centers = Centers(frame=frame, points=places, radius=0.5, places=places)
    rows = np.random.default_rng(5).uniform(-1, 2, (200, 2))
    blocks = centers.vectors(rows).reshape(200, 2, 3)
    nearest = ((np.clip(rows, 0, 1)[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
    assert (blocks[np.arange(200), 1 - nearest] == 0).all()
    assert (blocks[np.arange(200), nearest, 2] == 1).all()


# -- values never raise, parameters do -----------------------------------------------------------


def test_more_clusters_than_cells_hold_anything() -> None:
    rows = np.repeat([[0.2, 0.2], [0.8, 0.8]], 2000, axis=0)
    for method in ("histogram", "lloyd"):
        centers = centers_of(rows, method=method, clusters=40)
        assert inertia(rows, centers) / len(rows) < 0.01


# -- accuracy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "histogram", "lloyd"])
def test_two_columns_lose_less_than_two_percent(method: str) -> None:
    rows = np.clip(blobs(100_000, 2, 5), 0, 1)
    best = KMeans(5, n_init=5, random_state=0).fit(rows).inertia_
    release = kmeans(rows, clusters=5, epsilon="0.5", bounds=(0, 1), method=method)
    assert inertia(rows, release.value) <= 1.02 * best


def test_ten_columns_in_other_units() -> None:
    rows = np.clip(blobs(20_000, 10, 4), 0, 1) * 40 - 7
    best = KMeans(4, n_init=5, random_state=0).fit(rows).inertia_
    release = kmeans(rows, clusters=4, epsilon=2, bounds=(-7, [33] * 10))
    assert inertia(rows, release.value) <= 1.5 * best  # a lost cluster would cost several times it


def scattered(columns: int, rng: np.random.Generator) -> Floats:
    """Four centers at least 5 deviations of 0.06 apart."""
    while True:
        centers = rng.uniform(0.15, 0.85, (4, columns))
        if min(np.linalg.norm(a - b) for a, b in itertools.combinations(centers, 2)) >= 0.3:
            return np.asarray(centers)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "columns", "epsilon"), [(5000, 10, 1), (2000, 5, 1)])
def test_the_forecast_knows_how_often_clusters_are_missed(
    n: int, columns: int, epsilon: int
) -> None:
    """The mean of many runs, of which few have a cluster less and are the larger part of it."""
    rng, errors = np.random.default_rng(23), []
    for run in range(40):
        centers = scattered(columns, rng)
        spread = rng.normal(0, 0.06, (n, columns))
        rows = np.clip(centers[rng.integers(4, size=n)] + spread, 0, 1)
        best = KMeans(4, init=centers, n_init=1).fit(rows).inertia_
        found = replayed(f"run {run}")(centers_of)(
            rows, method="lloyd", clusters=4, epsilon=epsilon
        )
        errors.append(inertia(rows, found) / best - 1)
    ways = {
        way.name: way.error
        for way in kmeans_methods(rows=n, clusters=4, epsilon=epsilon, sides=np.ones(columns))
    }
    assert 0.4 < ways["lloyd"] / np.mean(errors) < 2.5
    assert np.mean(errors) > 3 * np.median(errors)  # so that it is them that were forecast


def test_missed_clusters_are_forecast_to_vanish_with_more_rows() -> None:
    """What is left is the noise of the rounds, which falls as the square of the rows."""
    few, many, more = (
        kmeans_methods(rows=n, clusters=4, epsilon=1.0, sides=np.ones(10))[0].error
        for n in (5000, 100_000, 1_000_000)
    )
    assert few / many > 10 * (100_000 / 5000) ** 1.5
    assert many / more == pytest.approx(100, rel=0.2)


# -- one center -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1/2", 1])
def test_few_rows_in_many_columns_get_one_center(epsilon: Any) -> None:
    """64 columns, rows in a corner of the bounds: one private mean beats noisy clusters."""
    rng = np.random.default_rng(5)
    rows = np.clip(rng.uniform(0, 0.4, (10, 64))[rng.integers(10, size=1800)], 0, 1)
    rows = np.clip(rows + rng.normal(0, 0.1, rows.shape), 0, 1)
    released = {
        method: kmeans(rows, clusters=10, epsilon=epsilon, bounds=(0, 1), method=method)
        for method in ("auto", "lloyd", "one-center")
    }
    errors = {method: float(release.error) for method, release in released.items()}
    assert errors["auto"] == errors["one-center"] < errors["lloyd"]
    assert len({tuple(center) for center in released["auto"].value}) == 1
    auto, lloyd = (inertia(rows, released[method].value) for method in ("auto", "lloyd"))
    assert auto < 0.8 * lloyd
    assert verify(released["auto"].certificate)


def test_one_center_is_the_mean_or_without_information_the_middle() -> None:
    rows = np.random.default_rng(6).uniform((0, 10), (1, 12), (20_000, 2))
    public: dict[str, Any] = {"clusters": 3, "bounds": ([0, 10], [4, 30]), "method": "one-center"}
    found = kmeans(rows, epsilon=50, **public).value
    assert found.shape == (3, 2)
    assert np.abs(found - rows.mean(axis=0)).max() < 0.01
    drowned = kmeans(rows[:5], epsilon="1/1000000", **public).value
    assert np.abs(drowned - [2, 20]).max() < 0.1


@pytest.mark.parametrize(
    ("n", "columns", "epsilon"), [(300, 64, 1.0), (2000, 64, 1.0), (50, 3, 0.5)]
)
def test_the_forecast_of_one_center_is_measured(n: int, columns: int, epsilon: float) -> None:
    rng, errors = np.random.default_rng(9), []
    for run in range(30):
        centers = rng.uniform(0.15, 0.85, (4, columns))
        rows = np.clip(centers[rng.integers(4, size=n)] + rng.normal(0, 0.06, (n, columns)), 0, 1)
        found = replayed(f"one {run}")(centers_of)(
            rows, method="one-center", clusters=4, epsilon=epsilon
        )
        errors.append(inertia(rows, found) / inertia(rows, centers) - 1)
    ways = {
        way.name: way.error
        for way in kmeans_methods(rows=n, clusters=4, epsilon=epsilon, sides=np.ones(columns))
    }
    assert 0.8 < ways["one-center"] / np.mean(errors) < 1.25


# -- the grid -------------------------------------------------------------------------------------


def test_cells_are_cubes_in_the_data_units() -> None:
    """A column a hundred times narrower than the others is not cut at all."""
    grid = grid_for(np.array([1.0, 0.01, 0.5]), rows=10_000, clusters=4, epsilon=1.0)
    assert grid.shape[1] == 1
    assert grid.shape[0] == pytest.approx(2 * grid.shape[2], abs=1)
    assert grid.size >= 16


def test_every_place_in_the_box_has_its_cell() -> None:
    sides = np.array([1.0, 0.3])
    grid = grid_for(sides, rows=1000, clusters=3, epsilon=1.0)
    rows = np.random.default_rng(3).uniform(size=(500, 2)) * sides
    middles = grid.points(grid.keys(rows).astype(np.int64))
    assert (np.abs(middles - rows) <= grid.side).all()
    assert np.array_equal(grid.keys(grid.points(np.arange(grid.size))), np.arange(grid.size))


def test_directions_are_orthonormal_and_lead_back() -> None:
    grid = grid_for(np.ones(9), rows=1000, clusters=3, epsilon=1.0)
    assert np.allclose(grid.axes.T @ grid.axes, np.eye(4))
    points = np.random.default_rng(4).normal(size=(5, 4))
    assert np.allclose(grid.coordinates(grid.in_columns(points)), points)
    seeded = Centers.seeded(
        Frame(lower=np.zeros(9), unit=1.0, sides=np.ones(9)), grid, Seeds(places=points, radius=0.1)
    )
    assert seeded.points.shape == (5, 9)


@pytest.mark.parametrize("expected", [None, 50, 4000])
def test_one_center_of_filtered_rows_is_their_mean(expected: int | None) -> None:
    """Whatever number is planned with: rows that count nowhere pull no center to the middle."""
    rows = np.column_stack([np.arange(3000.0), np.ones(3000)])
    kinds = {"0": zd.number(0, 3000), "1": zd.number(0, 10)}
    some = zd.open(rows, columns=kinds).where("`0` < 300", expected_rows=expected)
    release = zd.kmeans(some, ["0", "1"], clusters=1, epsilon=500, method="one-center")
    assert release.value[0] == pytest.approx([149.5, 1.0], rel=0.05)
    none = zd.open(rows, columns=kinds).where("`0` < -1", expected_rows=expected)
    released = zd.kmeans(none, ["0", "1"], clusters=1, epsilon=500, method="one-center").value
    assert np.isfinite(released).all()
