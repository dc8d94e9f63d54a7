"""Every sampler has its law, by chi-square tests; a scale that is 2 % off is seen.

A million draws see probabilities that are wrong by about half a percent, and the slow test, with a
hundred million, by less than a tenth of a percent. To the last bit, a draw is the function of its
bits that test_lazy.py computes exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from exact.sampler_cases import CASES, DRAWS, Case, p_value, p_value_of_counts, tally
from zerodelta.exact import bits as lazy
from zerodelta.exact import float_balls
from zerodelta.exact.bits import ReplayBits, SystemBits

EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@EACH
def test_a_million_draws_follow_the_exact_law(case: Case) -> None:
    sample = case.draw(Fraction(1), DRAWS, ReplayBits(case.name))
    assert len(sample) == DRAWS
    assert p_value(case, sample) > 1e-3


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("factor", [Fraction(98, 100), Fraction(102, 100)])
def test_a_scale_two_percent_off_is_rejected(case: Case, factor: Fraction) -> None:
    sample = case.draw(factor, DRAWS, ReplayBits(case.name))
    assert p_value(case, sample) < 1e-9


@EACH
def test_the_slow_path_alone_gives_bit_for_bit_the_same_draws(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = case.draw(Fraction(1), 400, ReplayBits(case.name))
    resolve, calls = lazy._round_exactly, 0

    def counting(*args: Any) -> list[int]:
        nonlocal calls
        calls += 1
        return resolve(*args)

    monkeypatch.setattr(float_balls, "KERNEL_ERROR", 1e300)
    monkeypatch.setattr(lazy, "_round_exactly", counting)
    slow = case.draw(Fraction(1), 400, ReplayBits(case.name))
    assert calls >= 200  # every unit; a Gaussian unit makes two draws
    assert fast.tolist() == slow.tolist()


@pytest.mark.slow
@EACH
def test_a_hundred_million_draws_follow_the_exact_law(case: Case) -> None:
    counts = np.zeros(case.cells[1] - case.cells[0] + 3, dtype=np.int64)
    for _ in range(50):
        counts += tally(case, case.draw(Fraction(1), 2_000_000, SystemBits()))
    assert counts.sum() == 10**8
    assert p_value_of_counts(case, counts) > 1e-6
