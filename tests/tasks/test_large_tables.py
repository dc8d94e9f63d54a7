"""Tables of millions of cells: short methods give what the simple ones give, in bounded memory."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.exact.bits import ReplayBits
from zerodelta.marginals.bases import AxisFunctions, Transform, margin, orthonormal
from zerodelta.marginals.domain import as_domain, as_workload, code_rows, row_columns
from zerodelta.marginals.fit import _on_one_axis, _OneAxis, _Problem, fit, simplex
from zerodelta.marginals.strategies import Estimate, shared_axes, table_estimate, table_strategy
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.tasks.marginals import answer_queries, synthesize

ROWS = 500


def noisy_tables(sizes: tuple[int, ...], tables: Any, seed: int = 1) -> dict[Any, Any]:
    draw = np.random.default_rng(seed)
    shapes = {table: tuple(sizes[i] for i in table) for table in tables}
    return {table: draw.integers(-9, 40, shape).astype(float) for table, shape in shapes.items()}


def estimated(sizes: tuple[int, ...], noisy: Any) -> Estimate:
    domain = as_domain(dict(enumerate(sizes)))
    variances = {table: 2.0 + i for i, table in enumerate(noisy)}
    return table_estimate(domain, noisy, variances, ROWS)


def least_squares(sizes: tuple[int, ...], noisy: Any) -> Any:
    """Some cells of the whole domain, adding up to 1, whose tables are the nearest, by definition.

    Only tables of equal cells are told apart by noise: what a table adds up to is known to be n.
    """
    cells = math.prod(sizes)
    lines, values = [], []
    units = np.eye(cells).reshape(cells, *sizes)
    for i, (table, counts) in enumerate(noisy.items()):
        line = np.stack([margin(unit, table).reshape(-1) for unit in units], axis=1)
        centered = counts.reshape(-1) - counts.mean()
        weight = 1 / math.sqrt(2.0 + i)
        lines.append((line - line.mean(axis=0)) * weight)
        values.append(centered / ROWS * weight)
    free = np.concatenate(values)
    found = np.linalg.lstsq(np.concatenate(lines), free, rcond=None)[0]
    return (found + (1 - found.sum()) / cells).reshape(sizes)


@pytest.mark.parametrize(
    ("sizes", "tables"),
    [
        ((2, 2, 2, 2), [(0, 1, 2, 3)]),
        ((3, 2, 4), [(0, 2)]),
        ((2, 3, 2, 2), [(0, 1, 3), (1, 2, 3)]),
        ((2, 2, 3, 2), [(0, 1), (1, 2), (0, 2, 3), (3,)]),
        ((9, 9, 2), [(0, 1), (0, 2)]),
        ((2,) * 8, [(0, 1, 2, 3, 5, 6, 7), (4, 6)]),
    ],
)
def test_columns_on_one_axis_give_the_least_squares_of_all_tables(
    sizes: tuple[int, ...], tables: Any
) -> None:
    """Also of tables within measured ones, and of axes large enough for reflections."""
    noisy = noisy_tables(sizes, tables)
    found, wanted = estimated(sizes, noisy), least_squares(sizes, noisy)
    for table in tables:
        for size in range(1, len(table) + 1):
            for part in itertools.combinations(table, size):
                assert found.covers(part)
                assert found.table(part) == pytest.approx(margin(wanted, part), abs=1e-10)


def test_one_large_table_has_one_set_of_axes_and_pairs_have_theirs() -> None:
    domain = as_domain(dict.fromkeys(range(24), 2))
    assert len(shared_axes(domain, [tuple(range(24))]).columns) == 1
    assert len(shared_axes(domain, as_workload(2, domain).tables).columns) == 24


@pytest.mark.parametrize(
    "axes",
    [
        [AxisFunctions(3), AxisFunctions(2), AxisFunctions(5)],
        [AxisFunctions(2)] * 9,
        [AxisFunctions(256)],
        [AxisFunctions(3), AxisFunctions(70, reflected=True), AxisFunctions(4)],
    ],
)
def test_transforms_are_products_of_orthonormal_functions(axes: list[AxisFunctions]) -> None:
    matrices = []
    for axis in axes:
        single = Transform([axis])
        unit = np.eye(axis.size)
        matrices.append(np.stack([single.spread(unit[i]) for i in range(axis.size)]))
        assert matrices[-1] @ matrices[-1].T == pytest.approx(unit)
        assert matrices[-1][0] == pytest.approx(np.full(axis.size, axis.size**-0.5))
        if not axis.reflected:
            assert matrices[-1] == pytest.approx(orthonormal(axis.size))
    dense: Any = np.ones((1, 1))
    for matrix in matrices:
        dense = np.kron(dense, matrix)
    draw = np.random.default_rng(2)
    values = draw.normal(size=len(dense))
    assert Transform(axes).read(values) == pytest.approx(dense @ values)
    for count in (1, 7, len(dense) // 2):
        used = draw.choice(len(dense), count, replace=False)
        some, chosen = Transform(axes, used), draw.normal(size=count)
        assert some.read(values) == pytest.approx(dense[used] @ values)
        assert some.spread(chosen) == pytest.approx(dense[used].T @ chosen)


@pytest.mark.parametrize("penalty", [1000.0, 100.0, 10.0])
@pytest.mark.parametrize(
    ("sizes", "table"), [((2,) * 5, (0, 1, 2, 3, 4)), ((7, 2, 3), (0, 2)), ((70, 2), (1, 0))]
)
def test_the_fit_to_one_table_is_where_the_solver_goes(
    penalty: float, sizes: tuple[int, ...], table: tuple[int, ...]
) -> None:
    estimate = estimated(sizes, noisy_tables(sizes, [tuple(sorted(table))]))
    assert _on_one_axis(estimate)
    direct, solver = _OneAxis(estimate), _Problem(estimate)
    point = direct.solved(direct.start, penalty)
    theta = solver.start
    for _ in range(5):
        theta = solver.solved(theta, penalty)
    assert direct.distribution(point) == pytest.approx(solver.distribution(theta), abs=1e-5)
    assert direct.distance(point) == pytest.approx(solver.distance(theta), rel=1e-2)
    # exactly: p + κV·e is y but for a constant
    cells = estimate.table(tuple(sorted(table))).reshape(-1)
    chances = direct.distribution(point).reshape(len(cells), -1).sum(axis=1)
    seen = chances > 1e-300
    slack = chances[seen] + penalty * 2 / ROWS**2 * np.log(chances[seen]) - cells[seen]
    assert np.ptp(slack) < 1e-9


@pytest.mark.parametrize("variance", [1e-40, 1e-12, 1.0, 1e12])
def test_the_fit_to_one_table_is_a_distribution_whatever_the_noise(variance: float) -> None:
    noisy: dict[Any, Any] = {(0, 1): np.array([[1e9, -1e9], [0.0, 3.0]])}
    found = fit(table_estimate(as_domain({0: 2, 1: 2}), noisy, {(0, 1): variance}, 4))
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights.min() >= 0


@pytest.mark.parametrize("size", [1, 5, 400])
def test_equal_entries_change_nothing_in_the_nearest_distribution(size: int) -> None:
    """By halving the shift, whatever the entries are."""
    draw = np.random.default_rng(size)
    for values in (draw.normal(size=size), draw.integers(-3, 4, size) / 7.0, np.full(size, 1e18)):
        shifted = values - values.max()
        low, high = -1.0, 0.0
        for _ in range(100):
            middle = (low + high) / 2
            enough = np.maximum(shifted - middle, 0).sum() > 1
            low, high = (middle, high) if enough else (low, middle)
        assert simplex(values) == pytest.approx(np.maximum(shifted - low, 0), abs=1e-12)


def test_the_noise_of_a_large_table_is_that_of_the_mechanism() -> None:
    """Bit by bit: every cell has its own exact noise, and the total is all that is changed."""
    domain = as_domain(dict.fromkeys(range(14), 2))
    columns = tuple(range(14))
    rows = np.random.default_rng(3).integers(0, 2, (1000, 14))
    data = code_rows(row_columns(rows, domain).read(), domain)
    strategy = table_strategy(domain, as_workload([columns], domain), Fraction(1), joint=False)
    assert strategy is not None
    found = strategy.measure(data, ReplayBits("cells")).table(columns).reshape(-1)
    mechanism = PartitionNoise.for_epsilon(epsilon=1, cells=2**14)
    noisy = mechanism.apply(data.table(columns).reshape(-1), ReplayBits("cells"))
    assert found - found.mean() == pytest.approx((noisy - noisy.mean()) / 1000, abs=1e-12)


BINARY_18 = dict.fromkeys(range(18), 2)
THREE_64 = dict.fromkeys(range(3), 64)


@pytest.mark.parametrize("release", [answer_queries, synthesize])
@pytest.mark.parametrize("domain", [BINARY_18, THREE_64], ids=["18 of 2", "3 of 64"])
def test_a_table_of_all_columns_takes_a_few_arrays_of_its_cells(release: Any, domain: Any) -> None:
    rows = np.random.default_rng(5).integers(0, 2, (1000, len(domain)))
    arguments = {"domain": domain, "workload": [tuple(domain)], "epsilon": 1, "method": "laplace"}
    release(rows[:5], **arguments)  # what is imported and cached does not count
    tracemalloc.start()
    found = release(rows, **arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * 8 * 2**18
    assert zd.verify(found.certificate)


@pytest.mark.parametrize("release", [answer_queries, synthesize])
def test_a_column_of_many_categories_needs_no_square_of_them(release: Any) -> None:
    """All postcodes: their functions written out would be a matrix of 7 GB."""
    rows = np.random.default_rng(7).integers(0, 30_000, (1000, 2)) % [30_000, 2]
    tracemalloc.start()
    found = release(rows, domain={0: 30_000, 1: 2}, workload=2, epsilon=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**27
    assert zd.verify(found.certificate)


@pytest.mark.slow
@pytest.mark.parametrize("release", [answer_queries, synthesize])
@pytest.mark.parametrize("size", [2, 256])
def test_sixteen_million_cells_are_served(release: Any, size: int) -> None:
    """2^24 cells, as one table and as pairs of columns."""
    columns = round(24 / math.log2(size))
    rows = np.random.default_rng(6).integers(0, size, (100_000, columns))
    for workload in (columns, 2):
        found = release(
            rows, domain=dict.fromkeys(range(columns), size), workload=workload, epsilon=1
        )
        assert zd.verify(found.certificate)
