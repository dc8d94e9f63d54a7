"""`BoundedScaler`: features scaled by public bounds, not by what the rows happen to be."""

from __future__ import annotations

import math
from typing import Any, final

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone

from zerodelta.exact.rational import Rational, as_positive
from zerodelta.sklearn.column_bounds import ColumnBounds
from zerodelta.sklearn.reading import Floats, accepting_any_value, as_floats, read_rows

__all__ = ["BoundedScaler"]


@final
class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale columns from public bounds to [-1, 1]; nothing is learnt from rows, so it is free.

    A `StandardScaler` or `MinMaxScaler` fitted on the rows lets every row move all others: no
    certificate of a later step covers that. This one treats rows one by one.

    `bounds`: (lower, upper), numbers or one for each column. Values beyond are clipped; NaN stays
    NaN, and what is no number becomes NaN. `data_norm`: if given, rows are shrunk to at most that
    l2 norm, to fit an estimator with the same `data_norm`.

    >>> BoundedScaler(bounds=([0, 100], [10, 200])).transform([[5, 100], [10, 999]])
    array([[ 0., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, *, bounds: Any = None, data_norm: Rational | None = None) -> None:
        self.bounds = bounds
        self.data_norm = data_norm

    def fit(self, X: Any, y: Any = None) -> BoundedScaler:  # noqa: N803
        """Check the bounds against the number of columns; no value is read."""
        rows = read_rows(self, X)
        self._scale(rows.shape[1])
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the scaled rows."""
        fitted = hasattr(self, "n_features_in_")
        rows = as_floats(read_rows(self if fitted else clone(self), X, reset=not fitted))
        bounds, factor = self._scale(rows.shape[1])
        return bounds.scaled(rows) * factor

    def _scale(self, columns: int) -> tuple[ColumnBounds, float]:
        bounds = ColumnBounds.of(self.bounds, columns=columns)
        if self.data_norm is None:
            return bounds, 1.0
        return bounds, float(as_positive(self.data_norm, "data_norm")) / math.sqrt(columns)

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__(), random=False)
        tags.requires_fit = False
        return tags
