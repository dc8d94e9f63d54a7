"""Algorithm 9 (`alg: ptr`): propose-test-release, approximate DP (theory A7).

A bound β on the local sensitivity is proposed; if the dataset is far enough from any dataset that
exceeds it, by a noisy test, the answer is released with noise for β, else ⊥.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import bernoulli_exp
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.paper.stable_queries import StableQuery, query_status
from zerodelta.privacy.issue import issue
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.testing import proposed_release_claim

__all__ = ["draft", "noisy_test", "paper_threshold", "propose_test_release", "proposed_step"]

Integers = npt.NDArray[Any]

PUBLIC = ("the number of rows", "the query's bounds and grid", "the proposed bound")
WORD = "the caller's query, distance and local sensitivity are what they claim to be"


def paper_threshold(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return the paper's threshold ln(1/δ)/ε, rounded up: P(pass | distance 0) <= δ/2."""
    target = as_log_delta(log_delta)
    if target == 0:
        raise ParameterError(
            "log_delta", log_delta, expected="a logarithm below 0", remedy="pass ln δ, e.g. -30.0"
        )
    exact = as_positive(epsilon, "epsilon")
    return Fraction(upper(lambda: -ball(target) / ball(exact)))


def noisy_test(distance: int, *, epsilon: Fraction, threshold: Fraction, bits: BitSource) -> bool:
    """Return whether distance + Laplace(1/ε) > threshold, with exactly that probability.

    With x = threshold - distance it is e^(-εx)/2 for x >= 0 and 1 - e^(εx)/2 below, so a fair coin
    and a coin of a rational exponent decide it (theory C3: "decided lazily").
    """
    gap = threshold - distance
    tail = bool(bernoulli_exp(epsilon * abs(gap), size=1, bits=bits)[0]) & bool(
        bits.signs(1)[0] > 0
    )
    return tail if gap >= 0 else not tail


def proposed_step(
    *, epsilon: Fraction, release_epsilon: Fraction, threshold: Fraction, query: StableQuery
) -> Step:
    """Return the proof step of test and noisy release."""
    numbers = {
        "test_epsilon": epsilon,
        "release_epsilon": release_epsilon,
        "threshold": threshold,
        "noise": "real",
    }
    return Step(theorem="propose-test-release", numbers=numbers, status=query_status(query))


def draft(
    rows: Any,
    *,
    query: StableQuery,
    bound: int,
    test_epsilon: Fraction,
    release_epsilon: Fraction,
    threshold: Fraction,
    bits: BitSource,
) -> Integers | None:
    """Return the noisy cell, or None for ⊥. Hidden: only callers below may publish it."""
    answer = query.answer(rows)
    noisy = RoundedLaplace.for_epsilon(epsilon=release_epsilon, sensitivity=bound).apply(
        answer, bits
    )
    passed = noisy_test(
        query.distance(rows, bound), epsilon=test_epsilon, threshold=threshold, bits=bits
    )
    return noisy if passed else None


def propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    log_delta: float,
    bits: BitSource | None = None,
) -> Release:
    """Release a query with noise for a proposed bound on its local sensitivity, or None for ⊥.

    **Neighbors**: replace-one, the relation of the query's local sensitivity.
    **Guarantee**: (2ε, δ/2)-DP (theory A7, C3): of two neighbors either the answers are
    within the bound, or both pass with probability at most δ/2. `asserted` for a custom query.
    **Public**: the number of rows, the query's bounds and grid, the proposed bound.
    **Error**: when released, bound/ε on average; how often ⊥ comes depends on unseen data.

    >>> import numpy as np
    >>> from zerodelta.paper.stable_queries import Median
    >>> query = Median(bounds=(0, 100), steps=500)
    >>> ages = np.full(200, 42.0)
    >>> release = propose_test_release(ages, query=query, proposed_bound=1, epsilon=1,
    ...                                log_delta=-20.0)
    >>> release.certificate.claim.exact_epsilon, round(release.certificate.claim.log_delta(2), 6)
    (Fraction(2, 1), -20.693147)
    """
    bits = SystemBits() if bits is None else bits
    exact, threshold = (
        as_positive(epsilon, "epsilon"),
        paper_threshold(epsilon=epsilon, log_delta=log_delta),
    )
    count = query.count(rows)
    bound, lattice = query.bound_in_cells(proposed_bound, count), query.lattice(count)
    certificate = issue(
        # theory A7: (2ε, δ/2), the paper says (2ε, δ)
        claim=proposed_release_claim(
            test_epsilon=exact,
            release_epsilon=exact,
            threshold=threshold,
            noise="real",
            neighbors=Neighbors.REPLACE,
        ),
        steps=(
            proposed_step(epsilon=exact, release_epsilon=exact, threshold=threshold, query=query),
        ),
        bits=bits,
        public=PUBLIC,
        assumed=() if query_status(query) is Status.PROVEN else (WORD,),
    )
    cell = draft(
        rows,
        query=query,
        bound=bound,
        test_epsilon=exact,
        release_epsilon=exact,
        threshold=threshold,
        bits=bits,
    )
    return Release(
        value=None if cell is None else lattice.points(cell),
        certificate=certificate,
        error="depends on unseen data",
    )
