"""Convert total variation to W∞ on a convex set, and project to balls in any l_q norm.

Theorem W for the paper's (r, R) has r/R in place of the printed r/4R, the correct volume of the l_q
ball (theory A2), and the largest possible volume where none is known. Bounds are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import require
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.parameters import as_epsilon, log_delta_from, split_epsilon
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.smoothing import product_laplace_radius
from zerodelta.spaces import Ball
from zerodelta.spaces.lattices import Coordinates, Numbers, as_length, common_dimension, plain
from zerodelta.spaces.space import EuclideanSpace


@final
@dataclass(frozen=True, slots=True, init=False)
class ConvexSet:
    """A convex set Θ that contains an l_q ball of radius r and has l_q diameter R.

    Use it to compute the noise, or the δ, that Algorithm 1 needs on a set that is not a ball.

    Parameters
    ----------
    dimension : int
        The number of coordinates d.
    inner_radius : number
        r, the radius of an l_q ball inside Θ; at most R/2.
    diameter : number
        R, an upper bound on the l_q diameter of Θ.
    norm : number or math.inf
        q, at least 1; 2 by default.
    volume : number, optional
        An upper bound on the volume of Θ. By default the largest volume of a set of diameter R,
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
        exact_volume = None if volume is None else as_positive(volume, "volume")
        object.__setattr__(self, "dimension", d)
        object.__setattr__(self, "inner_radius", r)
        object.__setattr__(self, "diameter", width)
        object.__setattr__(self, "norm", q)
        object.__setattr__(self, "volume", exact_volume)
        if exact_volume is not None:
            smallest = lower(lambda: self._log_unit() + d * ball(r).log())
            require(
                upper(lambda: ball(exact_volume).log()) >= smallest,
                "volume",
                volume,
                expected="at least that of the ball of radius r inside",
                remedy="omit volume: the largest possible one is the default",
            )

    def radius(
        self,
        *,
        mixing_weight: Rational,
        base_epsilon: Rational,
        log_delta: float | None = None,
        delta: Rational | None = None,
    ) -> float:
        """Return Δ_q, an upper bound on W∞ of the mixed laws, at most R.

        For ω Unif(Θ) and TV = (1-ω)δ/(1+e^ε) it is (R/r)·(TV·vol(Θ)/(ω V_q))^(1/d), and R²/2r times
        (TV/ω)^(1/d) where the volume is not known.
        """
        log_of = log_delta_from(delta, log_delta)
        return min(
            upper(lambda: self._log_radius(mixing_weight, base_epsilon, log_of).exp()),
            upper(lambda: ball(self.diameter)),
        )

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
        radius = self.radius(
            mixing_weight=mixing_weight, base_epsilon=base, log_delta=log_delta, delta=delta
        )
        # ‖x‖_1 <= d^(1-1/q) ‖x‖_q
        log_one = product_laplace_radius(
            dimension=self.dimension, norm=self.norm, log_radius=upper(lambda: ball(radius).log())
        )
        return upper(lambda: 2 * ball(log_one).exp() / ball(extra))

    def log_delta(
        self, *, radius: Rational, mixing_weight: Rational, base_epsilon: Rational
    ) -> float:
        """Return the largest ln δ, rounded down, for which W∞ is at most `radius` (Δ_q < R)."""
        exact = as_positive(radius, "radius")
        require(
            exact < self.diameter,
            "radius",
            radius,
            expected="below the diameter, a bound for every δ",
            remedy="pass a smaller radius",
        )

        def log() -> arb:
            at_one = self._log_radius(mixing_weight, base_epsilon, 0.0)
            return self.dimension * (ball(exact).log() - at_one)

        return min(lower(log), 0.0)

    def _log_radius(self, mixing_weight: Rational, base_epsilon: Rational, log_delta: float) -> arb:
        """Return ln Δ_q, without the limit R."""
        w, t = as_weight(mixing_weight, "mixing_weight"), as_epsilon(base_epsilon)
        log_tv = ball((1 - w) / w).log() - (1 + ball(t).exp()).log() + ball(log_delta)
        # Theorem W: TV <= p_min V_q (rΔ/R)^d suffices, and p_min = ω/vol(Θ)
        return (
            ball(self.diameter / self.inner_radius).log()
            + (log_tv + self._log_volume_ratio()) / self.dimension
        )

    def _log_volume_ratio(self) -> arb:
        """Return ln(vol(Θ)/V_q), at most d ln(R/2)."""
        largest = self.dimension * ball(self.diameter / 2).log()
        if self.volume is None:
            return largest
        return (ball(self.volume).log() - self._log_unit()).min(largest)

    def _log_unit(self) -> arb:
        """Return ln V_q, V_q = (2Γ(1+1/q))^d/Γ(1+d/q)."""
        d = self.dimension
        inverse = Fraction(0) if self.norm == math.inf else 1 / Fraction(self.norm)
        return d * (ball(2).log() + ball(1 + inverse).lgamma()) - ball(1 + d * inverse).lgamma()


