"""Moments by group: estimates are those of the rows without noise, forecasts what is measured."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from data.opening import opened
from mechanisms.estimates import estimate, forecast
from reference.row_polynomials import coordinates, weights
from sampling import replaced
from zerodelta.data.arrays import ArraySource
from zerodelta.data.keys import Bins, GroupKey, GroupKeys
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.sums import BernsteinCells
from zerodelta.mechanisms.moments import MomentPlan, plan_moments
from zerodelta.mechanisms.partition_noise import (
    BlockNoise,
    PartitionNoise,
    power_sums,
    present_counts,
)
from zerodelta.mechanisms.sum_noise import CountNoise
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import expected_count
from zerodelta.privacy.verify import verify

F = Fraction
GROUPS, N = 3, 300
BOUNDS: list[tuple[Any, Any]] = [(-2, 6), (0, 1), (10, 50)]
RNG = np.random.default_rng(1)
GROUP = RNG.integers(GROUPS, size=N)
VALUES = np.stack([RNG.uniform(low, high, N) for low, high in BOUNDS], axis=1)
PRESENT = RNG.random(VALUES.shape) < 0.8


def plan_for(columns: int, **options: Any) -> MomentPlan:
    usual: dict[str, Any] = {"epsilon": 1, "groups": GROUPS, "expected_rows": N}
    return plan_moments(bounds=BOUNDS[:columns], **{**usual, **options})


def sums_of(plan: MomentPlan, present: Any) -> Any:
    """Add up what each row adds to its group, as the data room does."""
    columns = plan.lattice.dimension
    k = plan.lattice.quantize(VALUES[:, :columns])
    if isinstance(plan.row, BernsteinCells):
        added = weights(plan.row, k[:, 0], present[:, 0])
    else:
        added = coordinates(plan.row, k, present[:, :columns])
    return np.stack([added[g == GROUP].sum(axis=0) for g in range(GROUPS)])


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("counted", [False, True])
def test_without_noise_the_estimates_are_those_of_the_rows(
    columns: int, degree: int, counted: bool
) -> None:
    plan = plan_for(columns, degree=degree, count_rows=counted)
    moments = estimate(plan, sums_of(plan, PRESENT).reshape(-1))
    assert (moments.variance is None) == (degree == 1)
    for g, column in itertools.product(range(GROUPS), range(columns)):
        own = VALUES[(g == GROUP) & PRESENT[:, column], column]
        width = BOUNDS[column][1] - BOUNDS[column][0]
        rounding = width / (2 * plan.lattice.steps)  # half of half a quantum, for a value
        assert moments.count[g, column] == len(own)
        assert moments.mean[g, column] == pytest.approx(own.mean(), abs=rounding)
        assert moments.sum[g, column] == pytest.approx(own.sum(), abs=rounding * len(own))
        if moments.variance is not None:
            assert moments.variance[g, column] == pytest.approx(own.var(), abs=2 * width * rounding)
    rows = np.bincount(GROUP, minlength=GROUPS)
    present = np.bincount(GROUP[PRESENT[:, 0]], minlength=GROUPS)
    if columns == 1:  # a row without a value has a cell of its own, or none
        assert moments.rows.tolist() == (rows if counted else present).tolist()
    else:
        assert moments.rows.tolist() == rows.tolist() if counted else np.isnan(moments.rows).all()


def test_columns_read_together_add_up_to_what_they_do_one_by_one() -> None:
    plan = plan_for(3, groups=1)
    rows = opened(ArraySource(np.where(PRESENT, VALUES, np.nan), missing="skip", batch=70))
    added = coordinates(plan.row, plan.lattice.quantize(VALUES), PRESENT)  # type: ignore[arg-type]
    assert plan.measure(rows, [0, 1, 2]).tolist() == [added.sum(axis=0).tolist()]
    assert present_counts(rows, ["2", "0"]).tolist() == PRESENT[:, [2, 0]].sum(axis=0).tolist()


MIXED: list[tuple[tuple[int, ...], tuple[bool, ...]]] = [
    ((2, 1, 0), (True, False, True)),
    ((0, 2, 1), (False, False, False)),
    ((1, 1, 2), (False, True, True)),
]


@pytest.mark.parametrize(("degrees", "missing"), MIXED)
def test_columns_of_different_degrees_give_what_theirs_allows(
    degrees: tuple[int, ...], missing: tuple[bool, ...]
) -> None:
    plan = plan_for(3, degree=degrees, missing=missing, count_rows=True)
    present = PRESENT | ~np.array(missing)
    moments = estimate(plan, sums_of(plan, present).reshape(-1))
    assert moments.rows.tolist() == np.bincount(GROUP, minlength=GROUPS).tolist()
    for g, column in itertools.product(range(GROUPS), range(3)):
        own = VALUES[(g == GROUP) & present[:, column], column]
        wanted = [own.sum(), own.mean(), own.var()]
        assert moments.variance is not None
        found = [each[g, column] for each in (moments.sum, moments.mean, moments.variance)]
        known = (0, 2, 3)[degrees[column]]
        assert moments.count[g, column] == len(own)
        assert found[:known] == pytest.approx(wanted[:known], rel=1e-3)
        assert np.isnan(found[known:]).all()
    expected = forecast(plan)
    assert (np.isnan(expected.mean) == (np.array(degrees) == 0)).all()


@pytest.mark.parametrize("degree", [1, 2, (2, 1), (1, 1)])
@pytest.mark.parametrize("missing", [False, True])
def test_a_known_number_of_rows_gets_no_noise(degree: Any, missing: bool) -> None:
    """One sum is left out before the noise, and follows from the others, whatever noise these get.

    Not for one column with missing values: then no total is known.
    """
    columns = len(degree) if isinstance(degree, tuple) else 1
    absent = (missing, False)[:columns]
    options: dict[str, Any] = {"degree": degree, "missing": absent, "groups": 1}
    plan = plan_for(columns, known_rows=N, **options)
    plain = plan_for(columns, count_rows=True, **options)
    assert (plan.known_rows is None) == (columns == 1 and missing)
    if plan.known_rows is None:
        return
    present = PRESENT[:, :columns] | ~np.array(absent)
    k = plan.lattice.quantize(VALUES[:, :columns])
    added = (
        weights(plan.row, k[:, 0], present[:, 0])
        if isinstance(plan.row, BernsteinCells)
        else coordinates(plan.row, k, present)
    )
    sums = added.sum(axis=0)[None, :]
    quiet: dict[str, Any] = {
        name: lambda **_: np.zeros(sums.size - 1, dtype=int)
        for name in ("rounded_count_noise", "discrete_laplace", "rounded_k_norm")
    }
    with replaced(quiet):
        noisy = plan.noisy(sums, ReplayBits("not read"))
    assert len(noisy) == sums.size - 1
    shift = 10**9 * np.arange(1, len(noisy) + 1)
    same, other = estimate(plan, noisy), estimate(plan, noisy + shift)
    whole = estimate(plain, sums.reshape(-1))
    assert same.rows.tolist() == other.rows.tolist() == [N]
    assert np.array_equal(same.mean, whole.mean)
    assert not np.array_equal(same.mean, other.mean)
    for column in range(columns):
        for power, form in enumerate(plan.forms(column)):
            value = sum(a * int(x) for a, x in zip(form, [*noisy, 1], strict=True))
            exact = sum(
                F(int(x), plan.lattice.steps) ** power for x in k[present[:, column], column]
            )
            assert value == exact
    errors = forecast(plan)
    assert float(errors.rows) == 0
    assert (errors.mean < forecast(plain).mean).all()


@pytest.mark.parametrize("columns", [1, 2])
def test_a_count_that_is_not_positive_gives_the_middle(columns: int) -> None:
    plan = plan_for(columns, degree=2)
    size = GROUPS * (plan.row.cells if columns == 1 else plan.row.dimension)  # type: ignore[union-attr]
    for noisy in (np.zeros(size, dtype=np.int64), np.full(size, -5)):
        moments = estimate(plan, noisy)
        assert moments.mean[:, 0].tolist() == [2.0] * GROUPS
        assert moments.variance is not None
        assert moments.variance[:, 0].tolist() == [8.0] * GROUPS  # half of 4², the largest


def test_estimates_stay_where_they_can_be_and_never_wrap_around() -> None:
    plan = plan_for(1, degree=2)
    for cells in itertools.product((-(2**63), -1, 0, 1, 2**63 - 1, 10**40), repeat=3):
        noisy = np.array([*cells] * GROUPS, dtype=np.object_)
        moments = estimate(plan, noisy)
        assert moments.variance is not None
        assert ((moments.mean >= -2) & (moments.mean <= 6)).all()
        assert ((moments.variance >= 0) & (moments.variance <= 16)).all()
        exact = F(sum(cells), plan.row.row_total)  # type: ignore[union-attr]
        assert moments.count[0, 0] == pytest.approx(float(exact), rel=1e-12)
    wide = estimate(plan, np.array([2**63 - 1] * 9))
    assert wide.count[0, 0] == pytest.approx(3 * 2**63 / plan.row.row_total)  # type: ignore[union-attr]


@pytest.mark.parametrize("upper", [1e300, 1e-280, 0.1])
def test_awkward_bounds_raise_nothing(upper: float) -> None:
    plan = plan_moments(bounds=[(0, upper)], epsilon=1, degree=2, expected_rows=10)
    for cells in itertools.product((-5, 0, 10**30), repeat=3):
        moments = estimate(plan, np.array(cells, dtype=np.object_))
        assert 0 <= moments.mean[0, 0] <= upper
    assert float(forecast(plan).mean[0]) <= upper


@pytest.mark.parametrize("columns", [1, 3])
def test_noisy_sums_have_the_noise_of_the_plan_to_the_sums(columns: int) -> None:
    plan = plan_for(columns)
    sums = sums_of(plan, PRESENT)
    quiet: dict[str, Any] = {
        "rounded_count_noise": lambda **_: np.ones(sums.size, dtype=int),
        "rounded_k_norm": lambda **_: np.ones(sums.shape, dtype=int),
    }
    with replaced(quiet):
        moments = estimate(plan, plan.noisy(sums, ReplayBits("not read")))
    expected = estimate(plan, sums.reshape(-1) + 1)
    assert np.array_equal(moments.mean, expected.mean)
    assert np.array_equal(moments.count, expected.count)


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize("unit_rows", [1, 4])
@pytest.mark.parametrize(("columns", "groups"), [(1, 1), (1, 20), (2, 20)])
def test_the_steps_prove_epsilon_and_no_less(
    columns: int, groups: int, unit_rows: int, relation: Neighbors
) -> None:
    plan = plan_for(columns, groups=groups, unit_rows=unit_rows, neighbors=relation, epsilon="1/3")
    assert plan.claim.exact_epsilon == F(1, 3)
    proof = Certificate(claim=plan.claim, steps=plan.steps)
    assert verify(proof, epsilon="1/3", neighbors=relation)
    assert plan.law.scale == plan.noise.scale
    joint = columns == 1 and groups == 1 and relation is Neighbors.REPLACE
    assert (plan.law.family == "counts") == joint


@pytest.mark.parametrize(("groups", "share"), [(1, 1), (20, 2)])
def test_the_expected_number_of_rows_changes_the_resolution_and_not_the_noise(
    groups: int, share: int
) -> None:
    """At ε = 1 the scale is M for one joint draw (P2) and 2M for independent ones (P1)."""
    for n in (1, 10**3, 10**9, 10**15):
        noise = plan_for(1, groups=groups, expected_rows=n).noise
        assert isinstance(noise, PartitionNoise)
        assert noise.scale == share * noise.row_total


@pytest.mark.parametrize("n", [1, 1000, 10**6, 10**9])
@pytest.mark.parametrize("degree", [1, 2])
def test_sums_of_the_expected_rows_fit_64_bits(degree: int, n: int) -> None:
    row = plan_for(1, degree=degree, expected_rows=n).row
    assert isinstance(row, BernsteinCells)
    assert row.row_total * n < 2**63


# Forecasts.


def variances(noise: Any, row: Any) -> list[float]:
    return [noise.covariance(row.form(power), row.form(power)) for power in range(3)]


def test_the_variances_are_those_of_theory() -> None:
    """In units of 1/ε²: Bernstein 24, 16, 24; block 26.7, 26.7, 13.3; ungrouped pairs 10/3, 10."""
    fine = BernsteinCells(degree=2, steps=1 << 20)
    options: dict[str, Any] = {"epsilon": 1, "row_total": fine.row_total, "method": "laplace"}
    laplace = PartitionNoise.for_epsilon(cells=300, **options)
    assert variances(laplace, fine) == pytest.approx([24, 16, 24])
    two = plan_for(1, groups=1)
    forms = [two.row.form(power, 0) for power in (0, 1)]
    assert [two.noise.covariance(f, f) for f in forms] == pytest.approx([10 / 3, 10])
    several = plan_for(2, degree=2, missing=False)
    assert isinstance(several.noise, BlockNoise)
    each = 4 * 6 * 7 / 3  # d = 5 coordinates, b = 2/ε
    forms = [several.row.form(power, 1) for power in range(3)]
    found = [several.noise.covariance(f, f) for f in forms]
    assert found == pytest.approx([each, each, each / 2])


@pytest.mark.parametrize("p", range(1, 41))
def test_the_joint_draw_has_the_variance_and_the_correlation_of_p2(p: int) -> None:
    """E over the number k of positive coordinates, each part uniform in a simplex: exactly."""
    weights = [F(math.comb(p, k) ** 2, math.comb(2 * p, p)) for k in range(p + 1)]

    def squares(k: int) -> Fraction:
        return F(2 * k, (k + 1) * (k + 2))

    def products(k: int) -> Fraction:
        return F(k * (k - 1), (k + 1) * (k + 2))

    radius = (p + 1) * (p + 2)
    square = sum(w * (squares(k) + squares(p - k)) for k, w in enumerate(weights)) * radius / p
    noise = PartitionNoise.for_epsilon(epsilon=1, cells=p, method="k-norm")
    assert noise.covariance([1], [1]) == pytest.approx(float(square), rel=1e-12)
    if p > 1:
        across = [F(k, k + 1) * F(p - k, p - k + 1) for k in range(p + 1)]
        both = [products(k) + products(p - k) - 2 * across[k] for k in range(p + 1)]
        mixed = sum(w * x for w, x in zip(weights, both, strict=True)) * radius / (p * (p - 1))
        assert mixed == -square / p
        assert noise.covariance([1, 0], [0, 1]) == pytest.approx(float(mixed), rel=1e-12)


@pytest.mark.parametrize(("columns", "degree", "groups"), [(1, 1, 1), (1, 2, 40), (2, 2, 40)])
def test_forecasts_are_the_errors_that_are_measured(columns: int, degree: int, groups: int) -> None:
    """Rows anywhere between the bounds, values close together; 1.2 is 5 standard errors."""
    bounds = [(-1, 1), (-3, 5)][:columns]
    rows, runs = 1000, 2400 // groups
    plan = plan_moments(
        epsilon=1, bounds=bounds, degree=degree, groups=groups, expected_rows=rows * groups
    )
    rng, bits, errors = np.random.default_rng(5), ReplayBits("forecasts"), []
    for _ in range(runs):
        k = rng.integers(-plan.lattice.steps, plan.lattice.steps + 1, size=(groups, columns))
        one = (
            weights(plan.row, k[:, 0])
            if isinstance(plan.row, BernsteinCells)
            else coordinates(plan.row, k)
        )
        moments = estimate(plan, plan.noisy(one * rows, bits))
        center = np.array([(a + b) / 2 for a, b in bounds])
        half = np.array([(b - a) / 2 for a, b in bounds])
        true = center + half * k / plan.lattice.steps
        found = [moments.count - rows, moments.sum - rows * true, moments.mean - true]
        errors.append([*found, moments.variance] if moments.variance is not None else found)
    expected = forecast(plan)
    predicted = [expected.count, expected.sum, expected.mean, expected.variance]
    for place, wanted in enumerate(predicted[: len(errors[0])]):
        assert wanted is not None
        measured = np.sqrt(np.mean([np.square(run[place]) for run in errors], axis=(0, 1)))
        # a variance is cut off at 0, where these are: half of its error shows
        ratio = measured / wanted * (math.sqrt(2) if place == 3 else 1)
        assert (np.abs(np.log(ratio)) < math.log(1.2)).all(), (place, ratio)


def test_the_forecast_never_exceeds_what_the_middle_does() -> None:
    expected = forecast(plan_for(1, degree=2, expected_rows=3, epsilon="1/1000"))
    assert float(expected.mean[0]) == 4
    assert expected.variance is not None
    assert float(expected.variance[0]) == 8


def test_the_variance_and_the_error_of_discrete_laplace_noise_are_exact() -> None:
    """Σ k² P(k) and Σ |k| P(k) of the law itself, far into its tail."""
    for scale in (0.3, 1.0, 4.0):
        noise = PartitionNoise.for_epsilon(epsilon=1 / F(scale), cells=1)
        reach, peak = range(1, 400), math.tanh(0.5 / scale)  # P(0) = (1-q)/(1+q)
        variance, error = (
            sum(2 * k**power * peak * math.exp(-k / scale) for k in reach) for power in (2, 1)
        )
        assert noise.covariance([1], [1]) == pytest.approx(variance, rel=1e-9)
        assert noise.error() == pytest.approx(error, rel=1e-9)
    none = PartitionNoise.for_epsilon(epsilon=10**6, cells=1)
    assert none.covariance([1], [1]) == none.error() == 0
    joint = PartitionNoise.for_epsilon(epsilon="1/2", cells=3)
    assert joint.error() == CountNoise.for_epsilon(epsilon="1/2", dimension=3).error()


def test_a_whole_number_errs_by_no_more_than_its_square() -> None:
    """Forecasts of counts stay within 1.5 of the error, where noise is mostly 0 too."""
    for rate in (F(1, 10), F(1), F(2), F(17, 10), F(5)):
        noise = PartitionNoise.for_epsilon(epsilon=rate, cells=1)
        ratio = expected_count(noise.covariance([1], [1]) ** 0.5) / noise.error()
        assert 1 <= ratio < 1.5


# Public inputs.


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": [], "degree": (1,)},
        {"degree": -1},
        {"degree": (1, 2)},
        {"bounds": [(0, 1)] * 2, "degree": 0},
        {"known_rows": 10, "neighbors": Neighbors.ADD_REMOVE},
        {"known_rows": 10, "missing": False, "groups": 2},
        {"degree": 3},
        {"groups": 0},
        {"expected_rows": 0},
        {"epsilon": 0},
        {"unit_rows": 0},
        {"method": "gaussian"},
        {"bounds": [(1, 1)]},
    ],
)
def test_malformed_plans_are_refused(options: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"epsilon": 1, "bounds": [(0, 1)], "expected_rows": 10}
    with pytest.raises(ParameterError):
        plan_moments(**{**usual, **options})


@pytest.mark.parametrize("name", ["cells", "row_total", "unit_rows"])
def test_noise_needs_positive_integers(name: str) -> None:
    for bad in (0, -1, 1.5, True):
        options: dict[str, Any] = {"epsilon": 1, "cells": 2, name: bad}
        with pytest.raises(ParameterError, match=name):
            PartitionNoise.for_epsilon(**options)


def test_a_known_number_of_rows_is_used_only_where_rows_are_counted() -> None:
    """Else a sum of rows would be taken for the number of them."""
    pairs: dict[str, Any] = {"epsilon": 1, "bounds": [(0, 1), (0, 1)], "expected_rows": 10}
    assert plan_moments(**pairs, missing=True, known_rows=10).known_rows is None
    assert plan_moments(**pairs, missing=False, known_rows=10).known_rows == 10


# -- sums of powers -------------------------------------------------------------------------------


POWERS_RNG = np.random.default_rng(2)
POWERS_N = 500
CODES = POWERS_RNG.integers(-1, 3, POWERS_N).astype(float)  # -1: in no group
POWERS_VALUES = POWERS_RNG.uniform(-1.2, 1.2, (POWERS_N, 2))
ABSENT = POWERS_RNG.random((POWERS_N, 2)) < 0.2
KEYS = GroupKeys(keys=(GroupKey(name="0", labels=("a", "b", "c")),))


def powers_of(integers: list[int], degree: int) -> list[int]:
    return [len(integers), *(sum(k**power for k in integers) for power in range(1, degree + 1))]


@pytest.mark.parametrize("steps", [1, 1 << 20, 1 << 24, 1 << 31, 1 << 40])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("keys", [GroupKeys(), KEYS], ids=["all", "groups"])
@pytest.mark.parametrize("batch", [37, 1000])
def test_power_sums_are_those_of_python_integers(
    steps: int, missing: bool, keys: GroupKeys, batch: int
) -> None:
    lattices = [FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)] * 2
    cells = np.column_stack([CODES, np.where(ABSENT, np.nan, POWERS_VALUES)])
    rows = opened(ArraySource(cells, missing="skip", batch=batch))
    groups, found = power_sums(rows, keys, [1, 2], lattices, [2, 1], missing=[missing, missing])
    filled = np.where(ABSENT, 0.0, POWERS_VALUES)
    for group in range(keys.count):
        inside: Any = group == CODES if keys.keys else np.ones(POWERS_N, dtype=bool)
        assert groups[group] == inside.sum()
        for column, degree in ((0, 2), (1, 1)):
            own = inside & ~ABSENT[:, column] if missing else inside
            integers = lattices[0].quantize(filled[own, column][:, None])[:, 0].tolist()
            assert found[column][group].tolist() == powers_of(integers, degree)


def test_extreme_values_beyond_64_bits_are_added_exactly() -> None:
    steps = (1 << 30) + 7
    lattice = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
    cells = np.column_stack([np.arange(200.0) % 2, np.full(200, -7.0)])
    key = GroupKey(name="0", labels=(0, 1))
    for keys, rows in ((GroupKeys(), 200), (GroupKeys(keys=(key,)), 100)):
        opened_rows: Any = opened(ArraySource(cells))
        _, (found,) = power_sums(opened_rows, keys, [1], [lattice], [2], missing=[False])
        assert found.tolist() == [[rows, -rows * steps, rows * steps**2]] * keys.count


def test_bins_have_their_lower_edges_and_the_last_both() -> None:
    cut = Bins(edges=(Fraction(0), Fraction(1), Fraction(5, 2)))
    cells = np.array([-1e-300, 0.0, 0.5, 1.0, 2.5, np.nextafter(2.5, 3), math.inf, math.nan])
    assert cut.codes(cells).tolist()[1:5] == [0, 0, 1, 1]
    assert np.isnan(cut.codes(cells)[[0, 5, 6, 7]]).all()
    key = GroupKey(name="0", labels=cut.labels, bins=cut, clip_bounds=(Fraction(0), Fraction(2)))
    assert key.codes(cells)[:7].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert np.isnan(key.codes(cells)[7])
