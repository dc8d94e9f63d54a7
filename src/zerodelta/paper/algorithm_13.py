"""Algorithm 13 (`alg: pure_ada_ssp`): linear regression by AdaSSP, and made pure (A9, C6).

AdaSSP (Wang 2018) adds Gaussian noise to XᵀX, Xᵀy and λ_min(XᵀX) and solves a ridge regression
whose penalty adapts to the noise. Here rows are integers, all statistics are exact integers, and
the noise is exactly rounded, so the joint guarantee is Gaussian DP with the sensitivities of A9.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from zerodelta.channels.ball import GaussianMix
from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.data.arrays import ArraySource
from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.sufficient_statistics import STEPS, Statistics
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.sufficient_statistics import joint_sensitivity_squared
from zerodelta.spaces import Ball, BallLattice

__all__ = [
    "adassp",
    "lattice_adassp",
    "paper_log_delta",
    "paper_multiplier_squared",
    "pure_adassp",
    "trust_radius",
]

_PUBLIC = ("the number of rows", "the number of features", "data_norm", "target_bound")


def paper_multiplier_squared(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return the printed noise multiplier, squared: ln(6/δ)/(ε/3)², rounded up. Do not use it.

    theory A9: it is calibrated to add-remove neighbors. Under the paper's replace-one relation
    it gives ln δ(1) = -94.0 where -100 is claimed.
    """
    target, exact = as_log_delta(log_delta), as_positive(epsilon, "epsilon")
    return Fraction(upper(lambda: (ball(6).log() - ball(target)) * 9 / ball(exact**2)))


def trust_radius(
    *, rows: int, dimension: int, multiplier: float, ridge_factor: float, scale: float
) -> Fraction:
    """Return R̃ = (n + m(√d+3))/(C√d·m)·‖Y‖/‖X‖: with high probability ‖θ̃‖ is below it.

    theory A9: a formula of public quantities only; a bad radius costs accuracy, never privacy.
    `scale` is ‖Y‖/‖X‖, `ridge_factor` the C with which the penalized matrix is at least C√d·m·A.
    """
    top = rows + multiplier * (math.sqrt(dimension) + 3)
    return Fraction(top / (ridge_factor * math.sqrt(dimension) * multiplier) * scale)


def paper_log_delta(
    *, rows: int, dimension: int, radius: Rational, mixing_weight: Rational
) -> float:
    """Return ln δ of δ = 2ω/(16 d^(3/2) R̃ n²)^d, rounded down; refuse where δ would exceed 1."""
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    weight, r = as_weight(mixing_weight), as_positive(radius, "radius")
    value = lower(
        lambda: ball(2 * weight).log() - d * (ball(16 * r * n * n) * ball(d**3).sqrt()).log()
    )
    if value >= 0:
        raise ParameterError(
            "log_delta", value, expected="a logarithm below 0", remedy="pass log_delta= yourself"
        )
    return value


def adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    log_delta: float,
    failure: float = 0.05,
    bits: BitSource | None = None,
) -> Release:
    """Release regression coefficients by AdaSSP: ridge regression with an adaptive penalty.

    **Neighbors**: replace-one. Longer rows are scaled to `data_norm`, larger targets cut.
    **Guarantee**: μ-Gaussian DP, μ² = (16/3 + 2/A + 1/A²)/m² (theory A9, C6), and so (ε, δ)-DP.
    **Public**: the numbers of rows and features, `data_norm`, `target_bound`.
    **Error**: depends on the unseen smallest eigenvalue of XᵀX.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> release = adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=1, log_delta=-20.0)
    >>> release.certificate.claim.log_delta(1) <= -20.0, release.value.shape
    (True, (1,))
    """
    bits = SystemBits() if bits is None else bits
    _, dimension = _shape(features, target)
    statistics = _calibrated(
        dimension, data_norm, target_bound, epsilon=epsilon, log_delta=log_delta, eigenvalue=True
    )
    certificate = issue(
        claim=statistics.claim(), steps=(statistics.step(),), bits=bits, public=_PUBLIC
    )
    ridge = _ridge_factor(dimension, failure)
    value = statistics.solve(features, target, ridge=ridge, caution=_caution(failure), bits=bits)
    return Release(value=value, certificate=certificate, error="depends on unseen data")


