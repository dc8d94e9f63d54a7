"""One step of a proof, a theorem's label with public numbers; and a part, a chain of steps."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field, fields
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from zerodelta.errors import require
from zerodelta.exact.rational import LONGEST_INTEGER, is_long
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

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
