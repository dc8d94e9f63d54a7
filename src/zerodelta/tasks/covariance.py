"""`covariance`, `correlation` and `pca`: K-norm noise on sums of products (theory R)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_tails import NoisySums
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.regression.encoded_columns import as_radius
from zerodelta.spine.plan import Facts, Measured, Method, ReleasePlan
from zerodelta.spine.public_inputs import as_numbers, as_source
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.second_moments import (
    BESIDE,
    DIAGONAL,
    STEPS,
    NoisyMoments,
    ProductNoise,
    Products,
    eigenvectors,
)
from zerodelta.tasks.statistics import resolution_of
from zerodelta.tasks.task import (
    METHOD,
    NAMES,
    ROWS,
    SKIPPED,
    UNMEASURED,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    planned,
    width_of,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The noisy integers behind each variance, covariance and correlation, for their intervals -----

Form: TypeAlias = tuple[Fraction, ...]


def covariance_sums(
    noise: ProductNoise, noisy: IntegerArray, names: Sequence[Any], *, correlations: bool
) -> tuple[NoisySums, ...]:
    """Return the sums of the diagonal, if asked, and of what is above it line by line."""
    columns, half = noise.products.columns, noise.products.unit * float(STEPS)
    each, (first, second) = np.arange(columns), np.triu_indices(columns, 1)
    last = np.full_like(each, columns)
    pair = [
        ("sum", first, last[first]),
        ("sum", second, last[second]),
        ("product", first, second),
    ]
    lines = partial(_lines, noise, noisy, names)
    if correlations:
        one = np.ones(len(first))
        squares = [("square", first, first), ("square", second, second)]
        return (lines("correlation", [*pair, *squares], (-one, one)),) if columns > 1 else ()
    middle, most = noise.products.middle, half[first] * half[second]
    own = [("sum", each, last), ("square", each, each)]
    diagonal = lines("variance", own, (middle - half, middle + half))
    return (diagonal, lines("covariance", pair, (-most, most))) if columns > 1 else (diagonal,)


def _lines(
    noise: ProductNoise,
    noisy: IntegerArray,
    names: Sequence[Any],
    statistic: str,
    entries: Sequence[tuple[str, Any, Any]],
    ends: tuple[Any, Any],
) -> NoisySums:
    """Return lines of the integers at these entries of the matrix, and what their forms are."""
    width, corner = noise.products.columns + 1, np.full_like(entries[0][1], noise.products.columns)
    counted = [("rows", corner, corner)] if noise.counted else []
    places = [  # of the upper triangle
        i * width - i * (i - 1) // 2 + j - i for _, i, j in (*entries, *counted)
    ]
    return NoisySums(
        law=noise.mechanism.law(unit=Fraction(1)),
        integers=np.column_stack([noisy[place] for place in places]),
        forms={statistic: _forms(noise, [kind for kind, *_ in entries])},
        bounds={statistic: ([*map(Fraction, ends[0])], [*map(Fraction, ends[1])])},
        joint=True,
        statistics={statistic: (statistic, statistic)},
        labels=names,
        resolution=resolution_of(noise.products.lattice),
    )


def _forms(noise: ProductNoise, kinds: Sequence[str]) -> tuple[Form, ...]:
    """Return the number of rows, and each sum of scaled values, as forms of a line."""
    on, off = (DIAGONAL, BESIDE) if noise.norm == "frobenius" else (1, 1)
    size, constant = len(kinds) + noise.counted, noise.constant

    def form(place: int, value: Fraction) -> list[Fraction]:
        return [value if i == place else Fraction(0) for i in range(size + 1)]

    rows = form(size, Fraction(noise.expected_rows))
    if noise.counted:
        rows = form(size - 1, Fraction(1, on * constant**2))
    units = {
        "sum": Fraction(1, off * constant * STEPS),
        "product": Fraction(1, off * STEPS**2),
        "square": Fraction(1, on * STEPS**2),
    }
    found = [form(place, units[kind]) for place, kind in enumerate(kinds)]
    if noise.norm == "max":  # there is 2y² - 1 in place of y²
        for place, kind in enumerate(kinds):
            if kind == "square":
                found[place] = [(z + n) / 2 for z, n in zip(found[place], rows, strict=True)]
    return tuple(map(tuple, (rows, *found)))


@debited
def covariance(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    data_norm: Rational | None = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the covariance matrix of columns, like ``np.cov(rows.T, ddof=0)``, but private.

    Use it for how several columns vary together; for principal axes see `pca`, which needs less.

    Parameters
    ----------
    rows : data set, array, list, frame or Source
        What `zd.open` returns, or several columns. Values beyond the bounds are clipped.
    columns : list of str, optional
        Which columns of a data set or a frame, numbers, booleans or dates; by default all.
    bounds : (lower, upper)
        Of every column, numbers or one for each column, known without the rows; for a data set, by
        default as declared.
    data_norm : number
        Instead of bounds: the largest l2 norm that a row can have; longer rows are clipped to it.
    missing : "skip", None or number
        What a missing cell of a frame, list or array counts as: "skip" (its row counts nowhere; the
        default for frames), None (none is missing; if one is, its row is at the center; the default
        for arrays, with less noise) or a number. A data set has it declared.
    method : str
        "frobenius" (noise for rows of bounded length), "max" (for columns with bounds of their own)
        or "auto", the one with the least predicted error.

    Returns
    -------
    Release
        Its value is a matrix in the unit of the data, positive semi-definite.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R), proven: one draw of noise on the exact sums of products and
    the sums, and on the number of rows where that is private. A replaced row moves them by √2 times
    the largest squared length of a row (Frobenius), or each by twice its largest value (max).
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the expected absolute error of an entry, averaged over all, for rows around the
    middle of their bounds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=200_000)
    >>> covariance(np.column_stack([x, -x]), bounds=(-1, 1), epsilon=2).value.round(1)
    array([[ 0.3, -0.3],
           [-0.3,  0.3]])

    """
    question = CovarianceQuestion(bounds=bounds, data_norm=data_norm, method=method)
    return _ask(question, rows, columns, missing, epsilon, diagnostics)


