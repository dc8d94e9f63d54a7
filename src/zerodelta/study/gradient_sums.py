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

from zerodelta.errors import ParameterError
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.step import Status
from zerodelta.study.examples import Floats

__all__ = ["Gradients", "Indices", "public_bound"]

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
    status: Status

    def assumed(self) -> tuple[str, ...]:
        """Return what a certificate must list as the caller's word."""
        if self.status is Status.PROVEN:
            return ()
        return ("gradient(theta, rows) makes of each row something that depends on that row only",)

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
