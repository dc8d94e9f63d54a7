"""Losses of linear predictors, for `Study.minimize`, `zd.select_model` and `zerodelta.paper`."""

from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared

__all__ = ["Hinge", "Huber", "Logistic", "Loss", "Multinomial", "Squared"]
