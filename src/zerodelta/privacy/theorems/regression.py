"""State the theorems of regression: noise in its objective (C9) or on its statistics (A9, C6).

Rows are scaled to length at most 1 and scalar losses to slopes of at most 1, so that one number
is left of the regularization, its `strength` Λ. The minimizer of

    Σ loss + (Λ/2) ‖θ‖² + ⟨v, θ⟩,   v of density ∝ exp(-ε' ‖v‖ / 2D),

D the largest slope (1; √2 for softmax), is pure with ε = ε'/2 + sup [(ε'/2) q + ln det charge]: a
record whose slope q is at its largest has no curvature left to pay for.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.errors import GuaranteeError
from zerodelta.exact.logs import ball, precision, to_float_down, to_float_up
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.claims import GaussianDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Bit, Cells, Positive, between, integers
from zerodelta.privacy.theorems.theorem import BaseTheorem, PureTheorem
from zerodelta.value import value

_BITS = 96
"""The precision of the balls of `_supremum`; every bound is valid at any precision."""

_CLOSE = 2.0**-40
"""The relative gap between the returned bound and the supremum."""

_NARROWEST = 2.0**-46
_MAX_BOXES = 1 << 13
"""A search ends after this many boxes (plans take a few hundred); then its bound is less tight."""

_FAR = 64.0
"""From u = 64 on, slope and curvature of the balanced logistic loss are at most e^-64."""

_GRID = 513
_ROUNDS = 8
"""`within` looks for the worst point on a grid, and `_ROUNDS` times again around it."""

_T = TypeVar("_T", bound="_ObjectivePerturbation")
_Floats: TypeAlias = npt.NDArray[np.float64]
_Function: TypeAlias = Callable[[arb], tuple[arb, arb]]
"""A function and its derivative, on balls."""


@lru_cache(maxsize=64)
def _logistic(noise: Fraction, lam: Fraction, a: Fraction) -> Fraction:
    """Return ε'/2 + sup_u [(ε'/2) e^-u + ln(1 + e^-u u²/((u² + a²) Λ))], rounded up."""
    with precision(_BITS):
        half, strength, square = ball(noise / 2), ball(lam), ball(a * a)

        def function(u: arb) -> tuple[arb, arb]:
            """Return the expression in brackets at u, and its derivative."""
            slope, squared = (-u).exp(), u * u
            share = squared / (squared + square)
            curvature = slope * share
            steeper = 2 * u * square / (squared + square) ** 2
            derivative = (slope * steeper - curvature) / (strength + curvature) - half * slope
            return half * slope + (curvature / strength).log1p(), derivative

        last_slope = (-arb(_FAR)).exp()
        tail = to_float_up(half * last_slope + last_slope / strength)
        return noise / 2 + Fraction(max(tail, _supremum(function, 0.0, _FAR)))


@lru_cache(maxsize=64)
def _huber(noise: Fraction, lam: Fraction) -> Fraction:
    """Return ε'/2 + sup_t [(ε'/2) sin πt + ln(1 + cos³ πt / Λ)], rounded up.

    The pseudo-Huber loss √(1 + r²) - 1 has slope sin πt and curvature cos³ πt at r = tan πt.
    """
    with precision(_BITS):
        half, strength = ball(noise / 2), ball(lam)

        def function(t: arb) -> tuple[arb, arb]:
            """Return the expression in brackets at t, and its derivative."""
            sine, cosine = t.sin_cos_pi()
            curvature = cosine**3
            derivative = half * cosine - 3 * cosine**2 * sine / (strength + curvature)
            return half * sine + (curvature / strength).log1p(), derivative * arb.pi()

        return noise / 2 + Fraction(_supremum(function, 0.0, 0.5))


@lru_cache(maxsize=64)
def _softmax(noise: Fraction, lam: Fraction, classes: int) -> Fraction:
    """Return ε'/2 + sup_t [(ε'/2) √(1 - t/2) + (C-1) ln(1 + t/((C-1) Λ))], 0 <= t <= 1 - 1/C.

    t is the trace of diag(p) - ppᵀ. Rounded up.
    """
    with precision(_BITS):
        half, strength, others = ball(noise / 2), ball(lam), classes - 1

        def function(t: arb) -> tuple[arb, arb]:
            slope = (1 - t / 2).sqrt()
            derivative = 1 / (strength + t / others) - half / (4 * slope)
            return half * slope + others * (t / (others * strength)).log1p(), derivative

        return noise / 2 + Fraction(_supremum(function, 0.0, _trace_bound(classes)))


def _trace_bound(classes: int) -> float:
    """Return 1 - 1/C, rounded up: a larger interval only adds to a supremum."""
    return math.nextafter(1 - 1 / classes, 1)


def _supremum(function: _Function, low: float, high: float) -> float:
    """Return an upper bound on the supremum over [low, high], by bisection with mean values.

    On a box f <= f(middle) + |f'(box)| · half its width. A box is finished once this bound is
    hardly above a value that f certainly takes (`floor`); the result is the largest bound.
    """
    floor, ceiling = -math.inf, -math.inf
    boxes, examined = [(low, high)], 0
    while boxes:
        left, right = boxes.pop()
        examined += 1
        middle, radius = (left + right) / 2, (right - left) / 2
        center = function(arb(middle))[0]
        value, slope = function(arb(middle, radius))
        spread = center + slope * arb(0, radius)
        bound = min(to_float_up(value), to_float_up(spread))
        floor = max(floor, to_float_down(center))
        close = bound <= floor + abs(floor) * _CLOSE
        if close or radius < _NARROWEST or examined > _MAX_BOXES:
            ceiling = max(ceiling, bound)
        else:
            boxes += [(left, middle), (middle, right)]
    return ceiling


@dataclass(frozen=True, kw_only=True, slots=True)
class _ObjectivePerturbation(PureTheorem):
    """The real minimizer of a regularized loss with K-norm noise in the objective."""

    section = "C9"
    replace_only = True
    real_valued = True
    costly = True

    noise_epsilon: Positive
    strength: Positive

    @property
    @abstractmethod
    def high(self) -> float:
        """The end of the interval over which the supremum is taken."""

    @abstractmethod
    def parts(self, points: _Floats) -> tuple[_Floats, _Floats]:
        """Return slope q and charge ln det in floats, at points from 0 to `high`."""

    def within(self: _T, epsilon: Rational) -> _T:
        """Return the theorem with nearly the largest ε' whose certified cost is at most ε.

        That ε' is inf 2(ε - charge)/(1 + q). Floats propose it, on ever finer grids around the
        worst point; `cost` decides.

        >>> one = Fraction(1)
        >>> fit = HuberObjectivePerturbation(noise_epsilon=one, strength=one).within(2)
        >>> round(float(fit.noise_epsilon), 3)
        1.983
        """
        target = as_positive(epsilon, "epsilon")
        left, right, noise = 0.0, self.high, math.inf
        for _ in range(_ROUNDS):
            points = np.linspace(left, right, _GRID)
            slope, charge = self.parts(points)
            allowed = 2 * (float(target) - charge) / (1 + slope)
            worst = int(np.argmin(allowed))
            noise = min(noise, float(allowed[worst]))
            left, right = points[max(worst - 1, 0)], points[min(worst + 1, _GRID - 1)]
        shrink = 2.0**-38
        while noise > 0 and shrink < 1:
            proposed = Fraction(noise * (1 - shrink))
            if proposed > 0:
                fit = replace(self, noise_epsilon=proposed)
                if fit.cost(Neighbors.REPLACE) <= target:
                    return fit
            shrink *= 16
        raise GuaranteeError(
            "regularization this weak costs more than epsilon by itself (theorem C9): raise the "
            "strength or epsilon."
        )


@value
class LogisticObjectivePerturbation(_ObjectivePerturbation):
    """With the balanced logistic loss."""

    label = "logistic-objective-perturbation"
    sentence = (
        "the balanced logistic loss of roundness {roundness}, regularized with strength "
        "{strength}, is minimized with K-norm noise of rate {noise_epsilon} in the objective: "
        "pure DP."
    )

    roundness: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return ε'/2 and the supremum over margins; the margin shift does not enter."""
        return _logistic(self.noise_epsilon, self.strength, self.roundness)

    @property
    def high(self) -> float:
        """The margin beyond which slope and curvature are negligible."""
        return _FAR

    def parts(self, points: _Floats) -> tuple[_Floats, _Floats]:
        """Return e^-u and ln(1 + e^-u u²/((u² + a²) Λ))."""
        square, slope = float(self.roundness) ** 2, np.exp(-points)
        share = slope * points * points / (points * points + square)
        return slope, np.log1p(share / float(self.strength))


