"""Learn a rule that guesses from an outcome which of two datasets a black box was run on.

The rule is judged on other outcomes than those from which it is learned. A score orders the
outcomes: above one threshold the rule guesses the first dataset, below another the second.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.privacy.release import Release
from zerodelta.value import value

# -- Outcomes -------------------------------------------------------------------------------------
# A fair coin chooses the dataset of each call. If the black box is ε-DP, then by Bayes' rule,
# whatever the outcome is, a guess of the coin is right with probability at most e^ε/(1 + e^ε).
# Outcomes become columns of numbers, from which the rule is learned.

Coins: TypeAlias = npt.NDArray[np.int64]

_NEGATIVE_ZERO, _ZERO, _NOT_FINITE = 5000.0, 5001.0, 6000.0
"""Codes for numbers without a lowest bit; real ones are from -1074 to 971."""


_CALLS_FOR_BOTH = 40
"""Number of calls in which both datasets occur except with probability 2^-39."""


@value
class Sample:
    """Outcomes, and the coin of each: 1 for the first dataset, -1 for the second."""

    outcomes: Sequence[Any] | npt.NDArray[Any]
    coins: Coins

    def __len__(self) -> int:
        return len(self.coins)


@value
class BlackBox:
    """A mechanism and two datasets; a coin chooses the dataset of each call."""

    mechanism: Callable[..., Any]
    datasets: tuple[Any, Any]
    vectorized: bool

    def draw(self, count: int, bits: BitSource) -> Sample:
        """Run the mechanism `count` times; an exception counts as an outcome."""
        coins = bits.signs(count)
        if self.vectorized:
            return Sample(outcomes=self._in_bulk(coins), coins=coins)
        outcomes: list[Any] = []
        failure: Exception | None = None
        failures = 0
        for coin in coins.tolist():
            try:
                outcomes.append(_value_of(self.mechanism(self.datasets[coin < 0])))
            except Exception as error:
                failure, failures = error, failures + 1
                outcomes.append((type(error).__name__, str(error)))
        if failure is not None and failures == count >= _CALLS_FOR_BOTH:
            raise ParameterError(
                "mechanism",
                self.mechanism,
                expected="a function that returns on at least one of the two datasets",
                remedy=f"mend it: every call raised {type(failure).__name__}, shown above",
            ) from failure
        return Sample(outcomes=outcomes, coins=coins)

    def _in_bulk(self, coins: Coins) -> Sequence[Any] | npt.NDArray[Any]:
        """Return an outcome for each coin, by one call of a vectorized mechanism per dataset."""
        parts = []
        for data, coin in zip(self.datasets, (1, -1), strict=True):
            calls = int(np.count_nonzero(coins == coin))
            part = np.asarray(self.mechanism(data, calls))
            require(
                part.ndim > 0 and len(part) == calls,
                "mechanism",
                self.mechanism,
                expected="a function whose second argument is the number of outcomes to return",
                remedy="return an array of that length, or leave out vectorized=True",
            )
            parts.append(part)
        if parts[0].dtype == parts[1].dtype and parts[0].shape[1:] == parts[1].shape[1:]:
            array = np.empty((len(coins), *parts[0].shape[1:]), dtype=parts[0].dtype)
            array[coins > 0], array[coins < 0] = parts
            return array
        # arrays of different types or shapes: that itself may reveal the dataset
        queues = iter(parts[0]), iter(parts[1])
        return [next(queues[coin < 0]) for coin in coins.tolist()]


def _value_of(outcome: Any) -> Any:
    return outcome.value if isinstance(outcome, Release) else outcome


def joined(samples: Sequence[Sample]) -> Sample:
    """Return several samples as one: their coins, and outcomes as one array if types agree."""
    coins = np.concatenate([sample.coins for sample in samples])
    arrays = [s.outcomes for s in samples if isinstance(s.outcomes, np.ndarray)]
    same_shape = len({(array.dtype, array.shape[1:]) for array in arrays}) == 1
    if same_shape and len(arrays) == len(samples):
        return Sample(outcomes=np.concatenate(arrays), coins=coins)
    listed = list(itertools.chain.from_iterable(sample.outcomes for sample in samples))
    return Sample(outcomes=listed, coins=coins)


@value
class Columns:
    """Outcomes as rows of numbers; unordered numbers are codes, compared for equality only."""

    values: Floats
    names: tuple[str, ...]
    ordered: bool

    def __getitem__(self, rows: slice) -> Columns:
        return Columns(values=self.values[rows], names=self.names, ordered=self.ordered)


def columns_of(outcomes: Sequence[Any] | npt.NDArray[Any]) -> Columns:
    """Return outcomes as columns: their numbers and lowest bits, or a code for each text.

    The lowest bit of a float is the exponent of the largest power of 2 that divides it. Noise added
    in floating point reveals there the number to which it was added (Mironov, 2012).

    >>> columns_of(np.array([0.5, 3.0, 0.0])).values.tolist()
    [[0.5, -1.0], [3.0, 0.0], [0.0, 5001.0]]
    """
    array = outcomes if isinstance(outcomes, np.ndarray) else _as_array(outcomes)
    if array is None or array.dtype.kind not in "biuf":
        texts = [f"{type(outcome).__name__} {outcome!r}" for outcome in outcomes]
        codes = np.array([_code(text) for text in texts], dtype=np.float64)[:, None]
        return Columns(values=codes, names=("outcome",), ordered=False)
    numbers = array.reshape(len(array), -1)
    values = numbers.astype(np.float64)
    plain = array.ndim == 1
    names = ["value"] if plain else [f"value[{i}]" for i in range(values.shape[1])]
    if numbers.dtype.kind == "f":
        values = np.hstack([values, _lowest_bits(values)])
        names += [f"lowest bit of {name}" for name in names]
    if not isinstance(outcomes, np.ndarray) and len(set(map(type, outcomes))) > 1:
        types = np.array([_code(type(outcome).__name__) for outcome in outcomes])
        values, names = np.hstack([values, types[:, None]]), [*names, "type"]
    return Columns(
        values=np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf),
        names=tuple(names),
        ordered=True,
    )


def _as_array(outcomes: Sequence[Any]) -> npt.NDArray[Any] | None:
    try:
        return np.array(outcomes)
    except (ValueError, TypeError, OverflowError):  # different shapes
        return None


def _code(text: str) -> float:
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def _lowest_bits(values: Floats) -> Floats:
    """Return the exponent of the lowest set bit of each float."""
    finite = np.isfinite(values)
    mantissas, exponents = np.frexp(np.where(finite, values, 0.0))
    integers = np.abs(mantissas * 2.0**53).astype(np.int64)  # exact: a mantissa has 53 bits
    lowest = np.log2(np.maximum(integers & -integers, 1).astype(np.float64))
    zeros = np.where(np.signbit(values), _NEGATIVE_ZERO, _ZERO)
    bits: Floats = np.where(integers == 0, zeros, exponents - 53 + lowest)
    return np.where(finite, bits, np.where(np.isnan(values), _NOT_FINITE + 1, _NOT_FINITE))


Score: TypeAlias = Callable[[Columns], Floats]
Objective: TypeAlias = Callable[[Floats, Floats], Floats]
"""Score a rule by its numbers of guesses and of right guesses; larger is better."""

_THRESHOLDS = 64
_BINS = 64
_CAUTION = 6.0
"""Standard errors of Wilson's bound: large, as the best of thousands of rules is chosen."""
_MINIMUM_GAIN = 0.01
"""Relative gain by which a score must beat the simpler ones before it. Chosen by hand."""
_MINIMUM_GUESSES = 10
"""A rule with fewer guesses is not considered, as its success may be chance."""