@partial(debited, like=covariance)
def correlation(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    data_norm: Rational | None = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the correlation matrix of columns, like ``np.corrcoef(rows.T)``, but private.

    Use it for how strongly columns go together, whatever their units.

    Returns
    -------
    Release
        Its value is a matrix with ones on the diagonal and entries in [-1, 1], positive
        semi-definite. Variances below their own noise count as that noise, so that correlations
        which noise would hide are near 0.

    Notes
    -----
    **Guarantee**: pure ε-DP, proven: post-processing of the release of `covariance`.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: a text; it depends on the variances of the columns, which are private.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=200_000)
    >>> correlation(np.column_stack([x, -x]), bounds=(-1, 1), epsilon=2).value.round(1)
    array([[ 1., -1.],
           [-1.,  1.]])

    """
    question = CovarianceQuestion(
        bounds=bounds, data_norm=data_norm, method=method, correlations=True
    )
    return _ask(question, rows, columns, missing, epsilon, diagnostics)


@value
class CovarianceQuestion:
    """Covariances, or correlations, are asked of rows within public bounds."""

    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    method: str = "auto"
    correlations: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the norm of the noise, and calibrate it."""
        products = Products.of(facts.width, bounds=self.bounds, data_norm=self.data_norm)
        noise, methods = ProductNoise.best(
            products, facts, epsilon, self.method, beside=self.correlations
        )

        def answer(rows: Rows, bits: BitSource) -> Measured:
            noisy = noise.mechanism.apply(noise.handed(rows), bits)
            found = noise.moments(noisy)
            value = found.covariance
            if self.correlations:
                value = _correlations(found.scaled, noise.deviations / found.unit**2)
            sums = covariance_sums(noise, noisy, facts.columns, correlations=self.correlations)
            return Measured(value=value, sums=sums)

        words = "covariances are off by {:.3g} on average, correlations by that over the variances"
        counted = () if noise.counted else ("the number of rows",)
        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.mechanism.step(quantum=None),),
            answer=answer,
            error=words.format(noise.error_beside) if self.correlations else noise.error,
            methods=methods,
            public=(*counted, "the number of columns", "bounds on the rows"),
        )


def numbers_of(
    rows: Any, columns: Sequence[str] | None, missing: Any = DEFAULT_MISSING
) -> tuple[Source, Any]:
    """Return rows of numbers as a source and, if they are of a data set, their declared bounds."""
    if isinstance(rows, Dataset) and missing is DEFAULT_MISSING:
        return as_numbers(rows, columns)
    return as_source(rows, columns, missing=missing), None


