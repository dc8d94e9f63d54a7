"""Noise that is added to integers, one entry each: all that the tests need to know of a new one.

Copy an entry to add a noise law. Of it follow the draws that its theorem asks for (`LAWS`), the
exact test of its sampler (`DRAWN_FROM`), the mechanism that is held to its theorem (`HELD`), and a
certificate whose numbers are forged one by one (`tests/privacy/theorem_cases.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from zerodelta.exact.noise import rounded_laplace
from zerodelta.mechanisms.sum_noise import RoundedLaplace

F = Fraction
LESS, MORE, FREE = -1, 1, None
"""Which direction of a number needs a weaker claim; `FREE` if it only describes."""


@dataclass(frozen=True, kw_only=True)
class AddedNoise:
    """A mechanism that adds one draw of a sampler to each integer."""

    mechanism: Any
    """One instance: its `step()` has the theorem's label and numbers, its `apply` draws."""
    sampler: Any
    """The function of `exact` that it draws from; it takes `size` and `bits`."""
    told: Callable[[Mapping[str, Any]], dict[str, Any]]
    """What the sampler is told, by the numbers of the step, which are all fractions here."""
    probability: Callable[[int], float]
    """The law of one draw of that instance, by a formula that shares no code with the sampler."""
    moves: Sequence[int]
    """By how much a neighbor may move one integer, at most and below."""
    worse: dict[str, int | None]
    """For each number of the step the direction in which less is proven."""

    @property
    def label(self) -> str:
        """The label of its theorem."""
        label: str = self.mechanism.step().theorem
        return label

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of its step."""
        return dict(self.mechanism.step().numbers)


def _laplace(k: int) -> float:
    """Of Laplace noise of scale 7/3, rounded: its mass between k - 1/2 and k + 1/2."""
    if k == 0:
        return -math.expm1(-3 / 14)
    return math.exp(-abs(k) * 3 / 7) * math.sinh(3 / 14)


NOISES: Sequence[AddedNoise] = (
    AddedNoise(
        mechanism=RoundedLaplace(sensitivity=F(2), scale=F(7, 3)),
        sampler=rounded_laplace,
        told=lambda n: {"scale": n["scale"]},
        probability=_laplace,
        moves=(1, 2),
        worse={"sensitivity": MORE, "scale": LESS, "count": MORE},
    ),
)
