"""Noise that is added to integers, one entry each: all that the tests need to know of a new one.

Copy an entry to add a noise law. Of it follow the draws that its theorem asks for (`LAWS`), the
chi-square tests of its sampler, its boundary words and its slow path (`tests/exact`), its loss on
all moves and at other numbers, the mechanism that is held to its theorem (`HELD`), a certificate
whose numbers are forged one by one (`tests/privacy/theorem_cases.py`), and its exact test in
docs/proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from zerodelta.exact.noise import rounded_laplace
from zerodelta.mechanisms.sum_noise import RoundedLaplace

F = Fraction
Numbers = Mapping[str, Any]
"""The numbers of a step by name. All are fractions, integers too."""
Move = tuple[int, ...]
"""By how much the sums of a neighbor differ: one entry, not 0, for each sum that moves."""

LESS, MORE, FREE = -1, 1, None
"""Which direction of a number needs a weaker claim; `FREE` if none does."""


@dataclass(frozen=True, kw_only=True)
class AddedNoise:
    """A mechanism that adds one draw of a sampler to each integer."""

    mechanism: Any
    """One instance with small numbers: its `step()` has the theorem's label and numbers."""
    sampler: Any
    """The function of `exact` that it draws from; it takes `size` and `bits`."""
    told: Callable[[Numbers], dict[str, Any]]
    """What the sampler is told. It is compared by ==, so a fraction may stand for an integer."""
    probability: Callable[[Numbers, int], float]
    """The law of one draw, by a formula that shares no code with the sampler."""
    neighbors: Callable[[Numbers, Move], bool]
    """Whether the theorem is about neighbors whose sums differ by this: its premise."""
    worse: dict[str, int | None]
    """For each number of the theorem the direction in which less is proven."""
    refused: Sequence[dict[str, Any]] = ()
    """Numbers that the theorem must refuse beside the others: conditions on several of them."""

    @property
    def label(self) -> str:
        """The label of its theorem."""
        label: str = self.mechanism.step().theorem
        return label

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of its step, as they are written."""
        return dict(self.mechanism.step().numbers)

    @property
    def exact(self) -> dict[str, Fraction]:
        """The numbers of its step, all of them fractions."""
        return {name: F(number) for name, number in self.numbers.items()}

    def scaled(self, scale: Fraction | int) -> Any:
        """Return the mechanism with another scale, all else equal."""
        return replace(self.mechanism, scale=F(scale))


def l1(move: Move) -> int:
    return sum(map(abs, move))


def _laplace(n: Numbers, k: int) -> float:
    """Rounded: the mass between k - 1/2 and k + 1/2."""
    if k == 0:
        return -math.expm1(-1 / (2 * n["scale"]))
    return math.exp(-abs(k) / n["scale"]) * math.sinh(1 / (2 * n["scale"]))


NOISES: Sequence[AddedNoise] = (
    AddedNoise(
        mechanism=RoundedLaplace(sensitivity=F(2), scale=F(7, 3)),
        sampler=rounded_laplace,
        told=lambda n: {"scale": n["scale"]},
        probability=_laplace,
        neighbors=lambda n, move: l1(move) <= n["sensitivity"],
        worse={"sensitivity": MORE, "scale": LESS},
    ),
)
