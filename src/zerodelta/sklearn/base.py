"""Define the base classes of private estimators: checks of data, ε, tags, saving and loading."""

from __future__ import annotations

import inspect
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from zerodelta.data.arrays import ArraySource, public_table
from zerodelta.data.cells import numbers
from zerodelta.data.columns import Unread
from zerodelta.data.dataset import Dataset
from zerodelta.data.source import Account
from zerodelta.errors import ParameterError, RecordError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Diagnostics, Release
from zerodelta.privacy.release_file import save
from zerodelta.privacy.written_values import written
from zerodelta.regression.classes import fit_classes
from zerodelta.regression.encoded_columns import ColumnBounds, Encoding
from zerodelta.regression.rows import as_classes, declared_classes
from zerodelta.spine.plan import Question
from zerodelta.spine.verbs import inherited, inside_same_release, paying

# -- The user's data ------------------------------------------------------------------------------
# Only the shape and the names of rows and targets can raise an error. The checks of scikit-learn
# refuse NaN, infinities and texts, and print rows in their messages. An exception is an output
# (theory A14), so scikit-learn is shown an array of zeros of the same shape.


def check_rows(
    estimator: Any,
    X: Any,  # noqa: N803
    *,
    reset: bool = True,
) -> npt.NDArray[Any] | ArraySource | Dataset:
    """Check the shape of the rows and return them unread: an array, a data set, or else a source.

    With `reset` the estimator's `n_features_in_` and `feature_names_in_` are set, else compared.
    """
    if isinstance(X, Dataset):
        estimator.n_features_in_ = len(X.columns)
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        return X
    require(
        not issparse(X),
        "X",
        type(X).__name__,
        expected="dense rows, not sparse ones",
        remedy="pass X.toarray()",
    )
    rows = Unread(X)
    zeros = _zeros(rows.shape)
    check_array(zeros, ensure_all_finite=False, estimator=estimator, input_name="X")
    validate_data(estimator, X if rows.is_frame else zeros, skip_check_array=True, reset=reset)
    return X if type(X) is np.ndarray else ArraySource(rows)


def check_examples(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
) -> tuple[npt.NDArray[Any] | ArraySource | Dataset, Unread | Dataset]:
    """Check the shapes of rows and targets, and return both unread.

    Two selections of one data set are returned unchanged: `LabeledRows` reads them together.
    """
    validate_data(estimator, y=y, skip_check_array=True)  # refuses a missing y
    rows = check_rows(estimator, X)
    if isinstance(rows, Dataset) or isinstance(y, Dataset):
        return rows, y
    targets = Unread(y)
    column_or_1d(_zeros(targets.shape), warn=True)
    count = rows.rows if isinstance(rows, ArraySource) else len(rows)
    check_consistent_length(_zeros((count,)), _zeros((targets.rows,)))
    return rows, targets


def column_bounds(estimator: Any, rows: Any) -> tuple[ColumnBounds, Encoding | None]:
    """Return the bounds of the features, and for a data set its encoding.

    The bounds are the estimator's, or those that a data set declares.
    """
    if not isinstance(rows, Dataset):
        return ColumnBounds.of_columns(estimator.bounds, estimator), None
    encoding = Encoding.of(rows.kinds)
    return ColumnBounds.declared(estimator.bounds, encoding), encoding


