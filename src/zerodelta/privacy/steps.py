"""The steps and parts of a proof, and which numbers a certificate may write in them.

A file is judged before anything in it is evaluated: a number is an integer, "p/q" or a decimal in
ASCII (a weight also a power "2^-n"), of bounded length and exponent, so that reading it costs next
to nothing. A number outside its domain would be put into an inequality that was not proved for it.
What relates several fields to each other (a window of at most so many cells, q_min·N <= 1) is
checked beside the inequality.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, replace
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from zerodelta.errors import CertificateError, require
from zerodelta.exact.rational import LONGEST_INTEGER, is_long
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- One step of a proof, a theorem's label with public numbers; and a part, a chain of steps -----

Number: TypeAlias = int | str | list[Any]
"""What a step may carry: integers, rationals "p/q", floats as decimal strings, lists of these.

Beyond what Python writes in decimal, integers are hexadecimal strings "0x…" and 1/2^n is the power
"2^-n"; no other fraction can be so long.
"""

SMALLEST_POWER, LARGEST_POWER = 14_285, 1_000_000
"""The n of "2^-n": from where on 2^n has more than 4300 digits."""

_HEXADECIMAL = re.compile(r"0x[1-9a-f][0-9a-f]{0,4194303}")
"""As `hex` writes them, up to 2^24 bits."""

_POWER = re.compile(r"2\^-([1-9][0-9]{4,6})")


class Status(Enum):
    """On what a step rests, from strongest to weakest."""

    PROVEN = "proven"
    """our exact mechanism, proven on the computer"""
    ASSERTED = "asserted"
    """caller-asserted, such as a float mechanism that ran elsewhere"""
    IDEALIZED = "idealized"
    """proven for real arithmetic only"""

    def __reduce__(self) -> tuple[object, ...]:  # as skops asks for it; pickle asks otherwise
        return type(self), (self.value,)


_ORDER = (Status.PROVEN, Status.ASSERTED, Status.IDEALIZED)


def weakest(statuses: list[Status]) -> Status:
    """Return the weakest of the statuses: a chain is as strong as that."""
    return max(statuses, key=_ORDER.index)


@value
class Step:
    """A theorem applied to public numbers that hold for one neighboring relation.

    >>> Step(theorem="rounded-gaussian", numbers={"variance": Fraction(9, 4)}).numbers["variance"]
    '9/4'
    """

    theorem: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.PROVEN
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        written = {name: plain(value) for name, value in self.numbers.items()}
        object.__setattr__(self, "numbers", MappingProxyType(written))

    def times(self, count: int) -> Step:
        """Return the step that is this one so many times."""
        return replace(self, numbers={**self.numbers, "count": count})

    def is_exact(self) -> bool:
        """Tell whether every part is of exactly the type it should be, and of no subclass."""
        return (
            type(self.theorem) is str
            and type(self.numbers) is MappingProxyType
            and all(type(name) is str for name in self.numbers)
            and type(self.status) is Status
            and type(self.neighbors) is Neighbors
        )


def _state(step: Step) -> list[Any]:
    return [step.theorem, dict(step.numbers), step.status, step.neighbors]


def _set_state(step: Step, state: list[Any]) -> None:
    theorem, numbers, status, neighbors = state
    restored = Step(theorem=theorem, numbers=numbers, status=status, neighbors=neighbors)
    for name in (part.name for part in fields(Step)):
        object.__setattr__(step, name, getattr(restored, name))


# A read-only mapping is neither pickled nor saved by skops. Python 3.10 sets its own of the two
# for frozen classes with slots, whatever the class says; so they are set here.
for _name, _method in (("__getstate__", _state), ("__setstate__", _set_state)):
    setattr(Step, _name, _method)


@value
class Part:
    """A chain of base steps and at most one channel, which is the last.

    `epsilon` is the pure ε that the part proves. It is stated where a certificate has several
    parts, which add up; a part of base steps that are pure may leave it out.
    """

    steps: tuple[Step, ...]
    epsilon: Fraction | None = None

    def is_exact(self) -> bool:
        """Tell whether everything is of exactly the type it should be, and of no subclass."""
        return (
            type(self.steps) is tuple
            and all(type(step) is Step and step.is_exact() for step in self.steps)
            and (self.epsilon is None or type(self.epsilon) is Fraction)
        )


def plain(value: Any) -> Number:
    """Turn exact numbers into JSON without loss."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return plain(int(value)) if value.denominator == 1 else _ratio(value)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):  # the number itself, whatever a subclass makes of it
        exact = int.__int__(value)
        return hex(exact) if exact.bit_length() > LONGEST_INTEGER else exact
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a step cannot carry {type(value).__name__}")


def _ratio(value: Fraction) -> str:
    if not is_long(value):
        return f"{value.numerator}/{value.denominator}"
    exponent = value.denominator.bit_length() - 1
    require(
        value.numerator == 1 and value.denominator == 1 << exponent and exponent <= LARGEST_POWER,
        "a fraction in a proof",
        expected="parts of at most 4300 digits, or 1/2^n with n up to a million",
        remedy="pass a rounder number, or use a smaller space",
    )
    return f"2^-{exponent}"


def power(number: Any) -> Fraction | None:
    """Return the number that a power such as "2^-20000" stands for, None if it is not one of these.

    Smaller exponents are refused: there "p/q" is the notation.

    >>> power("2^-20000") == Fraction(1, 2**20000), power("2^-14284"), power("2^-1000001")
    (True, None, None)
    """
    found = _POWER.fullmatch(number) if type(number) is str else None
    exponent = int(found[1]) if found else 0
    return Fraction(1, 1 << exponent) if SMALLEST_POWER <= exponent <= LARGEST_POWER else None


