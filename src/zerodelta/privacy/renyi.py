"""Define Rényi curves R(order), and the profile ln δ(t) that each of their orders proves (B6).

Every order a > 1 gives a valid bound, so the order is chosen in floats, and only the bound at the
chosen order is evaluated rigorously. The divergence grows with the order, so a curve that is known
at some orders only uses, at any other order, its value at the next larger one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import require
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_rational

_LARGEST_ORDER = 1e18


class Curve(ABC):
    """An upper bound on the Rényi divergence of neighboring outputs, by order."""

    __slots__ = ()

    integer: bool = False
    """Whether the curve is known at integer orders only."""
    largest: float = _LARGEST_ORDER
    """The largest order at which the curve is evaluated."""

    @abstractmethod
    def value(self, order: Fraction) -> Fraction | None:
        """Return a certified bound on R(order), order > 1; None if no bound is known."""

    def estimate(self, order: float) -> float:
        """Return R(order) in floats, for choosing an order only."""
        value = self.value(Fraction(order))
        return math.inf if value is None else saturated(value)

    def candidates(self) -> tuple[Fraction, ...] | None:
        """Return the orders at which the curve is tabulated; None for a curve without a table."""
        return None


@final
@dataclass(frozen=True, slots=True)
class LinearCurve(Curve):
    """R(a) = ρ·a: zero-concentrated differential privacy."""

    rho: Fraction

    def value(self, order: Fraction) -> Fraction:
        """Return ρ·a, exactly."""
        return self.rho * order

    def estimate(self, order: float) -> float:
        """Return ρ·a."""
        return saturated(self.rho) * order


@final
@dataclass(frozen=True, slots=True)
class PureCurve(Curve):
    """`count` pure ε-DP steps: the curve of randomized response, tight, at most ε (theory B6).

    A bounded-range step (exponential mechanism) also satisfies ε²a/8 (theory R2); the smaller of
    the two bounds is used.
    """

    epsilon: Fraction
    bounded_range: bool
    count: int

    def value(self, order: Fraction) -> Fraction:
        """Return count · R(order), rounded up."""
        if self.epsilon == 0:
            return Fraction(0)
        exact = Fraction(upper(lambda: _randomized_response(self.epsilon, order)))
        if self.bounded_range:
            exact = min(exact, order * self.epsilon**2 / 8)
        return self.count * min(exact, self.epsilon)

    def estimate(self, order: float) -> float:
        """Return count · R(order) in floats."""
        epsilon = saturated(self.epsilon)
        drop = math.log1p(math.exp(-epsilon)) - math.log1p(math.exp(-(2 * order - 1) * epsilon))
        value = epsilon - drop / (order - 1)
        if self.bounded_range:
            value = min(value, order * epsilon * epsilon / 8)
        return self.count * max(value, 0.0)


def _randomized_response(epsilon: Fraction, order: Fraction) -> Any:
    """Return ε - ln((1 + e^-ε)/(1 + e^-(2a-1)ε))/(a-1)."""
    first, second = (-ball(epsilon)).exp(), (-ball((2 * order - 1) * epsilon)).exp()
    return ball(epsilon) - (first.log1p() - second.log1p()) / ball(order - 1)


def pure_rho(epsilon: Fraction, bounded_range: bool) -> Fraction:
    """Return ρ such that a pure ε-DP step is ρ-zCDP (theory R2): ε·tanh(ε/2), or ε²/8.

    >>> pure_rho(Fraction(1), True), float(pure_rho(Fraction(1), False))
    (Fraction(1, 8), 0.4621171572600098)
    """
    if bounded_range:
        return epsilon**2 / 8
    return Fraction(upper(lambda: ball(epsilon) * ball(epsilon / 2).tanh()))


@final
@dataclass(frozen=True, slots=True)
class TableCurve(Curve):
    """A curve known at finitely many orders above 1, in increasing order."""

    orders: tuple[Fraction, ...]
    values: tuple[Fraction, ...]

    @staticmethod
    def of(table: Mapping[Any, Rational]) -> TableCurve:
        """Return the curve of ``{order: value}``, refusing orders of at most 1 and values below 0.

        >>> TableCurve.of({2: "1/2", 1.5: 0.25}).orders
        (Fraction(3, 2), Fraction(2, 1))
        """
        return table_of(list(table.keys()), list(table.values()))

    def value(self, order: Fraction) -> Fraction | None:
        """Return the value at the smallest tabulated order >= `order`; None beyond the table."""
        index = bisect_left(self.orders, order)
        return self.values[index] if index < len(self.orders) else None

    def candidates(self) -> tuple[Fraction, ...]:
        """Return the tabulated orders."""
        return self.orders


def table_of(orders: Any, values: Any) -> TableCurve:
    """Return the curve with these two lists as its table."""
    table = {}
    if isinstance(orders, list) and isinstance(values, list) and len(orders) == len(values):
        pairs = zip(orders, values, strict=True)
        table = {_order(order): _divergence(value) for order, value in pairs}
    require(
        table and len(table) == len(orders),
        "orders",
        orders,
        "a list of at least one order, each of them once, and as many values",
        "pass {order: divergence}, such as {2: 0.1, 8: 0.4}",
    )
    ordered = sorted(table)
    return TableCurve(tuple(ordered), tuple(table[order] for order in ordered))


@final
@dataclass(frozen=True, slots=True)
class FunctionCurve(Curve):
    """A caller's function of a float order, or of an int if only integer orders are known."""

    function: Callable[[Any], Any]
    integer: bool = False

    def value(self, order: Fraction) -> Fraction | None:
        """Return the function at the order rounded up; for infinity and NaN no bound is known."""
        argument = math.ceil(order) if self.integer else upper(lambda: ball(order))
        try:
            value = self.function(argument)
        except OverflowError:
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return _divergence(value)


