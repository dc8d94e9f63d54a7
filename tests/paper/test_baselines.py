"""Laplace noisy descent with A6.9's sensitivity, and the exponential mechanism, enumerated."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from purity import assert_pure
from study.stages import read
from zerodelta.audit.exact import (
    datasets,
    exponential_mechanism_law,
    neighbors,
)
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.paper.baselines import (
    _SCORE_STEPS,
    _scores,
    exponential_mechanism_on_grid,
    grid_points,
    laplace_noisy_descent,
    laplace_steps,
)
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import LinearGradients
from zerodelta.training.losses import Logistic, Squared

F = Fraction


def line(rows: int = 2000) -> tuple[Any, Any]:
    features = np.linspace(-1, 1, rows).reshape(-1, 1)
    return features, features[:, 0] / 2


def test_the_laplace_chain_re_derived_by_hand() -> None:
    rng = np.random.default_rng(4)
    features, labels = rng.normal(size=(300, 5)), rng.integers(0, 2, 300).astype(float)
    certificate = laplace_noisy_descent(
        features, labels, loss=Logistic(), data_norm=1, radius=1, epsilon="1/2"
    ).certificate
    assert verify(certificate)
    assert certificate.status is Status.PROVEN
    (step,) = certificate.steps
    assert step.numbers["count"] == laplace_steps(rows=300, dimension=5, epsilon="1/2") == 15
    moved = int(step.numbers["sensitivity"])
    assert (moved - 1) ** 2 < 5 * (2 * 2**30) ** 2 <= moved**2  # ⌈2√d L⌉, twice the printed one
    assert F(step.numbers["scale"]) == moved * 15 / F(1, 2)
    with pytest.raises(CertificateError):
        verify(Certificate(claim=PureDP("0.49"), steps=certificate.steps))


def test_laplace_descent_finds_the_line() -> None:
    features, labels = line(20_000)
    release = replayed("laplace descent")(laplace_noisy_descent)(
        features,
        labels,
        loss=Squared(label_bound=1),
        data_norm=1,
        radius=1,
        epsilon=2,
        steps=100,
    )
    assert abs(float(release.value[0]) - 0.5) < 0.2


def scores_of(rows: Any, points: Any) -> list[int]:
    features, labels = (np.array(column) for column in zip(*rows, strict=True))
    examples = Examples.of_arrays(features, labels)
    gradients = LinearGradients(examples, loss=Squared(label_bound=1), radius=1, data_norm=1)
    return _scores(read(gradients), points, float(gradients.lipschitz))


def em_laws(epsilon: Fraction, factor: int = 1) -> dict[Any, Any]:
    points = grid_points(ball=Ball(1, 1), cells=5)
    values = [(1.0, -1.0), (1.0, 1.0), (9e9, 0.0), (math.nan, 0.0)]
    scale = 2 * (2 * _SCORE_STEPS) / epsilon / factor
    return {
        tuple(map(str, rows)): exponential_mechanism_law(scores_of(rows, points), scale=scale)
        for rows in datasets(values, 2)
    }


def test_the_exponential_mechanism_is_pure_on_all_neighboring_datasets() -> None:
    laws = em_laws(F(1))
    assert len(list(neighbors(laws))) == 48
    assert_pure(laws, epsilon=1, mistake=em_laws(F(1), factor=8))


def test_a_score_moves_by_at_most_twice_the_steps() -> None:
    points = grid_points(ball=Ball(1, 1), cells=9)
    values = [(1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (1e9, 1e9), (math.inf, math.nan)]
    scores = {rows: scores_of(rows, points) for rows in datasets(values, 1)}
    for a in scores.values():
        for b in scores.values():
            assert max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 2 * _SCORE_STEPS


def test_the_exponential_mechanism_finds_the_line_within_its_forecast() -> None:
    features, labels = line()
    release = replayed("grid")(exponential_mechanism_on_grid)(
        features,
        labels,
        loss=Squared(label_bound=1),
        data_norm=1,
        radius=1,
        epsilon=1,
        cells=41,
    )
    excess = float(np.mean((features[:, 0] * release.value[0] - labels) ** 2)) / 2
    assert isinstance(release.error, float)
    assert excess < release.error
    assert abs(float(release.value[0]) - 0.5) < 0.3


def test_the_exponential_mechanism_is_proven() -> None:
    features, labels = line(50)
    certificate = exponential_mechanism_on_grid(
        features, labels, loss=Logistic(), data_norm=1, radius=1, epsilon=1, cells=7
    ).certificate
    assert verify(certificate)
    assert certificate.status is Status.PROVEN


def test_grid_points_lie_in_the_ball_and_their_number_is_bounded() -> None:
    points = grid_points(ball=Ball(3, 2), cells=6)
    assert (np.linalg.norm(points, axis=1) <= 2).all()
    assert len(grid_points(ball=Ball(3, 2), cells=1)) == 1
    assert len(grid_points(ball=Ball(9, 1), cells=2)) == 1  # all corners are outside
    with pytest.raises(ParameterError, match="fewer cells"):
        grid_points(ball=Ball(20, 1), cells=3)
