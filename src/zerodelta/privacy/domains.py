"""Which numbers a certificate may write, and the domain of a theorem's field.

A file is judged before anything in it is evaluated: a number is an integer, "p/q" or a decimal in
ASCII, of bounded length and exponent, so that reading it costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.privacy.step import LONGEST_INTEGER, whole

__all__ = [
    "MOST_ENTRIES",
    "Domain",
    "above",
    "at_least",
    "between",
    "either",
    "flag",
    "integers",
    "list_of",
    "one_of",
    "read_rational",
    "row_of",
    "sizes",
]

LARGEST_EXPONENT = 5000
"""Of a decimal, in either direction; larger ones only serve to exhaust memory."""

MOST_ENTRIES = 10_000
"""Of a list in a step."""

_RATIO = re.compile(r"-?(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?([0-9]{1,4}))?")
"""What `repr` writes for a float, such as -30.0, 1e-300 or 1e+16."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """The values that a field may have, and how to say so."""

    expected: str
    contains: Callable[[Any], bool]


def read_rational(value: Any) -> Fraction | None:
    """Return the number that a certificate wrote, None if it is not written as one.

    >>> read_rational("-7/2"), read_rational("1e-05"), read_rational(3)
    (Fraction(-7, 2), Fraction(1, 100000), Fraction(3, 1))
    >>> [read_rational(text) for text in ("1_0", " 1", "1e5001", "٣", "+1", True, 0.5)]
    [None, None, None, None, None, None, None]
    """
    if type(value) is int:
        return Fraction(value) if value.bit_length() <= LONGEST_INTEGER else None
    if type(value) is not str:
        return None
    if _RATIO.fullmatch(value):
        return Fraction(value)
    decimal = _DECIMAL.fullmatch(value)
    if decimal is None or int(decimal[3] or 0) > LARGEST_EXPONENT:
        return None
    return Fraction(value)


def _rational(expected: str, holds: Callable[[Fraction], bool]) -> Domain:
    def contains(value: Any) -> bool:
        exact = read_rational(value)
        return exact is not None and holds(exact)

    return Domain(expected=expected, contains=contains)


def above(low: int, *, most: int | None = None) -> Domain:
    """Return the rationals above `low`, and at most `most`."""
    limit = "" if most is None else f" and at most {most:.0e}"
    return _rational(
        f"a number above {low}{limit}", lambda x: x > low and (most is None or x <= most)
    )


def at_least(low: int) -> Domain:
    """Return the rationals from `low` on."""
    return _rational(f"a number of at least {low}", lambda x: x >= low)


def between(low: int, high: int, *, ends: str) -> Domain:
    """Return an interval of rationals, its ends written like "(]"."""
    return _rational(
        f"a number in {ends[0]}{low}, {high}{ends[1]}",
        lambda x: (
            low <= x <= high and (x != low or ends[0] == "[") and (x != high or ends[1] == "]")
        ),
    )


def integers(low: int, most: int | None = None) -> Domain:
    """Return the integers from `low` to `most`, written as JSON integers."""

    def contains(value: Any) -> bool:
        if type(value) is not int or value.bit_length() > LONGEST_INTEGER:
            return False
        return low <= value and (most is None or value <= most)

    limit = "" if most is None else f" and at most {most}"
    return Domain(expected=f"an integer of at least {low}{limit}", contains=contains)


def sizes() -> Domain:
    """Return the integers from 1 on; from 13 000 to 2^24 bits they are hexadecimal text."""

    def contains(value: Any) -> bool:
        size = whole(value)
        if type(size) is not int or size < 1:
            return False
        return (size.bit_length() > LONGEST_INTEGER) == (type(value) is str)

    return Domain(expected="a positive integer of at most 2^24 bits", contains=contains)


def one_of(*allowed: int | str) -> Domain:
    """Return these words and integers; 1 is neither True nor 1.0."""
    exact = {(type(value), value) for value in allowed}
    return Domain(
        expected=f"one of {', '.join(map(str, allowed))}",
        contains=lambda value: type(value) in (int, str) and (type(value), value) in exact,
    )


def flag() -> Domain:
    """Return true and false."""
    return Domain(expected="true or false", contains=lambda value: type(value) is bool)


def either(*domains: Domain) -> Domain:
    """Return the union."""
    return Domain(
        expected=", or ".join(domain.expected for domain in domains),
        contains=lambda value: any(domain.contains(value) for domain in domains),
    )


def list_of(entry: Domain, *, fewest: int = 0) -> Domain:
    """Return lists of any length, every entry in the same domain."""
    return Domain(
        expected=f"a list of {fewest} to {MOST_ENTRIES} entries, each {entry.expected}",
        contains=lambda value: (
            type(value) is list
            and fewest <= len(value) <= MOST_ENTRIES
            and all(entry.contains(item) for item in value)
        ),
    )


def row_of(*entries: Domain) -> Domain:
    """Return lists with one entry of each domain, in this order."""
    return Domain(
        expected=f"[{'; '.join(entry.expected for entry in entries)}]",
        contains=lambda value: (
            type(value) is list
            and len(value) == len(entries)
            and all(entry.contains(item) for entry, item in zip(entries, value, strict=True))
        ),
    )
