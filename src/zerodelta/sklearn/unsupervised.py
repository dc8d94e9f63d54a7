"""Define `PCA`, `KMeans` and `BoundedScaler`, which learn no ranges from rows and reveal none."""

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
from zerodelta.regression.rows import RowLimits
from zerodelta.sklearn.base import (
    PrivateEstimator,
    accepting_any_value,
    check_rows,
    debited_fit,
    fit_columns,
    required_epsilon,
    rows_to_predict,
    rows_to_transform,
)
from zerodelta.tasks.covariance import ComponentsQuestion, pca
from zerodelta.tasks.kmeans import kmeans

# -- `BoundedScaler` scales features by public bounds, not by the rows ----------------------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale columns from public bounds to [-1, 1], at no cost in ε.

    A `StandardScaler` or `MinMaxScaler` fitted on the rows lets each row change all others, which
    no certificate of a later step covers. This scaler learns nothing from rows.

    Parameters
    ----------
    bounds : (lower, upper), or a mapping from column names to such pairs
        Numbers, or one for each column; a mapping, in any order, for data frames. Values beyond
        are clipped; NaN stays NaN, and non-numeric cells become NaN. Bounds that contain no value
        clip all of them and raise no error: a fit that follows gives noise that looks like a model.
    data_norm : number, optional
        With it, rows are scaled and clipped to at most this l2 norm, for an estimator with the same
        `data_norm`.
    radius : number above 0 and at most 1
        The distance from the middle of the bounds at which `data_norm` is reached, as a part of the
        distance to a corner. The default is 1, which clips no row. With less, longer rows are
        clipped to `data_norm`: they keep their direction and lose the information in their size,
        which for rows in a corner is all. Pass 1/2 for few rows around the middle of their bounds,
        whose length would drown in noise; `LogisticRegression` with `bounds` decides by a forecast.

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
        """Check the parameters against the columns without reading a value."""
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
        """Return `data_norm`, and the length of scaled rows at which it is reached."""
        require(
            self.data_norm is not None or self.radius is None,
            "radius",
            self.radius,
            expected="None without data_norm",
            remedy="pass data_norm=1",
        )
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
    # in column order, so that the rounding of a row does not depend on other rows
    squares = np.cumsum(rows * rows, axis=1)[:, -1:]
    return rows * (norm / np.maximum(np.sqrt(squares), reach))


# -- `KMeans`: cluster centers by the best pure method, without labels or inertia -----------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(PrivateEstimator):
    """k-means centers under pure ε-DP; use it in place of `sklearn.cluster.KMeans`.

    There is no `labels_`, `inertia_`, `n_iter_` or ``fit_predict``: they would reveal rows.

    Parameters
    ----------
    n_clusters : int
        The number of centers.
    method : str
        A method of `zerodelta.kmeans`.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The published centers, in the units of the data.

    Notes
    -----
    **Releases**: `cluster_centers_`, which is `release_.value`, `diagnostics_` on request, and
    `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Public**: all parameters and the shape of X. Rows with a NaN are ignored, and predictions
    replace a NaN by the middle of its bounds. Bounds that clip every row raise no error, and give
    centers that are noise.
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
        """Publish centers, the one release that the certificate covers."""
        self.cluster_centers_ = fit_columns(self, kmeans, X, clusters=self.n_clusters)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int64]:  # noqa: N803
        """Return the index of the nearest center of each row."""
        nearest: npt.NDArray[np.int64] = self._squares(X).argmin(axis=1)
        return nearest

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return minus the inertia of these rows, which is not private."""
        return -float(self._squares(X).min(axis=1).sum())

    def _squares(self, X: Any) -> Floats:  # noqa: N803
        """Return the squared distances of rows, clipped to the bounds, to all centers."""
        rows = _filled(self, X)
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
        The number of components, by default all. More components cost nothing.
    radius : number, optional
        The radius of the ball to which rows are projected, as in `zerodelta.pca`. By default rows
        are projected only where noise is forecast to be worse than the bias of projected rows in a
        corner of their bounds.
    method : str
        A method of `zerodelta.pca`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Directions of unit length; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_ : arrays
        The variance of rows along each component, and as a fraction of the total variance.
    mean_ : array
        The mean row.
    n_components_ : int
        The number of components.

    Notes
    -----
    **Releases**: all attributes above, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, add-remove, or one unit of a data set, as it was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: K-norm noise on the exact sums of products.
    Transformed rows, also those of ``fit_transform``, are not private: share them only with those
    who may see the rows.
    **Public**: all parameters and the shape of X. Rows with a missing cell count as the middle of
    all bounds in an array, and are ignored in a data set. ``transform`` clips and projects rows as
    the fit did, and replaces a missing cell by the middle of its bounds.
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
        """Publish components, the one release that the certificate covers."""
        result = fit_columns(self, pca, X, components=self.n_components, radius=self.radius)
        bounds: ColumnBounds = self._bounds
        question = ComponentsQuestion(
            bounds=(bounds.lower, bounds.upper), radius=self.radius, method=self.method
        )
        _, _, products = question.about(check_rows(self, X), epsilon=required_epsilon(self.epsilon))
        self._norm = products.norm
        self.components_, self.mean_ = result.components, result.mean
        self.explained_variance_ = result.explained_variance
        self.explained_variance_ratio_ = result.explained_variance_ratio
        self.n_components_ = len(result.components)
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the coordinates of rows along the components, which are not private."""
        return np.asarray((_filled(self, X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the rows that have these coordinates."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:  # the name is scikit-learn's
        return len(self.components_)


def _filled(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """Return rows clipped as in a fit, with missing cells at the middle of their bounds."""
    rows = rows_to_predict(estimator, X)  # refuses an estimator that is not fitted
    bounds, norm = estimator._bounds, getattr(estimator, "_norm", None)
    return RowLimits(middle=bounds.middle, half=bounds.half, norm=norm, bounds=bounds)(rows)