def pure_adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    extra_epsilon: Rational,
    log_delta: float | None = None,
    mixing_weight: Rational | None = None,
    failure: float = 0.05,
    bits: BitSource | None = None,
) -> Release:
    """Release regression coefficients by AdaSSP, clipped to a public ball, then Algorithm 1.

    ω = 1/n² and δ = 2ω/(16 d^(3/2) R̃ n²)^d as in the paper, unless given.

    **Neighbors**: replace-one. Longer rows are scaled to `data_norm`, larger targets cut.
    **Guarantee**: pure (ε + ε')-DP (theory A9, C6, B3).
    **Public**: the numbers of rows and features, `data_norm`, `target_bound`.
    **Error**: that of AdaSSP at the tiny δ; depends on unseen data.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> release = pure_adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=1,
    ...                       extra_epsilon=1)
    >>> release.certificate.claim, release.certificate.status.value
    (PureDP(epsilon=2, bounded_range=0, neighbors=replace), 'proven')
    """
    bits = SystemBits() if bits is None else bits
    rows, dimension = _shape(features, target)
    exact, extra = as_positive(epsilon, "epsilon"), as_positive(extra_epsilon, "extra_epsilon")
    ratio = _ratio(data_norm, target_bound)
    weight = Fraction(1, max(2, rows) ** 2) if mixing_weight is None else as_weight(mixing_weight)
    factor = _ridge_factor(dimension, failure)
    if log_delta is None:
        # the paper's Õ(1 + nε/d) names R̃ before δ and the noise are known: m ~ √d/ε
        guess = max(1.0, math.sqrt(dimension) / float(exact))
        first = trust_radius(  # theory A3: in units of ‖Y‖/‖X‖, or δ would depend on the unit
            rows=rows, dimension=dimension, multiplier=guess, ridge_factor=factor / 2, scale=1.0
        )
        log_delta = paper_log_delta(
            rows=rows, dimension=dimension, radius=first, mixing_weight=weight
        )
    statistics = _calibrated(
        dimension, data_norm, target_bound, epsilon=exact, log_delta=log_delta, eigenvalue=True
    )
    # theory A9: R̃ from public numbers; half of the penalized matrix is what survives the noise
    radius = trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(statistics.multiplier_squared),
        ridge_factor=factor / 2,
        scale=ratio,
    )
    lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / (1 << 40))
    body = Body(lattice=lattice)
    purifier = AlgorithmOne(
        body=body,
        scale=laplace_scale(
            norm=2,
            dimension=dimension,
            diameter=2 * body.radius,
            weight=weight,
            claim=statistics.claim(),
            epsilon=exact,
            extra_epsilon=extra,
        ),
        mixing_weight=weight,
        base_epsilon=exact,
    )
    certificate = issue(
        claim=PureDP(exact + extra),
        steps=(statistics.step(), purifier.step()),
        bits=bits,
        public=_PUBLIC,
    )
    drafted = statistics.solve(features, target, ridge=factor, caution=_caution(failure), bits=bits)
    return Release(
        value=purifier.apply(drafted, bits), certificate=certificate, error="depends on unseen data"
    )


