"""A lower bound on the ε of any black box, from samples: guesses, and one Clopper-Pearson bound.

Coins choose the dataset of each call. A rule that guesses the coin is learned from the first half
of the outcomes and judged on the second. Given all outcomes, the coins of an ε-DP mechanism are
independent, and each guess is right with probability at most e^ε/(1 + e^ε). So the number of right
guesses is at most binomial with that probability, and its exact lower confidence bound gives one on
ε. There is one rule and one bound: nothing has to be corrected for multiplicity.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx
from scipy.special import betaincinv

from zerodelta.audit.guess_rule import GuessRule, learn, log_odds_objective
from zerodelta.audit.outcomes import BlackBox, Columns, Sample, columns_of
from zerodelta.errors import require, require_extra
from zerodelta.exact.arb import ball
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.logs import log_odds_lower
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, number_text
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
    bits: BitSource | None = None,
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
    bits : BitSource, optional
        Where the coins come from; the operating system if left out.

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
    sample = box.draw(count, SystemBits() if bits is None else bits)
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
