"""Propose-test-release for any query, with free mixing (theory C3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.paper.algorithm_10 import free_propose_test_release
from zerodelta.paper.stable_queries import StableQuery
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.methods import Method, choose
from zerodelta.spine.public_inputs import needed
from zerodelta.tasks.stable_query import as_query, cell_side, plain

__all__ = ["propose_test_release", "propose_test_release_methods"]


def propose_test_release(
    rows: Any,
    *,
    query: Callable[[Any], Any] | StableQuery,
    stability: Callable[[Any, float], Any] | None = None,
    proposed_bound: Rational | None = None,
    bounds: tuple[Any, Any] | None = None,
    cells: int = 10_001,
    epsilon: Rational,
    test_share: Rational = "1/2",
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release query(rows) with noise for a proposed bound on its local sensitivity.

    If the rows are not far enough from rows with a larger local sensitivity, by a noisy test, a
    uniform point of the grid is released instead; nobody is told which it was.

    **Releases**: a number (or vector) of a grid with `cells` cells a side over the `bounds`.
    **Neighbors**: replace-one, the relation of the local sensitivity.
    **Guarantee**: pure ε-DP (C3), ε₁ = test_share·ε for the test and the rest for the answer.
    `asserted`: the caller's word is that stability(rows, bound) is at most the number of rows to
    replace until the l1 local sensitivity of the query exceeds `bound`, and moves by at most 1
    between neighbors. Proven for `Median` and `TrimmedMean` of `zerodelta.paper.stable_queries`.
    **Public**: the bounds, the grid, the proposed bound. What raises or is no number counts as the
    center of the bounds, and as distance 0.
    **Error**: the expected absolute error of a coordinate if the test passes, as it does for rows
    far from instability; depends on unseen data otherwise.

    >>> def middle(rows): return sorted(rows)[len(rows) // 2]
    >>> def far(rows, bound): return 400  # all 1000 rows are equal: 400 changes move nothing
    >>> release = propose_test_release([42.0] * 1000, query=middle, stability=far,
    ...                                proposed_bound=0.5, bounds=(0, 100), epsilon=1)
    >>> 20 < release.value < 60, release.certificate.status.value
    (True, 'asserted')
    """
    bound = needed(
        proposed_bound, "proposed_bound", "pass proposed_bound=, what one row may move the answer"
    )
    stable = as_query(query, bounds=bounds, cells=cells, stability=stability)
    count = stable.count(rows)
    methods = propose_test_release_methods(
        epsilon=epsilon,
        bound=stable.bound_in_cells(bound, count) * cell_side(stable, count),
        test_share=test_share,
    )
    chosen = choose(methods, method)
    release = free_propose_test_release(
        rows,
        query=stable,
        proposed_bound=bound,
        epsilon=epsilon,
        test_share=test_share,
        bits=bits,
    )
    return replace(release, value=plain(release.value), error=chosen.error)


def propose_test_release_methods(
    *, epsilon: Rational, bound: Rational = 1, test_share: Rational = "1/2"
) -> tuple[Method, ...]:
    """Return the one way to release: free mixing. The error is that of an answer that passes.

    >>> propose_test_release_methods(epsilon=1, bound=3)[0].error
    6.0
    """
    exact, share = as_usable_epsilon(epsilon), as_rational(test_share, "test_share")
    second = float((1 - share) * exact)
    return (
        Method(
            name="free-mixing",
            error=float(as_positive(bound, "bound")) / second if second > 0 else float("inf"),
            spends=f"{share}·ε on the test, {1 - share}·ε on the answer",
            why="a failed test is the mixing: no extra ε and no extra noise",
        ),
    )
