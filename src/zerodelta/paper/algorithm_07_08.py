"""Run pure Frank-Wolfe through a Gaussian sketch, and recover the point: Algorithms 7 and 8.

`alg: fw_pure`, for reproduction. With the paper's δ the T internal steps need *less* noise by basic
composition than by advanced composition (theory A11), so `frank_wolfe_pure` (no sketch, no
purification, no linear program) is better in every respect.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.channels.kernels import Body
from zerodelta.data.rows import Rows
from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource, current_bits
from zerodelta.exact.noise import rounded_gaussian
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, laplace_scale
from zerodelta.paper.algorithm_05_06 import approximate_frank_wolfe
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Ball
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.frank_wolfe import Composition, VertexSteps, step_epsilon
from zerodelta.training.gradients import GradientFunction
from zerodelta.training.losses import Loss
from zerodelta.training.polytopes import L1Ball
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Algorithm 8 (`alg: sparse-rec`): recover a sparse vector from noisy measurements by an LP ----
# Its inputs are published numbers, so it need not be private or exact. Its result is published,
# too: a failure of the solver becomes the vector 0 (theory A11).


def sparse_recovery(
    measurements: Floats,
    sketch: Floats,
    *,
    tolerance: float,
    time_limit: float = 60.0,
) -> Floats:
    """Return argmin ‖θ‖₁ subject to ‖Φθ - b‖₁ <= ξ, or 0 if the problem is infeasible or fails.

    This is post-processing of public numbers. The linear program has θ = u⁺ - u⁻ and the residual
    r⁺ - r⁻, all >= 0: k + 1 rows, where the paper's form has 2k + 2d + 1. A Gaussian Φ with k < d
    has full row rank, so that it is feasible (theory A11).

    Parameters
    ----------
    measurements : array
        b, the k public measurements (θ_pure-k in Algorithm 7).
    sketch : array
        Φ, the public k x d matrix.
    tolerance : float
        ξ, the allowed l1 error of the measurements.
    time_limit : float
        The seconds after which the solver (SciPy's HiGHS) fails.

    Returns
    -------
    array
        θ̂ of the paper, d entries.

    Examples
    --------
    >>> phi = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> sparse_recovery(np.array([0.5, 0.5]), phi, tolerance=0.0)
    array([0. , 0. , 0.5])

    """
    phi, b, xi = _checked(sketch, measurements, tolerance)
    dimension = phi.shape[1]
    if not np.isfinite(b).all():  # the user did not choose these numbers: no error
        return np.zeros(dimension)
    try:
        solution = _solved(phi, b, xi, time_limit)
    except Exception:  # an exception of the solver would be an output (theory A14.4)
        solution = None
    if solution is None or solution.shape != (dimension,) or not np.isfinite(solution).all():
        return np.zeros(dimension)
    return solution


def recovery_error(*, sparsity: int, tolerance: float, distortion: float = 0.25) -> float:
    """Return 4√s ξ/√(1-e): the l1 error for s-sparse vectors, *if* Φ is (e, 4s)-RWC.

    Parameters
    ----------
    sparsity : int
        s, the number of nonzero entries (T after T steps of Frank-Wolfe).
    tolerance : float
        ξ.
    distortion : float
        e, 1/4 in the paper.

    Returns
    -------
    float
        A bound on ‖θ̂ - θ‖₁.

    Examples
    --------
    >>> recovery_error(sparsity=4, tolerance=0.01, distortion=0.75)
    0.16

    """
    if not 0 < distortion < 1:
        raise ParameterError(
            "distortion",
            distortion,
            expected="between 0 and 1",
            remedy="pass 0.25, as in the paper",
        )
    return 4 * math.sqrt(sparsity) * tolerance / math.sqrt(1 - distortion)


def _checked(
    sketch: Floats, measurements: Floats, tolerance: float
) -> tuple[Floats, Floats, float]:
    """Check the shapes of sketch and measurements and the tolerance; return Φ, b and ξ."""
    phi, b = np.asarray(sketch, dtype=np.float64), np.asarray(measurements, dtype=np.float64)
    if phi.ndim != 2 or min(phi.shape) < 1 or not np.isfinite(phi).all():
        raise ParameterError(
            "sketch",
            f"shape {phi.shape}",
            expected="a finite matrix with one row for each measurement",
            remedy="pass a matrix of gaussian_sketch",
        )
    if b.shape != phi.shape[:1]:
        raise ParameterError(
            "measurements",
            f"shape {b.shape}",
            expected=f"{len(phi)} numbers, one for each row of the sketch",
            remedy="pass Φθ plus noise",
        )
    xi = float(tolerance)
    if not 0 <= xi < math.inf:
        raise ParameterError(
            "tolerance", tolerance, expected="a finite number of at least 0", remedy="pass ξ"
        )
    return phi, b, xi


def _solved(phi: Floats, b: Floats, xi: float, time_limit: float) -> Floats | None:
    """Minimize Σ(u⁺ + u⁻) with Φ(u⁺ - u⁻) + r⁺ - r⁻ = b and Σ(r⁺ + r⁻) <= ξ; return u⁺ - u⁻."""
    from scipy.optimize import linprog

    k, d = phi.shape
    costs = np.concatenate([np.ones(2 * d), np.zeros(2 * k)])
    result = linprog(
        costs,
        A_ub=1.0 - costs[np.newaxis],
        b_ub=[xi],
        A_eq=np.hstack([phi, -phi, np.eye(k), -np.eye(k)]),
        b_eq=b,
        method="highs",
        options={"time_limit": time_limit, "presolve": False},  # a dense LP has nothing to remove
    )
    if result.status != 0:
        return None
    theta: Floats = result.x[:d] - result.x[d : 2 * d]
    return theta + 0.0  # turns -0.0 into 0.0


# -- Algorithm 7 (`alg: fw_pure`): parameters, sketch and purification ----------------------------

_SKETCH_STEPS = 1 << 30
"""Entries of the sketch are multiples of 2^-30; privacy does not depend on it."""


def printed_iterations(
    *,
    rows: int,
    base_epsilon: Rational,
    smoothness: Rational,
    length: Rational,
    lipschitz: Rational,
) -> int:
    """Return T = ⌈√(β ‖C‖₁ n ε/L₁)⌉, the constant of the paper's Θ̃ taken as 1.

    >>> printed_iterations(rows=1000, base_epsilon=1, smoothness=1, length=1, lipschitz=1)
    32
    """
    beta, width = as_positive(smoothness, "smoothness"), as_positive(length, "length")
    inner = as_positive(base_epsilon, "base_epsilon")
    ratio = beta * width * as_count(rows, "rows", minimum=1) * inner
    return max(1, math.ceil(math.sqrt(ratio / as_positive(lipschitz, "lipschitz"))))


def printed_measurements(*, iterations: int, dimension: int, rows: int) -> int:
    """Return k = max(16T, ⌈T ln(d/T) + ln n⌉), at most d: k = d means "no sketch".

    The constant of the paper's Θ(·) is unknown: its lemmas need k >= 400 · 1600 T, which is above d
    in any realistic case (theory A11).

    >>> printed_measurements(iterations=5, dimension=2000, rows=1000)
    80
    """
    steps, d = as_count(iterations, "iterations", minimum=1), as_count(dimension, "dimension")
    printed = steps * math.log(max(d / steps, 1)) + math.log(as_count(rows, "rows", minimum=1))
    # theory A11: the bound on (a) in the proof needs k >= 16T
    return min(max(16 * steps, math.ceil(printed)), as_count(d, "dimension", minimum=1))


def printed_mixing_weight(*, rows: int) -> Fraction:
    """Return ω = 1/n."""
    # theory A1.3: ω must be below 1, so for n = 1 it is 1/2
    return Fraction(1, max(2, as_count(rows, "rows", minimum=1)))


def printed_log_delta(*, measurements: int, rows: int, mixing_weight: Rational) -> float:
    """Return ln δ, δ = 2ω/(nk)^k, as a logarithm because δ underflows for large k.

    >>> round(printed_log_delta(measurements=80, rows=1000, mixing_weight="1/1000"), 3)
    -909.397
    """
    k, n = as_count(measurements, "measurements", minimum=1), as_count(rows, "rows", minimum=1)
    weight = math.log(as_positive(mixing_weight, "mixing_weight"))
    # theory A1.3: for n = k = 1 the printed δ is not below ω
    return min(math.log(2) + weight - k * math.log(n * k), weight)


def tolerance(*, noise_scale: float, measurements: int, rows: int, spacing: float = 0.0) -> float:
    """Return ξ = 2b(k + ln n) + k · spacing, which exceeds ‖noise‖₁ with probability 1 - 1/n.

    >>> round(tolerance(noise_scale=0.001, measurements=80, rows=1000), 4)
    0.1738
    """
    k, n = as_count(measurements, "measurements", minimum=1), as_count(rows, "rows", minimum=1)
    # theory A11: the text's t = b(k + 2 ln n) should be 2b(k + ln n), which ξ does use;
    # rounding to the lattice moves a coordinate by at most one spacing
    return 2 * noise_scale * (k + math.log(n)) + k * spacing


def gaussian_sketch(measurements: int, dimension: int) -> Floats:
    """Draw a k x d matrix Φ with independent N(0, 1/k) entries, public and independent of data.

    >>> gaussian_sketch(3, 5).shape
    (3, 5)
    """
    k = as_count(measurements, "measurements", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    bits = current_bits()
    entries = rounded_gaussian(variance=Fraction(_SKETCH_STEPS**2, k), size=k * d, bits=bits)
    sketch: Floats = entries.astype(np.float64).reshape(k, d) / _SKETCH_STEPS
    return sketch


@value
class _Purification:
    """Algorithm 1 for θ_FW: in k dimensions with a sketch, in d dimensions without one."""

    channel: AlgorithmOne
    sketch: Floats | None

    @staticmethod
    def plan(
        *,
        polytope: L1Ball,
        sketch: Floats | None,
        claim: ApproxDP,
        extra_epsilon: Fraction,
        mixing_weight: Rational,
    ) -> _Purification:
        """Plan Algorithm 1 on the l1 ball, or on the ball of sketches, behind this claim."""
        if sketch is None:
            # θ_FW lies in the l1 ball: q = 1 needs no factor d^(1-1/q)
            space = Ball(polytope.dimension, polytope.radius, norm=1)
        else:
            space = Ball(len(sketch), 2 * polytope.radius)
        # theory A1: the diameter of the ball that is mixed in, and Theorem W: half of the printed Δ
        scale = laplace_scale(
            norm=space.norm,
            dimension=space.dimension,
            diameter=2 * space.radius,
            weight=mixing_weight,
            claim=claim,
            epsilon=claim.exact_epsilon,
            extra_epsilon=extra_epsilon,
        )
        finest = float(space.radius) * 2.0**-44
        spacing = Fraction(2) ** math.floor(math.log2(max(float(scale) / 8, finest)))
        channel = AlgorithmOne.behind(
            claim,
            Body(lattice=space.lattice(spacing)),
            base_epsilon=claim.exact_epsilon,
            extra_epsilon=extra_epsilon,
            mixing_weight=mixing_weight,
        )
        return _Purification(channel=channel, sketch=sketch)

    @property
    def spacing(self) -> float:
        """The spacing of the channel's lattice."""
        return self.channel.body.unit

    @property
    def noise_scale(self) -> float:
        """The scale b of the Laplace noise, in units of θ."""
        return float(self.channel.scale) * self.spacing

    def xi(self, rows: int) -> float:
        """Return the tolerance ξ of the recovery."""
        return tolerance(
            noise_scale=self.noise_scale,
            measurements=self.channel.body.lattice.dimension,
            rows=rows,
            spacing=self.spacing,
        )

    def publish(self, theta: Floats, polytope: L1Ball, rows: int, bits: BitSource) -> Floats:
        """Purify the point, recover it from its sketch, and project it to the ball."""
        space = Ball(polytope.dimension, polytope.radius, norm=1)
        if self.sketch is None:
            return space.project(self.channel.apply(theta, bits))
        measured = self.channel.apply(self.sketch @ theta, bits)
        return space.project(sparse_recovery(measured, self.sketch, tolerance=self.xi(rows)))

    def error(self, vertices: VertexSteps, base: float) -> float:
        """Return the error `base` of the internal steps plus that of purification.

        With a sketch this assumes that Φ is (1/4, 4T)-RWC.
        """
        rows, slope = vertices.source.rows, float(vertices.lipschitz)
        dimension = self.channel.body.lattice.dimension
        width = 2 * slope * float(vertices.polytope.length)
        if self.sketch is None:
            distance = dimension * (self.noise_scale + self.spacing)
            return base + slope * distance + float(self.channel.mixing_weight) * width
        recovery = recovery_error(sparsity=vertices.iterations, tolerance=self.xi(rows))
        return base + slope * recovery + (2 / rows + float(self.channel.mixing_weight)) * width

    def seconds(self) -> float:
        """Return a forecast of the seconds for the sketch and the linear program.

        The constant was measured by `bench/paper.py`.
        """
        return 0.0 if self.sketch is None else 2.5e-6 * self.sketch.size


@partial(debited, rows=("features", "labels"), like=approximate_frank_wolfe)
def pure_frank_wolfe(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    domain: Ball,
    lipschitz: Rational,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    iterations: int | None = None,
    measurements: int | None = None,
    sketch: Floats | None = None,
    mixing_weight: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    smoothness: Rational | None = None,
    composition: Composition = "best",
    steps: int = 1 << 20,
    rowwise: bool = False,
    **paying: Unpack[Paying],
) -> Release:
    """Release an approximate minimizer over an l1 ball under pure DP (Algorithm 7).

    Use it to reproduce the paper; `frank_wolfe_pure` is better in every respect. Algorithm 6
    computes θ_FW internally. Its sketch Φθ_FW in k dimensions is purified by Algorithm 1, and
    Algorithm 8 recovers a sparse vector from it.

    Parameters
    ----------
    domain : Ball
        C, an l1 ball around 0 of radius ‖C‖₁.
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of the internal steps, Algorithm 6; half of `epsilon` by default. The rest is ε' of
        Algorithm 1.
    iterations : int, optional
        The number T of steps; `printed_iterations` by default.
    measurements : int, optional
        The number k of rows of the sketch, the printed one by default. With k >= d there is no
        sketch, and θ_FW is purified in the l1 ball (theory A11).
    sketch : array, optional
        Φ, which must not depend on the data; drawn afresh by default.
    mixing_weight : number, optional
        ω; the printed 1/n by default.
    log_delta, delta : number, optional
        ln δ or δ of the internal steps, at most one of the two; the printed 2ω/(nk)^k by default.

    Returns
    -------
    Release
        Its value is a point of the ball; 0 if the linear program fails.

    Notes
    -----
    **Guarantee**: pure (ε + ε')-DP: Theorem W on T steps of the exponential mechanism that are
    (ε, δ)-DP together. `proven` for a built-in loss, else `asserted`.
    **Neighbors**: replace-one; n is public.
    **Error**: that of Algorithm 6, plus L₁ 4√T ξ/√(1-e), e = 1/4, if Φ is (e, 4T)-RWC, plus
    2L₁‖C‖₁ with probability 3/n.

    Examples
    --------
    >>> x = np.tile([0.5, -2.0], (20_000, 1))
    >>> release = pure_frank_wolfe(
    ...     x, loss=lambda theta, rows: theta - rows, domain=Ball(2, 1, norm=1), lipschitz=3,
    ...     epsilon=1, iterations=20, mixing_weight="1e-9")
    >>> release.value.round(1) + 0.0, release.certificate.claim.exact_epsilon
    (array([ 0., -1.]), Fraction(1, 1))

    """
    inner, extra = split_epsilon(epsilon, base_epsilon)
    log_of = None if delta is log_delta is None else log_delta_from(delta, log_delta)

    def default_iterations(plan: VertexSteps) -> int:
        return printed_iterations(
            rows=plan.source.rows,
            base_epsilon=inner,
            smoothness=plan.smoothness(smoothness),
            length=plan.polytope.length,
            lipschitz=plan.lipschitz,
        )

    vertices = VertexSteps.plan(
        features,
        labels,
        loss=loss,
        domain=domain,
        lipschitz=lipschitz,
        iterations=default_iterations if iterations is None else iterations,
        steps=steps,
        rowwise=rowwise,
    )
    polytope, count = vertices.polytope, vertices.source.rows
    if not isinstance(polytope, L1Ball):
        raise ParameterError(
            "domain",
            domain,
            expected="an l1 ball around 0",
            remedy="use zerodelta.training.frank_wolfe for any other polytope",
        )
    matrix = _sketch(sketch, measurements, vertices)
    weight = printed_mixing_weight(rows=count) if mixing_weight is None else mixing_weight
    if log_of is None:
        size = polytope.dimension if matrix is None else len(matrix)
        log_of = printed_log_delta(measurements=size, rows=count, mixing_weight=weight)
    base = ApproxDP(inner, log_of)
    share = step_epsilon(
        epsilon=inner, log_delta=log_of, iterations=vertices.iterations, composition=composition
    )
    mechanism = vertices.exponential(share)
    purification = _Purification.plan(
        polytope=polytope, sketch=matrix, claim=base, extra_epsilon=extra, mixing_weight=weight
    )

    def answer(rows: Rows, bits: BitSource) -> Floats:
        theta = vertices.iterate(vertices.run(mechanism, rows, bits))
        return purification.publish(theta, polytope, count, bits)

    plan = vertices.release_plan(
        mechanism,
        (purification.channel.step(),),
        answer,
        claim=PureDP(epsilon),
        error=purification.error(vertices, vertices.expected_error(mechanism, smoothness)),
        seconds=purification.seconds(),
        public=(_described(matrix),),
    )
    return run(plan, vertices.source)


def _described(sketch: Floats | None) -> str:
    """Return the certificate's line about the sketch."""
    return "no sketch (k >= d)" if sketch is None else f"a sketch of k = {len(sketch)} lines"


def _sketch(
    sketch: Floats | None, measurements: int | None, vertices: VertexSteps
) -> Floats | None:
    """Return the caller's Φ or a new one; None if k >= d, where a sketch saves nothing."""
    dimension = vertices.polytope.dimension
    if sketch is not None:
        matrix = np.array(sketch, dtype=np.float64)
        good = matrix.ndim == 2 and matrix.shape[1] == dimension and len(matrix) > 0
        if not good or not np.isfinite(matrix).all() or measurements not in (None, len(matrix)):
            raise ParameterError(
                "sketch",
                f"shape {matrix.shape}",
                expected=f"a finite k x {dimension} matrix, with k = `measurements`",
                remedy="pass a matrix of gaussian_sketch, or omit sketch",
            )
    k = measurements if sketch is None else len(sketch)
    if k is None:
        k = printed_measurements(
            iterations=vertices.iterations, dimension=dimension, rows=vertices.source.rows
        )
    if as_count(k, "measurements", minimum=1) >= dimension:
        return None
    return gaussian_sketch(k, dimension) if sketch is None else matrix
