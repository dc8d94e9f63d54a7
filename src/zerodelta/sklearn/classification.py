"""What classifiers have in common: public classes, and labels and probabilities from scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from zerodelta.errors import ParameterError
from zerodelta.regression.reading import as_classes
from zerodelta.sklearn.reading import Floats, accepting_any_value

__all__ = ["PrivateClassifier", "sorted_classes"]


def sorted_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes in the order in which scikit-learn's scorers expect them.

    >>> sorted_classes(["yes", "no"])
    ('no', 'yes')
    """
    known = as_classes(classes)
    try:
        return tuple(sorted(known))
    except TypeError:
        raise ParameterError(
            "classes", classes, expected="labels of one kind", remedy="pass numbers, or texts"
        ) from None


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with public `classes`; its subclasses fit and give scores."""

    classes: Sequence[Any] | None
    classes_: npt.NDArray[Any]
    temperature_: float

    @abstractmethod
    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return one score for each row (positive: the second class), or one for each class."""

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the likeliest class of each row."""
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the probability of each class, in the order of `classes_`.

        Scores are divided by `temperature_`, which follows from public numbers: at least 1, and
        more where noise dominates. Predictions do not depend on it.
        """
        scores = self.decision_function(X) / self.temperature_
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the logarithms of `predict_proba`."""
        scores = self.decision_function(X) / self.temperature_
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = accepting_any_value(super().__sklearn_tags__())
        tags.classifier_tags.poor_score = True  # few rows are mostly noise
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) != 2
        return tags

    def _publish_classes(self, known: tuple[Any, ...], *, temperature: float) -> None:
        labels = np.array(known)
        if labels.ndim != 1:  # such as tuples
            labels = np.empty(len(known), dtype=object)
            labels[:] = known
        self.classes_, self.temperature_ = labels, temperature
