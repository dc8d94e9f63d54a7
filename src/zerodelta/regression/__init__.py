"""Private regression: noise in the objective, pure on a computer (theory C9), or in the sums."""

from zerodelta.regression.classifiers import ClassifierQuestion, fit_logistic, fit_multinomial
from zerodelta.regression.features import LinearModel
from zerodelta.regression.linear import LinearQuestion, fit_linear, linear_methods
from zerodelta.regression.objective import (
    RegressionPlan,
    Shape,
    plan_huber,
    plan_logistic,
    plan_multinomial,
)
from zerodelta.regression.statistics import plan_statistics

__all__ = [
    "ClassifierQuestion",
    "LinearModel",
    "LinearQuestion",
    "RegressionPlan",
    "Shape",
    "fit_linear",
    "fit_logistic",
    "fit_multinomial",
    "linear_methods",
    "plan_huber",
    "plan_logistic",
    "plan_multinomial",
    "plan_statistics",
]
