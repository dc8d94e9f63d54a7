"""Rows and targets as scikit-learn users pass them; only their shape and their names can raise.

scikit-learn's own checks refuse NaN, infinities and texts, and print rows in their messages. An
exception is an output (theory A14), so here it sees a stand-in of the same shape without values.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import numbers
from zerodelta.data.columns import as_cells, as_rows
from zerodelta.errors import ParameterError
from zerodelta.spine.transition import opened

__all__ = [
    "Floats",
    "accepting_any_value",
    "as_floats",
    "read_examples",
    "read_rows",
    "rows_to_predict",
]

Floats: TypeAlias = npt.NDArray[np.float64]


def accepting_any_value(tags: Any, *, random: bool = True) -> Any:
    """Return scikit-learn's tags with what is true of all our estimators."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True  # a text is the number it spells, else NaN
    tags.non_deterministic = random
    return tags


def read_rows(estimator: Any, X: Any, *, reset: bool = True) -> npt.NDArray[Any]:  # noqa: N803
    """Return the rows as a two-dimensional array of real numbers, NaN for what is none.

    Sets or compares `n_features_in_` and `feature_names_in_`.
    """
    table, named = _as_table(X)
    check_array(_stand_in(table), ensure_all_finite=False, estimator=estimator, input_name="X")
    validate_data(estimator, X if named else table, skip_check_array=True, reset=reset)
    return table if table.dtype.kind in "biuf" else as_floats(table)


def read_examples(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows, and one label or target for each as it was given."""
    validate_data(estimator, y=y, skip_check_array=True)  # says that y is missing
    rows, targets = read_rows(estimator, X), _as_column(y)
    check_consistent_length(rows, targets)
    return rows, targets


def rows_to_predict(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """Return rows for a fitted estimator, as float64."""
    check_is_fitted(estimator)
    return as_floats(read_rows(estimator, X, reset=False))


def _as_table(X: Any) -> tuple[npt.NDArray[Any], bool]:  # noqa: N803
    """Return the rows as an array, and whether their columns have names."""
    if issparse(X):
        raise ParameterError(
            "X", type(X).__name__, expected="dense rows, not sparse ones", remedy="pass X.toarray()"
        )
    if nw.dependencies.is_into_dataframe(X):
        return _blocks(ArraySource(X)), True
    if isinstance(X, np.ma.MaskedArray) and X.ndim == 2:
        return _blocks(ArraySource(X)), False  # what is masked is NaN
    if isinstance(X, (list, tuple)):
        table = as_rows(X)  # nothing is converted: a cell may be no number
        narrow = table.ndim == 1 and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))
        return table.reshape(-1, 1) if narrow else table, False
    return np.asarray(X), False


def _as_column(y: Any) -> npt.NDArray[Any]:
    """Return y in one dimension; cells of a list stay what they are."""
    array = as_rows(y) if isinstance(y, (list, tuple)) else as_cells(y)
    column_or_1d(_stand_in(array), warn=True)
    return array.reshape(-1)


def _stand_in(array: npt.NDArray[Any]) -> Floats:
    """Return zeros of the same shape, in the memory of one."""
    return np.broadcast_to(np.float64(0), array.shape)


def as_floats(table: npt.NDArray[Any]) -> Floats:
    """Return the array as float64, NaN for what is no real number, no infinities."""
    read: Floats = numbers(table)
    return read


def _blocks(source: ArraySource) -> Floats:
    return np.concatenate([np.empty((0, len(source.columns))), *opened(source).blocks()])
