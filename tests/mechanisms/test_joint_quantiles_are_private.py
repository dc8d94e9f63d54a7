"""Quantiles drawn together: exact laws on all neighbors, in one group and in several."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx

import zerodelta as zd
from exact.joint_laws import joint_law
from purity import assert_pure
from zerodelta.audit.exact import certainly_impure
from zerodelta.errors import CertificateError, GuaranteeError, ParameterError
from zerodelta.mechanisms.joint_quantiles import JointExponential
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.noise import JointQuantiles

F = Fraction
EPSILON = F(3, 4)
LEVELS = {
    "median": ["1/2"],
    "ninth tenth": ["9/10"],
    "thirds": ["1/3", "2/3"],
    "uneven": ["1/10", "1/2"],
    "quarters": ["1/4", "1/2", "3/4"],
    "ends": ["0", "1/2", "1"],
}
each_levels = pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
REPLACE, ADD = Neighbors.REPLACE, Neighbors.ADD_REMOVE


def tables(points: int, sizes: Iterator[int] | range) -> list[tuple[int, ...]]:
    """All multisets of rows: the law does not look at their order."""
    return [
        rows
        for size in sizes
        for rows in itertools.combinations_with_replacement(range(points), size)
    ]


def replacements(keys: list[tuple[int, ...]]) -> list[tuple[Any, Any]]:
    return [
        (a, b)
        for a, b in itertools.combinations(keys, 2)
        if len(a) == len(b) and sum((Counter(a) - Counter(b)).values()) == 1
    ]


def removed(rows: tuple[int, ...], at: int) -> tuple[int, ...]:
    return rows[:at] + rows[at + 1 :]


def laws(mechanism: JointExponential, keys: list[tuple[int, ...]], points: int) -> dict[Any, Any]:
    return {
        rows: joint_law(rows, points, [len(rows) * g for g in mechanism.gaps], mechanism.rate)
        for rows in keys
    }


@each_levels
def test_replaced_rows_cost_epsilon(levels: list[str]) -> None:
    """Also rows that are absent on one side, as where cells are missing."""
    points, keys = 4, tables(4, range(4))
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=levels)
    assert mechanism.rate == EPSILON / 4
    found = laws(mechanism, keys, points)
    absent = [(rows, removed(rows, i)) for rows in keys for i in range(len(rows))]
    assert_pure(found, replacements(keys) + absent, epsilon=EPSILON)


@each_levels
def test_added_rows_cost_epsilon_and_too_large_a_rate_costs_more(levels: list[str]) -> None:
    """The level is a part of the rows: with a whole rank, ⌈qN⌉, the same rate would not do."""
    points, keys = 3, tables(3, range(6))
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=levels, neighbors=ADD)
    assert mechanism.rate == EPSILON / (4 * (1 - min(mechanism.gaps)))
    pairs = [(rows, removed(rows, i)) for rows in keys for i in range(len(rows))]
    assert_pure(laws(mechanism, keys, points), pairs, epsilon=EPSILON)


def loss(
    segments: list[tuple[int, int, int]], rows: tuple[int, int], gaps: Any, rate: Fraction
) -> arb:
    """The largest log-ratio of two laws; segments of points have a width and a rank in each."""
    totals, moves = [arb(0), arb(0)], []
    for path in itertools.combinations_with_replacement(segments, len(gaps) - 1):
        ways = math.prod(math.comb(s[0] + r - 1, r) for s, r in Counter(path).items())
        far = []
        for side in (1, 2):
            count = rows[side - 1]
            ranks = [0, *(segment[side] for segment in path), count]
            steps = zip(ranks, ranks[1:], gaps, strict=False)
            far.append(sum((abs(b - a - count * gap) for a, b, gap in steps), F(0)))
            totals[side - 1] += (-_ball(rate * far[-1])).exp() * ways
        moves.append(far[1] - far[0])
    ratio = (totals[1] / totals[0]).log()
    most: arb = arb.max(_ball(rate * max(moves)) + ratio, _ball(-rate * min(moves)) - ratio)
    return most


def _ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_rate_is_tight_for_replaced_rows(m: int) -> None:
    """Nearly all points are one row short of the aims and gain it; one point moves away."""
    levels, rows = [F(i, m + 1) for i in range(1, m + 1)], 2 * m + 2
    mechanism = JointExponential.for_epsilon(epsilon=2, levels=levels)
    segments = [(10**6, 1, 2), (1, rows - 1, rows), (1, rows, rows)]
    with ctx.workprec(300):
        found = loss(segments, (rows, rows), mechanism.gaps, mechanism.rate)
        assert bool(found <= 2)
        assert float(found) > 1.9999


@pytest.mark.parametrize(
    ("levels", "rows", "segments"),
    [
        (["1/2"], 3, [(10**6, 1, 2), (1, 3, 4)]),
        (["1/3", "2/3"], 9, [(10**6, 1, 2), (10**6, 5, 6), (1, 7, 8), (1, 9, 10)]),
    ],
    ids=["median", "thirds"],
)
def test_the_rate_is_tight_for_added_rows(levels: list[str], rows: int, segments: Any) -> None:
    """And so by group: a row may leave a group where it costs all of that, and join another."""
    mechanism = JointExponential.for_epsilon(epsilon=12, levels=levels, neighbors=ADD)
    with ctx.workprec(300):
        found = loss(segments, (rows, rows + 1), mechanism.gaps, mechanism.rate)
        assert bool(found <= 12)
        assert float(found) > 11.99


def grouped(mechanism: JointExponential, points: int, most: int) -> dict[Any, Any]:
    """Laws of the answers of two groups together, for all tables of so many rows."""
    keys = tables(points, range(most + 1))
    alone = laws(mechanism, keys, points)
    return {
        (a, b): {(o, p): x * y for o, x in alone[a].items() for p, y in alone[b].items()}
        for a in keys
        for b in keys
        if len(a) + len(b) == most
    }


@pytest.mark.parametrize("levels", [["1/2"], ["1/3", "2/3"], ["9/10"]], ids=str)
def test_by_group_a_row_that_changes_groups_costs_epsilon(levels: list[str]) -> None:
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=levels, groups=2)
    assert mechanism.rate == EPSILON / (8 * (1 - min(mechanism.gaps)))
    most = 3
    found = grouped(mechanism, 3, most)
    cells = {key: Counter((g, v) for g, group in enumerate(key) for v in group) for key in found}
    pairs = [
        (a, b)
        for a, b in itertools.combinations(found, 2)
        if sum((cells[a] - cells[b]).values()) == 1
    ]
    assert len(pairs) > 30
    assert_pure(found, pairs, epsilon=EPSILON)


def test_a_whole_rank_in_a_group_costs_more() -> None:
    """k = ⌈qN⌉ moves by 0 or 1 with a row, and then the aim moves against the rows."""
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=["1/2"], neighbors=ADD)

    def law(rows: tuple[int, ...]) -> Any:
        n = len(rows)
        k = F(-(-n // 2))
        return joint_law(rows, 40, [k, n - k], mechanism.rate)

    pairs = [((0, 39, 39), (0, 0, 39, 39)), ((39,), (39, 39))]
    fair = laws(mechanism, [rows for pair in pairs for rows in pair], 40)
    assert_pure(fair, pairs, epsilon=EPSILON, mistake=law)


def test_twice_the_rate_is_caught() -> None:
    """γ = ε/2, as for one score of sensitivity 1, costs up to 2ε."""
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=["1/2"])
    pair = ((0, 39, 39, 40), (0, 0, 39, 39))
    first, second = (joint_law(rows, 41, [F(2), F(2)], EPSILON / 2) for rows in pair)
    assert certainly_impure(first, second, EPSILON)
    assert mechanism.rate < EPSILON / 2


def test_random_places_within_a_cell_cost_nothing() -> None:
    """Every row is moved by itself; the law of the cells is a mixture over all places."""
    mechanism = JointExponential.for_epsilon(epsilon=EPSILON, levels=["1/3", "2/3"])
    cells, places = 2, 2

    def law(rows: tuple[int, ...]) -> dict[Any, Any]:
        total: dict[Any, Any] = {}
        share = F(1, places ** len(rows))
        for moved in itertools.product(range(places), repeat=len(rows)):
            fine = [row * places + place for row, place in zip(rows, moved, strict=True)]
            gaps = [len(rows) * g for g in mechanism.gaps]
            for o, p in joint_law(fine, cells * places, gaps, mechanism.rate).items():
                cell = tuple(point // places for point in o)
                total[cell] = total.get(cell, arb(0)) + p.ball() * _ball(share)
        return total

    with ctx.workprec(200):
        keys = tables(cells, range(2, 3))
        found = {rows: law(rows) for rows in keys}
        assert_pure(found, replacements(keys), epsilon=EPSILON)


@pytest.mark.parametrize(
    ("neighbors", "groups", "epsilon"),
    [(REPLACE, 1, F(1)), (REPLACE, 2, F(3, 2)), (ADD, 1, F(3, 4)), (ADD, 7, F(3, 4))],
)
def test_certificates_say_what_the_theorem_does(
    neighbors: Neighbors, groups: int, epsilon: Fraction
) -> None:
    mechanism = JointExponential.for_epsilon(
        epsilon=epsilon, levels=["1/4", "1/2", "3/4"], groups=groups, neighbors=neighbors
    )
    assert mechanism.rate == F(1, 4)
    claim = PureDP(epsilon, neighbors=neighbors)
    assert mechanism.claim == claim
    certificate = Certificate(claim=claim, steps=(mechanism.step(),))
    assert zd.verify(certificate, epsilon=epsilon, neighbors=neighbors.value) == claim
    less = PureDP(epsilon * F(99, 100), neighbors=neighbors)
    with pytest.raises(CertificateError):
        zd.verify(Certificate(claim=less, steps=(mechanism.step(),)))


def test_gaps_that_cannot_be_are_refused() -> None:
    with pytest.raises(GuaranteeError):
        JointQuantiles(rate=F(1), levels=3, least_gap=F(1, 3), groups=1).cost(ADD)
    step = Step(
        theorem="joint-quantiles",
        numbers={"rate": F(1, 4), "levels": 1, "least_gap": F(3, 4), "groups": 1},
        neighbors=ADD,
    )
    with pytest.raises((CertificateError, GuaranteeError)):
        zd.verify(
            Certificate(claim=PureDP(F(1, 4), neighbors=ADD), steps=(step,)), neighbors="add-remove"
        )
    for levels in ([], ["1/2", "1/2"], ["2/3", "1/3"], ["-1"], ["2"]):
        with pytest.raises(ParameterError):
            JointExponential.for_epsilon(epsilon=1, levels=levels)
