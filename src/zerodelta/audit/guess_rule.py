"""A rule that guesses, from an outcome, which of two datasets it came from, or says nothing.

It is learned from outcomes that are not judged with it. A score orders the outcomes; those above
one threshold are taken for the first dataset, those below another for the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from zerodelta.audit.outcomes import Coins, Columns
from zerodelta.exact.arrays import Floats
from zerodelta.value import value

Score: TypeAlias = Callable[[Columns], Floats]
Objective: TypeAlias = Callable[[Floats, Floats], Floats]
"""How good a rule is that guessed so often, and was right so often; any number, more is better."""

_THRESHOLDS = 64
_BINS = 64
_CAUTION = 6.0
_CLEARLY = 0.01
"""By this share of its value a score must beat those before it, which are simpler."""
_FEWEST = 10
"""Guesses below which a rule is not considered: what it did may be chance."""


@value
class GuessRule:
    """Guess the first dataset if score >= `upper`, the second if score <= `lower`; NaN: never."""

    name: str
    falling: bool
    """Whether the score is the named quantity with its sign changed."""
    score: Score
    lower: float
    upper: float

    def scores(self, columns: Columns) -> Floats:
        """Return what is compared with the thresholds."""
        return self.score(columns)

    def guesses(self, columns: Columns) -> Coins:
        """Return 1, -1 or 0 (no guess) for each outcome."""
        scores = self.scores(columns)
        return (scores >= self.upper).astype(np.int64) - (scores <= self.lower).astype(np.int64)

    def __str__(self) -> str:
        sign, most, least = (-1, "<=", ">=") if self.falling else (1, ">=", "<=")
        parts = []
        if not np.isnan(self.upper):
            parts.append(f"D if {self.name} {most} {sign * self.upper:.4g}")
        if not np.isnan(self.lower):
            parts.append(f"D' if {self.name} {least} {sign * self.lower:.4g}")
        return ", ".join(parts) or "no guess"


def log_odds_objective(guesses: Floats, right: Floats) -> Floats:
    """Score rules by a cautious lower bound on their log-odds of being right (Wilson's, z = 6).

    Thousands of rules are compared; a bound that few of them exceed by chance prefers those that
    guess often.
    """
    total = np.maximum(guesses, 1)
    share = right / total
    spread = _CAUTION * np.sqrt(share * (1 - share) / total + (_CAUTION / (2 * total)) ** 2)
    low = (share + _CAUTION**2 / (2 * total) - spread) / (1 + _CAUTION**2 / total)
    low = np.clip(low, 1e-12, 1 - 1e-12)
    found: Floats = np.log(low) - np.log1p(-low)
    return found


def learn(
    columns: Columns, coins: Coins, objective: Objective, classifier: Any = None
) -> GuessRule:
    """Return the best rule found: a third of the outcomes makes the scores, the rest choose.

    Considered are each column by itself, all columns by their binned likelihood ratios, a linear
    score if there are several, and that of the caller's classifier.
    """
    third = max(1, len(coins) // 3)
    best = GuessRule(name="nothing", falling=False, score=_nothing, lower=np.nan, upper=np.nan)
    best_value = -1e9
    for name, falling, score in _scores(columns[:third], coins[:third], classifier):
        found, value = _thresholds(score(columns[third:]), coins[third:], objective)
        if value > best_value + _CLEARLY * abs(best_value):
            lower, upper = found
            best = GuessRule(name=name, falling=falling, score=score, lower=lower, upper=upper)
            best_value = value
    return best


def _nothing(columns: Columns) -> Floats:
    return np.zeros(len(columns.values))


def _scores(columns: Columns, coins: Coins, classifier: Any) -> Iterator[tuple[str, bool, Score]]:
    """Yield scores by name, rising or falling; those that are single columns first."""
    if columns.ordered:
        for place, name in enumerate(columns.names):
            yield name, False, _column(place, 1)
            yield name, True, _column(place, -1)
    if len(set(coins.tolist())) < 2:
        return
    yield "likelihood ratio", False, _likelihood_ratio(columns, coins)
    if columns.ordered and len(columns.names) > 1:
        yield "linear score", False, _linear(columns, coins)
    if classifier is not None:
        classifier.fit(columns.values, coins)
        yield "classifier", False, lambda columns: _decision(classifier, columns)


def _column(place: int, sign: int) -> Score:
    return lambda columns: sign * columns.values[:, place]


def _decision(classifier: Any, columns: Columns) -> Floats:
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(columns.values), dtype=np.float64)
    return np.asarray(classifier.predict_proba(columns.values), dtype=np.float64)[:, 1]


def _likelihood_ratio(columns: Columns, coins: Coins) -> Score:
    """Return the sum over columns of ln p/q, estimated in bins; frequent values have their own."""
    tables = []
    for place in range(columns.values.shape[1]):
        column = columns.values[:, place]
        edges = _edges(column, ordered=columns.ordered)
        bins = np.searchsorted(edges, column, side="right")
        one = np.bincount(bins[coins > 0], minlength=len(edges) + 1) + 0.5
        other = np.bincount(bins[coins < 0], minlength=len(edges) + 1) + 0.5
        tables.append((edges, np.log(one / one.sum()) - np.log(other / other.sum())))

    def score(columns: Columns) -> Floats:
        total = np.zeros(len(columns.values))
        for place, (edges, ratios) in enumerate(tables):
            total += ratios[np.searchsorted(edges, columns.values[:, place], side="right")]
        return total

    return score


def _edges(column: Floats, *, ordered: bool) -> Floats:
    """Return edges of half-open bins; around a value that is alone in its bin, on both sides."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) > _BINS:
        atoms = values[counts >= max(5, len(column) // 1000)][: 16 * _BINS]
        inner = np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1], method="lower")
    else:
        atoms, inner = values, values[:0]
    if not ordered:
        inner = inner[:0]  # what was never seen is in bins between the atoms, which hold nothing
    return np.unique(np.concatenate([inner, atoms, np.nextafter(atoms, np.inf)]))


def _linear(columns: Columns, coins: Coins) -> Score:
    """Return the linear discriminant of the two datasets' outcomes, each column scaled."""
    low, middle, high = np.quantile(columns.values, [0.05, 0.5, 0.95], axis=0, method="nearest")
    with np.errstate(all="ignore"):
        width = high - low
    usable = np.isfinite(width) & (width > 0)
    center, scale = middle[usable], width[usable]

    def scaled(columns: Columns) -> Floats:
        with np.errstate(all="ignore"):
            clipped: Floats = np.clip((columns.values[:, usable] - center) / scale, -5, 5)
        return clipped

    points = scaled(columns)
    covariance = np.atleast_2d(np.cov(points, rowvar=False)) if usable.any() else np.eye(0)
    gap = points[coins > 0].mean(axis=0) - points[coins < 0].mean(axis=0)
    direction = np.linalg.lstsq(covariance + 1e-9 * np.eye(len(gap)), gap, rcond=None)[0]
    return lambda columns: scaled(columns) @ direction


def _thresholds(
    scores: Floats, coins: Coins, objective: Objective
) -> tuple[tuple[float, float], float]:
    """Return the best (lower, upper) among quantiles of the scores, and its value."""
    tails = 0.5 ** np.arange(2, 20)
    levels = np.concatenate([tails, np.linspace(0, 1, _THRESHOLDS + 1), 1 - tails])
    edges = np.unique(np.quantile(scores, np.unique(levels), method="nearest"))
    values, places = np.unique(scores, return_inverse=True)
    one = np.bincount(places[coins > 0], minlength=len(values))
    other = np.bincount(places[coins < 0], minlength=len(values))
    upto = np.searchsorted(values, edges, side="right")  # how many values are <= an edge
    below = np.searchsorted(values, edges, side="left")
    one_sums, other_sums = (np.concatenate([[0], np.cumsum(each)]) for each in (one, other))
    # no guess of the second dataset, or score <= edge; no guess of the first, or score >= edge
    low_right = np.concatenate([[0], other_sums[upto]])
    low_wrong = np.concatenate([[0], one_sums[upto]])
    high_right = np.concatenate([one_sums[-1] - one_sums[below], [0]])
    high_wrong = np.concatenate([other_sums[-1] - other_sums[below], [0]])
    right = low_right[:, None] + high_right[None, :]
    guesses = right + low_wrong[:, None] + high_wrong[None, :]
    lows, highs = np.concatenate([[np.nan], edges]), np.concatenate([edges, [np.nan]])
    possible = ~(lows[:, None] >= highs[None, :]) & (guesses >= _FEWEST)
    value = np.where(possible, objective(guesses.astype(float), right.astype(float)), -np.inf)
    row, column = np.unravel_index(int(np.argmax(value)), value.shape)
    return (float(lows[row]), float(highs[column])), float(value[row, column])
