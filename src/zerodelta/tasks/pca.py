"""Principal components from one noisy matrix of products: eigenvectors cost nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.rows import Rows
from zerodelta.data.source import protection_of
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.regression.row_box import as_radius
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tasks.covariance import numbers_of
from zerodelta.tasks.second_moments import NoisyMoments, ProductNoise, Products, eigenvectors
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WHOLE, _HALF = Fraction(1), Fraction(1, 2)


@debited
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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release principal components, like `sklearn.decomposition.PCA`, but private.

    Use it for the few directions along which rows vary most; one release has all of them. Columns
    are as given: bring them to comparable units first, or the widest decides.

    Parameters
    ----------
    rows : data set, array, list, frame or Source
        What `zd.open` returns, or several columns. Values beyond the bounds are clipped.
    columns : list of str, optional
        Which columns of a data set or a frame, numbers, booleans or dates; by default all.
    components : int, optional
        How many; by default as many as there are columns. More cost nothing.
    bounds : (lower, upper)
        Of every column, numbers or one for each column, known without the rows; for a data set, by
        default as declared.
    data_norm : number
        Instead of bounds: the largest l2 norm that a row can have; longer rows are clipped to it.
    radius : number, optional
        With bounds: rows, scaled by them, are projected to a ball that ends so far on the way from
        the middle to a corner (not before the faces). 1 projects none: variances are not biased
        then, but there is four times the noise of 1/2. By default 1, or 1/2 where n and ε are so
        small that noise is forecast to be worse than the bias of rows in a corner of their bounds.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        As for `covariance`.
    method : str
        As for `covariance`.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    beside = diagnosis(diagnostics, source, bounds=bounds, beyond=products.beyond)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


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
