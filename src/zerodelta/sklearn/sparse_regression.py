"""`SparseRegression`: least absolute shrinkage on the l1 ball, by pure Frank-Wolfe (theory C2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from zerodelta.exact.rational import Rational, as_positive
from zerodelta.paper.frank_wolfe_pure import Method, best_iterations, frank_wolfe_pure
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.release import Release
from zerodelta.sklearn.column_bounds import ColumnBounds
from zerodelta.sklearn.linear_scores import linear_scores
from zerodelta.sklearn.reading import (
    Floats,
    accepting_any_value,
    as_floats,
    read_examples,
    rows_to_predict,
)
from zerodelta.spaces import Ball
from zerodelta.study.losses import Huber
from zerodelta.tasks.regression import LinearModel
from zerodelta.tasks.regression.reading import as_target_bounds, read_targets, target_scale

__all__ = ["SparseRegression"]

_THRESHOLD = Fraction(1, 4)
"""Residuals beyond this part of half the target's range count linearly: a quarter of the noise."""

_FEWER = 6
"""Frank-Wolfe's own bound asks for so many times the steps that do best on sparse data."""


@final
class SparseRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with few coefficients that are not 0, under pure ε-DP.

    Its error grows with the logarithm of the number of features: for many of them, few of which
    matter. Minimises the Huber loss over coefficients whose l1 norm is at most `radius`, in units
    where features and targets lie in [-1, 1]; the intercept counts as a coefficient. A radius of 1
    is what predictions inside `bounds_y` need.

    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: one ``fit`` is pure ε-DP (theory C2): T choices of one feature, ε/T each. Scores
    and predictions of rows, a `GridSearchCV` over them and a transformer fitted on the rows are not
    covered: see `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Features are clipped to `bounds`, a pair of
    numbers or of one for each column, and targets to `bounds_y`. Rows with a NaN, or with a target
    that is NaN or no number, count as nothing; a prediction for such a row is the intercept.
    **Error**: `release_.error` bounds the expected excess of the mean squared error, as far as
    residuals are small; it is pessimistic.

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
        epsilon: Rational = 1,
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
        target_bounds = as_target_bounds(self.bounds_y)
        intercept = as_flag(self.fit_intercept, "fit_intercept")
        rows, targets = read_examples(self, X, y)
        bounds = ColumnBounds.of(self.bounds, columns=rows.shape[1])
        domain = Ball(rows.shape[1] + intercept, as_positive(self.radius, "radius"), norm=1)
        steps = best_iterations(
            rows=len(rows), epsilon=self.epsilon, smoothness=1, lipschitz=_THRESHOLD, domain=domain
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
            epsilon=self.epsilon,
            iterations=max(4, steps // _FEWER),
            smoothness=1,
            method=self.method,
        )
        self._publish(release, scale, *target_scale(target_bounds, intercept))
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return rows @ coef_ + intercept_."""
        rows = rows_to_predict(self, X)
        return linear_scores(rows, self.coef_[None, :], self.intercept_)[:, 0]

    def _publish(self, release: Release, bounds: ColumnBounds, middle: float, half: float) -> None:
        """Set coefficients for rows and targets in the units in which they were given."""
        columns = len(bounds.half)
        slopes = release.value[:columns] * half / bounds.half
        constant = middle + half * float(release.value[columns:].sum())
        constant -= math.fsum(slopes * bounds.middle)
        self.coef_, self.intercept_ = slopes, np.float64(constant)
        self.release_ = Release(
            value=LinearModel(coefficients=slopes[None, :], intercept=np.array([constant])),
            certificate=release.certificate,
            error=2 * half**2 * float(release.error),
        )
        self.certificate_ = release.certificate

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__())
        tags.regressor_tags.poor_score = True  # few rows are mostly noise
        return tags
