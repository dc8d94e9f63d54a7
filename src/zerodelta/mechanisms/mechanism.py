"""What a mechanism is: public numbers of which a theorem is made, that says what it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar, cast, get_type_hints

from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.parameters import Neighbors, as_flag
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.theorem import Base, PureBase

_S = TypeVar("_S", bound="ScaledMechanism")
_CHECKS: dict[Any, Any] = {
    int: lambda number, name: as_count(number, name, minimum=1),
    Fraction: as_positive,
    bool: as_flag,
}
"""How a field is read, by its type; what is of another type is kept as it is."""


class Mechanism(ABC):
    """A mechanism that one theorem proves; everything stored in it is public.

    Its claim, its proof step and its noise are those of the theorem that it makes of its fields, so
    that what is drawn, what is paid and what `verify` computes cannot differ.
    """

    __slots__ = ()

    neighbors: Neighbors

    def __post_init__(self) -> None:
        """Make every number exact; refuse whole ones below 1, and others that are not above 0."""
        for name, check in _checks(type(self)):
            object.__setattr__(self, name, check(getattr(self, name), name))

    @property
    @abstractmethod
    def theorem(self) -> Base:
        """The theorem, with the numbers that its proof step states."""

    @property
    def claim(self) -> Claim:
        """What one use costs."""
        return self.theorem.claim(self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one use."""
        return self.theorem.step(self.neighbors)


class PureMechanism(Mechanism):
    """A mechanism that is pure by itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def theorem(self) -> PureBase:
        """The theorem, with the numbers that its proof step states."""

    @property
    def claim(self) -> PureDP:
        """What one use costs."""
        return cast(PureDP, self.theorem.claim(self.neighbors))

    @property
    def epsilon(self) -> Fraction:
        """The ε of one use, exactly."""
        return self.theorem.cost(self.neighbors)


class ScaledMechanism(PureMechanism):
    """A mechanism whose ε is inverse to its scale."""

    __slots__ = ()

    scale: Fraction

    @classmethod
    def for_epsilon(cls: type[_S], *, epsilon: Rational, **fields: Any) -> _S:
        """Return the mechanism with exactly this ε, and these fields beside its scale."""
        unit = cls(**{**fields, "scale": Fraction(1)})
        return replace(unit, scale=unit.epsilon / as_positive(epsilon, "epsilon"))  # type: ignore[type-var]


@cache
def _checks(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return how each field of a mechanism is read."""
    hints = get_type_hints(kind)
    return tuple((name, _CHECKS[hint]) for name, hint in hints.items() if hint in _CHECKS)
