"""What a row adds: integers within their bound exactly, whose forms give back the power sums."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reference.row_polynomials import coordinates, weights
from zerodelta.errors import ParameterError
from zerodelta.exact.sums import BernsteinCells, ChebyshevBlock, Form

STEPS = [1, 2, 3, 7, 1 << 20, (1 << 30) - 1]
RNG = np.random.default_rng(0)


def values(steps: int) -> Any:
    ends = [-steps, 1 - steps, -1, 0, 1, steps - 1, steps]
    return np.array([*ends, *RNG.integers(-steps, steps + 1, size=50).tolist()])


def powers(k: Any, degree: int, present: Any = True) -> Any:
    """How many values each row has, and k and k², of the rows that have one."""
    exact = k.astype(np.object_)
    return np.stack([np.where(present, exact**power, 0) for power in range(degree + 1)], axis=1)


def value(form: Form, sums: Any) -> Fraction:
    return sum((a * int(k) for a, k in zip(form, sums, strict=True)), Fraction(0))


@pytest.mark.parametrize("steps", [*STEPS, 1 << 53])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_cells_are_not_negative_and_add_up_to_the_total_exactly(degree: int, steps: int) -> None:
    """Also beyond 64 bits."""
    cells = BernsteinCells(degree=degree, steps=steps)
    found = cells.from_power_sums(powers(values(steps), degree), rows=1)
    assert found.shape == (57, cells.cells)
    assert {sum(map(int, row)) for row in found} == {cells.row_total}
    assert min(map(int, found.ravel())) >= 0


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_forms_give_back_the_power_sums(degree: int, missing: bool) -> None:
    steps = 7
    cells = BernsteinCells(degree=degree, steps=steps, missing_cell=missing)
    k, present = values(steps), RNG.random(57) < 0.7
    sums = weights(cells, k, present).sum(axis=0)
    for power in range(degree + 1):
        expected = sum(Fraction(int(x), steps) ** power for x in k[present])
        assert value(cells.form(power), sums) == expected
    rows = 57 if missing else int(present.sum())
    assert value(cells.rows_form(), sums) == rows


@pytest.mark.parametrize("rows", [None, 57, 10**12])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_power_sums_give_the_same_cells(degree: int, missing: bool, rows: int | None) -> None:
    steps = 1 << 20
    cells = BernsteinCells(degree=degree, steps=steps, missing_cell=missing)
    k, present = values(steps), RNG.random(57) < 0.7
    there = k[present]
    sums = [len(there), there.sum(), (there * there).sum()][: degree + 1]
    absent = [int((~present).sum())] if missing else []
    from_powers = cells.from_power_sums(np.array([[*sums, *absent]]), rows=rows)
    expected = [int(x) for x in weights(cells, k, present).sum(axis=0)]
    assert [int(x) for x in from_powers[0]] == expected


@pytest.mark.parametrize("steps", [*STEPS, 1 << 53])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
def test_no_coordinate_is_beyond_the_bound(degree: int, steps: int, missing: bool) -> None:
    block = ChebyshevBlock(columns=2, degree=degree, steps=steps, missing=missing)
    k = np.stack([values(steps), values(steps)[::-1]], axis=1)
    present = RNG.random(k.shape) < (0.7 if missing else 2)
    of_columns = [powers(k[:, i], degree, present[:, i]) for i in range(2)]
    found = block.from_power_sums(of_columns, np.ones(57, dtype=np.int64))
    assert found.tolist() == coordinates(block, k, present).tolist()
    assert found.shape == (57, block.dimension)
    assert max(abs(int(x)) for x in found.ravel()) == block.row_bound


@pytest.mark.parametrize(
    ("degree", "missing", "counted"),
    [(1, False, True), (2, False, True), (1, True, True), (2, True, True), (2, True, False)],
)
def test_forms_of_a_block_give_back_the_power_sums(
    degree: int, missing: bool, counted: bool
) -> None:
    steps = 7
    block = ChebyshevBlock(
        columns=3, degree=degree, steps=steps, missing=missing, count_rows=counted
    )
    k = RNG.integers(-steps, steps + 1, size=(40, 3))
    present = RNG.random(k.shape) < (0.7 if missing else 2)
    sums = coordinates(block, k, present).sum(axis=0)
    for column, power in itertools.product(range(3), range(degree + 1)):
        there = k[present[:, column], column]
        expected = sum(Fraction(int(x), steps) ** power for x in there)
        assert value(block.form(power, column), sums) == expected
    assert value(block.rows_form(), sums) == (40 if counted else 0)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (BernsteinCells, {"degree": 3}),
        (BernsteinCells, {"degree": -1}),
        (BernsteinCells, {"degree": 1, "steps": 0}),
        (BernsteinCells, {"degree": 1, "steps": 2**53 + 1}),
        (ChebyshevBlock, {"columns": 0, "steps": 1}),
        (ChebyshevBlock, {"columns": 2, "degree": 0, "steps": 1}),
        (ChebyshevBlock, {"columns": 2, "steps": 1, "count_rows": False}),
    ],
)
def test_malformed_polynomials_are_refused(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make(**options)


@pytest.mark.parametrize("rows", [None, 2**22])
def test_power_sums_of_cells_beyond_64_bits_are_exact(rows: int | None) -> None:
    """All rows at the upper end: Σk² is 2^62, and the cells add up to 2^64."""
    cells, powers = BernsteinCells(degree=2, steps=2**20), np.array([[2**22, 2**42, 2**62]])
    assert cells.from_power_sums(powers, rows=rows).tolist() == [[0, 0, 2**64]]
