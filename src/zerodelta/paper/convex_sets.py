"""From total variation to W∞ on a convex set (`lem:W_infty_TV_q`), as a calculator.

Theorem W for the paper's (r, R): r/R in place of its r/4R, the right volume of the l_q ball (theory
A2), and no volume at all where none is known. Every bound is rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from zerodelta.errors import require
from zerodelta.exact.arb import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.parameters import as_epsilon, log_delta_from, split_epsilon
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.transport import product_laplace_radius


@final
@dataclass(frozen=True, slots=True, init=False)
class ConvexSet:
    """A convex set Θ that contains an l_q ball of radius r and has l_q diameter R.

    Use it to see which noise, or which δ, Algorithm 1 needs on a set that is not a ball.

    Parameters
    ----------
    dimension : int
        The number of coordinates d.
    inner_radius : number
        r, of an l_q ball inside Θ; at most R/2.
    diameter : number
        R, the l_q diameter of Θ, or more.
    norm : number or math.inf
        q, at least 1; 2 by default.
    volume : number, optional
        The volume of Θ, or more. By default the largest that a set of diameter R can have,
        V_q (R/2)^d.

    Notes
    -----
    The default volume is the isodiametric inequality, for any norm: (Θ - Θ)/2 has diameter R and at
    least the volume of Θ (Brunn and Minkowski), and lies in a ball of radius R/2, being symmetric.

    Examples
    --------
    >>> square = ConvexSet(dimension=2, inner_radius="1/2", diameter=1, norm=math.inf, volume=1)
    >>> size = {"mixing_weight": "1/100", "base_epsilon": 1}
    >>> round(square.radius(delta="1e-8", **size), 6)
    0.000516
    >>> round(square.log_delta(radius="1/1000", **size), 3)
    -17.097

    """

    dimension: int
    inner_radius: Fraction
    diameter: Fraction
    norm: Fraction | float
    volume: Fraction | None

    def __init__(
        self,
        *,
        dimension: int,
        inner_radius: Rational,
        diameter: Rational,
        norm: Rational = 2,
        volume: Rational | None = None,
    ) -> None:
        d, r = (
            as_count(dimension, "dimension", minimum=1),
            as_positive(inner_radius, "inner_radius"),
        )
        width = as_positive(diameter, "diameter")
        q = math.inf if norm == math.inf else as_positive(norm, "norm")
        require(q >= 1, "norm", norm, expected="a number q of at least 1", remedy="pass norm=2")
        require(
            2 * r <= width,
            "inner_radius",
            inner_radius,
            expected="at most half of the diameter",
            remedy="pass r and R in the same norm",
        )
        whole = None if volume is None else as_positive(volume, "volume")
        object.__setattr__(self, "dimension", d)
        object.__setattr__(self, "inner_radius", r)
        object.__setattr__(self, "diameter", width)
        object.__setattr__(self, "norm", q)
        object.__setattr__(self, "volume", whole)
        if whole is not None:
            smallest = lower(lambda: self._log_unit() + d * ball(r).log())
            require(
                upper(lambda: ball(whole).log()) >= smallest,
                "volume",
                volume,
                expected="at least that of the ball of radius r inside",
                remedy="leave it out: the largest possible one is used",
            )

    def radius(
        self,
        *,
        mixing_weight: Rational,
        base_epsilon: Rational,
        log_delta: float | None = None,
        delta: Rational | None = None,
    ) -> float:
        """Return Δ_q, rounded up: W∞ of the mixed laws is at most this, and at most R.

        For ω Unif(Θ) and TV = (1-ω)δ/(1+e^ε) it is (R/r)·(TV·vol(Θ)/(ω V_q))^(1/d); R²/2r times
        (TV/ω)^(1/d) where the volume is not known.
        """
        log_of = log_delta_from(delta, log_delta)
        return min(
            upper(lambda: self._log_radius(mixing_weight, base_epsilon, log_of, 1).exp()),
            upper(lambda: ball(self.diameter)),
        )

    def printed_radius(
        self,
        *,
        mixing_weight: Rational,
        base_epsilon: Rational,
        log_delta: float | None = None,
        delta: Rational | None = None,
    ) -> float:
        """Return the Δ_q that the lemma as printed gives, with r/4R and the right V_q."""
        log_of = log_delta_from(delta, log_delta)
        return upper(lambda: self._log_radius(mixing_weight, base_epsilon, log_of, 4).exp())

    def noise_scale(
        self,
        *,
        epsilon: Rational,
        base_epsilon: Rational | None = None,
        mixing_weight: Rational,
        log_delta: float | None = None,
        delta: Rational | None = None,
    ) -> float:
        """Return b = 2Δ_1/ε', rounded up: the Laplace noise that makes the release pure."""
        base, extra = split_epsilon(epsilon, base_epsilon)
        moved = self.radius(
            mixing_weight=mixing_weight, base_epsilon=base, log_delta=log_delta, delta=delta
        )
        # ‖x‖_1 <= d^(1-1/q) ‖x‖_q
        log_one = product_laplace_radius(
            dimension=self.dimension, norm=self.norm, log_radius=upper(lambda: ball(moved).log())
        )
        return upper(lambda: 2 * ball(log_one).exp() / ball(extra))

    def log_delta(
        self, *, radius: Rational, mixing_weight: Rational, base_epsilon: Rational
    ) -> float:
        """Return the largest ln δ, rounded down, for which W∞ is at most `radius` (Δ_q < R)."""
        wanted = as_positive(radius, "radius")
        require(
            wanted < self.diameter,
            "radius",
            radius,
            expected="below the diameter, which every δ keeps",
            remedy="pass a smaller one",
        )

        def log() -> arb:
            at_one = self._log_radius(mixing_weight, base_epsilon, 0.0, 1)
            return self.dimension * (ball(wanted).log() - at_one)

        return min(lower(log), 0.0)

    def _log_radius(
        self, mixing_weight: Rational, base_epsilon: Rational, log_delta: float, slack: int
    ) -> arb:
        w, t = as_weight(mixing_weight, "mixing_weight"), as_epsilon(base_epsilon)
        log_tv = ball((1 - w) / w).log() - (1 + ball(t).exp()).log() + ball(log_delta)
        # Theorem W: TV <= p_min V_q (rΔ/R)^d suffices, and p_min = ω/vol(Θ)
        return (
            ball(slack * self.diameter / self.inner_radius).log()
            + (log_tv + self._log_volume_ratio()) / self.dimension
        )

    def _log_volume_ratio(self) -> arb:
        """Return ln(vol(Θ)/V_q), at most d ln(R/2)."""
        most = self.dimension * ball(self.diameter / 2).log()
        if self.volume is None:
            return most
        given = ball(self.volume).log() - self._log_unit()
        return given.min(most)

    def _log_unit(self) -> arb:
        """Return ln V_q, V_q = (2Γ(1+1/q))^d/Γ(1+d/q)."""
        d = self.dimension
        inverse = Fraction(0) if self.norm == math.inf else 1 / Fraction(self.norm)
        return d * (ball(2).log() + ball(1 + inverse).lgamma()) - ball(1 + d * inverse).lgamma()
