"""Release trimmed means, and queries with noise for a local sensitivity (theory C3, C4, C10.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import needed, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import (
    Rational,
    as_bounds,
    as_count,
    as_float,
    as_positive,
    as_rational,
    as_share,
    float_within,
)
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.noisy_test import (
    MixedBoundedRelease,
    ProposedRelease,
    SmoothNoise,
    best_smooth_noise,
)
from zerodelta.mechanisms.stable_queries import (
    BYTES_HELD,
    Median,
    StableQuery,
    TrimmedMean,
    as_query,
    assumed,
    order_of,
    reaches,
)
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.statistics import Measurement
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import GridLattice
from zerodelta.spine.plan import Facts, Measured, Method, ReleasePlan, choose, ranked
from zerodelta.spine.run import ask, epsilon_without, plan_diagnosis, run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.task import (
    METHOD,
    ROWS,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    simple,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Propose-test-release for any query, with free mixing (theory C3) -----------------------------


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
    **paying: Unpack[Paying],
) -> Release:
    """Release the answer of your own query with noise for a proposed bound on its sensitivity.

    Use it for a query that one row changes little on data like yours, though it could change it
    much on other data. If a noisy test finds the data too close to such other data, a uniform point
    of the grid is released instead; the release does not show which of both it is.

    Parameters
    ----------
    rows : any
        The argument of `query` and `stability`; a data set or a `Source` is opened for them.
    columns : str or list of str, optional
        The columns of a data set or a frame, which is opened for the functions then.
    query : callable or StableQuery
        ``query(rows)`` returns a number or a vector; or `Median` or `TrimmedMean` of
        `zerodelta.mechanisms.stable_queries`, which need only `proposed_bound` of the following.
    stability : callable
        ``stability(rows, bound)`` returns how many rows must be replaced before the l1 local
        sensitivity of the query exceeds `bound`, or less; its own sensitivity is at most 1.
    proposed_bound : number
        The l1 local sensitivity to add noise for, in the unit of the answer.
    bounds : (lower, upper)
        The range of the answer: numbers, or one for each coordinate.
    cells : int
        The number of cells of the grid of answers, for each coordinate.
    test_share : number in (0, 1)
        The part of ε for the test.
    missing : None or number
        How a missing cell of an opened frame is treated: None (no cell is missing) or the number as
        which it counts. Skipping them is refused.
    method : str
        "free-mixing" is the only one.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set, and for `Median`
        and `TrimmedMean` of any rows: the fractions of rows that were used, clipped to the bounds
        of rows, and unreadable.

    Returns
    -------
    Release
        Its value is a point of the grid: a number, or a vector for several coordinates.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C3). The properties of `query` and `stability` above are
    caller-asserted; proven for `Median` and `TrimmedMean`.
    **Neighbors**: replace-one, the relation of the local sensitivity.
    **Public**: the bounds, the grid, the proposed bound. If `query` raises or returns no number the
    answer is the center of the bounds, and if `stability` does the distance is 0.
    **Error**: the expected absolute error of a coordinate if the test passes, as it does for rows
    far from instability; otherwise it depends on the private data.

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
    question = ProposeTestReleaseQuestion(
        query=stable, proposed_bound=proposed_bound, test_share=test_share, method=method
    )
    return _release(
        question, rows, columns, missing=missing, epsilon=epsilon, diagnostics=diagnostics
    )


