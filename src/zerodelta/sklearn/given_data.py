"""Rows and targets as scikit-learn users pass them; only their shape and their names can raise.

scikit-learn's own checks refuse NaN, infinities and texts, and print rows in their messages. An
exception is an output (theory A14), so here it sees a stand-in of the same shape without values.
"""

from __future__ import annotations

from typing import Any

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

from zerodelta.data.arrays import ArraySource, public_table
from zerodelta.data.cells import numbers
from zerodelta.data.dataset import Dataset
from zerodelta.data.unread import Unread
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.regression.encoded_columns import Encoding


def check_rows(
    estimator: Any,
    X: Any,  # noqa: N803
    *,
    reset: bool = True,
) -> npt.NDArray[Any] | ArraySource | Dataset:
    """Check the shape of the rows, and return them unread: as an array, or a frame as a source.

    Sets or compares `n_features_in_` and `feature_names_in_`.
    """
    if isinstance(X, Dataset):
        estimator.n_features_in_ = len(X.columns)
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        return X
    dense = "dense rows, not sparse ones"
    require(not issparse(X), "X", type(X).__name__, expected=dense, remedy="pass X.toarray()")
    rows = Unread(X)
    _check_shape(estimator, rows.shape)
    stand_in = X if rows.is_frame else _stand_in(rows.shape)
    validate_data(estimator, stand_in, skip_check_array=True, reset=reset)
    return X if type(X) is np.ndarray else ArraySource(rows)


def check_examples(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
) -> tuple[npt.NDArray[Any] | ArraySource | Dataset, Unread | Dataset]:
    """Return the rows, and one label or target for each as it was given; nothing is read.

    Two selections of one data set are returned as they are: `LabeledRows` reads them together.
    """
    validate_data(estimator, y=y, skip_check_array=True)  # says that y is missing
    rows = check_rows(estimator, X)
    if isinstance(rows, Dataset) or isinstance(y, Dataset):
        return rows, y
    targets = Unread(y)
    column_or_1d(_stand_in(targets.shape), warn=True)
    count = rows.rows if isinstance(rows, ArraySource) else len(rows)
    check_consistent_length(_stand_in((count,)), _stand_in((targets.rows,)))
    return rows, targets


def remember(estimator: Any, encoding: Encoding | None) -> None:
    """Keep how the columns of a data set became features; None for arrays and frames."""
    estimator._encoding = encoding
    if encoding is not None:
        estimator.encoded_names_ = np.array(encoding.names, dtype=object)
    elif hasattr(estimator, "encoded_names_"):
        del estimator.encoded_names_


def rows_to_predict(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """Return rows for a fitted estimator, NaN for what is no number; none of this is private.

    After a fit on a data set rows are read by its schema, and encoded.
    """
    check_is_fitted(estimator)
    encoding: Encoding | None = getattr(estimator, "_encoding", None)
    if encoding is not None:
        return encoding.read(X)
    return rows_to_transform(estimator, X)


def rows_to_transform(estimator: Any, X: Any, *, reset: bool = False) -> Floats:  # noqa: N803
    """Return rows that are mapped one by one, into rows that nobody has published."""
    require(
        not isinstance(X, Dataset),
        "X",
        "a data set",
        expected="rows that may be seen: what is made of them shows them",
        remedy="pass an array or a data frame",
    )
    given = check_rows(estimator, X, reset=reset)
    read: Floats = numbers(given) if isinstance(given, np.ndarray) else public_table(given)
    return read


def _check_shape(estimator: Any, shape: tuple[int, ...]) -> None:
    stand_in = _stand_in(shape)
    check_array(stand_in, ensure_all_finite=False, estimator=estimator, input_name="X")


def _stand_in(shape: tuple[int, ...]) -> Floats:
    """Return zeros of a shape, in the memory of one."""
    return np.broadcast_to(np.float64(0), shape)
