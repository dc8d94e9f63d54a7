"""Algorithm 11 (`alg: bound_local`): noise for a privately bounded local sensitivity (A8, C4).

The local sensitivity is released with noise and a margin, the answer with noise for that bound,
and the result is purified: by Algorithm 1 as in the paper, or by uniform mixing at no extra ε.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.channels.channel import mix
from zerodelta.channels.kernel import Body
from zerodelta.channels.wasserstein import AlgorithmOne, laplace_scale
from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.noise import rounded_laplace
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.paper.algorithm_09 import WORD, Integers
from zerodelta.paper.algorithm_10 import uniform_cell
from zerodelta.paper.stable_queries import StableQuery, query_status
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.theorems.testing import bounded_release_claim, bounded_release_threshold

__all__ = ["bounded_local_sensitivity", "paper_margin", "pure_bounded_local_sensitivity"]

_PUBLIC = (
    "the number of rows",
    "the query's bounds and grid",
    "the bound on how one row moves the local sensitivity",
)


def paper_margin(*, epsilon: Rational, log_delta: float, local_change: int) -> int:
    """Return the paper's margin γ·ln(2/δ)/ε in cells, rounded up to an integer."""
    target, exact = as_log_delta(log_delta), as_positive(epsilon, "epsilon")
    change = as_count(local_change, "local_change", minimum=1)
    return math.ceil(upper(lambda: (ball(2).log() - ball(target)) * change / ball(exact)))


