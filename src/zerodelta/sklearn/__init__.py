"""Provide estimators with scikit-learn's interface: ``fit`` is one pure release.

A certificate covers one ``fit`` on given rows with public parameters. It does not cover what looks
at rows elsewhere: the scores and the choice of a `GridSearchCV`, or a `StandardScaler` fitted on
the rows; use `zerodelta.select_model` and `BoundedScaler` instead.
"""

from zerodelta.errors import require_extra

require_extra("sklearn", "sklearn")

from zerodelta.sklearn.classifiers import (
    MLPClassifier,
    NearestCentroid,
    RandomForestClassifier,
)
from zerodelta.sklearn.linear import LinearRegression, LogisticRegression, SparseRegression
from zerodelta.sklearn.unsupervised import PCA, BoundedScaler, KMeans

__all__ = [
    "PCA",
    "BoundedScaler",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "NearestCentroid",
    "RandomForestClassifier",
    "SparseRegression",
]
