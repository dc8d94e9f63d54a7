"""Draw integer noise: Laplace, Gaussian, exponential, Student t, K-norm, matrix Laplace.

Each function named rounded_… returns round(X) for independent X of the named law, drawn exactly
(`bits.rounded`). Rounding integers plus X is the same as adding round(X), so a theorem about
continuous noise on integers holds for the integer output (theory R). The noise is rounded to
nearest, never truncated, clipped or redrawn.
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
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import (
    ArbBalls,
    BitSource,
    BitStrings,
    Constant,
    Draw,
    Formula,
    Integers,
    Reals,
    Words,
    constant,
    rounded,
)
from zerodelta.exact.float_balls import FloatBalls
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

    It is a rounded exponential with a fair sign: except for ties, which have probability 0,
    round(-x) = -round(x), so that P(0) = 1 - e^(-1/(2 scale)) (theory R(vi)).
    """
    size = as_count(size, "size")
    return rounded_exponential(scale=scale, size=size, bits=bits) * bits.signs(size)


def discrete_laplace(*, scale: Rational, size: int, bits: BitSource) -> Integers:
    """Draw `size` integers of the two-sided geometric law, P(z) ∝ q^|z|, q = e^(-1/scale).

    P(|z| >= k) = q^k · 2/(1+q) for k >= 1, so that |z| = floor(scale·(E + ln(2/(1+q)))), E standard
    exponential. A draw takes one logarithm and a fair sign, like rounded Laplace noise, which has a
    larger expected error.

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
    """Draw `size` times round(scale · T), T Student-t with `degrees` degrees of freedom.

    Uses Bailey's formula, without its sine partner, which is *not* independent of the cosine one.
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
    """Return max(scale · E + shift, 0), E standard exponential."""
    scale, shift, half = constants
    length = -uniforms.log() * scale + shift
    return (length + abs(length)) * half  # max(length, 0): a negative length rounds to 0 too


def _student_t(uniforms: Reals, *constants: Reals) -> Reals:
    """Return scale · T, T of Student's law, from two uniforms by Bailey's formula."""
    scale, degrees, exponent = constants
    spread = ((-uniforms[:1].log() * exponent).exp() - 1) * degrees
    cosine, _ = (uniforms[1:] * 2).cos_sin_pi()
    return spread.sqrt() * cosine * scale


# -- Asymmetric integer noise, and random subsets of huge universes -------------------------------
# Z = floor(E/up) - floor(E'/down) with independent standard exponentials: P(z) ∝ e^(-up·z) for
# z ≥ 0 and e^(-down·|z|) for z < 0 (theory U). `sparse_ranks` draws which of N ranks have a noise
# in some range without visiting the others, for N of any number of bits.

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


def log_below(threshold: int, *, up: Fraction, down: Fraction) -> arb:
    """Return ln P(Z < threshold), at the working precision.

    With P₀ = P(Z ≥ 0) = (1 - e^-down)/(1 - e^-(up+down)): P(Z ≥ t) = P₀ e^(-up·t) for t ≥ 0, and
    P(Z < t) = (1 - P₀) e^(down·t) for t ≤ 0.
    """
    both = -(ball(-(up + down)).expm1())
    if threshold >= 1:
        above = -(ball(-down).expm1()) / both
        return (-(above * ball(-up * threshold).exp())).log1p()
    below = ball(-down).exp() * -(ball(-up).expm1()) / both  # without the cancellation of 1 - P₀
    return below.log() + ball(down * threshold)


