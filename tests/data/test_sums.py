"""Sums and counts are exact integers of each row by itself, whatever the rows and the batches."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zerodelta as zd
from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import LARGEST
from zerodelta.data.pieces import StoredColumn, group_codes
from zerodelta.data.rowwise import evaluate, try_function
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint

UNIT = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=1000)
DISC = FixedPoint.ball(dimension=2, bound=1, steps=1000)

TABLES = hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)))


def fragile(rows: Any) -> Any:
    """Works on the whole block, but raises as soon as some row has a large first entry."""
    if (np.abs(rows[:, 0]) > 0.5).any():
        raise ValueError("a secret")
    return rows[:, :1] * 0.5


def exact(table: Any, function: Callable[[Any], Any], lattice: FixedPoint) -> list[int]:
    """The sum by its definition: each row alone, Python integers."""
    total = [0] * lattice.dimension
    for row in table:
        try:
            value = np.asarray(function(row.reshape(1, -1)), dtype=np.float64)
        except ValueError:
            continue
        quantized = lattice.quantize(value.reshape(1, -1))[0].tolist()
        total = [a + b for a, b in zip(total, quantized, strict=True)]
    return total


@given(TABLES, st.integers(1, 31), st.randoms(use_true_random=False))
@pytest.mark.parametrize(
    ("function", "lattice"),
    [
        (lambda rows: rows, DISC),
        (lambda rows: rows[:, 0] * rows[:, 1], UNIT),
        (fragile, UNIT),
    ],
    ids=["identity", "product", "fragile"],
)
def test_the_sum_is_that_of_single_rows_for_every_batch_and_order(
    function: Callable[[Any], Any], lattice: FixedPoint, table: Any, batch: int, random: Any
) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = exact(np.clip(table, -LARGEST, LARGEST), function, lattice)  # as cells are read
    order = list(range(len(table)))
    random.shuffle(order)
    for rows, size in ((table, None), (table, batch), (table[order], batch)):
        source = ArraySource(rows, batch=size)
        assert opened(source).sum(function, lattice).tolist() == expected
        assert opened(source).sum(function, lattice, rowwise=True).tolist() == expected


@given(TABLES, st.lists(st.floats(), min_size=2, max_size=2))
def test_one_row_moves_the_sum_by_at_most_two_bounds(table: Any, row: list[float]) -> None:
    other = table.copy()
    other[0] = row
    for function in (fragile, lambda rows: rows[:, :1]):
        moved = opened(ArraySource(table)).sum(function, UNIT) - opened(ArraySource(other)).sum(
            function, UNIT
        )
        assert abs(int(moved[0])) <= 2 * UNIT.steps


@given(TABLES, st.integers(1, 31), st.randoms(use_true_random=False))
def test_second_moments_are_those_of_single_rows_for_every_batch_and_order(
    table: Any, batch: int, random: Any
) -> None:
    whole = np.where(np.isnan(table).any(axis=1, keepdims=True), np.nan, table)
    rows = DISC.quantize(whole).astype(object)  # a row with a missing number is the zero row
    expected = sum((np.outer(row, row) for row in rows), np.zeros((2, 2), dtype=object))
    order = random.sample(range(len(table)), len(table))
    for source in (ArraySource(table), ArraySource(table[order], batch=batch)):
        assert opened(source).gram([0, 1], DISC).tolist() == expected.tolist()


@given(TABLES, hnp.arrays(np.float64, (2,)))
def test_one_row_moves_second_moments_by_at_most_root_two_squares(table: Any, row: Any) -> None:
    changed = table.copy()
    changed[0] = row
    moved = opened(ArraySource(table)).gram([0, 1], DISC) - opened(ArraySource(changed)).gram(
        [0, 1], DISC
    )
    assert sum(int(entry) ** 2 for entry in moved.flat) <= 2 * DISC.steps**4


def test_complete_rows_are_counted_beside_their_sums_and_their_products() -> None:
    """A row with a missing cell, whichever it is, is in neither."""
    rows = np.array([(0.5, 0.25), (math.nan, 0.5), (0.5, math.nan), (-0.25, 0.5), (0.125, 0.0)])
    own = DISC.quantize(rows[[0, 3, 4]]).astype(object)
    source = opened(ArraySource(rows))
    number, products = source.present_gram([0, 1], DISC)
    assert number == 3
    assert products.tolist() == (own.T @ own).tolist()
    sums = source.present_sums([0, 1], DISC, joint=True)
    assert sums.tolist() == [[3, 3], own.sum(axis=0).tolist()]
    large = FixedPoint.ball(dimension=1, bound=1, steps=2**40)
    number, products = opened(ArraySource(np.ones(3))).present_gram(0, large)
    assert (number, products.tolist()) == (3, [[3 * 2**80]])  # beyond 64 bits
    assert opened(ArraySource(np.ones(3))).gram(0, large).tolist() == [[3 * 2**80]]


def test_a_row_that_raises_counts_as_zero_and_hides_no_other() -> None:
    source = ArraySource(np.array([[0.5], [9.0], [-0.25]]))

    def fails(rows: Any) -> Any:
        if rows.max() > 1:
            sys.exit("a secret")
        return rows

    assert opened(source).sum(fails, UNIT).tolist() == [250]
    assert opened(source).sum(fails, UNIT, rowwise=True).tolist() == [250]


def test_a_row_that_raises_does_not_change_how_others_round() -> None:
    """BLAS rounds a row of a block and the same row alone differently."""
    random = np.random.default_rng(0)
    table, weights = random.normal(size=(200, 50)), random.normal(size=50)
    table[17] = 0

    def score(rows: Any) -> Any:
        if np.isnan(rows).any():
            raise ValueError("a secret")
        return rows @ weights

    bad = table.copy()
    bad[17] = np.nan
    expected = evaluate(score, table, width=1, rowwise=False)
    found = evaluate(score, bad, width=1, rowwise=False)
    assert np.isnan(found[17, 0])
    assert np.delete(found, 17).tolist() == np.delete(expected, 17).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: [[1, 2, 3] if row[0] > 1 else [0.25] for row in rows],  # ragged
        lambda rows: [["text"] if row[0] > 1 else [0.25] for row in rows],  # NumPy reads texts
        lambda rows: [[1j] if row[0] > 1 else [0.25] for row in rows],
        lambda rows: [[10**400] if row[0] > 1 else [0.25] for row in rows],
        lambda rows: [[None] if row[0] > 1 else [0.25] for row in rows],
        lambda rows: [math.nan if row[0] > 1 else 0.25 for row in rows],
        lambda rows: 1 / 0 if (rows > 1).any() else np.full(len(rows), 0.25),
        lambda rows: np.zeros((3, 3)) if (rows > 1).any() else np.full((len(rows), 1), 0.25),
    ],
)
def test_a_row_of_another_shape_or_type_counts_as_zero(function: Callable[[Any], Any]) -> None:
    for batch in (None, 1, 2):
        source = ArraySource(np.array([0.5, 9.0, -0.25]), batch=batch)
        assert opened(source).sum(function, UNIT).tolist() == [500]


def test_a_nan_is_its_own_coordinate_and_an_infinity_an_end() -> None:
    box = FixedPoint.box(dimension=2, lower=-1, upper=1, steps=1000)
    source = ArraySource(np.array([[0.5, math.nan], [math.nan, 0.25], [math.inf, -math.inf]]))
    assert opened(source).sum([0, 1], box).tolist() == [1500, -750]
    assert opened(source).sum([0, 1], box, joint=True).tolist() == [1000, -1000]
    assert opened(source).gram([0, 1], box).tolist() == [[10**6, -(10**6)], [-(10**6), 10**6]]
    assert opened(source).sum(lambda rows: 1 / (rows[:, 0] - 0.5), UNIT).tolist() == [1000]


def test_a_function_cannot_change_the_rows_and_never_warns() -> None:
    table = np.array([[0.5], [0.0]])

    def selfish(rows: Any) -> Any:
        warnings.warn("a secret", stacklevel=1)
        rows /= 0
        return rows

    opened(ArraySource(table)).sum(selfish, UNIT)
    assert table.tolist() == [[0.5], [0.0]]


def test_columns_are_summed_by_position_and_name() -> None:
    source = ArraySource(np.array([[0.5, 0.1], [0.25, 0.1]]))
    assert source.columns == ("0", "1")
    assert opened(source).sum(0, UNIT).tolist() == [750]
    assert opened(source).sum("1", UNIT).tolist() == [200]
    assert opened(source).sum([1, 0], DISC).tolist() == [200, 750]


LARGE = (1 << 16) + 5
"""More rows than floats of half of the bits can add up."""


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(
    ("degree", "bits"),
    [
        *((1, bits) for bits in (20, 36, 37, 38, 45, 46, 47, 48, 52, 53)),
        *((2, bits) for bits in (18, 19, 23, 26, 29, 30, 31, 32)),
        *((3, bits) for bits in (12, 13, 20, 21)),
    ],
)
def test_sums_of_powers_by_group_are_exact_at_every_size(
    degree: int, bits: int, groups: int
) -> None:
    """On both sides of 2^53 and of 2^63; odd numbers, which floats beyond 2^53 do not have."""
    steps = 1 << bits
    lattice = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
    places = np.arange(LARGE)
    k = np.where(places % 11 == 3, -steps, np.where(places % 13 == 3, steps, steps - 1))
    codes = np.where(places % 1000 == 7, groups - 1, 0)  # most rows are in one group
    table = np.column_stack([codes, k / steps])
    found = opened(ArraySource(table)).group_sums(("0",), (groups,), "1", lattice, degree=degree)
    for group in range(groups):
        own, often = np.unique(k[codes == group], return_counts=True)
        pairs = list(zip(own.tolist(), often.tolist(), strict=True))
        powers = [sum(n * each**power for each, n in pairs) for power in range(1, degree + 1)]
        assert found[group].tolist() == [sum(often)] * 2 + powers


@pytest.mark.parametrize("batch", [7, 2**11, None])
@pytest.mark.parametrize("bits", [50, 51, 52, 53])
def test_running_sums_are_exact_where_64_bits_end(bits: int, batch: int | None) -> None:
    """Whatever the batches: in one thread and in several, by rows and by groups."""
    steps, ones = 1 << bits, np.ones((2**13, 2))
    ones[:, 0] = 0
    lattice = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
    source = opened(ArraySource(ones, batch=batch))
    assert source.sum("1", lattice).tolist() == [steps * 2**13]
    assert source.present_sums("1", lattice).tolist() == [[2**13], [steps * 2**13]]
    sums = source.group_sums(("0",), (2,), "1", lattice)
    assert sums.tolist() == [[2**13, 2**13, steps * 2**13], [0, 0, 0]]


def test_a_number_of_rows_that_is_private_decides_nothing() -> None:
    """Neither whether a sum fits, nor the type of a sum, which somebody might look at."""
    fine = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=2**53)
    kinds = {"0": zd.number(-1, 1), "id": zd.number(0, 9999, integer=True)}

    def table(rows: int) -> Any:
        found = np.zeros(rows, dtype=[("0", float), ("id", int)])
        found["0"], found["id"] = 1.0, np.arange(rows)
        return found

    added: dict[str, Any] = {"columns": kinds, "neighbors": "add-remove", "expected_rows": 3}
    unit: dict[str, Any] = {"columns": kinds, "unit": "id", "max_rows": 1}
    for how in (added, unit):
        sums = {
            n: [
                opened(zd.open(table(n), **how)[["0"]]).sum(0, fine),
                opened(zd.open(table(n), **how)[["0"]]).present_sums(0, fine)[1],
                opened(zd.open(table(n), **how)[["0"]]).gram(0, fine)[0],
            ]
            for n in (1, 2**11)
        }
        for few, many in zip(sums[1], sums[2**11], strict=True):
            assert many.tolist() == [2**11 * value for value in few.tolist()]
            assert few.dtype == many.dtype == object


def test_no_rows_give_zero() -> None:
    source = ArraySource(np.zeros((0, 2)))
    assert source.rows == 0
    assert opened(source).sum(lambda rows: rows, DISC).tolist() == [0, 0]
    assert opened(source).counts(0, 3).tolist() == [0, 0, 0]


KEYS = np.array([0.0, 2.0, 2.0, 3.0, -1.0, 1.5, math.nan, math.inf, 1e300])


def test_counts_are_exact_and_say_where_invalid_keys_go() -> None:
    for batch in (None, 1, 4):
        source = ArraySource(KEYS, batch=batch)
        assert opened(source).counts(0, 3).tolist() == [1, 0, 2]
        assert opened(source).counts(0, 3, invalid=1).tolist() == [1, 6, 2]
        assert opened(source).counts(lambda rows: rows[:, 0] + 1, 3).tolist() == [1, 1, 0]


def test_keys_in_a_list_of_values_count_as_the_values_do() -> None:
    """Where the list has no such place, nowhere."""
    found = StoredColumn(np.array([0, 0, 0, 4, 1, 2, 3, 3]), np.array([2.0, 0.0, 0.5, math.nan]))
    assert found.counts(3, None).tolist() == [1, 0, 3]
    assert found.counts(3, 1).tolist() == [1, 3, 3]


def test_a_row_is_in_a_group_if_each_of_its_codes_is_one() -> None:
    first = np.array([0, 1, 1, 2, -0.5, math.nan, 1, math.inf])
    second = np.array([2, 3, 0, 1, 0, 1, -1, 0.0])
    codes, inside = group_codes([first, second], (2, 3), rows=8)
    assert inside.tolist() == [place in (0, 2) for place in range(8)]
    assert codes[inside].tolist() == [2, 3]


@given(hnp.arrays(np.float64, st.integers(1, 20)), st.floats(), st.sampled_from([None, 0, 2]))
def test_one_row_moves_two_counts_by_one(keys: Any, key: float, invalid: int | None) -> None:
    other = keys.copy()
    other[-1] = key
    before = opened(ArraySource(keys)).counts(0, 3, invalid=invalid)
    after = opened(ArraySource(other)).counts(0, 3, invalid=invalid)
    assert int(np.abs(before - after).sum()) <= 2
    if invalid is not None:
        assert int(before.sum()) == len(keys)


def test_keys_that_raise_are_invalid() -> None:
    def key(rows: Any) -> Any:
        return np.array([{0.0: 0, 2.0: 1}[value] for value in rows[:, 0]])

    assert opened(ArraySource(KEYS)).counts(key, 2).tolist() == [1, 2]
    assert opened(ArraySource(KEYS)).counts(key, 2, invalid=0, rowwise=True).tolist() == [7, 2]


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("data", lambda: ArraySource(np.zeros((2, 2, 2)))),
        ("data", lambda: ArraySource(np.zeros(3, dtype="datetime64[s]"))),
        ("data", lambda: ArraySource(5)),
        ("columns", lambda: ArraySource(np.zeros(3), columns=["a"])),
        ("batch", lambda: ArraySource(np.zeros(3), batch=0)),
        ("column", lambda: opened(ArraySource(np.zeros(3))).sum("age", UNIT)),
        ("column", lambda: opened(ArraySource(np.zeros(3))).sum(1, UNIT)),
        ("column", lambda: opened(ArraySource(np.zeros(3))).sum(-1, UNIT)),
        ("columns", lambda: opened(ArraySource(np.zeros((3, 2)))).sum([0, 1], UNIT)),
        ("columns", lambda: opened(ArraySource(np.zeros((3, 2)))).counts([0, 1], 2)),
        ("function", lambda: try_function(lambda rows: rows, 2, width=1)),
        ("function", lambda: try_function(lambda rows: "text", 1, width=1)),
        ("function", lambda: try_function(lambda rows: None, 1, width=1)),
        ("function", lambda: opened(ArraySource(np.zeros(3))).sum(None, UNIT)),  # type: ignore[arg-type]
        ("size", lambda: opened(ArraySource(np.zeros(3))).counts(0, 0)),
        ("invalid", lambda: opened(ArraySource(np.zeros(3))).counts(0, 2, invalid=2)),
    ],
)
def test_bad_parameters_are_named(name: str, ask: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        ask()


# --- what is kept --------------------------------------------------------------------------------


def test_kept_sums_are_those_of_their_own_lattice() -> None:
    """Each named column, lattice and kind of query has its own; the answers are fresh arrays."""
    rng = np.random.default_rng(8)
    table = rng.normal(size=(500, 3))
    table[7, 1] = math.nan
    wide = FixedPoint.box(dimension=1, lower=-9, upper=9, steps=1000)
    pair = FixedPoint.box(dimension=2, lower=-1, upper=1, steps=1000)
    queries: list[Callable[[Any], Any]] = [
        lambda rows: rows.sum(0, UNIT),
        lambda rows: rows.sum("1", UNIT),
        lambda rows: rows.sum(1, wide),
        lambda rows: rows.sum([0, 1], pair),
        lambda rows: rows.sum([1, 0], pair),
        lambda rows: rows.sum([0, 1], pair, joint=True),
        lambda rows: rows.gram([0, 1], DISC),
        lambda rows: rows.sum([0, 1], DISC),
        lambda rows: rows.counts(0, 2),
        lambda rows: rows.counts(0, 3),
        lambda rows: rows.counts(0, 3, invalid=1),
        lambda rows: rows.sum(lambda block: block[:, 0] * 2, UNIT),
    ]
    kept = opened(ArraySource(table, batch=99), keep=True)
    for _ in range(2):
        for query in queries:
            answer = query(kept)
            assert np.array_equal(answer, query(opened(ArraySource(table))))
            answer[...] = 0  # changes nothing that is kept


def test_a_function_that_overwrites_its_block_gets_a_copy_of_it() -> None:
    table = np.random.default_rng(10).normal(size=(50, 2))
    kept = opened(ArraySource(table), keep=True)

    def doubles(rows: Any) -> Any:
        rows *= 2
        return rows[:, 0]

    for _ in range(2):
        twice = kept.sum(doubles, UNIT)
        assert np.array_equal(twice, kept.sum(lambda rows: 2 * rows[:, 0], UNIT))


def test_the_number_of_sums_that_are_kept_is_bounded() -> None:
    kept: Any = opened(ArraySource(np.zeros((3, 1))), keep=True)
    for steps in range(1, 600):
        kept.sum(0, FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps))
    assert len(kept.held.sums) <= 256


def test_features_and_labels_lie_side_by_side() -> None:
    source = ArraySource.with_labels(np.arange(6.0).reshape(3, 2), ["1", "x", 0])
    (block,) = opened(source).blocks()
    assert source.columns == ("0", "1", "2")
    expected = np.array([[0, 1, 1], [2, 3, math.nan], [4, 5, 0]])
    assert np.array_equal(block, expected, equal_nan=True)
    for labels in (np.zeros(2), np.zeros((3, 2))):
        with pytest.raises(ParameterError, match="one label"):
            ArraySource.with_labels(np.zeros((3, 2)), labels)
