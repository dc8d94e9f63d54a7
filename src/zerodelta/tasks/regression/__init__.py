"""Private regression: noise in the objective, pure on a computer (theory C9)."""

from zerodelta.tasks.regression.fit import LinearModel, fit_huber, fit_logistic, fit_multinomial
from zerodelta.tasks.regression.plan import (
    RegressionPlan,
    plan_huber,
    plan_logistic,
    plan_multinomial,
)

__all__ = [
    "LinearModel",
    "RegressionPlan",
    "fit_huber",
    "fit_logistic",
    "fit_multinomial",
    "plan_huber",
    "plan_logistic",
    "plan_multinomial",
]
