"""Algorithm 10 (`alg: pure_ptr`): pure propose-test-release, and free mixing (theory A7, C3).

The paper mixes and adds Laplace noise afterwards, for an extra ε'. Replacing ⊥ by a uniform point
*is* mixing already, so the modern variant needs neither.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.mechanisms.noisy_test import ProposedRelease, uniform_cell
from zerodelta.mechanisms.stable_queries import StableQuery, assumed
from zerodelta.paper.algorithm_09 import PUBLIC, UNSEEN, paper_release
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import GridLattice
from zerodelta.spine.public_inputs import as_share
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

__all__ = ["algorithm_one", "free_propose_test_release", "pure_propose_test_release"]


def algorithm_one(
    lattice: GridLattice,
    *,
    claim: ApproxDP,
    epsilon: Fraction,
    base_epsilon: Fraction,
    mixing_weight: Rational,
) -> AlgorithmOne:
    """Return Algorithm 1 on the box of the grid, behind a mechanism with this claim at its ε."""
    # theory A8: Θ is the box of the grid, an linf ball; the paper's "convex set" has no such bound
    body = Body(lattice=lattice)
    scale = laplace_scale(
        norm=body.norm,
        dimension=lattice.dimension,
        diameter=2 * body.radius,
        weight=mixing_weight,
        claim=claim,
        epsilon=base_epsilon,
        extra_epsilon=epsilon - base_epsilon,
    )
    weight = as_rational(mixing_weight, "mixing_weight")
    return AlgorithmOne(body=body, scale=scale, mixing_weight=weight, base_epsilon=base_epsilon)


def pure_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    log_delta: float,
    mixing_weight: Rational,
    base_epsilon: Rational | None = None,
    bits: BitSource | None = None,
) -> Release:
    """Release a query by Algorithm 9, ⊥ replaced by a uniform point, then Algorithm 1.

    Use it to reproduce Algorithm 10; `free_propose_test_release` is never worse.

    Parameters
    ----------
    rows, query, proposed_bound
        As in `propose_test_release`.
    epsilon : number
        The pure ε of the release, 2ε + ε' of the paper.
    log_delta : float
        ln δ of Algorithm 9.
    mixing_weight : number
        ω of Algorithm 1.
    base_epsilon : number, optional
        The paper's ε, which test and release of Algorithm 9 spend each; a third of `epsilon` by
        default, so that ε' = ε.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's box.

    Notes
    -----
    **Guarantee**: pure epsilon-DP, (2ε + ε', 0) in the paper (theory A7, C3, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: depends on unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.mechanisms.stable_queries import Median
    >>> release = pure_propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound=1,
    ...     epsilon=3, log_delta=-30.0, mixing_weight="0.01")
    >>> release.certificate.claim.exact_epsilon
    Fraction(3, 1)

    """
    (total, base), (source, facts) = (
        split_epsilon(epsilon, base_epsilon, uses=2),
        query.closed(rows),
    )
    release, claim, step = paper_release(
        query=query,
        facts=facts,
        proposed_bound=proposed_bound,
        base_epsilon=base,
        log_delta=log_delta,
    )
    lattice = release.lattice
    purifier = algorithm_one(
        lattice,
        claim=claim,
        epsilon=total,
        base_epsilon=2 * base,
        mixing_weight=mixing_weight,
    )

    def answer(rows: Any, bits: BitSource) -> Any:
        cell, spare = release.draft(rows, bits), uniform_cell(lattice, bits)
        # theory A7: `points` projects the noisy answer onto the grid before it is purified; without
        # it the tails of the base mechanism are unprotected
        return purifier.apply(lattice.points(spare if cell is None else cell), bits)

    plan = ReleasePlan(
        claim=PureDP(total),
        steps=(step, purifier.step()),
        answer=answer,
        error=UNSEEN,
        public=PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)


def free_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    test_share: Rational = "1/2",
    bits: BitSource | None = None,
) -> Release:
    """Release a query by Algorithm 9 with free mixing, as `zd.propose_test_release` does.

    Use it for comparison with `pure_propose_test_release`, on the same queries.

    Parameters
    ----------
    rows, query, proposed_bound
        As in `propose_test_release`.
    epsilon : number
        The pure ε of the release.
    test_share : number
        The part of ε that the test spends.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's grid.

    Notes
    -----
    **Guarantee**: pure ε-DP, ε = ε₁ + ε₂ with ε₁ = test_share·ε for the test, if N·dp·pm <=
    e^ε(1-dp) - 1 (theory C3); the threshold is the smallest that meets it.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: depends on unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.mechanisms.stable_queries import Median
    >>> release = free_propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound="1/10",
    ...     epsilon=1)
    >>> release.value.round(-1)
    array([40.])

    """
    exact, (source, facts) = as_positive(epsilon, "epsilon"), query.closed(rows)
    count = facts.rows or 0
    release = ProposedRelease.free(
        query=query,
        lattice=query.lattice(count),
        bound=query.bound_in_cells(proposed_bound, count),
        epsilon=exact,
        test_share=as_share(test_share, "test_share"),
    )
    plan = ReleasePlan(
        claim=PureDP(exact),
        steps=(release.step(),),
        answer=release.apply,
        error=UNSEEN,
        public=PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)
