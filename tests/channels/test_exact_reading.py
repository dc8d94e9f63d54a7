"""Theorem N adds noise to the exact value: integers beyond 2^53 are not rounded to floats first."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from zerodelta.channels.channel import NumericalError
from zerodelta.exact.bits import ReplayBits
from zerodelta.spaces import Ball

CHANNEL = NumericalError(
    space=Ball(1, 2**61), error=Fraction(1), scale=Fraction(1, 1000), spacing=Fraction(1)
)


@pytest.mark.parametrize(
    "value",
    [
        np.array([2**60 + 129]),
        [2**60 + 129],
        [Fraction(2**60 + 129)],
        np.array([2**60 + 129], dtype=object),
    ],
)
def test_big_integers_keep_their_last_digits(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    centers: list[Any] = []
    draw = CHANNEL.apply.__globals__["rounded_k_norm"]

    def spy(**options: Any) -> Any:
        centers.append(options["center"])
        return draw(**options)

    monkeypatch.setitem(CHANNEL.apply.__globals__, "rounded_k_norm", spy)
    CHANNEL.apply(value, ReplayBits("exact"))
    assert centers == [[Fraction(2**60 + 129)]]
