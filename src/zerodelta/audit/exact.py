"""Compute the privacy loss on small inputs without tolerance, from exact output laws.

A law maps outcomes to probabilities: Fractions, `ExpRational` (both compared exactly, even if the
loss equals its bound) or Arb balls (a comparison is certain or undecided). A missing outcome has
probability 0. Every check runs in both directions, since the neighboring relation is symmetric.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, TypeVar, final

from flint import arb, ctx

from zerodelta.errors import ParameterError, require
from zerodelta.exact.logs import ball, to_float_down, to_float_up
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, number_text
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

# -- Numbers made of rationals and exponentials of rationals, compared exactly --------------------
# By the Lindemann-Weierstrass theorem the numbers e^r, for distinct rationals r, are linearly
# independent over the rationals. So a sum of terms c·e^r is zero only if every c is, and the sign
# of any other sum is found by evaluating it with enough precision: even a privacy loss that
# *equals* its bound is decided without tolerance.

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
        """Return 1/x with a positive denominator; an exact 0 raises."""
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
    """Return the sum of two sums of c·e^r."""
    total = dict(left)
    for exponent, coefficient in right.items():
        _accumulate(total, exponent, coefficient)
    return total


def _product(left: _Terms, right: _Terms) -> _Terms:
    """Return the product of two sums of c·e^r, multiplied out."""
    if right == _ONE:
        return left
    total: dict[Fraction, Fraction] = {}
    for r, c in left.items():
        for s, d in right.items():
            _accumulate(total, r + s, c * d)
    return total


def _accumulate(total: dict[Fraction, Fraction], exponent: Fraction, summand: Fraction) -> None:
    """Add one summand c·e^r in place; a coefficient that becomes 0 is removed."""
    coefficient = total.get(exponent, Fraction(0)) + summand
    if coefficient:
        total[exponent] = coefficient
    else:
        del total[exponent]


def _ball(terms: _Terms) -> arb:
    """Return the value of a sum of c·e^r as an interval, at the current precision."""
    total = arb(0)
    for exponent, coefficient in terms.items():
        total += ball(coefficient) * ball(exponent).exp()
    return total


def _sign(terms: _Terms) -> int:
    """Return the exact sign of a sum of c·e^r, with as much precision as it takes."""
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


Probability: TypeAlias = int | Fraction | ExpRational | arb
Law: TypeAlias = Mapping[Any, Probability]
_Row = TypeVar("_Row", bound=Hashable)

_BITS = 512
"""Precision, in bits, at which balls are computed and combined."""


@value
class ExactAudit:
    """The exact privacy loss of a mechanism on all small datasets.

    Parameters
    ----------
    epsilon_lower, epsilon_upper : float
        Bounds on the largest loss |ln p/q| over all pairs and outcomes.
    claimed : Fraction or None
        The ε to be checked.
    holds : bool or None
        Whether no loss exceeds the claim, decided without tolerance; None if balls are too wide.
    pair, outcome : object
        The pair of datasets and the outcome with the largest loss.
    pairs : int
        The number of neighboring pairs.
    """

    epsilon_lower: float
    epsilon_upper: float
    claimed: Fraction | None
    holds: bool | None
    pair: tuple[Any, Any]
    outcome: Any
    pairs: int

    @property
    def violated(self) -> bool:
        """Whether the claim is certainly false."""
        return self.claimed is not None and self.holds is False

    def __str__(self) -> str:
        lines = [f"ε = {self.epsilon_upper:.6g}, the largest loss over {self.pairs:,} pairs"]
        if self.claimed is not None:
            verdicts = {True: "holds on all of them", False: "VIOLATED", None: "undecided"}
            lines.append(f"claim ε = {number_text(self.claimed)}: {verdicts[self.holds]}")
        first, second = self.pair
        lines.append(f"worst pair: {first!r} and {second!r}, outcome {self.outcome!r}")
        return "\n".join(lines)

    __repr__ = __str__


def exact(
    law: Callable[[tuple[Any, ...]], Law],
    domain: Sequence[Any],
    *,
    n: int,
    epsilon: Rational | None = None,
    neighbors: Neighbors | str = Neighbors.REPLACE,
) -> ExactAudit:
    """Compute the privacy loss of a mechanism on every pair of small neighboring datasets.

    Use it if you can compute the probabilities: it also sees events that no sample contains,
    however rare. For a black box see `lower_bound`. For larger datasets only a proof helps.

    Parameters
    ----------
    law : callable
        ``law(rows)`` returns the probability of each outcome: Fractions, `ExpRational`, Arb balls.
        `rounded_laplace_pmf`, `exponential_mechanism_law` and others make such laws.
    domain : sequence
        The values that a row may have; hashable.
    n : int
        The number of rows; under add-remove n - 1 or n.
    epsilon : int, float, str or Fraction, optional
        The claim to check.
    neighbors : Neighbors or str
        "replace" or "add-remove".

    Returns
    -------
    ExactAudit
        Prints itself; `epsilon_lower`, `epsilon_upper`, `holds`, `pair`, `outcome`.

    Examples
    --------
    >>> from zerodelta import audit
    >>> def votes(rows):
    ...     scores = [rows.count(0), rows.count(1)]
    ...     return audit.permute_and_flip_law(scores, scale=2)
    >>> audit.exact(votes, [0, 1], n=2, epsilon=1)
    ε = 1, the largest loss over 4 pairs
    claim ε = 1: holds on all of them
    worst pair: (0, 0) and (1, 0), outcome 1
    """
    rows, relation = as_count(n, "n", minimum=1), Neighbors(neighbors)
    require(len(domain) > 0, "domain", domain, "at least one value", "list the values of a row")
    tables = list(datasets(domain, rows))
    if relation is Neighbors.REPLACE:
        pairs = list(_replaced(tables, domain))
    else:
        pairs = list(dict.fromkeys((t, (*t[:i], *t[i + 1 :])) for t in tables for i in range(rows)))
    laws = {table: law(table) for table in dict.fromkeys(itertools.chain(*pairs))}
    worst = worst_ratio(laws, pairs)
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    return ExactAudit(
        epsilon_lower=to_float_down(worst.log_ratio),
        epsilon_upper=to_float_up(worst.log_ratio),
        claimed=claimed,
        holds=None if claimed is None else _holds([(laws[a], laws[b]) for a, b in pairs], claimed),
        pair=worst.pair,
        outcome=worst.outcome,
        pairs=len(pairs),
    )


def _replaced(
    tables: Iterable[tuple[Any, ...]], domain: Sequence[Any]
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Yield each unordered replace-one pair once: one row becomes a later value of the domain."""
    for table in tables:
        for i, row in enumerate(table):
            for later in domain[domain.index(row) + 1 :]:
                yield table, (*table[:i], later, *table[i + 1 :])


