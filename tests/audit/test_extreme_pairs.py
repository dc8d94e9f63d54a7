"""The vertices found are all vertices: against brute force over bases, and by their meaning."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from flint import fmpq, fmpq_mat

from zerodelta.audit.exact import (
    ExpRational,
    Pmf,
    certainly_impure,
    certainly_pure,
    extreme_pairs,
    hockey_stick,
)
from zerodelta.errors import ParameterError

CASES = [
    (Fraction(1), Fraction(1, 10)),
    (Fraction(2), Fraction(1, 10)),
    (Fraction(3, 2), Fraction(0)),
    (Fraction(5, 4), Fraction(1, 2)),
    (Fraction(4), Fraction(1)),
]
EACH = pytest.mark.parametrize(("factor", "delta"), CASES)


def inequalities(
    size: int, factor: Fraction, delta: Fraction
) -> list[tuple[list[Fraction], Fraction]]:
    """Rows (a, b) of a·x <= b in P and P' without their last coordinates, which sum to 1."""
    full: list[tuple[list[Fraction], Fraction]] = []
    for i in range(2 * size):
        full.append(([Fraction(-(i == j)) for j in range(2 * size)], Fraction(0)))
    for subset in itertools.product((0, 1), repeat=size):
        if any(subset):
            ahead = [Fraction(s) for s in subset]
            behind = [-factor * s for s in subset]
            full.append((ahead + behind, delta))
            full.append((behind + ahead, delta))
    reduced = []
    for row, bound in full:
        p, q = row[:size], row[size:]
        short = [x - p[-1] for x in p[:-1]] + [x - q[-1] for x in q[:-1]]
        reduced.append((short, bound - p[-1] - q[-1]))
    return reduced


def brute_force(size: int, factor: Fraction, delta: Fraction) -> set[tuple[Pmf, Pmf]]:
    rows = inequalities(size, factor, delta)
    dimension = 2 * size - 2
    found: set[tuple[Pmf, Pmf]] = set()
    for basis in itertools.combinations(rows, dimension):
        matrix = fmpq_mat(
            dimension, dimension, [fmpq(x.numerator, x.denominator) for a, _ in basis for x in a]
        )
        if matrix.det() == 0:
            continue
        right = fmpq_mat(dimension, 1, [fmpq(b.numerator, b.denominator) for _, b in basis])
        x = [Fraction(int(v.p), int(v.q)) for v in matrix.solve(right).entries()]
        if all(sum((c * v for c, v in zip(a, x, strict=True)), Fraction(0)) <= b for a, b in rows):
            p, q = x[: size - 1], x[size - 1 :]
            found.add(((*p, Fraction(1 - sum(p))), (*q, Fraction(1 - sum(q)))))
    return found


@EACH
@pytest.mark.parametrize("size", [2, 3])
def test_all_vertices_are_found(size: int, factor: Fraction, delta: Fraction) -> None:
    pairs = extreme_pairs(size, factor, delta)
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == brute_force(size, factor, delta)


@EACH
@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_pair_is_epsilon_delta_private_both_ways(
    size: int, factor: Fraction, delta: Fraction
) -> None:
    pairs = extreme_pairs(size, factor, delta)
    for p, q in pairs:
        assert sum(p) == sum(q) == 1
        assert min(p + q) >= 0
        laws = dict(enumerate(p)), dict(enumerate(q))
        stick = hockey_stick(*laws, epsilon_exp=factor)
        assert isinstance(stick, ExpRational)
        assert stick <= delta
        assert (q, p) in pairs
        if delta == 0:
            assert certainly_pure(*laws, epsilon_exp=factor)
    if delta > 0:
        assert any(
            certainly_impure(dict(enumerate(p)), dict(enumerate(q)), epsilon_exp=10**9)
            for p, q in pairs
        )


@EACH
def test_four_outcomes_contain_the_vertices_of_three(factor: Fraction, delta: Fraction) -> None:
    """A face of the larger polytope: an outcome of probability 0 under both laws."""
    padded = {((*p, Fraction(0)), (*q, Fraction(0))) for p, q in extreme_pairs(3, factor, delta)}
    assert padded <= set(extreme_pairs(4, factor, delta))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("size", (0, 2, 0)),
        ("epsilon_exp", (2, "1/2", 0)),
        ("delta", (2, 2, "3/2")),
        ("delta", (2, 2, -1)),
    ],
)
def test_bad_parameters_are_named(name: str, arguments: tuple[int, object, object]) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        extreme_pairs(*arguments)  # type: ignore[arg-type]