def sparse_ranks(size: int, rate: Callable[[], arb], bits: BitSource) -> Iterator[int]:
    """Yield a random subset of the ranks 0..size-1, in rising order.

    Each rank is in it with probability 1 - e^-rate, independently. So floor(E/rate) ranks lie
    between two ranks of the subset; Arb computes this integer to as many bits as `size` has, but
    not if it certainly leads beyond the last rank. The time is proportional to the size of the
    subset. `rate` is evaluated at the working precision.

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
        steps = _draw_at_most(gap, size - 1 - next_rank, bits)
        if steps is None:
            return
        next_rank += steps
        yield next_rank
        next_rank += 1


def _draw_at_most(draw: Draw, limit: int, bits: BitSource) -> int | None:
    """Return the integer that a draw rounds to; None if it exceeds `limit`."""
    strings = BitStrings(bits.words(1))
    while True:
        with precision(strings.width + _GUARD_BITS):
            value = strings.evaluate(draw)
            integers = value.nearest()
            if integers is not None:
                return integers[0] if integers[0] <= limit else None
            if value.values[0] > ball(limit) + 1:
                return None
        strings.extend(bits)


# -- Rounded K-norm noise for counts: density ∝ exp(-max(Σz⁺, Σz⁻)/scale) in Z^d (theory C10.4) ---
# Replacing a row takes 1 from one count and adds 1 to another. {max(Σz⁺, Σz⁻) <= 1} is the convex
# hull of these changes, and thus the smallest ball that K-norm noise for counts can have.


def rounded_count_noise(*, dimension: int, scale: Rational, bits: BitSource) -> Integers:
    """Draw one vector round(Z), Z with density ∝ exp(-max(Σz⁺, Σz⁻)/scale).

    Z = G·U, G ~ Gamma(d+1, scale), U uniform in the unit ball. The part of the ball with k
    positive coordinates is a product of a k- and a (d-k)-dimensional simplex, C(d,k) times: its
    volume is C(d,k)/(k! (d-k)!) ∝ C(d,k)². If d of 2d places are drawn without replacement, k of
    them lie in the first half with probability ∝ C(d,k)²; those are the positive coordinates.

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
    """Return G times a uniform point of one simplex, followed by minus G times one of another.

    k exponentials divided by the sum of these and one more are uniform in {z >= 0, Σz <= 1}.
    """
    first, second = -uniforms[: above + 1].log(), -uniforms[above + 1 : dimension + 2].log()
    radius = -uniforms[dimension + 2 :].log_total() * constants[0]
    up, down = first[:above] / first.total(), second[1:] / second.total()
    return uniforms.stack([up, -down]) * radius


