"""Define the linear models `LinearRegression`, `LogisticRegression` and `SparseRegression`."""

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
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding
from zerodelta.regression.features import LinearModel
from zerodelta.regression.linear import LinearQuestion
from zerodelta.regression.rows import (
    LabeledRows,
    RowLimits,
    Targets,
    declared_bounds,
    unit_encoding,
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

# -- `LinearRegression`, by the pure method with the smaller predicted error ----------------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(PrivateRegressor):
    """Linear regression under pure ε-DP.

    Parameters
    ----------
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it. For a data set it
        bounds rows whose numbers are scaled to [-1, 1] by their bounds and whose categories are
        one-hot; the default is √columns, which clips no row (clipped rows bias a line).
    method : str
        "huber" (noise in the objective of the pseudo-Huber loss), "statistics" (noise on XᵀX and
        Xᵀy) or "auto", the one with the smaller predicted error.

    Notes
    -----
    **Guarantee**: one ``fit`` is pure ε-DP, except for its running time.
    **Public**: all parameters and the shape of X. Rows with a missing cell or a non-numeric target
    are ignored; predictions replace a missing cell by the middle of its bounds, by 0 for an array.
    A `data_norm` or `bounds_y` that clips every row, or that is far too large, raises no error, and
    gives noise that looks like a model. ``fit(people[["age", "city"]], people["income"])`` takes
    two selections of one `zd.open` data set; rows that ``where`` drops are ignored. "statistics"
    reads any number of rows one after another; "huber" holds all rows in memory.
    **Error**: `release_.error` forecasts the excess of the mean squared error. For a data set rows
    are assumed to fill a quarter of each column's bounds, else to fill `data_norm` evenly. The true
    one depends on unseen data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = 3 * X[:, 0] + 1
    >>> model = LinearRegression(epsilon=4, data_norm=1, bounds_y=(-2, 4)).fit(X, y)
    >>> model.predict([[0.7, 0.0], [-0.7, 0.0]]).round(1)
    array([ 3.1, -1.1])

    Columns of a data set, by name, with their declared bounds:

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
        """Publish coefficients, the one release that the certificate covers."""
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


# -- `LogisticRegression` of two or more public classes, with noise in the objective (theory C9) --


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(PrivateClassifier):
    """Logistic regression, multinomial for more than two classes, under pure ε-DP.

    Parameters
    ----------
    data_norm : number
        A public bound on the l2 norm of a row; longer rows are clipped to it, in predictions as in
        the fit. With `bounds` or for a data set it bounds rows whose numbers are scaled to [-1, 1]
        and whose categories are one-hot; the default follows from `radius`.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Instead of `data_norm`: public bounds of the features, numbers or one for each column, by
        which they are scaled; values beyond are clipped. A data set declares them.
    radius : number above 0 and at most 1, optional
        With bounds: the largest length of scaled numbers, as a part of the distance from the middle
        to a corner. 1 clips no row; longer rows are clipped to that length, and lose the
        information in their size. The default is 1, unless n and ε are so small that even unclipped
        rows in a corner are forecast to tell nothing: then 1/2 (for one to three numbers the
        distance to a face).
    fit_intercept : bool
        Whether to fit an intercept.
    method : str
        "objective" (noise in the objective), "descent" (internal noisy gradients), or "auto", the
        one with the smaller predicted error.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1 or n_classes, n_features), (1 or n_classes,)
        The published lines, in the units of the data; one for two classes, positive for the second.
    data_norm_ : float or None
        The length to which longer rows, scaled if there are bounds, were clipped; None if no row
        can be longer. A public number.

    Notes
    -----
    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    **Guarantee**: one ``fit`` is pure ε-DP (theorems C9 and N, or R2), except for its running time.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that is
    not in `classes`, are ignored. If no label is in `classes`, or `data_norm` is far below or above
    all rows, no error is raised, and the result is noise that looks like a model. Predictions
    replace a missing cell by the middle of its bounds, with `data_norm` alone by 0.
    ``fit(people[["age", "city"]], people["member"])`` takes two selections of one `zd.open` data
    set; rows that ``where`` drops are ignored, and rows to predict may be frames with the same
    columns, read by the schema.
    **Error**: `release_.error` forecasts the excess of the mean log loss over that of the best
    line, in nats, for a moderate signal. With bounds rows are assumed to fill a quarter of each
    column's bounds, in the worst case in a corner, where clipped rows lose all information in their
    size. With `data_norm` alone rows are assumed to fill it evenly. The true one depends on data.

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
        """Publish coefficients, the one release that the certificate covers."""
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
        """Return the bounds of the columns of an array or a frame, if the user passed them."""
        if isinstance(rows, Dataset):
            ColumnBounds.declared(self.bounds, Encoding.of(rows.kinds))  # refuses bounds=
            return None
        return None if self.bounds is None else ColumnBounds.of_columns(self.bounds, self)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one linear score for each class."""
        rows = rows_to_predict(self, X)
        rows = self.release_.value.limited(rows)
        scores = linear_scores(rows, self.coef_, self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores


# -- `SparseRegression`, by private Frank-Wolfe steps (theory C2) ---------------------------------
# The constants were chosen on synthetic rows and the data of `bench/defaults_classifiers.py`, which
# prints forecasts and results. In formulas u = nε/ln(2d) and r is the radius.

_THRESHOLD = Fraction(1, 4)
"""The residual, in half the target's range, from which the Huber loss is linear: gradients are at
most a quarter of those of squares, and so is the noise."""

_EXCESS, _COARSE = 0.09, 1.92
"""The constants of the forecast 0.09 (r T/u + 1.92 r²/T³), see `SparseSteps`."""

_MINIMUM_STEPS, _MAXIMUM_STEPS = 3, 1 << 10
_STEPS_PER_RADIUS = 8
_MAXIMUM_PATH = 2
"""A path is `count`/8 radii long, between 1 and 2."""

_RADII = tuple(Fraction(2) ** k for k in range(4))
_CORRELATED, _MINIMUM_PER_RADIUS, _MAXIMUM_CORRELATED = 0.07, 20, 256
"""Correlated columns, such as skewed ones in a corner of their bounds, need more steps than the
forecast assumes: 0.07 u^(3/4)/r steps are taken, at most 256, whose noise is small where u is
large. A larger radius is chosen only if there are twenty of these steps for each unit of it."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SparseRegression(PrivateRegressor):
    """Linear regression with few nonzero coefficients, under pure ε-DP.

    Use it for many features few of which matter: its error grows with the logarithm of their
    number. It minimizes the Huber loss over coefficients whose l1 norm is at most `radius`, in
    units where features and targets lie in [-1, 1]; the intercept counts as a coefficient. A radius
    of 1 suffices for predictions inside `bounds_y` if rows fill their bounds; rows in a part of
    their bounds need a larger one.

    Parameters
    ----------
    radius : number, optional
        The largest l1 norm of the coefficients. By default 1 or, where n and ε make it cheap, the
        largest power of two up to 8 for which enough steps can be taken: a column in bounds that
        are k times too wide needs a coefficient that is k times larger.
    method : str
        The composition of the choices of features: "composition", "transcript" or "auto", as in
        `frank_wolfe_pure`.

    Notes
    -----
    **Guarantee**: one ``fit`` is pure ε-DP (theory C2): T choices of one feature, ε/T each.
    **Public**: all parameters and the shape of X. Bounds that clip every row raise no error, and
    give noise that looks like a model. Rows with a NaN or a non-numeric target are ignored;
    predictions replace a NaN by the middle of its bounds.
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
        """Publish sparse coefficients by private Frank-Wolfe, the certificate's one release."""
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
        radius, steps = SparseSteps.within(
            None if self.radius is None else as_positive(self.radius, "radius"),
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
    """The map of rows to features in [-1, 1], with the constant 1 of the intercept."""

    bounds: ColumnBounds
    intercept: bool

    def __call__(self, rows: Floats) -> Floats:
        scaled = self.bounds.scaled(rows, centered=self.intercept)
        return np.column_stack([scaled, np.ones(len(scaled))]) if self.intercept else scaled

    def model(self, theta: Floats, targets: Targets) -> LinearModel:
        """Return the model of θ in the units of the data."""
        scale = self.bounds if self.intercept else self.bounds.around_zero()
        slopes = theta[: len(scale.half)] * targets.half
        constant = targets.middle + targets.half * float(theta[len(scale.half) :].sum())
        lines, constants = scale.in_units(slopes[None, :], np.array([constant]))
        limits = RowLimits(middle=scale.middle, half=scale.half, norm=None, bounds=self.bounds)
        return LinearModel(coefficients=lines, intercept=constants, limits=limits)


@value
class SparseSteps:
    """The number T of steps and the expected error, from public numbers.

    With more steps each choice is noisier (ε/T each), but the last steps are shorter. In units
    where features and targets lie in [-1, 1] the excess of the mean squared error is about
    0.09 (r T/u + 1.92 r²/T³), with u = nε/ln(2d) and r the radius. The constants were fitted to
    synthetic rows; `bench/defaults_classifiers.py` prints forecasts and results.

    >>> [SparseSteps.best(rows=5000, columns=51, epsilon=e, radius=1).count for e in (0.5, 1, 2, 3)]
    [7, 9, 11, 12]
    """

    count: int
    error: float

    @staticmethod
    def within(
        radius: Fraction | None, *, rows: int, columns: int, epsilon: float
    ) -> tuple[Fraction, SparseSteps]:
        """Return the radius and the steps; the default radius is the largest with enough steps.

        >>> choices = [SparseSteps.within(None, rows=n, columns=51, epsilon=4.0)
        ...            for n in (1000, 10**5, 10**6, 10**8)]
        >>> [(int(radius), steps.count) for radius, steps in choices]
        [(1, 11), (4, 88), (8, 248), (8, 256)]
        """
        u = _information(rows, columns, epsilon)
        correlated = _CORRELATED * u**0.75  # steps for correlated columns, times the radius
        if radius is None:
            affordable = [
                r
                for r in _RADII
                if min(correlated / r, _MAXIMUM_CORRELATED) >= _MINIMUM_PER_RADIUS * r
            ]
            radius = max(affordable, default=_RADII[0])
        best = SparseSteps.best(rows=rows, columns=columns, epsilon=epsilon, radius=float(radius))
        count = max(best.count, min(math.floor(correlated / radius), _MAXIMUM_CORRELATED))
        return radius, SparseSteps(count=count, error=_excess(count, u, float(radius)))

    @staticmethod
    def best(*, rows: int, columns: int, epsilon: float, radius: float) -> SparseSteps:
        """Return the number of steps with the smallest expected error."""
        u = _information(rows, columns, epsilon)
        minimizer = (3 * _COARSE * radius * u) ** 0.25  # of the forecast in real numbers T
        near = min(max(math.floor(minimizer), _MINIMUM_STEPS), _MAXIMUM_STEPS)
        count = min(near, near + 1, key=lambda count: _excess(count, u, radius))
        return SparseSteps(count=count, error=_excess(count, u, radius))

    @property
    def path(self) -> Fraction:
        """The total length of all steps in radii: above 1, later steps can undo earlier ones."""
        radii = Fraction(self.count, _STEPS_PER_RADIUS)
        return min(Fraction(_MAXIMUM_PATH), max(Fraction(1), radii))


def _information(rows: int, columns: int, epsilon: float) -> float:
    """Return u = nε/ln(2d)."""
    return rows * epsilon / math.log(2 * max(1, columns))


def _excess(count: int, u: float, radius: float) -> float:
    """Return the forecast 0.09 (r T/u + 1.92 r²/T³) of the excess error after T = `count` steps."""
    return _EXCESS * (radius * count / u + _COARSE * radius**2 / count**3)
