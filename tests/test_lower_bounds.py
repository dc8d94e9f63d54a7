"""Lower bounds against brute force: linear programs over *all* mechanisms on small datasets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from zerodelta import lower_bounds as lb
from zerodelta.errors import GuaranteeError, ParameterError


def best_success(items: int, rows: int, epsilon: float, delta: float) -> float:
    """The largest p with which an (ε, δ)-DP mechanism outputs i on n copies of i, for every i.

    Variables: P(output | dataset), then p; constraints for every neighboring pair and event. By
    symmetry over the rows a dataset is a multiset.
    """
    data = list(itertools.combinations_with_replacement(range(items), rows))
    place = {d: i * items for i, d in enumerate(data)}
    width = items * len(data) + 1
    upper: list[Any] = []
    bounds: list[float] = []
    for a in data:
        for i, new in itertools.product(range(rows), range(items)):
            b = tuple(sorted((*a[:i], new, *a[i + 1 :])))
            if a == b:
                continue
            for size in range(1, items):
                for event in itertools.combinations(range(items), size):
                    line = np.zeros(width)
                    for y in event:
                        line[place[a] + y] += 1
                        line[place[b] + y] -= math.exp(epsilon)
                    upper.append(line)
                    bounds.append(delta)
    for i in range(items):
        line = np.zeros(width)
        line[-1], line[place[(i,) * rows] + i] = 1, -1
        upper.append(line)
        bounds.append(0)
    equal = np.zeros((len(data), width))
    for d, start in place.items():
        equal[data.index(d), start : start + items] = 1
    goal = np.zeros(width)
    goal[-1] = -1
    found = linprog(
        goal, A_ub=np.array(upper), b_ub=bounds, A_eq=equal, b_eq=np.ones(len(data)), bounds=(0, 1)
    )
    return float(-found.fun)


CASES = [
    (items, rows, epsilon, delta)
    for items, rows in ((2, 2), (2, 4), (3, 2), (3, 3), (4, 2))
    for epsilon in (0.3, 1.0)
    for delta in (0.0, 1e-3, 0.02)
]


@pytest.mark.parametrize(("items", "rows", "epsilon", "delta"), CASES)
def test_no_bound_rules_out_the_best_mechanism_there_is(
    items: int, rows: int, epsilon: float, delta: float
) -> None:
    best = best_success(items, rows, epsilon, delta)
    options: dict[str, Any] = {"epsilon": epsilon, "success": best - 1e-7}
    log_delta = math.log(delta) if delta else None
    assert lb.packing_distance(datasets=items, log_delta=log_delta, **options) <= rows
    assert lb.selection_distance(items=items, log_delta=log_delta, **options) <= rows


@pytest.mark.parametrize("items", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_the_packing_bound_is_attained_at_distance_one(
    items: int, epsilon: float, delta: float
) -> None:
    """Randomized response reaches p + (K-1) e^-ε (p - δ) = 1; any more success is ruled out."""
    best = best_success(items, 1, epsilon, delta)
    log_delta = math.log(delta) if delta else None
    packing = partial(lb.packing_distance, epsilon=epsilon, datasets=items, log_delta=log_delta)
    assert packing(success=best - 1e-6) == 1
    assert packing(success=best + 1e-6) == 2
    if delta == 0:
        assert lb.selection_distance(epsilon=epsilon, items=items, success=best + 1e-6) == 2


def test_a_larger_delta_allows_more() -> None:
    needed = [
        lb.packing_distance(epsilon="1/10", datasets=10**6, success="1/2", log_delta=log_delta)
        for log_delta in (-1000.0, -20.0, -10.0, -2.0)
    ]
    pure = lb.packing_distance(epsilon="1/10", datasets=10**6, success="1/2")
    assert needed[0] == pure == math.ceil(10 * math.log(10**6 - 1))
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] < needed[0]


def test_the_printed_group_privacy_step_is_false_below_ln_2() -> None:
    """A13: δ_h <= δ e^(hε) fails for ε < ln 2, so the printed condition on δ is not enough."""
    epsilon, h = 0.1, 30
    exact = (math.exp(h * epsilon) - 1) / (math.exp(epsilon) - 1)
    assert exact > math.exp(h * epsilon)
    printed = math.log(1 / 6) - h * epsilon
    with pytest.raises(GuaranteeError, match="mean_estimation_rows"):
        lb.packing_mean_theorem(
            epsilon="1/10", dimension=9, accuracy="1/2", rows=h, log_delta=printed
        )


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dimension", [2, 10, 40])
def test_what_the_mean_theorem_rules_out_the_general_calculator_does(
    epsilon: float, dimension: int
) -> None:
    for rows in (1, 5, 20, 100):
        log_delta = math.log(math.expm1(epsilon) / 6) - rows * epsilon - 1e-9
        needed = lb.packing_mean_theorem(
            epsilon=epsilon, dimension=dimension, accuracy="1/2", rows=rows, log_delta=log_delta
        )
        assert needed == pytest.approx(math.log(2) * (dimension - 1) / epsilon)
        if rows < needed:
            general = lb.mean_estimation_rows(
                epsilon=epsilon, dimension=dimension, accuracy="1/2", log_delta=log_delta
            )
            assert rows < general


def test_the_vertices_of_the_l1_ball_are_a_packing() -> None:
    for d in (2, 3, 5):
        points = [[sign * (i == j) for j in range(d)] for i in range(d) for sign in (1, -1)]
        direct = lb.l1_erm_rows(epsilon="1/5", points=points, accuracy="0.707")
        assert direct == lb.l1_vertex_rows(epsilon="1/5", dimension=d, accuracy="0.707")
        assert direct == math.ceil(5 * math.log(2 * d - 1))


@pytest.mark.parametrize(("items", "rows"), [(2, 2), (3, 2), (4, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_contrapositive_recipe_holds_for_every_mechanism(
    items: int, rows: int, epsilon: float
) -> None:
    """From the true pure bound: at the largest δ it names, the best mechanism still fails."""
    mixing_probability = Fraction(1 - best_success(items, rows, epsilon, 0.0)) - Fraction(1, 10**7)
    for kept in (mixing_probability * Fraction(9, 10), mixing_probability / 2):
        bound = lb.from_pure_bound(
            epsilon=epsilon,
            error=1,
            probability=mixing_probability,
            kept_probability=kept,
            outcomes=items,
        )
        best = best_success(items, rows, epsilon, math.exp(bound.log_delta))
        assert 1 - best >= kept - Fraction(1, 10**6)


def test_the_recipe_is_not_idle() -> None:
    """Twenty times the δ it names breaks the bound: the range is of the right size."""
    mixing_probability = Fraction(1 - best_success(3, 2, 1.0, 0.0))
    bound = lb.from_pure_bound(
        epsilon=1,
        error=1,
        probability=mixing_probability,
        kept_probability=mixing_probability / 2,
        outcomes=3,
    )
    assert 1 - best_success(3, 2, 1.0, 20 * math.exp(bound.log_delta)) < mixing_probability / 2


def test_the_rate_of_section_6() -> None:
    """Error c·d/(nε) on a grid that costs half of it, written with ln(1/δ)."""
    d, n, side = 8, 1000, Fraction(1, 2)
    error = Fraction(d, n)
    cells = lb.rounded_cells(dimension=d, side=side, rounding=error / 2)
    assert float(side) * math.sqrt(d) / (2 * round(cells ** (1 / d))) <= float(error / 2)
    bound = lb.from_pure_bound(
        epsilon=1,
        error=error,
        rounding=error / 2,
        probability="1/2",
        kept_probability="1/4",
        outcomes=cells,
    )
    assert bound.error == pytest.approx(float(error / 2))
    constant = bound.rate_constant(rows=n, dimension=d, log_delta=bound.log_delta)
    again = constant * math.sqrt(d * -bound.log_delta) / n
    assert again == pytest.approx(bound.error)
    with pytest.raises(GuaranteeError):
        bound.rate_constant(rows=n, dimension=d, log_delta=bound.log_delta / 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: lb.packing_distance(epsilon=0, datasets=4, success="1/2"),
        lambda: lb.packing_distance(epsilon=1, datasets=1, success="1/2"),
        lambda: lb.packing_distance(epsilon=1, datasets=4, success="1/4"),
        lambda: lb.packing_distance(epsilon=1, datasets=4, success=1),
        lambda: lb.packing_distance(epsilon=1, datasets=4, success="1/2", log_delta=1.0),
        lambda: lb.mean_estimation_rows(epsilon=1, dimension=4, accuracy=1),
        lambda: lb.selection_distance(epsilon=1, items=1, success="1/2"),
        lambda: lb.l1_vertex_rows(epsilon=1, dimension=4, accuracy="0.7072"),
        lambda: lb.l1_erm_rows(epsilon=1, points=[[1, 0], [0, 1], [0.9, 0.2]], accuracy="0.1"),
        lambda: lb.l1_erm_rows(epsilon=1, points=[[1, 0], [0, 1], [-1, 0]], accuracy="0.8"),
        lambda: lb.from_pure_bound(
            epsilon=1, error=1, probability="1/4", kept_probability="1/4", outcomes=4
        ),
        lambda: lb.from_pure_bound(
            epsilon=1, error=1, rounding=1, probability="1/2", kept_probability="1/4", outcomes=4
        ),
    ],
)
def test_calculators_refuse_outside_their_conditions(call: Any) -> None:
    with pytest.raises(ParameterError):
        call()
