"""Bits of the system are fair and fail loudly; replayed ones are a function of their label.

(Forks, threads and state kept between calls: tests/attacks/test_randomness.py.)
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from zerodelta.errors import EntropyError, ParameterError
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits, is_private


def test_system_bits_are_fair_in_every_position() -> None:
    words = SystemBits().words(200_000)
    ones = [int(np.count_nonzero(words >> np.uint64(i) & np.uint64(1))) for i in range(64)]
    # standard deviation 224: 7 of them is beyond 1e-11
    assert max(abs(count - 100_000) for count in ones) < 7 * 224


def test_system_bits_read_more_than_one_chunk() -> None:
    size = (1 << 24) + 12345
    data = SystemBits().read(size)
    assert len(data) == size
    assert data[: 1 << 10] != data[1 << 24 : (1 << 24) + (1 << 10)]


def test_a_failing_system_source_raises_entropy_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(count: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(EntropyError, match="nothing was released"):
        SystemBits().words(1)


def test_a_short_read_raises_entropy_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: b"x" * (count - 1))
    with pytest.raises(EntropyError, match="7 of 8 bytes"):
        SystemBits().words(1)


def test_replay_is_its_tape_then_a_stream_that_follows_from_the_label() -> None:
    source = ReplayBits("a", tape=(5).to_bytes(8, "little") + (9).to_bytes(8, "little"))
    assert source.words(2).tolist() == [5, 9]
    assert source.read(32) != source.read(32)
    assert ReplayBits("a").read(100) == ReplayBits("a").read(100) != ReplayBits("b").read(100)


def test_only_the_system_source_counts_as_private() -> None:
    class Pretender(BitSource):
        def read(self, count: int) -> bytes:
            return bytes(count)

    source = SystemBits()
    with pytest.raises(AttributeError):
        source.read = ReplayBits("a").read  # type: ignore[method-assign]
    assert is_private(source)
    assert not is_private(ReplayBits("a"))
    assert not is_private(Pretender())


def test_replay_refuses_a_negative_count() -> None:
    with pytest.raises(ParameterError, match="count"):
        ReplayBits("a").read(-1)


def test_integer_uses_exactly_the_bits_asked_for() -> None:
    drawn = [ReplayBits(str(i)).integer(3) for i in range(400)]
    assert set(drawn) == set(range(8))


def test_signs_are_fair() -> None:
    signs = ReplayBits("signs").signs(1_000_000)
    assert set(signs.tolist()) == {-1, 1}
    assert abs(int(signs.sum())) < 7 * 1000
