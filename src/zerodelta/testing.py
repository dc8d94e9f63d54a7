"""Replay random bits, so that tests of programs get the same releases in each run.

A release with replayed bits is *not private*, and its certificate says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zerodelta.errors import require
from zerodelta.exact.bits import REPLAYED, BitSource, ReplayBits

__all__ = ["replayed"]


@contextmanager
def replayed(bits: BitSource | str) -> Iterator[BitSource]:
    """Draw all releases inside the block from replayed bits; also decorates functions.

    A label stands for a sequence of bits that starts again in each block, and in each call of a
    decorated function. A release must be drawn with the bits for which its certificate was issued,
    so run a study in the block in which it was created. Threads that are started inside draw from
    the operating system, unless they enter a block of their own.

    >>> import numpy as np, zerodelta as zd
    >>> rows, options = np.zeros(1000), {"bounds": (0, 1), "epsilon": "1/2"}
    >>> with replayed("a test"):
    ...     release = zd.mean(rows, **options)
    >>> print(release.certificate.randomness)
    replayed test bits: NOT PRIVATE
    >>> replayed("a test")(zd.mean)(rows, **options).value == release.value
    True
    """
    require(
        isinstance(bits, (str, BitSource)),
        "bits",
        type(bits).__name__,
        expected="a label, or a BitSource",
        remedy='pass a text such as "a test"',
    )
    source = ReplayBits(bits) if isinstance(bits, str) else bits
    token = REPLAYED.set(source)
    try:
        yield source
    finally:
        REPLAYED.reset(token)
