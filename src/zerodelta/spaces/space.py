"""The contract of every space that may be published: total functions on values (theory A14.3-4).

A space is public. `project` maps any Python object whatsoever to an element, so that nothing an
internal analysis computes can make a release raise.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError
from zerodelta.exact.logs import log_lower, log_upper
from zerodelta.spaces.reading import read_vector


class Space(ABC):
    """What may be published. Spaces are immutable, comparable, hashable and public."""

    __slots__ = ()

    @abstractmethod
    def project(self, value: object) -> Any:
        """Return an element for any object whatsoever: itself if it is one; never raise."""

    @abstractmethod
    def contains(self, value: object) -> bool:
        """Tell whether `value` denotes an element; False, never an exception, for anything else."""

    @abstractmethod
    def denotes(self, value: object) -> bool:
        """Tell whether ``project(value)`` follows from the value, rather than standing in for it.

        A finite number denotes the nearest element; None, NaN and texts that name no option denote
        nothing. Never raises.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the space as JSON of integers, strings and lists, with its "kind", exactly."""

    @classmethod
    @abstractmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Space:
        """Return the space of a description; the inverse of `describe`."""


class FiniteSpace(Space):
    """A space of `size` elements, numbered 0..size-1; element 0 stands in for what is not one."""

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """The exact number of elements, however large (ln N of theory B1 is its logarithm)."""

    @abstractmethod
    def index(self, value: object) -> int:
        """Return the number of ``project(value)``, 0 for a value that denotes nothing."""

    @abstractmethod
    def element(self, index: int) -> Any:
        """Return the element of a number 0..size-1, without enumerating."""

    def log_size_upper(self) -> float:
        """Return a float at least ln of the number of elements."""
        return log_upper(self.size)

    def log_size_lower(self) -> float:
        """Return a float at most ln of the number of elements."""
        return log_lower(self.size)


class EuclideanSpace(Space):
    """A bounded convex set of vectors; its center stands in for what is not a finite vector."""

    __slots__ = ()
    dimension: int

    @abstractmethod
    def diameter(self, norm: float = 2) -> float:
        """Return a float at least the largest l_norm distance of two elements."""

    @abstractmethod
    def middle(self) -> npt.NDArray[np.float64]:
        """Return the center."""

    @abstractmethod
    def _holds(self, vector: npt.NDArray[np.float64]) -> bool:
        """Tell whether a finite vector lies inside, up to float rounding."""

    @abstractmethod
    def _nearest(self, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the nearest element (in l2) to a finite vector outside."""

    def project(self, value: object) -> npt.NDArray[np.float64]:
        """Return the nearest element, up to float rounding, as a new array.

        A wrong shape, and a vector with a NaN or an infinity in it, becomes the center.
        """
        vector = read_vector(value, self.dimension)
        if vector is None:
            return self.middle()
        with np.errstate(all="ignore"):
            return vector if self._holds(vector) else self._nearest(vector)

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is a finite vector of the right dimension."""
        return read_vector(value, self.dimension) is not None

    def contains(self, value: object) -> bool:
        """Tell whether `value` is a vector in the space, up to the float rounding of `project`."""
        vector = read_vector(value, self.dimension)
        with np.errstate(all="ignore"):
            return vector is not None and self._holds(vector)


def as_norm(norm: float, name: str = "norm") -> float:
    """Return 1.0, 2.0 or inf; also the string "inf" of a description is read."""
    plain = isinstance(norm, (numbers.Real, str)) and not isinstance(norm, bool)
    if not plain or norm not in (1, 2, math.inf, "inf"):
        raise ParameterError(
            name, norm, expected="1, 2 or math.inf", remedy="pass one of these three norms"
        )
    return float(norm)


def named_numbers(numbers: Mapping[str, Any], kind: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of exactly these names from a description of this kind."""
    if not isinstance(numbers, Mapping) or numbers.get("kind") != kind:
        raise ParameterError(
            "numbers", numbers, expected=f'a mapping with "kind": "{kind}"', remedy="use describe()"
        )
    if set(numbers) != {"kind", *names}:
        raise ParameterError(
            f"keys of a {kind}",
            sorted(map(str, numbers)),
            expected=f"exactly kind, {', '.join(names)}",
            remedy="use describe() of the same version",
        )
    return tuple(numbers[name] for name in names)
