"""`PCA`: principal components from one noisy matrix of products; no rows are shown."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from zerodelta.data.account import Account
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational
from zerodelta.sklearn.base_estimators import accepting_any_value, debited_fit, fit_columns
from zerodelta.sklearn.given_data import rows_to_predict
from zerodelta.sklearn.saved_estimators import SavedEstimator
from zerodelta.tasks.pca import pca


@final
class PCA(
    SavedEstimator,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Principal components under pure ε-DP; use it in place of `sklearn.decomposition.PCA`.

    There is no `singular_values_`, `noise_variance_` or `n_samples_`.

    Parameters
    ----------
    n_components : int, optional
        How many; by default all. More cost nothing.
    epsilon : number
        What one ``fit`` costs; there is no default.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Public bounds of the columns, numbers or one for each; values beyond are clipped. For a data
        set as declared.
    radius : number, optional
        What `zerodelta.pca` accepts: rows are projected to a ball, by default only where noise is
        forecast to be worse than the bias that this has for rows in a corner of their bounds.
    method : str
        What `zerodelta.pca` accepts.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`: which fractions of the rows
        were used, clipped to the bounds, and unreadable.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions of unit length; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_ : arrays
        What the rows vary along them, and as parts of all.
    mean_ : array
        The mean row.
    n_components_ : int
        How many there are.
    diagnostics_ : Diagnostics or None
        How the rows were read, if `diagnostics` asks for that.
    release_, certificate_ : Release, Certificate
        What was published, and what is proven of it.

    Notes
    -----
    **Releases**: all attributes above, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, rows that come and go, or one unit of a data set, as it was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: K-norm noise on the exact sums of products.
    Scores and predictions of rows, a `GridSearchCV` over them and a transformer fitted on the rows
    are not covered: see `zerodelta.select_model` and `BoundedScaler`. Nor are transformed rows,
    of ``fit_transform`` too: they belong to who may see the rows.
    **Public**: all parameters and the shape of X. Rows with a missing cell count as the middle of
    all bounds in an array, and as nothing in a data set; ``transform`` takes a missing cell for
    the middle of its bounds.
    **Error**: `release_.error` forecasts the absolute error of an entry of the covariance matrix,
    as `zerodelta.pca` does.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=20_000)
    >>> model = PCA(n_components=1, epsilon=2, bounds=(-1, 1)).fit(np.column_stack([x, x]))
    >>> model.components_.round(1), model.transform([[1, 1]]).round(0)
    (array([[0.7, 0.7]]), array([[1.]]))

    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        epsilon: Rational | None = None,
        bounds: Any = None,
        radius: Rational | None = None,
        method: str = "auto",
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.bounds = bounds
        self.radius = radius
        self.method = method
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any = None) -> PCA:  # noqa: N803
        """Publish components; this is the one release that the certificate is about."""
        found = fit_columns(self, pca, X, components=self.n_components, radius=self.radius)
        self.components_, self.mean_ = found.components, found.mean
        self.explained_variance_ = found.explained_variance
        self.explained_variance_ratio_ = found.explained_variance_ratio
        self.n_components_ = len(found.components)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the coordinates of rows along the components; they are not private."""
        given = rows_to_predict(self, X)
        rows = np.where(np.isnan(given), self._bounds.middle, self._bounds.clipped(given))
        return np.asarray((rows - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the rows that have these coordinates."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        return accepting_any_value(super().__sklearn_tags__())
