"""Sums and products of bounded integers equal Python's own, at and around every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerodelta.errors import ParameterError
from zerodelta.exact import sums as exact_sums
from zerodelta.exact.sums import arithmetic, exact_product, exact_sum, exact_total

Array = npt.NDArray[Any]


def python_sum(values: Array) -> list[int]:
    return [sum(column) for column in zip(*values.tolist(), strict=True)]


def python_product(left: Array, right: Array) -> list[list[int]]:
    return [
        [sum(x * y for x, y in zip(a, b, strict=True)) for b in zip(*right.tolist(), strict=True)]
        for a in zip(*left.tolist(), strict=True)
    ]


def adversarial(rows: int, columns: int, bound: int, seed: int) -> Array:
    """Integers at the ends of the range, one off them, and odd ones all over it."""
    random = np.random.default_rng(seed)
    anywhere = random.integers(-bound, bound, size=(rows, columns), endpoint=True) | 1
    ends = np.array([bound, -bound, bound - 1, 1 - bound])[random.integers(4, size=anywhere.shape)]
    mixed = np.where(random.random(anywhere.shape) < 0.5, ends, anywhere)
    mixed[:, 0] = bound  # every partial sum of the first column is as large as it can be
    clipped: Array = np.clip(mixed, -bound, bound)
    return clipped


@pytest.mark.parametrize(
    ("terms", "bound", "expected"),
    [
        (0, 10**30, "float64"),
        (1, 2**53, "float64"),
        (1, 2**53 + 1, "int64"),
        (2**20, 2**33, "float64"),
        (2**20 + 1, 2**33, "int64"),
        (1, 2**63 - 1, "int64"),
        (1, 2**63, "python"),
        (2**10, 2**53 - 1, "int64"),
        (2**10, 2**53, "python"),
    ],
)
def test_arithmetic_changes_exactly_at_2_to_53_and_2_to_63(
    terms: int, bound: int, expected: str
) -> None:
    assert arithmetic(terms, bound) == expected


@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_the_arithmetic_chosen_holds_the_largest_sum(terms: int, bound: int) -> None:
    largest = terms * bound
    chosen = arithmetic(terms, bound)
    if chosen == "float64":
        assert int(float(largest)) == largest <= 2**53
    elif chosen == "int64":
        assert 2**53 < largest <= np.iinfo(np.int64).max
    else:
        assert largest > np.iinfo(np.int64).max


@given(
    rows=st.integers(0, 40),
    columns=st.integers(1, 4),
    bits=st.integers(0, 62),
    offset=st.sampled_from([-1, 0, 1]),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None)
def test_exact_sum_equals_the_sum_of_python_integers(
    rows: int, columns: int, bits: int, offset: int, seed: int
) -> None:
    bound = max(1, 2**bits + offset)
    values = adversarial(rows, columns, bound, seed)
    total = exact_sum(values, bound=bound)
    assert total.tolist() == (python_sum(values) if rows else [0] * columns)
    assert (total.dtype == np.int64) == (rows * bound < 2**63)


@given(
    rows=st.sampled_from([0, 1, 2, 3, 17, 255, 256, 257, 300]),
    bits=st.tuples(st.integers(0, 62), st.integers(0, 62)),
    offset=st.sampled_from([-1, 0, 1]),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=150)
def test_exact_product_equals_the_product_of_python_integers(
    rows: int, bits: tuple[int, int], offset: int, seed: int
) -> None:
    bounds = max(1, 2 ** bits[0] + offset), max(1, 2 ** bits[1] + offset)
    left, right = adversarial(rows, 3, bounds[0], seed), adversarial(rows, 2, bounds[1], seed + 1)
    product = exact_product(left, right, bounds=bounds)
    assert product.tolist() == (python_product(left, right) if rows else [[0, 0]] * 3)
    assert (product.dtype == np.int64) == (rows * bounds[0] * bounds[1] < 2**63)


@pytest.mark.parametrize("bits", [1, 20, 21, 22, 23, 26, 27, 31, 42, 43, 53, 62, 63])
def test_gram_matrix_is_exact_and_symmetric_over_many_blocks(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_sums, "_BLOCK_ENTRIES", 64)
    bound = 2**bits - 1
    values = adversarial(500, 3, bound, bits)
    gram = exact_product(values, values, bounds=(bound, bound))
    assert gram.tolist() == python_product(values, values)
    assert gram.tolist() == gram.T.tolist()
    assert gram.tolist() == exact_product(values, values.copy(), bounds=(bound, bound)).tolist()


@pytest.mark.parametrize("rows", [2048, 2049, 4097])
def test_blocks_of_limbs_stay_exact_at_their_largest(rows: int) -> None:
    bound = 2**63 - 1  # every limb is 2^21 - 1
    values = np.full((rows, 1), bound)
    assert exact_product(values, -values, bounds=(bound, bound)).tolist() == [[-rows * bound**2]]


def test_whole_blocks_are_cut_at_2_to_53() -> None:
    bound = 2**22  # 2^44 a term: 512 rows to a block
    values = np.full((1025, 1), bound)
    values[0] = bound - 1
    assert exact_product(values, values, bounds=(bound, bound)).tolist() == [
        [1024 * bound**2 + (bound - 1) ** 2]
    ]


def test_layout_and_dtype_do_not_matter() -> None:
    values = adversarial(100, 4, 127, 0)
    total, gram = python_sum(values), python_product(values, values)
    wide = np.zeros((200, 8), dtype=np.int64)
    wide[::2, ::2] = values
    for same in (values.astype(np.int8), np.asfortranarray(values), wide[::2, ::2]):
        assert exact_sum(same, bound=127).tolist() == total
        assert exact_product(same, same, bounds=(127, 127)).tolist() == gram


def test_entries_beyond_the_promise_count_as_the_bound_so_one_row_moves_no_more() -> None:
    least = np.iinfo(np.int64).min
    values = np.array([[7, -7], [least, 3]])
    assert exact_sum(values, bound=5).tolist() == [0, -2]
    assert exact_product(values, values, bounds=(5, 5)).tolist() == [[50, -40], [-40, 34]]
    assert exact_product(values, values, bounds=(5, 1)).tolist() == [[10, -10], [-8, 8]]


def test_the_path_depends_on_public_numbers_only() -> None:
    for bound in (1, 2**40, 2**62):
        zeros, full = np.zeros((8, 2), dtype=np.int64), np.full((8, 2), bound)
        assert exact_sum(zeros, bound=bound).dtype == exact_sum(full, bound=bound).dtype
        bounds = (bound, bound)
        empty, most = (exact_product(x, x, bounds=bounds) for x in (zeros, full))
        assert empty.dtype == most.dtype


ONES = np.ones((3, 2), dtype=np.int64)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: exact_sum(ONES, bound=0), "bound"),
        (lambda: exact_sum(ONES, bound=2**63), "bound"),
        (lambda: exact_sum(ONES, bound=1.5), "bound"),  # type: ignore[arg-type]
        (lambda: exact_sum(ONES[0], bound=1), "dimensions of values"),
        (lambda: exact_sum([[1]], bound=1), "dimensions of values"),  # type: ignore[arg-type]
        (lambda: exact_sum(ONES.astype(float), bound=1), "dtype of values"),
        (lambda: exact_sum(ONES.astype(np.uint64), bound=1), "dtype of values"),
        (lambda: exact_product(ONES, ONES[:2], bounds=(1, 1)), "rows of right"),
        (lambda: exact_product(ONES, ONES[0], bounds=(1, 1)), "dimensions of right"),
        (lambda: exact_product(ONES, ONES, bounds=(1, -1)), r"bounds\[1\]"),
        (lambda: exact_product(ONES, ONES, bounds=(2**63, 1)), r"bounds\[0\]"),
        (lambda: exact_product(ONES, ONES, bounds=1), "bounds"),  # type: ignore[arg-type]
        (lambda: arithmetic(-1, 1), "terms"),
    ],
)
def test_bad_parameters_are_refused_by_name(call: Any, name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name}(:| =) "):
        call()


@pytest.mark.parametrize("sign", [1, -1])
def test_parts_of_one_sign_are_added_up_beyond_64_bits(sign: int) -> None:
    parts = [np.array([sign * 2**62, 0]), np.array([sign * 2**62, sign]), np.array([sign, 0])]
    assert exact_total(parts, (2,)).tolist() == [sign * (2**63 + 1), sign]
