"""What `minimize` needs of a study, and rows for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from data.opening import opened
from zerodelta.data.source import Source
from zerodelta.study.minimize import DescentOptions, _planned
from zerodelta.study.study import Study
from zerodelta.training.descent import Descent
from zerodelta.training.gradient_sums import Gradients

ONE, SELDOM = Fraction(1), Fraction(1, 1000)


def Stage(  # noqa: N802 (it reads like the study it makes)
    rows: Any,
    space: Any,
    epsilon: Fraction = ONE,
    mixing_probability: Fraction = SELDOM,
    rounds: int = 30,
) -> Study:
    """Return a study."""
    return Study(
        rows,
        epsilon=epsilon,
        publish=space,
        rounds=rounds,
        mixing_probability=mixing_probability,
    )


class Unreadable(Source):
    """Rows that a plan must not read."""

    @property
    def rows(self) -> int:
        return 1000

    @property
    def columns(self) -> tuple[str, ...]:
        return ("0", "1", "2")

    def blocks(self, ticket: Any) -> Any:
        raise AssertionError("a row was read")


def line_data(rows: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    x /= np.maximum(1, np.sqrt((x * x).sum(axis=1)))[:, None]
    y = (x @ np.array([2.0, -1.0]) + 0.1 * rng.normal(size=rows) > 0).astype(float)
    return np.column_stack([x, y])


def gradients_in(study: Study, objective: Any, **options: Any) -> tuple[Descent, Gradients]:
    """Return the planned descent and its gradients."""
    descent, gradients = _planned(study, objective, DescentOptions(**options))
    study._opened.pay()
    return descent, gradients.on(study._source)


def read(gradients: Any) -> Any:
    """Return gradients with their rows opened."""
    return gradients.on(opened(gradients.source))