def _holds(pairs: Sequence[tuple[Law, Law]], epsilon: Fraction) -> bool | None:
    if all(certainly_pure(p, q, epsilon) for p, q in pairs):
        return True
    return False if any(certainly_impure(p, q, epsilon) for p, q in pairs) else None


def certainly_pure(
    p: Law, q: Law, epsilon: Rational | None = None, *, epsilon_exp: Rational | None = None
) -> bool:
    """Tell whether certainly p <= e^ε q and q <= e^ε p at every outcome.

    Give ε, or e^ε itself as a rational. For Fractions and `ExpRational` the answer is exact.

    >>> law = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
    >>> flipped = {"yes": Fraction(1, 4), "no": Fraction(3, 4)}
    >>> certainly_pure(law, flipped, epsilon_exp=3), certainly_pure(law, flipped, "1.0986")
    (True, False)
    """
    factor = _factor(epsilon, epsilon_exp)
    return all(_certainly_at_most(a, factor, b) for _, a, b in _both_ways(p, q))


def certainly_impure(
    p: Law, q: Law, epsilon: Rational | None = None, *, epsilon_exp: Rational | None = None
) -> bool:
    """Tell whether certainly p > e^ε q or q > e^ε p at some outcome, which violates ε-DP.

    >>> certainly_impure({0: Fraction(1)}, {0: Fraction(9, 10), 1: Fraction(1, 10)}, 5)
    True
    """
    factor = _factor(epsilon, epsilon_exp)
    return any(_certainly_above(a, factor, b) for _, a, b in _both_ways(p, q))