@value
class ProposeTestReleaseQuestion:
    """Question for the answer of a query, with noise for a proposed bound."""

    query: StableQuery
    proposed_bound: Rational | None = None
    test_share: Rational = "1/2"
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Calibrate the test of stability and the noise; a failed test draws at random."""
        exact, share = as_usable_epsilon(epsilon), as_share(self.test_share, "test_share")
        remedy = "pass proposed_bound=, by how much one row may change the answer"
        proposed, count = needed(self.proposed_bound, "proposed_bound", remedy), facts.rows or 0
        as_float(proposed, "proposed_bound")
        lattice, bound = self.query.lattice(count), self.query.bound_in_cells(proposed, count)
        only = Method(
            name="free-mixing",
            error=bound * cell_side(lattice) / float((1 - share) * exact),
            spends=f"{share}·ε on the test, {1 - share}·ε on the answer",
            why="failed tests are the mixing: no extra ε and no extra noise",
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


def _release(
    question: ProposeTestReleaseQuestion | BoundedLocalSensitivityQuestion,
    rows: Any,
    columns: str | list[str] | None,
    *,
    missing: Any,
    epsilon: Rational,
    diagnostics: Rational | None,
) -> Release:
    """Release the answer for rows as they are, or for columns that are read as a source."""
    query, bounds = question.query, None
    if isinstance(query, (Median, TrimmedMean)):  # built in: they state the bounds of rows
        bounds = (query.lower, query.upper)
    read = columns is not None or isinstance(rows, Source) or missing is not DEFAULT_MISSING
    if read or type(query) in (Median, TrimmedMean):
        rows = as_source(rows, columns, missing=missing)
    source, facts = query.closed(rows)
    diagnosis = as_diagnosis(
        diagnostics, source if isinstance(source, Source) else None, bounds=bounds
    )
    plan = question.plan(facts, epsilon_without(epsilon, diagnosis))
    return run(plan, source, diagnosis=plan_diagnosis(diagnosis, epsilon))


def cell_side(lattice: GridLattice) -> float:
    """Return the average side of a cell, in the unit of the answer."""
    return float(lattice.box.widths().mean()) / float(Fraction(lattice.cells))


def plain(value: Any) -> Any:
    """Return a number for one coordinate, else the vector."""
    return float(value[0]) if len(value) == 1 else value


# -- Noise for a privately bounded local sensitivity, for any query (theory C4) -------------------


@partial(debited, like=propose_test_release)
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
    **paying: Unpack[Paying],
) -> Release:
    """Release the answer of your own query with noise for its local sensitivity on these rows.

    Use it for a query whose local sensitivity varies, but slowly. The mechanism first computes a
    noisy bound on it, which is not published, and then adds noise for that bound to the answer.

    Parameters
    ----------
    rows : any
        The argument of `query` and `local`; a data set or a `Source` is opened for them.
    query : callable or StableQuery
        ``query(rows)`` returns a number or a vector; or `Median` or `TrimmedMean` of
        `zerodelta.mechanisms.stable_queries`, for which `local` and `change` are known.
    local : callable
        ``local(rows)`` returns the l1 local sensitivity of the query.
    change : number
        The sensitivity of `local`.
    bound_share : number in (0, 1)
        The part of ε for the bound.
    mixing_probability : number in (0, 1)
        With this probability the answer is a uniform point of the grid.
    method : str
        "mixing" is the only one.

    Returns
    -------
    Release
        Its value is a point of the grid: a number, or a vector for several coordinates.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C4). That `local` and `change` are correct is caller-asserted;
    it is proven for `Median` and `TrimmedMean`.
    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that.
    **Public**: the bounds, the grid, `change`. If `query` raises or returns no number the answer is
    the center of the bounds, and if `local` does the local sensitivity is the width of the bounds.
    **Error**: the expected absolute error of a coordinate if the local sensitivity is 0, margin/ε₂;
    the true local sensitivity, which is private, adds to it.

    Examples
    --------
    >>> release = bounded_local_sensitivity(
    ...     [1, 0, 1] * 50_000, query=sum, local=lambda rows: 1, change=0.01, bounds=(0, 150_000),
    ...     cells=150_001, epsilon=1, mixing_probability="1e-9")
    >>> round(release.value, -4)
    100000.0

    """
    stable = as_query(query, bounds=bounds, cells=cells, local=local, change=change)
    question = BoundedLocalSensitivityQuestion(
        query=stable, bound_share=bound_share, mixing_probability=mixing_probability, method=method
    )
    return _release(
        question, rows, columns, missing=missing, epsilon=epsilon, diagnostics=diagnostics
    )


@value
class BoundedLocalSensitivityQuestion:
    """Question for the answer of a query, with noise for its local sensitivity."""

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
            why="mixing covers the rare case of a noisy bound that is too small, at no extra ε",
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


_SPREADS = tuple(10.0 ** (-k / 2) for k in range(2, 13))
"""Without a guess the noise is tuned for these spreads, from a tenth to a millionth of the width:
its worst ratio to the best noise for each of them is least (at most 2.3; bench/defaults.py)."""

_SHARES = tuple(Fraction(k, 10) for k in range(1, 10))
_FINEST = Fraction(1, 10**9)
_SAFETY = 1.25
"""The proposed bound is for a spread larger by this factor, because a failed test releases a random
point. The factor was chosen by hand."""

Answer = Callable[[Rows, BitSource], float | Measured]


@debited
def trimmed_mean(
    rows: Any,
    columns: str | None = None,
    *,
    trim: Rational,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    spread: Rational | None = None,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a mean without the smallest and largest rows, like `scipy.stats.trim_mean`.

    Use it for a mean within wide bounds: its noise follows the spread of the rows, not the bounds.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one column. Values beyond the bounds are clipped.
    columns : str, optional
        Which column of a data set or a frame.
    trim : number in [0, 1/2)
        The ⌊trim·n⌋ smallest and as many largest rows are left out.
    bounds : (lower, upper)
        The bounds of the rows, known without them; for a data set, by default as declared.
    spread : number
        A public guess of the standard deviation of the rows, better a little too large. It tunes
        the noise; a wrong guess costs accuracy, never privacy. Without one the noise is tuned for
        all spreads from a tenth to a millionth of the width at once.
    missing : None or number
        How a missing cell is treated: None (no cell is missing; if one is, it counts as the middle;
        the default for arrays) or the number as which it counts. Skipping them, the default for
        frames and data sets, is refused, because the number of trimmed rows would be private.
    method : str
        "smooth-sensitivity" (Student-t noise), "propose-test-release" (needs `spread`), "laplace"
        (noise for the width of the bounds), or "auto", the one with the least predicted error.

    Returns
    -------
    Release
        Its value is a number on a fine public lattice between the bounds.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.3, C3 or R), proven.
    **Neighbors**: replace-one; the number of rows is public.
    **Error**: the expected absolute error for normal rows with that spread in the middle of the
    bounds; real rows differ. Without a guess it is a text that states the errors for the widest and
    the narrowest spread, because the true spread is private.

    Examples
    --------
    >>> incomes = np.linspace(20, 60, 20_000)
    >>> release = trimmed_mean(incomes, trim=0.1, bounds=(0, 1000), epsilon=1, method="laplace")
    >>> round(release.value, -1)
    40.0

    """
    source = as_source(rows, columns, missing=missing)
    question = TrimmedMeanQuestion(
        trim=trim,
        bounds=source.declared_bounds if bounds is None else bounds,
        spread=spread,
        method=method,
    )
    diagnosis = as_diagnosis(diagnostics, source, bounds=question.bounds)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class TrimmedMeanQuestion:
    """Question for a trimmed mean of one bounded column."""

    trim: Rational
    bounds: tuple[Rational, Rational] | None = None
    spread: Rational | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose Laplace noise for the global, or noise for the smooth sensitivity, by forecast."""
        facts.only_one_column()
        facts.rows_in_memory(BYTES_HELD)
        exact, tuned = as_usable_epsilon(epsilon), self.tuned(facts.all_rows, epsilon)
        methods = tuned.methods()
        chosen = choose(methods, self.method)
        answer, step, law = tuned.mechanism(chosen.name)
        return ReleasePlan(
            claim=PureDP(exact),
            steps=(step,),
            answer=answer,
            error=tuned.forecast(chosen),
            methods=methods,
            public=("the number of rows", "bounds on the rows", "how many rows are trimmed"),
            noise=law,
        )

    def tuned(self, n: int, epsilon: Rational) -> _Tuned:
        """Return all methods, tuned for n rows."""
        share, (lower, upper) = as_rational(self.trim, "trim"), as_bounds(self.bounds)
        require(
            0 <= share < Fraction(1, 2),
            "trim",
            self.trim,
            expected="a share of the rows in [0, 1/2)",
            remedy="pass trim=0.1",
        )
        exact = as_usable_epsilon(epsilon)
        spread = None if self.spread is None else as_positive(self.spread, "spread")
        steps = _steps(n, exact, None if spread is None else spread / (upper - lower))
        return _tune(n, math.floor(share * n), lower, upper, exact, spread, steps)


def trimmed_mean_methods(
    *,
    epsilon: Rational,
    n: int,
    trim: Rational,
    bounds: tuple[Rational, Rational] = (0, 1),
    spread: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods that release a trimmed mean, best first, for normal rows.

    >>> names = [m.name for m in trimmed_mean_methods(epsilon=1, n=10**5, trim=0.1, spread=0.1)]
    >>> sorted(names)
    ['laplace', 'propose-test-release', 'smooth-sensitivity']
    """
    question = TrimmedMeanQuestion(trim=trim, bounds=bounds, spread=spread)
    return question.tuned(as_count(n, "n", minimum=1), epsilon).methods()


