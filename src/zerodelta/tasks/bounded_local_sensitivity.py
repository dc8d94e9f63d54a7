"""Noise for a privately bounded local sensitivity, for any query (theory C4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.paper.algorithm_11 import bounded_local_sensitivity as bounded_release
from zerodelta.paper.stable_queries import StableQuery
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.methods import Method, choose
from zerodelta.spine.public_inputs import needed
from zerodelta.tasks.stable_query import as_query, cell_side, plain

__all__ = ["bounded_local_sensitivity", "bounded_local_sensitivity_methods"]


def bounded_local_sensitivity(
    rows: Any,
    *,
    query: Callable[[Any], Any] | StableQuery,
    local: Callable[[Any], Any] | None = None,
    change: Rational | None = None,
    bounds: tuple[Any, Any] | None = None,
    cells: int = 10_001,
    epsilon: Rational,
    bound_share: Rational = "1/2",
    mixing_weight: Rational = "1/1000",
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release query(rows) with noise for its own local sensitivity, released with noise first.

    **Releases**: a number (or vector) of a grid with `cells` cells a side over the `bounds`; the
    noisy bound stays hidden, and with probability `mixing_weight` the point is a uniform one.
    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that.
    **Guarantee**: pure ε-DP (C4), ε₁ = bound_share·ε for the bound and the rest for the answer.
    `asserted`: the caller's word is that local(rows) is the l1 local sensitivity of the query and
    moves by at most `change` between neighbors. Proven for a query of
    `zerodelta.paper.stable_queries`, whose change is known.
    **Public**: the bounds, the grid, `change`. What raises or is no number counts as the center of
    the bounds, and as a local sensitivity of the whole width.
    **Error**: the expected absolute error of a coordinate if the local sensitivity is 0, margin/ε₂;
    the true one, which is unseen, adds its own share.

    >>> release = bounded_local_sensitivity([1, 0, 1] * 50, query=sum, local=lambda rows: 1,
    ...                                     change=0.01, bounds=(0, 150), epsilon=4)
    >>> 60 < release.value < 140, release.certificate.status.value
    (True, 'asserted')
    """
    if not isinstance(query, StableQuery):
        needed(local, "local", "pass local=, a function that returns the local sensitivity")
        needed(change, "change", "pass change=, how far one row can move the local sensitivity")
    choose(bounded_local_sensitivity_methods(epsilon=epsilon, bound_share=bound_share), method)
    stable = as_query(query, bounds=bounds, cells=cells, local=local, change=change)
    release = bounded_release(
        rows,
        query=stable,
        epsilon=epsilon,
        mixing_weight=mixing_weight,
        bound_share=bound_share,
        bits=bits,
    )
    (step,) = release.certificate.steps
    margin = float(as_rational(step.numbers["threshold"], "threshold"))
    side = cell_side(stable, stable.count(rows))
    (forecast,) = bounded_local_sensitivity_methods(
        epsilon=epsilon, margin=max(1.0, margin) * side, bound_share=bound_share
    )
    return replace(release, value=plain(release.value), error=forecast.error)


def bounded_local_sensitivity_methods(
    *, epsilon: Rational, margin: Rational = 1, bound_share: Rational = "1/2"
) -> tuple[Method, ...]:
    """Return the one way to release: mixing. The error is that of local sensitivity 0.

    `margin` is what is added to the noisy local sensitivity, in the unit of the answer.

    >>> bounded_local_sensitivity_methods(epsilon=1, margin=3)[0].error
    6.0
    """
    exact, share = as_usable_epsilon(epsilon), as_rational(bound_share, "bound_share")
    second = float((1 - share) * exact)
    return (
        Method(
            name="mixing",
            error=float(as_positive(margin, "margin")) / second if second > 0 else float("inf"),
            spends=f"{share}·ε on the bound, {1 - share}·ε on the answer",
            why="the rare noisy bound that falls short is paid for by mixing, at no extra ε",
        ),
    )
