"""Bound the ε of any black box from below by samples, and search for its worst datasets.

Coins choose the dataset of each call. A rule that guesses the coin is learned from the first half
of the outcomes and judged on the second. Given all outcomes, the coins of an ε-DP mechanism are
independent, and each guess is right with probability at most e^ε/(1 + e^ε). So the number of right
guesses is at most binomial with that probability, and an exact lower confidence bound on it gives
one on ε. There is one rule and one bound, so no correction for multiple tests is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from flint import arb, ctx
from scipy.special import betaincinv

from zerodelta.audit.guess_rule import (
    BlackBox,
    Coins,
    Columns,
    GuessRule,
    Objective,
    Sample,
    columns_of,
    joined,
    learn,
    log_odds_objective,
)
from zerodelta.errors import require, require_extra
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import current_bits
from zerodelta.exact.logs import ball, log_odds_lower
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, number_text
from zerodelta.privacy.parameters import Neighbors
from zerodelta.value import value

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_BITS = 128


@value
class LowerBound:
    """A lower bound on a mechanism's ε, from samples.

    Parameters
    ----------
    epsilon_lower : float
        The mechanism is not ε-DP for any smaller ε, with the stated confidence.
    confidence : Fraction
        The probability, over all runs of the audit, that the bound is right.
    claimed : Fraction or None
        The ε to be checked.
    samples : int
        The number of calls of the mechanism.
    guesses, right : int
        The numbers of guesses and of right guesses in the judging half of the samples.
    rule : str
        The rule, in words.
    pair : tuple
        The two datasets.
    scores : tuple of arrays
        The scores of the judging half on the first dataset and on the second, for `plot`.
    thresholds : tuple of float
        Up to the first one the rule guesses the second dataset, from the second one on the first
        dataset; NaN: no guess.
    """

    epsilon_lower: float
    confidence: Fraction
    claimed: Fraction | None
    samples: int
    guesses: int
    right: int
    rule: str
    pair: tuple[Any, Any]
    scores: tuple[Any, Any]
    thresholds: tuple[float, float]

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted: with a true claim this happens with probability <= α."""
        return self.claimed is not None and Fraction(self.epsilon_lower) > self.claimed

    def __str__(self) -> str:
        share = f"{float(self.confidence):.6g}"
        lines = [f"ε >= {self.epsilon_lower:.4g} with confidence {share}"]
        if self.claimed is not None:
            verdict = "VIOLATED" if self.violated else "not refuted (which proves nothing)"
            lines.append(f"claim ε = {number_text(self.claimed)}: {verdict}")
        lines.append(
            f"{self.right:,} of {self.guesses:,} guesses were right ({self.samples:,} samples, "
            "half of them to learn the rule)"
        )
        lines.append(f"rule: {self.rule}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the scores on both datasets and the thresholds; save it if a path is given.

        The figure belongs to no window: a notebook shows it, `savefig` writes it.
        """
        require_extra("matplotlib", "plot")
        from matplotlib.figure import Figure  # slow to import

        figure = Figure(figsize=(6.4, 4), layout="constrained")
        panel = figure.subplots()
        both = np.concatenate(self.scores)
        both = both[np.isfinite(both)]
        ends = np.quantile(both, [0.005, 0.995]) if len(both) else np.array([0.0, 1.0])
        width = max(float(ends[1] - ends[0]), 1e-9)
        bins = np.linspace(ends[0] - 0.02 * width, ends[1] + 0.02 * width, 81)
        for scores, label, color in zip(self.scores, ("D", "D'"), ("C0", "C1"), strict=True):
            shown = np.clip(scores, bins[0], bins[-1])
            panel.hist(shown, bins=bins.tolist(), histtype="step", label=label, color=color)
        for threshold, color in zip(self.thresholds, ("C1", "C0"), strict=True):
            if np.isfinite(threshold):
                panel.axvline(threshold, color=color, linestyle="--")
        panel.set_xlabel("score by which the two datasets are told apart")
        panel.set_ylabel("outcomes")
        panel.set_title(str(self).splitlines()[0], fontsize=10)
        panel.legend()
        if path is not None:
            figure.savefig(path, dpi=144)
        return figure


def lower_bound(
    mechanism: Callable[..., Any],
    data: Any,
    neighbor: Any,
    *,
    samples: int = 100_000,
    epsilon: Rational | None = None,
    confidence: Rational = "0.95",
    vectorized: bool = False,
    classifier: Any = None,
) -> LowerBound:
    """Bound the ε of a black box from below, by running it on two neighboring datasets.

    Use it to detect too small noise, or leaks, in code without a proof. It can refute a
    claim but never prove one: an event of probability e^-50 does not occur in any sample. For such
    events see `exact`; to stop as soon as a claim is refuted, see `sequential`.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data)`` returns one outcome: a number, an array or list of numbers, a `Release`,
        or anything with a repr that says what it is. Calls must be independent. An exception is
        an outcome.
    data, neighbor : object
        Two neighboring datasets, passed to the mechanism as they are.
    samples : int
        The number of calls; a fair coin chooses the dataset of each.
    epsilon : int, float, str or Fraction, optional
        The claim to check; the result then says whether it is refuted.
    confidence : int, float, str or Fraction
        The bound is right with at least this probability, whatever the mechanism.
    vectorized : bool
        Call ``mechanism(data, count)`` instead, which returns an array of that many outcomes.
    classifier : object, optional
        Anything with `fit(X, y)` and `decision_function` or `predict_proba`, as in scikit-learn;
        its score is tried in addition to the built-in ones.

    Returns
    -------
    LowerBound
        Prints itself; `epsilon_lower`, `violated`, `plot()`.

    Examples
    --------
    Noise of scale 1/2 instead of 1: ε is 2, not 1. (The outcome is rounded to thousandths:
    the last bits of a float would reveal far more, see docs/audit.md.)

    >>> import numpy as np
    >>> from zerodelta import audit
    >>> def noisy(total, count):
    ...     return np.rint(1000 * (total + np.random.default_rng().laplace(scale=0.5, size=count)))
    >>> bound = audit.lower_bound(noisy, 0, 1, epsilon=1, samples=50_000, vectorized=True)
    >>> bound.violated, 1.6 < bound.epsilon_lower < 2.1
    (True, True)
    """
    count = as_count(samples, "samples", minimum=40)
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    box = BlackBox(mechanism=mechanism, datasets=(data, neighbor), vectorized=vectorized)
    sample = box.draw(count, current_bits())
    return judge(box, sample, claimed, as_confidence(confidence), classifier)


def judge(
    box: BlackBox, sample: Sample, claimed: Fraction | None, confidence: Fraction, classifier: Any
) -> LowerBound:
    """Learn a rule from the first half of a sample and judge it on the second."""
    half = len(sample) // 2
    columns = columns_of(sample.outcomes)
    rule = learn(columns[:half], sample.coins[:half], log_odds_objective, classifier)
    guesses, coins = rule.guesses(columns[half:]), sample.coins[half:]
    count, right = int(np.count_nonzero(guesses)), int(np.count_nonzero(guesses == coins))
    scores = _by_dataset(rule, columns[half:], coins)
    return LowerBound(
        epsilon_lower=epsilon_of_guesses_lower(count, right, 1 - confidence),
        confidence=confidence,
        claimed=claimed,
        samples=len(sample),
        guesses=count,
        right=right,
        rule=str(rule),
        pair=box.datasets,
        scores=scores,
        thresholds=(rule.lower, rule.upper),
    )


def _by_dataset(rule: GuessRule, columns: Columns, coins: Any) -> tuple[Any, Any]:
    scores = rule.scores(columns)
    return scores[coins > 0], scores[coins < 0]


def as_confidence(value: Rational) -> Fraction:
    """Return a confidence as an exact rational; refuse one that is not between 0 and 1."""
    exact = as_rational(value, "confidence")
    require(0 < exact < 1, "confidence", value, "a number between 0 and 1", "pass 0.95")
    return exact


def epsilon_of_guesses_lower(guesses: int, right: int, alpha: Fraction) -> float:
    """Return a lower bound on ε that is wrong with probability at most α.

    >>> round(epsilon_of_guesses_lower(1000, 1000, Fraction(1, 20)), 3)
    5.809
    """
    accuracy = accuracy_lower(guesses, right, alpha)
    return max(0.0, log_odds_lower(Fraction(accuracy))) if accuracy > 0 else 0.0


def accuracy_lower(guesses: int, right: int, alpha: Fraction) -> float:
    """Return the Clopper-Pearson lower bound p, with P(Binomial(guesses, p) >= right) <= α.

    >>> accuracy_lower(10, 0, Fraction(1, 20)), round(accuracy_lower(10, 10, Fraction(1, 20)), 6)
    (0.0, 0.741134)
    """
    if right == 0:
        return 0.0
    guess = float(betaincinv(right, guesses - right + 1, float(alpha)))
    for slack in (1e-11, 1e-9, 1e-6, 1e-3, 1e-1):  # lower SciPy's root until Arb confirms it
        accuracy = guess * (1 - slack)
        with ctx.workprec(_BITS):
            tail: arb = ball(accuracy).beta_lower(
                ball(right), ball(guesses - right + 1), regularized=True
            )
            if tail <= ball(alpha):
                return accuracy
    return 0.0


# -- A sequential test of "this mechanism is ε-DP" by betting: it may be stopped at any time ------
# A gambler guesses coins from outcomes (see `guess_rule.py`) and bets that the guess is right. At
# the odds that ε-DP implies, the wealth is a supermartingale if the claim is true, whatever rules
# are used, as long as each was learned from earlier outcomes only. By Ville's inequality it ever
# reaches 1/α with probability at most α. So a wealth of 1/α refutes the claim, and it may be
# checked after every call.

_GAINS = 0.25 ** np.arange(4.0, -2.0, -1.0)
"""The bets: a sixth of the wealth each bets that ε exceeds the claim by 1/256, 1/64, …, 4."""
_FIRST = 100
"""Number of outcomes from which the first rule is learned."""
_MAXIMUM_TO_LEARN = 60_000
"""Number of the latest outcomes from which a rule is learned, which bounds the time."""
_MARGIN = 1e-6
"""Extra log-wealth required: the rounding errors of 1e7 bets are below 1e-8."""
_GRID = np.arange(1, 4001) / 100
"""The values of ε that are tested for the lower bound."""


@value
class SequentialTest:
    """The result of a sequential test of a claim.

    Parameters
    ----------
    violated : bool
        Whether the claim is refuted; if it is true, this happens with probability at most α.
    epsilon : Fraction
        The claim.
    confidence : Fraction
        1 - α, for any time of stopping.
    epsilon_lower : float
        A lower bound on ε with that confidence, a multiple of 0.01.
    samples : int
        The number of calls of the mechanism.
    guesses, right : int
        The numbers of bets made and won.
    history : tuple of (int, float)
        Number of samples and logarithm of the wealth, after each batch.
    rule : str
        The last rule, in words.
    pair : tuple
        The two datasets.
    """

    violated: bool
    epsilon: Fraction
    confidence: Fraction
    epsilon_lower: float
    samples: int
    guesses: int
    right: int
    history: tuple[tuple[int, float], ...]
    rule: str
    pair: tuple[Any, Any]

    def __str__(self) -> str:
        verdict = "VIOLATED" if self.violated else "not refuted (which proves nothing)"
        return "\n".join(
            [
                f"claim ε = {number_text(self.epsilon)}: {verdict} after {self.samples:,} samples",
                f"ε >= {self.epsilon_lower:.4g} with confidence {float(self.confidence):.6g}, "
                "at any time of stopping",
                f"{self.right:,} of {self.guesses:,} bets were won; the wealth is "
                f"10^{self.history[-1][1] / np.log(10):.1f}",
                f"last rule: {self.rule}",
            ]
        )

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the wealth against the number of samples; save it if a path is given."""
        require_extra("matplotlib", "plot")
        from matplotlib.figure import Figure  # slow to import

        figure = Figure(figsize=(6.4, 4), layout="constrained")
        panel = figure.subplots()
        counts, logs = zip(*self.history, strict=True)
        panel.plot(counts, np.array(logs) / np.log(10), label="wealth")
        needed = -np.log10(float(1 - self.confidence))
        panel.axhline(needed, color="C3", linestyle="--", label="the claim is refuted")
        panel.set_xlabel("samples")
        panel.set_ylabel("log10 of the wealth")
        panel.set_title(str(self).splitlines()[0], fontsize=10)
        panel.legend()
        if path is not None:
            figure.savefig(path, dpi=144)
        return figure