# -- Rounded K-norm noise in Z^d: density ∝ exp(-‖z‖/scale) for the l1, l2, linf norm -------------
# z = G·U with G ~ Gamma(d+1, scale) and U uniform in the unit *ball*. Combining Gamma(d+1) with a
# uniform *direction* would give density zero at the origin and infinite privacy loss (R(ii)).


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

    `norm` is 1, 2 or ``math.inf``. E‖Z‖ = dimension · scale for every norm. A finite `center` c,
    which need not be integers, is added before rounding. With one scale for each coordinate the
    density is ∝ exp(-‖z/scale‖).

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
    """Return one exact scale, or one for each coordinate."""
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
    """Return the exact coordinates of a finite center."""
    if len(center) != dimension:
        raise ParameterError(
            "center",
            f"{len(center)} coordinates",
            expected=f"dimension = {dimension} coordinates",
            remedy="pass one number for each coordinate",
        )
    if not all(isinstance(x, (int, Fraction)) or math.isfinite(x) for x in center):
        raise ParameterError(  # without the coordinates, which may be computed from data
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

    V and Z are added before rounding, since theorems are about the *density* of V + Z.
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
    """Return `size` rounded vectors, one in each line."""
    return np.ascontiguousarray(rounded(draw, size, bits).T)


@value
class _Point:
    """A random vector, computed by a formula from a number of uniforms."""

    uniforms: int
    formula: Formula


def _noise(norm: float, dimension: int) -> _Point:
    """Return the draw of K-norm noise of scale 1: a point of the ball times a gamma number."""
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
    ball. The squares of two normals sum to 2E, E a standard exponential, so the last two normals
    are replaced by one -ln U. For a Box-Muller pair E = -ln U of its first uniform; if d is odd one
    normal has no partner and is squared itself.
    """
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:dimension]
    complete_pairs = dimension // 2
    exponentials = uniforms.stack([uniforms[:complete_pairs], uniforms[2 * pairs :]])
    single = normals[complete_pairs:pairs]
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


# -- Euclidean K-norm noise as a real vector, to any requested accuracy (theory C9, R) ------------
# Noise inside an objective is not rounded to a lattice: it enters a computation with a certified
# error bound. So the draw keeps its bit strings, and extends them until the vector is known to the
# accuracy that the computation needs.


@final
class RealKNorm:
    """One draw of a vector with density ∝ exp(-‖z‖₂/scale), which can be refined.

    The vector is a matrix of `rows` lines with `columns` entries, line by line. With `centered`
    each line sums to 0, and the density is that on the space of such vectors. Pass either `scale`
    or `scale_squared`.

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

        It ends with probability 1, since only an infinite string of zeros never suffices.
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
    """Return the scale, or the square root of its square, to any precision."""
    if squared is None:
        return constant(as_positive(0 if scale is None else scale, "scale"))
    exact = as_positive(squared, "scale_squared")
    return lambda: [ball(exact).sqrt()]


def _vector(
    rows: int, classes: int, size: int, pairs: int, uniforms: ArbBalls, scale: ArbBalls
) -> ArbBalls:
    """Return the K-norm noise vector: a Gaussian direction times a Gamma length."""
    normals = box_muller(uniforms[:pairs], uniforms[pairs : 2 * pairs])[:size]
    if classes:  # projecting a Gaussian vector gives a Gaussian vector of the subspace
        lines = normals.values.reshape(rows, classes)
        means = lines.sum(axis=1, keepdims=True) * arb(fmpq(1, classes))
        normals = ArbBalls((lines - means).reshape(size))
    length = (normals * normals).total().sqrt()
    radius = (-uniforms[2 * pairs :].log()).total() * scale
    return normals * (radius / length)


# -- Matrix Laplace noise for sums of products of rows (theory W2) --------------------------------
# Z = (G₁G₁ᵀ - G₂G₂ᵀ)/2 with independent d × (d+1) matrices of standard normals. An entry of it is a
# polynomial of the normals of two lines. It is evaluated in floats with a proven radius; where its
# rounding is undecided, the uniforms of these two lines are extended, for all their entries alike.

_CONSTANT_BITS = 128

_PARTS = 1 << 12
"""The parts of the scale to which noisy sums are rounded, so that floats decide most entries."""

ROOT = Fraction(99, 70)
"""The weight of entries off the diagonal: √2, by which all have the same variance, and 1/19000."""


def quantum_of(scale: Fraction) -> int:
    """Return the power of two, or 1, to whose multiples noisy sums are rounded.

    >>> quantum_of(Fraction(10)), quantum_of(Fraction(1 << 40))
    (1, 268435456)
    """
    parts = int(scale / _PARTS)
    return 1 << max(0, parts.bit_length() - 1)


def rounded_matrix_laplace(
    *,
    dimension: int,
    scale: Rational,
    bits: BitSource,
    center: Sequence[Fraction] | None = None,
) -> Integers:
    """Draw the upper triangle of round(c + scale · Z), line by line, entries weighted by `ROOT`.

    The d(d+1)/2 numbers of the `center` are in [0, 1); without it they are 0.

    >>> from zerodelta.exact.bits import SystemBits
    >>> rounded_matrix_laplace(dimension=2, scale="1/1000000", bits=SystemBits()).tolist()
    [0, 0, 0]
    """
    d, exact = as_count(dimension, "dimension", minimum=1), as_positive(scale, "scale")
    first, second = np.triu_indices(d)
    factors = [exact / 2, exact / 2 * ROOT]
    weighted = (first != second).astype(np.int64)
    words = bits.words(2 * d * (d + 1)).reshape(d, 2 * (d + 1))
    with np.errstate(all="ignore"):  # an infinite or NaN radius means undecided
        products = _products(words)
        with precision(_CONSTANT_BITS):
            enclosed = FloatBalls.enclose([ball(factor) for factor in factors])
        scales = FloatBalls(enclosed.middle[weighted, 0], enclosed.radius[weighted, 0])
        entries = FloatBalls(products.middle[first, second], products.radius[first, second])
        integers, decided = (entries * scales + _shift(center, len(first))).nearest()
        drawn: Integers = np.where(decided, integers, 0.0).astype(np.int64)
    if not decided.all():
        lines = _Lines(words, bits)
        drawn = drawn.astype(object)
        for place in np.flatnonzero(~decided):
            drawn[place] = lines.nearest(
                int(first[place]),
                int(second[place]),
                factor=factors[weighted[place]],
                shift=Fraction(0) if center is None else center[int(place)],
            )
    return drawn


def _shift(center: Sequence[Fraction] | None, size: int) -> FloatBalls:
    """Enclose the numbers of the center, each the nearest float to a number in [0, 1)."""
    if center is None:
        return FloatBalls(np.zeros(size), np.zeros(size))
    return FloatBalls(np.array([float(c) for c in center]), np.full(size, 2.0**-53))


def _normals(half: int, uniforms: Reals) -> Reals:
    """Return the normals of a line: those of G₁, then as many of G₂."""
    return box_muller(uniforms[:half], uniforms[half:])


def _products(words: Words) -> FloatBalls:
    """Return G₁G₁ᵀ - G₂G₂ᵀ from the words of all lines.

    The product of two vectors of n floats, in any order and with or without fused multiplication,
    errs by at most γ |x| |y|, γ = n u/(1 - n u) (Higham, section 3.1). Midpoints that err by
    vectors of length r and s change it by at most r |y| + |x| s + r s (Cauchy-Schwarz). This trusts
    NumPy's matrix product to add the products themselves, in doubles: no Strassen, no emulation.
    """
    size = words.shape[1]
    normals = _normals(size // 2, FloatBalls.uniform(words.T.copy()))
    left = normals.middle.T.copy()
    right = left.copy()
    right[:, size // 2 :] *= -1
    length = _lengths(normals.middle)
    error = _lengths(normals.radius)
    gamma = 1.01 * 2.0**-53 * size  # at least n u/(1 - n u)
    radius = gamma * np.outer(length, length) + np.outer(error, error)
    radius += np.outer(length, error) + np.outer(error, length)
    return FloatBalls(left @ right.T, radius * (1 + 2.0**-30))


def _lengths(vectors: Floats) -> Floats:
    """Return upper bounds of the l2 norms of columns: a float sum of n squares errs by n u."""
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=0)) * (1 + 2.0**-30) + 2.0**-500)


