"""Covariances, correlations, components: sensitivity over all neighbors, values, intervals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from tasks.related import BESIDE, certified_beside, opened_beside, tables_beside
from tasks.spying import first, recorded
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.sum_noise import DIAGONAL, OFF_DIAGONAL, KNorm, MatrixLaplace
from zerodelta.privacy.intervals import correlation_ends
from zerodelta.spine.plan import Facts
from zerodelta.tasks.covariance import CovarianceQuestion
from zerodelta.tasks.second_moments import STEPS
from zerodelta.testing import replayed

pandas = pytest.importorskip("pandas")

EPSILON = Fraction(3, 4)
CELLS = [-9.0, -1.0, 0.0, 0.5, 1.0, math.inf, math.nan]
ROWS = list(itertools.product(CELLS, repeat=2))
OTHER = (0.5, -1.0)
methods = pytest.mark.parametrize("method", ["matrix", "frobenius", "max"])


def recorded_noise(monkeypatch: pytest.MonkeyPatch, method: str) -> list[Any]:
    """What the mechanism of a method was handed; no noise is drawn."""
    if method != "matrix":
        return recorded(monkeypatch, KNorm, "apply", first)
    monkeypatch.setattr(MatrixLaplace, "quantum", 1)
    return recorded(monkeypatch, MatrixLaplace, "apply", first)


def length(change: Any, mechanism: Any) -> Fraction:
    """The norm, or for l2 and for the sizes of two eigenvalues its square: exact integers."""
    moved = [int(x) for x in change]
    if isinstance(mechanism, MatrixLaplace):
        a, b, c, d, e, f = (
            Fraction(x, int(w)) for x, w in zip(moved, mechanism.weights, strict=True)
        )
        # of rank 2, with eigenvalues of both signs or none: (Σ|λ|)² = 2 Σλ² - (Σλ)², or (Σλ)²
        squares = a * a + d * d + f * f + 2 * (b * b + c * c + e * e)
        sizes = np.abs(np.linalg.eigvalsh(np.array([[a, b, c], [b, d, e], [c, e, f]], float)))
        certain = Fraction(float(sizes.sum())) ** 2 * (1 - Fraction(1, 10**12))  # of any rank
        return max(2 * squares - (a + d + f) ** 2, (a + d + f) ** 2, certain)
    if mechanism.norm == math.inf:
        return Fraction(max(map(abs, moved)))
    return Fraction(sum(x**2 for x in moved))


@methods
@pytest.mark.parametrize("relation", BESIDE)
@pytest.mark.parametrize("missing", ["skip", None])
def test_one_row_moves_the_sums_by_the_stated_sensitivity_and_no_more(
    monkeypatch: pytest.MonkeyPatch, method: str, relation: str, missing: Any
) -> None:
    calls, found = recorded_noise(monkeypatch, method), []
    columns = {name: zd.number(-1, 1, missing=missing) for name in "xz"}
    corners = list(itertools.product([-1.0, 0.0, 1.0, math.nan], repeat=2))
    tables, neighbors = tables_beside(ROWS, OTHER, relation, of_unit=corners)
    for rows in tables:
        data = opened_beside(rows, columns, relation)
        data = data.where("x > -1") if relation == "where" else data
        release = zd.covariance(data, epsilon=EPSILON, method=method)
        found.append(np.array(calls[-1][1], dtype=object))
    mechanism = calls[-1][0]
    most = max(length(a - b, mechanism) for a, b in neighbors(found))
    limit = EPSILON * mechanism.scale
    limit = limit if method == "max" else limit**2
    assert most <= limit
    assert most > Fraction(1, 2) * limit
    certified_beside(release.certificate, relation, EPSILON)


def test_the_frobenius_sensitivity_is_reached_up_to_the_constant() -> None:
    """Orthogonal rows of full length: √2 of the squared length, which nothing smaller covers."""
    rows = [np.array(row) for row in itertools.product(range(-2, 3), repeat=2)]
    inside = [row for row in rows if row @ row <= 4]
    squares = [
        int(((np.outer(a, a) - np.outer(b, b)) ** 2).sum())
        for a, b in itertools.combinations(inside, 2)
    ]
    assert max(squares) == 2 * 4**2
    assert 2 * DIAGONAL**2 <= OFF_DIAGONAL**2 < 2 * DIAGONAL**2 + 2


@methods
def test_what_is_handed_over_is_the_triangle_of_the_sums(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    calls = recorded_noise(monkeypatch, method)
    rows = np.array([[1.0, -1.0], [0.5, 0.25], [0.0, 1.0]])
    zd.covariance(rows, bounds=(-1, 1), epsilon=1, method=method)
    k = np.round(rows * STEPS).astype(int)
    c = STEPS if method == "max" else math.isqrt(2 * STEPS**2) // 2
    whole = np.column_stack([k, np.full(3, c)])
    gram = (whole.T @ whole).tolist()
    if method == "max":
        inside = [2 * gram[i][i] - 3 * STEPS**2 for i in range(2)]
        wanted = [inside[0], gram[0][1], gram[0][2], inside[1], gram[1][2]]
    else:
        wanted = [
            DIAGONAL * gram[0][0],
            OFF_DIAGONAL * gram[0][1],
            OFF_DIAGONAL * gram[0][2],
            DIAGONAL * gram[1][1],
            OFF_DIAGONAL * gram[1][2],
            *[DIAGONAL * gram[2][2]] * (method == "matrix"),
        ]
    assert [int(x) for x in calls[-1][1]] == wanted


@methods
@pytest.mark.parametrize("skip", [True, False])
def test_without_noise_values_are_those_of_numpy(
    monkeypatch: pytest.MonkeyPatch, method: str, skip: bool
) -> None:
    recorded_noise(monkeypatch, method)
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1, 3, size=(200, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.3]])
    rows = np.clip(rows, -1, 3)
    given = np.vstack([rows, [[1.0, math.nan, 2.0]]]) if skip else rows
    options: dict[str, Any] = {"bounds": (-1, 3), "epsilon": 1, "method": method}
    options["missing"] = "skip" if skip else None
    cov = zd.covariance(given, **options).value
    np.testing.assert_allclose(cov, np.cov(rows.T, ddof=0), atol=1e-4)
    # variances below the noise count as noise: here there is no noise but a large ε
    options["epsilon"] = 1000
    corr = zd.correlation(given, **options).value
    np.testing.assert_allclose(corr, np.corrcoef(rows.T), atol=1e-2)
    found = zd.pca(given, components=2, radius=1, **options).value
    values, vectors = np.linalg.eigh(np.cov(rows.T, ddof=0))
    np.testing.assert_allclose(found.explained_variance, values[::-1][:2], atol=1e-3)
    np.testing.assert_allclose(abs(np.diag(found.components @ vectors[:, ::-1][:, :2])), 1, 1e-3)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), atol=1e-4)
    assert found.transform(rows).shape == (200, 2)


@methods
def test_rows_of_bounded_length_have_noise_for_it(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    calls = recorded_noise(monkeypatch, method)
    rows = np.array([[3.0, 4.0], [30.0, 40.0], [0.0, -5.0]])
    cov = zd.covariance(rows, data_norm=5, epsilon=1, method=method).value
    shown = np.array([[3.0, 4.0], [3.0, 4.0], [0.0, -5.0]])
    np.testing.assert_allclose(cov, np.cov(shown.T, ddof=0), atol=1e-3)
    square = STEPS**2 + (STEPS // 2) ** 2
    mechanism = calls[-1][0]
    if method == "matrix":
        assert mechanism.squared_length == square
    else:
        wanted = OFF_DIAGONAL * square if method == "frobenius" else 2 * STEPS**2
        assert mechanism.sensitivity == wanted


@pytest.mark.parametrize("epsilon", ["1/1000", 1, 100])
@pytest.mark.parametrize("rows", [1, 3, 400])
def test_what_is_released_is_what_it_is_said_to_be(epsilon: Any, rows: int) -> None:
    """Whatever the noise: symmetric, no negative eigenvalue, a unit diagonal, parts of 1."""
    table = np.random.default_rng(1).uniform(size=(rows, 4))
    frame = pandas.DataFrame(table, columns=list("abcd"))
    data = zd.open(frame, columns={name: zd.number(0, 2) for name in "abcd"})
    for given in (table, data, data.where("a > 0.5")):
        bounds: dict[str, Any] = {"bounds": (0, 2)} if given is table else {}
        cov = zd.covariance(given, epsilon=epsilon, **bounds).value
        np.testing.assert_allclose(cov, cov.T)
        assert np.linalg.eigvalsh(cov).min() > -1e-9
        assert np.diag(cov).max() <= 1 + 1e-9
        corr = zd.correlation(given, epsilon=epsilon, **bounds).value
        np.testing.assert_array_equal(np.diag(corr), 1)
        assert np.abs(corr).max() <= 1
        assert np.linalg.eigvalsh(corr).min() > -1e-9
        found = zd.pca(given, epsilon=epsilon, **bounds).value
        np.testing.assert_allclose(found.components @ found.components.T, np.eye(4), atol=1e-9)
        assert 0 <= found.explained_variance_ratio.sum() <= 1 + 1e-9
        assert (np.diff(found.explained_variance) <= 1e-12).all()


@pytest.mark.parametrize("case", ["box", "ball", "skip"])
def test_the_forecast_is_within_a_factor_of_one_and_a_half(case: str) -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, size=(3000, 4)) / (2 if case == "ball" else 1)
    stated: dict[str, Any] = {"data_norm": 1} if case == "ball" else {"bounds": (-1, 1)}
    if case == "skip":
        stated["missing"] = "skip"
    true, errors, forecast = np.cov(rows.T, ddof=0), [], 0.0
    for _ in range(60):
        release = zd.covariance(rows, epsilon="1/4", **stated)
        forecast = float(release.error)
        errors.append(np.abs(release.value - true).mean())
    assert 1 / 1.5 < np.mean(errors) / forecast < 1.5


def test_the_best_noise_is_taken() -> None:
    box = CovarianceQuestion(bounds=(0, 1)).plan(_facts(5), 1)
    pair = CovarianceQuestion(data_norm=1).plan(_facts(2), 1)
    ball = CovarianceQuestion(data_norm=1).plan(_facts(20), 1)
    found = [plan.methods[0].name for plan in (box, pair, ball)]
    assert found == ["max", "frobenius", "matrix"]


def _facts(width: int) -> Facts:
    return Facts(rows=100, columns=("",) * width)


def test_correlations_take_the_noise_that_is_least_beside_the_diagonal() -> None:
    """Of two columns the l∞ noise is less on variances, and more where a correlation needs it."""
    rng, errors = np.random.default_rng(7), {"max": 0.0, "frobenius": 0.0}
    for i in range(200):
        rows = rng.uniform(0, 100, size=(10_000, 2))
        rows[::2, 1] = rows[::2, 0]  # correlated: noise hides nothing
        true = np.asarray(np.corrcoef(rows.T))[0, 1]
        for method in errors:
            bits = ReplayBits(f"{method} {i}")
            found = replayed(bits)(zd.correlation)(rows, bounds=(0, 100), epsilon=1, method=method)
            errors[method] += abs(found.value[0, 1] - true) / 200
    advice = zd.advise("correlation", n=10_000, dimension=2, bounds=(0, 100), epsilon=1)
    told = {method.name: method.error for method in advice}
    assert advice.best.name == "frobenius"
    assert zd.advise("covariance", n=10_000, dimension=2, bounds=(0, 100), epsilon=1).best.name == (
        "max"
    )
    assert errors["frobenius"] < errors["max"]
    assert all(2 / 3 < errors[name] / told[name] < 1.5 for name in errors)


# -- intervals -------------------------------------------------------------------------------------

CORRELATED = (
    np.random.default_rng(6).uniform(-1, 1, size=(300, 2)) @ np.array([[1, 0.6], [0, 0.8]]) / 2
)


@pytest.mark.parametrize("missing", [None, "skip"])
@pytest.mark.parametrize("method", ["matrix", "frobenius", "max"])
@pytest.mark.parametrize("verb", [zd.covariance, zd.correlation])
def test_they_cover(verb: Any, method: str, missing: Any) -> None:
    truth = np.cov(CORRELATED.T, ddof=0)
    if verb is zd.correlation:
        truth = np.array([[1.0, np.corrcoef(CORRELATED.T)[0, 1]]] * 2)
        truth[1] = truth[1, ::-1]
    bits, outside, widths, runs = ReplayBits("covariances"), np.zeros((2, 2)), [], 80
    for _ in range(runs):
        release = replayed(bits)(verb)(
            CORRELATED, bounds=(-1, 1), epsilon=6, method=method, missing=missing
        )
        low, high = release.interval("0.8")
        outside += (truth < low) | (high < truth)
        widths.append(high - low)
    assert outside.max() <= 0.2 * runs
    assert 0 < np.mean(widths) < 0.8  # they say something


def test_a_covariance_has_its_shares_of_a() -> None:
    """n is public: the ends from the integers by hand, with 8/10 of a for yz, 1/10 for y and z."""
    release = zd.covariance(CORRELATED, bounds=(-1, 1), epsilon=1, method="frobenius", missing=None)
    _, pair = release.sums
    a, steps, n = Fraction(1, 20), 1 << 16, len(CORRELATED)
    ((one, other, product),) = pair.integers.tolist()
    far, near = pair.law.noise.integer_radius(a * 8 / 10), pair.law.noise.integer_radius(a / 10)
    constant = int(np.sqrt(2 * steps**2)) // 2

    def ends(z: int, k: int, unit: float) -> list[float]:
        return [max(-1.0, (z - k) / (99 * unit * n)), min(1.0, (z + k) / (99 * unit * n))]

    means = [ends(z, near, constant * steps) for z in (one, other)]
    corners = [x * y for x, y in itertools.product(*means)]
    low, high = ends(product, far, steps**2)
    lower, upper = release.interval()
    moved = 2 / (2 * steps)
    assert lower[0, 1] == pytest.approx(max(-1.0, low - max(corners) - moved), rel=1e-6)
    assert upper[0, 1] == pytest.approx(min(1.0, high - min(corners) + moved), rel=1e-6)


def test_the_least_deviations_make_the_widest_correlation() -> None:
    zero, product, square = (
        (np.array([low]), np.array([high])) for low, high in ((0.0, 0.0), (-0.1, 0.04), (0.2, 0.4))
    )
    low, high = correlation_ends([zero, zero, product, square, square], 0.0)
    assert (low[0], high[0]) == pytest.approx((-0.5, 0.2))
    away = np.array([0.04]), np.array([0.1])
    low, high = correlation_ends([zero, zero, away, square, square], 0.0)
    assert (low[0], high[0]) == pytest.approx((0.1, 0.5))


def test_a_column_without_spread_may_have_any_correlation() -> None:
    rows = np.column_stack([CORRELATED[:, 0], np.zeros(len(CORRELATED))])
    low, high = zd.correlation(rows, bounds=(-1, 1), epsilon=1).interval()
    assert (low[0, 1], high[0, 1]) == (-1, 1)
    assert (low[0, 0], high[0, 0]) == (1, 1)


def test_frames_and_files_have_them_by_the_names_of_columns(tmp_path: Any) -> None:
    people = zd.open(CORRELATED, columns={"0": zd.number(-1, 1), "1": zd.number(-1, 1)})
    release = zd.covariance(people, epsilon=5)
    frame = release.to_frame()
    assert frame["row"].tolist() == ["0", "0", "1", "1"]
    assert frame["column"].tolist() == ["0", "1", "0", "1"]
    assert frame["value"].tolist() == release.value.ravel().tolist()
    release.save(tmp_path / "covariance.json")
    again = zd.load(tmp_path / "covariance.json")
    assert np.array_equal(again.interval(), release.interval())


def test_a_population_has_wider_ones() -> None:
    release = zd.covariance(np.tile(CORRELATED, (1000, 1)), bounds=(-1, 1), epsilon=5)
    low, high = release.interval(of="population")
    inner = release.interval()
    assert np.all(low < inner[0])
    assert np.all(inner[1] < high)
    assert np.all(high - low < 0.1)
