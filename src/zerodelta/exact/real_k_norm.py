"""Euclidean K-norm noise as a real vector, to as many digits as are asked for (theory C9, R).

Noise inside an objective is not rounded to a lattice: it enters a computation whose error must be
bounded *surely*. So the draw keeps its strings of bits, and extends them until the vector is known.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import final

from flint import arb, fmpq

from zerodelta.exact.arb import ball, to_float_up
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import ArbBalls, Constant, Draw, Strings, constant
from zerodelta.exact.noise import box_muller
from zerodelta.exact.rational import Rational, as_count, as_positive


@final
class RealKNorm:
    """One draw of a vector with density ∝ exp(-‖z‖₂/scale), which can be refined.

    The vector has `rows` lines of `columns` entries, in this order. With `centered`, each line
    sums to 0 and the density is that of the space of such vectors. `scale_squared` may be given
    instead of `scale`.

    z = G·u with G ~ Gamma(dimension of the space, scale) and u uniform on its unit sphere: a
    Gaussian vector, projected onto the space and normalized (theory R(ii)).

    >>> from zerodelta.exact.bits import SystemBits
    >>> noise = RealKNorm(rows=3, scale=10, bits=SystemBits())
    >>> coarse, fine = noise.within(Fraction(1, 10)), noise.within(Fraction(1, 10**30))
    >>> all(abs(a - b) < 1 for a, b in zip(coarse, fine, strict=True))
    True
    """

    def __init__(
        self,
        *,
        rows: int,
        bits: BitSource,
        scale: Rational | None = None,
        scale_squared: Rational | None = None,
        columns: int = 1,
        centered: bool = False,
    ) -> None:
        rows, columns = as_count(rows, "rows", minimum=1), as_count(columns, "columns", minimum=1)
        shape = rows * (columns - 1 if centered else columns)
        shape = as_count(shape, "columns", minimum=1)
        pairs = -(-rows * columns // 2)
        self._draw = Draw(
            uniforms=2 * pairs + shape,
            outputs=rows * columns,
            formula=partial(_vector, rows, columns if centered else 0, rows * columns, pairs),
            constants=(_scale(scale, scale_squared),),
        )
        self._bits = bits
        self._strings = Strings(bits.words(self._draw.uniforms))

    def within(self, error: Fraction) -> list[Fraction]:
        """Return exact rationals whose l2 distance from the drawn vector is at most `error`.

        It ends with probability 1: a string of zeros only is the one that never suffices.
        """
        allowed = as_positive(error, "error") ** 2 / self._draw.outputs
        while True:
            values = self._strings.evaluate(self._draw).values
            if all(_finite_radius(value, allowed) for value in values):
                return [_middle(value) for value in values]
            self._strings.extend(self._bits)


def _finite_radius(value: arb, allowed: Fraction) -> bool:
    """Tell whether the squared radius of a ball is certainly at most `allowed`."""
    if not value.is_finite():
        return False
    radius = Fraction(to_float_up(value.rad()))
    return radius * radius <= allowed


def _middle(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def _scale(scale: Rational | None, squared: Rational | None) -> Constant:
    if squared is None:
        return constant(as_positive(0 if scale is None else scale, "scale"))
    exact = as_positive(squared, "scale_squared")
    return lambda: [ball(exact).sqrt()]


def _vector(
    rows: int, classes: int, size: int, pairs: int, uniforms: ArbBalls, scale: ArbBalls
) -> ArbBalls:
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:size]
    if classes:  # a Gaussian vector projected onto lines that sum to 0 is one of that space
        lines = normals.values.reshape(rows, classes)
        means = lines.sum(axis=1, keepdims=True) * arb(fmpq(1, classes))
        normals = ArbBalls((lines - means).reshape(size))
    length = (normals * normals).total().sqrt()
    radius = (-uniforms[2 * pairs :].log()).total() * scale
    return normals * (radius / length)