def rows_to_predict(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """Return the rows of a prediction as floats, NaN for non-numeric cells.

    Predictions are not private. After a fit on a data set rows are read by its schema and encoded.
    """
    check_is_fitted(estimator)
    encoding: Encoding | None = getattr(estimator, "_encoding", None)
    if encoding is not None:
        return encoding.read(X)
    return rows_to_transform(estimator, X)


def rows_to_transform(estimator: Any, X: Any, *, reset: bool = False) -> Floats:  # noqa: N803
    """Return rows as floats, for a transformation of each row by itself, which is not private."""
    require(
        not isinstance(X, Dataset),
        "X",
        "a data set",
        expected="rows that may be public: the result reveals them",
        remedy="pass an array or a data frame",
    )
    rows = check_rows(estimator, X, reset=reset)
    values: Floats = numbers(rows) if isinstance(rows, np.ndarray) else public_table(rows)
    return values


def _zeros(shape: tuple[int, ...]) -> Floats:
    """Return zeros of a shape, in the memory of one number."""
    return np.broadcast_to(np.float64(0), shape)


# -- Fitted estimators as JSON, saved with their release, and back --------------------------------

_OF_RELEASE = frozenset({"release_", "certificate_", "diagnostics_"})
_OF_LEDGER = frozenset({"ledger", "again"})


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of all private estimators; the fields of subclasses are their parameters.

    Parameters
    ----------
    epsilon : number
        The ε that one ``fit`` costs; there is no default.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Public bounds of the features, numbers or one for each column; values beyond are clipped.
        A data set has them declared, and a category is one column of zeros and ones for each
        option.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`: the fractions of rows that were used,
        clipped to the bounds, and unreadable. For a data set; other rows may be refused.
    ledger : Ledger, optional
        The ledger that each ``fit`` debits, in addition to that of the data set.
    again : bool
        Whether to pay again for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    encoded_names_ : array
        Only after a fit on a data set: the names of the features, in their order; a category has
        one for each option ("city=oslo").
    diagnostics_ : Diagnostics or None
        The fractions of rows that were used, clipped and unreadable, if `diagnostics` was passed.
    release_, certificate_ : Release, Certificate
        The published numbers, and the proof of their guarantee.

    Notes
    -----
    **Elsewhere**: scores and predictions of rows, a `GridSearchCV` over them and a transformer
    fitted on the rows are not covered: see `zerodelta.select_model` and `BoundedScaler`.
    """

    epsilon: Rational | None = None
    diagnostics: Rational | None = None
    ledger: Account | None = None
    again: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # numpydoc sections of base classes are merged into the docstring of a subclass
        bases = [base for base in cls.__mro__ if issubclass(base, PrivateEstimator)]
        first, *others = (base.__doc__ for base in bases)
        names = [name for base in bases for name in inspect.get_annotations(base)]
        cls.__doc__ = inherited(first, *others, parameters=dict.fromkeys(["epsilon", *names]))

    def save(
        self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str] | None = None
    ) -> None:
        """Save the fitted estimator, its certificate and record to a new file for `zd.load`.

        Parameters
        ----------
        path : path
            A file that does not exist yet.
        sign : path, optional
            The private key that signs the file.

        """
        check_is_fitted(self)
        save(self.release_, path, key=sign, estimator=_written(self))

    def _publish(self, release: Release, encoding: Encoding | None) -> None:
        """Set the attributes of a release, and keep the encoding of a data set's columns."""
        self.release_: Release = release
        self.certificate_: Certificate = release.certificate
        self.diagnostics_: Diagnostics | None = release.diagnostics
        self._encoding = encoding  # None for arrays and frames
        if encoding is not None:
            self.encoded_names_ = np.array(encoding.names, dtype=object)
        elif hasattr(self, "encoded_names_"):
            del self.encoded_names_

    def __sklearn_tags__(self) -> Any:
        return accepting_any_value(super().__sklearn_tags__())


def _written(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as JSON, without its release and its ledger."""
    parameters = estimator.get_params(deep=False)
    saved = {name: written(v) for name, v in parameters.items() if name not in _OF_LEDGER}
    state = {
        name: written(value)
        for name, value in vars(estimator).items()
        if name not in parameters and name not in _OF_RELEASE
    }
    return {"class": type(estimator).__name__, "parameters": saved, "state": state}


def restored_estimator(
    data: Any, release: Release, known: Mapping[str, type], read: Callable[[Any], Any]
) -> Any:
    """Return the fitted estimator that was saved with a release, if its class is known."""
    try:
        estimator = known[data["class"]](
            **{name: read(part) for name, part in data["parameters"].items()}
        )
        state = {name: read(part) for name, part in data["state"].items()}
        vars(estimator).update(
            {**state, "release_": release, "certificate_": release.certificate},
            diagnostics_=release.diagnostics,
        )
        same = _written(estimator) == data
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise RecordError(
            "the estimator cannot be restored: the file was edited, or written by a newer "
            "zerodelta. Upgrade, or load the unedited file."
        )
    return estimator


F = TypeVar("F", bound=Callable[..., Any])


def debited_fit(fit: F) -> F:
    """Debit each call of `fit` from the ledgers of the estimator and of the data set."""

    @wraps(fit)
    def paid(self: Any, X: Any, y: Any = None, **others: Any) -> Any:  # noqa: N803
        """Fit, with the estimator's `ledger` and `again` applied to this release."""
        arguments = {**self.get_params(deep=False), "X": X, "y": y}
        ledger, again = arguments.pop("ledger"), arguments.pop("again")
        with paying(ledger, again=again, task=type(self).__name__, arguments=arguments):
            return fit(self, X, y, **others)

    return paid  # type: ignore[return-value]


def accepting_any_value(tags: Any, *, random: bool = True) -> Any:
    """Set the scikit-learn tags that all private estimators share, and return them."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True  # a text is read as the number it spells, else as NaN
    tags.non_deterministic = random
    return tags


def fit_columns(
    estimator: PrivateEstimator,
    task: Callable[..., Release],
    X: Any,  # noqa: N803
    **options: Any,
) -> Any:
    """Fit an estimator by a verb for rows without labels, and return the released value.

    Bounds are the estimator's, or those that a data set declares.
    """
    fitted: Any = estimator
    epsilon, rows = required_epsilon(fitted.epsilon), check_rows(fitted, X)
    bounds, encoding = column_bounds(fitted, rows)
    release = inside_same_release(task)(
        rows,
        epsilon=epsilon,
        bounds=(bounds.lower, bounds.upper) if encoding is None else None,
        method=fitted.method,
        diagnostics=fitted.diagnostics,
        **options,
    )
    fitted._bounds = bounds
    fitted._publish(release, encoding)
    return release.value


def required_epsilon(epsilon: Rational | None) -> Fraction:
    """Return ε as a fraction; refuse None, the default that scikit-learn's `clone` needs.

    >>> required_epsilon("1/2")
    Fraction(1, 2)
    """
    require(
        epsilon is not None,
        "epsilon",
        None,
        expected="how much privacy one fit may cost; there is no default",
        remedy="pass epsilon=..., such as epsilon=1",
    )
    return as_usable_epsilon(0 if epsilon is None else epsilon)


def sorted_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes sorted, as scikit-learn's scorers expect them.

    >>> sorted_classes(["yes", "no"])
    ('no', 'yes')
    """
    known = as_classes(classes)
    try:
        return tuple(sorted(known))
    except TypeError:
        raise ParameterError(
            "classes", classes, expected="labels of one kind", remedy="pass numbers, or texts"
        ) from None


def linear_scores(rows: Floats, coefficients: Floats, intercept: Floats) -> Floats:
    """Return rows @ coefficients.T + intercept, and the intercept alone for rows with a NaN.

    >>> rows = np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0]])
    >>> linear_scores(rows, np.array([[3.0, 0.5]]), np.array([7.0])).tolist()
    [[11.0], [7.0], [7.0]]
    """
    with np.errstate(all="ignore"):
        scores: Floats = rows @ coefficients.T + intercept
    usable = np.isfinite(scores).all(axis=1, keepdims=True)
    return scores if usable.all() else np.where(usable, scores, intercept)


class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """The base of linear regressors.

    Parameters
    ----------
    bounds_y : (lower, upper)
        Public bounds of the targets, which are clipped to them; a data set declares them.
    fit_intercept : bool
        Whether to fit an intercept.

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,), number
        The published line, in the units of the data.

    Notes
    -----
    **Releases**: `coef_` and `intercept_`, which are `release_.value`, and `certificate_`.
    **Neighbors**: replace-one, where the number of rows is public, or one unit of a data set.
    """

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return rows @ coef_ + intercept_, for rows clipped as in the fit."""
        rows = rows_to_predict(self, X)
        rows = self.release_.value.limited(rows)
        return linear_scores(rows, self.coef_[None, :], self.intercept_)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # few rows are mostly noise
        return tags

    def _publish(self, release: Release, encoding: Encoding | None) -> None:
        """Set the coefficients of a `LinearModel`, too."""
        super()._publish(release, encoding)
        self.coef_: Floats = release.value.coefficients[0]
        self.intercept_: Any = release.value.intercept[0]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """The base of classifiers with public `classes`.

    Parameters
    ----------
    classes : sequence of labels
        All labels that can occur, whether or not y contains them; public. A data set declares them.

    Attributes
    ----------
    classes_ : array
        The classes in order.
    temperature_ : float
        The public number that scores are divided by before they become probabilities.
    """

    classes: Sequence[Any] | None = None

    @abstractmethod
    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return one score for each row (positive: the second class), or one for each class."""

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the most likely class of each row."""
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the probability of each class, in the order of `classes_`.

        Scores are divided by `temperature_`, a function of public numbers: at least 1, and larger
        where noise dominates. Predictions do not depend on it.
        """
        scores = self.decision_function(X) / self.temperature_
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the logarithms of `predict_proba`."""
        scores = self.decision_function(X) / self.temperature_
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # few rows are mostly noise
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) != 2
        return tags

    def _known(self, y: Any) -> tuple[Any, ...]:
        """Return the sorted public classes: the parameter, or those that a data set declares."""
        return sorted_classes(declared_classes(y) if self.classes is None else self.classes)

    def _publish_classes(
        self, release: Release, encoding: Encoding | None, known: tuple[Any, ...], scale: float
    ) -> None:
        """Set the public classes and the temperature, too."""
        labels = np.array(known)
        if labels.ndim != 1:  # such as tuples
            labels = np.empty(len(known), dtype=object)
            labels[:] = known
        self.classes_: npt.NDArray[Any] = labels
        self.temperature_ = scale
        self._publish(release, encoding)


@dataclass(kw_only=True, eq=False, repr=False)
class ClassStatistics(PrivateClassifier):
    """The base of classifiers that publish statistics of each class, of features inside `bounds`.

    Notes
    -----
    **Neighbors**: replace-one, add-remove, or one unit of a data set, as it was opened.
    **Error**: `release_.error` forecasts the error rate, the part of new rows that get a wrong
    class, for well-separated classes; the true one depends on the data.
    """

    bounds: Any = None

    def _fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        question: Callable[[ColumnBounds, tuple[Any, ...]], Question],
    ) -> Any:
        """Fit to labeled rows by one release, and return the released model."""
        epsilon, known = required_epsilon(self.epsilon), self._known(y)
        rows, labels = check_examples(self, X, y)
        bounds, encoding = column_bounds(self, rows)
        release = fit_classes(
            question(bounds, known),
            rows,
            labels,
            classes=known,
            epsilon=epsilon,
            diagnostics=self.diagnostics,
        )
        self._publish_classes(release, encoding, known, release.value.temperature)
        return release.value

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one score for each class."""
        rows = rows_to_predict(self, X)
        scores: Floats = self.release_.value.decision(rows)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
