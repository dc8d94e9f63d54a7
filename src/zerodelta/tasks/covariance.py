"""Covariances and correlations of bounded columns: one draw of K-norm noise (theory R)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_numbers, as_source
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tasks.covariance_sums import covariance_sums
from zerodelta.tasks.second_moments import ProductNoise, Products
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    bits: BitSource | None = None,
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
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        What a missing cell of a frame, list or array counts as: "skip" (its row counts nowhere; the
        default for frames), None (none is missing; if one is, its row is at the center; the default
        for arrays, with less noise) or a number. A data set has it declared.
    method : str
        "frobenius" (noise for rows of bounded length), "max" (for columns with bounds of their own)
        or "auto", the one with the least predicted error.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    return _ask(question, rows, columns, missing, epsilon, diagnostics, bits)


@debited
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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the correlation matrix of columns, like ``np.corrcoef(rows.T)``, but private.

    Use it for how strongly columns go together, whatever their units.

    Parameters
    ----------
    rows, columns, bounds, data_norm, epsilon, missing, method, diagnostics, bits
        As for `covariance`.

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
    return _ask(question, rows, columns, missing, epsilon, diagnostics, bits)


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
    bits: BitSource | None,
) -> Release:
    source, declared = numbers_of(rows, columns, missing)
    bounds = question.bounds
    if bounds is None and question.data_norm is None:
        bounds = declared
    stated = CovarianceQuestion(
        bounds=bounds,
        data_norm=question.data_norm,
        method=question.method,
        correlations=question.correlations,
    )
    beside = diagnosis(diagnostics, source, bounds=bounds)
    return ask(stated, source, epsilon=epsilon, bits=bits, beside=beside)


def _correlations(scaled: Floats, least: Floats) -> Floats:
    """Return the matrix with a unit diagonal; a larger diagonal keeps it positive."""
    roots = np.sqrt(np.maximum(np.maximum(np.diag(scaled), least), 1e-300))
    found = np.clip(scaled / np.outer(roots, roots), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
