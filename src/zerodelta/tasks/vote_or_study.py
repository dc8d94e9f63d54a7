"""Which of several models is best, by a vote of blocks or in a study: what each can tell apart.

Both are forecast for one candidate that leads all others, which are tied, in its mean score: the
largest expected loss over all leads, as `worst_gap` is for stated scores, in parts of the range of
a score. Rows are a random sample, and the standard deviation of a score is half its range, the most
that it can be. On scores alone a study is ahead, for its noise falls with n and that of blocks with
√n; but a study trains on noise, and a block does not. The noise on the p numbers that are trained
is taken to move a score as much as it moves them all; what a block loses because it has few rows is
left to `least_rows`. The rule was chosen on the cells of `bench/vote_or_study.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from zerodelta.channels.planner import plan
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.spaces import Finite
from zerodelta.spine.methods import Method, ranked

LEAST_ROWS = 25
"""Rows of a block on average, at least: with fewer most learners collapse (tables.md §6)."""

_FEWEST_BLOCKS = 3

PARAMETERS = 10
"""Numbers that training finds, where nobody says how many."""

_SPREAD = 0.5
"""The standard deviation of a score within (0, 1), at most."""

_LEADS = 24
_DRAWS = 400_000
"""Votes that are drawn for a forecast, all options of all runs together: 1 to 3 % of it."""


def _wanted(options: int, epsilon: Fraction) -> float:
    return (math.log(options) + 1) / float(epsilon)


def blocks_for(options: int, epsilon: Fraction, rows: int, least_rows: int = LEAST_ROWS) -> int:
    """Return into how many blocks rows are dealt for a vote: 8(ln K + 1)/ε, if rows are enough.

    >>> blocks_for(16, Fraction(1), 100_000), blocks_for(16, Fraction(1), 500)
    (31, 20)
    """
    most = rows // as_count(least_rows, "least_rows", minimum=1)
    return max(_FEWEST_BLOCKS, min(math.ceil(8 * _wanted(options, epsilon)), most))


def can_decide(options: int, epsilon: Fraction, blocks: int) -> bool:
    """Tell whether so many votes are more than their noise.

    >>> can_decide(16, Fraction(1), 8), can_decide(16, Fraction(1), 7)
    (True, False)
    """
    return blocks >= 2 * _wanted(options, epsilon)


def vote_or_study(
    *,
    n: int,
    options: int,
    epsilon: Rational,
    parameters: int = PARAMETERS,
    least_rows: int = LEAST_ROWS,
    scoring: Rational = Fraction(1, 5),
    mixing_probability: Rational = Fraction(1, 100),
) -> tuple[Method, ...]:
    """Return both ways to choose among models that are trained, best first.

    `parameters`: how many numbers are trained for a candidate. A vote that cannot decide has an
    infinite error: blocks would have to be smaller than a learner needs.

    >>> [method.name for method in vote_or_study(n=1000, options=8, epsilon=1, parameters=10)]
    ['vote', 'study']
    >>> [method.name for method in vote_or_study(n=1000, options=8, epsilon=1, parameters=1)]
    ['study', 'vote']
    """
    trained = as_count(parameters, "parameters")
    exact, count = as_usable_epsilon(epsilon), as_count(options, "options", minimum=1)
    rows = as_count(n, "n", minimum=1)
    blocks = blocks_for(count, exact, rows, least_rows)
    decides = can_decide(count, exact, blocks)
    each = f"{blocks} blocks of {rows / blocks:.0f} rows"
    vote = Method(
        name="vote",
        error=_vote_gap(count, float(2 / exact), blocks, rows / blocks) if decides else math.inf,
        spends=f"ε on one vote of each of {each}",
        why="every block trains without noise, and is large enough to choose"
        if decides
        else f"{blocks} votes cannot decide among {count} options at this ε, and with fewer than "
        f"{least_rows} rows a block cannot learn",
    )
    share = as_rational(scoring, "scoring")
    noise = _study_noise(count, exact, rows, trained, share, mixing_probability)
    lead, gap = _normal_gap(count)
    study = Method(
        name="study",
        error=noise * (gap + float(as_rational(mixing_probability, "")) * lead),
        spends=f"ε on one name; {share} of the queries' μ² on scores, the rest on training",
        why=f"all rows train every candidate, {trained} numbers with noise: for few numbers, or "
        "blocks too weak to choose",
    )
    return ranked(vote, study)


def _study_noise(
    options: int,
    epsilon: Fraction,
    rows: int,
    trained: int,
    share: Fraction,
    mixing_probability: Rational,
) -> float:
    """Return the standard deviation of a score in a study, sampling and noise together."""
    made = plan(Finite(options), epsilon=epsilon, mixing_probability=mixing_probability)
    # one row moves all scores by 1/n, √K/n together, and the p numbers of a candidate by √p/n: each
    # has noise of √p times that, all of them p times; K candidates share what is left for training
    parts = 1 / float(share) + trained**2 / float(1 - share)
    noise = options * parts / float(made.calibration.mu_squared) / rows**2
    return math.sqrt(noise + _SPREAD**2 / rows)


def _leads(options: int, count: int) -> Floats:
    """Return leads in standard deviations, up to where hardly a rival passes."""
    most = 3.0 + 2.0 * math.sqrt(math.log(options))
    leads: Floats = most * np.arange(1, count + 1) / count
    return leads


def _first(options: int, leads: Floats) -> Floats:
    """Return how likely one normal number, ahead by a lead, is the largest of so many."""
    z = np.linspace(-9.0, 9.0, 361)  # of the leading one, around its lead
    others = ndtr(leads[:, None] + z) ** (options - 1)
    weights = np.exp(-(z**2) / 2)
    found: Floats = others @ (weights / weights.sum())
    return found


@lru_cache(maxsize=256)
def _normal_gap(options: int) -> tuple[float, float]:
    """Return the worst lead and its expected loss, both at a standard deviation of 1."""
    leads = _leads(options, 200)
    gaps = leads * (1 - _first(options, leads))
    worst = int(gaps.argmax())
    return float(leads[worst]), float(gaps[worst])


@lru_cache(maxsize=256)
def _vote_gap(options: int, scale: float, blocks: int, rows: float) -> float:
    """Return the largest expected loss of a vote by permute-and-flip, in parts of the range.

    Votes are drawn with a fixed seed, so a forecast is a function of public numbers.
    """
    if options == 1:
        return 0.0
    rng, draws = np.random.default_rng(0), max(200, _DRAWS // (options * _LEADS))
    leads, worst = _leads(options, _LEADS), 0.0
    for lead, right in zip(leads, _first(options, leads), strict=True):
        chances = np.full(options, (1 - right) / (options - 1))
        chances[0] = 1 - chances[1:].sum()
        votes = rng.multinomial(blocks, chances, size=draws)
        noisy = votes + rng.exponential(scale, size=votes.shape)  # the law of permute-and-flip
        worst = max(worst, float(lead * np.mean(noisy.argmax(axis=1) != 0)))
    return worst * _SPREAD / math.sqrt(rows)
