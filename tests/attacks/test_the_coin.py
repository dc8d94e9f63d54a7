"""The mixing coin leaves no trace: both of its sides make the same calls and read the same bits.

(That the release has exactly its law: tests/channels/test_apply_on_every_path.py. How long the
sides take is measured, not tested: bench/mixing_time.py.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from channels.cases import BODIES, MIXING, F, algorithm_one, algorithm_two
from channels.channel_laws import values_of
from sampling import Replace, holders
from zerodelta.channels import channel
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import ProfileMix
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.exact.integers import bernoulli
from zerodelta.mechanisms.stable_queries import Median
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import Ball, Finite
from zerodelta.testing import replayed

CHANNELS: dict[str, Any] = {
    **MIXING,
    "profile": ProfileMix(space=Finite(3), at_epsilon=F(1), profile=(F(1, 10**9),) * 3),
    "smooth": SmoothMix(
        space=Ball(2, 1),
        step_taken=GaussianStep(dimension=2, variance=F(9), radius=F(4), sensitivity=F(2)),
        spacing=F(1, 4),
        mixing_weight=F(1, 20),
        order=F(3),
        mixing_variance=F(12),
    ),
    "algorithm-1": algorithm_one(BODIES["l1-2d"], base=F(1), extra=F(1), log_delta=-4.0),
    "algorithm-2": algorithm_two(5, base=F(1), extra=F(1), log_delta=-4.0),
}


class CountedBits(BitSource):
    """Replayed bits that count how many were read."""

    __slots__ = ("_bits", "count")

    def __init__(self, label: str) -> None:
        self._bits, self.count = ReplayBits(label), 0

    def read(self, count: int) -> bytes:
        self.count += count
        return self._bits.read(count)


def calls(run: Callable[[Any], Any], until: Any = None) -> tuple[list[str], int, Any]:
    """Return our functions and what they call, the bytes that are read, and the result.

    With `until` they are listed until that function has returned.
    """
    named: list[str] = []
    bits = CountedBits("a coin")
    last = getattr(until, "__code__", None)

    def profiler(frame: Any, event: str, argument: Any) -> None:
        ours = "zerodelta" in frame.f_globals.get("__name__", "")
        if ours and event == "call":
            named.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        elif ours and event == "c_call":
            named.append(argument.__qualname__)
        elif event == "return" and frame.f_code is last:
            sys.setprofile(None)

    sys.setprofile(profiler)
    try:
        result = run(bits)
    finally:
        sys.setprofile(None)
    return named, bits.count, result


def falls(side: bool, real: Callable[..., Any]) -> Callable[..., Any]:
    """A coin that is thrown as it should be, and then turned."""

    def coin(*given: Any, **options: Any) -> Any:
        thrown = np.asarray(real(*given, **options))
        return np.full(thrown.shape, side)

    return coin


@pytest.mark.parametrize("name", CHANNELS)
def test_both_sides_of_the_mixing_coin_make_the_same_calls(name: str, replace: Replace) -> None:
    """Until one of the two is chosen; what follows is one function of the point to publish."""
    purifier = CHANNELS[name]
    value = np.zeros(2, dtype=object) if name == "smooth" else values_of(purifier)[0]
    found = []
    for side in (True, False):
        replace("bernoulli", falls(side, bernoulli))
        purifier.apply(value, CountedBits("warm up"))  # caches of public numbers
        found.append(calls(lambda bits: purifier.apply(value, bits), until=channel.mix))
    (mixed, read, one), (kept, read_too, other) = found
    assert mixed == kept
    assert any(each.endswith("channel.py:mix") for each in mixed)
    assert read == read_too > 0
    assert type(one) is type(other)
    assert np.shape(one) == np.shape(other)


def turned(side: bool, real: Callable[..., Any]) -> Callable[..., Any]:
    """A noisy test that is made as it should be, and then says this."""

    def test(*given: Any, **options: Any) -> bool:
        real(*given, **options)
        return side

    return test


ROWS = np.arange(200.0) % 100
MIDDLE = Median(bounds=(0, 100), steps=20)
TESTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "propose_test_release": (
        "noisy_test",
        lambda **o: zd.queries.propose_test_release(
            ROWS, query=MIDDLE, proposed_bound=10, epsilon=1, **o
        ),
    ),
    "mode": (
        "noisy_test",
        lambda **o: zd.mode([3] * 90 + [4], universe=16, epsilon=1, method="stability", **o),
    ),
    "bounded_local_sensitivity": (
        "bernoulli",
        lambda **o: zd.queries.bounded_local_sensitivity(ROWS, query=MIDDLE, epsilon=1, **o),
    ),
}


@pytest.mark.parametrize("name", TESTED)
def test_a_test_that_fails_makes_the_calls_of_one_that_passes(name: str, replace: Replace) -> None:
    coin, release = TESTED[name]
    turn = {"noisy_test": turned, "bernoulli": falls}[coin]
    ((module, _), *_), found = holders(coin), []
    real = getattr(module, coin)
    for side in (True, False):
        replace(coin, turn(side, real))
        release()  # caches of public numbers
        found.append(calls(lambda bits: replayed(bits)(release)()))
    (passed, read, _), (failed, read_too, _) = found
    assert passed == failed
    assert read == read_too > 0
