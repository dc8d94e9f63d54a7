"""Compute exactly with quotients of sums of terms c·e^r, with rational c and r.

By the Lindemann-Weierstrass theorem the numbers e^r, for distinct rationals r, are linearly
independent over the rationals. So a sum of terms c·e^r is zero only if every c is, and the sign of
any other sum is found by evaluating it with enough precision: even a privacy loss that *equals* its
bound is decided without tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import arb, ctx

from zerodelta.exact.logs import ball
from zerodelta.exact.rational import Rational, as_rational

_Terms: TypeAlias = Mapping[Fraction, Fraction]
"""Coefficients by exponent, none of them zero."""

_ONE: _Terms = {Fraction(0): Fraction(1)}
_START_BITS = 128


@final
class ExpRational:
    """A quotient of two sums of terms c·e^r with rational c and r.

    Arithmetic with ints and Fractions is exact, and so are ``== < <= > >=``. Arithmetic with an
    Arb ball gives an Arb ball.

    >>> half_life = ExpRational.exp("1/3")
    >>> half_life * half_life == ExpRational.exp("2/3"), half_life > Fraction(1395, 1000)
    (True, True)
    """

    __slots__ = ("_denominator", "_numerator")

    def __init__(self, numerator: _Terms, denominator: _Terms = _ONE) -> None:
        """Take over reduced terms; the value of `denominator` must be above 0."""
        self._numerator = numerator
        self._denominator = denominator

    @staticmethod
    def exp(exponent: Rational) -> ExpRational:
        """Return e^exponent."""
        return ExpRational({as_rational(exponent, "exponent"): Fraction(1)})

    @staticmethod
    def of(value: int | Fraction | ExpRational) -> ExpRational:
        """Return a rational number as an `ExpRational`."""
        if isinstance(value, ExpRational):
            return value
        return ExpRational({Fraction(0): Fraction(value)} if value else {})

    def ball(self) -> arb:
        """Return an enclosure at the working precision."""
        return _ball(self._numerator) / _ball(self._denominator)

    def sign(self) -> int:
        """Return -1, 0 or 1, exactly."""
        return _sign(self._numerator)

    def __neg__(self) -> ExpRational:
        return ExpRational({r: -c for r, c in self._numerator.items()}, self._denominator)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, arb):
            return self.ball() + other
        if not isinstance(other, (int, Fraction, ExpRational)):
            return NotImplemented
        term = ExpRational.of(other)
        if self._denominator == term._denominator:
            return ExpRational(_sum(self._numerator, term._numerator), self._denominator)
        return ExpRational(
            _sum(
                _product(self._numerator, term._denominator),
                _product(term._numerator, self._denominator),
            ),
            _product(self._denominator, term._denominator),
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, arb):
            return self.ball() * other
        if not isinstance(other, (int, Fraction, ExpRational)):
            return NotImplemented
        factor = ExpRational.of(other)
        return ExpRational(
            _product(self._numerator, factor._numerator),
            _product(self._denominator, factor._denominator),
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, arb):
            return self.ball() / other
        if not isinstance(other, (int, Fraction, ExpRational)):
            return NotImplemented
        return self * ExpRational.of(other)._inverse()

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.ball() if isinstance(other, arb) else self._inverse() * other

    def _inverse(self) -> ExpRational:
        sign = self.sign()
        if sign == 0:
            raise ZeroDivisionError("division by an expression that is exactly 0")
        positive = self if sign > 0 else -self
        inverse = ExpRational(positive._denominator, positive._numerator)
        return inverse if sign > 0 else -inverse

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, Fraction, ExpRational)):
            return NotImplemented
        return self._compare(other) == 0

    __hash__ = None  # type: ignore[assignment]  # equal numbers have many forms

    def __lt__(self, other: int | Fraction | ExpRational) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: int | Fraction | ExpRational) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: int | Fraction | ExpRational) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: int | Fraction | ExpRational) -> bool:
        return self._compare(other) >= 0

    def _compare(self, other: int | Fraction | ExpRational) -> int:
        difference: ExpRational = self - ExpRational.of(other)
        return difference.sign()

    def __float__(self) -> float:
        with ctx.workprec(_START_BITS):
            return float(self.ball())

    def __repr__(self) -> str:
        return f"ExpRational({float(self)!r})"


def _sum(left: _Terms, right: _Terms) -> _Terms:
    total = dict(left)
    for exponent, coefficient in right.items():
        _accumulate(total, exponent, coefficient)
    return total


def _product(left: _Terms, right: _Terms) -> _Terms:
    if right == _ONE:
        return left
    total: dict[Fraction, Fraction] = {}
    for r, c in left.items():
        for s, d in right.items():
            _accumulate(total, r + s, c * d)
    return total


def _accumulate(total: dict[Fraction, Fraction], exponent: Fraction, summand: Fraction) -> None:
    coefficient = total.get(exponent, Fraction(0)) + summand
    if coefficient:
        total[exponent] = coefficient
    else:
        del total[exponent]


def _ball(terms: _Terms) -> arb:
    total = arb(0)
    for exponent, coefficient in terms.items():
        total += ball(coefficient) * ball(exponent).exp()
    return total


def _sign(terms: _Terms) -> int:
    if not terms:
        return 0
    signs = {coefficient > 0 for coefficient in terms.values()}
    if len(signs) == 1:
        return 1 if signs.pop() else -1
    bits = _START_BITS
    while True:  # ends: the value is not 0
        with ctx.workprec(bits):
            value = _ball(terms)
            if value > 0:
                return 1
            if value < 0:
                return -1
        bits *= 2
