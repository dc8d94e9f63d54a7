"""Run the private fits of `zerodelta.regression` without their estimators, one call each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zerodelta.privacy.release import Release
from zerodelta.regression.classifiers import ClassifierQuestion
from zerodelta.regression.linear import LinearQuestion
from zerodelta.regression.rows import as_classes


def fit_linear(rows: Any, targets: Any, *, epsilon: Any, **asked: Any) -> Release:
    """Release a line by "huber", "statistics", or the better of the two."""
    return LinearQuestion.of(rows, targets, **asked).release(rows, targets, epsilon=epsilon)


def fit_logistic(
    rows: Any, labels: Any, *, epsilon: Any, classes: Sequence[Any] | None = None, **asked: Any
) -> Release:
    """Release one line for two classes: noise in the balanced logistic objective."""
    question = ClassifierQuestion(classes=as_classes(classes), method="objective", **asked)
    return question.release(rows, labels, epsilon=epsilon)


def fit_multinomial(rows: Any, labels: Any, *, epsilon: Any, **asked: Any) -> Release:
    """Release one line for each class: noise in the softmax objective."""
    return fit_logistic(rows, labels, epsilon=epsilon, softmax=True, **asked)