def max_log_ratio(p: Law, q: Law) -> arb:
    """Return a ball around the largest |ln p/q|, the privacy loss of this pair (maybe infinite).

    >>> float(max_log_ratio({0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: Fraction(1)}))
    inf
    """
    with ctx.workprec(_BITS):
        return _largest_ratio(p, q)[0]


@value
class WorstRatio:
    """The largest privacy loss as a ball, with its two datasets and outcome."""

    log_ratio: arb
    pair: tuple[Any, Any]
    outcome: Any


def worst_ratio(laws: Mapping[Any, Law], pairs: Iterable[tuple[Any, Any]]) -> WorstRatio:
    """Return the largest privacy loss over pairs of datasets, each with its output law.

    >>> coin = {rows: {0: Fraction(1 + sum(rows), 4), 1: Fraction(3 - sum(rows), 4)}
    ...         for rows in datasets([0, 1], 2)}
    >>> worst = worst_ratio(coin, neighbors(coin))
    >>> worst.pair, worst.outcome, round(float(worst.log_ratio), 6)
    (((0, 0), (0, 1)), 0, 0.693147)
    """
    with ctx.workprec(_BITS):
        losses = [(*_largest_ratio(laws[a], laws[b]), (a, b)) for a, b in pairs]
        if not losses:
            raise ParameterError("pairs", [], expected="at least one pair", remedy="pass some")
        log_ratio, outcome, pair = max(losses, key=lambda item: _middle(item[0]))
        for other, *_ in losses:  # balls may overlap: the maximum encloses the true largest
            log_ratio = log_ratio.max(other)
        return WorstRatio(log_ratio=log_ratio, pair=pair, outcome=outcome)


def hockey_stick(
    p: Law, q: Law, epsilon: Rational | None = None, *, epsilon_exp: Rational | None = None
) -> ExpRational | arb:
    """Return sum (p - e^ε q)^+, the δ of this pair in this direction; exact for exact laws.

    >>> hockey_stick({0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1)}, epsilon_exp=2)
    ExpRational(0.5)
    """
    factor = _factor(epsilon, epsilon_exp)
    total: Any = ExpRational.of(0)
    with ctx.workprec(_BITS):
        for _, a, b in _one_way(p, q):
            if isinstance(a, arb) or isinstance(b, arb):
                total += (_exact_ball(a) - factor.ball() * _exact_ball(b)).max(arb(0))
            elif (excess := a - factor * b) > 0:
                total += excess
    return total  # type: ignore[no-any-return]


def datasets(universe: Sequence[_Row], rows: int) -> Iterator[tuple[_Row, ...]]:
    """Yield every dataset of `rows` rows from a small universe."""
    return itertools.product(universe, repeat=rows)


def neighbors(
    tables: Iterable[tuple[_Row, ...]],
) -> Iterator[tuple[tuple[_Row, ...], tuple[_Row, ...]]]:
    """Yield each unordered pair of datasets of one size that differ in exactly one row.

    >>> list(neighbors(datasets([0, 1], 1)))
    [((0,), (1,))]
    """
    for a, b in itertools.combinations(tables, 2):
        if len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1:
            yield a, b


def _factor(epsilon: Rational | None, epsilon_exp: Rational | None) -> ExpRational:
    """Return e^epsilon, or epsilon_exp itself; exactly one of the two must be passed."""
    if epsilon is not None and epsilon_exp is None:
        return ExpRational.exp(as_rational(epsilon, "epsilon"))
    if epsilon_exp is not None and epsilon is None:
        return ExpRational.of(as_rational(epsilon_exp, "epsilon_exp"))
    raise ParameterError(
        "epsilon, epsilon_exp",
        (epsilon, epsilon_exp),
        expected="exactly one of the two",
        remedy="pass epsilon=1, say",
    )


def _one_way(p: Law, q: Law) -> Iterator[tuple[Any, Probability, Probability]]:
    for outcome in dict.fromkeys((*p, *q)):
        yield outcome, p.get(outcome, 0), q.get(outcome, 0)


