"""Propose-test-release for any query, with free mixing (theory C3)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.source import Source
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_float
from zerodelta.mechanisms.custom_query import as_query
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.noisy_test import ProposedRelease
from zerodelta.mechanisms.stable_queries import Median, StableQuery, TrimmedMean, assumed
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import GridLattice
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_share, as_source, needed
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import Beside, Openable, aside, left, run
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def propose_test_release(
    rows: Any,
    columns: str | list[str] | None = None,
    *,
    query: Callable[[Any], Any] | StableQuery,
    stability: Callable[[Any, float], Any] | None = None,
    proposed_bound: Rational | None = None,
    bounds: tuple[Any, Any] | None = None,
    cells: int = 10_001,
    epsilon: Rational,
    test_share: Rational = "1/2",
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the answer of your own query with noise for a proposed bound on its sensitivity.

    Use it for a query that one row moves little on rows like yours, though it could move it much
    on others. If the rows are not far enough from such rows, by a noisy test, a uniform point of
    the grid is released instead; nobody is told which it was.

    Parameters
    ----------
    rows : any
        What `query` and `stability` are called with; a data set or a `Source` is opened
        for them.
    columns : str or list of str, optional
        Which columns of a data set or a frame; it is opened for them then.
    query : callable or StableQuery
        ``query(rows)`` returns a number or a vector; or `Median` or `TrimmedMean` of
        `zerodelta.mechanisms.stable_queries`, for which all below but `proposed_bound` is known.
    stability : callable
        ``stability(rows, bound)`` returns how many rows must be replaced before the l1 local
        sensitivity of the query exceeds `bound`, or less; its own sensitivity is at most 1.
    proposed_bound : number
        The l1 local sensitivity to add noise for, in the unit of the answer.
    bounds : (lower, upper)
        Where the answer can be: numbers, or one for each coordinate.
    cells : int
        Cells of the grid of answers, for each coordinate.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    test_share : number in (0, 1)
        The part of ε for the test.
    missing : None or number
        What a missing cell of a frame counts as that is opened: None (none is missing) or a number.
        Skipping them is refused.
    method : str
        "free-mixing" is the only one.
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
    **Guarantee**: pure ε-DP (theory C3). The properties of `query` and `stability` above are
    caller-asserted; proven for `Median` and `TrimmedMean`.
    **Neighbors**: replace-one, the relation of the local sensitivity.
    **Public**: the bounds, the grid, the proposed bound. What raises or is no number counts as the
    center of the bounds, and as distance 0.
    **Error**: the expected absolute error of a coordinate if the test passes, as it does for rows
    far from instability; depends on unseen data otherwise.

    Examples
    --------
    >>> def middle(rows): return sorted(rows)[len(rows) // 2]
    >>> def far(rows, bound): return 400  # all 1000 rows are equal: 400 changes move nothing
    >>> release = propose_test_release([42.0] * 1000, query=middle, stability=far,
    ...                                proposed_bound=0.001, bounds=(0, 100), cells=100_001,
    ...                                epsilon=1)
    >>> round(release.value)
    42

    """
    stable = as_query(query, bounds=bounds, cells=cells, stability=stability)
    source, facts = stable.closed(stable_rows(stable, rows, columns, missing))
    question = ProposeTestReleaseQuestion(
        query=stable, proposed_bound=proposed_bound, test_share=test_share, method=method
    )
    beside = stable_diagnosis(diagnostics, stable, source)
    plan = question.plan(facts, left(epsilon, beside))
    return run(plan, source, bits=bits, aside=aside(beside, epsilon))


@value
class ProposeTestReleaseQuestion:
    """The answer of a query is asked, with noise for a proposed bound."""

    query: StableQuery
    proposed_bound: Rational | None = None
    test_share: Rational = "1/2"
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Calibrate test and noise."""
        exact, share = as_usable_epsilon(epsilon), as_share(self.test_share, "test_share")
        remedy = "pass proposed_bound=, what one row may move the answer"
        given, count = needed(self.proposed_bound, "proposed_bound", remedy), facts.rows or 0
        as_float(given, "proposed_bound")
        lattice, bound = self.query.lattice(count), self.query.bound_in_cells(given, count)
        only = Method(
            name="free-mixing",
            error=bound * cell_side(lattice) / float((1 - share) * exact),
            spends=f"{share}·ε on the test, {1 - share}·ε on the answer",
            why="a failed test is the mixing: no extra ε and no extra noise",
        )
        chosen = choose((only,), self.method)
        mechanism = ProposedRelease.free(
            query=self.query, lattice=lattice, bound=bound, epsilon=exact, test_share=share
        )
        return ReleasePlan(
            claim=PureDP(exact),
            steps=(mechanism.step(),),
            answer=lambda rows, bits: plain(mechanism.apply(rows, bits)),
            error=chosen.error,
            methods=(only,),
            public=("the number of rows", "the query's bounds and grid", "the proposed bound"),
            assumed=assumed(self.query),
        )


def stable_rows(
    query: StableQuery, rows: Any, columns: str | list[str] | None, missing: Any
) -> Any:
    """Return what a query is asked of: named columns and columns of numbers as a source."""
    ours = type(query) in (Median, TrimmedMean)
    if ours or columns is not None or isinstance(rows, Source) or missing is not DEFAULT_MISSING:
        return as_source(rows, columns, missing=missing)
    return rows


def stable_diagnosis(
    share: Rational | None, query: StableQuery, source: Openable[Any]
) -> Beside | None:
    """Return what is asked beside the release; of our own queries the bounds of rows are known."""
    bounds = None
    if isinstance(query, (Median, TrimmedMean)):
        bounds = (query.lower, query.upper)
    return diagnosis(share, source if isinstance(source, Source) else None, bounds=bounds)


def cell_side(lattice: GridLattice) -> float:
    """Return the average side of a cell, in the unit of the answer."""
    return float(lattice.box.widths().mean()) / float(Fraction(lattice.cells))


def plain(value: Any) -> Any:
    """Return a number for one coordinate, else the vector."""
    return float(value[0]) if len(value) == 1 else value