def pure_bounded_local_sensitivity(
    rows: Any,
    *,
    query: StableQuery,
    epsilon: Rational,
    extra_epsilon: Rational,
    log_delta: float,
    mixing_weight: Rational,
    smallest_bound: int = 1,
    bits: BitSource | None = None,
) -> Release:
    """Release a query with noise for its noisy local sensitivity, purified by Algorithm 1.

    **Neighbors**: replace-one, for the query, its local sensitivity and that one's change.
    **Guarantee**: (2ε + ε', 0)-DP (theory A8, C4, B3). `asserted` for a custom query.
    **Public**: the number of rows, the query's grid, the change of its local sensitivity.
    **Error**: about d·(local sensitivity + margin)/ε in l1; depends on unseen data.

    >>> from zerodelta.paper.stable_queries import CustomQuery
    >>> from zerodelta.spaces import Box
    >>> query = CustomQuery(function=len, grid=Box(0, 100).grid(101), local=lambda rows: 0,
    ...                     change=1)
    >>> release = pure_bounded_local_sensitivity([1, 2, 3], query=query, epsilon=1,
    ...     extra_epsilon=1, log_delta=-30.0, mixing_weight="0.01")
    >>> release.certificate.status.value
    'asserted'
    """
    bits = SystemBits() if bits is None else bits
    exact, extra = as_positive(epsilon, "epsilon"), as_positive(extra_epsilon, "extra_epsilon")
    lattice, change = query.lattice(query.count(rows)), _change(query)
    least = as_count(smallest_bound, "smallest_bound", minimum=1)
    margin = paper_margin(epsilon=exact, log_delta=log_delta, local_change=change)
    numbers = {
        "bound_epsilon": exact,
        "release_epsilon": exact,
        "local_change": change,
        "threshold": margin,
        "noise": "rounded",
    }
    # theory A8: (2ε, δ/4), the paper says (2ε, δ)
    claim = bounded_release_claim(
        bound_epsilon=exact,
        release_epsilon=exact,
        local_change=change,
        threshold=margin,
        noise="rounded",
        neighbors=Neighbors.REPLACE,
    )
    # theory A8: Θ is the box of the grid, an linf ball; the paper's "convex set" has no such bound
    body = Body(lattice=lattice)
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
            Step(theorem="noisy-local-sensitivity", numbers=numbers, status=query_status(query)),
            purifier.step(),
        ),
        bits=bits,
        public=_PUBLIC,
        assumed=() if query_status(query) is Status.PROVEN else (WORD,),
    )
    cell = _draft(
        rows,
        query=query,
        epsilons=(exact, exact),
        change=change,
        least=least,
        margin=margin,
        bits=bits,
    )
    return Release(
        value=purifier.apply(lattice.points(cell), bits),  # projected onto the grid first (A1b)
        certificate=certificate,
        error="depends on unseen data",
    )


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
    """Release a query with noise for its noisy local sensitivity, mixed with a uniform point.

    An answer outside the grid is replaced by a uniform point too; the noisy bound stays hidden.

    **Neighbors**: replace-one, for the query, its local sensitivity and that one's change.
    **Guarantee**: pure ε-DP, ε = ε₁ + ε₂ with ε₁ = bound_share·ε for the bound, if
    (1-w)(N·db·pm + db) <= w(e^ε - 1) (theory C4); the margin is the smallest that meets it.
    `asserted` for a custom query.
    **Public**: the number of rows, the query's grid, the change of its local sensitivity.
    **Error**: about (local sensitivity + margin)/ε₂ per coordinate; depends on unseen data.

    >>> from zerodelta.paper.stable_queries import Median
    >>> import numpy as np
    >>> release = bounded_local_sensitivity(
    ...     np.full(200, 42.0), query=Median(bounds=(0, 100), steps=50), epsilon=1,
    ...     mixing_weight="0.01")
    >>> release.certificate.claim, release.certificate.status.value
    (PureDP(epsilon=1, bounded_range=0, neighbors=replace), 'proven')
    """
    bits = SystemBits() if bits is None else bits
    exact, share = as_positive(epsilon, "epsilon"), as_rational(bound_share, "bound_share")
    if not 0 < share < 1:
        raise ParameterError(
            "bound_share", bound_share, expected="a number in (0, 1)", remedy='pass "1/2"'
        )
    first, second = share * exact, (1 - share) * exact
    weight = as_weight(mixing_weight)
    lattice, change = query.lattice(query.count(rows)), _change(query)
    least = as_count(smallest_bound, "smallest_bound", minimum=1)
    points = lattice.cells**lattice.dimension
    margin = bounded_release_threshold(
        points=points,
        dimension=lattice.dimension,
        bound_epsilon=first,
        release_epsilon=second,
        local_change=change,
        smallest_bound=least,
        weight=weight,
        noise="rounded",
    )
    numbers = {
        "points": points,
        "dimension": lattice.dimension,
        "bound_epsilon": first,
        "release_epsilon": second,
        "local_change": change,
        "smallest_bound": least,
        "threshold": margin,
        "weight": weight,
        "noise": "rounded",
    }
    certificate = issue(
        claim=PureDP(exact),
        steps=(
            Step(theorem="pure-local-sensitivity", numbers=numbers, status=query_status(query)),
        ),
        bits=bits,
        public=_PUBLIC,
        assumed=() if query_status(query) is Status.PROVEN else (WORD,),
    )
    cell = _draft(
        rows,
        query=query,
        epsilons=(first, second),
        change=change,
        least=least,
        margin=int(margin),
        bits=bits,
    )
    spare, drawn = uniform_cell(lattice, bits), uniform_cell(lattice, bits)
    kept = cell if lattice.contains(np.asarray(cell)) else spare
    return Release(
        value=lattice.points(mix(kept, drawn, weight, bits)),
        certificate=certificate,
        error="depends on unseen data",
    )


def _draft(
    rows: Any,
    *,
    query: StableQuery,
    epsilons: tuple[Fraction, Fraction],
    change: int,
    least: int,
    margin: int,
    bits: BitSource,
) -> Integers:
    """Return the answer with noise for the noisy bound; both are hidden."""
    first, second = epsilons
    noise = int(rounded_laplace(scale=change / first, size=1, bits=bits)[0])
    # theory A8: local sensitivity in l1, the norm of product Laplace noise (the paper has l2);
    # and at least a public bound, because LS + noise + margin may be 0 or less
    bound = max(least, query.local_sensitivity(rows) + noise + margin)
    answer = query.answer(rows)
    return add_exactly(answer, rounded_laplace(scale=bound / second, size=len(answer), bits=bits))


def _change(query: StableQuery) -> int:
    if query.local_change is None:
        raise ParameterError(
            "change",
            None,
            expected="a public bound on how one row moves the local sensitivity (theory A8)",
            remedy="pass change= to the query",
        )
    return query.local_change
