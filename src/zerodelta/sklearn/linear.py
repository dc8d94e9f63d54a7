"""Linear models: `LinearRegression`, `LogisticRegression` and `SparseRegression`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.parameters import as_flag
from zerodelta.regression.classifiers import ClassifierQuestion
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding, unit_encoding
from zerodelta.regression.features import LinearModel
from zerodelta.regression.linear import LinearQuestion
from zerodelta.regression.rows import (
    LabeledRows,
    RowLimits,
    Targets,
    declared_bounds,
)
from zerodelta.sklearn.base import (
    PrivateClassifier,
    PrivateRegressor,
    check_examples,
    column_bounds,
    debited_fit,
    linear_scores,
    required_epsilon,
    rows_to_predict,
)
from zerodelta.spaces import Ball
from zerodelta.spine.run import epsilon_without, post_processed
from zerodelta.spine.verbs import inside_same_release
from zerodelta.training.frank_wolfe import Method, frank_wolfe_pure
from zerodelta.training.losses import Huber
from zerodelta.value import value

# -- `LinearRegression`: by the pure method with the least predicted error ------------------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(PrivateRegressor):
    """Linear regression under pure ε-DP.

    Parameters
    ----------
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it. For a data set, of
        the row with its numbers scaled to [-1, 1] by their bounds and each category as one 1 among
        zeros; by default √columns, which clips no row (clipped ones bias a line).
    method : str
        "huber" (noise in the objective of the pseudo-Huber loss), "statistics" (noise on XᵀX and
        Xᵀy) or "auto", the one with the least predicted error.

    Notes
    -----
    **Guarantee**: one ``fit`` is pure ε-DP, running time aside.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a target that
    is no number, count as nothing; a prediction for such a row is the intercept. A `data_norm` or
    `bounds_y` that clips every row, or that all rows are far inside, cannot raise and gives noise
    that looks like a model. ``fit(people[["age", "city"]], people["income"])`` takes two selections
    of one `zd.open` data set; rows that ``where`` drops count as nothing. "statistics" reads
    rows one after another, whatever their number; "huber" holds all of them in memory.
    **Error**: `release_.error` forecasts the excess of the mean squared error, for a data set of
    rows that fill a quarter of each column's bounds, else of rows that fill `data_norm` evenly; the
    true one depends on unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3 * X[:, 0] + 1
    >>> model = LinearRegression(epsilon=4, data_norm=1, bounds_y=(-2, 4)).fit(X, y)
    >>> model.predict([[0.7, 0.0], [-0.7, 0.0]]).round(1)
    array([ 3.1, -1.1])

    Columns of a data set, by name, with the bounds that were declared:

    >>> import zerodelta as zd
    >>> income = 1000 * (np.arange(50_000) % 80)
    >>> table = np.column_stack([income, 20 + income / 2000])
    >>> people = zd.open(table, columns={"0": zd.number(0, 80_000), "1": zd.number(0, 100)})
    >>> model = LinearRegression(epsilon=4).fit(people[["0"]], people["1"])
    >>> model.predict([[0], [60_000]]).round(-1)
    array([20., 50.])

    """

    data_norm: Rational | None = None
    bounds_y: tuple[Rational, Rational] | None = None
    fit_intercept: bool = True
    method: str = "auto"

    @debited_fit
    def fit(self, X: Any, y: Any) -> LinearRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        rows, targets = check_examples(self, X, y)
        question = LinearQuestion.of(
            rows,
            targets,
            data_norm=self.data_norm,
            bounds_y=self.bounds_y,
            intercept=self.fit_intercept,
            method=self.method,
        )
        release = question.release(rows, targets, epsilon=epsilon, diagnostics=self.diagnostics)
        self._publish(release, question.encoding)
        return self


# -- `LogisticRegression`: two or more public classes, with noise in the objective (theory C9) ----


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes, under pure ε-DP.

    Parameters
    ----------
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it, in predictions as in
        the fit. With `bounds` or for a data set, of the row with its numbers scaled to [-1, 1] and
        each category as one 1 among zeros; by default as `radius` says.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Instead of `data_norm`: public bounds of the features, numbers or one for each column, by
        which they are scaled; values beyond are clipped. For a data set as declared.
    radius : number above 0 and at most 1, optional
        With bounds: how far numbers reach on the way from the middle to a corner. 1 clips no row;
        rows beyond are clipped to that length, and lose their size. By default 1, unless n and ε
        are so small that the forecast is to learn as little of whole rows as of clipped ones in a
        corner: then 1/2 (for one to three numbers as far as a face).
    fit_intercept : bool
        Whether scores at the origin may differ from 0.
    method : str
        "objective" (noise in it), "descent" (on internal answers), or "auto", the one with the
        least predicted error.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1 or n_classes, n_features), (1 or n_classes,)
        The published lines, in the units of the data; one for two classes, positive for the second.
    data_norm_ : float or None
        The length to which longer rows, scaled if there are bounds, were clipped; None if none can
        be longer. A public number.

    Notes
    -----
    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Guarantee**: one ``fit`` is pure ε-DP (theorems C9 and N, or R2), running time aside.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that is
    no class, count as nothing; labels that all match no class, or a `data_norm` far below or above
    all rows, cannot raise and give noise that looks like a model. A prediction for a row with a
    missing cell is that of the intercept. ``fit(people[["age", "city"]], people["member"])`` takes
    two selections of one `zd.open` data set; rows that ``where`` drops count as nothing, and rows
    to predict may be frames with the same columns, read by the schema.
    **Error**: `release_.error` forecasts the excess of the mean log loss over that of the best
    line, in nats. With bounds, for rows that fill a quarter of each column's bounds, anywhere in
    them: in the corner clipped rows lose all of their size. With `data_norm` alone, for rows that
    fill it evenly. In both for a moderate signal; the true one depends on data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(5000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = LogisticRegression(epsilon=4, data_norm=1, classes=["no", "yes"]).fit(X, y)
    >>> model.predict([[0.6, 0.0], [-0.6, 0.0]])
    array(['yes', 'no'], dtype='<U3')

    """

    data_norm: Rational | None = None
    bounds: Any = None
    radius: Rational | None = None
    fit_intercept: bool = True
    method: str = "auto"

    @debited_fit
    def fit(self, X: Any, y: Any) -> LogisticRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        known = self._known(y)
        rows, labels = check_examples(self, X, y)
        question = ClassifierQuestion(
            classes=known,
            data_norm=self.data_norm,
            intercept=self.fit_intercept,
            method=self.method,
            encoding=unit_encoding(rows, self.fit_intercept),
            bounds=self._bounds_of(rows),
            radius=self.radius,
        )
        release = question.release(rows, labels, epsilon=epsilon, diagnostics=self.diagnostics)
        limits = release.value.limits
        self.data_norm_ = None if limits is None or limits.norm is None else float(limits.norm)
        self.coef_, self.intercept_ = release.value.coefficients, release.value.intercept
        temperature = release.value.temperature
        self._publish_classes(release, question.encoding, known, temperature)
        return self

    def _bounds_of(self, rows: Any) -> ColumnBounds | None:
        """Return the bounds of the columns of an array or a frame, if they are given."""
        if isinstance(rows, Dataset):
            ColumnBounds.declared(self.bounds, Encoding.of(rows.kinds))  # refuses others
            return None
        return None if self.bounds is None else ColumnBounds.of_columns(self.bounds, self)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one linear score for each class."""
        rows = rows_to_predict(self, X)
        rows = self.release_.value.limited(rows)
        scores = linear_scores(rows, self.coef_, self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores


_THRESHOLD = Fraction(1, 4)
"""Residuals beyond this part of half the target's range count linearly: a quarter of the noise."""

