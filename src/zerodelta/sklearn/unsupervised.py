"""`PCA`, `KMeans` and `BoundedScaler`: no rows are shown, and no ranges are learned from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_float, as_positive
from zerodelta.regression.encoded_columns import ColumnBounds, RowBox, as_radius
from zerodelta.sklearn.base import (
    PrivateEstimator,
    accepting_any_value,
    check_rows,
    debited_fit,
    fit_columns,
    rows_to_predict,
    rows_to_transform,
)
from zerodelta.tasks.covariance import pca
from zerodelta.tasks.kmeans import kmeans

# -- `BoundedScaler`: features scaled by public bounds, not by what the rows happen to be ---------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale columns from public bounds to [-1, 1]; nothing is learned from rows, so it is free.

    A `StandardScaler` or `MinMaxScaler` fitted on the rows lets every row move all others: no
    certificate of a later step covers that. This one treats rows one by one.

    Parameters
    ----------
    bounds : (lower, upper), or a mapping from column names to such pairs
        Numbers, or one for each column; a mapping, in any order, for data frames. Values beyond
        are clipped; NaN stays NaN, and what is no number becomes NaN. Bounds that no value is
        inside clip everything, which cannot raise: the fit that follows is noise that looks like a
        model.
    data_norm : number, optional
        If given, rows are scaled and clipped to at most this l2 norm, to fit an estimator with the
        same `data_norm`.
    radius : number above 0 and at most 1
        How far from the middle of the bounds `data_norm` is reached, as a part of the distance to a
        corner. By default 1, which clips no row. With less, rows beyond are clipped to `data_norm`:
        their direction stays, and their size is lost, to which rows in a corner owe all that they
        tell. Pass 1/2 for few rows around the middle of their bounds, whose length would drown in
        noise; `LogisticRegression` with `bounds` decides by a forecast.

    Examples
    --------
    >>> BoundedScaler(bounds=([0, 100], [10, 200])).transform([[5, 100], [10, 999]])
    array([[ 0., -1.],
           [ 1.,  1.]])
    >>> BoundedScaler(bounds=(-1, 1), data_norm=1).transform([[1, 0, 0, 0], [1, 1, 1, 1]])
    array([[0.5, 0. , 0. , 0. ],
           [0.5, 0.5, 0.5, 0.5]])

    """

    bounds: Any = None
    data_norm: Rational | None = None
    radius: Rational | None = None

    def fit(self, X: Any, y: Any = None) -> BoundedScaler:  # noqa: N803
        """Check the parameters against the columns; no value is read."""
        check_rows(self, X)
        ColumnBounds.of_columns(self.bounds, self)
        self._ball(self.n_features_in_)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the scaled rows."""
        fitted = hasattr(self, "n_features_in_")
        reader = self if fitted else clone(self)
        rows = rows_to_transform(reader, X, reset=not fitted)
        scaled = ColumnBounds.of_columns(self.bounds, reader).scaled(rows)
        ball = self._ball(rows.shape[1])
        return scaled if ball is None else _clipped(scaled, *ball)

    def _ball(self, columns: int) -> tuple[float, float] | None:
        """Return `data_norm`, and the length in the cube at which it is reached."""
        alone, given = "None without data_norm", self.data_norm is not None
        none = self.radius is None
        require(given or none, "radius", self.radius, expected=alone, remedy="pass data_norm=1")
        if self.data_norm is None:
            return None
        norm = as_float(as_positive(self.data_norm, "data_norm"), "data_norm")
        reach = RowBox(numbers=columns).reach(as_radius(1 if self.radius is None else self.radius))
        return norm, reach

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__(), random=False)
        tags.requires_fit = False
        return tags


def _clipped(rows: Floats, norm: float, reach: float) -> Floats:
    """Return the rows times norm/reach, or of length `norm` if they are longer."""
    # in order, so that a row is added up by itself
    squares = np.cumsum(rows * rows, axis=1)[:, -1:]
    return rows * (norm / np.maximum(np.sqrt(squares), reach))


# -- `KMeans`: centers of clusters by the best pure method; no labels, no inertia -----------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(PrivateEstimator):
    """k-means centers under pure ε-DP; use it in place of `sklearn.cluster.KMeans`.

    There is no `labels_`, `inertia_`, `n_iter_` or ``fit_predict``: they would show rows.

    Parameters
    ----------
    n_clusters : int
        The number of centers.
    method : str
        What `zerodelta.kmeans` accepts.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The published centers, in the units of the data.

    Notes
    -----
    **Releases**: `cluster_centers_`, which is `release_.value`, `diagnostics_` if asked for, and
    `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Public**: all parameters and the shape of X. Rows with a NaN count as nothing, and
    predictions take a NaN for the middle of its bounds. Bounds that clip every row cannot raise
    and give centers that are noise.
    **Error**: `release_.error` forecasts (inertia / best inertia) - 1 for compact clusters.

    Examples
    --------
    >>> rng = np.random.default_rng(7)
    >>> X = np.concatenate([rng.normal(c, 0.3, size=(5000, 2)) for c in ([2, 2], [7, 8])])
    >>> model = KMeans(n_clusters=2, epsilon=1, bounds=(0, 10)).fit(X)
    >>> model.predict([[2, 3], [9, 9]])
    array([0, 1])

    """

    n_clusters: int = 8
    bounds: Any = None
    method: str = "auto"

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


@final
@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal components under pure ε-DP; use it in place of `sklearn.decomposition.PCA`.

    There is no `singular_values_`, `noise_variance_` or `n_samples_`.

    Parameters
    ----------
    n_components : int, optional
        How many; by default all. More cost nothing.
    radius : number, optional
        What `zerodelta.pca` accepts: rows are projected to a ball, by default only where noise is
        forecast to be worse than the bias that this has for rows in a corner of their bounds.
    method : str
        What `zerodelta.pca` accepts.

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

    Notes
    -----
    **Releases**: all attributes above, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, rows that come and go, or one unit of a data set, as it was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: K-norm noise on the exact sums of products.
    Transformed rows, of ``fit_transform`` too, belong to who may see the rows: nothing hides them.
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

    n_components: int | None = None
    bounds: Any = None
    radius: Rational | None = None
    method: str = "auto"

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
