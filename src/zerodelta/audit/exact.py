"""Privacy of exact output laws on small inputs, decided without tolerance.

A law is a mapping from outcomes to probabilities: Fractions, `ExpRational` (both compared exactly,
also where the loss equals its bound) or Arb balls (compared with certainty or not at all). An
outcome that is missing has probability 0. Every check runs in both directions, as a neighboring
relation does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from flint import arb, ctx

from zerodelta.audit.exponentials import ExpRational
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arb import ball, to_float_down, to_float_up
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, number_text
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

Probability: TypeAlias = int | Fraction | ExpRational | arb
Law: TypeAlias = Mapping[Any, Probability]
_Row = TypeVar("_Row", bound=Hashable)

_BITS = 512
"""Balls are combined at this precision; those from `laws` have it too."""


@value
class ExactAudit:
    """The privacy loss of a mechanism on all small datasets: computed, not sampled.

    Parameters
    ----------
    epsilon_lower, epsilon_upper : float
        Between these lies the largest loss |ln p/q| over all pairs and outcomes.
    claimed : Fraction or None
        The ε that was to be checked.
    holds : bool or None
        Whether no loss exceeds the claim, decided without tolerance; None if balls are too wide.
    pair, outcome : object
        Where the loss is largest.
    pairs : int
        How many neighboring pairs there are.
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

    Use it where the probabilities can be written down: it sees events that no sample contains,
    however rare. For a black box see `lower_bound`. Beyond these datasets only a proof helps.

    Parameters
    ----------
    law : callable
        ``law(rows)`` returns the probability of each outcome: Fractions, `ExpRational`, Arb balls.
        `rounded_laplace_pmf`, `exponential_mechanism_law` and others make such laws.
    domain : sequence
        The values that a row may have; hashable.
    n : int
        How many rows; under add-remove from n - 1 to n.
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
        found = list(_replaced(tables, domain))
    else:
        found = list(dict.fromkeys((t, (*t[:i], *t[i + 1 :])) for t in tables for i in range(rows)))
    laws = {table: law(table) for table in dict.fromkeys(itertools.chain(*found))}
    worst = worst_ratio(laws, found)
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    return ExactAudit(
        epsilon_lower=to_float_down(worst.log_ratio),
        epsilon_upper=to_float_up(worst.log_ratio),
        claimed=claimed,
        holds=None if claimed is None else _holds([(laws[a], laws[b]) for a, b in found], claimed),
        pair=worst.pair,
        outcome=worst.outcome,
        pairs=len(found),
    )


def _replaced(
    tables: Iterable[tuple[Any, ...]], domain: Sequence[Any]
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Yield each unordered pair once: a row becomes a later value of the domain."""
    for table in tables:
        for i, row in enumerate(table):
            for entry in domain[domain.index(row) + 1 :]:
                yield table, (*table[:i], entry, *table[i + 1 :])


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
    """Tell whether certainly p > e^ε q or q > e^ε p at some outcome: a violation is found.

    >>> certainly_impure({0: Fraction(1)}, {0: Fraction(9, 10), 1: Fraction(1, 10)}, 5)
    True
    """
    factor = _factor(epsilon, epsilon_exp)
    return any(_certainly_above(a, factor, b) for _, a, b in _both_ways(p, q))


def max_log_ratio(p: Law, q: Law) -> arb:
    """Return a ball around the largest |ln p/q|: the loss of this pair, infinite if unbounded.

    >>> float(max_log_ratio({0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: Fraction(1)}))
    inf
    """
    with ctx.workprec(_BITS):
        return _largest_ratio(p, q)[0]


@value
class WorstRatio:
    """Where the privacy loss is largest: its ball, the two datasets, and the outcome."""

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
        found = [(*_largest_ratio(laws[a], laws[b]), (a, b)) for a, b in pairs]
        if not found:
            raise ParameterError("pairs", [], expected="at least one pair", remedy="pass some")
        log_ratio, outcome, pair = max(found, key=lambda item: _middle(item[0]))
        for other, *_ in found:  # balls may overlap: enclose the largest, whichever it is
            log_ratio = log_ratio.max(other)
        return WorstRatio(log_ratio=log_ratio, pair=pair, outcome=outcome)


def hockey_stick(
    p: Law, q: Law, epsilon: Rational | None = None, *, epsilon_exp: Rational | None = None
) -> ExpRational | arb:
    """Return sum (p - e^ε q)^+, the δ of this pair in this direction; exact if the laws are.

    >>> hockey_stick({0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1)}, epsilon_exp=2)
    ExpRational(0.5)
    """
    factor = _factor(epsilon, epsilon_exp)
    total: Any = ExpRational.of(0)
    with ctx.workprec(_BITS):
        for _, a, b in _one_way(p, q):
            if isinstance(a, arb) or isinstance(b, arb):
                total += (_ball(a) - factor.ball() * _ball(b)).max(arb(0))
            elif (excess := a - factor * b) > 0:
                total += excess
    return total  # type: ignore[no-any-return]


def datasets(universe: Sequence[_Row], rows: int) -> Iterator[tuple[_Row, ...]]:
    """Yield every dataset of `rows` rows, each row any element of a small universe."""
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
    if epsilon is not None and epsilon_exp is None:
        return ExpRational.exp(as_rational(epsilon, "epsilon"))
    if epsilon_exp is not None and epsilon is None:
        return ExpRational.of(as_rational(epsilon_exp, "epsilon_exp"))
    raise ParameterError(
        "epsilon, epsilon_exp", (epsilon, epsilon_exp), expected="exactly one", remedy="give one"
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
            return bool(_ball(a) <= factor.ball() * _ball(b))
    return bool(factor * b >= a)


def _certainly_above(a: Probability, factor: ExpRational, b: Probability) -> bool:
    if isinstance(a, arb) or isinstance(b, arb):
        with ctx.workprec(_BITS):
            return bool(_ball(a) > factor.ball() * _ball(b))
    return bool(factor * b < a)


def _largest_ratio(p: Law, q: Law) -> tuple[arb, Any]:
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
    return arb.pos_inf() if _is_zero(b) else (_ball(a) / _ball(b)).log()


def _is_zero(value: Probability) -> bool:
    return bool(value.is_zero() if isinstance(value, arb) else value == 0)


def _ball(value: Probability) -> arb:
    if isinstance(value, arb):
        return value
    return value.ball() if isinstance(value, ExpRational) else ball(value)


def _middle(value: arb) -> float:
    return float(value.mid())
