"""Run propose-test-release, its pure version, and bounded local sensitivity: Algorithms 9 to 11.

Algorithm 11 releases the local sensitivity with noise and a margin, and the answer with noise for
that bound; Algorithm 1 purifies the result (theory A7, A8, C4). `zd.queries.propose_test_release`
and `zd.queries.bounded_local_sensitivity` are pure at no extra ε.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from zerodelta.channels.kernels import Body
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.noisy_test import (
    BoundedRelease,
    ProposedRelease,
    uniform_cell,
)
from zerodelta.mechanisms.stable_queries import StableQuery, assumed, query_status
from zerodelta.paper.algorithm_01_02 import AlgorithmOne
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import Neighbors, as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.testing import NoisyLocalSensitivity, ProposeTestRelease
from zerodelta.spaces import GridLattice
from zerodelta.spine.plan import Facts, ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.robust import cell_side

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Algorithm 9 (`alg: ptr`): propose-test-release, approximate DP (theory A7) -------------------
# The user proposes a bound β on the local sensitivity. If the noisy distance D_β(X) from datasets
# that exceed it is above ln(1/δ)/ε, the answer is released with noise for β, else ⊥.

PUBLIC = ("the number of rows", "the query's bounds and grid", "the proposed bound")


def paper_threshold(*, base_epsilon: Rational, log_delta: float) -> Fraction:
    """Return the paper's threshold ln(1/δ)/ε, rounded up: P(pass | D_β = 0) <= δ/2.

    `base_epsilon` is the test's ε.

    >>> float(paper_threshold(base_epsilon="1/2", log_delta=-30.0))
    60.0
    """
    target, exact = as_log_delta(log_delta), as_positive(base_epsilon, "base_epsilon")
    require(
        target < 0,
        "log_delta",
        log_delta,
        expected="a logarithm below 0",
        remedy="pass ln δ, for example -30.0",
    )
    return Fraction(upper(lambda: -ball(target) / ball(exact)))


def forecast(
    lattice: GridLattice,
    *,
    bound: int,
    epsilon: Fraction,
    scale: Fraction | None = None,
    mixing_weight: Fraction | None = None,
) -> float:
    """Forecast the absolute error of a coordinate, at most the side of the box.

    The error is that of Laplace noise for a bound in cells. A purified release also has Laplace
    noise of the scale `scale`, and a uniform point with probability `mixing_weight`. The sum of two
    Laplace variables of scales a and b has mean absolute value (a² + ab + b²)/(a + b).
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
    """Return the test and noisy release with the paper's parameters, its claim and its step."""
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
    theorem = ProposeTestRelease(
        test_epsilon=base_epsilon,
        release_epsilon=base_epsilon,
        threshold=threshold,
        noise="real",
    )
    # theory A7: (2ε, δ/2), the paper says (2ε, δ)
    return (
        release,
        cast(ApproxDP, theorem.claim(Neighbors.REPLACE)),
        theorem.step(status=query_status(query)),
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
    **paying: Unpack[Paying],
) -> Release:
    """Release a query with noise for a proposed bound on its local sensitivity, or None for ⊥.

    Use it to reproduce Algorithm 9; `zd.queries.propose_test_release` is pure.

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
        2ε of the paper, the ε of the claim: the test and the release spend half each.
    log_delta, delta : number
        ln δ or δ, one of the two; it sets the threshold ln(1/δ)/ε of the test.

    Returns
    -------
    Release
        Its value is a point of the query's grid, or None for ⊥.

    Notes
    -----
    **Guarantee**: (epsilon, δ/2)-DP (theory A7, C3): either the answers of two neighbors are within
    the bound, or both pass the test with probability at most δ/2. `asserted` for a custom query.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: that of a coordinate, if the test passes: about 2β/epsilon. How often it fails
    depends on unseen data.

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
    return run(plan, source)


# -- Algorithm 10 (`alg: pure_ptr`): pure propose-test-release (theory A7, C3) --------------------
# The paper mixes and adds Laplace noise afterwards, for an extra ε'. Replacing ⊥ by a uniform
# point already *is* mixing, so `zd.queries.propose_test_release` needs neither.


def split_in_three(
    epsilon: Rational, base_epsilon: Rational | None
) -> tuple[Fraction, Fraction, Fraction]:
    """Return 2ε + ε', ε and ε' of the paper's Algorithms 10 and 11: equal parts by default.

    >>> split_in_three(3, None)
    (Fraction(3, 1), Fraction(1, 1), Fraction(1, 1))
    """
    total = as_positive(epsilon, "epsilon")
    base = total / 3 if base_epsilon is None else as_positive(base_epsilon, "base_epsilon")
    require(
        2 * base < total,
        "base_epsilon",
        base_epsilon,
        expected=f"below epsilon/2 = {float(total / 2):g}: it is spent twice",
        remedy="omit base_epsilon for a third: the rest is for Algorithm 1's noise",
    )
    return total, base, total - 2 * base


@partial(debited, like=propose_test_release)
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
    **paying: Unpack[Paying],
) -> Release:
    """Release a query by Algorithm 9, ⊥ replaced by a uniform point, then Algorithm 1.

    Use it to reproduce Algorithm 10; `zd.queries.propose_test_release` is never worse.

    Parameters
    ----------
    epsilon : number
        2ε + ε' of the paper: the pure ε of the release.
    base_epsilon : number, optional
        ε of the paper, which the test and the release of Algorithm 9 spend each; a third of
        `epsilon` by default. The rest is ε' of Algorithm 1.
    log_delta, delta : number
        ln δ or δ of Algorithm 9, one of the two.
    mixing_weight : number
        ω of Algorithm 1.

    Returns
    -------
    Release
        Its value is a point of the query's grid in Θ, a box.

    Notes
    -----
    **Guarantee**: pure DP with 2ε + ε' (theory A7, C3, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, the relation of the query's local sensitivity; n is public.
    **Error**: that of a coordinate, if the test passes: β/ε, Algorithm 1's noise, and ω times the
    side of the box.

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
    total, base, extra = split_in_three(epsilon, base_epsilon)
    source, facts = query.closed(rows)
    release, claim, step = paper_release(
        query=query,
        facts=facts,
        proposed_bound=proposed_bound,
        base_epsilon=base,
        log_delta=log_delta_from(delta, log_delta),
    )
    lattice = release.lattice
    # theory A8: Θ is the box of the grid, an linf ball; the paper's "convex set" has no such bound
    purifier = AlgorithmOne.behind(
        claim,
        Body(lattice=lattice),
        base_epsilon=2 * base,
        extra_epsilon=extra,
        mixing_weight=mixing_weight,
    )

    def answer(rows: Any, bits: BitSource) -> Any:
        cell, uniform = release.draft(rows, bits), uniform_cell(lattice, bits)
        # theory A7: `points` projects the noisy answer onto the grid before it is purified; without
        # it the tails of the base mechanism are unprotected
        return purifier.apply(lattice.points(uniform if cell is None else cell), bits)

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
    return run(plan, source)


