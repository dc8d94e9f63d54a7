"""`LinearRegression`: by the pure method with the least predicted error."""

from __future__ import annotations

from typing import Any, final

from sklearn.base import BaseEstimator, RegressorMixin

from zerodelta.exact.rational import Rational
from zerodelta.regression import fit_linear
from zerodelta.sklearn.linear_scores import linear_scores
from zerodelta.sklearn.reading import (
    Floats,
    accepting_any_value,
    read_examples,
    rows_to_predict,
)
from zerodelta.sklearn.required_epsilon import required_epsilon

__all__ = ["LinearRegression"]


@final
class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression under pure ε-DP.

    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: one ``fit`` is pure ε-DP, running time aside. Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. `data_norm` bounds the l2 norm of a row: longer
    rows are shortened to it; targets are cut to `bounds_y`. Rows with a missing cell, or with
    a target that is NaN or no number, count as nothing; a prediction for such a row is the
    intercept. A `data_norm` or `bounds_y` that clips every row, or that all rows are far inside,
    cannot raise and gives noise that looks like a model. `method`: what
    `zerodelta.regression.fit_linear` accepts.
    **Error**: `release_.error` forecasts the excess of the mean squared error; the true one depends
    on unseen data.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(5000, 2))
    >>> y = 3 * X[:, 0] + 1
    >>> model = LinearRegression(epsilon=1, data_norm=1, bounds_y=(-2, 4)).fit(X, y)
    >>> bool(abs(model.coef_[0] - 3) < 1), model.coef_.shape, model.score(X, y) > 0.9
    (True, (2,), True)
    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        data_norm: Rational | None = None,
        bounds_y: tuple[Rational, Rational] | None = None,
        fit_intercept: bool = True,
        method: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.method = method

    def fit(self, X: Any, y: Any) -> LinearRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        rows, targets = read_examples(self, X, y)
        release = fit_linear(
            rows,
            targets,
            epsilon=epsilon,
            data_norm=self.data_norm,
            bounds_y=self.bounds_y,
            intercept=self.fit_intercept,
            method=self.method,
        )
        self.coef_, self.intercept_ = release.value.coefficients[0], release.value.intercept[0]
        self.release_, self.certificate_ = release, release.certificate
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return rows @ coef_ + intercept_."""
        rows = rows_to_predict(self, X)
        return linear_scores(rows, self.coef_[None, :], self.intercept_)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__())
        tags.regressor_tags.poor_score = True  # few rows are mostly noise
        return tags
