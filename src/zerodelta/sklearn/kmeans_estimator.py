"""`KMeans`: centers of clusters by the best pure method; no labels, no inertia."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from zerodelta.data.account import Account
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational
from zerodelta.sklearn.base_estimators import accepting_any_value, debited_fit, fit_columns
from zerodelta.sklearn.given_data import rows_to_predict
from zerodelta.sklearn.saved_estimators import SavedEstimator
from zerodelta.tasks.kmeans import kmeans


@final
class KMeans(SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """k-means centers under pure ε-DP; use it in place of `sklearn.cluster.KMeans`.

    There is no `labels_`, `inertia_`, `n_iter_` or ``fit_predict``: they would show rows.

    Parameters
    ----------
    n_clusters : int
        The number of centers.
    epsilon : int, float, Fraction or str
        The privacy parameter of one ``fit``.
    bounds : pair, or mapping of column names to pairs
        Public bounds, two numbers or two lists. Rows are clipped to them; bounds that clip every
        row cannot raise and give centers that are noise. For a data set as declared.
    method : str
        What `zerodelta.kmeans` accepts.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`: which fractions of the rows
        were used, clipped to the bounds, and unreadable.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    **Releases**: `cluster_centers_`, which is `release_.value`, `diagnostics_` if asked for, and
    `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`. Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Public**: all parameters and the shape of X. Rows with a NaN count as nothing, and
    predictions take a NaN for the middle of its bounds.
    **Error**: `release_.error` forecasts (inertia / best inertia) - 1 for compact clusters.

    >>> rng = np.random.default_rng(7)
    >>> X = np.concatenate([rng.normal(c, 0.3, size=(5000, 2)) for c in ([2, 2], [7, 8])])
    >>> model = KMeans(n_clusters=2, epsilon=1, bounds=(0, 10)).fit(X)
    >>> model.predict([[2, 3], [9, 9]])
    array([0, 1])

    """

    def __init__(
        self,
        *,
        n_clusters: int = 8,
        epsilon: Rational | None = None,
        bounds: Any = None,
        method: str = "auto",
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.bounds = bounds
        self.method = method
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any = None) -> KMeans:  # noqa: N803
        """Publish centers; this is the one release that the certificate is about."""
        self.cluster_centers_ = fit_columns(self, kmeans, X, clusters=self.n_clusters)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """Return the number of the nearest center."""
        nearest: npt.NDArray[np.int64] = self._squares(X).argmin(axis=1)
        return nearest

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return minus the inertia of these rows; it is not private."""
        return -float(self._squares(X).min(axis=1).sum())

    def _squares(self, X: Any) -> Floats:  # noqa: N803
        """Return the squared distances of rows, clipped to the bounds, to all centers."""
        given = rows_to_predict(self, X)
        rows = np.where(np.isnan(given), self._bounds.middle, self._bounds.clipped(given))
        squares = np.empty((len(rows), len(self.cluster_centers_)))
        for place, center in enumerate(self.cluster_centers_):
            squares[:, place] = ((rows - center) ** 2).sum(axis=1)
        return squares

    def __sklearn_tags__(self) -> Any:
        return accepting_any_value(super().__sklearn_tags__())
