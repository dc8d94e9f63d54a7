"""Quantized rows satisfy their bound in Python integers, each by itself, whatever is in them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint, RowRounding
from zerodelta.exact.sums import exact_sum

Array = npt.NDArray[Any]

NORMS = [1, 2, math.inf]
STEPS = [1, 2, 7, 1000, 2**20, 2**31, 2**52 + 1, 2**53]
LARGEST = np.finfo(np.float64).max
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1e-300, 0.5, 1.0, -1.0, np.nextafter(1, 2)]
SPECIAL += [1e300, -1e308, LARGEST, -LARGEST, math.nan, math.inf, -math.inf]


def ball(dimension: int, norm: float, steps: int, **more: Any) -> FixedPoint:
    return FixedPoint.ball(dimension=dimension, bound=1, norm=norm, steps=steps, **more)


def holds(row: list[int], norm: float, steps: int) -> bool:
    """Check the bound in Python integers."""
    if norm == 1:
        return sum(map(abs, row)) <= steps
    if norm == 2:
        return sum(k * k for k in row) <= steps * steps
    return max(map(abs, row)) <= steps


def length(row: list[int], norm: float) -> float:
    if norm == 1:
        return float(sum(map(abs, row)))
    if norm == 2:
        return math.sqrt(sum(k * k for k in row))
    return float(max(map(abs, row)))


def adversarial_rows(dimension: int, seed: int = 0) -> Array:
    """Rows on, just inside and just outside the unit spheres, far away, mixed and not finite."""
    random = np.random.default_rng(seed)
    rows = [np.full(dimension, value) for value in SPECIAL]
    rows += [np.array([value] + [0.0] * (dimension - 1)) for value in SPECIAL]
    rows += [random.choice(SPECIAL[:-3], size=dimension) for _ in range(20)]
    rows += [random.choice(SPECIAL, size=dimension) for _ in range(20)]
    for direction in random.normal(size=(40, dimension)) ** 3:
        for norm in NORMS:
            unit = direction / np.linalg.norm(direction, norm)
            for factor in (1.0, 1 - 2**-53, 1 + 2**-52, 0.3, 1 + 1e-6, 1e5, 1e300):
                rows.append(unit * factor)
    return np.array(rows)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 20, 257])
def test_every_row_satisfies_the_bound_in_python_integers(norm: float, dimension: int) -> None:
    """And no value raises or warns, even when NumPy is told to."""
    rows = adversarial_rows(dimension)
    for steps in STEPS:
        for center in (0, "0.3", -(2**999)):
            with np.errstate(all="raise"):
                integers = ball(dimension, norm, steps, center=center).quantize(rows)
            assert integers.dtype == np.int64
            assert all(holds(row, norm, steps) for row in integers.tolist())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("steps", [3, 2**20, 2**53])
def test_huge_dimension_satisfies_the_bound(norm: float, steps: int) -> None:
    random = np.random.default_rng(0)
    rows = np.stack([np.ones(40_001), random.normal(size=40_001), np.full(40_001, 1e308)])
    for row in ball(40_001, norm, steps).quantize(rows).tolist():
        assert holds(row, norm, steps)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("dimension", [2, 5, 2048])
def test_the_bound_holds_on_both_sides_of_the_int64_threshold(norm: int, dimension: int) -> None:
    most = (2**63 - 1) // dimension
    threshold = most if norm == 1 else math.isqrt(most)
    rows = np.stack([np.ones(dimension), np.arange(dimension) + 1.0, np.full(dimension, -7.0)])
    for steps in {min(threshold, 2**53), min(threshold + 1, 2**53)}:
        for row in ball(dimension, norm, steps).quantize(rows).tolist():
            assert holds(row, norm, steps)
            assert steps - length(row, norm) <= dimension + steps / 2**50


@pytest.mark.parametrize("norm", NORMS)
def test_a_nan_is_the_center_of_its_own_coordinate(norm: float) -> None:
    nan = math.nan
    rows = np.array([[0.5, nan, 0.5], [nan, nan, nan], [9.0, nan, 0.25], [nan, 0.25, 0.25]])
    lattice = ball(3, norm, 100, center=Fraction(1, 4))
    filled = np.where(np.isnan(rows), 0.25, rows)
    assert lattice.quantize(rows).tolist() == lattice.quantize(filled).tolist()
    assert lattice.quantize(rows)[1:].tolist() == [[0, 0, 0], [100, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("norm", NORMS)
def test_an_infinity_is_clipped_like_any_large_number(norm: float) -> None:
    for large in (math.inf, -math.inf):
        rows = np.array([[0.5, large, 0.5], [large, math.nan, 0.25], [large, -large, large]])
        ends = np.clip(rows, -LARGEST, LARGEST)
        lattice = ball(3, norm, 100, center=Fraction(1, 4))
        assert lattice.quantize(rows).tolist() == lattice.quantize(ends).tolist()
        assert abs(lattice.quantize(rows)[1]).tolist() == [100, 0, 0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dimension", [1, 5, 33])
@pytest.mark.parametrize("steps", [2**20, 2**53])  # at 2^53 the last bit of a norm shows
def test_a_row_never_depends_on_order_neighbors_batch_or_layout(
    norm: float, dimension: int, steps: int
) -> None:
    rows = np.tile(adversarial_rows(dimension, seed=1), (3, 1))
    lattice = ball(dimension, norm, steps, center=Fraction(1, 7))
    expected = lattice.quantize(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    assert (lattice.quantize(rows[order]) == expected[order]).all()
    wide = np.full((2 * len(rows), 3 * dimension), math.nan)
    wide[1::2, ::3] = rows
    swapped = rows.astype(rows.dtype.newbyteorder())
    for same in (np.asfortranarray(rows), wide[1::2, ::3], swapped, rows.view(np.matrix)):
        assert (lattice.quantize(same) == expected).all()
    assert (lattice.quantize(rows[::-1])[::-1] == expected).all()
    among = np.insert(rows, np.arange(len(rows)), 1e308, axis=0)
    assert (lattice.quantize(among)[1::2] == expected).all()
    for size in (1, 2, 7, 100):
        parts = [lattice.quantize(rows[i : i + size]) for i in range(0, len(rows), size)]
        assert (np.concatenate(parts) == expected).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint64, np.bool_])
def test_narrow_dtypes_are_read_exactly(dtype: Any) -> None:
    rows = np.random.default_rng(0).integers(0, 100, size=(50, 4)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        rows /= 7
    lattice = FixedPoint.ball(dimension=4, bound=50, steps=2**30)
    assert (lattice.quantize(rows) == lattice.quantize(rows.astype(np.float64))).all()


def test_extended_floats_beyond_float64_count_as_infinite() -> None:
    rows = np.array([[np.longdouble("1e400"), 0]])
    assert ball(2, 2, 10).quantize(rows).tolist() == [[10, 0]]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("steps", [1000, 2**20, 2**30])
def test_rows_inside_the_bound_are_rounded_to_nearest(norm: float, steps: int) -> None:
    random = np.random.default_rng(5)
    center = random.normal(size=6)
    away = random.normal(size=(500, 6))
    away *= 0.9 / np.linalg.norm(away, norm, axis=1, keepdims=True)
    rows = center + away * random.random((500, 1))
    lattice = ball(6, norm, steps, center=center)
    quantum = lattice.quantum
    assert isinstance(quantum, Fraction)
    for row, integers in zip(rows.tolist(), lattice.quantize(rows).tolist(), strict=True):
        for x, c, k in zip(row, center.tolist(), integers, strict=True):
            error = abs(Fraction(x) - Fraction(c) - k * quantum)
            assert error <= quantum * (Fraction(1, 2) + Fraction(steps, 2**50))


def test_ties_go_to_even_so_rounding_has_no_direction() -> None:
    rows = np.array([[0.5], [1.5], [2.5], [-0.5], [-1.5], [-2.5]])
    lattice = FixedPoint.ball(dimension=1, bound=4, quantum=1)
    assert lattice.quantize(rows).ravel().tolist() == [0, 2, 2, 0, -2, -2]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("steps", [10**4, 2**20, 2**40, 2**53])
@pytest.mark.parametrize("factor", [1 + 1e-9, 3.0, 1e150, 1e305])
def test_scaling_keeps_the_direction_and_loses_few_quanta(
    norm: float, steps: int, factor: float
) -> None:
    dimension = 8
    rows = np.random.default_rng(0).normal(size=(200, dimension))
    rows /= np.linalg.norm(rows, norm, axis=1, keepdims=True)
    integers = ball(dimension, norm, steps).quantize(rows * factor)
    for row, found in zip(rows, integers.tolist(), strict=True):
        cosine = float(np.dot(row, found)) / float(np.linalg.norm(row)) / length(found, 2)
        assert cosine >= 1 - (2 * dimension / steps) ** 2 - 1e-14
        lost = dimension if norm == 1 else math.sqrt(dimension)  # one quantum per coordinate
        assert steps - length(found, norm) <= lost + 8 * steps / 2**53


@pytest.mark.parametrize("steps", [5, 5 * 2**40])
def test_rows_exactly_on_the_bound_are_kept_whole(steps: int) -> None:
    on_l2 = np.array([[3.0, -4.0], [5.0, 0.0], [-0.0, -5.0]])
    unit = steps // 5
    lattice = FixedPoint.ball(dimension=2, bound=5, norm=2, steps=steps)
    assert lattice.quantize(on_l2).tolist() == (on_l2 * unit).astype(int).tolist()
    on_l1 = np.array([[2.0, -3.0], [5.0, 0.0]])
    lattice = FixedPoint.ball(dimension=2, bound=5, norm=1, steps=steps)
    assert lattice.quantize(on_l1).tolist() == (on_l1 * unit).astype(int).tolist()


@pytest.mark.parametrize("steps", [1, 1000, 1 << 20, 1 << 40, (1 << 53) - 1, 1 << 53])
@pytest.mark.parametrize("dimension", [1, 3])
def test_the_sum_is_that_of_the_quantized_rows(steps: int, dimension: int) -> None:
    """In floats where a block adds up below 2^53, in integers elsewhere: always the same."""
    rng = np.random.default_rng(3)
    rows = rng.normal(0.3, 2.0, size=(40_001, dimension))
    rows[rng.integers(0, len(rows), 50), 0] = np.resize(
        [math.nan, math.inf, -math.inf, 1e308, -1e308], 50
    )
    boxes = [
        FixedPoint.box(dimension=dimension, lower=-1, upper=2, steps=steps),
        FixedPoint.box(dimension=dimension, lower="-1/3", upper="1e300", steps=steps),
        FixedPoint.ball(dimension=dimension, bound=1, steps=steps),
    ]
    integers = np.arange(300 * dimension, dtype=np.int16).reshape(-1, dimension)
    for lattice in boxes:
        for table in (rows, np.asfortranarray(rows), rows[::-7], rows[:0], integers):
            expected = exact_sum(lattice.quantize(table), bound=steps)
            found = lattice.sum(table)
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()


def test_linf_cuts_each_column_by_itself() -> None:
    lattice = FixedPoint.box(dimension=3, lower=[0, -1, 10], upper=[1, 1, 30], steps=10)
    rows = np.array([[9.0, 0.5, 12.0], [0.0, LARGEST, -LARGEST]])
    assert lattice.quantize(rows).tolist() == [[10, 5, -8], [-10, 10, -10]]


def float_clip(rows: Array, norm: float, steps: int) -> Array:
    """Clip in floats, then round: the usual code, which checks nothing in integers."""
    norms = np.linalg.norm(rows, norm, axis=1, keepdims=True)
    clipped: Array = np.rint(rows * np.minimum(1, 1 / norms) * steps).astype(np.int64)
    return clipped


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("steps", [10, 1000, 2**20])
def test_mutant_clipping_in_floats_only_breaks_the_bound(norm: float, steps: int) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5)) * 3
    broken = [not holds(row, norm, steps) for row in float_clip(rows, norm, steps).tolist()]
    assert sum(broken) > 20
    found = ball(5, norm, steps).quantize(rows)
    assert all(holds(row, norm, steps) for row in found.tolist())


@pytest.mark.parametrize(("norm", "dimension"), [(1, 2), (1, 3), (2, 2), (2, 20)])
def test_mutant_truncating_in_floats_only_breaks_the_bound_at_fine_quanta(
    norm: float, dimension: int
) -> None:
    steps = 2**53
    rows = np.random.default_rng(0).normal(size=(300, dimension))
    unit = rows / np.abs(rows).max(axis=1, keepdims=True)
    scaled = unit * (steps / np.linalg.norm(unit, norm, axis=1, keepdims=True))
    truncated = np.trunc(scaled).astype(np.int64).tolist()
    assert sum(not holds(row, norm, steps) for row in truncated) > 3
    found = ball(dimension, norm, steps).quantize(rows * 100).tolist()
    assert all(holds(row, norm, steps) for row in found)
    assert all(steps - length(row, norm) <= 60 for row in found)


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_shrinking_in_integers_never_moves_a_coordinate_past_zero(dimension: int) -> None:
    rows = np.random.default_rng(0).normal(size=(2000, dimension))
    rows[:, -1] *= 2.0**-52  # one or two quanta, less than a row may have to shrink
    integers = ball(dimension, 2, 2**53).quantize(rows * 100)
    assert (integers * np.sign(rows) >= 0).all()
    assert (integers[:, -1] != 0).any()


def test_mutant_int64_square_wraps_around_where_the_bound_is_verified() -> None:
    steps, dimension = 2**53, 4
    row = np.full((1, dimension), steps, dtype=np.int64)
    with np.errstate(all="ignore"):
        assert int((row * row).sum()) <= steps * steps  # the mutant finds nothing wrong
    rows = np.full((1, dimension), 0.5)
    assert ball(dimension, 2, steps).quantize(rows).tolist() == [[steps // 2] * dimension]
    assert holds(ball(dimension, 2, steps).quantize(rows * 9).tolist()[0], 2, steps)


def test_quantum_lowers_the_bound_to_whole_quanta() -> None:
    lattice = FixedPoint.ball(dimension=2, bound=1, quantum=Fraction(2, 7), norm=1)
    assert (lattice.steps, lattice.bound, lattice.quantum) == (3, Fraction(6, 7), Fraction(2, 7))
    assert lattice == FixedPoint(dimension=2, norm=1, bound=Fraction(6, 7), steps=3)


def test_numpy_integers_do_not_leak_into_exact_arithmetic() -> None:
    big: Any = np.int64(2**62)
    lattice = FixedPoint.ball(dimension=2, bound=big, quantum=big, center=[big, big])
    assert lattice.quantum == 2**62
    assert type(lattice.steps) is int
    assert isinstance(lattice.center, tuple)
    assert sum(lattice.center) * 4 == 2**65
    assert FixedPoint.box(dimension=1, lower=-big, upper=big, steps=1).bound == 2**62


def test_box_serves_all_columns_with_single_numbers() -> None:
    same = FixedPoint.box(dimension=3, lower=0, upper=1, steps=8)
    mixed = FixedPoint.box(dimension=3, lower=[0, 0, 0], upper=1, steps=8)
    assert (same.center, same.bound) == (Fraction(1, 2), Fraction(1, 2))
    assert (mixed.center, mixed.bound) == ((Fraction(1, 2),) * 3, (Fraction(1, 2),) * 3)
    rows = np.random.default_rng(0).random((100, 3))
    assert (same.quantize(rows) == mixed.quantize(rows)).all()


@given(st.lists(st.integers(-(2**80), 2**80), min_size=3, max_size=3), st.integers(0, 2**40))
def test_dequantize_is_the_exact_value_rounded_once(sums: list[int], rows: int) -> None:
    lattice = FixedPoint.box(dimension=3, lower=["0.1", 0, -5], upper=["0.7", 1, 3], steps=7)
    found = lattice.dequantize(np.array(sums, dtype=object), rows=rows)
    centers, quanta = lattice.center, lattice.quantum
    assert isinstance(centers, tuple)
    assert isinstance(quanta, tuple)
    expected = [float(rows * c + q * k) for c, q, k in zip(centers, quanta, sums, strict=True)]
    assert found.tolist() == expected


def test_dequantize_undoes_quantize_on_the_lattice_and_saturates() -> None:
    lattice = FixedPoint.ball(dimension=2, bound=8, norm=math.inf, steps=64, center=[1, -2])
    rows = np.array([[1.125, -3.5], [9.0, 6.0]])
    assert (lattice.dequantize(lattice.quantize(rows)) == rows).all()
    huge = np.array([10**400, -(10**400)], dtype=object)
    assert lattice.dequantize(huge).tolist() == [math.inf, -math.inf]


def box(**changes: Any) -> FixedPoint:
    return FixedPoint.box(**{"dimension": 2, "lower": 0, "upper": 1, "steps": 10, **changes})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ball(0, 2, 10), "dimension"),
        (lambda: ball(2.0, 2, 10), "dimension"),  # type: ignore[arg-type]
        (lambda: ball(2, 3, 10), "norm"),
        (lambda: ball(2, True, 10), "norm"),
        (lambda: ball(2, math.nan, 10), "norm"),
        (lambda: ball(2, 2, 0), "steps"),
        (lambda: ball(2, 2, -1), "steps"),
        (lambda: ball(2, 2, 2**53 + 1), "steps"),
        (lambda: ball(2, 2, 10, quantum=1), "steps, quantum"),
        (lambda: FixedPoint.ball(dimension=2, bound=1), "steps, quantum"),
        (lambda: FixedPoint.ball(dimension=2, bound=1, quantum=2), "quantum"),
        (lambda: FixedPoint.ball(dimension=2, bound=1, quantum=-1), "quantum"),
        (lambda: FixedPoint.ball(dimension=2, bound=1, quantum="1/0"), "quantum"),
        (lambda: FixedPoint.ball(dimension=2, bound=1, quantum="1e-20"), "steps"),
        (lambda: FixedPoint.ball(dimension=2, bound=0, steps=1), "bound"),
        (lambda: FixedPoint.ball(dimension=2, bound=-1, steps=1), "bound"),
        (lambda: FixedPoint.ball(dimension=2, bound=math.nan, steps=1), "bound"),
        (lambda: FixedPoint.ball(dimension=2, bound="1e400", steps=1), "bound"),
        (lambda: FixedPoint.ball(dimension=2, bound="1e-400", steps=1), "bound"),
        (lambda: ball(2, 2, 10, center=[0, 0, 0]), "center"),
        (lambda: ball(2, 2, 10, center=[0]), "center"),
        (lambda: ball(2, 2, 10, center=np.zeros((2, 2))), "center"),
        (lambda: ball(2, 2, 10, center=[0, math.inf]), "center"),
        (lambda: ball(2, 2, 10, center="1e400"), "center"),
        (lambda: FixedPoint(dimension=2, norm=2, bound=(Fraction(1),) * 2, steps=1), "bound"),
        (lambda: box(dimension=0), "dimension"),
        (lambda: box(lower=1, upper=1), "lower, upper"),
        (lambda: box(lower=[0, 2]), "lower, upper"),
        (lambda: box(lower=-math.inf), "lower"),
        (lambda: box(upper=[1, 2, 3]), "upper"),
        (lambda: box().quantize(np.zeros((3, 3))), "shape of rows"),
        (lambda: box().quantize(np.zeros(2)), "shape of rows"),
        (lambda: box().quantize([[0.0, 0.0]]), "dtype of rows"),  # type: ignore[arg-type]
        (lambda: box().quantize(np.array([["a", "b"]])), "dtype of rows"),
        (lambda: box().quantize(np.zeros((1, 2), dtype=complex)), "dtype of rows"),
        (lambda: box().quantize(np.zeros((1, 2), dtype=object)), "dtype of rows"),
        (lambda: box().dequantize(np.zeros(3, dtype=np.int64)), "shape of sums"),
        (lambda: box().dequantize(np.zeros(2, dtype=np.int64), rows=-1), "rows"),
    ],
)
def test_bad_parameters_are_refused_by_name(call: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        call()


def test_a_refused_shape_shows_neither_entries_nor_the_number_of_rows() -> None:
    with pytest.raises(ParameterError) as caught:
        box().quantize(np.full((12345, 3), 6.789))
    assert "12345" not in str(caught.value)
    assert "6.789" not in str(caught.value)


@pytest.mark.parametrize("bits", [20, 25, 26, 27, 28, 30, 40, 52, 53])
@pytest.mark.parametrize("norm", [1, 2])
def test_the_nearest_points_outside_are_not_taken_for_points_inside(bits: int, norm: float) -> None:
    """One quantum beside the longest row: floats cannot tell 2^54 + 1 from 2^54."""
    steps = 1 << bits
    lattice = FixedPoint.ball(dimension=3, bound=1, norm=norm, steps=steps)
    small = 2.0**-bits
    rows = np.array([[1, small, 0], [1, -small, small], [small, -1, 0], [1, 2 * small, 9 * small]])
    for row in lattice.quantize(rows).tolist():
        assert sum(abs(k) ** int(norm) for k in row) <= steps ** int(norm)


@pytest.mark.parametrize("bits", [15, 19, 20, 21, 22, 23])
def test_a_gram_matrix_of_odd_numbers_is_exact_where_floats_end(bits: int) -> None:
    steps, count = 1 << bits, 1 << 15
    lattice = FixedPoint.ball(dimension=1, bound=1, steps=steps)
    k = steps - 1 - 2 * np.random.default_rng(bits).integers(0, steps >> 6, size=count)
    for part in (count, count // 2 + 1, count // 3):
        total = sum(each * each for each in k[:part].tolist())
        assert lattice.gram(k[:part, None] / steps).tolist() == [[total]]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("center", [0, Fraction(1, 7)])
@pytest.mark.parametrize("steps", [2**22, 2**53])
def test_rows_at_every_border_of_a_decision_are_mapped_by_themselves(
    norm: float, center: Any, steps: int
) -> None:
    """A row is clearly inside, clearly outside or looked at again; no sum may depend on others."""
    dimension = 19
    lattice, draw = ball(dimension, norm, steps, center=center), np.random.default_rng(4)
    band = (dimension + 8) * 2.0**-50 / 2  # half of the relative error of a square
    directions = draw.normal(size=(300, dimension))
    directions /= np.linalg.norm(directions, norm, axis=1, keepdims=True)
    lengths = (
        np.array([1 - band, 1, 1 + band, 3, 5, 1e9])[:, None, None]
        + draw.integers(-4, 5, (300, 1)) * 2**-53
    )
    rows = float(center) + (directions * lengths).reshape(-1, dimension)
    together = lattice.quantize(rows)
    assert (lattice.quantize(np.asfortranarray(rows)) == together).all()
    alone = [lattice.quantize(rows[i : i + 1])[0] for i in range(len(rows))]
    assert (np.array(alone) == together).all()


@pytest.mark.parametrize("norm", [1, 2])
def test_the_length_that_a_row_is_scaled_by_is_added_in_one_order(norm: float) -> None:
    rows = np.random.default_rng(3).normal(size=(19, 300))
    one = np.ones((1, 1))
    rounding = RowRounding(dimension=19, norm=norm, steps=2**53, center=0 * one, quantum=one)
    by_lines = rounding._scaled_to_bound(np.ascontiguousarray(rows))
    assert (rounding._scaled_to_bound(np.asfortranarray(rows)) == by_lines).all()


def test_a_row_that_rounding_takes_outside_is_rounded_toward_zero() -> None:
    """The nearest integers 4, 4, 2, 1 add up to 11."""
    assert ball(4, 1, 10).quantize(np.array([[0.36, 0.36, 0.21, 0.07]])).tolist() == [[3, 3, 2, 0]]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bits", [36, 43, 45, 46])
def test_the_sum_of_many_rows_is_exact_where_floats_end(norm: float, bits: int) -> None:
    """A block is cut so that floats hold the sum of its integers, whatever their order."""
    rows = np.random.default_rng(6).uniform(0.5, 1, size=(30_000, 1))
    lattice = ball(1, norm, 2**bits - 1)
    expected = sum(lattice.quantize(rows)[:, 0].tolist())
    assert expected > 2**50
    assert lattice.sum(rows).tolist() == [expected]
