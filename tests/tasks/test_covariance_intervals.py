"""Intervals of covariances and correlations cover, and are no wider than their shares of a."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy.intervals import correlation_ends
from zerodelta.testing import replayed

ROWS = np.random.default_rng(6).uniform(-1, 1, size=(300, 2)) @ np.array([[1, 0.6], [0, 0.8]]) / 2


@pytest.mark.parametrize("missing", [None, "skip"])
@pytest.mark.parametrize("method", ["matrix", "frobenius", "max"])
@pytest.mark.parametrize("verb", [zd.covariance, zd.correlation])
def test_they_cover(verb: Any, method: str, missing: Any) -> None:
    truth = np.cov(ROWS.T, ddof=0)
    if verb is zd.correlation:
        truth = np.array([[1.0, np.corrcoef(ROWS.T)[0, 1]]] * 2)
        truth[1] = truth[1, ::-1]
    bits, outside, widths, runs = ReplayBits("covariances"), np.zeros((2, 2)), [], 80
    for _ in range(runs):
        release = replayed(bits)(verb)(
            ROWS, bounds=(-1, 1), epsilon=6, method=method, missing=missing
        )
        low, high = release.interval("0.8")
        outside += (truth < low) | (high < truth)
        widths.append(high - low)
    assert outside.max() <= 0.2 * runs
    assert 0 < np.mean(widths) < 0.8  # they say something


def test_a_covariance_has_its_shares_of_a() -> None:
    """n is public: the ends from the integers by hand, with 8/10 of a for yz, 1/10 for y and z."""
    release = zd.covariance(ROWS, bounds=(-1, 1), epsilon=1, method="frobenius", missing=None)
    _, pair = release.sums
    a, steps, n = Fraction(1, 20), 1 << 16, len(ROWS)
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
    rows = np.column_stack([ROWS[:, 0], np.zeros(len(ROWS))])
    low, high = zd.correlation(rows, bounds=(-1, 1), epsilon=1).interval()
    assert (low[0, 1], high[0, 1]) == (-1, 1)
    assert (low[0, 0], high[0, 0]) == (1, 1)


def test_frames_and_files_have_them_by_the_names_of_columns(tmp_path: Any) -> None:
    people = zd.open(ROWS, columns={"0": zd.number(-1, 1), "1": zd.number(-1, 1)})
    release = zd.covariance(people, epsilon=5)
    frame = release.to_frame()
    assert frame["row"].tolist() == ["0", "0", "1", "1"]
    assert frame["column"].tolist() == ["0", "1", "0", "1"]
    assert frame["value"].tolist() == release.value.ravel().tolist()
    release.save(tmp_path / "covariance.json")
    again = zd.load(tmp_path / "covariance.json")
    assert np.array_equal(again.interval(), release.interval())


def test_a_population_has_wider_ones() -> None:
    release = zd.covariance(np.tile(ROWS, (1000, 1)), bounds=(-1, 1), epsilon=5)
    low, high = release.interval(of="population")
    inner = release.interval()
    assert np.all(low < inner[0])
    assert np.all(inner[1] < high)
    assert np.all(high - low < 0.1)
