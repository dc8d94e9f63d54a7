"""Purify a vector in an l_q ball or a finite choice: Algorithms 1 and 2 (`alg:main`).

Also Theorem 1 (`thm:pure_main`) and Corollary 1 (`lem: appropriate_delta`), corrected by theory A1
and A3. These are for comparison: the library's channels need neither ε' nor Laplace noise (B2).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.channels.channel import Purifier, mix
from zerodelta.channels.kernels import Body, noisy_pair
from zerodelta.data.source import Sealed
from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli_exp, uniform_below
from zerodelta.exact.logs import ball as arb_ball
from zerodelta.exact.logs import lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.paper.convex_sets import LqBall
from zerodelta.privacy.claims import ApproxDP, Claim, PureDP
from zerodelta.privacy.parameters import log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.smoothing import log_transport_radius, product_laplace_radius
from zerodelta.privacy.verify import base_claim
from zerodelta.spaces import Ball, FiniteSpace
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The channels of Algorithms 1 and 2: uniform mixing, then Laplace noise, for an extra ε' ------
# The step from total variation to W∞ uses Theorem W, so the transport radius is half of the paper's
# for every l_q ball. Values are projected onto the ball first (A1b).


def laplace_scale(
    *,
    norm: float,
    dimension: int,
    diameter: Rational,
    weight: Rational,
    claim: Claim,
    epsilon: Rational,
    extra_epsilon: Rational,
) -> Fraction:
    """Return b = 2Δ_1/ε' rounded up: Algorithm 1's noise with Theorem W's transport radius.

    Δ_1 = d^(1-1/q) D_q ((1-w)δ/((1+e^ε)w))^(1/d), D_q the *diameter* of the ball whose uniform
    points are mixed in.
    """
    extra = as_positive(extra_epsilon, "extra_epsilon")
    log_radius = log_transport_radius(
        dimension=dimension,
        diameter=diameter,
        weight=weight,
        epsilon=epsilon,
        log_delta=claim.log_delta(epsilon),
    )
    log_one = product_laplace_radius(dimension=dimension, norm=norm, log_radius=log_radius)
    return Fraction(upper(lambda: 2 * arb_ball(log_one).exp() / arb_ball(extra)))


@value
class AlgorithmOne(Purifier):
    """Algorithm 1 on a lattice: uniform mixing, product Laplace noise of `scale` lattice units.

    Guarantee: (ε + ε')-DP for an (ε, δ)-DP base, ε = `base_epsilon`, ε' = 2Δ_1/scale. The output is
    projected onto the space, which is post-processing.
    """

    body: Body
    scale: Fraction
    mixing_weight: Fraction
    base_epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "mixing_weight", as_weight(self.mixing_weight))
        object.__setattr__(self, "base_epsilon", as_rational(self.base_epsilon, "base_epsilon"))

    @staticmethod
    def behind(
        claim: Claim,
        body: Body,
        *,
        base_epsilon: Fraction,
        extra_epsilon: Fraction,
        mixing_weight: Rational,
    ) -> AlgorithmOne:
        """Return the channel with the smallest proven noise for a mechanism with this claim."""
        scale = laplace_scale(
            norm=body.norm,
            dimension=body.lattice.dimension,
            diameter=2 * body.radius,
            weight=mixing_weight,
            claim=claim,
            epsilon=base_epsilon,
            extra_epsilon=extra_epsilon,
        )
        weight = as_weight(mixing_weight)
        return AlgorithmOne(body=body, scale=scale, mixing_weight=weight, base_epsilon=base_epsilon)

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the noisy answer, or a noisy uniform point, projected onto the space."""
        noisy_value, noisy_uniform = noisy_pair(self.body, value, 1, self.scale, bits)
        return self.body.points(mix(noisy_value, noisy_uniform, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the rms of the noise and the rounding, plus w times the width."""
        noise = math.sqrt(2 * self.body.lattice.dimension) * float(self.scale)
        return self.body.rounded(noise) + float(self.mixing_weight) * self.body.displacement()

    def step(self) -> Step:
        """Return the certificate's step (theorem W)."""
        norm = "inf" if self.body.norm == math.inf else int(self.body.norm)
        return _step(self, norm, self.body.lattice.dimension, diameter=2 * self.body.radius)


@value
class AlgorithmTwo(Purifier):
    """Algorithm 2: Algorithm 1 on the binary code of a finite space, in the unit cube.

    d = ⌈log2 N⌉ bits, w = 2^-d. After rounding, Laplace noise of scale b flips a bit of a vertex
    with probability e^(-1/(2b))/2 and makes a fair bit of a uniform point, so both are drawn
    exactly, as coins. Codes beyond the space are decoded as element 0 (post-processing). The cube
    is an linf ball of diameter 1, which repairs the paper's proof (A4).
    """

    space: FiniteSpace
    scale: Fraction
    base_epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_positive(self.scale, "scale"))
        object.__setattr__(self, "base_epsilon", as_rational(self.base_epsilon, "base_epsilon"))

    @staticmethod
    def behind(
        claim: Claim, space: FiniteSpace, *, base_epsilon: Fraction, extra_epsilon: Fraction
    ) -> AlgorithmTwo:
        """Return the channel with the smallest proven noise for a mechanism with this claim."""
        length = code_length(space.size)
        scale = laplace_scale(
            # theory A4: the cube is an linf ball of diameter 1, not an l_1 ball of radius d/2.
            norm=math.inf,
            dimension=length,
            diameter=1,
            weight=Fraction(1, 1 << length),
            claim=claim,
            epsilon=base_epsilon,
            extra_epsilon=extra_epsilon,
        )
        return AlgorithmTwo(space=space, scale=scale, base_epsilon=base_epsilon)

    @property
    def code_length(self) -> int:
        """The number of bits d, at least 1."""
        return code_length(self.space.size)

    @property
    def mixing_weight(self) -> Fraction:
        """The paper's w = 2^-d."""
        return Fraction(1, 1 << self.code_length)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the element of the value's code after the flips, or of a uniform code."""
        length = self.code_length
        # a bit flips with probability e^(-1/(2b))/2: Laplace noise beyond 1/2 in one direction
        noisy = bernoulli_exp(1 / (2 * self.scale), size=length, bits=bits)
        coins = bits.signs(length) > 0
        flips = sum(1 << i for i in range(length) if noisy[i] and coins[i])
        uniform = int(uniform_below(1 << length, size=1, bits=bits)[0])
        code = mix(self.space.index(value) ^ flips, uniform, self.mixing_weight, bits)
        return self.space.element(code if code < self.space.size else 0)

    def expected_error(self) -> float:
        """Return a bound on the probability of publishing another element."""
        flip = math.exp(-1 / (2 * float(self.scale))) / 2
        return 1 - (1 - float(self.mixing_weight)) * (1 - flip) ** self.code_length

    def step(self) -> Step:
        """Return the certificate's step (theorem W on the unit cube)."""
        return _step(self, "inf", self.code_length, diameter=1)


def code_length(size: int) -> int:
    """Return d = ⌈log2 |Y|⌉, at least 1.

    >>> [code_length(size) for size in (1, 2, 3, 16, 17)]
    [1, 1, 2, 4, 5]
    """
    # theory A4: |Y| need not be a power of two; codes beyond it are decoded by a fixed public rule.
    return max(1, (as_count(size, "size", minimum=1) - 1).bit_length())


def _step(
    channel: AlgorithmOne | AlgorithmTwo, norm: int | str, dimension: int, diameter: int
) -> Step:
    """Return the step of theorem W with the numbers of a channel."""
    numbers = {
        "norm": norm,
        "dimension": dimension,
        "diameter": diameter,
        "scale": channel.scale,
        "weight": channel.mixing_weight,
        "base_epsilon": channel.base_epsilon,
    }
    return Step(theorem="wasserstein-transport", numbers=numbers)


# -- Algorithm 1 (`alg:main`) ---------------------------------------------------------------------

_COARSEST, _FINEST = 4, 40
"""The smallest and the largest exponent k of the number 2^k of lattice spacings in a radius."""

_SMALLEST_SCALE = Fraction(1, 1 << 10)
"""The smallest noise scale in spacings. Less would be rounded away; more than needed is private."""


@debited
def purify_ball(
    value: Any,
    *,
    ball: Ball | LqBall,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational,
    base_steps: tuple[Step, ...] = (),
    **paying: Unpack[Paying],
) -> Release:
    """Publish the output of an (ε, δ)-DP mechanism in a ball under pure DP (Algorithm 1).

    Use it to reproduce Algorithm 1: the value, or with probability ω a uniform point of the ball,
    plus Laplace noise of scale 2Δ/ε', on a lattice, projected onto the ball. `zd.purify` publishes
    at no extra ε.

    Parameters
    ----------
    value : object
        x_apx of the paper, the output of the mechanism. Any object is projected onto the ball
        first.
    ball : Ball or LqBall
        Θ of the paper, in which the output lies, with q = 1, 2 or inf. For any other q pass a
        `zd.paper.LqBall`: then a uniform point of the smallest l1 or l2 ball around it is mixed in,
        with the same noise.
    epsilon : number
        ε + ε' of the paper: the pure ε of the release.
    base_epsilon : number, optional
        ε of the paper, that of the mechanism; half of `epsilon` by default. The rest is ε', the
        cost of the Laplace noise.
    log_delta, delta : number
        ln δ or δ of the mechanism, one of the two.
    mixing_weight : number
        ω, the probability of a uniform point.
    base_steps : tuple of Step
        The certificate steps that prove (ε, δ). Without them (ε, δ) is caller-asserted, and so is
        the certificate.

    Returns
    -------
    Release
        Its value is x_pure, a vector of the ball.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (Theorem 1 by Theorem W: Δ = d^(1-1/q) D_q x with
    x^d = (1-ω)δ/((1+e^ε)ω), where Line 2 has 2 d^(1-1/q) R (δ/2ω)^(1/d)).
    **Neighbors**: replace-one.
    **Error**: `theorem_1`; the release carries the rms forecast in l2.

    Examples
    --------
    >>> import numpy as np
    >>> release = purify_ball(
    ...     np.array([0.3, -0.2]), ball=Ball(2, 1), epsilon="3/2", base_epsilon=1,
    ...     log_delta=-60.0, mixing_weight="1e-9",
    ... )
    >>> release.value.round(3), release.certificate.claim.exact_epsilon
    (array([ 0.3, -0.2]), Fraction(3, 2))

    """
    base, _ = split_epsilon(epsilon, base_epsilon)
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = channel_for(
        ball=ball,
        epsilon=epsilon,
        base_epsilon=base,
        log_delta=log_of,
        mixing_weight=mixing_weight,
    )
    # theory A1.3: the paper's output is unbounded; projecting it onto Θ is post-processing.
    within = ball if isinstance(ball, LqBall) else None
    return publish(value, channel, f"the ball {ball!r}", PureDP(epsilon), steps, within=within)


def publish(
    value: Any,
    channel: Purifier,
    space: str,
    claim: PureDP,
    steps: tuple[Step, ...],
    *,
    within: LqBall | None = None,
) -> Release:
    """Release a value through a channel; with `within` projected to that set before and after."""

    def answer(value: Any, bits: BitSource) -> Any:
        if within is None:
            return channel.apply(value, bits)
        return within.project(channel.apply(within.project(value), bits))

    plan: ReleasePlan[Any] = ReleasePlan(
        claim=claim,
        steps=(*steps, channel.step()),
        answer=answer,
        error=channel.expected_error(),
        public=(space, "every number in the steps"),
        bare_rows=any(step.theorem != "given" for step in steps),
    )
    return run(plan, Sealed(value))


def channel_for(
    *,
    ball: Ball | LqBall,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float,
    mixing_weight: Rational,
) -> AlgorithmOne:
    """Return Algorithm 1 with the smallest proven noise, on a lattice finer than that noise."""
    ball = ball.enclosing() if isinstance(ball, LqBall) else ball
    base, extra = split_epsilon(epsilon, base_epsilon)
    weight = as_weight(mixing_weight, "mixing_weight")
    claim = ApproxDP(base, log_delta)
    # theory A1.1: Line 2 with D_q = 2r, the diameter of the ball that is mixed in, and the sharper
    # ((1-ω)δ/((1+e^ε)ω))^(1/d) of Theorem W for the paper's 2R(δ/2ω)^(1/d).
    scale = laplace_scale(
        norm=ball.norm,
        dimension=ball.dimension,
        diameter=2 * ball.radius,
        weight=weight,
        claim=claim,
        epsilon=base,
        extra_epsilon=extra,
    )
    # at least 16 spacings in a noise scale, so that rounding adds little
    ratio = ball.radius / scale
    power = min(max(math.ceil(16 * ratio - 1).bit_length(), _COARSEST), _FINEST)
    spacings = 1 << power
    body = Body(
        lattice=ball.grid(2 * spacings + 1)
        if ball.norm == math.inf
        else ball.lattice(ball.radius / spacings)
    )
    # theory A1b: AlgorithmOne projects the value onto this body before it adds noise.
    channel = AlgorithmOne.behind(
        claim, body, base_epsilon=base, extra_epsilon=extra, mixing_weight=weight
    )
    return replace(channel, scale=max(channel.scale, _SMALLEST_SCALE))


def proving_steps(
    *, epsilon: Rational, log_delta: float, base_steps: tuple[Step, ...]
) -> tuple[Step, ...]:
    """Return `base_steps` if they prove (ε, δ), or without them the caller's assertion of it."""
    claim = ApproxDP(as_positive(epsilon, "epsilon"), log_delta)
    if not base_steps:
        return (Step(theorem="given", numbers=claim.numbers(), status=Status.ASSERTED),)
    proven: Claim = base_claim(base_steps)
    actual = proven.log_delta(claim.exact_epsilon)
    if actual > claim.exact_log_delta:
        raise GuaranteeError(
            f"the base steps prove ln δ = {actual:.6g} at ε = {float(claim.exact_epsilon):g}, not "
            f"{claim.exact_log_delta:.6g}: add noise to the base, or state a larger log_delta."
        )
    return base_steps


def printed_theorem_1(*, dimension: int, radius: float, scale_power: float) -> float:
    """Return 4Rd·(δ/2ω)^(1/d)/ε', the noise term as printed; `scale_power` = (δ/2ω)^(1/d)/ε'."""
    return 4 * radius * dimension * scale_power


def theorem_1(
    *,
    dimension: int,
    norm: float,
    diameter: float,
    scale: float,
    mixing_weight: float,
    spacing: float = 0.0,
    error_norm: float | None = None,
) -> float:
    """Return a bound on E‖x_pure - x_apx‖, x_apx in the l_q ball that is mixed in (q = `norm`).

    Parameters
    ----------
    dimension, norm, diameter : number
        d, q and D_q, the l_q diameter of Θ.
    scale : number
        b = 2Δ/ε', the scale of the Laplace noise z.
    mixing_weight : number
        ω.
    spacing : number
        The spacing of the lattice, for its rounding errors.
    error_norm : number, optional
        The norm of the error: q by default, or 1.

    Returns
    -------
    float
        In l_q E‖z‖_q + ω D_q with E‖z‖_q <= (d Γ(q+1))^(1/q) b, and b·(1 + 1/2 + … + 1/d) for
        q = inf; in l_1 d b + ω d^(1-1/q) D_q. Projection onto the ball afterwards does not increase
        an l_q error for q = 2 or inf, and at most doubles the noise term in l_1; for any other q
        this bounds the error before the projection.

    Examples
    --------
    >>> round(theorem_1(dimension=2, norm=2, diameter=2.0, scale=0.5, mixing_weight=0.01), 6)
    1.02

    """
    d = as_count(dimension, "dimension", minimum=1)
    p = norm if error_norm is None else error_norm
    require(
        p in (1, norm),
        "error_norm",
        error_norm,
        expected=f"1 or the ball's norm {norm}",
        remedy="pass one of these",
    )
    # theory A3: the printed l_1 bound holds for q = 1 only; l_q needs Γ(q+1)^(1/q), l_1 d^(1-1/q).
    if p == math.inf:
        noise, norm_ratio, cell_length = sum(1 / k for k in range(1, d + 1)) * scale, 1.0, 1.0
    else:
        noise = math.exp((math.log(d) + math.lgamma(p + 1)) / p) * scale
        norm_ratio = d ** (1 - 1 / norm) if p == 1 else 1.0
        cell_length = d ** (1 / p)
    return noise + mixing_weight * norm_ratio * diameter + 1.5 * spacing * cell_length


@value
class Corollary1:
    """ω and ln δ of Corollary 1, for a ball of l2 diameter `diameter`."""

    rows: int
    dimension: int
    diameter: Fraction
    mixing_weight: Fraction
    log_delta: float

    def error_bound(self, epsilon: Rational, base_epsilon: Rational | None = None) -> float:
        """Return C/(n²ε') + C/n², a bound on E‖x_pure - x_apx‖₂; ε + ε' is `epsilon`.

        The bound is not tight: with the printed Δ the noise is √(2d) b = 0.354 C/(n²ε') (theory
        A3).
        """
        # theory A3: the printed 1/(n²ε) + C/n² adds a length to a number; both are lengths here.
        _, extra = split_epsilon(epsilon, base_epsilon)
        return float(self.diameter) * (1 / float(extra) + 1) / self.rows**2


def corollary_1(*, rows: int, dimension: int, diameter: Rational = 1) -> Corollary1:
    """Return Corollary 1's parameters: ω = 1/n², δ = 2ω/(16 d n²)^d, in units where C = 1.

    Parameters
    ----------
    rows, dimension : int
        n and d.
    diameter : number
        C, the l2 diameter of Θ, for `error_bound`.

    Returns
    -------
    Corollary1
        With `mixing_weight` ω and `log_delta` ln δ, rounded down.

    Examples
    --------
    >>> chosen = corollary_1(rows=100, dimension=2)
    >>> chosen.mixing_weight, round(chosen.log_delta, 3), round(chosen.error_bound(epsilon=1), 6)
    (Fraction(1, 10000), -33.869, 0.0003)

    """
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    require(
        n > 1,
        "rows",
        rows,
        expected="at least 2 rows, because ω = 1/n² must be below 1",
        remedy="pass mixing_weight and log_delta yourself, or more rows",
    )

    def log_delta() -> arb:
        # theory A3: (16 C d n²)^d depends on the unit and makes δ exceed 1 for small C. Here C = 1:
        # the space is rescaled by C.
        return arb_ball(Fraction(2, n * n)).log() - d * arb_ball(16 * d * n * n).log()

    return Corollary1(
        rows=n,
        dimension=d,
        diameter=as_positive(diameter, "diameter"),
        mixing_weight=Fraction(1, n * n),
        log_delta=lower(log_delta),
    )


# -- Algorithm 2 (`alg:discrete`) and Theorem 3 (`thm:index_embed`) -------------------------------
# The choice is written in binary, Algorithm 1 runs in the unit cube, and each coordinate is rounded
# back to a bit. For comparison: B1 (`mix_choice`) needs no embedding and no extra ε.

_SMALLEST_BIT_SCALE = Fraction(1, 1 << 12)
"""Noise of this scale flips a bit with probability e^-2048; a larger scale is private, too."""


@debited
def purify_choice(
    value: Any,
    *,
    space: FiniteSpace,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    base_steps: tuple[Step, ...] = (),
    **paying: Unpack[Paying],
) -> Release:
    """Publish the choice of an (ε, δ)-DP mechanism under pure DP (Algorithm 2).

    Use it to reproduce Algorithm 2; `mix_choice` and `zd.purify` need no embedding, no extra ε.

    Parameters
    ----------
    value : object
        u_apx of the paper, the choice of the mechanism. Any object is mapped into the space first.
    space : FiniteSpace
        Y of the paper, the set of possible outputs, of any size: a finite space of
        `zerodelta.purification`; d = ⌈log2 |Y|⌉ bits, ω = 2^-d.
    epsilon, base_epsilon, base_steps
        As in `purify_ball`; `epsilon` is 2ε of the paper.
    log_delta, delta : number
        ln δ or δ of the mechanism, one of the two; Theorem 3's is `theorem_3_log_delta`.

    Returns
    -------
    Release
        Its value is u_pure, an element of the space.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' for every δ (Theorem 3 by Theorem W on the cube, A4).
    **Neighbors**: replace-one.
    **Error**: the probability of another element, at most 1 - `theorem_3` if ln δ is below
    `theorem_3_log_delta`.

    Examples
    --------
    >>> from zerodelta.spaces import Finite
    >>> log_delta = theorem_3_log_delta(code_length=30, base_epsilon=1)
    >>> release = purify_choice(5, space=Finite(1 << 30), epsilon=2, log_delta=log_delta)
    >>> release.value, release.certificate.claim.exact_epsilon
    (5, Fraction(2, 1))

    """
    base, _ = split_epsilon(epsilon, base_epsilon)
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = choice_channel_for(space=space, epsilon=epsilon, base_epsilon=base, log_delta=log_of)
    return publish(value, channel, f"the space {space!r}", PureDP(epsilon), steps)


def choice_channel_for(
    *,
    space: FiniteSpace,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float,
) -> AlgorithmTwo:
    """Return Algorithm 2 with the smallest proven noise."""
    base, extra = split_epsilon(epsilon, base_epsilon)
    claim = ApproxDP(base, log_delta)
    channel = AlgorithmTwo.behind(claim, space, base_epsilon=base, extra_epsilon=extra)
    return replace(channel, scale=max(channel.scale, _SMALLEST_BIT_SCALE))


def theorem_3_log_delta(*, code_length: int, base_epsilon: Rational) -> float:
    """Return the largest float below ln(ε^d/(2d)^(3d)), the δ of Theorem 3.

    Parameters
    ----------
    code_length : int
        d, the number of bits.
    base_epsilon : number
        ε, half of the total.

    Returns
    -------
    float
        ln δ.

    Examples
    --------
    >>> round(theorem_3_log_delta(code_length=4, base_epsilon=1), 4)
    -24.9533

    """
    d = as_count(code_length, "code_length", minimum=1)
    exact = as_positive(base_epsilon, "base_epsilon")

    def log() -> arb:
        return d * (arb_ball(exact).log() - 3 * arb_ball(2 * d).log())

    return math.nextafter(lower(log), -math.inf)


def theorem_3(code_length: int) -> float:
    """Return (1 - 2^-d)(1 - (d/2)e^-d), a bound on P[u_pure = u_apx] that holds for every d.

    >>> round(theorem_3(10), 4)
    0.9988
    """
    d = as_count(code_length, "code_length", minimum=1)
    # theory A4: the uniform point is not chosen, and all noise stays below 1/2.
    return (1 - 2.0**-d) * (1 - d / 2 * math.exp(-d))
