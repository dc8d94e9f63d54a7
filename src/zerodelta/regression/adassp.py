"""AdaSSP through a lattice: Gaussian noise on XᵀX and Xᵀy, purified without extra ε (theory C6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from zerodelta.channels.ball_mix import GaussianMix
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.sufficient_statistics import joint_sensitivity_squared
from zerodelta.regression.expected import TARGETS
from zerodelta.regression.gaussian_statistics import STEPS, GaussianStatistics
from zerodelta.spaces import Ball, BallLattice
from zerodelta.value import value


@value
class LatticeAdassp:
    """The plan: statistics with noise, a penalty, and the lattice on which coefficients leave.

    The penalty comes from the noisy matrix itself, so there is no eigenvalue query.
    """

    statistics: GaussianStatistics
    channel: GaussianMix
    ridge: float
    """What the penalty lifts the smallest eigenvalue to, in units of the noise."""

    @staticmethod
    def plan(
        *,
        rows: int,
        dimension: int,
        data_norm: Rational,
        target_bound: Rational,
        epsilon: Rational,
        mixing_weight: Rational,
        resolution: int | None = None,
        ridge_factor: float = 2.0,
    ) -> LatticeAdassp:
        """Calibrate; `resolution` is the trust radius in lattice spacings (default: the rows).

        μ² = (9/2)/m² and ln δ(ε) + ln(1/q_min) <= ln(w/(1-w)) + ln(e^ε-1) (theory C6, R(v)).
        """
        exact, weight = as_positive(epsilon, "epsilon"), as_weight(mixing_weight)
        ridge_factor = float(as_positive(ridge_factor, "ridge_factor"))
        steps = max(rows, 16) if resolution is None else resolution
        steps = as_count(steps, "resolution", minimum=1)
        # the net in units of its spacing does not depend on the radius: δ comes before the noise
        unit = BallLattice(ball=Ball(dimension, steps), spacing=Fraction(1))
        net = GaussianMix(lattice=unit, mixing_weight=weight)
        statistics = calibrated_statistics(
            dimension,
            data_norm,
            target_bound,
            epsilon=exact,
            log_delta=min(net.log_delta_required(exact), -(2.0**-20)),
            eigenvalue=False,
        )
        radius = trust_radius(
            rows=rows,
            dimension=dimension,
            multiplier=math.sqrt(statistics.multiplier_squared),
            ridge_factor=ridge_factor,
            scale=statistics.scale,
        )
        lattice = BallLattice(ball=Ball(dimension, radius), spacing=radius / steps)
        return LatticeAdassp(
            statistics=statistics,
            channel=GaussianMix(lattice=lattice, mixing_weight=weight),
            ridge=ridge_factor * math.sqrt(dimension),
        )

    @property
    def steps(self) -> tuple[Step, Step]:
        """The two steps of the certificate."""
        return self.statistics.step(), self.channel.step()

    def answer(
        self, rows: Rows, bits: BitSource, *, prepare: Callable[[Block], Block] | None = None
    ) -> Floats:
        """Return the published coefficients; the target is the last column of the rows."""
        solved = self.statistics.solve(rows, bits, ridge=self.ridge, prepare=prepare)
        return self.channel.apply(solved, bits)


def trust_radius(
    *, rows: int, dimension: int, multiplier: float, ridge_factor: float, scale: float
) -> Fraction:
    """Return R̃ = (n + m(√d+3))/(C√d·m)·‖Y‖/‖X‖: with high probability ‖θ̃‖ is below it.

    theory A9: a formula of public quantities only; a bad radius costs accuracy, never privacy.
    `scale` is ‖Y‖/‖X‖, `ridge_factor` the C with which the penalized matrix is at least C√d·m·A.
    """
    top = rows + multiplier * (math.sqrt(dimension) + 3)
    return Fraction(top / (ridge_factor * math.sqrt(dimension) * multiplier) * scale)


def calibrated_statistics(
    dimension: int,
    data_norm: Rational,
    target_bound: Rational,
    *,
    epsilon: Rational,
    log_delta: float,
    eigenvalue: bool,
) -> GaussianStatistics:
    """Return the statistics with the smallest noise that meets (ε, ln δ)."""
    # theory A9: joint sensitivity² 16/3 (9/2 without the eigenvalue), and the exact Gaussian
    # profile, instead of three add-remove mechanisms of (ε/3, δ/3)
    shift = joint_sensitivity_squared(
        row_bound_squared=STEPS**2, eigenvalue=eigenvalue, neighbors=Neighbors.REPLACE
    )
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return GaussianStatistics(
        dimension=dimension,
        data_norm=as_positive(data_norm, "data_norm"),
        target_bound=as_positive(target_bound, "target_bound"),
        multiplier_squared=shift / allowed,
        eigenvalue=eigenvalue,
    )


def adassp_error(
    statistics: GaussianStatistics,
    *,
    rows: int,
    ridge: float,
    caution: float = 0.0,
    added: Fraction | int = 0,
    random: Fraction | int = 0,
) -> float:
    """Return the excess of the mean squared error to expect, from public numbers.

    For rows and targets as in `Expected`: XᵀX = v·I. With the penalty λ it is what the noise of
    variance m²(1 + ‖θ‖²/2) makes of (XᵀX + λI)⁻¹, and the bias λθ/(v + λ). `added` is the squared
    length of what purification adds to θ, `random` that of a random point, times its probability.
    """
    d, noise = statistics.dimension, math.sqrt(statistics.multiplier_squared)
    variance = TARGETS.row_length**2 / d  # of a row in any direction
    v = rows * variance
    penalty = max(0.0, ridge * noise - max(0.0, v - caution * noise))
    length = TARGETS.explained / variance
    spread = d * variance * noise**2 * (1 + length / 2) / (v + penalty) ** 2
    bias = TARGETS.explained * (penalty / (v + penalty)) ** 2
    inner = (spread + bias) * float(statistics.target_bound) ** 2
    return inner + variance * float(statistics.data_norm) ** 2 * float(added + random)
