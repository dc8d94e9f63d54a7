"""Integer noise: Laplace, Gaussian, exponential, t, K-norm; discrete, asymmetric or rounded (R).

Each function named rounded_… returns round(X) for independent X of the named law, drawn exactly
(`lazy`), so a theorem about continuous noise on integers holds verbatim for the integer output
(theory R). The noise is rounded to nearest, never truncated, clipped or redrawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import final

import numpy as np
from flint import arb, fmpq

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import (
    ArbBalls,
    BitSource,
    BitStrings,
    Constant,
    Draw,
    Formula,
    Integers,
    Reals,
    constant,
    rounded,
)
from zerodelta.exact.integers import floor_exponential, uniform_subset
from zerodelta.exact.logs import ball, precision, to_float_up
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.value import value


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


# -- Asymmetric noise -----------------------------------------------------------------------------
# Integer noise that differs upwards and downwards, and a random subset of an endless universe.
#
# Z = floor(E/up) - floor(E'/down) with independent standard exponentials: P(z) ∝ e^(-up·z) for z ≥
# 0 and e^(-down·|z|) below (theory U). `sparse_ranks` draws which of N ranks have a noise in some
# range without looking at the others, for N of any number of bits. All draws are exact (`lazy`).

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
    strings = BitStrings(bits.words(1))
    while True:
        with precision(strings.width + _GUARD_BITS):
            value = strings.evaluate(draw)
            integers = value.nearest()
            if integers is not None:
                return integers[0] if integers[0] <= most else None
            if value.values[0] > ball(most) + 1:
                return None
        strings.extend(bits)


# -- Rounded K-norm noise for counts: density ∝ exp(-max(Σz⁺, Σz⁻)/scale) in Z^d (theory C10.4) ---
# One replaced row takes 1 from one count and adds 1 to another; {max(Σz⁺, Σz⁻) <= 1} is the convex
# hull of these moves, so no K-norm noise for counts is smaller.


def rounded_count_noise(*, dimension: int, scale: Rational, bits: BitSource) -> Integers:
    """Draw one vector round(Z), Z with density ∝ exp(-max(Σz⁺, Σz⁻)/scale).

    Z = G·U, G ~ Gamma(d+1, scale), U uniform in the unit ball. The part of the ball with k
    positive coordinates is a product of a k- and a (d-k)-dimensional simplex, C(d,k) times: its
    volume is C(d,k)/(k! (d-k)!) ∝ C(d,k)². So many of d places lie in the first half of 2d if d
    are drawn without replacement, and those places are the positive coordinates.

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_count_noise(dimension=4, scale=10, bits=SystemBits()).shape
    (4,)
    """
    d, exact = as_count(dimension, "dimension", minimum=1), as_positive(scale, "scale")
    places = uniform_subset(2 * d, size=d, bits=bits)
    positive = np.zeros(d, dtype=np.bool_)
    positive[places[places < d]] = True
    above = int(np.count_nonzero(positive))
    draw = Draw(
        uniforms=2 * d + 3,
        outputs=d,
        formula=partial(_two_simplices, d, above),
        constants=(constant(exact),),
    )
    drawn = rounded(draw, 1, bits)[:, 0]
    noise = np.empty(d, dtype=drawn.dtype)
    noise[positive], noise[~positive] = drawn[:above], drawn[above:]
    return noise


def _two_simplices(dimension: int, above: int, uniforms: Reals, *constants: Reals) -> Reals:
    """Return G · (a uniform point of a simplex, minus one of another), the positive part first.

    Exponentials over their sum and one more are uniform in {z >= 0, Σz <= 1}.
    """
    first, second = -uniforms[: above + 1].log(), -uniforms[above + 1 : dimension + 2].log()
    radius = -uniforms[dimension + 2 :].log_total() * constants[0]
    up, down = first[:above] / first.total(), second[1:] / second.total()
    return uniforms.stack([up, -down]) * radius


# -- K norm ---------------------------------------------------------------------------------------
# Rounded K-norm noise in Z^d: density proportional to exp(-‖z‖/scale) for the l1, l2, linf norm.
#
# z = G·U with G ~ Gamma(d+1, scale) and U uniform in the unit *ball*. The crossed pair "Gamma(d+1)
# and a uniform direction" has density zero at the origin and infinite privacy loss (theory R(ii)).


def rounded_k_norm(
    *,
    norm: float,
    dimension: int,
    scale: Rational | list[Fraction],
    size: int,
    bits: BitSource,
    center: Sequence[float | Fraction] | None = None,
) -> Integers:
    """Draw `size` vectors round(c + Z), Z with density ∝ exp(-‖z‖/scale); shape (size, dimension).

    `norm` is 1, 2 or ``math.inf``. E‖Z‖ = dimension · scale for every norm. A `center` off the
    lattice is added before the sum is rounded as a whole; it must be finite. Several scales, one
    for each coordinate, stretch the ball: the density is ∝ exp(-‖z/scale‖).

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_k_norm(norm=2, dimension=3, scale=10, size=2, bits=SystemBits()).shape
    (2, 3)
    """
    dimension = as_count(dimension, "dimension", minimum=1)
    size, scales = as_count(size, "size"), _scales(scale, dimension)
    if norm == 1 and center is None and len(scales) == 1:
        # the density is a product: independent Laplace coordinates
        count = size * dimension
        return rounded_laplace(scale=scales[0], size=count, bits=bits).reshape(size, dimension)
    noise = _noise(norm, dimension)
    shift = (constant(*_center(center, dimension)),) if center is not None else ()

    def formula(uniforms: Reals, b: Reals, *shifts: Reals) -> Reals:
        noisy: Reals = noise.formula(uniforms) * b
        return noisy + shifts[0] if shifts else noisy

    draw = Draw(
        uniforms=noise.uniforms,
        outputs=dimension,
        formula=formula,
        constants=(constant(*scales), *shift),
    )
    return _vectors(draw, size, bits)


def _scales(scale: Rational | list[Fraction], dimension: int) -> list[Fraction]:
    if not isinstance(scale, list):
        return [as_positive(scale, "scale")]
    if len(scale) != dimension or not all(isinstance(b, Fraction) and b > 0 for b in scale):
        raise ParameterError(
            "scale",
            f"{len(scale)} scales",
            expected=f"one positive Fraction, or dimension = {dimension} of them",
            remedy="pass one scale for each coordinate",
        )
    return scale


def _center(center: Sequence[float | Fraction], dimension: int) -> list[Fraction]:
    if len(center) != dimension:
        raise ParameterError(
            "center",
            f"{len(center)} coordinates",
            expected=f"dimension = {dimension} coordinates",
            remedy="pass one number for each coordinate",
        )
    if not all(isinstance(x, (int, Fraction)) or math.isfinite(x) for x in center):
        raise ParameterError(  # never the coordinates themselves: they may be computed from data
            "center",
            "not finite",
            expected="finite coordinates",
            remedy="map NaN and infinities to a fixed point before the noise is added",
        )
    return [as_rational(coordinate, "center") for coordinate in center]


def rounded_uniform_plus_k_norm(
    *,
    ball_norm: float,
    radius: Rational,
    noise_norm: float,
    scale: Rational,
    dimension: int,
    size: int,
    bits: BitSource,
) -> Integers:
    """Draw `size` vectors round(V + Z), V uniform in a ball, Z K-norm noise; (size, dimension).

    The sum is rounded as a whole, as theorems about the *density* of V + Z require.
    """
    dimension = as_count(dimension, "dimension", minimum=1)
    point, noise = _ball_point(ball_norm, dimension), _noise(noise_norm, dimension)

    def formula(uniforms: Reals, r: Reals, b: Reals) -> Reals:
        inside: Reals = point.formula(uniforms[: point.uniforms])
        around: Reals = noise.formula(uniforms[point.uniforms :])
        return inside * r + around * b

    draw = Draw(
        uniforms=point.uniforms + noise.uniforms,
        outputs=dimension,
        formula=formula,
        constants=(
            constant(as_positive(radius, "radius")),
            constant(as_positive(scale, "scale")),
        ),
    )
    return _vectors(draw, as_count(size, "size"), bits)


def _vectors(draw: Draw, size: int, bits: BitSource) -> Integers:
    return np.ascontiguousarray(rounded(draw, size, bits).T)


@value
class _Point:
    """A random vector as a formula of so many uniforms."""

    uniforms: int
    formula: Formula


def _noise(norm: float, dimension: int) -> _Point:
    """Return unit K-norm noise."""
    if norm == 1:
        return _Point(uniforms=2 * dimension, formula=partial(_laplace, dimension))
    point = _ball_point(norm, dimension)

    def formula(uniforms: Reals) -> Reals:
        inside: Reals = point.formula(uniforms[: point.uniforms])
        return inside * _gamma(uniforms[point.uniforms :])

    return _Point(uniforms=point.uniforms + dimension + 1, formula=formula)


def _ball_point(norm: float, dimension: int) -> _Point:
    """Return a uniform point of the unit ball."""
    if norm == 1:
        return _Point(uniforms=2 * dimension + 1, formula=partial(_cross_polytope, dimension))
    if norm == 2:
        pairs = -(-dimension // 2)
        return _Point(uniforms=2 * pairs + 1, formula=partial(_euclidean, dimension, pairs))
    if norm == math.inf:
        return _Point(uniforms=dimension, formula=_cube)
    raise ParameterError(
        "norm", norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
    )


def _cube(uniforms: Reals) -> Reals:
    return uniforms * 2 - 1


def _euclidean(dimension: int, pairs: int, uniforms: Reals) -> Reals:
    """Return a uniform point of the l2 ball.

    The first d of d + 2 coordinates of a uniform point on the unit sphere are uniform in the unit
    ball, and two of the d + 2 squared normals sum to 2E, E a standard exponential. So do the two
    partners of a Box-Muller pair: E = -ln U of its first uniform. If d is odd one has no partner.
    """
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:dimension]
    whole = dimension // 2
    exponentials = uniforms.stack([uniforms[:whole], uniforms[2 * pairs :]])
    single = normals[whole:pairs]
    square = uniforms.stack([exponentials.log_total() * -2, single * single]).total()
    return normals / square.sqrt()


def _cross_polytope(dimension: int, uniforms: Reals) -> Reals:
    """Return a uniform point of the l1 ball: signed exponentials over a sum of one more."""
    signed = _laplace(dimension, uniforms[: 2 * dimension])
    return signed / (abs(signed).total() - uniforms[2 * dimension :].log())


def _laplace(dimension: int, uniforms: Reals) -> Reals:
    """Return unit Laplace coordinates: differences of two exponentials."""
    return uniforms[dimension:].log() - uniforms[:dimension].log()


def _gamma(uniforms: Reals) -> Reals:
    return -uniforms.log_total()


# -- Euclidean K-norm noise as a real vector, to as many digits as are asked for (theory C9, R) ---
# Noise inside an objective is not rounded to a lattice: it enters a computation whose error must
# be bounded *surely*. So the draw keeps its strings of bits, and extends them until the vector is
# known.


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
        self._strings = BitStrings(bits.words(self._draw.uniforms))

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
