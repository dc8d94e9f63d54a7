"""`LinearRegression`: by the pure method with the least predicted error."""

from __future__ import annotations

from typing import Any, final

from zerodelta.data.account import Account
from zerodelta.exact.rational import Rational
from zerodelta.regression.linear import LinearQuestion
from zerodelta.sklearn.base_estimators import PrivateRegressor, debited_fit, required_epsilon
from zerodelta.sklearn.given_data import check_examples, remember


@final
class LinearRegression(PrivateRegressor):
    """Linear regression under pure ε-DP.

    Parameters
    ----------
    epsilon : number
        What one ``fit`` costs; there is no default.
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it. For a data set, of
        the row with its numbers scaled to [-1, 1] by their bounds and each category as one 1 among
        zeros; by default √columns, which clips no row (clipped ones bias a line).
    bounds_y : (lower, upper)
        Public bounds of the targets, which are clipped to them; for a data set as declared.
    fit_intercept : bool
        Whether the line may miss the origin.
    method : str
        "huber", "statistics", "adassp", "descent" or "auto", the one with the least predicted
        error: see `zerodelta.regression.fit_linear`.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`, of a data set: which fractions of the
        rows were used, clipped to the declared bounds, and unreadable.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,), number
        The published line, in the units of the data.
    encoded_names_ : array
        Only after a fit on a data set: what the coefficients belong to, in their order; a category
        has one for each option ("city=oslo").
    diagnostics_ : Diagnostics or None
        How the rows were read, if `diagnostics` asks for that.
    release_, certificate_ : Release, Certificate
        What was published, and what is proven of it.

    Notes
    -----
    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Guarantee**: one ``fit`` is pure ε-DP, running time aside. Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a target that
    is no number, count as nothing; a prediction for such a row is the intercept. A `data_norm` or
    `bounds_y` that clips every row, or that all rows are far inside, cannot raise and gives noise
    that looks like a model. ``fit(people[["age", "city"]], people["income"])`` takes two selections
    of one `zd.open` data set; rows that ``where`` drops count as nothing. "statistics" and "adassp"
    read rows one after another, whatever their number; "huber" holds all of them in memory.
    **Error**: `release_.error` forecasts the excess of the mean squared error; the true one depends
    on unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3 * X[:, 0] + 1
    >>> model = LinearRegression(epsilon=4, data_norm=1, bounds_y=(-2, 4)).fit(X, y)
    >>> model.predict([[0.7, 0.0], [-0.7, 0.0]]).round(1)
    array([ 3.1, -1.1])

    Columns of a data set, by name, with the bounds that were declared:

    >>> import zerodelta as zd
    >>> income = 1000 * (np.arange(50_000) % 80)
    >>> table = np.column_stack([income, 20 + income / 2000])
    >>> people = zd.open(table, columns={"0": zd.number(0, 80_000), "1": zd.number(0, 100)})
    >>> model = LinearRegression(epsilon=4).fit(people[["0"]], people["1"])
    >>> model.predict([[0], [60_000]]).round(-1)
    array([20., 50.])

    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        data_norm: Rational | None = None,
        bounds_y: tuple[Rational, Rational] | None = None,
        fit_intercept: bool = True,
        method: str = "auto",
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.method = method
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any) -> LinearRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        rows, targets = check_examples(self, X, y)
        question = LinearQuestion.of(
            rows,
            targets,
            data_norm=self.data_norm,
            bounds_y=self.bounds_y,
            intercept=self.fit_intercept,
            method=self.method,
        )
        release = question.release(rows, targets, epsilon=epsilon, diagnostics=self.diagnostics)
        self.diagnostics_ = release.diagnostics
        self._publish(release)
        remember(self, question.encoding)
        return self
