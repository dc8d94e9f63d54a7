"""Algorithm 10 (`alg: pure_ptr`): pure propose-test-release, and free mixing (theory A7, C3).

The paper mixes and adds Laplace noise afterwards, for an extra ε'. Replacing ⊥ by a uniform point
*is* mixing already, so the modern variant needs neither.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.paper.algorithm_09 import (
    PUBLIC,
    WORD,
    Integers,
    draft,
    paper_threshold,
    proposed_step,
)
from zerodelta.paper.stable_queries import StableQuery, query_status
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.testing import free_test_threshold, proposed_release_claim
from zerodelta.spaces import GridLattice

__all__ = ["free_propose_test_release", "pure_propose_test_release", "uniform_cell"]


def uniform_cell(lattice: GridLattice, bits: BitSource) -> Integers:
    """Return a uniform cell of the grid."""
    return uniform_below(lattice.cells, size=lattice.dimension, bits=bits)


def pure_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    extra_epsilon: Rational,
    log_delta: float,
    mixing_weight: Rational,
    bits: BitSource | None = None,
) -> Release:
    """Release a query by Algorithm 9, ⊥ replaced by a uniform point, then Algorithm 1.

    **Neighbors**: replace-one, the relation of the query's local sensitivity.
    **Guarantee**: (2ε + ε', 0)-DP (theory A7, C3, B3). `asserted` for a custom query.
    **Public**: the number of rows, the query's bounds and grid, the proposed bound.
    **Error**: depends on unseen data; `free_propose_test_release` is never worse.

    >>> import numpy as np
    >>> from zerodelta.paper.stable_queries import Median
    >>> release = pure_propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound=1,
    ...     epsilon=1, extra_epsilon=1, log_delta=-30.0, mixing_weight="0.01")
    >>> release.certificate.claim.exact_epsilon
    Fraction(3, 1)
    """
    bits = SystemBits() if bits is None else bits
    exact, extra = as_positive(epsilon, "epsilon"), as_positive(extra_epsilon, "extra_epsilon")
    threshold = paper_threshold(epsilon=exact, log_delta=log_delta)
    count = query.count(rows)
    bound, lattice = query.bound_in_cells(proposed_bound, count), query.lattice(count)
    body = Body(lattice=lattice)
    claim = proposed_release_claim(
        test_epsilon=exact,
        release_epsilon=exact,
        threshold=threshold,
        noise="real",
        neighbors=Neighbors.REPLACE,
    )
    purifier = AlgorithmOne(
        body=body,
        scale=laplace_scale(
            norm=body.norm,
            dimension=lattice.dimension,
            diameter=2 * body.radius,
            weight=mixing_weight,
            claim=claim,
            epsilon=2 * exact,
            extra_epsilon=extra,
        ),
        mixing_weight=as_rational(mixing_weight, "mixing_weight"),
        base_epsilon=2 * exact,
    )
    certificate = issue(
        claim=PureDP(2 * exact + extra),
        steps=(
            proposed_step(epsilon=exact, release_epsilon=exact, threshold=threshold, query=query),
            purifier.step(),
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
    spare = uniform_cell(lattice, bits)
    # theory A7: `points` projects the noisy answer onto the grid before it is purified; without
    # it the tails of the base mechanism are unprotected
    value = lattice.points(spare if cell is None else cell)
    return Release(
        value=purifier.apply(value, bits), certificate=certificate, error="depends on unseen data"
    )


def free_propose_test_release(
    rows: Any,
    *,
    query: StableQuery,
    proposed_bound: Rational,
    epsilon: Rational,
    test_share: Rational = "1/2",
    bits: BitSource | None = None,
) -> Release:
    """Release a query with noise for a proposed bound, or a uniform point if the test fails.

    No mixing and no extra noise: the failures are the mixing (theory C3). A noisy answer outside
    the grid counts as a failure. Nobody is told which it was.

    **Neighbors**: replace-one, the relation of the query's local sensitivity.
    **Guarantee**: pure ε-DP, ε = ε₁ + ε₂ with ε₁ = test_share·ε for the test, if N·dp·pm <=
    e^ε(1-dp) - 1 (theory C3); the threshold is the smallest that meets it. `asserted` for a
    custom query.
    **Public**: the number of rows, the query's bounds and grid, the proposed bound.
    **Error**: depends on unseen data; far from instability it is bound/ε₂ on average.

    >>> import numpy as np
    >>> from zerodelta.paper.stable_queries import Median
    >>> release = free_propose_test_release(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=500), proposed_bound=1,
    ...     epsilon=1)
    >>> release.certificate.claim
    PureDP(epsilon=1, bounded_range=0, neighbors=replace)
    """
    bits = SystemBits() if bits is None else bits
    exact, share = as_positive(epsilon, "epsilon"), as_rational(test_share, "test_share")
    if not 0 < share < 1:
        raise ParameterError(
            "test_share", test_share, expected="a number in (0, 1)", remedy='pass "1/2"'
        )
    first, second = share * exact, (1 - share) * exact
    count = query.count(rows)
    bound, lattice = query.bound_in_cells(proposed_bound, count), query.lattice(count)
    step = _free_step(lattice, bound, first, second, query_status(query))
    certificate = issue(
        claim=PureDP(exact),
        steps=(step,),
        bits=bits,
        public=PUBLIC,
        assumed=() if query_status(query) is Status.PROVEN else (WORD,),
    )
    cell = draft(
        rows,
        query=query,
        bound=bound,
        test_epsilon=first,
        release_epsilon=second,
        threshold=Fraction(str(step.numbers["threshold"])),
        bits=bits,
    )
    spare = uniform_cell(lattice, bits)
    inside = cell is not None and lattice.contains(np.asarray(cell))
    return Release(
        value=lattice.points(cell if cell is not None and inside else spare),
        certificate=certificate,
        error="depends on unseen data",
    )


def _free_step(
    lattice: GridLattice, bound: int, first: Fraction, second: Fraction, status: Status
) -> Step:
    """Return C3 with its smallest threshold."""
    numbers = {
        "points": lattice.cells**lattice.dimension,
        "dimension": lattice.dimension,
        "sensitivity": bound,
        "test_epsilon": first,
        "release_epsilon": second,
    }
    threshold = free_test_threshold(
        points=lattice.cells**lattice.dimension,
        dimension=lattice.dimension,
        sensitivity=bound,
        test_epsilon=first,
        release_epsilon=second,
    )
    return Step(
        theorem="pure-propose-test-release",
        numbers={**numbers, "threshold": threshold, "noise": "real"},
        status=status,
    )