class _Lines:
    """The bit strings of each line, extended where an entry of the line is undecided."""

    def __init__(self, words: Words, bits: BitSource) -> None:
        self._words, self._bits = words, bits
        size = self._words.shape[1]
        self._draw = Draw(uniforms=size, outputs=size, formula=partial(_normals, size // 2))
        self._strings: dict[int, BitStrings] = {}
        self._values: dict[int, ArbBalls] = {}

    def nearest(self, i: int, j: int, *, factor: Fraction, shift: Fraction) -> int:
        """Return the integer that factor · (G₁G₁ᵀ - G₂G₂ᵀ)_ij + shift rounds to."""
        while True:
            x, y = self._line(i).values, self._line(j).values
            half = len(x) // 2
            width = max(self._strings[i].width, self._strings[j].width)
            with precision(width + _GUARD_BITS):
                plus = sum(x[:half] * y[:half], arb(0))
                minus = sum(x[half:] * y[half:], arb(0))
                entry = ArbBalls.of([(plus - minus) * ball(factor) + ball(shift)])
                integers = entry.nearest()
            if integers is not None:
                return integers[0]
            for line in {i, j}:
                self._strings[line].extend(self._bits)
                del self._values[line]

    def _line(self, i: int) -> ArbBalls:
        if i not in self._strings:
            self._strings[i] = BitStrings(self._words[i])
        if i not in self._values:
            self._values[i] = self._strings[i].evaluate(self._draw)
        return self._values[i]
