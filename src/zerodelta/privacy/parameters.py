"""Define neighboring relations, and check the public numbers in claims: ε, δ, units, flags."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from zerodelta.errors import GuaranteeError, ParameterError, require
from zerodelta.exact.logs import ball, log_upper, upper
from zerodelta.exact.rational import Rational, as_positive, as_rational

# -- Neighbors ------------------------------------------------------------------------------------
# Which datasets count as neighbors; a pipeline never mixes two relations (theory, Conventions).


class Neighbors(Enum):
    """The neighboring relation of a claim.

    REPLACE: same number of rows, one row changed; the number of rows is public (the default).
    ADD_REMOVE: one row more or less; the number of rows is private.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    def __reduce__(self) -> tuple[object, ...]:  # skops saves an Enum by this
        return type(self), (self.value,)


def common_neighbors(relations: Iterable[Neighbors]) -> Neighbors:
    """Return the one relation that all share, or refuse to mix them.

    >>> common_neighbors([Neighbors.REPLACE, Neighbors.REPLACE])
    <Neighbors.REPLACE: 'replace'>
    """
    distinct = set(relations)
    if len(distinct) != 1:
        names = sorted(relation.value for relation in distinct) or "no claim"
        raise GuaranteeError(
            f"claims under different neighboring relations cannot be combined ({names}); state "
            "every claim for the same relation (a t-DP claim for add-remove is a 2t-DP claim for "
            "replace)."
        )
    return distinct.pop()


def as_at_least_zero(value: Rational, name: str) -> Fraction:
    """Return `value` as an exact rational, refusing anything below 0."""
    exact = as_rational(value, name)
    require(exact >= 0, name, value, "a number of at least 0", "pass 0 or more")
    return exact


def as_epsilon(value: Rational) -> Fraction:
    """Return an ε as an exact rational of at least 0."""
    return as_at_least_zero(value, "epsilon")


def as_usable_epsilon(value: Rational) -> Fraction:
    """Return an ε for which noise and forecasts neither vanish nor overflow in floats.

    >>> as_usable_epsilon("0.1"), as_usable_epsilon(0.1)
    (Fraction(1, 10), Fraction(1, 10))
    """
    exact = decimal_meant(value, "epsilon")
    require(
        Fraction(1, 10**9) <= exact <= 10**6,
        "epsilon",
        value,
        "a number between 1e-9 and 1e6",
        "pass epsilon=1, say",
    )
    return exact


def decimal_meant(value: Rational, name: str) -> Fraction:
    """Return a number as an exact rational; a float means the decimal that it prints as.

    So ten releases at ``epsilon=0.1`` cost exactly 1, although the float is a little above 1/10.

    >>> decimal_meant(0.3, "epsilon")
    Fraction(3, 10)
    """
    exact = as_rational(value, name)
    if isinstance(value, float):
        return Fraction(float.__repr__(value))
    if isinstance(value, (numbers.Rational, Decimal, str)):
        return exact
    return Fraction(str(value))  # such as np.float32


def as_flag(value: Any, name: str) -> bool:
    """Return True or False, from a bool or from the 0 or 1 of a certificate."""
    if isinstance(value, (bool, int)) and value in (0, 1):
        return bool(value)
    raise ParameterError(name, value, expected="True or False", remedy="pass a bool")


def as_bool(value: Any, name: str) -> bool:
    """Return True or False; a 1 is refused, for options that change the noise."""
    if isinstance(value, bool):
        return value
    raise ParameterError(name, value, expected="True or False", remedy="pass a bool, not a number")


def as_relation(value: Any) -> Neighbors:
    """Return the neighboring relation, refusing anything else."""
    if not isinstance(value, Neighbors):
        raise ParameterError(
            "neighbors",
            value,
            expected="a neighboring relation",
            remedy="pass Neighbors.REPLACE or Neighbors.ADD_REMOVE",
        )
    return value


def as_unit(value: Any) -> str | None:
    """Return the name of the protected unit; None for a row."""
    if value is None or (
        type(value) is str and value.strip() == value != "" and value.isprintable()
    ):
        return value
    raise ParameterError(
        "unit",
        value,
        expected="None for one row, or the name of the unit",
        remedy="pass the column that names the unit, such as 'customer_id'",
    )


def as_log_delta(value: Any) -> float:
    """Return a finite ln δ ≤ 0 as a float, rounded up."""
    require(
        not (isinstance(value, (float, str)) and value in (-math.inf, "-inf")),
        "log_delta",
        value,
        "a finite logarithm (ln δ = -inf means pure)",
        "say PureDP(epsilon) if delta really is 0",
    )
    exact = as_rational(value, "log_delta")
    if isinstance(value, str) and "/" not in value:
        # a certificate writes a float as the shortest decimal that reads back as the same float
        exact = as_rational(float(value), "log_delta")
    require(
        exact <= 0,
        "log_delta",
        value,
        "a logarithm of a probability, at most 0",
        "pass ln δ, such as -30.0; for δ itself write delta=",
    )
    return sum_upper(exact)


def log_of_delta(delta: Rational) -> float:
    """Return ln δ, rounded up, refusing the 0.0 that a tiny δ underflows to."""
    exact = as_rational(delta, "delta")
    require(
        exact != 0,
        "delta",
        delta,
        "a number above 0 (a tiny delta underflows to 0.0 and would read as pure)",
        "pass log_delta=..., or PureDP(epsilon) if delta really is 0",
    )
    require(0 < exact <= 1, "delta", delta, "a number in (0, 1]", "pass delta=1e-12 or log_delta=")
    return log_upper(exact)


def log_delta_from(delta: Rational | None, log_delta: float | None) -> float:
    """Return ln δ, rounded up, from exactly one of δ and ln δ.

    >>> log_delta_from(None, -30.0), round(log_delta_from("1e-6", None), 4)
    (-30.0, -13.8155)
    """
    if (delta is None) == (log_delta is None):
        raise ParameterError(
            "delta, log_delta",
            (delta, log_delta),
            expected="exactly one of the two",
            remedy="pass delta=1e-12, or log_delta=-800.0 where delta would underflow to 0",
        )
    return as_log_delta(log_delta) if delta is None else log_of_delta(delta)


def split_epsilon(
    epsilon: Rational, base_epsilon: Rational | None = None
) -> tuple[Fraction, Fraction]:
    """Split a total ε into that of the base mechanism and that of the noise added to its answer.

    Half and half by default, as in the paper.

    >>> split_epsilon(1), split_epsilon("3/2", 1)
    ((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 1), Fraction(1, 2)))
    """
    total = as_positive(epsilon, "epsilon")
    base = total / 2 if base_epsilon is None else as_positive(base_epsilon, "base_epsilon")
    require(
        base < total,
        "base_epsilon",
        base_epsilon,
        f"below the total epsilon = {float(total):g}",
        "leave it out for half of it: the rest pays for the noise",
    )
    return base, total - base


def sum_upper(*terms: float | Fraction) -> float:
    """Return the smallest float that is at least the sum of finite terms.

    >>> sum_upper(-1.0, 2.0**-80)
    -0.9999999999999999
    """
    total = sum((Fraction(term) for term in terms), Fraction(0))
    return upper(lambda: ball(total))
