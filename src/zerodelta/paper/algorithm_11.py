"""Algorithm 11 (`alg: bound_local`): noise for a privately bounded local sensitivity (A8, C4).

The local sensitivity is released with noise and a margin, the answer with noise for that bound,
and the result is purified: by Algorithm 1 as in the paper, or by uniform mixing at no extra ε.
"""

from __future__ import annotations

import math
from typing import Any

from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.local_sensitivity import BoundedRelease, MixedBoundedRelease
from zerodelta.mechanisms.stable_queries import StableQuery, assumed, query_status
from zerodelta.paper.algorithm_09 import UNSEEN
from zerodelta.paper.algorithm_10 import algorithm_one
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.testing import bounded_release_claim
from zerodelta.spine.public_inputs import as_share
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

__all__ = ["bounded_local_sensitivity", "paper_margin", "pure_bounded_local_sensitivity"]

_PUBLIC = (
    "the number of rows",
    "the query's bounds and grid",
    "the bound on how one row moves the local sensitivity",
)


def paper_margin(*, base_epsilon: Rational, log_delta: float, local_change: int) -> int:
    """Return the paper's margin γ·ln(2/δ)/ε in cells, rounded up to an integer."""
    target, exact = as_log_delta(log_delta), as_positive(base_epsilon, "base_epsilon")
    change = as_count(local_change, "local_change", minimum=1)
    return math.ceil(upper(lambda: (ball(2).log() - ball(target)) * change / ball(exact)))


def pure_bounded_local_sensitivity(
    rows: Any,
    *,
    query: StableQuery,
    epsilon: Rational,
    log_delta: float,
    mixing_weight: Rational,
    base_epsilon: Rational | None = None,
    smallest_bound: int = 1,
    bits: BitSource | None = None,
) -> Release:
    """Release a query with noise for its noisy local sensitivity, purified by Algorithm 1.

    Use it to reproduce Algorithm 11; `bounded_local_sensitivity` needs no extra ε.

    Parameters
    ----------
    rows : array, list or series
        What the query is asked of.
    query : StableQuery
        With a local sensitivity whose own change is bounded; a `CustomQuery` is caller-asserted.
    epsilon : number
        The pure ε of the release, 2ε + ε' of the paper (its theorem: 3ε).
    log_delta : float
        ln δ, which sets the margin on the noisy local sensitivity.
    mixing_weight : number
        ω of Algorithm 1.
    base_epsilon : number, optional
        The paper's ε, which the bound and the noisy answer spend each; a third of `epsilon` by
        default, so that ε' = ε.
    smallest_bound : int
        The least bound, in cells of the grid.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's box.

    Notes
    -----
    **Guarantee**: pure epsilon-DP, (2ε + ε', 0) in the paper (theory A8, C4, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, for the query, its local sensitivity and that one's change; n is
    public.
    **Error**: about d·(local sensitivity + margin)/ε in l1; depends on unseen data.

    Examples
    --------
    >>> from zerodelta.mechanisms.custom_query import CustomQuery
    >>> from zerodelta.spaces import Box
    >>> query = CustomQuery(function=len, grid=Box(0, 100).grid(101), local=lambda rows: 0,
    ...                     change=1)
    >>> release = pure_bounded_local_sensitivity([1, 2, 3], query=query, epsilon=3,
    ...     log_delta=-30.0, mixing_weight="0.01")
    >>> release.certificate.status.value
    'asserted'

    """
    (total, base), (source, facts) = (
        split_epsilon(epsilon, base_epsilon, uses=2),
        query.closed(rows),
    )
    lattice, change = query.lattice(facts.rows or 0), query.local_change
    release = BoundedRelease(
        query=query,
        bound_epsilon=base,
        release_epsilon=base,
        smallest_bound=as_count(smallest_bound, "smallest_bound", minimum=1),
        margin=paper_margin(base_epsilon=base, log_delta=log_delta, local_change=change),
    )
    numbers: dict[str, Any] = {
        "bound_epsilon": base,
        "release_epsilon": base,
        "local_change": change,
        "threshold": release.margin,
        "noise": "rounded",
    }
    purifier = algorithm_one(
        lattice,
        # theory A8: (2ε, δ/4), the paper says (2ε, δ)
        claim=bounded_release_claim(**numbers, neighbors=Neighbors.REPLACE),
        epsilon=total,
        base_epsilon=2 * base,
        mixing_weight=mixing_weight,
    )

    def answer(rows: Any, bits: BitSource) -> Any:
        cell = release.draft(rows, bits)
        return purifier.apply(lattice.points(cell), bits)  # projected onto the grid first (A1b)

    plan = ReleasePlan(
        claim=PureDP(total),
        steps=(
            Step(theorem="noisy-local-sensitivity", numbers=numbers, status=query_status(query)),
            purifier.step(),
        ),
        answer=answer,
        error=UNSEEN,
        public=_PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)


def bounded_local_sensitivity(
    rows: Any,
    *,
    query: StableQuery,
    epsilon: Rational,
    mixing_weight: Rational,
    bound_share: Rational = "1/2",
    smallest_bound: int = 1,
    bits: BitSource | None = None,
) -> Release:
    """Release a query by Algorithm 11 with uniform mixing, as `zd.bounded_local_sensitivity` does.

    Use it for comparison with `pure_bounded_local_sensitivity`, on the same queries.

    Parameters
    ----------
    rows, query, smallest_bound
        As in `pure_bounded_local_sensitivity`.
    epsilon : number
        The pure ε of the release.
    mixing_weight : number
        The probability w of a uniform point.
    bound_share : number
        The part of ε that the bound spends.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's grid.

    Notes
    -----
    **Guarantee**: pure ε-DP, ε = ε₁ + ε₂ with ε₁ = bound_share·ε for the bound, if
    (1-w)(N·db·pm + db) <= w(e^ε - 1) (theory C4); the margin is the smallest that meets it.
    **Neighbors**: replace-one, as in `pure_bounded_local_sensitivity`.
    **Error**: depends on unseen data.

    Examples
    --------
    >>> from zerodelta.mechanisms.stable_queries import Median
    >>> import numpy as np
    >>> release = bounded_local_sensitivity(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=50), epsilon=1,
    ...     mixing_weight="0.01")
    >>> release.certificate.claim, release.certificate.status.value
    (PureDP(epsilon=1, bounded_range=0, neighbors=replace), 'proven')

    """
    exact, (source, facts) = as_positive(epsilon, "epsilon"), query.closed(rows)
    release = MixedBoundedRelease.of(
        query=query,
        lattice=query.lattice(facts.rows or 0),
        epsilon=exact,
        bound_share=as_share(bound_share, "bound_share"),
        mixing_probability=as_weight(mixing_weight),
        smallest_bound=as_count(smallest_bound, "smallest_bound", minimum=1),
    )
    plan = ReleasePlan(
        claim=PureDP(exact),
        steps=(release.step(),),
        answer=release.apply,
        error=UNSEEN,
        public=_PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)
