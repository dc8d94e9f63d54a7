"""`BoundedScaler`: features scaled by public bounds, not by what the rows happen to be."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_float, as_positive
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.row_box import RowBox, as_radius
from zerodelta.sklearn.base_estimators import accepting_any_value
from zerodelta.sklearn.given_data import check_rows, rows_to_transform


@final
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

    def __init__(
        self,
        *,
        bounds: Any = None,
        data_norm: Rational | None = None,
        radius: Rational | None = None,
    ) -> None:
        self.bounds = bounds
        self.data_norm = data_norm
        self.radius = radius

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
