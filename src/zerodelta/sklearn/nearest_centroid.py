"""`NearestCentroid`: the mean row of each class, in one release (theory G2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from zerodelta.data.account import Account
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational
from zerodelta.regression.class_means import CentroidQuestion
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.sklearn.base_estimators import ClassStatistics, debited_fit


@final
class NearestCentroid(ClassStatistics):
    """The class whose mean row is nearest, under pure ε-DP; for few rows or many features.

    Use it in place of `sklearn.neighbors.NearestCentroid`. Means are noisy, and moved together as
    far as noise makes them differ; ``zd.advise("classifier", ...)`` compares all classifiers.

    Parameters
    ----------
    epsilon : number
        What one ``fit`` costs; there is no default.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Public bounds of the features, numbers or one for each column; values beyond are clipped.
        For a data set as declared, a category as one column of zeros and ones for each option.
    classes : sequence of labels
        All labels that can occur, whatever is in y; public. For a data set as declared.
    block : str
        The norm of the noise of a class: "max" (rows anywhere inside their bounds) or "l2", which
        projects rows to a ball around the middle of the bounds: less noise, best for up to about 15
        features if most rows lie there, useless for rows in a corner.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`, of a data set: which fractions of the
        rows were used, clipped to the declared bounds, and unreadable.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    classes_ : array
        The classes in order.
    centroids_ : array of shape (n_classes, n_features)
        The published means, in the units of the data.
    class_prior_ : array
        The parts of the rows that classes have, equal ones where noise would hide them.
    encoded_names_ : array
        Only after a fit on a data set: the names of the encoded columns; a category has one for
        each option ("city=oslo").
    temperature_ : float
        Probabilities are those of scores over this public number, larger where noise dominates.
    diagnostics_ : Diagnostics or None
        How the rows were read, if `diagnostics` asks for that.
    release_, certificate_ : Release, Certificate
        What was published, and what is proven of it.

    Notes
    -----
    **Releases**: `centroids_` and `class_prior_`, which are in `release_.value`,
    `diagnostics_` if asked for, and `certificate_`.
    **Neighbors**: replace-one, rows that come and go, or one unit of a data set, as it was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: one block of noise for each class (theory
    G2), and a row is in one class. Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that
    is no class, count as nothing; labels that all match no class, or bounds that clip every row,
    cannot raise and give noise that looks like a model. Predictions take a missing cell for the
    middle of its bounds. ``fit(people[["age", "city"]], people["member"])`` takes two selections of
    one `zd.open` data set.
    **Error**: `release_.error` forecasts the error rate where classes are well apart; the true one
    depends on data.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).integers(0, 3, size=3000)
    >>> X = np.column_stack([y - 1.0, 1.0 - y])
    >>> model = NearestCentroid(epsilon=1, bounds=(-2, 2), classes=[0, 1, 2]).fit(X, y)
    >>> model.predict([[-1, 1], [0, 0], [1, -1]])
    array([0, 1, 2])
    >>> model.centroids_.shape, model.certificate_.steps[0].theorem
    ((3, 2), 'block-k-norm')

    """

    centroids_: Floats
    class_prior_: Floats

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        bounds: Any = None,
        classes: Sequence[Any] | None = None,
        block: str = "max",
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.block = block
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any) -> NearestCentroid:  # noqa: N803
        """Publish the means; this is the one release that the certificate is about."""

        def question(bounds: ColumnBounds, known: tuple[Any, ...]) -> CentroidQuestion:
            return CentroidQuestion(bounds=bounds, classes=known, block=self.block)

        model = self._fit(X, y, question)
        self.centroids_, self.class_prior_ = model.centers, model.priors
        return self
