"""Exact laws of counts by key with asymmetric noise, and of lists drawn together, to enumerate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from zerodelta.audit.exact import ExpRational

Law = dict[Any, Any]


@cache
def weight(z: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z = z) ∝ e^(-up·z) or e^(-down·|z|), times what makes all weights sums of exponentials."""
    e = ExpRational.exp
    found: ExpRational = (1 - e(-up)) * (1 - e(-down)) * e(-up * z if z >= 0 else down * z)
    return found


@cache
def whole(up: Fraction, down: Fraction) -> ExpRational:
    """The sum of all weights."""
    found: ExpRational = 1 - ExpRational.exp(-up - down)
    return found


@cache
def weight_from(least: int, up: Fraction, down: Fraction) -> ExpRational:
    """The weight of Z >= least: a geometric series, or what another one leaves."""
    e = ExpRational.exp
    if least < 0:
        below: ExpRational = whole(up, down) - e(down * (least - 1)) * (1 - e(-up))
        return below
    found: ExpRational = e(-up * least) * (1 - e(-down))
    return found


def noise_pmf(z: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z = z)."""
    found: ExpRational = weight(z, up, down) / whole(up, down)
    return found


def noise_tail(least: int, up: Fraction, down: Fraction) -> ExpRational:
    """P(Z >= least)."""
    found: ExpRational = weight_from(least, up, down) / whole(up, down)
    return found


@cache
def one_key(count: int, least: int | None, high: int, up: Fraction, down: Fraction) -> Law:
    """What is published of a key: nothing, a number up to `high`, or a larger one; as weights.

    Where counts are at most `high`, the ratio of two counts is the same beyond it. Without a
    threshold (None) numbers below -1 are one outcome, for the same reason.
    """
    first = -1 if least is None else least
    law: Law = {number: weight(number - count, up, down) for number in range(first, high + 1)}
    law["more"] = weight_from(high + 1 - count, up, down)
    law["none"] = whole(up, down) - weight_from(first - count, up, down)
    return law


def published_law(
    counts: Sequence[int], least: int | None, *, up: Fraction, down: Fraction, high: int
) -> Law:
    """The law of all that is published, key by key in the order of the universe.

    All probabilities are multiplied by the same number, which their ratios do not see.
    """
    each = [one_key(count, least, high, up, down) for count in counts]
    return {
        outcome: math.prod((law[x] for law, x in zip(each, outcome, strict=True)), start=1)
        for outcome in itertools.product(*each)
    }


def lack(scores: Sequence[Fraction | int], chosen: Sequence[int]) -> Fraction:
    """How much the worst place of a list of options lacks."""
    best = sorted(scores, reverse=True)
    return max(Fraction(best[i] - scores[j]) for i, j in enumerate(chosen))


def joint_law(scores: Sequence[int], k: int, scale: Fraction) -> Law:
    """P(s) ∝ e^(-lack/scale) over all lists of k different options."""
    lists = list(itertools.permutations(range(len(scores)), k))
    weights = [ExpRational.exp(-lack(scores, chosen) / scale) for chosen in lists]
    total: Any = sum(weights[1:], weights[0])
    return {chosen: weight / total for chosen, weight in zip(lists, weights, strict=True)}
