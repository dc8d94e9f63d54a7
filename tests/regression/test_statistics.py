"""Noisy sufficient statistics: the sensitivity, the real pipeline's privacy loss, exact sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from reference.chi_square import goodness_of_fit
from regression.fits import fit_linear
from sampling import Replace
from zerodelta.audit.exact import rounded_laplace_pmf
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import rounded_k_norm
from zerodelta.mechanisms.sum_noise import MatrixLaplace
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.regression import (
    HALF_ROOT,
    KNormSufficientStatistics,
)
from zerodelta.regression.features import Features
from zerodelta.regression.objective import Shape
from zerodelta.regression.rows import LabeledRows
from zerodelta.regression.statistics import (
    LENGTH,
    exact_statistics,
    plan_k_norm,
    plan_matrix,
)

fit_statistics = partial(fit_linear, method="statistics")
WEIGHTS = [Fraction(1), Fraction(25, 16), Fraction(2)]
EPSILON = Fraction(2, 3)


def moved(one: tuple[int, ...], two: tuple[int, ...], bound: int, weight: Fraction) -> Fraction:
    """The squared shift of (XᵀX, Xᵀy) in the weighted norm; the last number of a row is y."""
    *x, y = one
    *u, v = two
    pairs = list(zip(x, u, strict=True))
    gram = sum((a * b - c * d) ** 2 for (a, c), (b, d) in itertools.product(pairs, repeat=2))
    moment = sum((a * y - c * v) ** 2 for a, c in zip(x, u, strict=True))
    return Fraction(gram, bound**4) + weight * Fraction(moment, bound**4)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_no_two_integer_rows_are_further_apart_than_the_theorem_says(weight: Fraction) -> None:
    bound = 4
    inside = [
        (a, b, y)
        for a, b in itertools.product(range(-bound, bound + 1), repeat=2)
        if a * a + b * b <= bound**2
        for y in (-bound, -1, 0, bound)
    ]
    largest = max(
        moved(one, two, bound, weight) for one, two in itertools.product(inside, repeat=2)
    )
    allowed = (2 + weight) ** 2 / 2
    assert Fraction(8, 10) * allowed < largest <= allowed


def test_the_theorem_is_attained_and_a_smaller_constant_is_not_true() -> None:
    """Unit rows with cosine κ/2 and opposite targets, on a fine lattice."""
    bound, weight = 10**4, Fraction(1)
    two = (bound // 2, math.isqrt(3 * bound**2 // 4), bound)
    shift = moved((bound, 0, -bound), (-two[0], two[1], bound), bound, weight)
    shift = max(shift, moved((bound, 0, -bound), two, bound, weight))
    assert Fraction(9, 2) * Fraction(999, 1000) < shift <= Fraction(9, 2)


def test_half_root_is_just_above() -> None:
    assert 0 < HALF_ROOT**2 - Fraction(1, 2) < Fraction(1, 2**63)


@pytest.mark.parametrize("weight", ["0.99", "2.01", 0])
def test_weights_beyond_the_proof_are_refused(weight: Any) -> None:
    with pytest.raises(zd.errors.CertificateError, match="target_weight"):
        KNormSufficientStatistics.read({"target_weight": weight, "scale": 1})


def test_scale_and_epsilon_are_inverse() -> None:
    for weight in WEIGHTS:
        scale = (2 + Fraction(weight)) * HALF_ROOT / EPSILON
        theorem = KNormSufficientStatistics(target_weight=Fraction(weight), scale=scale)
        assert theorem.cost(Neighbors.REPLACE) == EPSILON


Drawn = tuple[list[Fraction], list[Fraction]]


def noised(replace: Replace, rows: Any, targets: Any, **options: Any) -> Drawn:
    """What a real fit adds noise to, in lattice spacings, and the scales of that noise.

    The released sum is whole + round(center + z): the statistics are whole + center.
    """
    calls: list[Drawn] = []

    def draw(*, center: list[Fraction], scale: list[Fraction], **_: Any) -> Any:
        calls.append((center, scale))
        return np.zeros((1, len(center)), dtype=np.int64)

    wholes: list[Any] = []

    def add(sums: Any, noise: Any) -> Any:
        wholes.append(sums)
        return sums + noise

    replace("plan_statistics", plan_k_norm)
    replace("rounded_k_norm", draw)
    replace("add_exactly", add)
    fit_statistics(rows, targets, epsilon=EPSILON, data_norm=1, bounds_y=(-1, 1), **options)
    (center, scale), whole = calls[0], wholes[0]
    return [int(w) + c for w, c in zip(whole, center, strict=True)], scale


def loss(one: Drawn, two: Drawn) -> Fraction:
    """The squared largest log-density ratio of the continuous sums: ‖Δ/scale‖²."""
    assert one[1] == two[1]
    terms = zip(one[0], two[0], one[1], strict=True)
    return sum((((a - b) / s) ** 2 for a, b, s in terms), Fraction(0))


HARD = [
    ([1.0, 0.0], -1.0),
    ([0.5, math.sqrt(0.75)], 1.0),
    ([0.78, 0.62], 1.0),
    ([-0.78, 0.62], 1.0),
    ([0.0, 0.0], 0.3),
    ([1e300, -1e300], math.inf),
    ([math.nan, 1.0], 0.0),
    ([0.6, -0.8], math.nan),
]


@pytest.mark.parametrize("intercept", [True, False])
def test_all_neighbors_of_the_real_pipeline_are_within_epsilon(
    replace: Replace, intercept: bool
) -> None:
    others = [([0.3, -0.2], 0.5), ([0.9, 0.1], -0.7)]
    found = []
    for row, target in HARD:
        rows = np.array([row, *(x for x, _ in others)])
        targets = np.array([target, *(y for _, y in others)])
        found.append(noised(replace, rows, targets, intercept=intercept))
    losses = [loss(one, two) for one, two in itertools.combinations(found, 2)]
    assert max(losses) <= EPSILON**2
    assert max(losses) > (EPSILON * Fraction(9, 10)) ** 2  # a tenth less noise would be found


def test_less_noise_on_one_kind_of_entry_is_found(replace: Replace) -> None:
    pair = [np.array([HARD[0][0]]), np.array([HARD[1][0]])]
    targets = [np.array([-1.0]), np.array([1.0])]
    one, two = (
        noised(replace, rows, y, intercept=False) for rows, y in zip(pair, targets, strict=True)
    )
    scales = one[1]
    assert len(scales) == 5  # two features: three products, two moments
    for places in ([0, 2], [3, 4]):
        halved = [s / 2 if i in places else s for i, s in enumerate(scales)]
        assert loss((one[0], halved), (two[0], halved)) > EPSILON**2


@pytest.mark.parametrize("intercept", [True, False])
def test_all_neighbors_of_the_matrix_of_products_are_within_epsilon(
    replace: Replace, intercept: bool
) -> None:
    """The sum of the sizes of the eigenvalues by which it moves is at most ε times the scale."""
    handed: list[Any] = []

    def apply(self: MatrixLaplace, sums: Any, bits: Any) -> Any:
        entries = zip(sums, self.weights, strict=True)
        handed.append((self, [Fraction(int(entry), int(weight)) for entry, weight in entries]))
        return sums // self.quantum

    replace("plan_statistics", plan_matrix)
    replace("MatrixLaplace.apply", apply)
    for row, target in HARD:
        options: dict[str, Any] = {"data_norm": 1, "bounds_y": (-1, 1), "intercept": intercept}
        fit_statistics(
            np.array([row, [0.3, -0.2]]), np.array([target, 0.5]), epsilon=EPSILON, **options
        )
    noise = handed[0][0]
    losses = [
        _sizes(noise.dimension, [float(a - b) for a, b in zip(one, two, strict=True)])
        for (_, one), (_, two) in itertools.permutations(handed, 2)
    ]
    assert max(losses) / float(noise.scale) <= EPSILON
    assert max(losses) / float(noise.scale) > EPSILON * Fraction(9, 10)
    assert noise.epsilon == EPSILON


def _sizes(dimension: int, triangle: list[float]) -> float:
    moved = np.zeros((dimension, dimension))
    moved[np.triu_indices(dimension)] = triangle
    return float(np.abs(np.linalg.eigvalsh(moved + np.triu(moved, 1).T)).sum())


def test_stretched_noise_has_the_law_of_its_scale() -> None:
    """In one dimension it is the Laplace law; a center shifts it before rounding."""
    draws, scale = 20_000, Fraction(5, 2)
    found = rounded_k_norm(
        norm=2, dimension=1, scale=[scale], size=draws, bits=ReplayBits("stretch")
    )[:, 0]
    reach = range(-12, 13)
    expected = [float(rounded_laplace_pmf(k, scale=scale)) for k in reach]
    counts = [int(np.count_nonzero(found == k)) for k in reach]
    rest = draws - sum(counts)
    assert goodness_of_fit([*counts, rest], [*expected, 1 - sum(expected)]) > 1e-4


def test_every_coordinate_is_stretched_by_its_own_scale() -> None:
    scales = [Fraction(300), Fraction(1200), Fraction(75)]
    found = rounded_k_norm(
        norm=2, dimension=3, scale=scales, size=4000, bits=ReplayBits("coordinates")
    )
    unit = found / np.array([float(s) for s in scales])
    # E‖z‖ = d; E|z_j| = d · Γ(d/2)/(√π Γ((d+1)/2)) = 3/2
    assert np.linalg.norm(unit, axis=1).mean() == pytest.approx(3, rel=0.05)
    assert np.abs(unit).mean(axis=0) == pytest.approx([1.5, 1.5, 1.5], rel=0.08)


def test_wrong_numbers_of_scales_are_refused() -> None:
    for scales in ([Fraction(1)], [Fraction(1), Fraction(0)]):
        with pytest.raises(zd.errors.ParameterError):
            rounded_k_norm(norm=2, dimension=2, scale=scales, size=1, bits=ReplayBits("few"))


def reference(rows: Any, targets: Any, *, intercept: bool) -> list[int]:
    """The same sums in Python integers, row by row."""
    features = Features.of(rows.shape[1], 1, intercept, length=LENGTH)
    total: dict[tuple[int, int], int] = {}
    for row, y in zip(rows, targets, strict=True):
        part = np.zeros((1, features.dimension))
        empty = bool(features.quantize(np.array([row]), part)[0]) or math.isnan(y)
        k = [int(v) for v in part[0]] + ([features.constant] if intercept else [])
        k.append(int(y * LENGTH) if not math.isnan(y) else 0)
        for i, j in itertools.combinations_with_replacement(range(len(k)), 2):
            total[i, j] = total.get((i, j), 0) + (0 if empty else k[i] * k[j])
    d = features.dimension + intercept
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    return [total[pair] for pair in pairs] + [total[i, d] for i in range(d)]


@pytest.mark.parametrize("intercept", [True, False])
def test_sums_are_those_of_python_integers(intercept: bool) -> None:
    rng = np.random.default_rng(3)
    rows, targets = rng.normal(size=(300, 3)), rng.uniform(-1, 1, size=300)
    rows[::50, 1], targets[::70] = math.nan, math.nan
    features = Features.of(rows.shape[1], 1, intercept, length=LENGTH)
    found = exact_statistics(features, opened(LabeledRows(rows, targets)))
    assert [int(v) for v in found] == reference(rows, targets, intercept=intercept)


@pytest.mark.parametrize("bad", [0, 10**200])
def test_whatever_is_published_can_be_solved(bad: int) -> None:
    shape = Shape.of(rows=10, dimension=2, epsilon=1)
    for plan in (plan_matrix(shape), plan_k_norm(shape)):
        noisy = np.array([bad] * plan.dimension, dtype=object)
        assert np.isfinite(plan.solve(noisy)).all()
