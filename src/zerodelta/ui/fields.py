"""The public numbers that the planner asks for: names, limits, and what they start with.

Limits are there because a forecast must come back while one moves a slider; the library itself
takes larger numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import as_positive
from zerodelta.value import value


@value
class Field:
    """One number of the form."""

    label: str
    least: float
    most: float
    start: str
    whole: bool = True
    hint: str = ""


FIELDS: Mapping[str, Field] = {
    "epsilon": Field(
        label="ε, the privacy parameter", least=0.001, most=100, start="1", whole=False
    ),
    "n": Field(label="n, the number of rows", least=1, most=10**9, start="10000"),
    "dimension": Field(label="columns", least=1, most=1000, start="5"),
    "width": Field(
        label="width of the bounds",
        least=0.001,
        most=10**12,
        start="100",
        whole=False,
        hint="values lie between 0 and this",
    ),
    "groups": Field(label="groups", least=1, most=2000, start="12"),
    "options": Field(label="options to choose from", least=2, most=500, start="10"),
    "universe": Field(label="items that can occur", least=2, most=10**6, start="100"),
    "k": Field(label="keys to publish", least=1, most=1000, start="10"),
    "letters": Field(label="letters of a key", least=1, most=40, start="10"),
    "levels": Field(label="quantiles", least=1, most=50, start="3", hint="evenly spaced levels"),
    "values": Field(label="values of the curve", least=2, most=500, start="10"),
    "classes": Field(label="classes", least=2, most=100, start="3"),
    "thresholds": Field(label="thresholds of all columns", least=1, most=80, start="4"),
    "clusters": Field(label="clusters", least=1, most=100, start="5"),
    "size": Field(label="features to choose", least=1, most=50, start="3"),
    "rounds": Field(label="internal queries", least=1, most=10**6, start="1000"),
    "outcomes": Field(
        label="size of the result",
        least=2,
        most=10**15,
        start="16",
        hint="one of so many outcomes is published",
    ),
}
"""Every number by its name in a request."""


def as_value(name: str, text: str) -> Any:
    """Return the number that a text spells: an integer, or the text of an exact decimal.

    >>> as_value("n", "2000"), as_value("epsilon", "1/4")
    (2000, '1/4')
    """
    field, told = FIELDS[name], text.strip().replace("_", "").replace(" ", "")
    expected = f"{'a whole number' if field.whole else 'a number'} from {field.least:,.12g} to "
    expected += f"{field.most:,.12g}"
    try:
        require(len(told) <= 40, name, expected=expected, remedy="pass fewer digits")
        number = as_positive(told, name)
    except ParameterError:
        raise ParameterError(
            name, text[:40], expected=expected, remedy="correct this field"
        ) from None
    least = Fraction(str(field.least))  # as it is written: 0.001 itself is allowed
    fits = least <= number <= field.most and not (field.whole and number.denominator > 1)
    require(fits, name, text[:40], expected, "correct this field")
    return int(number) if field.whole else told