@value
class GuessRule:
    """Guess the first dataset if score >= `upper`, the second if <= `lower`; NaN: no guess."""

    name: str
    falling: bool
    """Whether the score is the named quantity with its sign changed."""
    score: Score
    lower: float
    upper: float

    def scores(self, columns: Columns) -> Floats:
        """Return the scores of outcomes, which are compared with the thresholds."""
        return self.score(columns)

    def guesses(self, columns: Columns) -> Coins:
        """Return 1, -1 or 0 (no guess) for each outcome."""
        scores = self.scores(columns)
        return (scores >= self.upper).astype(np.int64) - (scores <= self.lower).astype(np.int64)

    def __str__(self) -> str:
        sign, above, below = (-1, "<=", ">=") if self.falling else (1, ">=", "<=")
        parts = []
        if not np.isnan(self.upper):
            parts.append(f"D if {self.name} {above} {sign * self.upper:.4g}")
        if not np.isnan(self.lower):
            parts.append(f"D' if {self.name} {below} {sign * self.lower:.4g}")
        return ", ".join(parts) or "no guess"


def log_odds_objective(guesses: Floats, right: Floats) -> Floats:
    """Score rules by Wilson's lower bound on their log-odds of being right, at z = 6.

    Thousands of rules are compared; a bound that few of them exceed by chance prefers rules that
    guess often.
    """
    total = np.maximum(guesses, 1)
    share = right / total
    spread = _CAUTION * np.sqrt(share * (1 - share) / total + (_CAUTION / (2 * total)) ** 2)
    low = (share + _CAUTION**2 / (2 * total) - spread) / (1 + _CAUTION**2 / total)
    low = np.clip(low, 1e-12, 1 - 1e-12)
    log_odds: Floats = np.log(low) - np.log1p(-low)
    return log_odds