def _both_ways(p: Law, q: Law) -> Iterator[tuple[Any, Probability, Probability]]:
    return itertools.chain(_one_way(p, q), _one_way(q, p))


def _certainly_at_most(a: Probability, factor: ExpRational, b: Probability) -> bool:
    """Tell whether certainly a <= factor · b."""
    if isinstance(a, arb) or isinstance(b, arb):
        with ctx.workprec(_BITS):
            return bool(_exact_ball(a) <= factor.ball() * _exact_ball(b))
    return bool(factor * b >= a)


def _certainly_above(a: Probability, factor: ExpRational, b: Probability) -> bool:
    """Tell whether a > factor·b for certain: exactly, or for all numbers in the balls."""
    if isinstance(a, arb) or isinstance(b, arb):
        with ctx.workprec(_BITS):
            return bool(_exact_ball(a) > factor.ball() * _exact_ball(b))
    return bool(factor * b < a)


def _largest_ratio(p: Law, q: Law) -> tuple[arb, Any]:
    """Return the largest log ratio of two laws, in either direction, and its outcome."""
    largest, where = arb(0), None
    for outcome, a, b in _both_ways(p, q):
        ratio = _log_ratio(a, b)
        if where is None or _middle(ratio) > _middle(largest):
            where = outcome
        largest = largest.max(ratio)
    return largest, where


def _log_ratio(a: Probability, b: Probability) -> arb:
    if _is_zero(a):
        return arb.neg_inf()
    return arb.pos_inf() if _is_zero(b) else (_exact_ball(a) / _exact_ball(b)).log()


def _is_zero(value: Probability) -> bool:
    return bool(value.is_zero() if isinstance(value, arb) else value == 0)


def _exact_ball(value: Probability) -> arb:
    if isinstance(value, arb):
        return value
    return value.ball() if isinstance(value, ExpRational) else ball(value)


def _middle(value: arb) -> float:
    return float(value.mid())


# -- Extreme pairs of output laws that (ε, δ)-DP allows on a few outcomes -------------------------
# The pairs (P, P') on N outcomes with P(S) <= e^ε P'(S) + δ and P'(S) <= e^ε P(S) + δ for all sets
# S form a polytope. A bound on a quantity that is quasi-convex in the pair (the likelihood ratio
# after any channel is) holds for every pair if it holds at the vertices, which are enumerated here
# exactly (double description method, in rationals).

Pmf: TypeAlias = tuple[Fraction, ...]
"""Probabilities of the outcomes 0, 1, …, N-1."""


def extreme_pairs(size: int, epsilon_exp: Rational, delta: Rational) -> tuple[tuple[Pmf, Pmf], ...]:
    """Return all vertices (P, P') of the set of (ε, δ)-DP pairs on `size` outcomes, e^ε rational.

    The set is symmetric, so both directions are in it. Size 4 takes a fifth of a second.

    >>> len(extreme_pairs(2, 2, "1/10"))
    8
    """
    size = as_count(size, "size", minimum=1)
    factor, slack = as_rational(epsilon_exp, "epsilon_exp"), as_rational(delta, "delta")
    if factor < 1:
        raise ParameterError(
            "epsilon_exp", epsilon_exp, expected="at least 1", remedy="pass e^ε, not ε"
        )
    if not 0 <= slack <= 1:
        raise ParameterError("delta", delta, expected="from 0 to 1", remedy="pass δ itself")
    return _enumerate(size, factor, slack)


@dataclass(frozen=True, slots=True)
class _Vertex:
    point: Pmf
    """P, then P'."""
    tight: int
    """Bit i is set if the inequality number i holds with equality."""


@cache
def _enumerate(size: int, factor: Fraction, slack: Fraction) -> tuple[tuple[Pmf, Pmf], ...]:
    """Return all vertices of the (ε, δ) polytope of pairs of laws on `size` outcomes."""
    vertices = list(_product_of_simplices(size))
    count = 2 * size
    for direction in (0, size):
        for length in range(1, size):
            for outcomes in itertools.combinations(range(size), length):
                normal = [Fraction(0)] * (2 * size)
                for outcome in outcomes:
                    normal[direction + outcome] = Fraction(1)
                    normal[size - direction + outcome] = -factor
                vertices = _cut(vertices, tuple(normal), slack, count)
                count += 1
    return tuple(sorted((vertex.point[:size], vertex.point[size:]) for vertex in vertices))


