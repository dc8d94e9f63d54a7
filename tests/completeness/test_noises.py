"""Each noise of `noises.py`: its law sums to one, is what is drawn, and loses what is claimed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from completeness import drawn
from completeness.laws import stated
from completeness.noises import NOISES, AddedNoise
from reference.chi_square import goodness_of_fit
from zerodelta.exact.bits import BitSource, ReplayBits

EACH = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.label)
DRAWS = 100_000
FAR = 400
"""From 0; nothing that is seen in this many draws lies beyond."""


def p_value(noise: AddedNoise, scale: int = 1) -> float:
    (wanted,) = stated(noise.mechanism.step())
    bits: BitSource = ReplayBits(noise.label)
    sample = np.asarray(wanted.sampler(**wanted.numbers, size=DRAWS, bits=bits)) * scale
    least = max(k for k in range(FAR) if noise.probability(k) > 20 / DRAWS)
    clipped = np.clip(sample, -least - 1, least + 1) + least + 1
    counts = np.bincount(clipped.astype(np.int64), minlength=2 * least + 3)
    inner = [noise.probability(k) for k in range(-least, least + 1)]
    tail = (1 - sum(inner)) / 2
    return goodness_of_fit(counts.tolist(), [tail, *inner, tail])


@EACH
def test_what_is_drawn_follows_the_law(noise: AddedNoise) -> None:
    assert p_value(noise) > 1e-3
    assert p_value(noise, scale=2) < 1e-9


@EACH
def test_the_law_loses_at_most_what_the_theorem_says(noise: AddedNoise) -> None:
    law = {k: noise.probability(k) for k in range(-FAR, FAR + 1)}
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    seen = [k for k in law if law[k] > 1e-280]
    losses = [
        math.log(law[k]) - math.log(law[k + move])
        for move in (*noise.moves, *(-move for move in noise.moves))
        for k in seen
        if law.get(k + move, 0) > 1e-280
    ]
    epsilon = float(noise.mechanism.claim.exact_epsilon)
    assert max(losses) <= epsilon * (1 + 1e-12)
    assert max(losses) > epsilon * 0.99, "the claim is larger than it needs to be"


@EACH
def test_half_of_the_noise_is_found(noise: AddedNoise, monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(self: Any, count: int, bits: BitSource) -> Any:
        (wanted,) = stated(self.step())
        told = {**wanted.numbers, "scale": wanted.numbers["scale"] / 2}
        module = __import__(type(self).__module__, fromlist=["_"])
        return getattr(module, wanted.sampler.__name__)(**told, size=count, bits=bits)

    held = drawn.Adds(noise.mechanism)
    assert not drawn.mistakes(held)
    monkeypatch.setattr(type(noise.mechanism), "noise", halved)
    assert any("no theorem" in line for line in drawn.mistakes(held))
