"""Chi-square tests on integer samples. Floats are fine here: only the p-value is at stake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from scipy.stats import chi2

MIN_EXPECTED = 20.0


def tally(values: Iterable[int], lo: int, hi: int) -> list[int]:
    """Count values in the cells (< lo), lo, ..., hi, (> hi), the cells of ``Law.cells``."""
    counts = [0] * (hi - lo + 3)
    for value in values:
        counts[min(max(value, lo - 1), hi + 1) - (lo - 1)] += 1
    return counts


def _merge(weights: Sequence[float], least: float) -> list[list[int]]:
    """Group neighboring cells, left to right, until each group weighs at least `least`."""
    groups: list[list[int]] = []
    current: list[int] = []
    weight = 0.0
    for index, w in enumerate(weights):
        current.append(index)
        weight += w
        if weight >= least:
            groups.append(current)
            current, weight = [], 0.0
    if current and groups:
        groups[-1].extend(current)
    elif current:
        groups.append(current)
    if len(groups) < 2:
        raise ValueError("fewer than two cells are left: the test would be vacuous")
    return groups


def goodness_of_fit(
    observed: Sequence[int],
    probabilities: Sequence[float],
    min_expected: float = MIN_EXPECTED,
) -> float:
    """Return the p-value of the counts under the cell probabilities (which must sum to 1).

    Neighboring cells are merged until `min_expected` counts are expected in each. An
    observation in a cell of probability 0 gives the p-value 0.
    """
    if len(observed) != len(probabilities):
        raise ValueError("one probability per cell is needed")
    if min(probabilities) < 0 or abs(sum(probabilities) - 1) > 1e-9:
        raise ValueError("the probabilities must be non-negative and sum to 1")
    if any(p == 0 and count for count, p in zip(observed, probabilities, strict=True)):
        return 0.0
    total = sum(observed)
    groups = _merge([total * p for p in probabilities], min_expected)
    statistic = 0.0
    for group in groups:
        expected = total * sum(probabilities[i] for i in group)
        statistic += (sum(observed[i] for i in group) - expected) ** 2 / expected
    return float(chi2.sf(statistic, len(groups) - 1))


def two_sample(
    first: Sequence[int], second: Sequence[int], min_expected: float = MIN_EXPECTED
) -> float:
    """Return the p-value of the hypothesis that two samples of integers have the same law.

    Cells are the distinct values in order, merged until each sample expects `min_expected`.
    """
    a, b = Counter(first), Counter(second)
    values = sorted(a.keys() | b.keys())
    share = len(first) / (len(first) + len(second))
    pooled = [a[v] + b[v] for v in values]
    groups = _merge([min(share, 1 - share) * n for n in pooled], min_expected)
    statistic = 0.0
    for group in groups:
        both = sum(pooled[i] for i in group)
        for counts, part in ((a, share), (b, 1 - share)):
            expected = both * part
            statistic += (sum(counts[values[i]] for i in group) - expected) ** 2 / expected
    return float(chi2.sf(statistic, len(groups) - 1))
