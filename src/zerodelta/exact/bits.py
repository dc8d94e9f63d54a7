"""Draw random bits, and round real functions of them exactly, reading more bits where needed.

Nothing is buffered between calls, so a forked process never repeats its parent's bits. The
generator of the operating system has a finite state, so releases are private *relative to that
generator* (theory A14.7).
"""

from __future__ import annotations

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import EntropyError
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.logs import ball, precision
from zerodelta.exact.rational import as_count
from zerodelta.value import value

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
    """Return bytes of the operating system, refusing a failure or a short read."""
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

    A release drawn from it is *not private*, and its certificate says so.

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

    Only `SystemBits` counts, compared by identity so that no other class can pass for it.
    """
    return type(source) is SystemBits


REPLAYED: ContextVar[BitSource | None] = ContextVar("replayed", default=None)
"""The bits that a test replays (`zerodelta.testing`); not inherited by new threads."""


def current_bits() -> BitSource:
    """Return the system's bits or, in a test that replays bits, those.

    Called once for each release, when its certificate is issued. From then on the source is passed
    as an argument, so that the release is drawn from the bits that its certificate states.
    """
    replayed = REPLAYED.get()
    return SystemBits() if replayed is None else replayed


# -- Lazy reals: the technique behind all continuous noise (theory R) -----------------------------
# A draw is a fixed function of infinite strings of fair bits, its uniforms. The first 64 bits of
# each uniform are drawn, and the function is evaluated in float64 with a proven radius
# (`float_balls`). If all numbers of the ball round to one integer, that integer is final. If not,
# the *same* uniforms are extended by fresh bits, and the function is evaluated again with Arb,
# until it is final. A boundary between integers has probability 0, so this ends. Floats only
# confirm what every extension of the strings would give, so the result is exactly the rounding of
# the continuous draw, to any depth in the tails.
#
# All outputs of a unit of noise (both Box-Muller partners, all coordinates of a vector) are
# evaluated again from one extension. Extending the strings separately for each output would keep
# the marginal laws and break the joint law.
#
# A formula is written once for both kinds of balls: `FloatBalls` evaluates it fast for thousands of
# draws, `ArbBalls` to any precision for a draw that is still undecided.

Integers: TypeAlias = npt.NDArray[Any]
"""int64 if every draw fits, else Python integers, so that noise is never wrapped or clipped."""

_BLOCK = 1 << 13
_CONSTANT_BITS = 128
_GUARD_BITS = 64

_FEWEST_FOR_FLOATS = 6
"""Up to this many uniforms or outputs Arb alone is faster than NumPy calls on tiny arrays."""

Balls = npt.NDArray[np.object_]


def _elementwise(function: Callable[[arb], Any], results: int = 1) -> Any:
    return np.frompyfunc(function, 1, results)


_log, _sqrt, _exp = _elementwise(arb.log), _elementwise(arb.sqrt), _elementwise(arb.exp)
_floor, _unique_integer = _elementwise(arb.floor), _elementwise(arb.unique_fmpz)
_sin_cos_pi = _elementwise(arb.sin_cos_pi, 2)
_HALF = arb(0.5)


@cache
def _cell(width: int) -> tuple[arb, arb]:
    """Return 2^-width and the ball [0, 2^-width], cached since creating them is slow."""
    return arb((1, -width)), arb((1, -width - 1), (1, -width - 1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArbBalls:
    """A one-dimensional array of Arb balls at the working precision."""

    values: Balls

    @staticmethod
    def of(values: Sequence[arb]) -> ArbBalls:
        """Return the balls as one array."""
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return ArbBalls(array)

    @staticmethod
    def uniform(prefixes: Sequence[int], width: int) -> ArbBalls:
        """Return uniforms whose first `width` bits are `prefixes`: U in [m, m+1] / 2^width."""
        unit, cell = _cell(width)
        return ArbBalls.of([unit * prefix + cell for prefix in prefixes])

    @staticmethod
    def stack(parts: list[ArbBalls]) -> ArbBalls:
        """Join the arrays."""
        return ArbBalls(np.concatenate([part.values for part in parts]))

    def __getitem__(self, rows: slice) -> ArbBalls:
        return ArbBalls(self.values[rows])

    def __abs__(self) -> ArbBalls:
        return ArbBalls(abs(self.values))

    def __neg__(self) -> ArbBalls:
        return ArbBalls(-self.values)

    def __add__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values + _plain(other))

    __radd__ = __add__

    def __sub__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values - _plain(other))

    def __mul__(self, other: ArbBalls | int) -> ArbBalls:
        return ArbBalls(self.values * _plain(other))

    __rmul__ = __mul__

    def __truediv__(self, other: ArbBalls) -> ArbBalls:
        return ArbBalls(self.values / other.values)

    def sqrt(self) -> ArbBalls:
        """Square root."""
        return ArbBalls(_sqrt(self.values))

    def log(self) -> ArbBalls:
        """Natural logarithm."""
        return ArbBalls(_log(self.values))

    def exp(self) -> ArbBalls:
        """Exponential."""
        return ArbBalls(_exp(self.values))

    def cos_sin_pi(self) -> tuple[ArbBalls, ArbBalls]:
        """Return cos(πx) and sin(πx)."""
        sine, cosine = _sin_cos_pi(self.values)
        return ArbBalls(cosine), ArbBalls(sine)

    def total(self) -> ArbBalls:
        """Sum of all."""
        return ArbBalls.of([sum(self.values, arb(0))])

    def log_total(self) -> ArbBalls:
        """Sum of the logarithms of all: the logarithm of their product."""
        return ArbBalls.of([math.prod(self.values, start=arb(1)).log()])

    def nearest(self) -> list[int] | None:
        """Return the integers that the balls round to, or None if one of them is undecided."""
        integers = _unique_integer(_floor(self.values + _HALF))
        if any(integer is None for integer in integers):
            return None
        return [int(integer) for integer in integers]


def _plain(other: ArbBalls | int) -> Balls | int:
    return other.values if isinstance(other, ArbBalls) else other


Reals = TypeVar("Reals", FloatBalls, ArbBalls)

Constant: TypeAlias = Callable[[], list[arb]]

Formula: TypeAlias = Callable[..., Any]
"""(uniforms: Reals, *constants: Reals) -> Reals: the outputs of a unit, along the first axis."""


@value
class Draw:
    """A unit of noise: `outputs` real numbers that `formula` computes from `uniforms` uniforms.

    Constants are functions, so that they are evaluated at each precision anew; each returns a
    vector of length 1, or with one entry for each output.
    """

    uniforms: int
    outputs: int
    formula: Formula
    constants: tuple[Constant, ...] = ()


def constant(*values: Fraction) -> Constant:
    """Return a rational constant of a draw: a number, or a vector with an entry for each output."""
    return lambda: [ball(value) for value in values]


@final
class BitStrings:
    """The bit strings of one unit of noise: 64-bit words, extended on demand."""

    def __init__(self, words: Words) -> None:
        self._prefixes: list[int] = words.tolist()
        self.width = 64

    def extend(self, bits: BitSource) -> None:
        """Double the length of every string with fresh bits."""
        width = self.width
        self._prefixes = [(prefix << width) | bits.integer(width) for prefix in self._prefixes]
        self.width += width

    def add(self, bits: BitSource) -> None:
        """Add one more string, of the same length as the others."""
        self._prefixes.append(bits.integer(self.width))

    def evaluate(self, draw: Draw) -> ArbBalls:
        """Return balls that contain the draw's outputs, given the bits of its strings so far."""
        with precision(self.width + _GUARD_BITS):
            constants = [ArbBalls.of(constant()) for constant in draw.constants]
            uniforms = ArbBalls.uniform(self._prefixes[: draw.uniforms], self.width)
            values: ArbBalls = draw.formula(uniforms, *constants)
            return values


