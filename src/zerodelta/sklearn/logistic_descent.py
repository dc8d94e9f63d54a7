"""Logistic and softmax regression by a hidden descent: offered by name, never the best (theory C1).

Rows become the engine's integers first, so that they are bounded as in `fit_logistic`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerodelta.exact.rational import Rational
from zerodelta.privacy.release import Release
from zerodelta.regression import LinearModel
from zerodelta.regression.classification import descent_temperature
from zerodelta.regression.integer_rows import STEPS
from zerodelta.regression.reading import Features, read_classes
from zerodelta.spaces import Ball
from zerodelta.study.study import Study
from zerodelta.training.losses import Logistic, Loss, Multinomial

__all__ = ["descend_logistic"]

_ROUNDS = 100
_LENGTH = 3
"""Coefficients of rows of length 1 are searched up to so many times the root of their number."""


def descend_logistic(
    rows: Any,
    labels: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None,
    classes: tuple[Any, ...],
    intercept: bool,
    error: float,
) -> Release:
    """Publish a `LinearModel` as `fit_logistic` and `fit_multinomial` do; `error` is the forecast.

    **Releases**, **Neighbors** and **Public** as there. **Guarantee**: pure ε-DP, proven (R2 and
    the ball's channel). **Error**: the expected excess of the mean loss.

    >>> x = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> release = descend_logistic(
    ...     x, x[:, 0] > 0, epsilon=2, data_norm=1, classes=(False, True), intercept=False,
    ...     error=0.1)
    >>> bool(release.value.coefficients[0, 0] > 0), release.certificate.status.value
    (True, 'proven')
    """
    features, source = Features.of(rows, data_norm, intercept)
    outputs = 1 if len(classes) == 2 else len(classes)
    loss: Loss = Logistic() if outputs == 1 else Multinomial(classes=tuple(range(outputs)))
    columns = features.dimension + features.intercept
    size = columns * outputs
    places = read_classes(labels, classes, source.count)
    x = features.integers(source, (places >= 0).astype(np.float64)).values / STEPS
    study = Study(
        np.column_stack([x, places]),
        epsilon=epsilon,
        publish=Ball(size, _LENGTH * (math.isqrt(size) + 1)),
        rounds=_ROUNDS,
        functions=False,
    )
    release = study.minimize(loss, data_norm=1)
    lines, constants = features.coefficients(release.value.reshape(columns, outputs))
    model = LinearModel(
        coefficients=lines,
        intercept=constants,
        classes=classes,
        temperature=descent_temperature(
            epsilon=epsilon, n=source.count, columns=columns, classes=len(classes)
        ),
    )
    return Release(value=model, certificate=release.certificate, error=error)
