"""Noise for a privately bounded local sensitivity, for any query (theory C4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.custom_query import as_query
from zerodelta.mechanisms.local_sensitivity import MixedBoundedRelease
from zerodelta.mechanisms.stable_queries import StableQuery, assumed
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_share
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import aside, left, run
from zerodelta.tasks.propose_test_release import (
    cell_side,
    plain,
    stable_diagnosis,
    stable_rows,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def bounded_local_sensitivity(
    rows: Any,
    columns: str | list[str] | None = None,
    *,
    query: Callable[[Any], Any] | StableQuery,
    local: Callable[[Any], Any] | None = None,
    change: Rational | None = None,
    bounds: tuple[Any, Any] | None = None,
    cells: int = 10_001,
    epsilon: Rational,
    bound_share: Rational = "1/2",
    mixing_probability: Rational = "1/1000",
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the answer of your own query with noise for its local sensitivity on these rows.

    Use it for a query whose local sensitivity varies, but slowly: it is released with noise first,
    for the mechanism's own use, and the answer then gets noise for that bound.

    Parameters
    ----------
    rows : any
        What `query` and `local` are called with; a data set or a `Source` is opened
        for them.
    columns : str or list of str, optional
        Which columns of a data set or a frame; it is opened for them then.
    query : callable or StableQuery
        ``query(rows)`` returns a number or a vector; or `Median` or `TrimmedMean` of
        `zerodelta.mechanisms.stable_queries`, for which `local` and `change` are known.
    local : callable
        ``local(rows)`` returns the l1 local sensitivity of the query.
    change : number
        The sensitivity of `local`.
    bounds : (lower, upper)
        Where the answer can be: numbers, or one for each coordinate.
    cells : int
        Cells of the grid of answers, for each coordinate.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    bound_share : number in (0, 1)
        The part of ε for the bound.
    mixing_probability : number in (0, 1)
        With this probability the answer is a uniform point of the grid.
    missing : None or number
        What a missing cell of a frame counts as that is opened: None (none is missing) or a number.
        Skipping them is refused.
    method : str
        "mixing" is the only one.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set, and for `Median`
        and `TrimmedMean` of anything: which fractions of the rows were used, clipped to the bounds
        of rows, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the grid: a number, or a vector for several coordinates.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C4). What `local` and `change` are is caller-asserted; proven
    for `Median` and `TrimmedMean`.
    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that.
    **Public**: the bounds, the grid, `change`. What raises or is no number counts as the center of
    the bounds, and as a local sensitivity of the whole width.
    **Error**: the expected absolute error of a coordinate if the local sensitivity is 0, margin/ε₂;
    the true one, which is unseen, adds its own share.

    Examples
    --------
    >>> release = bounded_local_sensitivity(
    ...     [1, 0, 1] * 50_000, query=sum, local=lambda rows: 1, change=0.01, bounds=(0, 150_000),
    ...     cells=150_001, epsilon=1, mixing_probability="1e-9")
    >>> round(release.value, -4)
    100000.0

    """
    stable = as_query(query, bounds=bounds, cells=cells, local=local, change=change)
    source, facts = stable.closed(stable_rows(stable, rows, columns, missing))
    question = BoundedLocalSensitivityQuestion(
        query=stable, bound_share=bound_share, mixing_probability=mixing_probability, method=method
    )
    beside = stable_diagnosis(diagnostics, stable, source)
    plan = question.plan(facts, left(epsilon, beside))
    return run(plan, source, bits=bits, aside=aside(beside, epsilon))


@value
class BoundedLocalSensitivityQuestion:
    """The answer of a query is asked, with noise for its local sensitivity."""

    query: StableQuery
    bound_share: Rational = "1/2"
    mixing_probability: Rational = "1/1000"
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Calibrate the noise of bound and answer, and the margin between them."""
        exact, share = as_usable_epsilon(epsilon), as_share(self.bound_share, "bound_share")
        mechanism = MixedBoundedRelease.of(
            query=self.query,
            lattice=self.query.lattice(facts.rows or 0),
            epsilon=exact,
            bound_share=share,
            mixing_probability=as_weight(self.mixing_probability, "mixing_probability"),
        )
        margin = max(1, mechanism.base.margin) * cell_side(mechanism.lattice)
        only = Method(
            name="mixing",
            error=margin / float((1 - share) * exact),
            spends=f"{share}·ε on the bound, {1 - share}·ε on the answer",
            why="the rare noisy bound that falls short is paid for by mixing, at no extra ε",
        )
        chosen = choose((only,), self.method)
        return ReleasePlan(
            claim=PureDP(exact),
            steps=(mechanism.step(),),
            answer=lambda rows, bits: plain(mechanism.apply(rows, bits)),
            error=chosen.error,
            methods=(only,),
            public=(
                "the number of rows",
                "the query's bounds and grid",
                "the bound on how one row moves the local sensitivity",
            ),
            assumed=assumed(self.query),
        )