def rounded(draw: Draw, units: int, bits: BitSource) -> Integers:
    """Return round(x) = floor(x + 1/2) of every output, exactly; shape (outputs, units)."""
    result: Integers = np.empty((draw.outputs, units), dtype=np.int64)
    entries = max(draw.uniforms, draw.outputs)
    if units * entries <= _FEWEST_FOR_FLOATS:
        words = bits.words(draw.uniforms * units).reshape(draw.uniforms, units)
        for i in range(units):  # gives what the float path would, from the same bits
            result = _stored(result, i, _round_exactly(draw, words[:, i], bits))
        return result
    constants = enclosed(draw)
    block = max(1, _BLOCK // entries)
    for start in range(0, units, block):
        width = min(block, units - start)
        words = bits.words(draw.uniforms * width).reshape(draw.uniforms, width)
        with np.errstate(all="ignore"):  # an infinite or NaN radius means undecided
            values: FloatBalls = draw.formula(FloatBalls.uniform(words), *constants)
            integers, decided = values.nearest()
            # int64 first: an object array must receive Python integers, never floats
            block_integers = np.where(decided, integers, 0.0).astype(np.int64)
        result[:, start : start + width] = block_integers
        for unit in np.flatnonzero(~decided.all(axis=0)):
            result = _stored(result, start + int(unit), _round_exactly(draw, words[:, unit], bits))
    return result


def enclosed(draw: Draw) -> list[FloatBalls]:
    """Return the constants of a draw as float balls."""
    with precision(_CONSTANT_BITS):
        return [FloatBalls.enclose(constant()) for constant in draw.constants]


def _round_exactly(draw: Draw, words: Words, bits: BitSource) -> list[int]:
    """Return the rounded outputs of one unit, extending its strings until they are certain."""
    strings = BitStrings(words)
    while True:
        with precision(strings.width + _GUARD_BITS):
            integers = strings.evaluate(draw).nearest()
        if integers is not None:
            return integers
        strings.extend(bits)


def _stored(result: Integers, unit: int, integers: list[int]) -> Integers:
    """Store the integers of one unit, in an object array if they do not fit 64 bits."""
    if any(not -(2**63) <= integer < 2**63 for integer in integers):
        result = result.astype(object)
    result[:, unit] = integers
    return result
