"""Sums by group: the exact law at both ends of the bounds, for every relation; the estimates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.audit.exact import Law, certainly_impure, certainly_pure, rounded_laplace_pmf
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.group_sums import SumPlan, plan_sums
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.verify import verify

HAIR, EPSILON = Fraction(1, 10**30), Fraction(3, 4)
BOUNDS = [(0, 7), (-7, 0), (-2, 5), (-5, 2), (3, 7), (-7, -3), (Fraction(1, 3), Fraction(2, 3))]


def plan_for(bounds: Any, **options: Any) -> SumPlan:
    return plan_sums(bounds=bounds, epsilon=EPSILON, expected_rows=3, **options)


def law(plan: SumPlan, sums: tuple[int, ...]) -> Law:
    """At and beyond both ends, where all ratios are the largest, and between them."""
    far = 3 * max(-plan.lowest, plan.highest)
    places = (-far, plan.lowest, 0, plan.highest, far)
    return {
        outcome: math.prod(
            (
                rounded_laplace_pmf(x - k, scale=plan.noise.scale)
                for x, k in zip(outcome, sums, strict=True)
            ),
            start=1,
        )
        for outcome in itertools.product(places, repeat=len(sums))
    }


def added(plan: SumPlan, rows: int) -> list[tuple[int, ...]]:
    """What a unit of up to `rows` rows can add: both ends in each group, or nothing."""
    groups = range(plan.groups)
    ends = (plan.lowest, plan.highest)
    one = [tuple(end * (g == place) for place in groups) for g in groups for end in ends]
    none = (0,) * plan.groups
    picks = itertools.combinations_with_replacement([*one, none], rows)
    return sorted({tuple(map(sum, zip(*pick, strict=True))) for pick in picks})


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_sums_are_exactly_epsilon(bounds: Any, groups: int, rows: int, relation: Neighbors) -> None:
    plan = plan_for(bounds, groups=groups, unit_rows=rows, neighbors=relation)
    units, none = added(plan, rows), (0,) * groups
    moved = [
        (a, b) for a, b in itertools.combinations(units, 2) if relation is Neighbors.REPLACE
    ] or [(unit, none) for unit in units if unit != none]
    laws = {unit: law(plan, unit) for unit in units}
    assert all(certainly_pure(laws[a], laws[b], EPSILON) for a, b in moved)
    assert any(certainly_impure(laws[a], laws[b], EPSILON - HAIR) for a, b in moved)
    assert verify(Certificate(claim=plan.claim, steps=plan.steps), neighbors=relation) == plan.claim
    assert plan.claim.exact_epsilon == EPSILON


@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_value_adds_what_lies_between_the_bounds_or_nothing(bounds: Any) -> None:
    plan = plan_for(bounds)
    lower, upper = map(float, bounds)
    odd = [math.nan, -math.inf, math.inf, -1e308, 1e308, 0.0, lower, upper, (lower + upper) / 2]
    found = plan.integers(np.array(odd))
    quantum = float(plan.law.unit)  # type: ignore[arg-type]
    expected = [0.0, *(min(max(value, lower), upper) for value in odd[1:])]
    assert found * quantum == pytest.approx(expected, abs=quantum)
    inside = [k for k, value in zip(found.tolist(), odd, strict=True) if not math.isnan(value)]
    assert plan.lowest <= min(inside) <= max(inside) <= plan.highest


def test_the_released_sums_are_those_of_the_rows_with_the_error_that_is_forecast() -> None:
    plan = plan_sums(bounds=(-2, 6), epsilon=2, groups=400, expected_rows=4000)
    rng = np.random.default_rng(2)
    values, group = rng.uniform(-3, 7, 4000), rng.integers(400, size=4000)
    sums = np.zeros(400, dtype=np.int64)
    np.add.at(sums, group, plan.integers(values))
    exact = np.bincount(group, weights=np.clip(values, -2, 6), minlength=400)
    error = plan.apply(sums, ReplayBits("sums")) - exact
    assert np.sqrt(np.mean(error**2)) == pytest.approx(plan.error(), rel=0.25)
    assert plan.error() == pytest.approx(math.sqrt(2) * 2 * 6 / 2)  # b = 2·max/ε


@pytest.mark.parametrize("upper", [0.1, Fraction(10**18 + 1, 7), 1e200, 1e-200])
@pytest.mark.parametrize("groups", [1, 3])
def test_awkward_bounds_release_the_right_numbers(upper: Any, groups: int) -> None:
    plan = plan_sums(bounds=(0, upper), epsilon=1, groups=groups, expected_rows=10)
    rows = 10**15  # so many that the noise is out of sight, and that 64 bits do not hold the sum
    sums = np.array([plan.highest * rows] * groups, dtype=np.object_)
    released = plan.apply(sums, ReplayBits("awkward"))
    assert released == pytest.approx([float(upper) * rows] * groups, rel=1e-9)


@pytest.mark.parametrize(
    ("bounds", "groups", "relation", "error"),
    [
        ((0, 6), 1, Neighbors.REPLACE, 6),
        ((-2, 6), 1, Neighbors.REPLACE, 8),
        ((4, 6), 1, Neighbors.REPLACE, 6),
        ((-2, 6), 9, Neighbors.REPLACE, 12),
        ((-2, 6), 9, Neighbors.ADD_REMOVE, 6),
        ((-2, 6), 1, Neighbors.ADD_REMOVE, 6),
    ],
)
def test_the_scale_is_what_a_row_can_move(
    bounds: Any, groups: int, relation: Neighbors, error: int
) -> None:
    plan = plan_sums(
        bounds=bounds, epsilon=1, groups=groups, expected_rows=10**6, neighbors=relation
    )
    assert plan.error() == pytest.approx(math.sqrt(2) * error, rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"bounds": (1, 1)}, {"bounds": (2, 1)}, {"groups": 0}, {"unit_rows": 0}, {"expected_rows": 0}],
)
def test_malformed_plans_are_refused(options: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1), "expected_rows": 10}
    with pytest.raises(ParameterError):
        plan_sums(**{**usual, **options})
