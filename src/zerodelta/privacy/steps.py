"""Define the steps and parts of a proof, and the domains of the numbers in them.

A file is checked before anything in it is evaluated: a number is an integer, "p/q" or a decimal in
ASCII (a weight also a power "2^-n"), of bounded length and exponent, so that reading it costs next
to nothing. A number outside its domain would be put into an inequality that was not proved for it.
Conditions on several fields together (kernel_cells <= cells, q_min·N <= 1) are checked where the
inequality is.
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
"""A number of a step: an integer, a rational "p/q", a float as a decimal string, a list of these.

Integers of more than 4300 digits, which Python does not write in decimal, are hexadecimal strings
"0x…", and 1/2^n is the power "2^-n"; no other fraction can be so long.
"""

SMALLEST_POWER, LARGEST_POWER = 14_285, 1_000_000
"""The range of n in "2^-n"; 2^14285 is the first power of 2 with more than 4300 digits."""

_HEXADECIMAL = re.compile(r"0x[1-9a-f][0-9a-f]{0,4194303}")
"""As `hex` writes them, up to 2^24 bits."""

_POWER = re.compile(r"2\^-([1-9][0-9]{4,6})")


class Status(Enum):
    """The basis of a step, from strongest to weakest."""

    PROVEN = "proven"
    """an exact mechanism of this library, proven as it runs on a computer"""
    ASSERTED = "asserted"
    """caller-asserted, such as a float mechanism that ran elsewhere"""
    IDEALIZED = "idealized"
    """proven for real arithmetic only"""

    def __reduce__(self) -> tuple[object, ...]:  # skops saves an Enum by this
        return type(self), (self.value,)


_ORDER = (Status.PROVEN, Status.ASSERTED, Status.IDEALIZED)


def weakest(statuses: list[Status]) -> Status:
    """Return the weakest status, which is that of a whole chain of steps."""
    return max(statuses, key=_ORDER.index)


@value
class Step:
    """A theorem applied to public numbers, for one neighboring relation.

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
        """Return the step of a theorem that is applied `count` times."""
        return replace(self, numbers={**self.numbers, "count": count})

    def is_exact(self) -> bool:
        """Tell whether every field is of exactly the right type, and of no subclass."""
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
    """Restore a pickled step through its constructor, which checks it again."""
    theorem, numbers, status, neighbors = state
    restored = Step(theorem=theorem, numbers=numbers, status=status, neighbors=neighbors)
    for name in (part.name for part in fields(Step)):
        object.__setattr__(step, name, getattr(restored, name))


# The read-only mapping `numbers` can neither be pickled nor saved by skops, so a step's state has a
# dict. Python 3.10 overwrites these two methods in the body of a frozen class with slots, so they
# are set afterwards.
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
        """Tell whether every field is of exactly the right type, and of no subclass."""
        return (
            type(self.steps) is tuple
            and all(type(step) is Step and step.is_exact() for step in self.steps)
            and (self.epsilon is None or type(self.epsilon) is Fraction)
        )


