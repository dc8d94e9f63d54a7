"""Where random bits come from: the operating system, or, in tests only, a replayed tape.

Nothing is buffered between calls, so a forked process can never repeat its parent's bits. On a
real machine the operating system's generator has a finite state, so what is drawn from it is pure
*relative to that generator* (theory A14.7).
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from typing import final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import EntropyError
from zerodelta.exact.rational import as_count

Words = npt.NDArray[np.uint64]

_LARGEST_READ = 1 << 24


class BitSource(ABC):
    """A stream of independent fair bits."""

    __slots__ = ()

    @abstractmethod
    def read(self, count: int) -> bytes:
        """Return the next `count` bytes, or raise `EntropyError`."""

    def words(self, count: int) -> Words:
        """Return the next `count` 64-bit words."""
        return np.frombuffer(self.read(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def integer(self, width: int) -> int:
        """Return an integer made of the next `width` bits."""
        size = -(-width // 8)
        return int.from_bytes(self.read(size), "little") >> (8 * size - width)

    def signs(self, count: int) -> npt.NDArray[np.int64]:
        """Return `count` independent fair signs, each -1 or 1."""
        packed = np.frombuffer(self.read(-(-count // 8)), dtype=np.uint8)
        return np.unpackbits(packed, count=count).astype(np.int64) * 2 - 1


@final
class SystemBits(BitSource):
    """The operating system's cryptographic random source, read in bulk.

    >>> SystemBits().words(3).shape
    (3,)
    """

    __slots__ = ()

    def read(self, count: int) -> bytes:
        """Return `count` fresh bytes; a failure or a short read raises `EntropyError`."""
        count = as_count(count, "count")
        parts = [
            _system_bytes(min(_LARGEST_READ, count - start))
            for start in range(0, count, _LARGEST_READ)
        ]
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _system_bytes(count: int) -> bytes:
    try:
        data = os.urandom(count)
    except (OSError, NotImplementedError) as error:
        raise EntropyError(
            f"the operating system's random source failed ({error}); nothing was released: "
            "make /dev/urandom or getrandom available to this process and run again."
        ) from error
    if len(data) != count:
        raise EntropyError(
            f"the operating system's random source returned {len(data)} of {count} bytes; "
            "nothing was released: run again, and report it if it persists."
        )
    return data


@final
class ReplayBits(BitSource):
    r"""A repeatable stream for tests: first `tape`, then bytes derived from `label`.

    Whatever is drawn from it is *not private*, and certificates say so.

    >>> ReplayBits("a test").integer(20) == ReplayBits("a test").integer(20)
    True
    >>> ReplayBits("a test", tape=bytes(7) + b"\x01").words(1).tolist()
    [72057594037927936]
    """

    __slots__ = ("_calls", "_label", "_tape")

    def __init__(self, label: str, *, tape: bytes = b"") -> None:
        self._label = label.encode()
        self._tape = tape
        self._calls = 0

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes of the tape, continued by SHAKE-256 of the label."""
        count = as_count(count, "count")
        head, self._tape = self._tape[:count], self._tape[count:]
        if len(head) == count:
            return head
        self._calls += 1
        block = hashlib.shake_256(self._calls.to_bytes(8, "little") + self._label)
        return head + block.digest(count - len(head))


def is_private(source: BitSource) -> bool:
    """Tell whether a certificate may call a release drawn from `source` private.

    Only the operating system's own source counts, whatever another class says of itself.
    """
    return type(source) is SystemBits
