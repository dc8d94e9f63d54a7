"""Linear predictors of rows that may hold anything."""

from __future__ import annotations

import numpy as np

from zerodelta.sklearn.reading import Floats

__all__ = ["linear_scores"]


def linear_scores(rows: Floats, coefficients: Floats, intercept: Floats | float) -> Floats:
    """Return rows @ coefficients.T + intercept, and the intercept alone for rows with a NaN.

    >>> rows = np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0]])
    >>> linear_scores(rows, np.array([[3.0, 0.5]]), np.array([7.0])).tolist()
    [[11.0], [7.0], [7.0]]
    """
    with np.errstate(all="ignore"):
        scores: Floats = rows @ coefficients.T + intercept
    usable = np.isfinite(scores).all(axis=1, keepdims=True)
    return scores if usable.all() else np.where(usable, scores, intercept)
