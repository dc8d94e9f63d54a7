"""Correlations are shrunk by the noise of their covariances, so that noise makes none worse than 0.

Rows, and the noise of every release, are drawn from fixed seeds.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.parameters import Neighbors
from zerodelta.tasks.second_moments import ProductNoise, Products
from zerodelta.testing import replayed


def normal(rng: Any, *, rows: int, columns: int, correlation: float, spread: float) -> Any:
    common, own = rng.normal(size=(rows, 1)), rng.normal(size=(rows, columns))
    mixed = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return np.clip(spread * mixed, -1, 1)


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("epsilon", ["1/4", 1])
@pytest.mark.parametrize("rows", [50, 200, 1000])
@pytest.mark.parametrize("columns", [2, 5])
def test_noise_makes_no_correlation_worse_than_0(
    columns: int, rows: int, epsilon: Any, correlation: float
) -> None:
    rng, errors, sizes = np.random.default_rng(7), [], []
    places = np.triu_indices(columns, 1)
    for trial in range(20):
        data = normal(rng, rows=rows, columns=columns, correlation=correlation, spread=0.3)
        truth = np.corrcoef(data.T)
        with replayed(str(trial)):
            found = zd.correlation(data, bounds=(-1, 1), epsilon=epsilon).value
        assert np.linalg.eigvalsh(found)[0] >= -1e-9
        assert (np.diag(found) == 1).all()
        assert abs(found).max() <= 1
        errors.append(abs(found - truth)[places].mean())
        sizes.append(abs(truth)[places].mean())
    # uncorrelated columns: 0 is the truth, but for the sample
    assert np.mean(errors) <= np.mean(sizes) + 0.02


def test_noise_that_hides_nothing_shrinks_nothing() -> None:
    data = normal(np.random.default_rng(7), rows=100_000, columns=3, correlation=0.3, spread=0.3)
    found = zd.correlation(data, bounds=(-1, 1), epsilon=4).value
    np.testing.assert_allclose(found, np.corrcoef(data.T), atol=0.02)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", ["matrix", "frobenius", "max"])
def test_the_noise_of_covariances_is_known(kind: Any, counted: bool) -> None:
    """The noise of z - μν, as planned, against that of many releases of rows away from 0."""
    products, rows = Products.of(2, bounds=(-1, 1), data_norm=None), 2000
    noise = ProductNoise.of(
        products,
        kind,
        epsilon=Fraction(1),
        counted=counted,
        expected_rows=rows,
        neighbors=Neighbors.REPLACE,
    )
    data = np.random.default_rng(1).uniform([0.2, -0.9], [1.0, -0.3], size=(rows, 2))
    integers = products.integers(data, counted=counted)
    full = np.column_stack([integers, np.full(rows, noise.constant)]).astype(object)
    exact = (full.T @ full)[np.triu_indices(3)][: len(noise.weights)] * noise.weights
    if kind == "max":
        exact = exact - rows * noise.constant**2 * noise._squares[: len(exact)]
    released = [noise.moments(noise.mechanism.apply(exact, SystemBits())) for _ in range(400)]
    measured = np.std([moments.scaled[0, 1] for moments in released])
    assert np.mean([moments.noise[0, 1] for moments in released]) == pytest.approx(
        measured, rel=0.35
    )