def learn(
    columns: Columns, coins: Coins, objective: Objective, classifier: Any = None
) -> GuessRule:
    """Learn the scores from a third of the outcomes, and choose the best rule on the rest.

    The candidate scores are single columns, the likelihood ratios of binned columns, a linear
    score if there are several columns, and the score of the caller's classifier.
    """
    third = max(1, len(coins) // 3)
    best = GuessRule(name="nothing", falling=False, score=_nothing, lower=np.nan, upper=np.nan)
    best_value = -1e9
    for name, falling, score in _scores(columns[:third], coins[:third], classifier):
        thresholds, value = _thresholds(score(columns[third:]), coins[third:], objective)
        if value > best_value + _MINIMUM_GAIN * abs(best_value):
            lower, upper = thresholds
            best = GuessRule(name=name, falling=falling, score=score, lower=lower, upper=upper)
            best_value = value
    return best


def _nothing(columns: Columns) -> Floats:
    return np.zeros(len(columns.values))


def _scores(columns: Columns, coins: Coins, classifier: Any) -> Iterator[tuple[str, bool, Score]]:
    """Yield names and scores, each column rising and falling first, then those of all columns."""
    if columns.ordered:
        for i, name in enumerate(columns.names):
            yield name, False, _column(i, 1)
            yield name, True, _column(i, -1)
    if len(set(coins.tolist())) < 2:
        return
    yield "likelihood ratio", False, _likelihood_ratio(columns, coins)
    if columns.ordered and len(columns.names) > 1:
        yield "linear score", False, _linear(columns, coins)
    if classifier is not None:
        classifier.fit(columns.values, coins)
        yield "classifier", False, lambda columns: _decision(classifier, columns)


def _column(i: int, sign: int) -> Score:
    return lambda columns: sign * columns.values[:, i]


def _decision(classifier: Any, columns: Columns) -> Floats:
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(columns.values), dtype=np.float64)
    return np.asarray(classifier.predict_proba(columns.values), dtype=np.float64)[:, 1]


def _likelihood_ratio(columns: Columns, coins: Coins) -> Score:
    """Return a score that sums ln p/q over columns, estimated in bins; atoms have their own bin."""
    tables = []
    for i in range(columns.values.shape[1]):
        column = columns.values[:, i]
        edges = _edges(column, ordered=columns.ordered)
        bins = np.searchsorted(edges, column, side="right")
        one = np.bincount(bins[coins > 0], minlength=len(edges) + 1) + 0.5
        other = np.bincount(bins[coins < 0], minlength=len(edges) + 1) + 0.5
        tables.append((edges, np.log(one / one.sum()) - np.log(other / other.sum())))

    def score(columns: Columns) -> Floats:
        """Return the sum over columns of the log ratio of the histogram cell a value is in."""
        total = np.zeros(len(columns.values))
        for i, (edges, ratios) in enumerate(tables):
            total += ratios[np.searchsorted(edges, columns.values[:, i], side="right")]
        return total

    return score


def _edges(column: Floats, *, ordered: bool) -> Floats:
    """Return edges of half-open bins; a frequent value (an atom) has an edge on both sides."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) > _BINS:
        atoms = values[counts >= max(5, len(column) // 1000)][: 16 * _BINS]
        inner = np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1], method="lower")
    else:
        atoms, inner = values, values[:0]
    if not ordered:
        inner = inner[:0]  # codes that were never seen fall into bins between the atoms
    return np.unique(np.concatenate([inner, atoms, np.nextafter(atoms, np.inf)]))


def _linear(columns: Columns, coins: Coins) -> Score:
    """Return the linear discriminant of the two datasets' outcomes, with scaled columns."""
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
    values, ranks = np.unique(scores, return_inverse=True)
    one = np.bincount(ranks[coins > 0], minlength=len(values))
    other = np.bincount(ranks[coins < 0], minlength=len(values))
    upto = np.searchsorted(values, edges, side="right")  # number of values <= an edge
    below = np.searchsorted(values, edges, side="left")
    one_sums, other_sums = (np.concatenate([[0], np.cumsum(counts)]) for counts in (one, other))
    # lower threshold: none, or score <= edge; upper threshold: score >= edge, or none
    low_right = np.concatenate([[0], other_sums[upto]])
    low_wrong = np.concatenate([[0], one_sums[upto]])
    high_right = np.concatenate([one_sums[-1] - one_sums[below], [0]])
    high_wrong = np.concatenate([other_sums[-1] - other_sums[below], [0]])
    right = low_right[:, None] + high_right[None, :]
    guesses = right + low_wrong[:, None] + high_wrong[None, :]
    lows, highs = np.concatenate([[np.nan], edges]), np.concatenate([edges, [np.nan]])
    possible = ~(lows[:, None] >= highs[None, :]) & (guesses >= _MINIMUM_GUESSES)
    value = np.where(possible, objective(guesses.astype(float), right.astype(float)), -np.inf)
    row, column = np.unravel_index(int(np.argmax(value)), value.shape)
    return (float(lows[row]), float(highs[column])), float(value[row, column])