_EXCESS, _COARSE = 0.09, 1.92
_FEWEST, _MOST = 3, 1 << 10
_STEPS_A_RADIUS = 8
_LONGEST_PATH = 2

_RADII = tuple(Fraction(2) ** k for k in range(4))
_MORE, _STEPS_OF_A_RADIUS, _MOST_MORE = 0.07, 20, 256
"""Columns that go together, such as skewed ones in a corner of their bounds, need more steps than
the forecast knows of: 0.07 u^(3/4)/r are taken, at most 256, whose noise is small where u is large,
and a longer radius only where that leaves twenty steps for each unit of it."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SparseRegression(PrivateRegressor):
    """Linear regression with few coefficients that are not 0, under pure ε-DP.

    Its error grows with the logarithm of the number of features: for many of them, few of which
    matter. Minimizes the Huber loss over coefficients whose l1 norm is at most `radius`, in units
    where features and targets lie in [-1, 1]; the intercept counts as a coefficient. A radius of 1
    is what predictions inside `bounds_y` need if rows fill their bounds; rows in a part of them
    need more.

    Parameters
    ----------
    radius : number, optional
        The largest l1 norm of the coefficients. By default 1 or, where n and ε make it cheap, the
        largest power of two up to 8 for which there are steps enough: a column in bounds that are
        k times too wide needs a coefficient that is k times larger.
    method : str
        "composition", "transcript" or "auto": how the choices of features add up.

    Notes
    -----
    **Guarantee**: one ``fit`` is pure ε-DP (theory C2): T choices of one feature, ε/T each.
    **Public**: all parameters and the shape of X. Bounds that clip every row cannot raise and give
    noise that looks like a model. Rows with a NaN, or with a target that is no number, count as
    nothing; a prediction for such a row is the intercept.
    **Error**: `release_.error` forecasts the excess of the mean squared error where few features
    matter; the true one depends on unseen data.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 50))
    >>> y = 0.6 * X[:, 3] - 0.3 * X[:, 8]
    >>> model = SparseRegression(epsilon=4, bounds=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
    >>> np.flatnonzero(abs(model.coef_) > 0.1)
    array([3, 8])

    """

    bounds: Any = None
    bounds_y: tuple[Rational, Rational] | None = None
    radius: Rational | None = None
    fit_intercept: bool = True
    method: Method = "auto"

    @debited_fit
    def fit(self, X: Any, y: Any) -> SparseRegression:  # noqa: N803
        """Publish coefficients; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        intercept = as_flag(self.fit_intercept, "fit_intercept")
        rows, targets = check_examples(self, X, y)
        bounds_y, (bounds, encoding) = self.bounds_y, column_bounds(self, rows)
        if encoding is not None:
            declared = declared_bounds(targets)
            bounds_y = declared if bounds_y is None else bounds_y
        read, columns = Targets.of(bounds_y, intercept), len(bounds.half)
        scaled = _Scaled(bounds=bounds, intercept=intercept)
        width = columns + intercept
        source = LabeledRows(rows, targets, read=read, encode=encoding, prepare=scaled, width=width)
        source.facts.only_replaced()
        diagnosis = as_diagnosis(self.diagnostics, source.declared)
        given = None if self.radius is None else as_positive(self.radius, "radius")
        radius, steps = SparseSteps.within(
            given,
            rows=source.rows,
            columns=width,
            epsilon=float(epsilon_without(epsilon, diagnosis) / source.protection.max_rows),
        )
        release = inside_same_release(frank_wolfe_pure)(
            source,
            loss=Huber(label_bound=1, threshold=_THRESHOLD),
            domain=Ball(width, radius, norm=1),
            lipschitz=_THRESHOLD,
            epsilon=epsilon,
            iterations=steps.count,
            path=steps.path,
            method=self.method,
            diagnostics=diagnosis,
        )
        model = scaled.model(release.value, read)
        error = read.half**2 * steps.error
        self._publish(post_processed(release, value=model, error=error), encoding)
        return self


@value(eq=False)
class _Scaled:
    """Features scaled to [-1, 1], and the constant 1 of the intercept."""

    bounds: ColumnBounds
    intercept: bool

    def __call__(self, rows: Floats) -> Floats:
        scaled = self.bounds.scaled(rows, centered=self.intercept)
        return np.column_stack([scaled, np.ones(len(scaled))]) if self.intercept else scaled

    def model(self, theta: Floats, targets: Targets) -> LinearModel:
        """Return coefficients for rows and targets in the units in which they were given."""
        scale = self.bounds if self.intercept else self.bounds.around_zero()
        slopes = theta[: len(scale.half)] * targets.half
        constant = targets.middle + targets.half * float(theta[len(scale.half) :].sum())
        lines, constants = scale.in_units(slopes[None, :], np.array([constant]))
        limits = RowLimits(middle=scale.middle, half=scale.half, norm=None, bounds=self.bounds)
        return LinearModel(coefficients=lines, intercept=constants, limits=limits)


@value
class SparseSteps:
    """How many steps are taken, from public numbers, and the error to be expected.

    Each step costs accuracy of all others (T choices at ε/T), and each makes the last ones shorter:
    in units where features and targets lie in [-1, 1] the excess of the mean squared error is about
    0.09 (r T/u + 1.92 r²/T³), with u = nε/ln(2d) and r the radius. The constants were fitted to
    synthetic rows; `bench/defaults_classifiers.py` prints the forecast beside what is seen.

    >>> [SparseSteps.best(rows=5000, columns=51, epsilon=e, radius=1).count for e in (0.5, 1, 2, 3)]
    [7, 9, 11, 12]
    """

    count: int
    error: float

    @staticmethod
    def within(
        radius: Fraction | None, *, rows: int, columns: int, epsilon: float
    ) -> tuple[Fraction, SparseSteps]:
        """Return the radius, as given or the largest that there are steps for, and the steps.

        >>> found = [SparseSteps.within(None, rows=n, columns=51, epsilon=4.0)
        ...          for n in (1000, 10**5, 10**6, 10**8)]
        >>> [(int(radius), steps.count) for radius, steps in found]
        [(1, 11), (4, 88), (8, 248), (8, 256)]
        """
        informed = _informed(rows, columns, epsilon)
        more = _MORE * informed**0.75
        if radius is None:
            enough = [
                each for each in _RADII if min(more / each, _MOST_MORE) >= _STEPS_OF_A_RADIUS * each
            ]
            radius = max(enough, default=_RADII[0])
        best = SparseSteps.best(rows=rows, columns=columns, epsilon=epsilon, radius=float(radius))
        count = max(best.count, min(math.floor(more / radius), _MOST_MORE))
        return radius, SparseSteps(count=count, error=_excess(count, informed, float(radius)))

    @staticmethod
    def best(*, rows: int, columns: int, epsilon: float, radius: float) -> SparseSteps:
        """Return the number of steps with the least expected error."""
        informed = _informed(rows, columns, epsilon)
        least = (3 * _COARSE * radius * informed) ** 0.25
        near = min(max(math.floor(least), _FEWEST), _MOST)
        count = min(near, near + 1, key=lambda count: _excess(count, informed, radius))
        return SparseSteps(count=count, error=_excess(count, informed, radius))

    @property
    def path(self) -> Fraction:
        """The length of all steps in radii: more than 1 where there are steps to undo others."""
        return min(Fraction(_LONGEST_PATH), max(Fraction(1), Fraction(self.count, _STEPS_A_RADIUS)))


def _informed(rows: int, columns: int, epsilon: float) -> float:
    return rows * epsilon / math.log(2 * max(1, columns))


def _excess(count: int, informed: float, radius: float) -> float:
    return _EXCESS * (radius * count / informed + _COARSE * radius**2 / count**3)
