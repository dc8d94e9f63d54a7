"""ε in words: how far one row can move what somebody believes (theory A1).

Pure ε-DP bounds the odds of any statement about one row: they grow at most by the factor e^ε.
"""

from __future__ import annotations

import math
from fractions import Fraction

_SLACK = 1e-12  # more than what a few operations in double precision can lose


def after_upper(before: Fraction, epsilon: Fraction) -> float:
    """Return the largest probability that a suspicion of `before` can rise to, rounded up.

    >>> percent_text(after_upper(Fraction(1, 2), Fraction(1)), up=True)
    '73.2 %'
    """
    odds = float((1 - before) / before) * math.exp(-min(float(epsilon), 700.0))
    return min(1.0, 1 / (1 + odds) * (1 + _SLACK) + _SLACK)


def after_lower(before: Fraction, epsilon: Fraction) -> float:
    """Return the smallest probability that it can fall to, rounded down.

    >>> percent_text(after_lower(Fraction(1, 2), Fraction(1)), up=False)
    '26.8 %'
    """
    odds = float((1 - before) / before) * math.exp(min(float(epsilon), 700.0))
    return max(0.0, 1 / (1 + odds) * (1 - _SLACK) - _SLACK)


def percent_text(probability: float, *, up: bool) -> str:
    """Return a probability in percent with one decimal, rounded away from what is promised.

    >>> percent_text(0.5, up=True), percent_text(0.99999, up=True), percent_text(0.1234, up=False)
    ('50 %', '100 %', '12.3 %')
    """
    thousandths = probability * 1000
    near = round(thousandths)
    if abs(thousandths - near) > 1e-6:
        near = math.ceil(thousandths) if up else math.floor(thousandths)
    return f"{near / 10:g} %"


def factor_text(epsilon: Fraction) -> str:
    """Return e^ε, rounded up.

    >>> factor_text(Fraction(1)), factor_text(Fraction(20)), factor_text(Fraction(0))
    ('2.72', '4.86e+08', '1')
    """
    if epsilon == 0:
        return "1"
    factor = math.exp(min(float(epsilon), 700.0)) * (1 + _SLACK)
    digits = 2 - math.floor(math.log10(factor))
    up = math.ceil(factor * 10.0**digits) / 10.0**digits
    return f"{up:.3g}"