def whole(number: Any) -> Any:
    """Return the integer that a hexadecimal string stands for; anything else as it is.

    >>> whole("0x10"), whole(16), whole("0x1_0")
    (16, 16, '0x1_0')
    """
    return int(number, 16) if type(number) is str and _HEXADECIMAL.fullmatch(number) else number


def canonical(data: Any) -> str:
    """Return the one JSON text of the data that a digest is computed of."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def digest_of(data: Any) -> str:
    """Return the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


LARGEST_EXPONENT = 5000
"""Of a decimal, in either direction; larger ones only serve to exhaust memory."""

MOST_ENTRIES = 10_000
"""Of a list in a step."""

_RATIO = re.compile(r"-?(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?([0-9]{1,4}))?")
"""What `repr` writes for a float, such as -30.0, 1e-300 or 1e+16."""

_OUTSIDE = object()


@value
class FieldDomain:
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
    fields: Mapping[str, FieldDomain],
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


def _rational(expected: str, holds: Callable[[Fraction], bool]) -> FieldDomain:
    def read(value: Any) -> Any:
        exact = read_rational(value)
        return exact if exact is not None and holds(exact) else _OUTSIDE

    return FieldDomain(expected=expected, read=read)


def _written(expected: str, holds: Callable[[Any], bool]) -> FieldDomain:
    """Return a domain whose values are written as they are."""
    return FieldDomain(expected=expected, read=lambda value: value if holds(value) else _OUTSIDE)


def above(low: int, *, most: int | None = None) -> FieldDomain:
    """Return the rationals above `low`, and at most `most`."""
    limit = "" if most is None else f" and at most {most:.0e}"
    return _rational(
        f"a number above {low}{limit}", lambda x: x > low and (most is None or x <= most)
    )


def at_least(low: int) -> FieldDomain:
    """Return the rationals from `low` on."""
    return _rational(f"a number of at least {low}", lambda x: x >= low)


def between(low: int, high: int, *, ends: str) -> FieldDomain:
    """Return an interval of rationals, its ends written like "(]"."""
    return _rational(
        f"a number in {ends[0]}{low}, {high}{ends[1]}",
        lambda x: (
            low <= x <= high and (x != low or ends[0] == "[") and (x != high or ends[1] == "]")
        ),
    )


def weights() -> FieldDomain:
    """Return the numbers strictly between 0 and 1, the smallest of them as powers "2^-n"."""
    usual = between(0, 1, ends="()")

    def read(value: Any) -> Any:
        exact = power(value)
        return usual.read(value) if exact is None else exact

    return FieldDomain(expected=usual.expected, read=read)


def integers(low: int, most: int | None = None) -> FieldDomain:
    """Return the integers from `low` to `most`, written as JSON integers."""

    def holds(value: Any) -> bool:
        if type(value) is not int or value.bit_length() > LONGEST_INTEGER:
            return False
        return low <= value and (most is None or value <= most)

    limit = "" if most is None else f" and at most {most}"
    return _written(f"an integer of at least {low}{limit}", holds)


def sizes() -> FieldDomain:
    """Return the integers from 1 on; from 13 000 to 2^24 bits they are hexadecimal text."""

    def read(value: Any) -> Any:
        size = whole(value)
        if type(size) is not int or size < 1:
            return _OUTSIDE
        long = size.bit_length() > LONGEST_INTEGER
        return size if long == (type(value) is str) else _OUTSIDE

    return FieldDomain(expected="a positive integer of at most 2^24 bits", read=read)


def one_of(*allowed: int | str) -> FieldDomain:
    """Return these words and integers; 1 is neither True nor 1.0."""
    exact = {(type(value), value) for value in allowed}
    return _written(
        f"one of {', '.join(map(str, allowed))}",
        lambda value: type(value) in (int, str) and (type(value), value) in exact,
    )


def flag() -> FieldDomain:
    """Return true and false."""
    return _written("true or false", lambda value: type(value) is bool)


def either(*domains: FieldDomain) -> FieldDomain:
    """Return the union."""

    def read(value: Any) -> Any:
        found = (domain.read(value) for domain in domains)
        return next((one for one in found if one is not _OUTSIDE), _OUTSIDE)

    return FieldDomain(expected=", or ".join(domain.expected for domain in domains), read=read)


def _each(domains: list[FieldDomain], value: list[Any]) -> Any:
    found = [domain.read(item) for domain, item in zip(domains, value, strict=True)]
    return _OUTSIDE if any(one is _OUTSIDE for one in found) else found


def list_of(entry: FieldDomain, *, fewest: int = 0) -> FieldDomain:
    """Return lists of any length, every entry in the same domain."""

    def read(value: Any) -> Any:
        fits = type(value) is list and fewest <= len(value) <= MOST_ENTRIES
        return _each([entry] * len(value), value) if fits else _OUTSIDE

    expected = f"a list of {fewest} to {MOST_ENTRIES} entries, each {entry.expected}"
    return FieldDomain(expected=expected, read=read)


def row_of(*entries: FieldDomain) -> FieldDomain:
    """Return lists with one entry of each domain, in this order."""

    def read(value: Any) -> Any:
        fits = type(value) is list and len(value) == len(entries)
        return _each(list(entries), value) if fits else _OUTSIDE

    return FieldDomain(expected=f"[{'; '.join(entry.expected for entry in entries)}]", read=read)


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