def plain(value: Any) -> Number:
    """Return an exact number, or a list of them, as JSON without loss."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return plain(int(value)) if value.denominator == 1 else _ratio(value)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):  # int.__int__: a subclass may override its own conversion
        exact = int.__int__(value)
        return hex(exact) if exact.bit_length() > LONGEST_INTEGER else exact
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"a step cannot carry {type(value).__name__}")


def _ratio(value: Fraction) -> str:
    """Write a fraction as "p/q", and 1/2^n as "2^-n" if it is long."""
    if not is_long(value):
        return f"{value.numerator}/{value.denominator}"
    exponent = value.denominator.bit_length() - 1
    require(
        value.numerator == 1 and value.denominator == 1 << exponent and exponent <= LARGEST_POWER,
        "a fraction in a proof",
        expected="a numerator and denominator of at most 4300 digits, or 1/2^n, n <= 1 000 000",
        remedy="pass a rounder number, or use a smaller space",
    )
    return f"2^-{exponent}"


def power(number: Any) -> Fraction | None:
    """Return the number written as a power such as "2^-20000"; None for anything else.

    Smaller exponents are refused: "p/q" is their only notation.

    >>> power("2^-20000") == Fraction(1, 2**20000), power("2^-14284"), power("2^-1000001")
    (True, None, None)
    """
    match = _POWER.fullmatch(number) if type(number) is str else None
    exponent = int(match[1]) if match else 0
    return Fraction(1, 1 << exponent) if SMALLEST_POWER <= exponent <= LARGEST_POWER else None


def from_hexadecimal(number: Any) -> Any:
    """Return the integer that a hexadecimal string stands for; anything else as it is.

    >>> from_hexadecimal("0x10"), from_hexadecimal(16), from_hexadecimal("0x1_0")
    (16, 16, '0x1_0')
    """
    return int(number, 16) if type(number) is str and _HEXADECIMAL.fullmatch(number) else number


def canonical(data: Any) -> str:
    """Return the canonical JSON text of data: keys sorted, no spaces; digests are taken of it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def digest_of(data: Any) -> str:
    """Return the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


LARGEST_EXPONENT = 5000
"""The largest exponent of a decimal, in either direction; larger ones would exhaust memory."""

MAX_ENTRIES = 10_000
"""The largest length of a list in a step."""

_RATIO = re.compile(r"-?(0|[1-9][0-9]{0,4299})(/[1-9][0-9]{0,4299})?")
_DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?([0-9]{1,4}))?")
"""A float as `repr` writes it, such as -30.0, 1e-300 or 1e+16."""

_OUTSIDE = object()


@value
class FieldDomain:
    """The values that a field may have: a description, and a function that reads one."""

    expected: str
    read: Callable[[Any], Any]
    """Return the value that was written; `_OUTSIDE` if it is not in the domain."""

    def contains(self, value: Any) -> bool:
        """Tell whether a written value is in the domain, and in its only notation."""
        return self.read(value) is not _OUTSIDE


def read_numbers(
    name: str,
    numbers: Mapping[str, Any],
    fields: Mapping[str, FieldDomain],
    optional: Collection[str] = (),
) -> dict[str, Any]:
    """Read the numbers of a step or claim, refusing unknown names and values out of domain."""
    required = {key for key in fields if key not in optional}
    if not required <= set(numbers) <= set(fields):
        raise CertificateError(
            f"{name} has exactly the numbers {sorted(required)}, not {sorted(numbers)}."
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
    """Return a short repr of a written value; a long integer is shown by its number of bits."""
    if type(value) is int and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    shown = repr(value[:60] if isinstance(value, (str, list)) else value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def read_rational(value: Any) -> Fraction | None:
    """Return the number that a certificate wrote; None for any other notation.

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
    """Return the domain of the rationals for which a condition holds."""

    def read(value: Any) -> Any:
        exact = read_rational(value)
        return exact if exact is not None and holds(exact) else _OUTSIDE

    return FieldDomain(expected=expected, read=read)


def _written(expected: str, holds: Callable[[Any], bool]) -> FieldDomain:
    """Return the domain of JSON values for which a condition holds, read as they are written."""
    return FieldDomain(expected=expected, read=lambda value: value if holds(value) else _OUTSIDE)


def above(low: int, *, maximum: int | None = None) -> FieldDomain:
    """Return the domain of rationals above `low`, and at most `maximum`."""
    limit = "" if maximum is None else f" and at most {maximum:.0e}"
    return _rational(
        f"a number above {low}{limit}", lambda x: x > low and (maximum is None or x <= maximum)
    )


def at_least(low: int) -> FieldDomain:
    """Return the domain of rationals of at least `low`."""
    return _rational(f"a number of at least {low}", lambda x: x >= low)


def between(low: int, high: int, *, ends: str) -> FieldDomain:
    """Return the domain of rationals in an interval; `ends` such as "(]" says which ends belong."""
    return _rational(
        f"a number in {ends[0]}{low}, {high}{ends[1]}",
        lambda x: (
            low <= x <= high and (x != low or ends[0] == "[") and (x != high or ends[1] == "]")
        ),
    )


def weights() -> FieldDomain:
    """Return the domain of numbers strictly between 0 and 1, tiny ones as powers "2^-n"."""
    usual = between(0, 1, ends="()")

    def read(value: Any) -> Any:
        exact = power(value)
        return usual.read(value) if exact is None else exact

    return FieldDomain(expected=usual.expected, read=read)


