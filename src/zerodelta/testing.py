"""For tests of programs that release something: random bits that are the same each time.

Whatever is released with them is *not private*, and its certificate says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zerodelta.errors import require
from zerodelta.exact.bits import REPLAYED, BitSource, ReplayBits

__all__ = ["replayed"]


@contextmanager
def replayed(bits: BitSource | str) -> Iterator[BitSource]:
    """Have all that is released inside drawn from replayed bits; also a decorator of functions.

    A label stands for bits that begin anew in each block, and with each call of a decorated
    function. A release keeps the bits for which its certificate was issued, so a study that is made
    inside is run inside, too. Threads that are started inside draw from the operating system,
    unless they enter a block themselves.

    >>> import numpy as np, zerodelta as zd
    >>> rows, asked = np.zeros(1000), {"bounds": (0, 1), "epsilon": "1/2"}
    >>> with replayed("a test"):
    ...     release = zd.mean(rows, **asked)
    >>> print(release.certificate.randomness)
    replayed test bits: NOT PRIVATE
    >>> replayed("a test")(zd.mean)(rows, **asked).value == release.value
    True
    """
    text = isinstance(bits, str)
    require(
        text or isinstance(bits, BitSource),
        "bits",
        type(bits).__name__,
        expected="a label, or a BitSource",
        remedy='pass a text such as "a test"',
    )
    made = ReplayBits(bits) if isinstance(bits, str) else bits
    token = REPLAYED.set(made)
    try:
        yield made
    finally:
        REPLAYED.reset(token)
