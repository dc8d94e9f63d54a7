"""`LogisticRegression`: two or more public classes, with noise in the objective (theory C9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, final

from zerodelta.exact.rational import Rational
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.release import Release
from zerodelta.regression import fit_logistic, fit_multinomial
from zerodelta.regression.classification import logistic_methods, multinomial_methods
from zerodelta.sklearn.classification import PrivateClassifier, sorted_classes
from zerodelta.sklearn.linear_scores import linear_scores
from zerodelta.sklearn.logistic_descent import descend_logistic
from zerodelta.sklearn.reading import Floats, read_examples, rows_to_predict
from zerodelta.sklearn.required_epsilon import required_epsilon
from zerodelta.spine.methods import Method, choose

__all__ = ["LogisticRegression"]


@final
class LogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes, under pure ε-DP.

    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: one ``fit`` is pure ε-DP (theorems C9 and N, or R2), running time aside. Scores
    and predictions of rows, a `GridSearchCV` over them and a transformer fitted on the rows are not
    covered: see `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. `data_norm` bounds the l2 norm of a row: longer
    rows are shortened to it. `classes` lists all labels that can occur: `classes_` is that list in
    order, whatever is in y. Rows with a missing cell, or with a label that is no class, count
    as nothing; labels that all match no class, or a `data_norm` far below or above all rows, cannot
    raise and give noise that looks like a model. A prediction for such a row is that of the
    intercept. `method`: "objective" (noise in it), "descent" (a hidden one), or "auto", the one
    with the least predicted error.
    Probabilities are those of scores over `temperature_`, public and above 1 where noise dominates.
    **Error**: `release_.error` forecasts the excess of the mean loss; the true one depends on data.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(5000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LogisticRegression(epsilon=1, data_norm=1, classes=["no", "yes"]).fit(X, y)
    >>> model.predict([[0.6, 0.0], [-0.6, 0.0]]).tolist(), model.score(X, y) > 0.9
    (['yes', 'no'], True)
    >>> model.certificate_.claim.exact_epsilon
    Fraction(1, 1)
    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        data_norm: Rational | None = None,
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        method: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.method = method

    def fit(self, X: Any, y: Any) -> LogisticRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        known = sorted_classes(self.classes)
        rows, labels = read_examples(self, X, y)
        chosen = self._method(epsilon, len(rows), rows.shape[1], len(known))
        fit: Callable[..., Release] = fit_logistic if len(known) == 2 else fit_multinomial
        if chosen.name == "descent":
            fit = partial(descend_logistic, error=chosen.error)
        release = fit(
            rows,
            labels,
            epsilon=epsilon,
            data_norm=self.data_norm,
            classes=known,
            intercept=self.fit_intercept,
        )
        self.coef_, self.intercept_ = release.value.coefficients, release.value.intercept
        self.release_, self.certificate_ = release, release.certificate
        self._publish_classes(known, temperature=release.value.temperature)
        return self

    def _method(self, epsilon: Fraction, rows: int, columns: int, classes: int) -> Method:
        """Return the method that is named, or the one with the least predicted error."""
        forecast: Callable[..., tuple[Method, ...]] = (
            logistic_methods if classes == 2 else partial(multinomial_methods, classes=classes)
        )
        ways = forecast(
            epsilon=epsilon,
            n=rows,
            dimension=columns,
            intercept=as_flag(self.fit_intercept, "fit_intercept"),
        )
        return choose(ways, self.method)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one linear score for each class."""
        scores = linear_scores(rows_to_predict(self, X), self.coef_, self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores
