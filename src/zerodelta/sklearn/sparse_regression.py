"""`SparseRegression`: least absolute shrinkage on the l1 ball, by pure Frank-Wolfe (theory C2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.release import Release
from zerodelta.regression import LinearModel
from zerodelta.regression.reading import as_target_bounds, read_targets, target_scale
from zerodelta.sklearn.column_bounds import ColumnBounds
from zerodelta.sklearn.linear_scores import linear_scores
from zerodelta.sklearn.reading import (
    Floats,
    accepting_any_value,
    as_floats,
    read_examples,
    rows_to_predict,
)
from zerodelta.sklearn.required_epsilon import required_epsilon
from zerodelta.sklearn.sparse_steps import SparseSteps
from zerodelta.spaces import Ball
from zerodelta.training.frank_wolfe import Method, frank_wolfe_pure
from zerodelta.training.losses import Huber

__all__ = ["SparseRegression"]

_THRESHOLD = Fraction(1, 4)
"""Residuals beyond this part of half the target's range count linearly: a quarter of the noise."""


@final
class SparseRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with few coefficients that are not 0, under pure ε-DP.

    Its error grows with the logarithm of the number of features: for many of them, few of which
    matter. Minimizes the Huber loss over coefficients whose l1 norm is at most `radius`, in units
    where features and targets lie in [-1, 1]; the intercept counts as a coefficient. A radius of 1
    is what predictions inside `bounds_y` need.

    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: one ``fit`` is pure ε-DP (theory C2): T choices of one feature, ε/T each. Scores
    and predictions of rows, a `GridSearchCV` over them and a transformer fitted on the rows are not
    covered: see `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Features are clipped to `bounds`, a pair of
    numbers or of one for each column, or one pair for each column name of a data frame, and targets
    to `bounds_y`; bounds that clip every row cannot raise and give noise that looks like a model.
    Rows with a NaN, or with a target
    that is NaN or no number, count as nothing; a prediction for such a row is the intercept.
    **Error**: `release_.error` forecasts the excess of the mean squared error where few features
    matter; the true one depends on unseen data.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 50))
    >>> y = 0.6 * X[:, 3] - 0.3 * X[:, 8]
    >>> model = SparseRegression(epsilon=1, bounds=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
    >>> int(abs(model.coef_).argmax()), model.score(X, y) > 0.7
    (3, True)
    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        bounds: Any = None,
        bounds_y: tuple[Rational, Rational] | None = None,
        radius: Rational = 1,
        fit_intercept: bool = True,
        method: Method = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.method = method

    def fit(self, X: Any, y: Any) -> SparseRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        target_bounds = as_target_bounds(self.bounds_y)
        intercept = as_flag(self.fit_intercept, "fit_intercept")
        rows, targets = read_examples(self, X, y)
        bounds = ColumnBounds.of_columns(self.bounds, self)
        domain = Ball(rows.shape[1] + intercept, as_positive(self.radius, "radius"), norm=1)
        steps = SparseSteps.best(
            rows=len(rows),
            columns=domain.dimension,
            epsilon=float(epsilon),
            radius=float(domain.radius),
        )
        scale = bounds if intercept else bounds.around_zero()
        scaled = scale.scaled(bounds.clipped(as_floats(rows)))
        if intercept:
            scaled = np.column_stack([scaled, np.ones(len(scaled))])
        release = frank_wolfe_pure(
            scaled,
            read_targets(targets, target_bounds, len(rows), intercept=intercept),
            loss=Huber(label_bound=1, threshold=_THRESHOLD),
            domain=domain,
            lipschitz=_THRESHOLD,
            epsilon=epsilon,
            iterations=steps.count,
            path=steps.path,
            method=self.method,
        )
        middle, half = target_scale(target_bounds, intercept)
        self._publish(release, scale, middle, half, error=steps.error)
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return rows @ coef_ + intercept_."""
        rows = rows_to_predict(self, X)
        return linear_scores(rows, self.coef_[None, :], self.intercept_)[:, 0]

    def _publish(
        self, release: Release, bounds: ColumnBounds, middle: float, half: float, *, error: float
    ) -> None:
        """Set coefficients for rows and targets in the units in which they were given."""
        columns = len(bounds.half)
        slopes = release.value[:columns] * half / bounds.half
        constant = middle + half * float(release.value[columns:].sum())
        constant -= math.fsum(slopes * bounds.middle)
        self.coef_, self.intercept_ = slopes, np.float64(constant)
        self.release_ = Release(
            value=LinearModel(coefficients=slopes[None, :], intercept=np.array([constant])),
            certificate=release.certificate,
            error=half**2 * error,
        )
        self.certificate_ = release.certificate

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__())
        tags.regressor_tags.poor_score = True  # few rows are mostly noise
        return tags
