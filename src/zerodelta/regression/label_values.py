"""Labels and targets as numbers: places among public classes, or numbers within public bounds."""

from __future__ import annotations

from collections.abc import Sequence, Set, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.cells import numbers
from zerodelta.data.dataset import Dataset
from zerodelta.data.kind import Kind
from zerodelta.data.kinds import Category, Text
from zerodelta.data.options import Options
from zerodelta.data.unread import Unread
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.parameters import as_flag

_Cells: TypeAlias = npt.NDArray[Any]

_LARGEST = 10**100


@final
@dataclass(frozen=True, slots=True)
class ClassLabels:
    """Reads a label as its place among public classes, NaN for any other.

    A number and a text that spells it are one label, and nothing raises.

    >>> ClassLabels(("no", "yes"))(["yes", "no", None])
    array([ 1.,  0., nan])
    """

    classes: tuple[Any, ...]

    def __call__(self, labels: Any) -> Floats:
        """Return the places."""
        places = Options(self.classes, "classes").places(as_column(labels))
        return np.where(places < 0, np.nan, places)


@final
@dataclass(frozen=True, slots=True)
class Targets:
    """Reads targets clipped to public bounds, less `middle` over `half`; NaN for no number.

    Without an intercept to undo it nothing is subtracted.

    >>> Targets.of((0, 4), True)([1, 9, "x"]), Targets.of((0, 4), False)([1, 9, "x"])
    (array([-0.5,  1. ,  nan]), array([0.25, 1.  ,  nan]))
    """

    bounds: tuple[Fraction, Fraction]
    intercept: bool

    @staticmethod
    def of(bounds: tuple[Rational, Rational] | None, intercept: bool) -> Targets:
        """Check the public bounds."""
        pair = bounds if isinstance(bounds, (tuple, list)) and len(bounds) == 2 else None
        low, high = (as_rational(end, "bounds_y") for end in pair or (0, 0))
        require(
            low < high and max(-low, high, 1 / (high - low)) <= _LARGEST,
            "bounds_y",
            bounds,
            expected="two public numbers, the lower first, within 1e100 and 1e-100 apart",
            remedy="pass bounds_y=(lower, upper), what targets can be, not what they are",
        )
        return Targets((low, high), as_flag(intercept, "intercept"))

    @property
    def middle(self) -> float:
        """What is subtracted."""
        return float(sum(self.bounds) / 2) if self.intercept else 0.0

    @property
    def half(self) -> float:
        """The unit: half the range, or the largest target."""
        low, high = self.bounds
        return float((high - low) / 2 if self.intercept else max(abs(low), abs(high)))

    def __call__(self, targets: Any) -> Floats:
        """Return the scaled targets, in [-1, 1]."""
        low, high = (float(end) for end in self.bounds)
        read: Floats = numbers(as_column(targets))
        with np.errstate(all="ignore"):
            return np.clip((np.clip(read, low, high) - self.middle) / self.half, -1.0, 1.0)


def as_classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the public classes, at least two and all different."""
    listed = isinstance(classes, Sized) and (is_list(classes) or isinstance(classes, Set))
    given = tuple(classes) if classes is not None and listed else ()
    Options(given, "classes")  # refuses labels that are read alike
    require(
        len(given) >= 2,
        "classes",
        classes,
        expected="two or more different labels",
        remedy="pass classes=[...], all that can occur, not those that are in the data",
    )
    return given


def as_column(values: Any) -> _Cells:
    """Return the values as a one-dimensional array; entries of a list stay what they are."""
    return one_label_each(values).read()[0]


def one_label_each(values: Any) -> Unread:
    """Return one column of labels, unread."""
    given = values if isinstance(values, Unread) else Unread(values)
    require(
        len(given.shape) in (1, 2) and given.width == 1,
        "labels",
        f"shape {given.shape}",
        expected="one value for each row",
        remedy="pass a one-dimensional array or a list",
    )
    return given


def label_kind(labels: Any) -> Kind:
    """Return what the column of labels of a data set was declared as; anything else is refused."""
    if not isinstance(labels, Dataset) or len(labels.columns) != 1:
        raise ParameterError(
            "y",
            type(labels).__name__ if not isinstance(labels, Dataset) else list(labels.columns),
            expected="one column of the data set that the features come from",
            remedy='pass fit(people[["age", "income"]], people["member"])',
        )
    kind = labels.kinds[labels.columns[0]]
    require(
        not isinstance(kind, Text),
        "y",
        labels.columns[0],
        expected="a category, a boolean, a date or a number",
        remedy="declare a text as zd.category([...])",
    )
    return kind


def declared_classes(labels: Any) -> tuple[Any, ...] | None:
    """Return the labels that a column of a data set can have; None for arrays and for numbers."""
    return label_kind(labels).labels if isinstance(labels, Dataset) else None


def declared_bounds(labels: Any) -> tuple[Fraction, Fraction]:
    """Return the bounds of a target of a data set; a category has none."""
    kind = label_kind(labels)
    if isinstance(kind, Category) or kind.bounds is None:
        raise ParameterError(
            "y",
            labels.columns[0],
            expected="a number, a boolean or a date",
            remedy="use a classifier for a category",
        )
    return kind.bounds
