"""Define claims about mechanisms, the profile ln δ(ε) that each proves, and calibration (B6).

Each claim holds exact public numbers. `log_delta(epsilon)` and `epsilon(log_delta)` are rounded
toward less privacy, so they may be quoted; δ itself is never formed, because the interesting ones
(e^-50 … e^-1000000) do not fit a float.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from zerodelta.errors import ParameterError, require
from zerodelta.exact.logs import ball, gaussian_log_delta_upper, log_sum_upper, upper
from zerodelta.exact.rational import Rational, as_positive, number_text
from zerodelta.privacy.parameters import (
    Neighbors,
    as_at_least_zero,
    as_epsilon,
    as_flag,
    as_log_delta,
    as_relation,
    log_of_delta,
    sum_upper,
)
from zerodelta.privacy.renyi import (
    Curve,
    FunctionCurve,
    TableCurve,
    best_order,
    log_delta_at_order,
    saturated,
    zcdp_log_delta,
)
from zerodelta.value import value

# -- The point at which a certified bound crosses its target, searched from the safe side ---------
# Only points at which the bound itself was evaluated and met the target are returned, so a search
# that converges badly costs accuracy and never privacy.


def excess_over(value: float, target: float) -> float:
    """Return value - target without the NaN of equal infinities; at most 0 means "met".

    >>> excess_over(-math.inf, -math.inf), excess_over(-2.0, -3.0)
    (0.0, 1.0)
    """
    return 0.0 if value == target else value - target


def safe_end(
    excess: Callable[[float], float], *, safe: float, unsafe: float, relative: float = 0.0
) -> float:
    """Return a float with ``excess <= 0`` within `relative` of one with ``excess > 0``.

    `safe` and `unsafe` are non-negative floats on the two sides of the crossing, in either order;
    with ``relative=0`` the result and the nearest unsafe point are adjacent floats.

    >>> safe_end(lambda x: 2 - x * x, safe=2.0, unsafe=0.0)
    1.4142135623730951
    """
    at_safe, at_unsafe = excess(safe), excess(unsafe)
    if at_safe > 0:
        raise ValueError(f"excess({safe!r}) = {at_safe!r} is not on the safe side")
    slow = False
    while not _near(safe, unsafe, relative):
        width = abs(unsafe - safe)
        trial = _middle(safe, unsafe) if slow else _secant(safe, at_safe, unsafe, at_unsafe)
        value = excess(trial)
        # Illinois: the end that stays is weighed down, so that the other one moves next
        if value <= 0:
            safe, at_safe, at_unsafe = trial, value, at_unsafe / 2
        else:
            unsafe, at_unsafe, at_safe = trial, value, at_safe / 2
        slow = not slow and abs(unsafe - safe) > width / 4
    return safe


def _near(safe: float, unsafe: float, relative: float) -> bool:
    adjacent = math.nextafter(safe, unsafe)
    return adjacent == unsafe or abs(unsafe - safe) <= relative * max(safe, unsafe)


def _secant(safe: float, at_safe: float, unsafe: float, at_unsafe: float) -> float:
    """Return where the chord crosses zero, or the middle where there is no chord."""
    rise = at_unsafe - at_safe
    if math.isfinite(rise) and math.isfinite(unsafe) and rise > 0:
        trial = safe - at_safe * ((unsafe - safe) / rise)
        if min(safe, unsafe) < trial < max(safe, unsafe):
            return trial
    return _middle(safe, unsafe)


def _middle(one: float, other: float) -> float:
    """Halve the number of floats between the two: 64 halvings end any search."""
    middle: float = struct.unpack("<d", struct.pack("<q", (_ordinal(one) + _ordinal(other)) // 2))[
        0
    ]
    return middle


def _ordinal(value: float) -> int:
    ordinal: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return ordinal


# -- Claims ---------------------------------------------------------------------------------------


class Claim(ABC):
    """A promise about a mechanism's output on every pair of neighboring datasets."""

    __slots__ = ()

    neighbors: Neighbors

    @abstractmethod
    def log_delta(self, epsilon: Rational) -> float:
        """Return a float at least ln δ(ε), in [-inf, 0]: the mechanism is (ε, δ(ε))-DP."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Return "kind" and the exact numbers from which `claim_from_numbers` restores this."""

    def epsilon(self, log_delta: float) -> float:
        """Return a float ε, rounded up, with ``self.log_delta(ε) <= log_delta``; inf if none.

        >>> from zerodelta.privacy.claims import GaussianDP, PureDP
        >>> PureDP("1/2").epsilon(-math.inf), GaussianDP(1).epsilon(-math.inf)
        (0.5, inf)
        """
        require(
            log_delta <= 0,
            "log_delta",
            log_delta,
            "a logarithm of a probability, at most 0",
            "pass ln δ, such as -30.0, not δ",
        )  # also NaN

        def excess(epsilon: float) -> float:
            return excess_over(self.log_delta(epsilon), log_delta)

        if excess(0.0) <= 0:
            return 0.0
        unsafe, safe = 0.0, 1.0
        while excess(safe) > 0:
            unsafe, safe = safe, 4 * safe * safe
            if math.isinf(safe):
                return math.inf
        return safe_end(excess, safe=safe, unsafe=unsafe)

    def __repr__(self) -> str:
        numbers = self.numbers()
        del numbers["kind"]
        shown = ", ".join(f"{name}={_text(value)}" for name, value in numbers.items())
        return f"{type(self).__name__}({shown}, neighbors={self.neighbors.value})"