def _product_of_simplices(size: int) -> Iterator[_Vertex]:
    """Yield all pairs of point masses; the first inequalities are the 2N nonnegativities."""
    for mass, other in itertools.product(range(size), repeat=2):
        point = [Fraction(0)] * (2 * size)
        point[mass] = point[size + other] = Fraction(1)
        yield _Vertex(tuple(point), sum(1 << i for i, value in enumerate(point) if value == 0))


def _cut(vertices: list[_Vertex], normal: Pmf, bound: Fraction, number: int) -> list[_Vertex]:
    """Intersect a polytope with normal·x <= bound: keep vertices inside, add those on cut edges."""
    kept: list[_Vertex] = []
    inside: list[tuple[_Vertex, Fraction]] = []
    outside: list[tuple[_Vertex, Fraction]] = []
    for vertex in vertices:
        excess = sum((a * x for a, x in zip(normal, vertex.point, strict=True)), -bound)
        if excess > 0:
            outside.append((vertex, excess))
        elif excess < 0:
            inside.append((vertex, excess))
            kept.append(vertex)
        else:
            kept.append(_Vertex(vertex.point, vertex.tight | 1 << number))
    masks = [vertex.tight for vertex in vertices]
    for (inner, below), (outer, above) in itertools.product(inside, outside):
        shared = inner.tight & outer.tight
        # two vertices form an edge if no third one lies on all the facets that they share
        if sum(1 for mask in masks if mask & shared == shared) == 2:
            share = below / (below - above)
            point = tuple(
                x + share * (y - x) for x, y in zip(inner.point, outer.point, strict=True)
            )
            kept.append(_Vertex(point, shared | 1 << number))
    return kept


# -- Exact output laws of mechanisms, for enumeration (theory R(vi), C10.1) -----------------------

_HALF = Fraction(1, 2)
_Score: TypeAlias = int | Fraction
_P = TypeVar("_P", ExpRational, arb)


def discrete_laplace_pmf(k: int, *, scale: Rational) -> ExpRational:
    """Return P(k) = q^|k| (1-q)/(1+q), q = e^(-1/scale), of the two-sided geometric law, exactly.

    >>> one, none = (discrete_laplace_pmf(k, scale=2) for k in (1, 0))
    >>> one / none == ExpRational.exp("-1/2")
    True
    """
    exact = as_positive(scale, "scale")
    q, power = ExpRational.exp(-1 / exact), ExpRational.exp(-abs(k) / exact)
    return power * (1 - q) / (1 + q)  # type: ignore[no-any-return]


def discrete_laplace_tail(k: int, *, scale: Rational) -> ExpRational:
    """Return the probability of k or more: q^k/(1+q) for k >= 1, exactly."""
    if k < 1:
        return 1 - discrete_laplace_tail(1 - k, scale=scale)  # type: ignore[no-any-return]
    exact = as_positive(scale, "scale")
    return ExpRational.exp(-k / exact) / (1 + ExpRational.exp(-1 / exact))  # type: ignore[no-any-return]


def rounded_laplace_pmf(k: int, *, scale: Rational) -> ExpRational:
    """Return P(round(Laplace(scale)) = k), exactly.

    >>> rounded_laplace_pmf(0, scale=1) == 1 - ExpRational.exp("-1/2")
    True
    """
    if k == 0:
        return 1 - 2 * rounded_laplace_tail(1, scale=scale)  # type: ignore[no-any-return]
    tail = rounded_laplace_tail(abs(k), scale=scale)
    return tail - rounded_laplace_tail(abs(k) + 1, scale=scale)  # type: ignore[no-any-return]


def rounded_laplace_tail(k: int, *, scale: Rational) -> ExpRational:
    """Return P(round(Laplace(scale)) >= k), exactly."""
    if k < 1:
        return 1 - rounded_laplace_tail(1 - k, scale=scale)  # type: ignore[no-any-return]
    exact = as_positive(scale, "scale")
    return ExpRational.exp((_HALF - k) / exact) * _HALF  # type: ignore[no-any-return]


