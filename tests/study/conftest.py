"""What a study hands to its noise, and to its choices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import pytest

from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedGaussian

Seen: TypeAlias = list[tuple[list[int], Fraction]]
Chosen: TypeAlias = list[tuple[list[int], ExponentialMechanism]]


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Answers without noise; the list gets the integers and the variance of every vector."""
    seen: Seen = []

    def apply(self: RoundedGaussian, sums: Any, bits: Any) -> Any:
        seen.append((sums.tolist(), self.variance))
        return sums

    monkeypatch.setattr(RoundedGaussian, "apply", apply)
    return seen


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> Chosen:
    """The first option is always chosen; the list gets the scores and the mechanism."""
    seen: Chosen = []

    def select(self: ExponentialMechanism, scores: Any, bits: Any, **_: Any) -> int:
        seen.append((scores, self))
        return 0

    monkeypatch.setattr(ExponentialMechanism, "select", select)
    return seen
