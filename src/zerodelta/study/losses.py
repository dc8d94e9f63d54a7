"""Losses of a linear predictor ⟨θ, x⟩ of empirical risk minimisation, and their gradients.

A loss is a function of one margin and one label, so the gradient of a row is its slope times the
row. Everything is elementwise: what is computed from a row never depends on another row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive, as_rational

__all__ = ["Hinge", "Huber", "Logistic", "Loss", "Squared"]

Floats: TypeAlias = npt.NDArray[np.float64]


class Loss(ABC):
    """A convex loss ψ(margin, label), with a public bound on its slope."""

    @abstractmethod
    def read(self, labels: Floats) -> Floats:
        """Return the labels as the loss uses them; NaN for a row that is to count as nothing."""

    @abstractmethod
    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return ψ for each row."""

    @abstractmethod
    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return ∂ψ/∂margin for each row."""

    @abstractmethod
    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return a bound on |slope| for margins of at most this magnitude."""

    def gradients(self, theta: Floats, features: Floats, labels: Floats) -> Floats:
        """Return the (n, d) gradients of ψ(⟨θ, x_i⟩, y_i) in θ; zero for rows that do not count.

        >>> rows = np.array([[1.0, 3.0], [0.0, 2.0]])
        >>> Squared(label_bound=1).gradients(np.array([0.5, 0.5]), rows, np.array([1.0, 0.0]))
        array([[1., 3.],
               [0., 2.]])
        """
        read = self.read(labels)
        counted = np.isfinite(read) & np.isfinite(features).all(axis=1)
        rows = np.where(counted[:, None], features, 0.0)
        margins = np.zeros(len(rows))
        for j, weight in enumerate(theta):  # not BLAS, whose rounding depends on the batch
            margins += rows[:, j] * weight
        slopes = self.slope(margins, np.where(counted, read, 0.0))
        gradients: Floats = rows * slopes[:, None]
        return gradients


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Logistic(Loss):
    """ln(1 + e^(-y·margin)); y = -1 for the first public class, +1 for the second.

    A label that is neither class makes its row count as nothing.

    >>> Logistic(classes=(0, 1)).read(np.array([0.0, 1.0, 7.0]))
    array([-1.,  1., nan])
    """

    classes: tuple[float, float] = (0, 1)

    def __post_init__(self) -> None:
        _check_classes(self.classes)

    def read(self, labels: Floats) -> Floats:
        """Return -1, +1 or NaN."""
        return _signs(labels, self.classes)

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return ln(1 + e^(-y m)), without overflow."""
        scores = -labels * margins
        value: Floats = np.maximum(scores, 0.0) + np.log1p(np.exp(-np.abs(scores)))
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return -y/(1 + e^(y m)), without overflow."""
        scores = labels * margins
        small = np.exp(-np.abs(scores))
        share = np.where(scores >= 0, small, 1.0) / (1.0 + small)
        slope: Floats = -labels * share
        return slope

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return 1."""
        return Fraction(1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Hinge(Loss):
    """max(0, 1 - y·margin); labels as for `Logistic`."""

    classes: tuple[float, float] = (0, 1)

    def __post_init__(self) -> None:
        _check_classes(self.classes)

    def read(self, labels: Floats) -> Floats:
        """Return -1, +1 or NaN."""
        return _signs(labels, self.classes)

    def value(self, margins: Floats, labels: Floats) -> Floats:
        """Return max(0, 1 - y m)."""
        value: Floats = np.maximum(0.0, 1.0 - labels * margins)
        return value

    def slope(self, margins: Floats, labels: Floats) -> Floats:
        """Return -y where y m < 1, a subgradient."""
        slope: Floats = np.where(labels * margins < 1.0, -labels, 0.0)
        return slope

    def slope_bound(self, margin: Fraction) -> Fraction:
        """Return 1."""
        return Fraction(1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Squared(Loss):
    """(margin - y)²/2, y clipped to ±`label_bound`; a row whose label is NaN counts as nothing."""

    label_bound: Rational

    def __post_init__(self) -> None:
        as_positive(self.label_bound, "label_bound")

    def read(self, labels: Floats) -> Floats:
        """Return the clipped labels."""
        return _clipped(labels, self.label_bound)

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


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Huber(Loss):
    """(m - y)²/2 up to a residual of `threshold`, linear beyond; labels as for `Squared`."""

    label_bound: Rational
    threshold: Rational = 1

    def __post_init__(self) -> None:
        as_positive(self.label_bound, "label_bound")
        as_positive(self.threshold, "threshold")

    def read(self, labels: Floats) -> Floats:
        """Return the clipped labels."""
        return _clipped(labels, self.label_bound)

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


def _check_classes(classes: tuple[float, float]) -> None:
    if not isinstance(classes, tuple) or len(classes) != 2 or classes[0] == classes[1]:
        raise ParameterError(
            "classes",
            classes,
            expected="a pair of different numbers",
            remedy="pass the two public labels, such as (0, 1)",
        )


def _signs(labels: Floats, classes: tuple[float, float]) -> Floats:
    first, second = (float(as_rational(label, "classes")) for label in classes)
    signs: Floats = np.where(labels == second, 1.0, np.where(labels == first, -1.0, np.nan))
    return signs


def _clipped(labels: Floats, bound: Rational) -> Floats:
    most = float(as_rational(bound, "label_bound"))
    return np.clip(labels, -most, most)  # NaN stays NaN
