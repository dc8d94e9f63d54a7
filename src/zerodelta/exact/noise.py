"""Integer noise: discrete Laplace, and rounded Gaussian, Laplace, exponential, t.

Each function named rounded_… returns round(X) for independent X of the named law, drawn exactly
(`lazy`), so a theorem about continuous noise on integers holds verbatim for the integer output
(theory R). The noise is rounded to nearest, never truncated, clipped or redrawn.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from zerodelta.exact.arb import ball
from zerodelta.exact.bits import BitSource
from zerodelta.exact.lazy import Draw, Integers, Reals, constant, rounded
from zerodelta.exact.rational import Rational, as_count, as_positive


def rounded_gaussian(*, variance: Rational, size: int, bits: BitSource) -> Integers:
    """Draw `size` times round(N(0, variance)).

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_gaussian(variance="1/1000000", size=3, bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    variance, size = as_positive(variance, "variance"), as_count(size, "size")
    deviation = (lambda: [ball(variance).sqrt()],)
    pairs = Draw(uniforms=2, outputs=2, formula=_gaussian, constants=deviation)
    return rounded(pairs, -(-size // 2), bits).reshape(-1)[:size]


def rounded_exponential(*, scale: Rational, size: int, bits: BitSource) -> Integers:
    """Draw `size` times round(X), X exponential with mean `scale`."""
    constants = (constant(as_positive(scale, "scale")),)
    draw = Draw(uniforms=1, outputs=1, formula=_exponential, constants=constants)
    return rounded(draw, as_count(size, "size"), bits).reshape(-1)


def rounded_laplace(*, scale: Rational, size: int, bits: BitSource) -> Integers:
    """Draw `size` times round(X), X with density exp(-|x|/scale) / (2 scale).

    A fair sign on a rounded exponential: rounding to nearest is odd but for ties, which have
    probability 0, so P(0) = 1 - e^(-1/(2 scale)) (theory R(vi)).
    """
    size = as_count(size, "size")
    return rounded_exponential(scale=scale, size=size, bits=bits) * bits.signs(size)


def discrete_laplace(*, scale: Rational, size: int, bits: BitSource) -> Integers:
    """Draw `size` integers of the two-sided geometric law, P(z) ∝ q^|z|, q = e^(-1/scale).

    P(|z| >= k) = q^k · 2/(1+q) for k >= 1, so that |z| = floor(scale·(E + ln(2/(1+q)))), E standard
    exponential: one logarithm and a fair sign, as for rounded Laplace noise, which errs more.

    >>> from zerodelta.exact.bits import SystemBits
    >>> discrete_laplace(scale="1/1000", size=3, bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    exact, size = as_positive(scale, "scale"), as_count(size, "size")

    def shift() -> list[arb]:
        """Return scale · ln(2/(1+q)) - 1/2, as floor(x) = round(x - 1/2); it is in (-1/2, 0)."""
        return [-(ball(-1 / exact).expm1() / 2).log1p() * ball(exact) - ball(Fraction(1, 2))]

    constants = (constant(exact), shift, constant(Fraction(1, 2)))
    draw = Draw(uniforms=1, outputs=1, formula=_shifted_exponential, constants=constants)
    return rounded(draw, size, bits).reshape(-1) * bits.signs(size)


def rounded_student_t(
    *, degrees: Rational, scale: Rational, size: int, bits: BitSource
) -> Integers:
    """Draw `size` times round(scale · T), T Student-t with that many degrees of freedom.

    Bailey's formula. Its sine partner is *not* independent of the cosine and is not used.
    """
    degrees, scale = as_positive(degrees, "degrees"), as_positive(scale, "scale")
    draw = Draw(
        uniforms=2,
        outputs=1,
        formula=_student_t,
        constants=(constant(scale), constant(degrees), constant(2 / degrees)),
    )
    return rounded(draw, as_count(size, "size"), bits).reshape(-1)


def box_muller(first: Reals, second: Reals) -> Reals:
    """Return standard normals: all cosine partners, then all sine partners."""
    length = (first.log() * -2).sqrt()
    cosine, sine = (second * 2).cos_sin_pi()
    return first.stack([length * cosine, length * sine])


def _gaussian(uniforms: Reals, *constants: Reals) -> Reals:
    (deviation,) = constants
    return box_muller(uniforms[:1], uniforms[1:]) * deviation


def _exponential(uniforms: Reals, *constants: Reals) -> Reals:
    (scale,) = constants
    return -uniforms.log() * scale


def _shifted_exponential(uniforms: Reals, *constants: Reals) -> Reals:
    scale, shift, half = constants
    length = -uniforms.log() * scale + shift
    return (length + abs(length)) * half  # below 0 it rounds to 0 too, without a closer look


def _student_t(uniforms: Reals, *constants: Reals) -> Reals:
    scale, degrees, exponent = constants
    spread = ((-uniforms[:1].log() * exponent).exp() - 1) * degrees
    cosine, _ = (uniforms[1:] * 2).cos_sin_pi()
    return spread.sqrt() * cosine * scale