def lattice_adassp(
    features: Any,
    target: Any,
    *,
    data_norm: Rational,
    target_bound: Rational,
    epsilon: Rational,
    mixing_weight: Rational,
    resolution: int | None = None,
    ridge_factor: float = 2.0,
    bits: BitSource | None = None,
) -> Release:
    """Release regression coefficients from noisy statistics through a lattice: pure, no extra ε.

    The penalty comes from the noisy matrix itself, so there is no eigenvalue query (theory C6).
    `resolution` is the trust radius in lattice spacings (default: the number of rows).

    **Neighbors**: replace-one. Longer rows are scaled to `data_norm`, larger targets cut.
    **Guarantee**: pure ε-DP: μ² = (9/2)/m² and ln δ(ε) + ln(1/q_min) <= ln(w/(1-w)) + ln(e^ε-1)
    (theory C6, R(v)).
    **Public**: the numbers of rows and features, `data_norm`, `target_bound`.
    **Error**: that of ridge regression with this noise, plus the lattice and ω times the ball;
    below about 22 features pure noise on the statistics (C10.5) is better.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> release = lattice_adassp(x, x[:, 0] / 2, data_norm=1, target_bound=1, epsilon=1,
    ...                          mixing_weight="0.001")
    >>> release.certificate.claim, release.certificate.status.value
    (PureDP(epsilon=1, bounded_range=0, neighbors=replace), 'proven')
    """
    bits = SystemBits() if bits is None else bits
    rows, dimension = _shape(features, target)
    exact, weight = as_positive(epsilon, "epsilon"), as_weight(mixing_weight)
    ridge_factor = float(as_positive(ridge_factor, "ridge_factor"))
    steps = as_count(max(rows, 16) if resolution is None else resolution, "resolution", minimum=1)
    # the net in units of its spacing does not depend on the radius, so δ comes before the noise
    unit = GaussianMix(
        lattice=BallLattice(ball=Ball(dimension, steps), spacing=Fraction(1)), mixing_weight=weight
    )
    statistics = _calibrated(
        dimension,
        data_norm,
        target_bound,
        epsilon=exact,
        log_delta=min(unit.log_delta_required(exact), -(2.0**-20)),
        eigenvalue=False,
    )
    radius = trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(statistics.multiplier_squared),
        ridge_factor=ridge_factor,
        scale=_ratio(data_norm, target_bound),
    )
    lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / steps)
    purifier = GaussianMix(lattice=lattice, mixing_weight=weight)
    certificate = issue(
        claim=PureDP(exact),
        steps=(statistics.step(), purifier.step()),
        bits=bits,
        public=_PUBLIC,
    )
    factor = ridge_factor * math.sqrt(dimension)
    drafted = statistics.solve(features, target, ridge=factor, caution=0.0, bits=bits)
    return Release(
        value=purifier.apply(drafted, bits), certificate=certificate, error="depends on unseen data"
    )


def _calibrated(
    dimension: int,
    data_norm: Rational,
    target_bound: Rational,
    *,
    epsilon: Rational,
    log_delta: float,
    eigenvalue: bool,
) -> Statistics:
    """Return the statistics with the smallest noise that meets (ε, ln δ)."""
    # theory A9: joint sensitivity² 16/3 (9/2 without the eigenvalue), and the exact Gaussian
    # profile, instead of three add-remove mechanisms of (ε/3, δ/3)
    shift = joint_sensitivity_squared(
        row_bound_squared=STEPS**2, eigenvalue=eigenvalue, neighbors=Neighbors.REPLACE
    )
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return Statistics(
        dimension=dimension,
        data_norm=as_positive(data_norm, "data_norm"),
        target_bound=as_positive(target_bound, "target_bound"),
        multiplier_squared=shift / allowed,
        eigenvalue=eigenvalue,
    )


def _ratio(data_norm: Rational, target_bound: Rational) -> float:
    return float(as_positive(target_bound, "target_bound") / as_positive(data_norm, "data_norm"))


def _ridge_factor(dimension: int, failure: float) -> float:
    """Return √(d ln(2d²/ζ)), AdaSSP's penalty in units of m·A, ζ the failure probability."""
    if not 0 < failure < 1:
        raise ParameterError(
            "failure", failure, expected="a number in (0, 1)", remedy="pass failure=0.05"
        )
    return math.sqrt(dimension * math.log(2 * dimension**2 / failure))


def _caution(failure: float) -> float:
    """Return √(2 ln(6/ζ)): the noisy λ_min less this many m·A is below λ_min, but for ζ/6.

    theory A9: AdaSSP has ln(6/δ) here, of no use with a δ that is tiny for another reason.
    """
    return math.sqrt(2 * math.log(6 / failure))


def _shape(features: Any, target: Any) -> tuple[int, int]:
    """Return the public numbers of rows and features."""
    x, y = ArraySource(features), ArraySource(target)
    if len(y.columns) != 1 or x.rows != y.rows or x.rows < 1 or len(x.columns) < 1:
        raise ParameterError(
            "shape of features and target",
            ((x.rows, len(x.columns)), (y.rows, len(y.columns))),
            expected="(n, d) and (n,), n and d at least 1",
            remedy="pass one line per row",
        )
    return x.rows, len(x.columns)