@value
class _Tuned:
    """The public plans of all methods for one trimmed mean, in quanta of the trimmed sum."""

    n: int
    query: TrimmedMean
    epsilon: Fraction
    smooth: SmoothNoise
    laplace: RoundedLaplace
    proposed_bound: int | None
    test_share: Fraction
    errors: tuple[float, float, float]
    narrow_error: float | None
    """The error of smooth sensitivity for the narrowest spread; None for a stated spread."""

    @property
    def unit(self) -> Fraction:
        """One quantum of the trimmed sum, in the unit of the mean."""
        query = self.query
        return (query.upper - query.lower) / (2 * query.steps * (self.n - 2 * query.trim))

    def forecast(self, chosen: Method) -> float | str:
        """Return the error that a release states: a number, or a text for an unknown spread."""
        if chosen.name != "smooth-sensitivity" or self.narrow_error is None:
            return chosen.error
        return (
            f"depends on unseen data: from {self.narrow_error:.2g} for rows that spread over a "
            f"millionth of the bounds to {chosen.error:.2g} for a tenth"
        )

    def methods(self) -> tuple[Method, ...]:
        """Return the methods with their predicted errors."""
        smooth, tested, laplace = self.errors
        half = float(self.query.upper - self.query.lower) / 2
        share = self.test_share
        needs_spread = self.proposed_bound is None
        return ranked(
            Method(
                name="smooth-sensitivity",
                error=min(smooth, half),
                spends="ε on one answer, noise for its smooth sensitivity",
                why="adapts to the spread of the rows, whatever the guess",
            ),
            Method(
                name="propose-test-release",
                error=math.inf if needs_spread else min(tested, half),
                spends=f"{share}·ε on the test, {1 - share}·ε on the answer",
                why="needs spread= and rows to trim"
                if needs_spread
                else "less noise where the guess holds, a random point where it does not",
            ),
            Method(
                name="laplace",
                error=min(laplace, half),
                spends="ε on one answer, noise for the width of the bounds",
                why="best for few rows, and where nothing is trimmed",
            ),
        )

    def mechanism(self, name: str) -> tuple[Answer, Step, NoiseLaw | None]:
        """Return the function from rows to the value, its proof step, and the law of its noise."""
        query, trim, n = self.query, self.query.trim, self.n
        if name == "propose-test-release":
            release = self._proposed()
            return lambda rows, bits: float(release.apply(rows, bits)[0]), release.step(), None

        def smooth(rows: Rows, bits: BitSource) -> float:
            """Return the trimmed mean with noise scaled to its smooth sensitivity."""
            ordered = query.read(rows)
            order = order_of(ordered, steps=query.steps)
            # theorem C10.3: noise scaled to the smooth sensitivity of these rows is pure
            scale = self.smooth.sensitivity(order, count=n, trim=trim, steps=query.steps)
            return self.value(self.smooth.apply(int(ordered[trim : n - trim].sum()), scale, bits))

        def laplace(rows: Rows, bits: BitSource) -> Measured:
            """Return the trimmed mean with Laplace noise for its global sensitivity."""
            total = query.read(rows)[trim : n - trim].sum(keepdims=True)
            noisy = self.laplace.apply(total, bits)
            sums = Measurement(
                law=self.laplace.law(unit=self.unit),
                integers=noisy[:, None],
                forms={"": ((self.unit, (query.lower + query.upper) / 2),)},
                bounds={"": (query.lower, query.upper)},
                statistics={"mean": ("", "form")},
            )
            return Measured(value=self.value(int(noisy[0])), sums=(sums,))

        if name == "laplace":
            return laplace, self.laplace.step(), self.laplace.law(unit=self.unit)
        return smooth, self.smooth.step(), None

    def value(self, total: int) -> float:
        """Return the mean that a noisy trimmed sum stands for, clipped to the bounds."""
        query, largest = self.query, self.query.steps * (self.n - 2 * self.query.trim)
        exact = (query.lower + query.upper) / 2 + self.unit * min(max(total, -largest), largest)
        return float_within(exact, query.lower, query.upper)

    def _proposed(self) -> ProposedRelease:
        """Return propose-test-release; refused without a spread or rows to trim."""
        bound = self.proposed_bound
        require(
            bound is not None,
            "spread",
            None,
            expected="a public guess of the standard deviation, and rows to trim",
            remedy='pass spread= and a larger trim=, or method="smooth-sensitivity"',
        )
        return ProposedRelease.free(
            query=self.query,
            lattice=self.query.lattice(self.n),
            bound=bound or 1,
            epsilon=self.epsilon,
            test_share=self.test_share,
        )


