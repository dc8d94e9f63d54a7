"""Algorithm 9 (`alg: ptr`): propose-test-release, approximate DP (theory A7).

A bound β on the local sensitivity is proposed; if the dataset is far enough from any dataset that
exceeds it (D_β(X), with noise, above ln(1/δ)/ε), the answer is released with noise for β, else ⊥.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.errors import require
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.noisy_test import ProposedRelease
from zerodelta.mechanisms.stable_queries import StableQuery, assumed, query_status
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import proposed_release_claim
from zerodelta.spaces import GridLattice
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.tasks.propose_test_release import cell_side

if TYPE_CHECKING:
    from typing_extensions import Unpack

PUBLIC = ("the number of rows", "the query's bounds and grid", "the proposed bound")


def paper_threshold(*, base_epsilon: Rational, log_delta: float) -> Fraction:
    """Return the paper's threshold ln(1/δ)/ε, rounded up: P(pass | D_β = 0) <= δ/2.

    `base_epsilon` is ε of the test.

    >>> float(paper_threshold(base_epsilon="1/2", log_delta=-30.0))
    60.0
    """
    target, exact = as_log_delta(log_delta), as_positive(base_epsilon, "base_epsilon")
    remedy = "pass ln δ, e.g. -30.0"
    require(target < 0, "log_delta", log_delta, expected="a logarithm below 0", remedy=remedy)
    return Fraction(upper(lambda: -ball(target) / ball(exact)))


def forecast(
    lattice: GridLattice,
    *,
    bound: int,
    epsilon: Fraction,
    scale: Fraction | None = None,
    mixing_weight: Fraction | None = None,
) -> float:
    """Return about the expected absolute error of a coordinate, at most the side of the box.

    Of Laplace noise for a bound in cells, and, if purified, of noise of this scale on top and of a
    random point with this probability. Two Laplace variables of scales a and b have a sum of mean
    absolute value (a² + ab + b²)/(a + b).
    """
    side = float(lattice.box.widths().mean())
    a, b = bound / float(epsilon), float(scale or 0)
    noise = (a * a + a * b + b * b) / (a + b) * cell_side(lattice)
    return min(side, noise + float(mixing_weight or 0) * side / 2)


def paper_release(
    *,
    query: StableQuery,
    facts: Facts,
    proposed_bound: Rational,
    base_epsilon: Fraction,
    log_delta: float,
) -> tuple[ProposedRelease, ApproxDP, Step]:
    """Return test and noisy release with the paper's parameters, their claim and proof step."""
    count = facts.rows or 0
    threshold = paper_threshold(base_epsilon=base_epsilon, log_delta=log_delta)
    release = ProposedRelease(
        query=query,
        lattice=query.lattice(count),
        bound=query.bound_in_cells(proposed_bound, count),
        test_epsilon=base_epsilon,
        release_epsilon=base_epsilon,
        threshold=threshold,
    )
    numbers: dict[str, Any] = {
        "test_epsilon": base_epsilon,
        "release_epsilon": base_epsilon,
        "threshold": threshold,
        "noise": "real",
    }
    # theory A7: (2ε, δ/2), the paper says (2ε, δ)
    claim = proposed_release_claim(**numbers, neighbors=Neighbors.REPLACE)
    return (
        release,
        claim,
        Step(theorem="propose-test-release", numbers=numbers, status=query_status(query)),
    )


@debited
def propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a query with noise for a proposed bound on its local sensitivity, or None for ⊥.

    Use it to reproduce Algorithm 9; `zd.propose_test_release` is pure.

    Parameters
    ----------
    rows : array, list or series
        The dataset X.
    query : StableQuery
        The query q with its D_β: `Median`, `TrimmedMean`, or a `CustomQuery`, whose stability is
        caller-asserted.
    proposed_bound : number
        β, a bound on the l1 local sensitivity, in the unit of the data.
    epsilon : number
        2ε of the paper, the ε of the claim: test and release spend half of it each.
    log_delta, delta : number
        ln δ or δ, one of the two; it sets the threshold ln(1/δ)/ε of the test.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the query's grid, or None for ⊥.

    Notes
    -----
    **Guarantee**: (epsilon, δ/2)-DP (theory A7, C3): of two neighbors either the answers are
    within the bound, or both pass with probability at most δ/2. `asserted` for a custom query.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: of a coordinate, if the test passes: about 2β/epsilon. How often it fails depends on
    unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Median
    >>> release = propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound="1/5",
    ...     epsilon=2, log_delta=-20.0)
    >>> release.value.round(-1), round(release.certificate.claim.log_delta(2), 6)
    (array([40.]), -20.693147)

    """
    source, facts = query.closed(rows)
    release, claim, step = paper_release(
        query=query,
        facts=facts,
        proposed_bound=proposed_bound,
        base_epsilon=as_positive(epsilon, "epsilon") / 2,
        log_delta=log_delta_from(delta, log_delta),
    )
    half = release.release_epsilon

    def answer(rows: Any, bits: BitSource) -> Any:
        cell = release.draft(rows, bits)
        return None if cell is None else release.lattice.points(cell)

    plan = ReleasePlan(
        claim=claim,
        steps=(step,),
        answer=answer,
        error=forecast(release.lattice, bound=release.bound, epsilon=half),
        public=PUBLIC,
        assumed=assumed(query),
    )
    return run(plan, source, bits=bits)
