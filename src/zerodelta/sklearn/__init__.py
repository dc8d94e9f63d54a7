"""Estimators with scikit-learn's interface: ``fit`` is one pure release.

A certificate covers one ``fit`` on given rows with public parameters. It does not cover what looks
at rows elsewhere: the scores and the choice of a `GridSearchCV`, or a `StandardScaler` fitted on
the rows; use `zerodelta.select_model` and `BoundedScaler` instead.
"""

from zerodelta.errors import require_extra

require_extra("sklearn", "sklearn")

from zerodelta.sklearn.bounded_scaler import BoundedScaler
from zerodelta.sklearn.gaussian_nb import GaussianNB
from zerodelta.sklearn.kmeans_estimator import KMeans
from zerodelta.sklearn.linear_regression import LinearRegression
from zerodelta.sklearn.logistic_regression import LogisticRegression
from zerodelta.sklearn.mlp_classifier import MLPClassifier
from zerodelta.sklearn.nearest_centroid import NearestCentroid
from zerodelta.sklearn.principal_components import PCA
from zerodelta.sklearn.random_forest_classifier import RandomForestClassifier
from zerodelta.sklearn.sparse_regression import SparseRegression

__all__ = [
    "PCA",
    "BoundedScaler",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "NearestCentroid",
    "RandomForestClassifier",
    "SparseRegression",
]