def _text(value: Any) -> str:
    return number_text(value) if isinstance(value, (int, Fraction)) else str(value)


_set = object.__setattr__
"""How the constructor of a frozen claim stores its checked numbers."""


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class PureDP(Claim):
    """ε-differential privacy, δ = 0: what every release of this library satisfies.

    Parameters
    ----------
    epsilon : int, float, Fraction or str
        The privacy parameter, kept exactly; "1/10" is a tenth.
    bounded_range : bool
        Marks an exponential-mechanism step (Gumbel noise): ln P/P' then lies in an interval of
        length ε, and the step costs ε²/8 instead of ε·tanh(ε/2) inside zCDP (theory R2). Never set
        it for permute-and-flip, Laplace or any other pure step.
    neighbors : Neighbors
        The neighboring relation that the claim is for.

    Examples
    --------
    >>> PureDP("1/10").log_delta("1/10"), PureDP(1).log_delta(0)
    (-inf, -0.7719368329053047)

    """

    exact_epsilon: Fraction
    bounded_range: bool
    neighbors: Neighbors

    def __init__(
        self,
        epsilon: Rational,
        *,
        bounded_range: bool = False,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        _set(self, "exact_epsilon", as_epsilon(epsilon))
        _set(self, "bounded_range", as_flag(bounded_range, "bounded_range"))
        _set(self, "neighbors", as_relation(neighbors))

    def log_delta(self, epsilon: Rational) -> float:
        """Return -inf from ε on; below it, the worst pair of distributions, exactly.

        That is randomized response, (e^ε - e^t)/(1 + e^ε), and for a bounded range
        (1 - e^((t-ε)/2))²/(1 - e^-ε): (e^X - e^t)⁺ is convex in e^X, so two values of X suffice.
        """
        t, stated = as_epsilon(epsilon), self.exact_epsilon
        if t >= stated:
            return -math.inf
        if self.bounded_range:
            half = (t - stated) / 2
            value = upper(lambda: 2 * (-ball(half).expm1()).log() - (-ball(-stated).expm1()).log())
        else:
            value = upper(lambda: _log_leak(t, stated))
        return min(value, 0.0)

    def numbers(self) -> dict[str, Any]:
        """Return kind "pure", epsilon, and bounded_range as 0 or 1."""
        return {
            "kind": "pure",
            "epsilon": self.exact_epsilon,
            "bounded_range": int(self.bounded_range),
        }


def _log_leak(t: Fraction, epsilon: Fraction) -> Any:
    """Return ln((e^ε - e^t)/(1 + e^ε)) for t < ε, scaled by e^-ε so that nothing overflows."""
    return (-ball(t - epsilon).expm1()).log() - (-ball(epsilon)).exp().log1p()


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class ApproxDP(Claim):
    """(ε, δ)-differential privacy, δ given by its logarithm.

    Parameters
    ----------
    epsilon : int, float, Fraction or str
        The privacy parameter, kept exactly.
    log_delta : float
        ln δ, such as -100.0: it never underflows.
    delta : number or str
        δ instead of its logarithm, which is rounded up. ``delta=0.0`` is refused: a δ below 5e-324
        underflows to it, and it would then read as pure.
    neighbors : Neighbors
        The neighboring relation that the claim is for.

    Examples
    --------
    >>> ApproxDP(1, -100.0).log_delta(1), ApproxDP(1, delta=1e-12).log_delta(2)
    (-100.0, -27.631021115928547)

    """

    exact_epsilon: Fraction
    exact_log_delta: float
    neighbors: Neighbors

    def __init__(
        self,
        epsilon: Rational,
        log_delta: float | None = None,
        *,
        delta: Rational | None = None,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        if (log_delta is None) == (delta is None):
            raise ParameterError(
                "log_delta",
                log_delta,
                expected="exactly one of log_delta and delta",
                remedy="pass log_delta=-30.0 or delta=1e-13",
            )
        stated = as_log_delta(log_delta) if delta is None else log_of_delta(delta)
        _set(self, "exact_epsilon", as_epsilon(epsilon))
        _set(self, "exact_log_delta", stated)
        _set(self, "neighbors", as_relation(neighbors))

    def log_delta(self, epsilon: Rational) -> float:
        """Return ln δ from ε on; below it ln(δ r + 1 - r), r = (1 + e^t)/(1 + e^ε), the worst pair.

        Every (ε, δ) pair is post-processing of "reveal with probability δ, else randomized
        response", whose profile this is.
        """
        t, stated = as_epsilon(epsilon), self.exact_epsilon
        if t >= stated:
            return self.exact_log_delta
        log_ratio = upper(
            lambda: ball(t - stated) + (-ball(t)).exp().log1p() - (-ball(stated)).exp().log1p()
        )
        leak = upper(lambda: _log_leak(t, stated))
        return min(log_sum_upper((leak, sum_upper(self.exact_log_delta, log_ratio))), 0.0)

    def numbers(self) -> dict[str, Any]:
        """Return kind "approximate", epsilon and log_delta."""
        return {
            "kind": "approximate",
            "epsilon": self.exact_epsilon,
            "log_delta": self.exact_log_delta,
        }


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class GaussianDP(Claim):
    """μ-Gaussian differential privacy: no easier to attack than N(0,1) against N(μ,1).

    Adding N(0, σ²) noise to a query of l2 sensitivity Δ is μ = Δ/σ, exactly; so is our rounded
    noise (theory R). Steps compose in quadrature. By Lemma R2 a GaussianDP of the *planned* total
    holds for the whole transcript even when the shares μ_i² are chosen adaptively from earlier
    answers, as long as they never add up to more than `mu_squared`.

    Parameters
    ----------
    mu : int, float, Fraction or str
        The parameter μ; pass this or its square.
    mu_squared : int, float, Fraction or str
        μ², which stays exact where μ is a root.
    neighbors : Neighbors
        The neighboring relation that the claim is for.

    Examples
    --------
    >>> GaussianDP("1/10").log_delta(1), GaussianDP(mu_squared="1/100") == GaussianDP("1/10")
    (-57.35693372483395, True)

    """

    mu_squared: Fraction
    neighbors: Neighbors

    def __init__(
        self,
        mu: Rational | None = None,
        *,
        mu_squared: Rational | None = None,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        if mu is not None and mu_squared is None:
            square = as_at_least_zero(mu, "mu") ** 2
        elif mu_squared is not None and mu is None:
            square = as_at_least_zero(mu_squared, "mu_squared")
        else:
            raise ParameterError(
                "mu", mu, expected="exactly one of mu and mu_squared", remedy="pass one of them"
            )
        _set(self, "mu_squared", square)
        _set(self, "neighbors", as_relation(neighbors))

    def log_delta(self, epsilon: Rational) -> float:
        """Return the exact Gaussian profile, rounded up (theory B6)."""
        return min(gaussian_log_delta_upper(self.mu_squared, as_epsilon(epsilon)), 0.0)

    def numbers(self) -> dict[str, Any]:
        """Return kind "gaussian" and mu_squared."""
        return {"kind": "gaussian", "mu_squared": self.mu_squared}


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class ZCDP(Claim):
    """ρ-zero-concentrated differential privacy: R(a) ≤ ρ·a at every order a > 1.

    Parameters
    ----------
    rho : int, float, Fraction or str
        The parameter ρ, kept exactly.
    neighbors : Neighbors
        The neighboring relation that the claim is for.

    Examples
    --------
    >>> ZCDP("1/200").log_delta(1)
    -55.11136691684097

    """

    rho: Fraction
    neighbors: Neighbors

    def __init__(self, rho: Rational, *, neighbors: Neighbors = Neighbors.REPLACE) -> None:
        _set(self, "rho", as_at_least_zero(rho, "rho"))
        _set(self, "neighbors", as_relation(neighbors))

    def log_delta(self, epsilon: Rational) -> float:
        """Return the bound of the best order, rounded up (theory B6)."""
        return zcdp_log_delta(self.rho, as_epsilon(epsilon))

    def numbers(self) -> dict[str, Any]:
        """Return kind "zcdp" and rho."""
        return {"kind": "zcdp", "rho": self.rho}


_DEFAULT_ORDERS = tuple(Fraction(2**power) for power in range(1, 11))


@final
@dataclass(frozen=True, init=False, repr=False, slots=True)
class RDP(Claim):
    """Rényi differential privacy: R(order) for the orders of a table, or by a function.

    Parameters
    ----------
    curve : dict or callable
        ``{order: value}``, or a function of the order; values are taken as upper bounds. The best
        orders are about -2 ln δ/ε: with ln δ = -1000 a table that ends at 256 proves little.
    integer_orders : bool
        Whether the function gets integer orders, as ints; floats by default.
    neighbors : Neighbors
        The neighboring relation that the claim is for.

    Examples
    --------
    >>> RDP(lambda order: order / 200).log_delta(1)
    -55.111366916840964

    """

    curve: Curve
    neighbors: Neighbors
    _used: dict[Fraction, Fraction] = field(compare=False)

    def __init__(
        self,
        curve: Curve | Mapping[Any, Rational] | Callable[[Any], Any],
        *,
        integer_orders: bool = False,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> None:
        if isinstance(curve, Mapping):
            curve = TableCurve.of(curve)
        elif callable(curve):
            curve = FunctionCurve(curve, integer_orders)
        elif not isinstance(curve, Curve):
            raise ParameterError(
                "curve",
                curve,
                expected="a function of the order, or a table {order: value}",
                remedy="pass for example lambda order: order * rho",
            )
        _set(self, "curve", curve)
        _set(self, "neighbors", as_relation(neighbors))
        _set(self, "_used", {})

    def at(self, order: Fraction) -> Fraction | None:
        """Return the bound on R(order), if there is one, and remember it for `numbers`."""
        value = self.curve.value(order)
        if value is not None:
            self._used[order] = value
        return value

    def log_delta(self, epsilon: Rational) -> float:
        """Return the bound at the best order that the search finds, rounded up (theory B6)."""
        t = as_epsilon(epsilon)
        order = best_order(self.curve, t)
        divergence = self.at(order)
        return 0.0 if divergence is None else log_delta_at_order(order, divergence, t)

    def numbers(self) -> dict[str, Any]:
        """Return kind "rdp", and a table: its own, or the orders that earlier answers rested on.

        So a claim restored from the numbers proves every `log_delta` that this one has returned.
        """
        return {"kind": "rdp", **self.table()}

    def table(self) -> dict[str, list[Fraction]]:
        """Return the lists "orders" and "values" of `numbers`."""
        orders = self.curve.candidates()
        if orders is not None or not self._used:
            for order in orders or _DEFAULT_ORDERS:
                self.at(order)
        bounds = sorted(self._used.items())
        return {"orders": [order for order, _ in bounds], "values": [bound for _, bound in bounds]}


# -- Calibration ----------------------------------------------------------------------------------
# The largest ρ and μ², and the smallest noise, that meet a target (ε, ln δ): the inverse of
# `ZCDP.log_delta` and `GaussianDP.log_delta` (theory B6). The returned numbers were put through
# the claim itself and met the target.

_RELATIVE = 1e-12


@value
class Calibration:
    """The largest internal privacy loss for which ln δ(ε) is at most the target.

    Parameters
    ----------
    epsilon, log_delta : Fraction, float
        The target.
    rho : Fraction
        The largest zCDP parameter.
    mu_squared : Fraction
        The largest μ² as Gaussian DP (more, because it says more).
    variance : Fraction or None
        The noise σ² that one Gaussian step of the stated sensitivity needs; None without one.

    """

    epsilon: Fraction
    log_delta: float
    rho: Fraction
    mu_squared: Fraction
    variance: Fraction | None


def calibrate(
    *, epsilon: Rational, log_delta: float, sensitivity: Rational | None = None
) -> Calibration:
    """Return the largest ρ and μ², and the smallest σ², that meet ln δ(`epsilon`) ≤ `log_delta`.

    Use it to plan a mechanism of your own; `zd.plan` calibrates and chooses a channel too.

    Parameters
    ----------
    epsilon : int, float, Fraction or str
        The ε at which δ is bounded.
    log_delta : float
        The largest ln δ(ε) allowed, below 0.
    sensitivity : number, optional
        The l2 sensitivity of one Gaussian step; k equal steps need k times the variance.

    Returns
    -------
    Calibration
        Its `rho`, `mu_squared` and `variance` meet the target, and are within a relative 1e-9 of
        the optimum of their conversion.

    Examples
    --------
    >>> plan = calibrate(epsilon=1, log_delta=-100.0, sensitivity=2)
    >>> round(float(plan.variance), 2)
    733.97
    >>> GaussianDP(mu_squared=4 / plan.variance).log_delta(1) <= -100.0
    True

    """
    t, target = as_positive(epsilon, "epsilon"), as_log_delta(log_delta)
    # wider limits than those of a release: a plan may calibrate to a small part of its ε
    expected = "a number between 1e-100 and 1e6"
    require(Fraction(1, 10**100) <= t <= 10**6, "epsilon", epsilon, expected, "pass epsilon=1, say")
    require(
        target != 0,
        "log_delta",
        log_delta,
        "a logarithm below 0 (δ = 1 allows everything)",
        "pass ln δ, such as -30.0",
    )
    return _calibrated(
        t, target, None if sensitivity is None else as_positive(sensitivity, "sensitivity")
    )


@lru_cache(maxsize=1024)
def _calibrated(epsilon: Fraction, target: float, sensitivity: Fraction | None) -> Calibration:
    mu_squared = _largest(lambda value: GaussianDP(mu_squared=value), epsilon, target)
    return Calibration(
        epsilon=epsilon,
        log_delta=target,
        rho=_largest(ZCDP, epsilon, target),
        mu_squared=mu_squared,
        variance=None
        if sensitivity is None
        else _variance(sensitivity, mu_squared, epsilon, target),
    )


def _largest(claim: Callable[[Fraction], Claim], epsilon: Fraction, target: float) -> Fraction:
    """Return a rational, largest up to rounding, whose claim meets the target."""

    def excess(value: float) -> float:
        return claim(Fraction(value)).log_delta(epsilon) - target

    # with ℓ = -ln δ small δ give μ ≈ √(2ℓ+2t) - √(2ℓ) and √ρ ≈ √(ℓ+t) - √ℓ, which differ by a
    # factor of √2; both are written as t/(√(ℓ+t) + √ℓ), where nothing cancels
    t = saturated(epsilon)
    guess = (t / (math.sqrt(t - target) + math.sqrt(-target))) ** 2
    safe = unsafe = guess
    while excess(safe) > 0:
        unsafe, safe = safe, safe / 2
    while excess(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe * 2
    return Fraction(safe_end(excess, safe=safe, unsafe=unsafe, relative=_RELATIVE))


def _variance(
    sensitivity: Fraction, mu_squared: Fraction, epsilon: Fraction, target: float
) -> Fraction:
    """Return Δ²/μ² rounded up to a float, whose fraction is short in a certificate."""
    squared = sensitivity**2
    variance = upper(lambda: ball(squared / mu_squared))
    remedy = "pass a smaller one, or a larger log_delta"
    require(math.isfinite(variance), "sensitivity", sensitivity, "noise of finite scale", remedy)
    # Δ²/σ² is at most the μ² that was checked, but its certified bound may round one float higher
    while GaussianDP(mu_squared=squared / Fraction(variance)).log_delta(epsilon) > target:
        variance = math.nextafter(variance, math.inf)
    return Fraction(variance)
