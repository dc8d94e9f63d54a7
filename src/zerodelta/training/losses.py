"""Define losses of a linear predictor ⟨θ, x⟩ and their gradients.

A loss is a function of one margin (or one for each class) and one label, so the gradient of a row
is its slope times the row. The numbers of a row never depend on another row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.value import value


class Loss(ABC):
    """A convex loss ψ(margin, label), with public bounds on its slope and its curvature."""

    @property
    def outputs(self) -> int:
        """The number of margins of a row: 1, or the number of classes."""
        return 1

    @abstractmethod
    def read(self, labels: Floats) -> Floats:
        """Return the labels as numbers that the loss uses; NaN for an unusable label."""

    @abstractmethod
    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return ψ for each row."""

    @abstractmethod
    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return ∂ψ/∂margin for each row."""

    @abstractmethod
    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return a bound on |slope| for margins of at most this magnitude."""

    def curvature_bound(self) -> Fraction | None:
        """Return a bound on ∂²ψ/∂margin², or None if it is unbounded."""
        return None

    def gradients(self, theta: Floats, features: Floats, labels: Floats) -> Floats:
        """Return the (n, d) gradients of ψ(⟨θ, x_i⟩, y_i) in θ; zeros for unusable rows.

        >>> rows = np.array([[1.0, 3.0], [0.0, 2.0]])
        >>> Squared(label_bound=1).gradients(np.array([0.5, 0.5]), rows, np.array([1.0, 0.0]))
        array([[1., 3.],
               [0., 2.]])
        """
        numbers = self.read(labels)
        counted = np.isfinite(numbers) & np.isfinite(features).all(axis=1)
        rows = np.where(counted[:, None], features, 0.0)
        weights = theta.reshape(rows.shape[1], self.outputs)
        margins = np.zeros((len(rows), self.outputs))
        for j, weight in enumerate(weights):  # not BLAS, whose rounding depends on the batch
            margins += rows[:, [j]] * weight
        if self.outputs == 1:
            margins = margins[:, 0]
        slopes = self.slope(margins, np.where(counted, numbers, 0.0)).reshape(len(rows), -1)
        gradients: Floats = rows[:, :, None] * slopes[:, None, :]
        return gradients.reshape(len(rows), -1)


class _TwoClasses(Loss):
    """A loss of y·margin; y = -1 for the first class, +1 for the second."""

    classes: tuple[float, float]

    def __post_init__(self) -> None:
        _check_classes(self.classes)

    def read(self, labels: Floats) -> Floats:
        """Return -1, +1 or NaN."""
        first, second = (float(as_rational(label, "classes")) for label in self.classes)
        signs: Floats = np.where(labels == second, 1.0, np.where(labels == first, -1.0, np.nan))
        return signs

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return 1."""
        return Fraction(1)


class _BoundedLabels(Loss):
    """A loss of the residual from a label within public bounds, of curvature at most 1."""

    label_bound: Rational

    def read(self, labels: Floats) -> Floats:
        """Return the clipped labels; NaN stays NaN."""
        bound = float(as_rational(self.label_bound, "label_bound"))
        return np.clip(labels, -bound, bound)

    def curvature_bound(self) -> Fraction:
        """Return 1."""
        return Fraction(1)


@value
class Logistic(_TwoClasses):
    """ln(1 + e^(-y·margin)), for two classes; y = -1 for the first class, +1 for the second.

    Parameters
    ----------
    classes : tuple of two numbers
        The public labels; a row with any other label has gradient 0.

    Examples
    --------
    >>> Logistic(classes=(0, 1)).read(np.array([0.0, 1.0, 7.0]))
    array([-1.,  1., nan])

    """

    classes: tuple[float, float] = (0, 1)

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return ln(1 + e^(-y m)), without overflow."""
        scores = -labels * margins
        value: Floats = np.maximum(scores, 0.0) + np.log1p(np.exp(-np.abs(scores)))
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return -y/(1 + e^(y m)), without overflow."""
        with np.errstate(over="ignore"):  # 1/(1 + inf) is 0, the correct limit
            slope: Floats = -labels / (1.0 + np.exp(labels * margins))
        return slope

    def curvature_bound(self) -> Fraction:
        """Return 1/4."""
        return Fraction(1, 4)


@value
class Hinge(_TwoClasses):
    """max(0, 1 - y·margin), the loss of a support vector machine; y as for `Logistic`.

    Parameters
    ----------
    classes : tuple of two numbers
        The public labels; a row with any other label has gradient 0.

    """

    classes: tuple[float, float] = (0, 1)

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return max(0, 1 - y m)."""
        value: Floats = np.maximum(0.0, 1.0 - labels * margins)
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return -y where y m < 1, a subgradient."""
        slope: Floats = np.where(labels * margins < 1.0, -labels, 0.0)
        return slope


@value
class Squared(_BoundedLabels):
    """(margin - y)²/2, for regression.

    Parameters
    ----------
    label_bound : number
        Labels are clipped to ± this public bound; a row whose label is NaN has gradient 0.

    """

    label_bound: Rational

    def __post_init__(self) -> None:
        as_positive(self.label_bound, "label_bound")

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return (m - y)²/2."""
        value: Floats = (margins - labels) ** 2 / 2
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return m - y."""
        slope: Floats = margins - labels
        return slope

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return margin + label_bound."""
        return margin + as_positive(self.label_bound, "label_bound")