# -- Algorithm 11: bounded local sensitivity (theory A8, C4) --------------------------------------

_PUBLIC = (
    "the number of rows",
    "the query's bounds and grid",
    "the bound on how one row moves the local sensitivity",
)


def paper_margin(*, base_epsilon: Rational, log_delta: float, local_change: int) -> int:
    """Return the paper's margin γ·ln(2/δ)/ε in cells, rounded up to an integer.

    `local_change` is γ, the sensitivity of the local sensitivity to one row (1 in the paper).

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
    **paying: Unpack[Paying],
) -> Release:
    """Release a query with noise for its noisy local sensitivity, purified by Algorithm 1.

    Use it to reproduce Algorithm 11; `zd.queries.bounded_local_sensitivity` needs no extra ε.

    Parameters
    ----------
    rows : array, list or series
        The dataset D.
    query : StableQuery
        The query q with its local sensitivity Δ_local, in l1, which changes by a bounded amount
        with one row; a `CustomQuery` is caller-asserted.
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
        The smallest β̂, in cells of the grid.

    Returns
    -------
    Release
        Its value is a point of the query's grid in Θ, a box.

    Notes
    -----
    **Guarantee**: pure DP with 2ε + ε' (theory A8, C4, B3).
    `asserted` for a custom query.
    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that; n is
    public.
    **Error**: that of a coordinate, if the local sensitivity is 0: margin/ε, Algorithm 1's noise,
    and ω times the side of the box. A local sensitivity Δ_local adds Δ_local/ε.

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
    total, base, extra = split_in_three(epsilon, base_epsilon)
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
    theorem = NoisyLocalSensitivity(
        bound_epsilon=base,
        release_epsilon=base,
        local_change=Fraction(change),
        threshold=Fraction(release.margin),
        noise="rounded",
    )
    purifier = AlgorithmOne.behind(
        # theory A8: (2ε, δ/4), the paper says (2ε, δ)
        theorem.claim(Neighbors.REPLACE),
        Body(lattice=lattice),
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
            theorem.step(status=query_status(query)),
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
    return run(plan, source)
