"""What private estimators have in common: their data, ε, tags, and how a fitted one is saved."""

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

# -- Given data -----------------------------------------------------------------------------------
# Rows and targets as scikit-learn users pass them; only their shape and their names can raise.
#
# scikit-learn's own checks refuse NaN, infinities and texts, and print rows in their messages. An
# exception is an output (theory A14), so here it sees a stand-in of the same shape without values.


def check_rows(
    estimator: Any,
    X: Any,  # noqa: N803
    *,
    reset: bool = True,
) -> npt.NDArray[Any] | ArraySource | Dataset:
    """Check the shape of the rows, and return them unread: as an array, or a frame as a source.

    Sets or compares `n_features_in_` and `feature_names_in_`.
    """
    if isinstance(X, Dataset):
        estimator.n_features_in_ = len(X.columns)
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        return X
    dense = "dense rows, not sparse ones"
    require(not issparse(X), "X", type(X).__name__, expected=dense, remedy="pass X.toarray()")
    rows = Unread(X)
    _check_shape(estimator, rows.shape)
    stand_in = X if rows.is_frame else _stand_in(rows.shape)
    validate_data(estimator, stand_in, skip_check_array=True, reset=reset)
    return X if type(X) is np.ndarray else ArraySource(rows)


def check_examples(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
) -> tuple[npt.NDArray[Any] | ArraySource | Dataset, Unread | Dataset]:
    """Return the rows, and one label or target for each as it was given; nothing is read.

    Two selections of one data set are returned as they are: `LabeledRows` reads them together.
    """
    validate_data(estimator, y=y, skip_check_array=True)  # says that y is missing
    rows = check_rows(estimator, X)
    if isinstance(rows, Dataset) or isinstance(y, Dataset):
        return rows, y
    targets = Unread(y)
    column_or_1d(_stand_in(targets.shape), warn=True)
    count = rows.rows if isinstance(rows, ArraySource) else len(rows)
    check_consistent_length(_stand_in((count,)), _stand_in((targets.rows,)))
    return rows, targets


def column_bounds(estimator: Any, rows: Any) -> tuple[ColumnBounds, Encoding | None]:
    """Return the estimator's bounds of the features, or those that a data set declares.

    With a data set comes how its columns become features.
    """
    if not isinstance(rows, Dataset):
        return ColumnBounds.of_columns(estimator.bounds, estimator), None
    encoding = Encoding.of(rows.kinds)
    return ColumnBounds.declared(estimator.bounds, encoding), encoding


def rows_to_predict(estimator: Any, X: Any) -> Floats:  # noqa: N803
    """Return rows for a fitted estimator, NaN for what is no number; none of this is private.

    After a fit on a data set rows are read by its schema, and encoded.
    """
    check_is_fitted(estimator)
    encoding: Encoding | None = getattr(estimator, "_encoding", None)
    if encoding is not None:
        return encoding.read(X)
    return rows_to_transform(estimator, X)


def rows_to_transform(estimator: Any, X: Any, *, reset: bool = False) -> Floats:  # noqa: N803
    """Return rows that are mapped one by one, into rows that nobody has published."""
    require(
        not isinstance(X, Dataset),
        "X",
        "a data set",
        expected="rows that may be seen: what is made of them shows them",
        remedy="pass an array or a data frame",
    )
    given = check_rows(estimator, X, reset=reset)
    read: Floats = numbers(given) if isinstance(given, np.ndarray) else public_table(given)
    return read


def _check_shape(estimator: Any, shape: tuple[int, ...]) -> None:
    stand_in = _stand_in(shape)
    check_array(stand_in, ensure_all_finite=False, estimator=estimator, input_name="X")


def _stand_in(shape: tuple[int, ...]) -> Floats:
    """Return zeros of a shape, in the memory of one."""
    return np.broadcast_to(np.float64(0), shape)


# -- Fitted estimators as JSON, beside the release that they are made of, and back ----------------

_OF_RELEASE = frozenset({"release_", "certificate_", "diagnostics_"})
_OF_LEDGER = frozenset({"ledger", "again"})


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What all of them have in common; their parameters are the fields of their classes.

    Parameters
    ----------
    epsilon : number
        What one ``fit`` costs; there is no default.
    bounds : (lower, upper), or a mapping from column names to such pairs
        Public bounds of the features, numbers or one for each column; values beyond are clipped.
        For a data set as declared, a category as one column of zeros and ones for each option.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `diagnostics_`: which fractions of the rows were used,
        clipped to the bounds, and unreadable. Of a data set; of other rows it may be refused.
    ledger : Ledger, optional
        Whose budget each ``fit`` debits; that of the data set, too, if it has one.
    again : bool
        Whether to pay once more for a fit that the data set's ledger has seen before.

    Attributes
    ----------
    encoded_names_ : array
        Only after a fit on a data set: the names of the features, in their order; a category has
        one for each option ("city=oslo").
    diagnostics_ : Diagnostics or None
        How the rows were read, if `diagnostics` asks for that.
    release_, certificate_ : Release, Certificate
        What was published, and what is proven of it.

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
        classes = [each for each in cls.__mro__ if issubclass(each, PrivateEstimator)]
        first, *others = (each.__doc__ for each in classes)
        names = [name for each in classes for name in inspect.get_annotations(each)]
        cls.__doc__ = inherited(first, *others, parameters=dict.fromkeys(["epsilon", *names]))

    def save(
        self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str] | None = None
    ) -> None:
        """Save the fitted estimator, its certificate and record to a new file for `zd.load`.

        Parameters
        ----------
        path : path
            A file that is not there yet.
        sign : path, optional
            A private key to sign it with.

        """
        check_is_fitted(self)
        save(self.release_, path, key=sign, estimator=_written(self))

    def _publish(self, release: Release, encoding: Encoding | None) -> None:
        """Show the release, and keep how the columns of a data set became features."""
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
    parameters = estimator.get_params(deep=False)
    given = {name: written(v) for name, v in parameters.items() if name not in _OF_LEDGER}
    state = {
        name: written(value)
        for name, value in vars(estimator).items()
        if name not in parameters and name not in _OF_RELEASE
    }
    return {"class": type(estimator).__name__, "parameters": given, "state": state}


def restored_estimator(
    data: Any, release: Release, known: Mapping[str, type], read: Callable[[Any], Any]
) -> Any:
    """Return the fitted estimator that was saved with a release, of one of the known classes."""
    try:
        made = known[data["class"]](
            **{name: read(part) for name, part in data["parameters"].items()}
        )
        state = {name: read(part) for name, part in data["state"].items()}
        vars(made).update(
            {**state, "release_": release, "certificate_": release.certificate},
            diagnostics_=release.diagnostics,
        )
        same = _written(made) == data
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise RecordError(
            "the estimator cannot be restored: the file was changed by hand, or written by a newer "
            "zerodelta; upgrade, or load it as it was saved."
        )
    return made


F = TypeVar("F", bound=Callable[..., Any])


def debited_fit(fit: F) -> F:
    """Have one `fit` paid for by the estimator's ledger, and by that of the data set."""

    @wraps(fit)
    def paid(self: Any, X: Any, y: Any = None, **others: Any) -> Any:  # noqa: N803
        arguments = {**self.get_params(deep=False), "X": X, "y": y}
        ledger, again = arguments.pop("ledger"), arguments.pop("again")
        with paying(ledger, again=again, task=type(self).__name__, arguments=arguments):
            return fit(self, X, y, **others)

    return paid  # type: ignore[return-value]


def accepting_any_value(tags: Any, *, random: bool = True) -> Any:
    """Return scikit-learn's tags with what is true of all our estimators."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True  # a text is the number it spells, else NaN
    tags.non_deterministic = random
    return tags


def fit_columns(
    estimator: PrivateEstimator,
    task: Callable[..., Release],
    X: Any,  # noqa: N803
    **options: Any,
) -> Any:
    """Ask a task of rows without labels, publish the answer, and return it.

    Bounds are the estimator's, or those that the columns of a data set were declared with.
    """
    given: Any = estimator
    epsilon, rows = required_epsilon(given.epsilon), check_rows(given, X)
    bounds, encoding = column_bounds(given, rows)
    release = inside_same_release(task)(
        rows,
        epsilon=epsilon,
        bounds=(bounds.lower, bounds.upper) if encoding is None else None,
        method=given.method,
        diagnostics=given.diagnostics,
        **options,
    )
    given._bounds = bounds
    given._publish(release, encoding)
    return release.value


def required_epsilon(epsilon: Rational | None) -> Fraction:
    """Return ε; None, which estimators store so that scikit-learn can make them, is refused.

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
    """Return the public classes in the order in which scikit-learn's scorers expect them.

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
    """A linear regressor; its subclasses fit.

    Parameters
    ----------
    bounds_y : (lower, upper)
        Public bounds of the targets, which are clipped to them; for a data set as declared.
    fit_intercept : bool
        Whether the line may miss the origin.

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
        """Return rows @ coef_ + intercept_, of rows clipped as the fit clipped them."""
        rows = rows_to_predict(self, X)
        rows = self.release_.value.limited(rows)
        return linear_scores(rows, self.coef_[None, :], self.intercept_)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # few rows are mostly noise
        return tags

    def _publish(self, release: Release, encoding: Encoding | None) -> None:
        """Show the coefficients of a `LinearModel`, too."""
        super()._publish(release, encoding)
        self.coef_: Floats = release.value.coefficients[0]
        self.intercept_: Any = release.value.intercept[0]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A classifier with public `classes`; its subclasses fit and give scores.

    Parameters
    ----------
    classes : sequence of labels
        All labels that can occur, whatever is in y; public. For a data set as declared.

    Attributes
    ----------
    classes_ : array
        The classes in order.
    temperature_ : float
        Probabilities are those of scores over this public number, larger where noise dominates.
    """

    classes: Sequence[Any] | None = None

    @abstractmethod
    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return one score for each row (positive: the second class), or one for each class."""

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the likeliest class of each row."""
        scores = self.decision_function(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the probability of each class, in the order of `classes_`.

        Scores are divided by `temperature_`, which follows from public numbers: at least 1, and
        more where noise dominates. Predictions do not depend on it.
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
        """Return the public classes in order: those given, or those that a data set declares."""
        return sorted_classes(declared_classes(y) if self.classes is None else self.classes)

    def _publish_classes(
        self, release: Release, encoding: Encoding | None, known: tuple[Any, ...], scale: float
    ) -> None:
        """Show the public classes and temperature, too."""
        labels = np.array(known)
        if labels.ndim != 1:  # such as tuples
            labels = np.empty(len(known), dtype=object)
            labels[:] = known
        self.classes_: npt.NDArray[Any] = labels
        self.temperature_ = scale
        self._publish(release, encoding)


@dataclass(kw_only=True, eq=False, repr=False)
class ClassStatistics(PrivateClassifier):
    """A classifier of features inside public `bounds`, made of one release; its subclasses ask.

    Notes
    -----
    **Neighbors**: replace-one, rows that come and go, or one unit of a data set, as it was opened.
    **Error**: `release_.error` forecasts the error rate where classes are well apart; the true one
    depends on data.
    """

    bounds: Any = None

    def _fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        question: Callable[[ColumnBounds, tuple[Any, ...]], Question],
    ) -> Any:
        """Ask the question of labeled rows, publish the answer, and return it."""
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
