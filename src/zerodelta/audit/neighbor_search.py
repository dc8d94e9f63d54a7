"""Search small neighboring datasets for the pair on which a black box leaks most.

Pilot samples choose the pair, fresh samples judge it: the confidence of the bound is not touched by
how many pairs were tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from zerodelta.audit.outcomes import BlackBox
from zerodelta.audit.sampled_bound import LowerBound, as_confidence, judge, lower_bound
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.neighbors import Neighbors

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
    bits: BitSource | None = None,
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
    epsilon, confidence, vectorized, classifier, bits
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
    source = SystemBits() if bits is None else bits
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
        bits=source,
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
