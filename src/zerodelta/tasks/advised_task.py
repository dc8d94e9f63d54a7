"""What the advisor knows of one task, and how a question without rows is asked for its plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from decimal import Decimal
from typing import Any, TypeAlias

from zerodelta.errors import ParameterError, ZeroDeltaError, require
from zerodelta.spine.plan import Facts, Method
from zerodelta.value import value

Numbers: TypeAlias = Mapping[str, Any]

EPSILON = "epsilon=1"
ROWS = {"n": "n=10_000", "epsilon": EPSILON}
"""What most tasks need, with examples."""

CLOSE = "the winner's was within a factor of 1.5 of what bench/tasks_forecasts.py measured"
UNMEASURED = "no script in bench/ measured how far it is from errors"
"""How far a forecast may be off: a task that states a factor names the script that measured it."""


@value
class Task:
    """A task by its public numbers: what must be given, what may be, and what follows."""

    unit: str
    call: str
    methods: Callable[[Numbers], tuple[Method, ...]]
    reliable: str
    """How far a forecast may be from what is measured, and which script measured that."""
    needs: Mapping[str, str]
    """Each number that must be given ("a|b": one of them), with an example."""
    allows: Mapping[str, Any] = field(default_factory=dict)
    """Each number that may be given, with its default."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """How to call a winner of this name, where that is not `call`."""
    blind: Callable[[Numbers], float] | None = None
    """The error of an answer that reads no rows; by default what is forecast for one row."""
    few: str = "the error exceeds a tenth of that of a guess without rows"
    """What is the matter with fewer rows than are useful."""
    shows: Callable[[Numbers], str] | None = None
    """More of what the numbers buy, where a release has several errors."""
    typical: Mapping[str, Any] = field(default_factory=dict)
    """Beside n and ε, numbers with which the task is listed among all others."""


def planned(question: type[Any], *, columns: Callable[[Numbers], int], **fixed: Any) -> Any:
    """Return the forecast by a question's own plan: its fields are numbers, or fixed here."""
    names = {each.name for each in fields(question)}

    def methods(given: Numbers) -> tuple[Method, ...]:
        asked = question(**fixed, **{name: v for name, v in given.items() if name in names})
        skips = as_skip(given.get("missing"))
        facts = Facts(rows=given.get("n", 1), columns=("",) * columns(given), may_miss=skips)
        weighed: tuple[Method, ...] = asked.plan(facts, given["epsilon"]).methods
        return weighed

    return methods


def as_skip(missing: Any) -> bool:
    """Return whether missing cells are skipped, from what the caller would pass."""
    require(
        missing is None or (isinstance(missing, str) and missing == "skip"),
        "missing",
        missing,
        expected='"skip" (a missing cell counts nowhere) or None (none is missing)',
        remedy='pass missing="skip", or leave it out',
    )
    return missing is not None


def simple(function: Callable[..., tuple[Method, ...]], **renamed: str) -> Any:
    """Return a forecast that passes all numbers on, some of them under another name."""
    return lambda given: function(**{renamed.get(name, name): v for name, v in given.items()})


# -- Accuracy first -------------------------------------------------------------------------------
# Accuracy first: the least ε, or the fewest rows, whose forecast reaches an error that is asked.
#
# Forecasts fall with ε and with n. They are tried at decimals of three digits, from the smallest
# to the largest that makes sense, by bisection between such decimals: so what is returned is an
# exact number, was forecast itself, and reaches the error, which the decimal below does not.

START: dict[str, Any] = {"epsilon": 1, "n": 10_000}
"""Where forecasts begin; what is refused there is refused."""

_RANGE = {"epsilon": (-6, 3), "n": (0, 12)}
"""Powers of ten between which is searched."""

_PER_TEN = 900
"""Decimals of three digits from one power of ten to the next."""

_FLAT = 0.999
"""An error that is still so much of what it was for the fewest rows does not fall with them."""


def sought_for(given: Mapping[str, Any], *, has_rows: bool) -> str:
    """Return what is solved for: ε, or n if ε is given."""
    needed = ["epsilon", *(["n"] if has_rows else [])]
    left_out = [name for name in needed if name not in given]
    require(
        len(left_out) == 1,
        "error",
        expected=f"beside an error all but one of {' and '.join(needed)}"
        if has_rows
        else "beside an error no epsilon: it is what an error decides here",
        remedy="leave out what is to be found, and pass the other" if has_rows else "leave it out",
    )
    return left_out[0]


def solved(error: Callable[[Any], float], sought: str, wanted: float, unit: str) -> Any:
    """Return the least value, to three digits, with error(value) <= wanted: a text, or an int.

    >>> solved(lambda epsilon: 2 / float(epsilon), "epsilon", 3.0, "rows")
    '0.667'
    >>> solved(lambda n: 5000 / n, "n", 3.0, "years")
    1670
    """
    error(START[sought])  # a mistake in the other numbers is told as it is
    low, high = (_PER_TEN * power for power in _RANGE[sought])
    best = _error(error, _value(sought, high))
    if sought == "n" and not best < _FLAT * _error(error, START["n"]):
        raise ParameterError(
            "n",
            expected=f"a number of rows: this error ({unit}) does not fall with it",
            remedy="pass n=, and leave out epsilon to find the one that is needed",
        )
    if not best <= wanted:
        raise ParameterError(
            "error",
            wanted,
            expected=f"at least {best:.3g}, forecast for {aimed(sought, _value(sought, high))} "
            f"(in its unit: {unit})",
            remedy=f"pass a larger error, or {_OTHERS[sought]}",
        )
    if _error(error, _value(sought, low)) <= wanted:
        if sought == "n":
            return _value(sought, low)
        raise ParameterError(
            "error",
            wanted,
            expected=f"less than what {aimed(sought, _value(sought, low))} has: such an error "
            f"needs no rows at all (in its unit: {unit})",
            remedy="pass a smaller error",
        )
    while high - low > 1:
        middle = (low + high) // 2
        if _error(error, _value(sought, middle)) <= wanted:
            high = middle
        else:
            low = middle
    return _value(sought, high)


_OTHERS = {"epsilon": "more rows with n=", "n": "a larger epsilon"}


def _error(error: Callable[[Any], float], value: Any) -> float:
    """Return a forecast; infinity where no method applies."""
    try:
        return error(value)
    except ZeroDeltaError:  # so few rows, or so small an ε, that nothing can be planned
        return math.inf


def _value(sought: str, place: int) -> Any:
    """Return the decimal at a place in the order of all of three digits; rows are rounded up.

    >>> [_value("epsilon", place) for place in (-900, -1, 0, 1)], _value("n", 901)
    (['0.1', '0.999', '1', '1.01'], 11)
    """
    power, digits = divmod(place, _PER_TEN)
    exact = Decimal(100 + digits).scaleb(power - 2)
    return math.ceil(exact) if sought == "n" else f"{exact.normalize():f}"


def aimed(sought: str, value: Any) -> str:
    """Return what was found, in words."""
    if sought == "epsilon":
        return f"ε = {value}"
    return f"n = {value:,} rows".replace(",", " ")
