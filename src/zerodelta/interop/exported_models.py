"""Convert fitted linear models to scikit-learn's classes, for tools such as skl2onnx.

Other models are saved directly: by skops, by pickle, or by `estimator.save`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerodelta.errors import require, require_extra


def as_sklearn(estimator: Any) -> Any:
    """Return a fitted linear model as an object of scikit-learn's class, with its coefficients.

    Use it for a tool that supports scikit-learn's classes only, such as
    ``skl2onnx.to_onnx(as_sklearn(model), rows)``. It is post-processing of the release, so nothing
    is spent; the result has no certificate.

    Parameters
    ----------
    estimator : LogisticRegression, LinearRegression or SparseRegression
        A model fitted on numbers. All other models clip rows in every prediction, which no class of
        scikit-learn does.

    Returns
    -------
    sklearn.linear_model.LogisticRegression or sklearn.linear_model.LinearRegression
        It makes the same predictions and probabilities for rows within the `data_norm` or bounds of
        the fit; it does not clip longer rows, as the original does. It refuses rows with a missing
        number.

    Examples
    --------
    >>> from zerodelta.sklearn import LinearRegression
    >>> rows, targets = np.eye(3)[[0, 1, 2] * 200], np.array([0.0, 0.5, 1.0] * 200)
    >>> model = LinearRegression(epsilon=2, data_norm=1, bounds_y=(0, 1)).fit(rows, targets)
    >>> bool(np.allclose(as_sklearn(model).predict(rows), model.predict(rows)))
    True

    """
    require_extra("sklearn", "sklearn")
    from sklearn import linear_model
    from sklearn.utils.validation import check_is_fitted

    from zerodelta.sklearn import LinearRegression, LogisticRegression, SparseRegression

    kind = type(estimator)
    require(
        kind in (LinearRegression, LogisticRegression, SparseRegression),
        "estimator",
        kind.__name__,
        "LogisticRegression, LinearRegression or SparseRegression",
        "save it with skops, or with estimator.save(path)",
    )
    check_is_fitted(estimator)
    require(
        estimator._encoding is None,
        "estimator",
        kind.__name__,
        "a model fitted on plain numbers; this one encodes the columns of a data set",
        "save it with skops, or with estimator.save(path)",
    )
    classifies = kind is LogisticRegression
    plain = linear_model.LogisticRegression() if classifies else linear_model.LinearRegression()
    # probabilities are those of the scores divided by the temperature
    scale = estimator.temperature_ if classifies else 1.0
    plain.coef_ = np.asarray(estimator.coef_) / scale
    plain.intercept_ = np.asarray(estimator.intercept_) / scale
    plain.n_features_in_ = estimator.n_features_in_
    if classifies:
        plain.classes_ = estimator.classes_
        plain.n_iter_ = np.zeros(1, dtype=np.int32)
    return plain