def _ask(
    question: CovarianceQuestion,
    rows: Any,
    columns: Sequence[str] | None,
    missing: Any,
    epsilon: Rational,
    diagnostics: Rational | None,
) -> Release:
    source, declared = numbers_of(rows, columns, missing)
    bounds = question.bounds
    if bounds is None and question.data_norm is None:
        bounds = declared
    stated = replace(question, bounds=bounds)
    diagnosis = as_diagnosis(diagnostics, source, bounds=bounds)
    return ask(stated, source, epsilon=epsilon, diagnosis=diagnosis)


def _correlations(scaled: Floats, least: Floats) -> Floats:
    """Return the matrix with a unit diagonal; a larger diagonal keeps it positive."""
    roots = np.sqrt(np.maximum(np.maximum(np.diag(scaled), least), 1e-300))
    found = np.clip(scaled / np.outer(roots, roots), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


# -- Principal components from one noisy matrix of products: eigenvectors cost nothing more -------

_WHOLE, _HALF = Fraction(1), Fraction(1, 2)


@partial(debited, like=covariance)
def pca(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    components: int | None = None,
    bounds: tuple[Any, Any] | None = None,
    data_norm: Rational | None = None,
    radius: Rational | None = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release principal components, like `sklearn.decomposition.PCA`, but private.

    Use it for the few directions along which rows vary most; one release has all of them. Columns
    are as given: bring them to comparable units first, or the widest decides.

    Parameters
    ----------
    components : int, optional
        How many; by default as many as there are columns. More cost nothing.
    radius : number, optional
        With bounds: rows, scaled by them, are projected to a ball that ends so far on the way from
        the middle to a corner (not before the faces). 1 projects none: variances are not biased
        then, but there is four times the noise of 1/2. By default 1, or 1/2 where n and ε are so
        small that noise is forecast to be worse than the bias of rows in a corner of their bounds.

    Returns
    -------
    Release
        Its value is a `PrincipalComponents`: `components`, `explained_variance`,
        `explained_variance_ratio`, `mean`, ``transform``.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R), proven: eigenvectors of what `covariance` releases.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: that of an entry of the covariance matrix: noise, for rows around the middle of their
    bounds (up to three times as much in a corner), and, if rows are projected, what rows that fill
    a quarter of each column's bounds, at an end, lose by it. Noise lifts the largest explained
    variances, and turns components whose variances are close.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=20_000)
    >>> found = pca(np.column_stack([x, x]), components=1, bounds=(-1, 1), epsilon=2).value
    >>> found.components.round(1), found.explained_variance_ratio.round(1)
    (array([[0.7, 0.7]]), array([1.]))

    """
    source, declared = numbers_of(rows, columns, missing)
    if bounds is None and data_norm is None:
        bounds = declared
    question = ComponentsQuestion(
        components=components, bounds=bounds, data_norm=data_norm, radius=radius, method=method
    )
    of_row = as_usable_epsilon(epsilon) / protection_of(source).max_rows
    question, products = question.settled(Facts.of(source), of_row)
    diagnosis = as_diagnosis(diagnostics, source, bounds=bounds, beyond=products.beyond)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value(eq=False)
class PrincipalComponents:
    """Directions of unit length, and what the rows vary along them, most first."""

    components: Floats
    """Of shape (components, columns); the largest entry of each is positive."""
    explained_variance: Floats
    explained_variance_ratio: Floats
    mean: Floats

    def transform(self, rows: Any) -> Floats:
        """Return the coordinates of rows, which are not private, along the components."""
        return np.asarray((np.asarray(rows, dtype=np.float64) - self.mean) @ self.components.T)


@value
class ComponentsQuestion:
    """Principal components are asked of rows within public bounds."""

    components: int | None = None
    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    radius: Rational | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the norm of the noise, and calibrate it."""
        columns = facts.width
        wanted = columns if self.components is None else self.components
        count = as_count(wanted, "components", minimum=1)
        few = f"at most {columns}, the number of columns"
        require(count <= columns, "components", count, expected=few, remedy="pass fewer")
        _, products = self.settled(facts, epsilon)
        noise, found = ProductNoise.best(products, facts, epsilon, self.method)
        methods = tuple(replace(each, error=each.error + products.bias) for each in found)

        def answer(rows: Rows, bits: BitSource) -> PrincipalComponents:
            return _components(noise.release(rows, bits), count)

        counted = () if noise.counted else ("the number of rows",)
        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.mechanism.step(quantum=None),),
            answer=answer,
            error=noise.error + products.bias,
            methods=methods,
            public=(*counted, "the number of columns", "bounds on the rows"),
        )

    def settled(self, facts: Facts, epsilon: Rational) -> tuple[ComponentsQuestion, Products]:
        """Return the question with a radius, and the rows as it sees them: as asked, or the best.

        Without bounds there is none to choose; of equal forecasts that of whole rows.
        """
        if self.radius is not None:
            return self, self._products(facts, as_radius(self.radius))
        found = {radius: self._products(facts, radius) for radius in (_WHOLE, _HALF)}

        def error(radius: Fraction) -> float:
            products = found[radius]
            noise, _ = ProductNoise.best(products, facts, epsilon, self.method)
            return noise.error + products.bias

        best = min(found, key=error)
        return replace(self, radius=best), found[best]

    def _products(self, facts: Facts, radius: Fraction) -> Products:
        return Products.of(
            facts.width, bounds=self.bounds, data_norm=self.data_norm, radius=float(radius)
        )