@lru_cache(maxsize=64)
def _tune(
    n: int,
    trim: int,
    lower: Fraction,
    upper: Fraction,
    epsilon: Fraction,
    spread: Fraction | None,
    steps: int,
) -> _Tuned:
    """Return all methods, tuned for normal rows; it sees public numbers only."""
    width = upper - lower
    guesses = _SPREADS if spread is None else (float(min(spread / width, Fraction(10**100))),)
    changes = np.unique(np.geomspace(1, min(n, 4000), 200).astype(np.int64)) - 1
    reaches_of = [_model(n, trim, steps, guess * 2 * steps, changes) for guess in guesses]
    reach = reaches_of[0]  # of the largest spread
    smooth = best_smooth_noise(epsilon=epsilon, guesses=reaches_of, changes=changes)
    laplace = RoundedLaplace.for_epsilon(epsilon=epsilon, sensitivity=2 * steps)
    bound, share, tested = None, Fraction(1, 2), math.inf
    if trim >= 1 and spread is not None:
        safe = _model(n, trim, steps, guesses[0] * 2 * steps * _SAFETY, changes)
        bound, share, tested = _best_proposal(n, trim, steps, epsilon, safe, changes)
    unit = float(width) / (2 * steps * (n - 2 * trim))
    return _Tuned(
        n=n,
        query=TrimmedMean(bounds=(lower, upper), steps=steps, trim=trim),
        epsilon=epsilon,
        smooth=smooth,
        laplace=laplace,
        proposed_bound=bound,
        test_share=share,
        errors=(smooth.error(reach, changes) * unit, tested * unit, laplace.error() * unit),
        narrow_error=None if spread is not None else smooth.error(reaches_of[-1], changes) * unit,
    )


