"""Define theorems: a label, a section of docs/theory.md, typed fields, an inequality, a sentence.

A step of a certificate is a theorem with numbers. `read` checks each number against the domain of
its field and returns the theorem's object; nothing is evaluated yet. A `BaseTheorem` then gives the
claim of a mechanism, and a `ChannelTheorem` decides whether post-processing makes that claim pure.
A mechanism has the same object with its own numbers, and is calibrated by the method that `verify`
calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, TypeVar, get_type_hints

from zerodelta.errors import GuaranteeError
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.composition import Composed, simplest
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.readable import filled
from zerodelta.privacy.steps import Count, FieldDomain, Status, Step, read_numbers

_T = TypeVar("_T", bound="Theorem")


class Theorem(ABC):
    """A theorem with the numbers of one step, each in its domain."""

    __slots__ = ()

    label: ClassVar[str]
    """Its name in certificates: a file format."""
    section: ClassVar[str]
    """The section of docs/theory.md with its proof, such as "B2"."""
    sentence: ClassVar[str]
    """The sentence of a certificate's explanation, with places for the numbers."""
    words: ClassVar[dict[str, dict[Any, str]]] = {}
    """By field, words that replace certain values in the sentence."""
    asserted: ClassVar[bool] = False
    """Whether it rests on the caller's assertion, so that its steps cannot be marked as proven."""
    every_row: ClassVar[bool] = False
    """Whether its mechanism uses the exact number of rows, for which an absent row is not a 0.

    Such a theorem does not apply to units, whose number of rows is private."""
    costly: ClassVar[bool] = False
    """Whether its inequality is a search or a long sum, which `check_work` limits."""

    @classmethod
    def read(cls: type[_T], numbers: Mapping[str, Any]) -> _T:
        """Return the theorem with the numbers of a step."""
        optional = {field.name for field in fields(cls) if field.default is not MISSING}  # type: ignore[arg-type]
        values = read_numbers(f"theorem {cls.label!r}", numbers, domains_of(cls), optional)
        return cls(**values)

    def values(self) -> dict[str, Any]:
        """Return the fields by name, without `count`."""
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names if name != "count"}

    def step(
        self, neighbors: Neighbors = Neighbors.REPLACE, *, status: Status = Status.PROVEN
    ) -> Step:
        """Return the proof step with these numbers."""
        return Step(theorem=self.label, numbers=self.values(), status=status, neighbors=neighbors)

    @classmethod
    def explain(cls, numbers: Mapping[str, Any]) -> str:
        """Return a sentence about a step with these numbers."""
        shown = {
            name: cls.words.get(name, {}).get(value, value) if type(value) in (int, str) else value
            for name, value in numbers.items()
        }
        return f"{cls.label} (theorem {cls.section}): {filled(cls.sentence, shown)}"


@cache
def domains_of(theorem: type[Theorem]) -> dict[str, FieldDomain]:
    """Return the domain of each field, from its annotation."""
    hints = get_type_hints(theorem, include_extras=True)
    names = [field.name for field in fields(theorem)]  # type: ignore[arg-type]
    return {name: hints[name].__metadata__[0] for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseTheorem(Theorem):
    """A theorem about a mechanism that reads the data, used `count` times."""

    replace_only: ClassVar[bool] = False
    """Whether the proof is for replace-one neighbors only."""
    real_valued: ClassVar[bool] = False
    """Whether it is about an exact real number, of which a computer only has an approximation:
    Theorem N has to publish that."""

    count: Count = 1

    def claim(self, neighbors: Neighbors) -> Claim:
        """Return the claim of the mechanism, used once."""
        if self.replace_only and neighbors is not Neighbors.REPLACE:
            raise GuaranteeError(f"theorem {self.label!r} holds for the replace-one relation only.")
        return self._claim(neighbors)

    @abstractmethod
    def _claim(self, neighbors: Neighbors) -> Claim:
        """Return the claim for a relation to which the theorem applies."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PureTheorem(BaseTheorem):
    """A theorem about a mechanism that is pure without a channel."""

    bounded_range: ClassVar[bool] = False

    @abstractmethod
    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return the ε of one use; raise `GuaranteeError` if the fields do not prove one."""

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = self.cost(neighbors)
        return PureDP(epsilon, bounded_range=self.bounded_range, neighbors=neighbors)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelTheorem(Theorem):
    """A theorem about post-processing that makes a base mechanism pure."""

    includes_base: ClassVar[bool] = False
    """Whether it includes the base mechanism, so that no step stands before it."""
    from_add_remove: ClassVar[bool] = False
    """Whether it proves a replace claim from steps that are stated for add-remove."""
    any_neighbors: ClassVar[bool] = False
    """Whether it uses only the claim of the earlier steps, so that it applies to units as well."""

    @classmethod
    def before(cls, claimed: Neighbors) -> Neighbors:
        """Return the relation for which the earlier steps are stated."""
        if cls.from_add_remove and claimed is not Neighbors.REPLACE:
            raise GuaranteeError(f"theorem {cls.label!r} proves a replace claim only.")
        return Neighbors.ADD_REMOVE if cls.from_add_remove else claimed

    @abstractmethod
    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether the output certainly is pure ε-DP if the input satisfies `base`."""

    def check_before(self, last: BaseTheorem, neighbors: Neighbors) -> None:
        """Refuse a last base step to which the theorem does not apply."""


def smallest_log_delta(base: Composed, epsilon: Fraction) -> float:
    """Return the smaller ln δ(ε) of a composed claim and of the simplest claim that says the same.

    They differ in the last digits, and a plan may have been calibrated with either.
    """
    return min(base.log_delta(epsilon), simplest(base).log_delta(epsilon))
