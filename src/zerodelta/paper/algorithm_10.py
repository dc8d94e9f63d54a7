"""Algorithm 10 (`alg: pure_ptr`): pure propose-test-release, and free mixing (theory A7, C3).

The paper mixes and adds Laplace noise afterwards, for an extra ε'. Replacing ⊥ by a uniform point
*is* mixing already, so the modern variant needs neither.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.mechanisms.noisy_test import ProposedRelease, uniform_cell
from zerodelta.mechanisms.stable_queries import StableQuery, assumed
from zerodelta.paper.algorithm_09 import PUBLIC, forecast, paper_release
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.spaces import GridLattice
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_share
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

if TYPE_CHECKING:
    from typing_extensions import Unpack


def twice_and_rest(
    epsilon: Rational, base_epsilon: Rational | None
) -> tuple[Fraction, Fraction, Fraction]:
    """Return 2ε + ε', ε and ε' of the paper's Algorithms 10 and 11: equal parts by default.

    >>> twice_and_rest(3, None)
    (Fraction(3, 1), Fraction(1, 1), Fraction(1, 1))
    """
    total = as_positive(epsilon, "epsilon")
    base = total / 3 if base_epsilon is None else as_positive(base_epsilon, "base_epsilon")
    require(
        2 * base < total,
        "base_epsilon",
        base_epsilon,
        expected=f"below epsilon/2 = {float(total / 2):g}: it is spent twice",
        remedy="leave it out for a third: the rest pays for the noise",
    )
    return total, base, total - 2 * base


def algorithm_one(
    lattice: GridLattice,
    *,
    claim: ApproxDP,
    base_epsilon: Fraction,
    extra_epsilon: Fraction,
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
        extra_epsilon=extra_epsilon,
    )
    weight = as_rational(mixing_weight, "mixing_weight")
    return AlgorithmOne(body=body, scale=scale, mixing_weight=weight, base_epsilon=base_epsilon)


@debited
def pure_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a query by Algorithm 9, ⊥ replaced by a uniform point, then Algorithm 1.

    Use it to reproduce Algorithm 10; `free_propose_test_release` is never worse.

    Parameters
    ----------
    rows, query, proposed_bound
        As in `propose_test_release`.
    epsilon : number
        2ε + ε' of the paper: the pure ε of the release.
    base_epsilon : number, optional
        ε of the paper, which test and release of Algorithm 9 spend each; a third of `epsilon` by
        default. The rest is ε' of Algorithm 1.
    log_delta, delta : number
        ln δ or δ of Algorithm 9, one of the two.
    mixing_weight : number
        ω of Algorithm 1.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's grid in Θ, a box.

    Notes
    -----
    **Guarantee**: pure DP with 2ε + ε' (theory A7, C3, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: of a coordinate, if the test passes: β/ε, Algorithm 1's noise, and ω times the box.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Median
    >>> release = pure_propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound="1/5",
    ...     epsilon=3, delta=1e-15, mixing_weight="1e-8")
    >>> release.value.round(-1), release.certificate.claim.exact_epsilon
    (array([40.]), Fraction(3, 1))

    """
    total, base, extra = twice_and_rest(epsilon, base_epsilon)
    source, facts = query.closed(rows)
    release, claim, step = paper_release(
        query=query,
        facts=facts,
        proposed_bound=proposed_bound,
        base_epsilon=base,
        log_delta=log_delta_from(delta, log_delta),
    )
    lattice = release.lattice
    purifier = algorithm_one(
        lattice,
        claim=claim,
        base_epsilon=2 * base,
        extra_epsilon=extra,
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
        error=forecast(
            lattice,
            bound=release.bound,
            epsilon=base,
            scale=purifier.scale,
            mixing_weight=purifier.mixing_weight,
        ),
        public=PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)


@debited
def free_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    test_share: Rational = "1/2",
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
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
        The part of it that the test spends.
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
    **Error**: of a coordinate, if the test passes: about β/ε₂.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Median
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
        error=forecast(release.lattice, bound=release.bound, epsilon=release.release_epsilon),
        public=PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)
