"""Private regression: noise in the objective, pure on a computer (theory C9), or in the sums."""

from zerodelta.regression.fit import LinearModel, fit_huber, fit_logistic, fit_multinomial
from zerodelta.regression.linear import fit_linear, linear_methods
from zerodelta.regression.objective_plan import (
    RegressionPlan,
    plan_huber,
    plan_logistic,
    plan_multinomial,
)
from zerodelta.regression.sufficient_statistics import fit_statistics, plan_statistics

__all__ = [
    "LinearModel",
    "RegressionPlan",
    "fit_huber",
    "fit_linear",
    "fit_logistic",
    "fit_multinomial",
    "fit_statistics",
    "linear_methods",
    "plan_huber",
    "plan_logistic",
    "plan_multinomial",
    "plan_statistics",
]
