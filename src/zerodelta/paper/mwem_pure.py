"""Pure MWEM by basic composition (theory C7, C10.6): the default, instead of Algorithm 16.

A10: at the same ε it has a smaller error *bound* than purified MWEM in every configuration tried.
There is no sampling error: the whole distribution is released.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.paper.algorithm_14 import counted, expected_error, run
from zerodelta.paper.workloads import Workload, histogram, source_of, workload_assumptions
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.release import Release

__all__ = ["best_rounds", "pure_mwem", "round_mechanisms"]


def round_mechanisms(
    *, epsilon: Rational, rounds: int, workload: Workload
) -> tuple[PermuteAndFlip, RoundedLaplace]:
    """Return the choice and the measurement of a round, with ε/(2T) each."""
    share = as_positive(epsilon, "epsilon") / (2 * as_count(rounds, "rounds", minimum=1))
    return (
        PermuteAndFlip.for_epsilon(epsilon=share, sensitivity=workload.bound),
        RoundedLaplace.for_epsilon(epsilon=share, sensitivity=workload.bound),
    )


def best_rounds(*, rows: int, workload: Workload, epsilon: Rational) -> int:
    """Return the T with the smallest `expected_error`, from public numbers.

    >>> from zerodelta.paper.workloads import Marginals
    >>> best_rounds(rows=100_000, workload=Marginals(dimension=16), epsilon=1)
    552
    """
    n = as_count(rows, "rows", minimum=1)
    best, found = 1, _error(n, workload, epsilon, 1)
    candidate = Fraction(1)
    while candidate < 1 << 20:
        candidate = max(candidate * Fraction(21, 20), candidate + 1)
        rounds = round(candidate)
        error = _error(n, workload, epsilon, rounds)
        if error < found:
            best, found = rounds, error
        elif rounds > 4 * best:
            break
    return best


def _error(rows: int, workload: Workload, epsilon: Rational, rounds: int) -> float:
    select, measure = round_mechanisms(epsilon=epsilon, rounds=rounds, workload=workload)
    return expected_error(
        rows=rows, workload=workload, rounds=rounds, select=select, measure=measure
    )


def pure_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    rounds: int | None = None,
    bits: BitSource | None = None,
) -> Release:
    """Release a distribution over the universe whose answers resemble the data's (pure DP).

    Its value sums to 1; `workload.totals(value)` answers the queries as averages, and
    `proportional_sampling(value, size=m)` draws synthetic rows at no further cost.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: pure ε-DP: each of T rounds spends ε/(2T) on permute-and-flip among integer
    scores |round(n q(p)) - q(D)| and ε/(2T) on rounded Laplace noise on one count (C7, C10.6).
    **Public**: the workload, `epsilon`, `rounds` (default: `best_rounds`), n.
    **Error**: `expected_error`, the largest error of an answer as a fraction of n · bound.

    >>> import numpy as np
    >>> from zerodelta.paper.workloads import Marginals
    >>> people = np.array([[0, 1, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]] * 250)
    >>> release = pure_mwem(people, workload=Marginals(dimension=3), epsilon=1)
    >>> release.value.shape, release.certificate.claim.exact_epsilon
    ((8,), Fraction(1, 1))
    """
    source = SystemBits() if bits is None else bits
    target = as_positive(epsilon, "epsilon")
    data = source_of(rows, workload)
    n = data.rows
    if rounds is None:
        rounds = best_rounds(rows=n, workload=workload, epsilon=target)
    select, measure = round_mechanisms(epsilon=target, rounds=rounds, workload=workload)
    certificate = issue(
        claim=PureDP(target),
        steps=tuple(
            counted(step, rounds, workload, data) for step in (select.step(), measure.step())
        ),
        bits=source,
        public=("the workload", "the number of rounds", "the number of rows"),
        assumed=workload_assumptions(workload, data),
    )
    counts = histogram(data, workload)
    value = run(counts, workload, rounds=rounds, select=select, measure=measure, bits=source)
    error = _error(n, workload, target, rounds)
    return Release(value=value, certificate=certificate, error=error)
