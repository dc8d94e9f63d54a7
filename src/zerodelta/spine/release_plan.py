"""The plan of a release: everything that is decided before a row is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar, final

from zerodelta.data.source import FOREIGN_SOURCE
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.step import Part, Status, Step, weakest
from zerodelta.spine.methods import Method

__all__ = ["ReleasePlan"]

R = TypeVar("R")


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ReleasePlan(Generic[R]):
    """What will be claimed and by which steps, and the mechanism that turns rows into the value.

    A function of the question and of public facts only. `answer` is handed the opened rows and
    fresh bits by the runner (`spine/run.py`), and by nobody else.
    """

    claim: Claim
    steps: tuple[Step, ...]
    answer: Callable[[R, BitSource], Any]
    error: float | str | Callable[[Any], float | str]
    """The forecast: a number, a sentence, or a function of the released value."""
    methods: Sequence[Method] = ()
    """What was weighed, best first."""
    public: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    row: str = "one row of the data"
    parts: tuple[Part, ...] = ()
    """Instead of `steps`: several pure proofs that add up."""
    unit: str | None = None
    """Who is protected, if it is not a row."""
    bare_rows: bool = True
    """Whether rows came as an array, a list or a frame that the caller may have prepared."""
    noise: NoiseLaw | None = None
    """The law of the noise on the value, where it is public and simple."""
    seconds: float | None = None
    """Roughly how long a run takes on one ordinary core, where that may be long."""

    @property
    def price(self) -> Fraction | None:
        """The pure ε that a run costs; None for a claim that is not pure."""
        return self.claim.exact_epsilon if type(self.claim) is PureDP else None

    def certificate(self, bits: BitSource, *, ours: bool = True) -> Certificate:
        """Issue the certificate; `ours`: this library's own code reads the rows."""
        steps, parts, assumed = self.steps, self.parts, self.assumed
        if not ours:
            steps = _asserted(steps)
            parts = tuple(replace(part, steps=_asserted(part.steps)) for part in parts)
            assumed = (*assumed, *([] if FOREIGN_SOURCE in assumed else [FOREIGN_SOURCE]))
        return issue(
            claim=self.claim,
            steps=steps if not self.parts else None,
            parts=parts,
            bits=bits,
            unit=self.unit,
            row=self.row,
            public=self.public,
            assumed=assumed,
            bare_rows=self.bare_rows,
        )


def _asserted(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of a proof whose rows somebody else reads."""
    return tuple(replace(s, status=weakest([s.status, Status.ASSERTED])) for s in steps)
