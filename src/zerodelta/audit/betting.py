"""A sequential test of "this mechanism is ε-DP" by betting: it may be stopped at any time.

A gambler guesses coins from outcomes (see `outcomes`) and bets that a guess is right. At the odds
that ε-DP implies, his wealth is a supermartingale if the claim is true, whatever rules he uses, as
long as each was learned from earlier outcomes only. By Ville's inequality it ever reaches 1/α with
probability at most α. So wealth of 1/α refutes the claim, and one may look after every call.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.audit.guess_rule import Objective, learn, log_odds_objective
from zerodelta.audit.outcomes import BlackBox, Coins, Sample, columns_of, joined
from zerodelta.audit.sampled_bound import as_confidence
from zerodelta.errors import require_extra
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive, number_text
from zerodelta.value import value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    bits: BitSource | None = None,
) -> SequentialTest:
    """Test whether a black box is ε-DP, and stop as soon as that is refuted.

    Use it where a call is expensive or gross mistakes are suspected; `lower_bound` where the number
    of samples is fixed. Stopping early, or asking for more, does not spoil the confidence.

    Parameters
    ----------
    mechanism, data, neighbor, vectorized, classifier, bits
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
    coins = SystemBits() if bits is None else bits
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
