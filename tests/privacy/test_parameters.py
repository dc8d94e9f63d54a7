"""δ as an input in either form, and a total ε in two shares."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from zerodelta.errors import ParameterError
from zerodelta.privacy.parameters import log_delta_from, split_epsilon


def test_delta_and_its_logarithm_say_the_same_and_round_up() -> None:
    for delta in ("1e-6", "1e-300", Fraction(1, 3), 0.5):
        found = log_delta_from(delta, None)
        assert math.isclose(found, math.log(Fraction(delta)), rel_tol=1e-12)
        assert log_delta_from(None, found) == found
    assert log_delta_from(1, None) == 0.0


@pytest.mark.parametrize(
    ("delta", "log_delta"),
    [(None, None), ("1e-6", -13.8), (0.0, None), (0, None), (2, None), (-1, None), (None, 0.5)],
)
def test_neither_both_and_the_delta_that_underflowed_are_refused(
    delta: Any, log_delta: Any
) -> None:
    with pytest.raises(ParameterError, match="delta"):
        log_delta_from(delta, log_delta)


def test_the_shares_of_epsilon_add_up_exactly() -> None:
    for total, base in (("1/3", None), (1, "1/7"), (0.1, 0.03)):
        inner, extra = split_epsilon(total, base)
        assert inner > 0
        assert extra > 0
        assert inner + extra == Fraction(total)


@pytest.mark.parametrize("base", [0, -1, 1, 2])
def test_a_share_that_leaves_nothing_for_the_noise_is_refused(base: int) -> None:
    with pytest.raises(ParameterError, match="base_epsilon"):
        split_epsilon(1, base)