@final
@dataclass(frozen=True, slots=True)
class SumCurve(Curve):
    """`count` times the sum of the parts: Rényi divergences add under adaptive composition."""

    parts: tuple[Curve, ...]
    count: int = 1

    @property
    def integer(self) -> bool:  # type: ignore[override]
        """Whether a part knows integer orders only."""
        return any(part.integer for part in self.parts)

    @property
    def largest(self) -> float:  # type: ignore[override]
        """The smallest of the parts' largest orders."""
        return min(part.largest for part in self.parts)

    def value(self, order: Fraction) -> Fraction | None:
        """Return the exact sum of the parts' bounds."""
        total = Fraction(0)
        for part in self.parts:
            value = part.value(order)
            if value is None:
                return None
            total += value
        return self.count * total

    def estimate(self, order: float) -> float:
        """Return the sum of the parts' estimates."""
        return self.count * sum(part.estimate(order) for part in self.parts)

    def candidates(self) -> tuple[Fraction, ...] | None:
        """Return all orders that a part has tabulated."""
        tables = [orders for part in self.parts if (orders := part.candidates()) is not None]
        return tuple(sorted({order for table in tables for order in table})) if tables else None


def log_delta_at_order(order: Fraction, divergence: Fraction, epsilon: Fraction) -> float:
    """Return an upper bound on the ln δ(ε) that R(order) ≤ `divergence` proves.

    It is (a-1)(R-ε) + (a-1) ln(1-1/a) - ln a, at most 0 (theory B6).

    >>> log_delta_at_order(Fraction(20), Fraction(1, 2), Fraction(2))
    -32.470304866917445
    """
    tail = order - 1
    value = upper(
        lambda: (
            ball(tail * (divergence - epsilon))
            + ball(tail) * ball(-1 / order).log1p()
            - ball(order).log()
        )
    )
    return min(value, 0.0)


