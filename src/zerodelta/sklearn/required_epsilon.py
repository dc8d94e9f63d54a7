"""ε of an estimator: there is no default, because nobody should spend what was not chosen."""

from __future__ import annotations

from fractions import Fraction

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational
from zerodelta.privacy.parameters import as_usable_epsilon

__all__ = ["required_epsilon"]


def required_epsilon(epsilon: Rational | None) -> Fraction:
    """Return ε; None, which estimators store so that scikit-learn can make them, is refused.

    >>> required_epsilon("1/2")
    Fraction(1, 2)
    """
    if epsilon is None:
        raise ParameterError(
            "epsilon",
            None,
            expected="how much privacy one fit may cost; there is no default",
            remedy="pass epsilon=..., such as epsilon=1",
        )
    return as_usable_epsilon(epsilon)
