"""Which numbers a certificate may write, and the domain of each field of a theorem or claim.

A file is judged before anything in it is evaluated: a number is an integer, "p/q" or a decimal in
ASCII (a weight also a power "2^-n"), of bounded length and exponent, so that reading it costs next
to nothing. A number outside its domain would be put into an inequality that was not proved for it.
What relates several fields to each other (a window of at most so many cells, q_min·N <= 1) is
checked beside the inequality.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from zerodelta.errors import CertificateError
from zerodelta.exact.rational import LONGEST_INTEGER
from zerodelta.privacy.step import power, whole
from zerodelta.value import value

LARGEST_EXPONENT = 5000
"""Of a decimal, in either direction; larger ones only serve to exhaust memory."""

MOST_ENTRIES = 10_000
"""Of a list in a step."""

_RATIO = re.compile(r"-?(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?([0-9]{1,4}))?")
"""What `repr` writes for a float, such as -30.0, 1e-300 or 1e+16."""

_OUTSIDE = object()


@value
class Domain:
    """The values that a field may have, how to say so, and how one is read."""

    expected: str
    read: Callable[[Any], Any]
    """Return the value that was written, `_OUTSIDE` if it is none of these."""

    def contains(self, value: Any) -> bool:
        """Tell whether this is how a value of the domain is written."""
        return self.read(value) is not _OUTSIDE


def read_numbers(
    name: str,
    numbers: Mapping[str, Any],
    fields: Mapping[str, Domain],
    optional: Collection[str] = (),
) -> dict[str, Any]:
    """Return the numbers of a step or claim as values, refusing others and those out of domain."""
    needed = {key for key in fields if key not in optional}
    if not needed <= set(numbers) <= set(fields):
        raise CertificateError(
            f"{name} has exactly the numbers {sorted(needed)}, not {sorted(numbers)}."
        )
    values = {}
    for key, written in numbers.items():
        values[key] = fields[key].read(written)
        if values[key] is _OUTSIDE:
            raise CertificateError(
                f"{name} needs {fields[key].expected} for {key!r}, and in the notation of a "
                f"certificate; it has {cut(written)}."
            )
    return values


def cut(value: Any) -> str:
    """Return a short repr of what was written, without writing out what is long."""
    if type(value) is int and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    shown = repr(value[:60] if isinstance(value, (str, list)) else value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


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
    def read(value: Any) -> Any:
        exact = read_rational(value)
        return exact if exact is not None and holds(exact) else _OUTSIDE

    return Domain(expected=expected, read=read)


def _written(expected: str, holds: Callable[[Any], bool]) -> Domain:
    """Return a domain whose values are written as they are."""
    return Domain(expected=expected, read=lambda value: value if holds(value) else _OUTSIDE)


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


def weights() -> Domain:
    """Return the numbers strictly between 0 and 1, the smallest of them as powers "2^-n"."""
    usual = between(0, 1, ends="()")

    def read(value: Any) -> Any:
        exact = power(value)
        return usual.read(value) if exact is None else exact

    return Domain(expected=usual.expected, read=read)


def integers(low: int, most: int | None = None) -> Domain:
    """Return the integers from `low` to `most`, written as JSON integers."""

    def holds(value: Any) -> bool:
        if type(value) is not int or value.bit_length() > LONGEST_INTEGER:
            return False
        return low <= value and (most is None or value <= most)

    limit = "" if most is None else f" and at most {most}"
    return _written(f"an integer of at least {low}{limit}", holds)


def sizes() -> Domain:
    """Return the integers from 1 on; from 13 000 to 2^24 bits they are hexadecimal text."""

    def read(value: Any) -> Any:
        size = whole(value)
        if type(size) is not int or size < 1:
            return _OUTSIDE
        long = size.bit_length() > LONGEST_INTEGER
        return size if long == (type(value) is str) else _OUTSIDE

    return Domain(expected="a positive integer of at most 2^24 bits", read=read)


def one_of(*allowed: int | str) -> Domain:
    """Return these words and integers; 1 is neither True nor 1.0."""
    exact = {(type(value), value) for value in allowed}
    return _written(
        f"one of {', '.join(map(str, allowed))}",
        lambda value: type(value) in (int, str) and (type(value), value) in exact,
    )


def flag() -> Domain:
    """Return true and false."""
    return _written("true or false", lambda value: type(value) is bool)


def either(*domains: Domain) -> Domain:
    """Return the union."""

    def read(value: Any) -> Any:
        found = (domain.read(value) for domain in domains)
        return next((one for one in found if one is not _OUTSIDE), _OUTSIDE)

    return Domain(expected=", or ".join(domain.expected for domain in domains), read=read)


def _each(domains: list[Domain], value: list[Any]) -> Any:
    found = [domain.read(item) for domain, item in zip(domains, value, strict=True)]
    return _OUTSIDE if any(one is _OUTSIDE for one in found) else found


def list_of(entry: Domain, *, fewest: int = 0) -> Domain:
    """Return lists of any length, every entry in the same domain."""

    def read(value: Any) -> Any:
        fits = type(value) is list and fewest <= len(value) <= MOST_ENTRIES
        return _each([entry] * len(value), value) if fits else _OUTSIDE

    expected = f"a list of {fewest} to {MOST_ENTRIES} entries, each {entry.expected}"
    return Domain(expected=expected, read=read)


def row_of(*entries: Domain) -> Domain:
    """Return lists with one entry of each domain, in this order."""

    def read(value: Any) -> Any:
        fits = type(value) is list and len(value) == len(entries)
        return _each(list(entries), value) if fits else _OUTSIDE

    return Domain(expected=f"[{'; '.join(entry.expected for entry in entries)}]", read=read)


# The types of a theorem's fields, each with its domain.

Positive: TypeAlias = Annotated[Fraction, above(0)]
NotNegative: TypeAlias = Annotated[Fraction, at_least(0)]
Weight: TypeAlias = Annotated[Fraction, weights()]
Order: TypeAlias = Annotated[Fraction, above(1, most=10**30)]
Count: TypeAlias = Annotated[int, integers(1, 10**12)]
"""How often; larger ones prove nothing about a program that has to end."""
Dimension: TypeAlias = Annotated[int, integers(1, 10**9)]
Rows: TypeAlias = Annotated[int, integers(1, 10**15)]
Cells: TypeAlias = Annotated[int, integers(1)]
Bound: TypeAlias = Annotated[int, integers(0)]
Size: TypeAlias = Annotated[int, sizes()]
Bit: TypeAlias = Annotated[int, one_of(0, 1)]
Flag: TypeAlias = Annotated[bool, flag()]
Noise: TypeAlias = Annotated[str, one_of("real", "rounded", "discrete")]
