"""`LogisticRegression`: two or more public classes, with noise in the objective (theory C9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from zerodelta.data.account import Account
from zerodelta.data.dataset import Dataset
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational
from zerodelta.regression.classifiers import ClassifierQuestion
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.label_values import declared_classes
from zerodelta.sklearn.base_estimators import (
    PrivateClassifier,
    debited_fit,
    linear_scores,
    required_epsilon,
    sorted_classes,
)
from zerodelta.sklearn.given_data import check_examples, remember, rows_to_predict


@final
class LogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes, under pure ε-DP.

    Parameters
    ----------
    epsilon : number
        What one ``fit`` costs; there is no default.
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it, in predictions as in
        the fit. With `bounds` or for a data set, of the row with its numbers scaled to [-1, 1] and
        each category as one 1 among zeros; by default as `radius` says.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Instead of `data_norm`: public bounds of the features, numbers or one for each column, by
        which they are scaled; values beyond are clipped. For a data set as declared.
    radius : number above 0 and at most 1, optional
        With bounds: how far numbers reach on the way from the middle to a corner. 1 clips no row;
        rows beyond are clipped to that length, and lose their size. By default 1, unless n and ε
        are so small that the forecast is to learn as little of whole rows as of clipped ones in a
        corner: then 1/2 (for one to three numbers as far as a face).
    classes : sequence of labels
        All labels that can occur, whatever is in y; public. For a data set as declared.
    fit_intercept : bool
        Whether scores at the origin may differ from 0.
    method : str
        "objective" (noise in it), "descent" (on internal answers), or "auto", the one with the
        least predicted error.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`, of a data set: which fractions of the
        rows were used, clipped to the declared bounds, and unreadable.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    classes_ : array
        The classes in order.
    coef_, intercept_ : arrays of shape (1 or n_classes, n_features), (1 or n_classes,)
        The published lines, in the units of the data; one for two classes, positive for the second.
    data_norm_ : float or None
        The length to which longer rows, scaled if there are bounds, were clipped; None if none can
        be longer. A public number.
    encoded_names_ : array
        Only after a fit on a data set: what the coefficients belong to, in their order; a category
        has one for each option ("city=oslo").
    temperature_ : float
        Probabilities are those of scores over this public number, above 1 where noise dominates.
    diagnostics_ : Diagnostics or None
        How the rows were read, if `diagnostics` asks for that.
    release_, certificate_ : Release, Certificate
        What was published, and what is proven of it.

    Notes
    -----
    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Guarantee**: one ``fit`` is pure ε-DP (theorems C9 and N, or R2), running time aside. Scores
    and predictions of rows, a `GridSearchCV` over them and a transformer fitted on the rows are not
    covered: see `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that is
    no class, count as nothing; labels that all match no class, or a `data_norm` far below or above
    all rows, cannot raise and give noise that looks like a model. A prediction for a row with a
    missing cell is that of the intercept. ``fit(people[["age", "city"]], people["member"])`` takes
    two selections of one `zd.open` data set; rows that ``where`` drops count as nothing, and rows
    to predict may be frames with the same columns, read by the schema.
    **Error**: `release_.error` forecasts the excess of the mean log loss over that of the best
    line, in nats. With bounds, for rows that fill a quarter of each column's bounds, anywhere in
    them: in the corner clipped rows lose all of their size. With `data_norm` alone, for rows that
    fill it evenly. In both for a moderate signal; the true one depends on data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(5000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LogisticRegression(epsilon=4, data_norm=1, classes=["no", "yes"]).fit(X, y)
    >>> model.predict([[0.6, 0.0], [-0.6, 0.0]])
    array(['yes', 'no'], dtype='<U3')

    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        data_norm: Rational | None = None,
        bounds: Any = None,
        radius: Rational | None = None,
        classes: Sequence[Any] | None = None,
        fit_intercept: bool = True,
        method: str = "auto",
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.bounds = bounds
        self.radius = radius
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.method = method
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any) -> LogisticRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        known = sorted_classes(declared_classes(y) if self.classes is None else self.classes)
        rows, labels = check_examples(self, X, y)
        question = ClassifierQuestion.of(
            rows,
            classes=known,
            data_norm=self.data_norm,
            intercept=self.fit_intercept,
            method=self.method,
            bounds=self._bounds_of(rows),
            radius=self.radius,
        )
        release = question.release(rows, labels, epsilon=epsilon, diagnostics=self.diagnostics)
        self.diagnostics_ = release.diagnostics
        limits = release.value.limits
        self.data_norm_ = None if limits is None or limits.norm is None else float(limits.norm)
        self.coef_, self.intercept_ = release.value.coefficients, release.value.intercept
        self._publish(release, known, temperature=release.value.temperature)
        remember(self, question.encoding)
        return self

    def _bounds_of(self, rows: Any) -> ColumnBounds | None:
        """Return the bounds of the columns of an array or a frame, if they are given."""
        if isinstance(rows, Dataset):
            ColumnBounds.declared(self.bounds, Encoding.of(rows.kinds))  # refuses others
            return None
        return None if self.bounds is None else ColumnBounds.of_columns(self.bounds, self)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one linear score for each class."""
        rows = rows_to_predict(self, X)
        rows = self.release_.value.limited(rows)
        scores = linear_scores(rows, self.coef_, self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores
