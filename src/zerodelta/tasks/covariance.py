"""Release covariances, correlations and principal components: noise on sums of products (R)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.sum_noise import DIAGONAL, OFF_DIAGONAL
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.statistics import Measurement
from zerodelta.regression.encoded_columns import as_radius
from zerodelta.spine.plan import Facts, Measured, Method, ReleasePlan
from zerodelta.spine.public_inputs import as_numbers
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.second_moments import (
    STEPS,
    NoisyMoments,
    ProductNoise,
    Products,
    eigenvectors,
)
from zerodelta.tasks.task import (
    METHOD,
    ROWS,
    UNMEASURED,
    Command,
    Forecast,
    Numbers,
    Task,
    planned,
    planner_of_columns,
    width_of,
)
from zerodelta.value import published, value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The noisy integers behind each variance, covariance and correlation, for their intervals -----

Form: TypeAlias = tuple[Fraction, ...]


def covariance_sums(
    noise: ProductNoise, noisy: IntegerArray, names: Sequence[Any], *, correlations: bool
) -> tuple[Measurement, ...]:
    """Return the noisy sums behind the diagonal and behind each entry above it, for intervals.

    Correlations have no diagonal. The matrix of products has a last row and column for the sums.
    """
    columns, half = noise.products.columns, noise.products.unit * float(STEPS)
    diagonal_places, (first, second) = np.arange(columns), np.triu_indices(columns, 1)
    last = np.full_like(diagonal_places, columns)
    pair = [
        ("sum", first, last[first]),
        ("sum", second, last[second]),
        ("product", first, second),
    ]
    lines = partial(_lines, noise, noisy, names)
    if correlations:
        ones = np.ones(len(first))
        squares = [("square", first, first), ("square", second, second)]
        return (lines("correlation", [*pair, *squares], (-ones, ones)),) if columns > 1 else ()
    middle, largest = noise.products.middle, half[first] * half[second]
    single = [("sum", diagonal_places, last), ("square", diagonal_places, diagonal_places)]
    diagonal = lines("variance", single, (middle - half, middle + half))
    if columns == 1:
        return (diagonal,)
    return diagonal, lines("covariance", pair, (-largest, largest))


def _lines(
    noise: ProductNoise,
    noisy: IntegerArray,
    names: Sequence[Any],
    statistic: str,
    entries: Sequence[tuple[str, Any, Any]],
    ends: tuple[Any, Any],
) -> Measurement:
    """Return the noisy sums of one statistic: a line for each place in the lists of `entries`.

    Each entry has the kind of a sum, and its rows and columns in the matrix of products.
    """
    width, corner = noise.products.columns + 1, np.full_like(entries[0][1], noise.products.columns)
    counted = [("rows", corner, corner)] if noise.counted else []
    places = [  # of the upper triangle
        i * width - i * (i - 1) // 2 + j - i for _, i, j in (*entries, *counted)
    ]
    return Measurement(
        law=noise.mechanism.noise_law.on(Fraction(1)),
        integers=np.column_stack([noisy[place] for place in places]),
        forms={statistic: _forms(noise, [kind for kind, *_ in entries])},
        bounds={statistic: ([*map(Fraction, ends[0])], [*map(Fraction, ends[1])])},
        joint=True,
        statistics={statistic: (statistic, statistic)},
        labels=names,
        resolution=noise.products.lattice.resolution,
    )


def _forms(noise: ProductNoise, kinds: Sequence[str]) -> tuple[Form, ...]:
    """Return the linear forms of a line that give the number of rows, and each scaled sum."""
    on, off = (DIAGONAL, OFF_DIAGONAL) if noise.kind != "max" else (1, 1)
    size, constant = len(kinds) + noise.counted, noise.constant

    def form(place: int, value: Fraction) -> list[Fraction]:
        return [value if i == place else Fraction(0) for i in range(size + 1)]

    rows = form(size, Fraction(noise.expected_rows))
    if noise.counted:
        rows = form(size - 1, Fraction(noise.quantum, on * constant**2))
    units = {
        "sum": Fraction(noise.quantum, off * constant * STEPS),
        "product": Fraction(noise.quantum, off * STEPS**2),
        "square": Fraction(noise.quantum, on * STEPS**2),
    }
    sums = [form(place, units[kind]) for place, kind in enumerate(kinds)]
    if noise.kind == "max":  # it measures 2y² - 1 in place of y²
        for place, kind in enumerate(kinds):
            if kind == "square":
                sums[place] = [(z + n) / 2 for z, n in zip(sums[place], rows, strict=True)]
    return tuple(map(tuple, (rows, *sums)))


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
        How a missing cell of a frame, list or array is treated: "skip" (its row is not counted; the
        default for frames), None (no cell is missing; if one is, its row counts as the center; the
        default for arrays, with less noise) or the number as which it counts. A data set has it
        declared.
    method : str
        "matrix" (matrix Laplace noise for rows of bounded length: best from a few columns on),
        "frobenius" (K-norm noise for the same rows), "max" (noise for columns with separate bounds)
        or "auto", the one with the least predicted error.

    Returns
    -------
    Release
        Its value is a matrix in the unit of the data, positive semi-definite.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R, W2), proven: one draw of noise on the exact sums of products
    and the sums, and on the number of rows where that is private. A replaced row takes one matrix
    away and adds another, each with the squared length of a row as its trace (matrix); it changes
    them by √2 times the largest squared length of a row (Frobenius), or each by twice its largest
    value (max).
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

    Use it for the strength of the relation between columns, whatever their units.

    Returns
    -------
    Release
        Its value is a matrix with ones on the diagonal and entries in [-1, 1], positive
        semi-definite. A variance below the error of its noise is replaced by that error, and
        covariances within about two standard deviations of their noise from 0 become 0 (larger
        ones are shrunk by less; many columns are judged together): so correlations that noise would
        hide are 0, and on average it makes none worse than 0. Intervals are not shrunk.

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
    """Question for the covariances or correlations of rows within public bounds."""

    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    method: str = "auto"
    correlations: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan noisy sums of products of columns, in the norm with the least error."""
        products = Products.of(facts.width, bounds=self.bounds, data_norm=self.data_norm)
        noise, methods = ProductNoise.best(
            products, facts, epsilon, self.method, off_diagonal=self.correlations
        )

        def answer(rows: Rows, bits: BitSource) -> Measured:
            """Return covariance or correlations from noisy sums of products of columns."""
            noisy = noise.mechanism.apply(noise.exact_sums(rows), bits)
            moments = noise.moments(noisy)
            value = moments.covariance
            if self.correlations:
                value = _correlations(moments, noise.deviations / moments.unit**2)
            sums = covariance_sums(noise, noisy, facts.columns, correlations=self.correlations)
            return Measured(value=value, sums=sums)

        words = "covariances are off by {:.3g} on average, correlations by that over the variances"
        counted = () if noise.counted else ("the number of rows",)
        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=words.format(noise.off_diagonal_error) if self.correlations else noise.error,
            methods=methods,
            public=(*counted, "the number of columns", "bounds on the rows"),
        )


def numbers_of(
    rows: Any, columns: Sequence[str] | None, missing: Any = DEFAULT_MISSING
) -> tuple[Source, Any]:
    """Return rows of numbers as a source and, for a data set, their declared bounds."""
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
    """Answer the question on these rows, with the declared bounds if none are stated."""
    source, declared = numbers_of(rows, columns, missing)
    bounds = question.bounds
    if bounds is None and question.data_norm is None:
        bounds = declared
    stated = replace(question, bounds=bounds)
    diagnosis = as_diagnosis(diagnostics, source, bounds=bounds)
    return ask(stated, source, epsilon=epsilon, diagnosis=diagnosis)


_HIDDEN = 3.0
"""The squared ratio of covariances to their noise, averaged over m of them, up to which they are 0
is 1 + 3/√m: about two standard deviations above what noise alone gives."""


def _correlations(moments: NoisyMoments, smallest_variances: Floats) -> Floats:
    """Return the matrix scaled to a unit diagonal, with covariances shrunk by their noise.

    Then all are shrunk equally, as little as makes the matrix semi-definite.
    """
    scaled = moments.scaled
    variances = np.maximum(np.maximum(np.diag(scaled), smallest_variances), 1e-300)
    roots = np.sqrt(variances)
    ratios = (scaled / moments.noise) ** 2
    pairs = ratios[np.triu_indices_from(ratios, 1)]
    kept = np.maximum(_kept(ratios, 1), _kept(pairs.mean(), len(pairs)) if len(pairs) else 0.0)
    correlations = np.clip(kept * scaled / np.outer(roots, roots), -1.0, 1.0)
    np.fill_diagonal(correlations, 0.0)
    values, _ = eigenvectors(correlations)
    return np.asarray(np.eye(len(scaled)) + correlations / max(1.0, -float(values[0])))


def _kept(ratio: Any, count: int) -> Any:
    """Return the positive-part James-Stein factor for the mean of `count` squared ratios."""
    return np.maximum(1 - (1 + _HIDDEN / math.sqrt(count)) / np.maximum(ratio, 1e-300), 0.0)


# -- Principal components from one noisy matrix of products: eigenvectors cost no further ε -------

_RADII = (Fraction(1), Fraction(1, 2))
"""The radii that are compared where the caller states none; the first wins ties."""


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
    are not rescaled: bring them to comparable units first, or the widest column dominates.

    Parameters
    ----------
    components : int, optional
        The number of components, by default the number of columns. More components cost no ε.
    radius : number, optional
        With bounds: rows, scaled by them, are projected to a ball whose radius is this fraction of
        the distance from the middle to a corner (at least that to the faces). 1 projects no row, so
        that variances are not biased, but has four times the noise of 1/2. By default 1, or 1/2
        where n and ε are so small that noise is forecast to exceed the bias for rows in a corner of
        their bounds.

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
    bounds (up to three times as much in a corner), and, if rows are projected, the bias of rows
    that fill a quarter of each column's bounds, at an end. Noise raises the largest explained
    variances, and rotates components whose variances are close.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=20_000)
    >>> axes = pca(np.column_stack([x, x]), components=1, bounds=(-1, 1), epsilon=2).value
    >>> axes.components.round(1), axes.explained_variance_ratio.round(1)
    (array([[0.7, 0.7]]), array([1.]))

    """
    question = ComponentsQuestion(
        components=components, bounds=bounds, data_norm=data_norm, radius=radius, method=method
    )
    source, question, products = question.about(rows, columns, missing, epsilon=epsilon)
    diagnosis = as_diagnosis(diagnostics, source, bounds=question.bounds, beyond=products.beyond)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@published
@value(eq=False)
class PrincipalComponents:
    """Directions of unit length with the variances of rows along them, the largest first."""

    components: Floats
    """Of shape (components, columns); the largest entry of each is positive."""
    explained_variance: Floats
    explained_variance_ratio: Floats
    mean: Floats

    def transform(self, rows: Any) -> Floats:
        """Return the coordinates of rows, as they are, along the components: not private."""
        return np.asarray((np.asarray(rows, dtype=np.float64) - self.mean) @ self.components.T)


@value
class ComponentsQuestion:
    """Question for the principal components of rows within public bounds."""

    components: int | None = None
    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    radius: Rational | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan a noisy covariance matrix, of which the components are then computed."""
        columns = facts.width
        components = columns if self.components is None else self.components
        count = as_count(components, "components", minimum=1)
        expected = f"at most {columns}, the number of columns"
        require(count <= columns, "components", count, expected=expected, remedy="pass fewer")
        _, products = self.with_radius(facts, epsilon)
        noise, unbiased = ProductNoise.best(products, facts, epsilon, self.method)
        methods = tuple(replace(method, error=method.error + products.bias) for method in unbiased)

        def answer(rows: Rows, bits: BitSource) -> PrincipalComponents:
            return _components(noise.release(rows, bits), count)

        counted = () if noise.counted else ("the number of rows",)
        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=noise.error + products.bias,
            methods=methods,
            public=(*counted, "the number of columns", "bounds on the rows"),
        )

    def about(
        self,
        rows: Any,
        columns: Sequence[str] | None = None,
        missing: Any = DEFAULT_MISSING,
        *,
        epsilon: Rational,
    ) -> tuple[Source, ComponentsQuestion, Products]:
        """Return the source of these rows, and the question with its bounds, radius and products.

        Bounds that are not stated are those that a data set declares.
        """
        source, declared = numbers_of(rows, columns, missing)
        bounds = declared if self.bounds is None and self.data_norm is None else self.bounds
        row_epsilon = as_usable_epsilon(epsilon) / protection_of(source).max_rows
        question = replace(self, bounds=bounds)
        return source, *question.with_radius(Facts.of(source), row_epsilon)

    def with_radius(self, facts: Facts, epsilon: Rational) -> tuple[ComponentsQuestion, Products]:
        """Return the question with a radius, stated or best by forecast, and its products.

        Without bounds the radius changes nothing, and the first one wins.
        """
        if self.radius is not None:
            return self, self._products(facts, as_radius(self.radius))
        candidates = {radius: self._products(facts, radius) for radius in _RADII}

        def error(radius: Fraction) -> float:
            products = candidates[radius]
            noise, _ = ProductNoise.best(products, facts, epsilon, self.method)
            return noise.error + products.bias

        best = min(candidates, key=error)
        return replace(self, radius=best), candidates[best]

    def _products(self, facts: Facts, radius: Fraction) -> Products:
        """Return the products of rows that are projected to this radius."""
        return Products.of(
            facts.width, bounds=self.bounds, data_norm=self.data_norm, radius=float(radius)
        )


def _components(moments: NoisyMoments, count: int) -> PrincipalComponents:
    """Return the `count` first components of noisy moments, with fixed signs."""
    values, vectors = eigenvectors(moments.covariance)
    largest = np.maximum(values[::-1], 0.0)
    directions = vectors.T[::-1][:count]
    places = np.abs(directions).argmax(axis=1)
    signs = np.where(directions[np.arange(count), places] < 0, -1.0, 1.0)
    total = float(largest.sum())
    return PrincipalComponents(
        components=directions * signs[:, None],
        explained_variance=largest[:count],
        explained_variance_ratio=largest[:count] / (total if total > 0 else 1.0),
        mean=moments.mean,
    )


# -- What the tasks are, for advice and the command line ------------------------------------------


def _even_spread(numbers: Numbers) -> float:
    """Return the mean error of a covariance matrix of zeros, for columns spread evenly."""
    products = Products.of(
        width_of(numbers), bounds=numbers["bounds"], data_norm=numbers["data_norm"]
    )
    return float(np.mean((products.unit * STEPS) ** 2)) / 3 / products.columns


def _correlation(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast of covariances divided by the variances of columns spread evenly.

    The variance of a column that fills [-1, 1] evenly is 1/3, of one in a unit ball 1/(columns+2).
    """
    columns, ball = width_of(numbers), numbers["bounds"] is None
    unit = {**numbers, "bounds": None if ball else (-1, 1), "data_norm": 1 if ball else None}
    methods = planned(CovarianceQuestion, columns=lambda _: columns, correlations=True)(unit)
    # refuses bad bounds, which the unit bounds above replace
    Products.of(columns, bounds=numbers["bounds"], data_norm=numbers["data_norm"])
    inverse = columns + 2 if ball else 3
    return tuple(replace(method, error=method.error * inverse) for method in methods)


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
        planner=planner_of_columns("Covariance matrix"),
    ),
    "correlation": Task(
        verb=correlation,
        page="statistics",
        forecast=replace(
            _COVARIANCE,
            unit="expected absolute error of a correlation, for columns spread evenly",
            call=_COVARIANCE.call.replace("covariance", "correlation"),
            methods=_correlation,
            reliable="it grows as the variances fall, which are private; what noise hides is 0",
            blind=lambda _: 0.5,
        ),
        command=Command(
            columns="several",
            options=METHOD,
            publishes="one number for each pair of columns",
            example="correlation people.csv age income",
        ),
        planner=planner_of_columns("Correlation matrix"),
    ),
    "pca": Task(
        verb=pca,
        estimator="PCA",
        page="models",
        error="of a covariance, in the units of its columns",
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
        planner=planner_of_columns("Principal components"),
    ),
}