def zcdp_log_delta(rho: Fraction, epsilon: Fraction) -> float:
    """Return a float at least ln δ(ε) of every ρ-zCDP mechanism, at the best order.

    >>> zcdp_log_delta(Fraction(1, 200), Fraction(1)), zcdp_log_delta(Fraction(0), Fraction(1))
    (-55.11136691684097, -inf)
    """
    if rho == 0:
        return -math.inf
    order = 1 + Fraction(_zcdp_tail(saturated(rho), saturated(epsilon)))
    return log_delta_at_order(order, rho * order, epsilon)


def _zcdp_tail(rho: float, epsilon: float) -> float:
    """Return a - 1 at the root of the increasing derivative (2a-1)ρ + ln(1-1/a) - ε, in floats."""
    low, high = -60.0, 200.0  # of ln(a - 1)
    while True:
        middle = (low + high) / 2
        if not low < middle < high or high - low < 1e-12:
            return math.exp(middle)
        tail = math.exp(middle)
        if (2 * tail + 1) * rho - math.log1p(1 / tail) < epsilon:
            low = middle
        else:
            high = middle


# `_search` scans ln(a - 1) from -14 (a little above 1) in steps of 0.5, before it refines. Chosen
# by hand: any order is valid, so a worse one only costs accuracy.
_STEP = 0.5
_FIRST = -14.0
_GOLDEN = (math.sqrt(5) - 1) / 2


def best_order(curve: Curve, epsilon: Fraction) -> Fraction:
    """Return the order at which the curve, in floats, proves the smallest ln δ(ε)."""
    t = saturated(epsilon)

    def bound(order: float) -> float:
        """Return the estimate of ln δ at an order, infinite where the curve has no value."""
        divergence = curve.estimate(order)
        if math.isnan(divergence):
            return math.inf
        tail = order - 1
        return tail * (divergence - t) + tail * math.log1p(-1 / order) - math.log(order)

    table = curve.candidates()
    if table is not None:
        return min(table, key=lambda order: bound(saturated(order)))
    return Fraction(_search(bound, curve.integer, curve.largest))


def _search(bound: Callable[[float], float], integer: bool, largest: float) -> float:
    """Minimize a bound over ln(a - 1): a coarse scan up to six rises in a row, then golden section.

    Six, because sums of curves with small wiggles must not end the scan at the first one.
    """

    def at(position: float) -> float:
        order = 1 + math.exp(position)
        return min(max(float(round(order)), 2.0), largest) if integer else min(order, largest)

    last = math.log(largest - 1)
    best_position, best_value, rises = (0.0 if integer else _FIRST), math.inf, 0
    position, previous = best_position, math.inf
    while rises < 6:
        value = bound(at(position))
        rises = rises + 1 if value > previous else 0
        if value < best_value:
            best_position, best_value = position, value
        previous = value
        if position == last:
            break
        position = min(position + _STEP, last)
    low, high = best_position - _STEP, min(best_position + _STEP, last)
    best = at(best_position)
    tolerance = 1e-4 if integer else 1e-7
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(at(left)), bound(at(right))
    while high - low > tolerance and not (integer and at(low) == at(high)):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(at(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(at(right))
    return min((best, at(left), at(right)), key=bound)


def saturated(value: Fraction) -> float:
    """Return the nearest float, 1e300 instead of an overflow.

    >>> saturated(Fraction(10) ** 400), saturated(Fraction(1, 4))
    (1e+300, 0.25)
    """
    try:
        return float(value)
    except OverflowError:
        return 1e300 if value > 0 else -1e300


def _order(value: Any) -> Fraction:
    order = as_rational(value, "order")
    require(order > 1, "order", value, "a Rényi order above 1", "leave the others out")
    return order


def _divergence(value: Any) -> Fraction:
    divergence = as_rational(value, "curve(order)")
    require(
        divergence >= 0,
        "curve(order)",
        value,
        "a Rényi divergence, at least 0",
        "return an upper bound on the divergence at that order",
    )
    return divergence