def _steps(n: int, epsilon: Fraction, spread: Fraction | None) -> int:
    """Return half the width in quanta: 2^10·n·ε for each spread, so that rounding is negligible.

    `spread` is a fraction of the width. Without one the lattice is as fine as 64-bit sums allow,
    which costs nothing: only the noise of propose-test-release, which needs a guess, grows with the
    number of points (theory C3).
    """
    steps = min(1 << 52, (1 << 61) // n)
    if spread is not None:
        fitting = (1 << 51) // n
        wanted = min(
            float(2**10 * n * epsilon) / float(min(max(spread, _FINEST), Fraction(1))), 2.0**60
        )
        steps = min(fitting, 1 << math.ceil(math.log2(max(1.0, wanted))))
    return max(1 << 10, steps)


def _model(
    n: int, trim: int, steps: int, deviation: float, changes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return A_k at several k for normal rows around the middle of the bounds."""

    def order(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        inside = ndtri(np.clip(positions, 1, n) / (n + 1)) * deviation
        ends = np.where(positions < 1, -float(steps), np.where(positions > n, float(steps), inside))
        return np.clip(ends, -steps, steps)

    return reaches(order, kept=(trim + 1, n - trim), changes=changes).astype(np.float64)


def _best_proposal(
    n: int,
    trim: int,
    steps: int,
    epsilon: Fraction,
    reach: npt.NDArray[np.float64],
    changes: npt.NDArray[np.int64],
) -> tuple[int, Fraction, float]:
    """Return the bound to propose, the share of ε for the test, and the expected error, in quanta.

    With the bound A_k the test sees a distance of k + 1 changes, and a failed test costs a quarter
    of the width on average.
    """
    points = 2 * steps * (n - 2 * trim) + 1
    total = min(float(epsilon), 600.0)
    proposals = []
    for share in _SHARES:
        first, second = float(share) * total, (1 - float(share)) * total
        for k, sensitivity in zip(changes.tolist(), reach.tolist(), strict=True):
            bound = max(1, math.ceil(sensitivity))
            # the threshold tau of theorem C3, for this bound and share
            peak = -math.expm1(-second / (2 * bound))
            odds = math.log((points * peak + math.exp(total)) / math.expm1(total))
            tau = max(0.0, (odds - math.log(2)) / first)
            beyond = first * (k + 1 - tau)
            failed = math.exp(-beyond) / 2 if beyond >= 0 else 1.0
            proposals.append((bound / second + failed * points / 4, bound, share))
    error, bound, share = min(proposals, key=lambda proposal: proposal[0])
    return bound, share, error


# -- What the tasks are, for advice and the command line ------------------------------------------


def _spread(numbers: Numbers) -> float:
    """Return the error of guessing the middle of the bounds: the spread, or half the width."""
    lower, upper = as_bounds(numbers["bounds"])
    half, spread = (upper - lower) / 2, numbers["spread"]
    return float(half if spread is None else min(as_positive(spread, "spread"), half))


TASKS: dict[str, Task] = {
    "trimmed_mean": Task(
        verb=trimmed_mean,
        page="statistics",
        error="in the unit of the column",
        forecast=Forecast(
            unit="expected absolute error, in the unit of the data",
            call="zd.trimmed_mean(rows, trim={trim}, bounds={bounds}, spread={spread}, "
            "epsilon={epsilon})",
            methods=simple(trimmed_mean_methods),
            needs={**ROWS, "trim": "trim=0.1", "bounds": "bounds=(0, 100)"},
            allows={"spread": None},
            reliable="for normal rows of that spread (a tenth of the width if not given)",
            blind=_spread,
            typical={"trim": "0.1", "bounds": (0, 100)},
        ),
        command=Command(
            columns="one",
            options=("trim", *METHOD),
            needs=("trim",),
            publishes="one number",
            example="trimmed-mean people.csv income --trim 0.1",
        ),
        planner=Planner(
            title="Trimmed mean",
            fields=("n", "width"),
            fixed={"trim": "0.1"},
            people='columns = {"income": zd.number(0, {width}, missing=None)}\n'
            'people = zd.open("people.csv", columns=columns)\n',
            python='people, "income", trim="0.1"',
            shell="income --trim 0.1",
        ),
    ),
    "propose_test_release": Task(
        verb=propose_test_release, page="statistics", no_command="takes a Python function"
    ),
    "bounded_local_sensitivity": Task(
        verb=bounded_local_sensitivity, page="statistics", no_command="takes a Python function"
    ),
}