@value
class Huber(_BoundedLabels):
    """(m - y)²/2 up to a residual of `threshold`, linear beyond: regression with outliers.

    Parameters
    ----------
    label_bound : number
        Labels are clipped to ± this public bound; a row whose label is NaN has gradient 0.
    threshold : number
        The residual from which the loss is linear.

    """

    label_bound: Rational
    threshold: Rational = 1

    def __post_init__(self) -> None:
        as_positive(self.label_bound, "label_bound")
        as_positive(self.threshold, "threshold")

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return the Huber function of the residual."""
        limit = float(as_rational(self.threshold, "threshold"))
        sizes = np.abs(margins - labels)
        inner = np.minimum(sizes, limit)
        value: Floats = inner * (sizes - inner / 2)
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return the residual cut at ±threshold."""
        limit = float(as_rational(self.threshold, "threshold"))
        return np.clip(margins - labels, -limit, limit)

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return the threshold, or the largest residual if that is less."""
        largest = margin + as_positive(self.label_bound, "label_bound")
        return min(largest, as_positive(self.threshold, "threshold"))


@value
class Multinomial(Loss):
    """Softmax regression: ln Σ_c e^(m_c) - m_y, with one margin for each class.

    The parameters are the (features, classes) matrix, flattened.

    Parameters
    ----------
    classes : tuple of numbers
        The public labels; a row with any other label has gradient 0.

    Examples
    --------
    >>> loss = Multinomial(classes=(0, 1, 2))
    >>> loss.read(np.array([2.0, 5.0])), loss.slope(np.zeros((1, 3)), np.array([2.0])).round(3)
    (array([ 2., nan]), array([[ 0.333,  0.333, -0.667]]))

    """

    classes: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_classes(self.classes, maximum=1 << 16)

    @property
    def outputs(self) -> int:
        """The number of classes."""
        return len(self.classes)

    def read(self, labels: Floats) -> Floats:
        """Return the index of the class, or NaN."""
        positions = np.full(len(labels), np.nan)
        for i, label in enumerate(self.classes):
            positions[labels == float(as_rational(label, "classes"))] = i
        return positions

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return ln Σ e^(m_c - m_y), without overflow."""
        shifted = margins - margins.max(axis=1, keepdims=True)
        of_label = shifted[np.arange(len(shifted)), labels.astype(np.int64)]
        value: Floats = np.log(_total(np.exp(shifted))) - of_label
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return softmax(m) - e_y for each row."""
        slope: Floats = np.exp(margins - margins.max(axis=1, keepdims=True))
        slope /= _total(slope)[:, None]
        slope[np.arange(len(slope)), labels.astype(np.int64)] -= 1.0
        return slope

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return 3/2: more than the exact bound √2 plus the error of rounding to integers."""
        return Fraction(3, 2)

    def curvature_bound(self) -> Fraction:
        """Return 1/2, the largest eigenvalue of diag(p) - ppᵀ."""
        return Fraction(1, 2)


def _check_classes(classes: Sequence[float], *, maximum: int = 2) -> None:
    """Refuse classes that are not a tuple of 2 to `maximum` different numbers."""
    good = isinstance(classes, tuple) and 2 <= len(classes) <= maximum
    if not good or len({float(as_rational(label, "classes")) for label in classes}) < len(classes):
        raise ParameterError(
            "classes",
            classes,
            expected="a tuple of different numbers, two of them unless the loss is multinomial",
            remedy="pass the public labels, such as (0, 1)",
        )


def _total(columns: Floats) -> Floats:
    """Add the columns in their order; np.sum adds in an order that depends on the batch's shape."""
    total: Floats = columns[:, 0].copy()
    for j in range(1, columns.shape[1]):
        total += columns[:, j]
    return total