def _components(found: NoisyMoments, count: int) -> PrincipalComponents:
    values, vectors = eigenvectors(found.covariance)
    largest = np.maximum(values[::-1], 0.0)
    directions = vectors.T[::-1][:count]
    places = np.abs(directions).argmax(axis=1)
    signs = np.where(directions[np.arange(count), places] < 0, -1.0, 1.0)
    total = float(largest.sum())
    return PrincipalComponents(
        components=directions * signs[:, None],
        explained_variance=largest[:count],
        explained_variance_ratio=largest[:count] / (total if total > 0 else 1.0),
        mean=found.mean,
    )


# -- What the tasks are, for advice and the command line ------------------------------------------


def _even_spread(given: Numbers) -> float:
    """Return the mean error of a covariance matrix of zeros, for columns spread evenly."""
    products = Products.of(width_of(given), bounds=given["bounds"], data_norm=given["data_norm"])
    return float(np.mean((products.unit * STEPS) ** 2)) / 3 / products.columns


def _correlation(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast of covariances over the variances of columns spread evenly."""
    columns, ball = width_of(given), given["bounds"] is None
    asked = {**given, "bounds": None if ball else (-1, 1), "data_norm": 1 if ball else None}
    found = planned(CovarianceQuestion, columns=lambda _: columns, correlations=True)(asked)
    Products.of(columns, bounds=given["bounds"], data_norm=given["data_norm"])  # refuses odd ones
    inverse = columns + 2 if ball else 3
    return tuple(replace(method, error=method.error * inverse) for method in found)


_COVARIANCE = Forecast(
    unit="expected absolute error of a covariance, averaged over the matrix",
    call="zd.covariance(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon}, "
    "missing={missing})",
    methods=planned(CovarianceQuestion, columns=width_of),
    reliable=UNMEASURED,
    needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
    allows={"dimension": None, "bounds": None, "data_norm": None, "missing": None},
    typical={"dimension": 5, "bounds": (0, 100)},
    blind=_even_spread,
)


def _planner(title: str) -> Planner:
    return Planner(
        title=title,
        fields=("n", "dimension", "width"),
        fixed=SKIPPED,
        people=NAMES.replace("100", "{width}"),
        python="people, names",
        shell="{names}",
    )


TASKS: dict[str, Task] = {
    "covariance": Task(
        verb=covariance,
        page="statistics",
        error="of an entry, in the units of its columns",
        forecast=_COVARIANCE,
        command=Command(
            columns="several",
            options=METHOD,
            publishes="one number for each pair of columns",
            example="covariance people.csv age income",
        ),
        planner=_planner("Covariance matrix"),
    ),
    "correlation": Task(
        verb=correlation,
        page="statistics",
        forecast=replace(
            _COVARIANCE,
            unit="expected absolute error of a correlation, for columns spread evenly",
            call=_COVARIANCE.call.replace("covariance", "correlation"),
            methods=_correlation,
            reliable="it grows as the variances fall, which are private",
            blind=lambda _: 0.5,
        ),
        command=Command(
            columns="several",
            options=METHOD,
            publishes="one number for each pair of columns",
            example="correlation people.csv age income",
        ),
        planner=_planner("Correlation matrix"),
    ),
    "pca": Task(
        verb=pca,
        estimator="PCA",
        page="models",
        forecast=replace(
            _COVARIANCE,
            call=_COVARIANCE.call.replace("covariance", "pca"),
            methods=planned(ComponentsQuestion, columns=width_of),
        ),
        command=Command(
            options=("components", "radius", *METHOD),
            renamed={"components": "n_components"},
            publishes="components, variances and the mean",
            example="pca people.csv age income --components 1",
        ),
        planner=_planner("Principal components"),
    ),
}