@value
class HuberObjectivePerturbation(_ObjectivePerturbation):
    """With the pseudo-Huber loss."""

    label = "huber-objective-perturbation"
    sentence = (
        "the pseudo-Huber loss, regularized with strength {strength}, is minimized with K-norm "
        "noise of rate {noise_epsilon} in the objective: pure DP."
    )

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return ε'/2 and the supremum over residuals."""
        return _huber(self.noise_epsilon, self.strength)

    @property
    def high(self) -> float:
        """The t at which the residual tan πt is infinite."""
        return 0.5

    def parts(self, points: _Floats) -> tuple[_Floats, _Floats]:
        """Return sin πt and ln(1 + cos³ πt / Λ)."""
        curvature = np.maximum(np.cos(np.pi * points), 0.0) ** 3
        return np.sin(np.pi * points), np.log1p(curvature / float(self.strength))


@value
class SoftmaxObjectivePerturbation(_ObjectivePerturbation):
    """With the softmax loss."""

    label = "softmax-objective-perturbation"
    sentence = (
        "the softmax loss of {classes} classes, regularized with strength {strength}, is "
        "minimized with K-norm noise of rate {noise_epsilon} in the objective: pure DP."
    )

    classes: Annotated[int, integers(2, 10**9)]

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return ε'/2 and the supremum over traces."""
        return _softmax(self.noise_epsilon, self.strength, self.classes)

    @property
    def high(self) -> float:
        """The largest trace."""
        return _trace_bound(self.classes)

    def parts(self, points: _Floats) -> tuple[_Floats, _Floats]:
        """Return √(1 - t/2) and (C-1) ln(1 + t/((C-1) Λ))."""
        others = self.classes - 1
        charge = others * np.log1p(points / (others * float(self.strength)))
        return np.sqrt(1 - points / 2), charge


