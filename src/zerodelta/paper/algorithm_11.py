"""Algorithm 11 (`alg: bound_local`): noise for a privately bounded local sensitivity (A8, C4).

The local sensitivity is released with noise and a margin, the answer with noise for that bound,
and the result is purified: by Algorithm 1 as in the paper, or by uniform mixing at no extra ε.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.local_sensitivity import BoundedRelease, MixedBoundedRelease
from zerodelta.mechanisms.stable_queries import StableQuery, assumed, query_status
from zerodelta.paper.algorithm_09 import forecast
from zerodelta.paper.algorithm_10 import algorithm_one, twice_and_rest
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.testing import bounded_release_claim
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_share
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PUBLIC = (
    "the number of rows",
    "the query's bounds and grid",
    "the bound on how one row moves the local sensitivity",
)


def paper_margin(*, base_epsilon: Rational, log_delta: float, local_change: int) -> int:
    """Return the paper's margin γ·ln(2/δ)/ε in cells, rounded up to an integer.

    `local_change` is γ, how far one row moves the local sensitivity (1 in the paper).

    >>> paper_margin(base_epsilon=1, log_delta=-30.0, local_change=1)
    31
    """
    target, exact = as_log_delta(log_delta), as_positive(base_epsilon, "base_epsilon")
    change = as_count(local_change, "local_change", minimum=1)
    return math.ceil(upper(lambda: (ball(2).log() - ball(target)) * change / ball(exact)))


@debited
def pure_bounded_local_sensitivity(
    rows: Any,
    *,
    query: StableQuery,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational,
    smallest_bound: int = 1,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a query with noise for its noisy local sensitivity, purified by Algorithm 1.

    Use it to reproduce Algorithm 11; `bounded_local_sensitivity` needs no extra ε.

    Parameters
    ----------
    rows : array, list or series
        The dataset D.
    query : StableQuery
        The query q with its local sensitivity Δ_local, in l1, whose own change by one row is
        bounded; a `CustomQuery` is caller-asserted.
    epsilon : number
        2ε + ε' of the paper (3ε in its theorem): the pure ε of the release.
    base_epsilon : number, optional
        ε of the paper, which the bound β̂ and the noisy answer spend each; a third of `epsilon` by
        default. The rest is ε' of Algorithm 1.
    log_delta, delta : number
        ln δ or δ, one of the two; it sets the margin ln(2/δ)/ε of β̂ over Δ_local.
    mixing_weight : number
        ω of Algorithm 1.
    smallest_bound : int
        The least β̂, in cells of the grid.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's grid in Θ, a box.

    Notes
    -----
    **Guarantee**: pure DP with 2ε + ε' (theory A8, C4, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, for the query, its local sensitivity and that one's change; n is
    public.
    **Error**: of a coordinate, if the local sensitivity is 0: margin/ε, Algorithm 1's noise, and ω
    times the box. A local sensitivity Δ_local adds Δ_local/ε.

    Examples
    --------
    >>> from zerodelta.queries import CustomQuery
    >>> from zerodelta.spaces import Box
    >>> query = CustomQuery(function=len, grid=Box(0, 100_000).grid(100_001), change=1,
    ...                     local=lambda rows: 0)
    >>> release = pure_bounded_local_sensitivity([0] * 30_000, query=query, epsilon=3,
    ...                                          delta=1e-20, mixing_weight="1e-8")
    >>> release.value.round(-4), release.certificate.claim.exact_epsilon
    (array([30000.]), Fraction(3, 1))

    """
    total, base, extra = twice_and_rest(epsilon, base_epsilon)
    source, facts = query.closed(rows)
    lattice, change = query.lattice(facts.rows or 0), query.local_change
    release = BoundedRelease(
        query=query,
        bound_epsilon=base,
        release_epsilon=base,
        smallest_bound=as_count(smallest_bound, "smallest_bound", minimum=1),
        margin=paper_margin(
            base_epsilon=base,
            log_delta=log_delta_from(delta, log_delta),
            local_change=change,
        ),
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
        base_epsilon=2 * base,
        extra_epsilon=extra,
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
        error=forecast(
            lattice,
            bound=max(release.smallest_bound, release.margin),
            epsilon=base,
            scale=purifier.scale,
            mixing_weight=purifier.mixing_weight,
        ),
        public=_PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)


@debited
def bounded_local_sensitivity(
    rows: Any,
    *,
    query: StableQuery,
    epsilon: Rational,
    mixing_weight: Rational,
    bound_share: Rational = "1/2",
    smallest_bound: int = 1,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
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
        The probability ω of a uniform point.
    bound_share : number
        The part of it that the bound spends.
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
    **Error**: of a coordinate, if the local sensitivity is 0: margin/ε₂, and w times the box.

    Examples
    --------
    >>> from zerodelta.queries import CustomQuery
    >>> from zerodelta.spaces import Box
    >>> query = CustomQuery(function=len, grid=Box(0, 100_000).grid(100_001), change=1,
    ...                     local=lambda rows: 0)
    >>> release = bounded_local_sensitivity([0] * 30_000, query=query, epsilon=1,
    ...                                     mixing_weight="1e-8")
    >>> release.value.round(-4), release.certificate.status.value
    (array([30000.]), 'asserted')

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
        error=forecast(
            release.lattice,
            bound=max(release.base.smallest_bound, release.base.margin),
            epsilon=release.base.release_epsilon,
            mixing_weight=release.mixing_probability,
        ),
        public=_PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)