def sequential(
    mechanism: Callable[..., Any],
    data: Any,
    neighbor: Any,
    *,
    epsilon: Rational,
    samples: int = 1_000_000,
    confidence: Rational = "0.95",
    vectorized: bool = False,
    classifier: Any = None,
) -> SequentialTest:
    """Test whether a black box is ε-DP, and stop as soon as the claim is refuted.

    Use it if a call is expensive or a gross mistake is suspected; use `lower_bound` if the number
    of samples is fixed. Stopping early, or continuing, does not change the confidence.

    Parameters
    ----------
    mechanism, data, neighbor, vectorized, classifier
        As in `lower_bound`.
    epsilon : int, float, str or Fraction
        The claim.
    samples : int
        The largest number of calls.
    confidence : int, float, str or Fraction
        A true claim is ever refuted with probability at most 1 - confidence.

    Returns
    -------
    SequentialTest
        Prints itself; `violated`, `samples`, `epsilon_lower`, `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta import audit
    >>> def noisy(total, count):
    ...     return np.rint(1000 * (total + np.random.default_rng().laplace(scale=0.5, size=count)))
    >>> test = audit.sequential(noisy, 0, 1, epsilon=1, vectorized=True)
    >>> test.violated, test.samples < 20_000
    (True, True)
    """
    claimed, trust = as_positive(epsilon, "epsilon"), as_confidence(confidence)
    maximum_samples = as_count(samples, "samples", minimum=2 * _FIRST)
    coins = current_bits()
    box = BlackBox(mechanism=mechanism, datasets=(data, neighbor), vectorized=vectorized)
    needed = -float(np.log(float(1 - trust))) + _MARGIN
    float_claim = np.nextafter(float(claimed), np.inf)  # rounded up: a weaker claim to refute
    past = box.draw(_FIRST, coins)
    drawn, guesses, right = len(past), 0, 0
    history = [(drawn, 0.0)]
    objective = _growth(float_claim)
    names: tuple[str, ...] = ()
    learned_at = 0
    while drawn < maximum_samples and history[-1][1] < needed:
        batch = box.draw(min(maximum_samples - drawn, max(20, drawn // 20)), coins)
        both = joined([past, batch])
        columns = columns_of(both.outcomes)
        if drawn > 1.2 * learned_at or columns.names != names:  # learn from earlier coins only
            rule = learn(columns[: len(past)], past.coins, objective, classifier)
            names, learned_at = columns.names, drawn
            promising = _promises(rule.guesses(columns[: len(past)]), past.coins, float_claim)
        bets = rule.guesses(columns[len(past) :]) if promising else np.zeros(len(batch))
        guesses += int(np.count_nonzero(bets))
        right += int(np.count_nonzero(bets == batch.coins))
        drawn += len(batch)
        past = _last(both)
        history.append((drawn, float(log_wealth(guesses, right, np.array([float_claim]))[0])))
    refuted = log_wealth(guesses, right, _GRID) >= needed
    steps = len(_GRID) if refuted.all() else int(np.argmin(refuted))
    return SequentialTest(
        violated=history[-1][1] >= needed,
        epsilon=claimed,
        confidence=trust,
        # the bound is the last value of the grid before the first that is not refuted
        epsilon_lower=float(_GRID[steps - 1]) if steps else 0.0,
        samples=drawn,
        guesses=guesses,
        right=right,
        history=tuple(history),
        rule=str(rule),
        pair=box.datasets,
    )


def log_wealth(guesses: int, right: int, epsilons: Floats) -> Floats:
    """Return the logarithm of the gambler's wealth after `guesses` bets, for each claim.

    Let g and θ be the accuracies at log-odds ε + gain and ε. A bet on ε + gain multiplies the
    wealth by g/θ if the guess is right and by (1 - g)/(1 - θ) if it is wrong: on average by at most
    1 if the accuracy is at most θ.
    """
    claim = epsilons[:, None]
    scale = np.log1p(np.exp(-claim)) - np.log1p(np.exp(-claim - _GAINS))
    logs = right * scale + (guesses - right) * (scale - _GAINS)
    largest = logs.max(axis=1)
    wealth: Floats = largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1))
    return wealth


def _growth(epsilon: float) -> Objective:
    """Return an objective: the expected growth of log-wealth if it is positive, else accuracy."""

    def objective(guesses: Floats, right: Floats) -> Floats:
        """Return the expected growth of log-wealth; the gain over `epsilon` if not positive."""
        gain = log_odds_objective(guesses, right) - epsilon
        share = 1 / (1 + np.exp(-gain - epsilon))
        growth = np.log1p(np.exp(-epsilon)) - np.log1p(np.exp(-epsilon - gain))
        return np.where(gain > 0, guesses * (growth - (1 - share) * gain), gain)

    return objective


def _promises(guesses: Coins, coins: Coins, epsilon: float) -> bool:
    """Tell whether a rule was right more often than ε-DP allows; no bets are made otherwise."""
    allowed = np.count_nonzero(guesses) / (1 + np.exp(-epsilon))
    return bool(np.count_nonzero(guesses == coins) > allowed)


def _last(sample: Sample) -> Sample:
    outcomes, coins = sample.outcomes[-_MAXIMUM_TO_LEARN:], sample.coins[-_MAXIMUM_TO_LEARN:]
    return Sample(outcomes=outcomes, coins=coins)


# -- Search small neighboring datasets for the pair on which a black box leaks most ---------------
# Pilot samples choose the pair, and fresh samples judge it: so the confidence of the bound does not
# depend on the number of pairs that were tried.

Pair: TypeAlias = tuple[list[Any], list[Any]]
_MINIMUM_PILOT = 200
"""Smallest number of pilot samples of a pair in each round."""
_EVEN_ODDS = Fraction(1, 2)


def search(
    mechanism: Callable[..., Any],
    domain: Sequence[Any],
    *,
    n: int,
    samples: int = 100_000,
    epsilon: Rational | None = None,
    confidence: Rational = "0.95",
    neighbors: Neighbors | str = Neighbors.REPLACE,
    pairs: int = 64,
    vectorized: bool = False,
    classifier: Any = None,
) -> LowerBound:
    """Search for neighboring datasets on which a black box leaks, and bound its ε from below.

    Use it if the worst datasets are not obvious; if they are, pass them to `lower_bound`.
    Each round of pilot samples drops half of the pairs; fresh samples judge the last pair.

    Parameters
    ----------
    mechanism : callable
        As in `lower_bound`; a dataset is a list of n rows.
    domain : sequence
        A few values that a row may have: include the extremes.
    n : int
        The number of rows; under add-remove the smaller dataset has n - 1.
    samples : int
        The number of fresh samples for the last pair; all pilots together take about as many.
    neighbors : Neighbors or str
        "replace" or "add-remove".
    pairs : int
        The number of pairs to try, starting with those closest to constant datasets.
    epsilon, confidence, vectorized, classifier
        As in `lower_bound`.

    Returns
    -------
    LowerBound
        Its `pair` is the pair of datasets that leaks most.

    Examples
    --------
    A count with enough noise, except for rows equal to 9:

    >>> import numpy as np
    >>> from zerodelta import audit
    >>> def count(rows, draws):
    ...     noise = np.random.default_rng().laplace(size=draws)
    ...     return np.rint(1000 * (sum(3 if row == 9 else row for row in rows) + noise))
    >>> bound = audit.search(count, [0, 1, 9], n=2, epsilon=1, samples=20_000, vectorized=True)
    >>> bound.violated, any(9 in rows for rows in bound.pair)
    (True, True)
    """
    relation = Neighbors(neighbors)
    count = as_count(samples, "samples", minimum=40)
    maximum_pairs = as_count(pairs, "pairs", minimum=1)
    trust = as_confidence(confidence)
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    source = current_bits()
    candidates = small_neighbors(domain, as_count(n, "n", minimum=1), relation)[:maximum_pairs]
    rounds = max(1, (len(candidates) - 1).bit_length())
    while len(candidates) > 1:  # halve the candidates, keeping their order; ties go to the first
        pilot_samples = max(_MINIMUM_PILOT, count // (rounds * len(candidates)))
        scored = []
        for i, pair in enumerate(candidates):
            box = BlackBox(mechanism=mechanism, datasets=pair, vectorized=vectorized)
            pilot = judge(box, box.draw(pilot_samples, source), None, _EVEN_ODDS, classifier)
            scored.append((pilot.epsilon_lower, -i))
        best = sorted(scored, reverse=True)[: (len(candidates) + 1) // 2]
        candidates = [candidates[i] for i in sorted(-negated for _, negated in best)]
    ((data, neighbor),) = candidates
    return lower_bound(
        mechanism,
        data,
        neighbor,
        samples=count,
        epsilon=claimed,
        confidence=trust,
        vectorized=vectorized,
        classifier=classifier,
    )


def small_neighbors(domain: Sequence[Any], n: int, relation: Neighbors) -> list[Pair]:
    """Return neighboring datasets over a domain, starting with those whose rows are most equal.

    Pairs that differ only in the order of rows or of the two datasets are listed once. The list
    has at most a few thousand pairs.

    >>> small_neighbors([0, 1], 2, Neighbors.REPLACE)
    [([0, 0], [1, 0]), ([0, 1], [1, 1])]
    >>> small_neighbors([0, 1], 2, Neighbors.ADD_REMOVE)[:2]
    [([0, 0], [0]), ([1, 0], [0])]
    """
    require(len(domain) > 0, "domain", domain, "at least one value", "pass the extremes")
    others = itertools.islice(itertools.combinations_with_replacement(domain, n - 1), 4096)
    ranked = sorted(others, key=lambda rest: sum(value != rest[0] for value in rest))
    pairs: list[Pair] = []
    for rest in ranked:
        if relation is Neighbors.REPLACE:
            changes = itertools.combinations(domain, 2)
            pairs += [([a, *rest], [b, *rest]) for a, b in changes]
        else:
            pairs += [([a, *rest], list(rest)) for a in domain]
    require(pairs, "domain", domain, "two values or more under replace", "pass the extremes")
    return pairs
