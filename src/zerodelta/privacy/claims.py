"""What a mechanism is claimed to satisfy, and the profile ln δ(ε) that this proves (theory B6).

Each claim holds exact public numbers. `log_delta(epsilon)` and `epsilon(log_delta)` are rounded
toward less privacy, so they may be quoted; δ itself is never formed, because the interesting ones
(e^-50 … e^-1000000) do not fit a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.logs import gaussian_log_delta_upper, log_sum_upper
from zerodelta.exact.rational import Rational
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import (
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
    zcdp_log_delta,
)

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
        kept = upper(
            lambda: ball(t - stated) + (-ball(t)).exp().log1p() - (-ball(stated)).exp().log1p()
        )
        leak = upper(lambda: _log_leak(t, stated))
        return min(log_sum_upper((leak, sum_upper(self.exact_log_delta, kept))), 0.0)

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
        """Return the bound of the best order found, rounded up (theory B6)."""
        t = as_epsilon(epsilon)
        order = best_order(self.curve, t)
        divergence = self.at(order)
        return 0.0 if divergence is None else log_delta_at_order(order, divergence, t)

    def numbers(self) -> dict[str, Any]:
        """Return kind "rdp", and a table: its own, or the orders that earlier answers rested on.

        So a claim restored from the numbers proves every `log_delta` that this one was asked for.
        """
        return {"kind": "rdp", **self.table()}

    def table(self) -> dict[str, list[Fraction]]:
        """Return the lists "orders" and "values" of `numbers`."""
        orders = self.curve.candidates()
        if orders is not None or not self._used:
            for order in orders or _DEFAULT_ORDERS:
                self.at(order)
        known = sorted(self._used.items())
        return {"orders": [row[0] for row in known], "values": [row[1] for row in known]}