# -- Noise on XᵀX, Xᵀy and perhaps the smallest eigenvalue (theory A9, C6, C10.5) -----------------
# Integer rows with ‖x‖² <= A, |y| <= Y. In the norm ‖E₁‖_F²/A² + ‖E₂‖²/(A·Y²) + (e/A)² the joint
# shift of (XᵀX, Xᵀy, λ_min) is at most √(16/3) between replace-one neighbors, √(9/2) without
# λ_min.

HALF_ROOT = Fraction(math.isqrt(1 << 127) + 1, 1 << 64)
"""1/√2, rounded up at the 64th binary place."""


@value
class GaussianSufficientStatistics(BaseTheorem):
    """Gaussian noise of m² on XᵀX, Xᵀy and perhaps the smallest eigenvalue: μ² = c₀/m².

    In the weighted norm above: variance (mA)² on the diagonal of XᵀX, (mA)²/2 off it, m²A·Y² on
    Xᵀy, (mA)² on λ_min.
    """

    label = "gaussian-sufficient-statistics"
    section = "C6"
    sentence = (
        "Gaussian noise of squared multiplier {multiplier_squared}, exactly rounded, on XᵀX and "
        "Xᵀy of integer rows of squared norm at most {row_bound_squared}: Gaussian DP."
    )

    row_bound_squared: Cells
    multiplier_squared: Positive
    eigenvalue: Bit

    def sensitivity_squared(self, neighbors: Neighbors) -> Fraction:
        """Return c₀: 9/2 (replace) or 2 (add-remove); with the eigenvalue 16/3 or 3, plus 2u + u².

        The eigenvalue is queried as an integer: rounding adds 1 to its sensitivity A, u = 1/A.
        """
        replaced = neighbors is Neighbors.REPLACE
        if not self.eigenvalue:
            return Fraction(9, 2) if replaced else Fraction(2)
        rounding = Fraction(1, self.row_bound_squared)
        return (Fraction(16, 3) if replaced else Fraction(3)) + 2 * rounding + rounding**2

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        mu_squared = self.sensitivity_squared(neighbors) / self.multiplier_squared
        return GaussianDP(mu_squared=mu_squared, neighbors=neighbors)


@value
class KNormSufficientStatistics(PureTheorem):
    """K-norm noise on XᵀX and Xᵀy: ε = (2 + κ)/(√2·b), 1/√2 rounded up.

    In the norm ‖E₁‖_F²/A² + κ‖E₂‖²/(A·Y²), κ in [1, 2], replacing one row moves the pair by at
    most (2 + κ)/√2; the noise has density ∝ exp(-‖·‖/b). That is a vector z of independent density
    exp(-‖z‖₂/b) times A on the diagonal of XᵀX, A/√2 beside it, Y√(A/κ) on Xᵀy, or times more.
    """

    label = "k-norm-sufficient-statistics"
    section = "C10.5"
    sentence = (
        "K-norm noise of scale {scale}, exactly rounded, on XᵀX and Xᵀy of integer rows, in the "
        "norm that weighs Xᵀy {target_weight} times: pure DP."
    )
    replace_only = True

    target_weight: Annotated[Fraction, between(1, 2, ends="[]")]
    scale: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return (2 + κ)/(√2·b)."""
        return (2 + self.target_weight) * HALF_ROOT / self.scale
