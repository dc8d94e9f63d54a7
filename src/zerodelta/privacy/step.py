"""One step of a proof: a theorem's label, its public numbers, and on whose word it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias, final

from zerodelta.privacy.neighbors import Neighbors

__all__ = ["Number", "Status", "Step", "weakest", "whole"]

Number: TypeAlias = int | str | list[Any]
"""What a step may carry: integers, rationals "p/q", floats as decimal strings, lists of these.

Integers beyond what Python writes in decimal are hexadecimal strings "0x…".
"""

_LONG = 13_000
"""Bits; Python refuses to write or read integers of more than 4300 decimal digits."""


class Status(Enum):
    """On what a step rests, from strongest to weakest."""

    PROVEN = "proven"
    """our exact mechanism, proven on the computer"""
    ASSERTED = "asserted"
    """the caller's word, such as a float mechanism that ran elsewhere"""
    IDEALISED = "idealised"
    """proven for real arithmetic only"""


_ORDER = (Status.PROVEN, Status.ASSERTED, Status.IDEALISED)


def weakest(statuses: list[Status]) -> Status:
    """Return the weakest of the statuses: a chain is as strong as that."""
    return max(statuses, key=_ORDER.index)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A theorem applied to public numbers that hold for one neighbouring relation.

    >>> Step(theorem="R-gaussian", numbers={"variance": Fraction(9, 4)}).numbers["variance"]
    '9/4'
    """

    theorem: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.PROVEN
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        plain = {name: _plain(value) for name, value in self.numbers.items()}
        object.__setattr__(self, "numbers", MappingProxyType(plain))

    def __reduce__(self) -> tuple[object, ...]:  # a read-only mapping cannot be pickled
        return _rebuild, (self.theorem, dict(self.numbers), self.status, self.neighbors)


def _rebuild(theorem: str, numbers: dict[str, Any], status: Status, neighbors: Neighbors) -> Step:
    return Step(theorem=theorem, numbers=numbers, status=status, neighbors=neighbors)


def _plain(value: Any) -> Number:
    """Turn exact numbers into JSON without loss."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int) and value.bit_length() > _LONG:
        return hex(value)
    if isinstance(value, (int, str)):
        return value
    raise TypeError(f"a step cannot carry {type(value).__name__}")


def whole(number: Any) -> Any:
    """Return the integer that a hexadecimal string stands for; anything else as it is.

    >>> whole("0x10"), whole(16)
    (16, 16)
    """
    return int(number, 16) if isinstance(number, str) and number.startswith("0x") else number
