"""`RandomForestClassifier`: public random trees, noisy counts in their leaves (theory P1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from zerodelta.data.account import Account
from zerodelta.errors import require
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.rational import Rational
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.random_forest import ForestQuestion
from zerodelta.sklearn.base_estimators import ClassStatistics, debited_fit


@final
class RandomForestClassifier(ClassStatistics):
    """Random trees for classes that no plane tells apart, under pure ε-DP.

    Splits are random and public, in the middle half of what is left of a feature's bounds; only the
    counts of classes in the leaves are private. Every row is in every tree. There are about
    √(nε)/4 trees, of depth about log2(nε)/2.

    Parameters
    ----------
    epsilon : number
        What one ``fit`` costs; there is no default.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Public bounds of the features, numbers or one for each column; values beyond are clipped.
        For a data set as declared, a category as one column of zeros and ones for each option.
    classes : sequence of labels
        All labels that can occur, whatever is in y; public. For a data set as declared.
    n_estimators, max_depth : int, optional
        The number of trees, and of the questions on the way to a leaf; by default from n·ε.
    random_state : int, optional
        The seed of the splits, which are public. **It has no say in the noise**: two fits with one
        seed differ. By default new splits are drawn for each fit.
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
    forest_ : Forest
        The splits, and for each leaf the logarithms of the classes' probabilities.
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
    **Releases**: `forest_`, which is `release_.value`, `diagnostics_` if asked for, and
    `certificate_`.
    **Neighbors**: replace-one, rows that come and go, or one unit of a data set, as it was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: Laplace noise on all counts (theory P1);
    with T trees a row adds T to them. Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X, and all splits. Rows with a missing cell, or with
    a label that is no class, count as nothing; labels that all match no class, or bounds that clip
    every row, cannot raise and give noise that looks like a model. Predictions take a missing cell
    for the middle of its bounds. ``fit(people[["age", "city"]], people["member"])`` takes two
    selections of one `zd.open` data set.
    **Error**: `release_.error` forecasts the error rate where classes are well apart; the true one
    depends on data.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = RandomForestClassifier(epsilon=2, bounds=(-1, 1), classes=[False, True]).fit(X, y)
    >>> model.predict([[0.7, 0.7], [-0.7, 0.7]])
    array([ True, False])

    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        bounds: Any = None,
        classes: Sequence[Any] | None = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        random_state: int | None = None,
        diagnostics: Rational | None = None,
        ledger: Account | None = None,
        again: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.random_state = random_state
        self.diagnostics = diagnostics
        self.ledger = ledger
        self.again = again

    @debited_fit
    def fit(self, X: Any, y: Any) -> RandomForestClassifier:  # noqa: N803
        """Publish a forest; this is the one release that the certificate is about."""

        def question(bounds: ColumnBounds, known: tuple[Any, ...]) -> ForestQuestion:
            return ForestQuestion(
                bounds=bounds,
                classes=known,
                seed=_seed(self.random_state),
                trees=self.n_estimators,
                depth=self.max_depth,
            )

        self.forest_ = self._fit(X, y, question)
        return self


def _seed(random_state: Any) -> int:
    """Return the public seed of the splits; a generator's state may have seen rows."""
    if random_state is None:
        return SystemBits().integer(128)
    valid = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    require(
        valid and random_state >= 0,
        "random_state",
        type(random_state).__name__ if not valid else random_state,
        expected="None or an integer that is not negative: the public seed of the splits",
        remedy="pass random_state=0, say",
    )
    return int(random_state)