def rounded_gaussian_pmf(k: int, *, variance: Rational) -> arb:
    """Return a ball around P(round(N(0, variance)) = k), accurate to about 500 bits.

    >>> round(float(rounded_gaussian_pmf(0, variance=1)), 12)
    0.382924922548
    """
    tail = rounded_gaussian_tail
    with ctx.workprec(_BITS):
        if k == 0:
            return 1 - 2 * tail(1, variance=variance)
        return tail(abs(k), variance=variance) - tail(abs(k) + 1, variance=variance)


def rounded_gaussian_tail(k: int, *, variance: Rational) -> arb:
    """Return a ball around P(round(N(0, variance)) >= k)."""
    exact = as_positive(variance, "variance")
    with ctx.workprec(_BITS):
        if k < 1:
            return 1 - rounded_gaussian_tail(1 - k, variance=exact)
        return (ball(k - _HALF) / (2 * ball(exact)).sqrt()).erfc() / 2


def shifted(
    pmf: Callable[[int], _P], tail: Callable[[int], _P], *, center: int, low: int, high: int
) -> dict[float, _P]:
    """Return the law of center + Z on low..high; keys -inf and inf hold the two tails.

    `tail(k)` is P(Z >= k) of a Z symmetric about 0. Joining the outcomes of a tail is
    post-processing, so every violation in the joined law is real. For Laplace noise no violation
    is hidden, if low and high enclose all centers: all ratios in a tail are equal to the joint one.

    >>> from functools import partial
    >>> noise = partial(rounded_laplace_pmf, scale=2), partial(rounded_laplace_tail, scale=2)
    >>> law = shifted(*noise, center=1, low=0, high=2)
    >>> list(law), sum(law.values()) == 1
    ([-inf, 0, 1, 2, inf], True)
    """
    law: dict[float, _P] = {-math.inf: tail(center - low + 1)}
    for outcome in range(low, high + 1):
        law[outcome] = pmf(outcome - center)
    law[math.inf] = tail(high + 1 - center)
    return law


def exponential_mechanism_law(
    scores: Sequence[_Score], *, scale: Rational
) -> dict[int, ExpRational]:
    """Return P(i) = e^(score_i / scale) / sum_j e^(score_j / scale), exactly.

    >>> law = exponential_mechanism_law([0, 1], scale=1)
    >>> law[1] / law[0] == ExpRational.exp(1)
    True
    """
    weights = _weights(scores, scale)
    total = sum(weights, ExpRational.of(0))
    return {i: weight / total for i, weight in enumerate(weights)}


def permute_and_flip_law(scores: Sequence[_Score], *, scale: Rational) -> dict[int, ExpRational]:
    """Return P(i) = x_i ∫₀¹ ∏_{j≠i} (1 - x_j s) ds, x_j = e^((score_j - best) / scale), exactly.

    >>> law = permute_and_flip_law([0, 0], scale=1)
    >>> law[0] == law[1] == Fraction(1, 2)
    True
    """
    weights = _weights(scores, scale)
    law: dict[int, ExpRational] = {}
    for i, weight in enumerate(weights):  # the coefficients of ∏_{j≠i} (1 - x_j s), then ∫₀¹
        polynomial = [ExpRational.of(1)]
        for j, other in enumerate(weights):
            if j != i:
                shifted_up = [ExpRational.of(0), *(-other * c for c in polynomial)]
                pairs = itertools.zip_longest(polynomial, shifted_up, fillvalue=ExpRational.of(0))
                polynomial = [a + b for a, b in pairs]
        integral = sum(
            (c * Fraction(1, power + 1) for power, c in enumerate(polynomial)), ExpRational.of(0)
        )
        law[i] = weight * integral
    return law


def _weights(scores: Sequence[_Score], scale: Rational) -> list[ExpRational]:
    exact, best = as_positive(scale, "scale"), max(scores)
    return [ExpRational.exp((score - best) / exact) for score in scores]
