"""`SparseRegression` gets better with ε: its steps, its forecast, and the reason it did not."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from zerodelta.errors import ParameterError
from zerodelta.sklearn import SparseRegression
from zerodelta.sklearn.linear import SparseSteps
from zerodelta.spaces import Ball
from zerodelta.training.frank_wolfe import frank_wolfe_pure
from zerodelta.training.polytopes import L1Ball, shrinking_parts

EPSILONS = (0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 10)


def steps(
    *, rows: int = 5000, columns: int = 51, epsilon: float = 1, radius: float = 1
) -> SparseSteps:
    return SparseSteps.best(rows=rows, columns=columns, epsilon=epsilon, radius=radius)


@pytest.mark.parametrize("radius", [0.5, 1, 4])
def test_more_epsilon_or_rows_is_a_smaller_forecast_and_no_fewer_steps(radius: float) -> None:
    by_epsilon = [steps(epsilon=e, radius=radius) for e in EPSILONS]
    by_rows = [steps(rows=n, radius=radius) for n in (10, 100, 1000, 10_000, 10**6)]
    for found in (by_epsilon, by_rows):
        for less, more in pairwise(found):
            assert more.error < less.error
            assert more.count >= less.count
            assert more.path >= less.path


def test_the_number_of_steps_is_that_of_the_least_forecast() -> None:
    for epsilon in EPSILONS:
        best = steps(epsilon=epsilon)
        informed = 5000 * epsilon / np.log(102)
        by_hand = {t: 0.09 * (t / informed + 1.92 / t**3) for t in range(3, 60)}
        assert best.count == min(by_hand, key=by_hand.__getitem__)
        assert best.error == pytest.approx(by_hand[best.count])


@pytest.mark.parametrize("path", [1, "3/2", 2])
@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_parts_shrink_and_add_up_to_the_path(count: int, path: Any) -> None:
    parts = shrinking_parts(count, path)
    assert sum(parts) == Fraction(path)
    assert all(first > second > 0 for first, second in pairwise(parts))


def test_every_iterate_is_inside_the_ball() -> None:
    ball, rng = L1Ball(dimension=4, radius=Fraction(3, 2)), np.random.default_rng(0)
    theta = np.zeros(4)
    for part in shrinking_parts(40, 3):
        theta = ball.along(theta, part, int(rng.integers(8)))
        assert np.abs(theta).sum() <= 1.5 * (1 + 1e-12)


def noise_free(count: int, path: Any) -> float:
    """The share explained after so many steps, at an ε at which every choice is the best one."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(400, 8))
    y = 0.6 * rows[:, 3] - 0.3 * rows[:, 6]

    def gradient(theta: Any, block: Any) -> Any:
        return (block[:, :-1] @ theta - block[:, -1])[:, None] * block[:, :-1]

    release = frank_wolfe_pure(
        rows,
        y,
        loss=gradient,
        domain=Ball(8, 1, norm=1),
        lipschitz=2,
        epsilon=10**6,
        iterations=count,
        method="composition",
        path=path,
    )
    return 1 - float(np.mean((rows @ release.value - y) ** 2) / np.mean(y**2))


def test_without_noise_more_steps_are_no_worse_as_they_were_with_the_papers() -> None:
    counts = range(3, 16)
    ours = [noise_free(count, 1) for count in counts]
    papers = [noise_free(count, None) for count in counts]
    assert max(less - more for less, more in pairwise(ours)) < 0.02
    assert max(less - more for less, more in pairwise(papers)) > 0.05
    assert min(ours[2:]) > 0.97


def test_a_path_needs_the_l1_ball() -> None:
    with pytest.raises(ParameterError, match="path"):
        frank_wolfe_pure(
            np.zeros((3, 1)),
            loss=lambda theta, rows: theta - rows,
            domain=[[1.0], [-1.0]],
            lipschitz=1,
            epsilon=1,
            iterations=2,
            path=1,
        )


def test_the_release_forecasts_in_the_units_of_the_target() -> None:
    rows = np.random.default_rng(1).uniform(0, 1, size=(300, 4))
    y = 8 * rows[:, 0] + 2
    errors = []
    for epsilon in (1, 2, 3):
        model = SparseRegression(epsilon=epsilon, bounds=(0, 1), bounds_y=(2, 10)).fit(rows, y)
        expected = steps(rows=300, columns=5, epsilon=float(epsilon))
        assert model.release_.error == pytest.approx(16 * expected.error)
        assert f"T = {expected.count}" in model.certificate_.public
        errors.append(model.release_.error)
    assert errors == sorted(errors, reverse=True)
