"""Integer noise that differs upwards and downwards, and a random subset of an endless universe.

Z = floor(E/up) - floor(E'/down) with independent standard exponentials: P(z) ∝ e^(-up·z) for
z ≥ 0 and e^(-down·|z|) below (theory U). `sparse_ranks` draws which of N ranks have a noise in
some range without looking at the others, for N of any number of bits. All draws are exact (`lazy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from flint import arb

from zerodelta.exact.arb import ball, precision
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import floor_exponential
from zerodelta.exact.lazy import Draw, Integers, Strings, constant, rounded
from zerodelta.exact.rational import as_count, as_positive

_GUARD_BITS = 64


def asymmetric_noise(*, up: Fraction, down: Fraction, size: int, bits: BitSource) -> Integers:
    """Draw `size` times floor(E/up) - floor(E'/down).

    >>> from zerodelta.exact.bits import SystemBits
    >>> asymmetric_noise(up=Fraction(1000), down=Fraction(1000), size=3, bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    above = geometric_steps(rate=up, size=size, bits=bits)
    below = geometric_steps(rate=down, size=size, bits=bits)
    drawn: Integers = above - below
    return drawn


def geometric_steps(*, rate: Fraction, size: int, bits: BitSource) -> Integers:
    """Draw `size` times floor(E/rate): P(k) ∝ e^(-rate·k) for k ≥ 0."""
    scale = 1 / as_positive(rate, "rate")
    constants = (constant(scale), constant(Fraction(1, 2)))
    draw = Draw(uniforms=1, outputs=1, formula=floor_exponential, constants=constants)
    return rounded(draw, as_count(size, "size"), bits).reshape(-1)


def log_below(least: int, *, up: Fraction, down: Fraction) -> arb:
    """Return ln P(Z < least), at the working precision.

    With P₀ = P(Z ≥ 0) = (1 - e^-down)/(1 - e^-(up+down)): P(Z ≥ t) = P₀ e^(-up·t) for t ≥ 0, and
    P(Z < t) = (1 - P₀) e^(down·t) for t ≤ 0.
    """
    both = -(ball(-(up + down)).expm1())
    if least >= 1:
        some = -(ball(-down).expm1()) / both
        return (-(some * ball(-up * least).exp())).log1p()
    none = ball(-down).exp() * -(ball(-up).expm1()) / both  # without the cancellation of 1 - P₀
    return none.log() + ball(down * least)


def sparse_ranks(size: int, rate: Callable[[], arb], bits: BitSource) -> Iterator[int]:
    """Yield in rising order which of the ranks 0..size-1 are in, each with probability 1 - e^-rate.

    Between two of them lie floor(E/rate) others, an integer of as many bits as `size`, decided in
    Arb; a gap that certainly ends beyond the last rank is not worked out. The time is that of the
    ranks that are in. `rate` is evaluated at the working precision.

    >>> from zerodelta.exact.bits import SystemBits
    >>> list(sparse_ranks(4, lambda: arb(1000), SystemBits()))
    [0, 1, 2, 3]
    >>> list(sparse_ranks(1 << 256, lambda: arb(2) ** -300, SystemBits()))
    []
    """
    gap = Draw(
        uniforms=1,
        outputs=1,
        formula=floor_exponential,
        constants=(lambda: [1 / rate()], constant(Fraction(1, 2))),
    )
    next_rank = 0
    while next_rank < size:
        found = _at_most(gap, size - 1 - next_rank, bits)
        if found is None:
            return
        next_rank += found
        yield next_rank
        next_rank += 1


def _at_most(draw: Draw, most: int, bits: BitSource) -> int | None:
    """Return the integer that a draw rounds to; None if it exceeds `most`."""
    strings = Strings(bits.words(1))
    while True:
        with precision(strings.width + _GUARD_BITS):
            value = strings.evaluate(draw)
            integers = value.nearest()
            if integers is not None:
                return integers[0] if integers[0] <= most else None
            if value.values[0] > ball(most) + 1:
                return None
        strings.extend(bits)