def integers(low: int, maximum: int | None = None) -> FieldDomain:
    """Return the domain of integers from `low` to `maximum`, written as JSON integers."""

    def holds(value: Any) -> bool:
        if type(value) is not int or value.bit_length() > LONGEST_INTEGER:
            return False
        return low <= value and (maximum is None or value <= maximum)

    limit = "" if maximum is None else f" and at most {maximum}"
    return _written(f"an integer of at least {low}{limit}", holds)


def sizes() -> FieldDomain:
    """Return the domain of positive integers; those of 13 000 to 2^24 bits are hexadecimal."""

    def read(value: Any) -> Any:
        """Read a size from JSON: an integer, in hexadecimal if and only if it is long."""
        size = from_hexadecimal(value)
        if type(size) is not int or size < 1:
            return _OUTSIDE
        long = size.bit_length() > LONGEST_INTEGER
        return size if long == (type(value) is str) else _OUTSIDE

    return FieldDomain(expected="a positive integer of at most 2^24 bits", read=read)


def one_of(*allowed: int | str) -> FieldDomain:
    """Return the domain of these words and integers; 1 is neither True nor 1.0."""
    exact = {(type(value), value) for value in allowed}
    return _written(
        f"one of {', '.join(map(str, allowed))}",
        lambda value: type(value) in (int, str) and (type(value), value) in exact,
    )


def flag() -> FieldDomain:
    """Return the domain of true and false."""
    return _written("true or false", lambda value: type(value) is bool)


def either(*domains: FieldDomain) -> FieldDomain:
    """Return the union of domains."""

    def read(value: Any) -> Any:
        readings = (domain.read(value) for domain in domains)
        return next((reading for reading in readings if reading is not _OUTSIDE), _OUTSIDE)

    return FieldDomain(expected=", or ".join(domain.expected for domain in domains), read=read)


def _read_entries(domains: list[FieldDomain], entries: list[Any]) -> Any:
    """Return the entries of a list, each read in its own domain; `_OUTSIDE` if one is not in it."""
    values = [domain.read(entry) for domain, entry in zip(domains, entries, strict=True)]
    return _OUTSIDE if any(value is _OUTSIDE for value in values) else values


def list_of(entry: FieldDomain, *, minimum: int = 0) -> FieldDomain:
    """Return the domain of lists of at least `minimum` entries, all in the same domain."""

    def read(value: Any) -> Any:
        fits = type(value) is list and minimum <= len(value) <= MAX_ENTRIES
        return _read_entries([entry] * len(value), value) if fits else _OUTSIDE

    expected = f"a list of {minimum} to {MAX_ENTRIES} entries, each {entry.expected}"
    return FieldDomain(expected=expected, read=read)


def row_of(*entries: FieldDomain) -> FieldDomain:
    """Return the domain of lists with one entry of each domain, in this order."""

    def read(value: Any) -> Any:
        fits = type(value) is list and len(value) == len(entries)
        return _read_entries(list(entries), value) if fits else _OUTSIDE

    return FieldDomain(expected=f"[{'; '.join(entry.expected for entry in entries)}]", read=read)


# The types of a theorem's fields, each with its domain.

Positive: TypeAlias = Annotated[Fraction, above(0)]
NotNegative: TypeAlias = Annotated[Fraction, at_least(0)]
Weight: TypeAlias = Annotated[Fraction, weights()]
Order: TypeAlias = Annotated[Fraction, above(1, maximum=10**30)]
Count: TypeAlias = Annotated[int, integers(1, 10**12)]
"""A number of repetitions; no program that ends repeats more often."""
Dimension: TypeAlias = Annotated[int, integers(1, 10**9)]
Rows: TypeAlias = Annotated[int, integers(1, 10**15)]
Cells: TypeAlias = Annotated[int, integers(1)]
Bound: TypeAlias = Annotated[int, integers(0)]
Size: TypeAlias = Annotated[int, sizes()]
Bit: TypeAlias = Annotated[int, one_of(0, 1)]
Flag: TypeAlias = Annotated[bool, flag()]
Noise: TypeAlias = Annotated[str, one_of("real", "rounded", "discrete")]