# -- Balls in any l_q norm, for Algorithm 1 with a general q (`assump:domain`) --------------------
# There is no exact sampler for a uniform point of an l_q ball, and none is needed: Algorithm 1
# requires only that the value lies *in* the ball whose uniform points are mixed in (the paper's
# remark after Theorem 1). That ball is the smallest l_p ball around it, p = 1 or 2 <= q, whose l_p
# diameter is d^(1/p-1/q) times the l_q diameter. Then Δ_1 = d^(1-1/p)·d^(1/p-1/q)·D_q·x =
# d^(1-1/q)·D_q·x: the same noise as Line 2 has for q.

_SLACK = 2.0**-40
"""The relative distance by which float rounding may leave a projected point outside the ball."""

_MAXIMUM_DISTANCE = 2.0**200
"""In radii. A point farther away is replaced by one at this distance in the same direction."""

_SMALLEST_DIVISOR = 2.0**-1000

_MULTIPLIER_HALVINGS, _COORDINATE_HALVINGS = 64, 56
"""The steps of bisection for the multiplier, and for each coordinate."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class LqBall(EuclideanSpace):
    """The vectors within `radius` of `center` in the l_q norm, for any rational q >= 1.

    Use it with `purify_ball`, for norms that `zd.Ball` does not have. All parameters are public and
    must not be computed from the data.

    Parameters
    ----------
    dimension : int
        The number of coordinates d.
    radius : int, float, Fraction or str
        The radius, kept exactly; the diameter D_q is twice the radius.
    norm : int, float, Fraction or str
        The q of the norm, at least 1, kept exactly; for q = inf use `zd.Ball`.
    center : number or list
        One number for all coordinates, or a list of one for each.

    Examples
    --------
    >>> cubic = LqBall(2, 1, norm=3)
    >>> cubic.project([2.0, 2.0]).round(4), cubic.contains([0.9, 0.6]), cubic.contains([0.9, 0.7])
    (array([0.7937, 0.7937]), True, False)
    >>> cubic.enclosing().norm, round(float(cubic.enclosing().radius), 4)  # 2^(1/2 - 1/3)
    (2.0, 1.1225)

    """

    dimension: int
    radius: Fraction
    norm: Fraction
    center: Coordinates

    def __init__(
        self, dimension: int, radius: Rational, *, norm: Rational, center: Numbers = 0
    ) -> None:
        q = as_rational(norm, "norm")
        require(
            q >= 1,
            "norm",
            norm,
            expected="a number q of at least 1",
            remedy="pass norm='3/2', for example, or use zd.Ball for norm 1, 2 or math.inf",
        )
        dimension = as_count(dimension, "dimension", minimum=1)
        object.__setattr__(self, "dimension", common_dimension(dimension, center=center))
        object.__setattr__(self, "radius", as_length(radius, "radius"))
        object.__setattr__(self, "norm", q)
        object.__setattr__(self, "center", Coordinates.of(center, "center"))

    def enclosing(self) -> Ball:
        """Return the smallest l1 ball (q < 2) or l2 ball (q >= 2) around it, rounded outwards."""
        p = 1 if self.norm < 2 else 2
        power = Fraction(1, p) - 1 / self.norm
        radius = self.radius
        if power > 0 and self.dimension > 1:
            # ‖x‖_p <= d^(1/p - 1/q) ‖x‖_q for p <= q, with equality where all |x_i| are equal
            radius = Fraction(
                upper(lambda: ball(self.radius) * (ball(self.dimension).log() * ball(power)).exp())
            )
        return Ball(self.dimension, radius, norm=p, center=self.center)

    def middle(self) -> npt.NDArray[np.float64]:
        """Return the center."""
        center = self.center.floats()
        return np.repeat(center, self.dimension // len(center))

    def diameter(self, norm: float = 2) -> float:
        """Return the diameter in the l_p norm, p = `norm`: 2r d^max(0, 1/p - 1/q), rounded up."""
        inverse = Fraction(0) if norm == np.inf else 1 / as_rational(norm, "norm")
        power = max(Fraction(0), inverse - 1 / self.norm)
        return upper(
            lambda: 2 * ball(self.radius) * (ball(self.dimension).log() * ball(power)).exp()
        )

    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        """Return whether a vector is in the ball, up to rounding."""
        radius, center = float(self.radius), self.middle()
        distance = self._length(center / radius)
        return self._length((vector - center) / radius) <= 1 + _SLACK * (1 + distance)

    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the l2-nearest point y: |y_i| + m |y_i|^(q-1) = |x_i|, m such that ‖y‖_q = 1.

        Both the multiplier m and, for each m, the coordinates are found by bisection.
        """
        center, radius, q = self.middle(), float(self.radius), float(self.norm)
        offset = (vector - center) / radius
        if not float(np.abs(offset).max()) <= _MAXIMUM_DISTANCE:
            largest = max(float(np.abs(vector).max()), float(np.abs(center).max()))
            direction = vector / largest - center / largest
            size = max(float(np.abs(direction).max()), _SMALLEST_DIVISOR)
            offset = direction / size * _MAXIMUM_DISTANCE
        sizes = np.abs(offset)

        def shrunk(multiplier: float) -> npt.NDArray[np.float64]:
            """Return the |y_i| for a multiplier m, each by bisection."""
            low, high = np.zeros_like(sizes), np.minimum(sizes, 1.0)
            for _ in range(_COORDINATE_HALVINGS):
                middle = (low + high) / 2
                below = middle + multiplier * middle ** (q - 1) < sizes
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            return (low + high) / 2

        low, high = 0.0, float(sizes.max()) * self.dimension ** (1 - 1 / q)
        for _ in range(_MULTIPLIER_HALVINGS):
            multiplier = (low + high) / 2
            if self._length(shrunk(multiplier)) > 1:
                low = multiplier
            else:
                high = multiplier
        inside = shrunk(high)
        inside /= max(1.0, self._length(inside))
        nearest: npt.NDArray[np.float64] = center + np.copysign(inside, offset) * radius
        return nearest

    def _length(self, vector: npt.NDArray[np.float64]) -> float:
        """Return the l_q norm of a vector, without overflow of its powers."""
        largest, q = float(np.abs(vector).max()), float(self.norm)
        if largest == 0 or not np.isfinite(largest):
            return largest
        return largest * math.pow(float((np.abs(vector / largest) ** q).sum()), 1 / q)

    def describe(self) -> dict[str, Any]:
        """Return the exact parameters."""
        return {
            "kind": "lq-ball",
            "dimension": self.dimension,
            "radius": plain(self.radius),
            "norm": plain(self.norm),
            "center": self.center.numbers(),
        }

    def __repr__(self) -> str:
        return f"LqBall({self.dimension}, {self.radius}, norm={self.norm}, center={self.center})"
