"""A lower bound on the ε of any black box from samples, at once or one by one; where to look.

Coins choose the dataset of each call. A rule that guesses the coin is learned from the first half
of the outcomes and judged on the second. Given all outcomes, the coins of an ε-DP mechanism are
independent, and each guess is right with probability at most e^ε/(1 + e^ε). So the number of right
guesses is at most binomial with that probability, and its exact lower confidence bound gives one on
ε. There is one rule and one bound: nothing has to be corrected for multiplicity.
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
    """What sampling found out about a mechanism's ε.

    Parameters
    ----------
    epsilon_lower : float
        The mechanism is not ε-DP for any smaller ε, with the stated confidence.
    confidence : Fraction
        The probability, over all runs of the audit, that the bound is right.
    claimed : Fraction or None
        The ε that was to be checked.
    samples : int
        How often the mechanism was called.
    guesses, right : int
        How often the rule guessed in the judging half of the samples, and how often rightly.
    rule : str
        The rule, in words.
    pair : tuple
        The two datasets.
    scores : tuple of arrays
        Of the judging half, the scores on the first dataset and on the second; for the picture.
    thresholds : tuple of float
        Below the first the second dataset is guessed, from the second on the first; NaN: never.
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

    Use it to catch noise that is too small or leaks in code that you cannot prove. It can refute a
    claim and never prove one: an event of probability e^-50 does not occur in any sample. For
    that see `exact`; to stop as soon as a claim is refuted, `sequential`.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data)`` returns one outcome: a number, an array or list of numbers, a `Release`,
        or anything with a repr that says what it is. Calls must be independent. An exception is
        an outcome.
    data, neighbor : object
        Two neighboring datasets, passed to the mechanism as they are.
    samples : int
        How many calls to make; the dataset of each is chosen by a fair coin.
    epsilon : int, float, str or Fraction, optional
        The claim to check; the result then says whether it is refuted.
    confidence : int, float, str or Fraction
        The bound is right with at least this probability, whatever the mechanism.
    vectorized : bool
        Call ``mechanism(data, count)`` instead, which returns an array of that many outcomes.
    classifier : object, optional
        Anything with `fit(X, y)` and `decision_function` or `predict_proba`, as in scikit-learn;
        its score is tried beside the built-in ones.

    Returns
    -------
    LowerBound
        Prints itself; `epsilon_lower`, `violated`, `plot()`.

    Examples
    --------
    Noise of scale 1/2 where 1 was promised: ε is 2, not 1. (The outcome is rounded to thousandths:
    the last bits of a float would show far more than that, see docs/audit.md.)

    >>> import numpy as np
    >>> from zerodelta import audit
    >>> def noisy(total, count):
    ...     return np.rint(1000 * (total + np.random.default_rng().laplace(scale=0.5, size=count)))
    >>> found = audit.lower_bound(noisy, 0, 1, epsilon=1, samples=50_000, vectorized=True)
    >>> found.violated, 1.6 < found.epsilon_lower < 2.1
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
    made, right = int(np.count_nonzero(guesses)), int(np.count_nonzero(guesses == coins))
    scores = _by_dataset(rule, columns[half:], coins)
    return LowerBound(
        epsilon_lower=epsilon_of_guesses_lower(made, right, 1 - confidence),
        confidence=confidence,
        claimed=claimed,
        samples=len(sample),
        guesses=made,
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
    """Return a confidence as an exact rational, refusing what is not between 0 and 1."""
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
    """Return the Clopper-Pearson lower bound: P(Binomial(guesses, it) >= right) <= α, certainly.

    >>> accuracy_lower(10, 0, Fraction(1, 20)), round(accuracy_lower(10, 10, Fraction(1, 20)), 6)
    (0.0, 0.741134)
    """
    if right == 0:
        return 0.0
    guess = float(betaincinv(right, guesses - right + 1, float(alpha)))
    for slack in (1e-11, 1e-9, 1e-6, 1e-3, 1e-1):  # SciPy's root, then a little less, checked
        accuracy = guess * (1 - slack)
        with ctx.workprec(_BITS):
            tail: arb = ball(accuracy).beta_lower(
                ball(right), ball(guesses - right + 1), regularized=True
            )
            if tail <= ball(alpha):
                return accuracy
    return 0.0


# -- A sequential test of "this mechanism is ε-DP" by betting: it may be stopped at any time ------
# A gambler guesses coins from outcomes (see `outcomes`) and bets that a guess is right. At the
# odds that ε-DP implies, his wealth is a supermartingale if the claim is true, whatever rules he
# uses, as long as each was learned from earlier outcomes only. By Ville's inequality it ever
# reaches 1/α with probability at most α. So wealth of 1/α refutes the claim, and one may look
# after every call.

_GAINS = 0.25 ** np.arange(4.0, -2.0, -1.0)
"""The bets: a sixth of the money each says that ε is larger than claimed by 1/256, 1/64, …, 4."""
_FIRST = 100
"""Outcomes of which the first rule is learned."""
_LEARN_FROM = 60_000
"""A rule is learned from at most so many outcomes, the last ones."""
_MARGIN = 1e-6
"""More log-wealth than needed: rounding errors of 1e7 bets are below 1e-8."""
_GRID = np.arange(1, 4001) / 100
"""The values of ε among which the lower bound is found."""


@value
class SequentialTest:
    """How a sequential test of a claim ended.

    Parameters
    ----------
    violated : bool
        Whether the claim is refuted; if it is true, this happens with probability at most α.
    epsilon : Fraction
        The claim.
    confidence : Fraction
        1 - α, whenever one stops.
    epsilon_lower : float
        A lower bound on ε with that confidence, a multiple of 0.01.
    samples : int
        How often the mechanism was called.
    guesses, right : int
        How many bets were made, and how many were won.
    history : tuple of (int, float)
        Samples so far, and the logarithm of the wealth.
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
    """Test whether a black box is ε-DP, and stop as soon as that is refuted.

    Use it where a call is expensive or gross mistakes are suspected; `lower_bound` where the number
    of samples is fixed. Stopping early, or asking for more, does not spoil the confidence.

    Parameters
    ----------
    mechanism, data, neighbor, vectorized, classifier
        As in `lower_bound`.
    epsilon : int, float, str or Fraction
        The claim.
    samples : int
        When to give up.
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
    most = as_count(samples, "samples", minimum=2 * _FIRST)
    coins = current_bits()
    box = BlackBox(mechanism=mechanism, datasets=(data, neighbor), vectorized=vectorized)
    needed = -float(np.log(float(1 - trust))) + _MARGIN
    float_claim = np.nextafter(float(claimed), np.inf)  # a weaker claim: refuted later
    past = box.draw(_FIRST, coins)
    drawn, guesses, right = len(past), 0, 0
    history = [(drawn, 0.0)]
    objective = _growth(float_claim)
    names: tuple[str, ...] = ()
    learned_at = 0
    while drawn < most and history[-1][1] < needed:
        batch = box.draw(min(most - drawn, max(20, drawn // 20)), coins)
        both = joined([past, batch])
        columns = columns_of(both.outcomes)
        if drawn > 1.2 * learned_at or columns.names != names:  # from earlier coins only
            rule = learn(columns[: len(past)], past.coins, objective, classifier)
            names, learned_at = columns.names, drawn
            promising = _promises(rule.guesses(columns[: len(past)]), past.coins, float_claim)
        found = rule.guesses(columns[len(past) :]) if promising else np.zeros(len(batch))
        guesses += int(np.count_nonzero(found))
        right += int(np.count_nonzero(found == batch.coins))
        drawn += len(batch)
        past = _last(both)
        history.append((drawn, float(log_wealth(guesses, right, np.array([float_claim]))[0])))
    refuted = log_wealth(guesses, right, _GRID) >= needed
    steps = len(_GRID) if refuted.all() else int(np.argmin(refuted))
    return SequentialTest(
        violated=history[-1][1] >= needed,
        epsilon=claimed,
        confidence=trust,
        # each value of the grid was tested; the bound is the last before which all are refuted
        epsilon_lower=float(_GRID[steps - 1]) if steps else 0.0,
        samples=drawn,
        guesses=guesses,
        right=right,
        history=tuple(history),
        rule=str(rule),
        pair=box.datasets,
    )


def log_wealth(guesses: int, right: int, epsilons: Floats) -> Floats:
    """Return the logarithm of the gambler's wealth after so many bets, for each claim.

    A bet that the log-odds are ε + gain multiplies by g/θ if right and by (1 - g)/(1 - θ) if
    wrong, g and θ being the accuracies at ε + gain and ε: on average by at most 1 if the accuracy
    is at most θ.
    """
    claim = epsilons[:, None]
    scale = np.log1p(np.exp(-claim)) - np.log1p(np.exp(-claim - _GAINS))
    logs = right * scale + (guesses - right) * (scale - _GAINS)
    largest = logs.max(axis=1)
    found: Floats = largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1))
    return found


def _growth(epsilon: float) -> Objective:
    """Score rules by the growth of log-wealth that they promise, if any, else by accuracy."""

    def objective(guesses: Floats, right: Floats) -> Floats:
        gain = log_odds_objective(guesses, right) - epsilon
        share = 1 / (1 + np.exp(-gain - epsilon))
        growth = np.log1p(np.exp(-epsilon)) - np.log1p(np.exp(-epsilon - gain))
        return np.where(gain > 0, guesses * (growth - (1 - share) * gain), gain)

    return objective


def _promises(guesses: Coins, coins: Coins, epsilon: float) -> bool:
    """Tell whether a rule has been right more often than ε-DP allows: else it is not bet on."""
    allowed = np.count_nonzero(guesses) / (1 + np.exp(-epsilon))
    return bool(np.count_nonzero(guesses == coins) > allowed)


def _last(sample: Sample) -> Sample:
    outcomes, coins = sample.outcomes[-_LEARN_FROM:], sample.coins[-_LEARN_FROM:]
    return Sample(outcomes=outcomes, coins=coins)


# -- Search small neighboring datasets for the pair on which a black box leaks most ---------------
# Pilot samples choose the pair, fresh samples judge it: the confidence of the bound is not touched
# by how many pairs were tried.

Pair: TypeAlias = tuple[list[Any], list[Any]]
_FEWEST = 200
"""Pilot samples of a pair in each round."""
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
    """Find neighboring datasets on which a black box leaks, and bound its ε from below there.

    Use it where it is not obvious which datasets are worst; where it is, `lower_bound` with those.
    Half of the pairs are dropped in each round of pilot samples; the last pair gets fresh ones.

    Parameters
    ----------
    mechanism : callable
        As in `lower_bound`; a dataset is a list of n rows.
    domain : sequence
        A few values that a row may have: include the extremes.
    n : int
        How many rows; under add-remove the smaller dataset has n - 1.
    samples : int
        How many fresh samples judge the last pair; the pilots together take about as many.
    neighbors : Neighbors or str
        "replace" or "add-remove".
    pairs : int
        How many pairs to try: those that differ most from constant datasets come last.
    epsilon, confidence, vectorized, classifier
        As in `lower_bound`.

    Returns
    -------
    LowerBound
        `pair` is the pair of datasets that was found.

    Examples
    --------
    A count whose noise fits, but for rows of 9:

    >>> import numpy as np
    >>> from zerodelta import audit
    >>> def count(rows, draws):
    ...     noise = np.random.default_rng().laplace(size=draws)
    ...     return np.rint(1000 * (sum(3 if row == 9 else row for row in rows) + noise))
    >>> found = audit.search(count, [0, 1, 9], n=2, epsilon=1, samples=20_000, vectorized=True)
    >>> found.violated, any(9 in rows for rows in found.pair)
    (True, True)
    """
    relation = Neighbors(neighbors)
    count, most = as_count(samples, "samples", minimum=40), as_count(pairs, "pairs", minimum=1)
    trust = as_confidence(confidence)
    claimed = None if epsilon is None else as_positive(epsilon, "epsilon")
    source = current_bits()
    left = small_neighbors(domain, as_count(n, "n", minimum=1), relation)[:most]
    rounds = max(1, (len(left) - 1).bit_length())
    while len(left) > 1:
        each = max(_FEWEST, count // (rounds * len(left)))
        scored = []
        for place, pair in enumerate(left):
            box = BlackBox(mechanism=mechanism, datasets=pair, vectorized=vectorized)
            pilot = judge(box, box.draw(each, source), None, _EVEN_ODDS, classifier)
            scored.append((pilot.epsilon_lower, -place))
        keep = sorted(sorted(scored, reverse=True)[: (len(left) + 1) // 2], key=lambda x: -x[1])
        left = [left[-place] for _, place in keep]
    ((data, neighbor),) = left
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
    """Return neighboring datasets over a domain, those with the most equal rows first.

    One pair of each two that differ in the order of the other rows or of the pair only; at most a
    few thousand.

    >>> small_neighbors([0, 1], 2, Neighbors.REPLACE)
    [([0, 0], [1, 0]), ([0, 1], [1, 1])]
    >>> small_neighbors([0, 1], 2, Neighbors.ADD_REMOVE)[:2]
    [([0, 0], [0]), ([1, 0], [0])]
    """
    require(len(domain) > 0, "domain", domain, "at least one value", "pass the extremes")
    others = itertools.islice(itertools.combinations_with_replacement(domain, n - 1), 4096)
    ranked = sorted(others, key=lambda rest: sum(value != rest[0] for value in rest))
    found: list[Pair] = []
    for rest in ranked:
        if relation is Neighbors.REPLACE:
            changes = itertools.combinations(domain, 2)
            found += [([a, *rest], [b, *rest]) for a, b in changes]
        else:
            found += [([a, *rest], list(rest)) for a in domain]
    require(found, "domain", domain, "two values or more under replace", "pass the extremes")
    return found
