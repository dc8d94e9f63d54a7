"""Exact integer sums of clipped per-example gradients (theory C1, A6.2): what descent noises.

Every row gives an integer vector of l2 norm at most `bound`, a function of that row alone, so the
sum over a batch moves by at most 2·bound when a row of it is replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.source import FOREIGN_SOURCE
from zerodelta.errors import ParameterError
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.step import Status
from zerodelta.training.examples import Floats

__all__ = ["GRADIENT", "Gradients", "Indices", "public_bound"]

GRADIENT = "gradient(theta, rows) treats rows one by one, keeps no state and shows nothing"

Indices: TypeAlias = npt.NDArray[np.int64]


class Gradients(ABC):
    """Where gradient sums come from; everything but `total` is public, and made of public numbers.

    No row is read before the first `total`.
    """

    rows: int
    dimension: int
    bound: int
    """The largest l2 norm of one row's integer gradient."""
    quantum: Fraction
    """What one integer step stands for."""
    callers_function: bool
    """Whether the gradient is code of the caller's, which sees rows."""
    ours: bool
    """Whether this library's own code reads the rows."""

    @property
    def status(self) -> Status:
        """Asserted if code that we did not write sees rows, also one at a time."""
        return Status.ASSERTED if self.assumed() else Status.PROVEN

    def assumed(self) -> tuple[str, ...]:
        """Return what a certificate must list as caller-asserted."""
        return (
            *((GRADIENT,) if self.callers_function else ()),
            *(() if self.ours else (FOREIGN_SOURCE,)),
        )

    @property
    def lipschitz(self) -> Fraction:
        """The norm to which gradients are clipped."""
        return self.bound * self.quantum

    @abstractmethod
    def total(self, theta: Floats, chosen: Indices | None = None) -> IntegerArray:
        """Return the integer gradient sum at θ over the chosen rows (None: all of them)."""


def public_bound(value: Rational | None, name: str) -> Fraction:
    """Return a bound that the caller must state, as an exact number above 0."""
    if value is None:
        raise ParameterError(
            name,
            None,
            expected="a public bound",
            remedy="pass data_norm= (bound on ‖x‖) with a built-in loss, clip= with a function",
        )
    return as_positive(value, name)
