"""The hidden questions of a study: counts, sums, histograms, second moments, gradients, choices.

Each is an exact integer sum with exactly rounded Gaussian noise (theory R), or a noisy argmax, and
takes a share of the planned budget (R2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.internal import Hidden, hidden_array
from zerodelta.data.row_queries import (
    GRAM_STEPS,
    Bounds,
    Question,
    ask,
    box_lattice,
    is_callers,
    norm_lattice,
)
from zerodelta.data.rowwise import RowFunction, as_function
from zerodelta.data.source import Rows
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.study.study_plan import StudyPlan

__all__ = ["Asking", "Floats", "Share"]

Floats: TypeAlias = npt.NDArray[np.float64]

Share: TypeAlias = Rational | Hidden | None
"""The part of the budget a question takes, which may follow from hidden answers."""


class Asking(ABC):
    """Asks hidden questions; `share` is the part of the budget a question takes.

    By default that is the plan's next share. A question for which nothing is left is answered by a
    public constant: what the bounds' center in every row would give.
    """

    _plan: StudyPlan
    _columns: tuple[str, ...]
    _size: int
    _bounds: Bounds | None
    _data_norm: Rational | None
    _probe: Floats
    _bits: BitSource

    @abstractmethod
    def _answer(
        self,
        question: Question,
        constant: Any,
        exact: Callable[[Rows, Fraction], Any],
        share: Share,
    ) -> Hidden:
        """Return the hidden answer; a public constant if the plan does not cover it (C8)."""

    def count(self, function: RowFunction, *, share: Share = None) -> Hidden:
        """Return the hidden number of rows for which the function is true (1, not 0)."""
        return self._sum(self._question(function, box_lattice((0, 1), steps=1)), share)

    def sum(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        norm_bound: Rational | None = None,
        share: Share = None,
    ) -> Hidden:
        """Return the hidden sum over rows of a function, clipped to `bounds` or to an l2 norm.

        A row for which the function raises counts as the center of the bounds, a NaN as the center
        of its own coordinate, an infinity as an end.
        """
        if norm_bound is None:
            lattice = box_lattice(self._bounds if bounds is None else bounds)
        else:
            lattice = norm_lattice(norm_bound, "norm_bound")
        return self._sum(self._question(function, lattice), share)

    def mean(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        norm_bound: Rational | None = None,
        share: Share = None,
    ) -> Hidden:
        """Return the hidden mean over rows of a function; as `sum`."""
        total = self.sum(function, bounds=bounds, norm_bound=norm_bound, share=share)
        return hidden_array(total / self._size)

    def gradient(self, function: RowFunction, *, clip: Rational, share: Share = None) -> Hidden:
        """Return the hidden mean of per-row vectors, each scaled down to an l2 norm of `clip`."""
        norm_lattice(clip, "clip")  # refuses None, which `mean` takes for the study's bounds
        return self.mean(function, norm_bound=clip, share=share)

    def histogram(self, keys: RowFunction, *, size: int, share: Share = None) -> Hidden:
        """Return the hidden numbers of rows with each key 0..size-1; other keys count nowhere."""
        cells = as_count(size, "size", minimum=1)
        question = self._question(keys, box_lattice((0, cells), steps=1))
        if question.lattice.dimension != 1:
            raise ParameterError(
                "keys",
                f"{question.lattice.dimension} values a row",
                expected="one key for each row",
                remedy="return an (n,) array of integers 0..size-1",
            )

        def counted(source: Rows, taken: Fraction) -> IntegerArray:
            counts = source.counts(question.function, cells, rowwise=question.rowwise)
            return self._noised(counts, 2, taken)  # two counts move by one each

        return self._answer(question, np.full(cells, self._size / cells), counted, share)

    def covariance(
        self,
        function: RowFunction | None = None,
        *,
        data_norm: Rational | None = None,
        centered: bool = True,
        share: Share = None,
    ) -> Hidden:
        """Return the hidden covariance matrix of rows of l2 norm at most `data_norm`.

        Half of the share is spent on the mean. With ``centered=False`` all of it is spent on the
        second moments E x xᵀ, which are returned.
        """
        limit = self._data_norm if data_norm is None else data_norm
        lattice = norm_lattice(limit, "data_norm", steps=GRAM_STEPS)
        question = self._question(list(self._columns) if function is None else function, lattice)
        d, unit = question.lattice.dimension, float(as_positive(limit or 0, "data_norm"))
        unit /= GRAM_STEPS

        def moments(source: Rows, taken: Fraction) -> Floats:
            part = taken / 2 if centered else taken
            noisy = self._noised_gram(question.gram(source), part)
            second: Floats = noisy * (unit**2 / self._size)
            if not centered:
                return second
            first = self._noised(
                question.total(source, joint=True), question.sensitivity_squared, part
            )
            mean = first.astype(np.float64) * (unit / self._size)
            covariance: Floats = second - np.outer(mean, mean)
            return covariance

        return self._answer(question, np.zeros((d, d)), moments, share)

    def select(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        share: Share = None,
    ) -> Hidden:
        """Return the hidden index of (nearly) the largest total score; one column per option.

        The exponential mechanism with Gumbel noise, which costs ε²/8 of zCDP; the study must have
        been made with ``selects=True``, so that its plan counts that.
        """
        if not self._plan.selects:
            raise ParameterError(
                "select",
                "a study without selections",
                expected="a study whose plan counts them",
                remedy="make it with zd.Study(..., selects=True)",
            )
        lattice = box_lattice(self._bounds if bounds is None else bounds)
        question = self._question(function, lattice)

        def chosen(source: Rows, taken: Fraction) -> int:
            epsilon = self._plan.selection_epsilon(taken)
            if epsilon == 0:  # a share of almost nothing buys almost nothing
                return 0
            mechanism = ExponentialMechanism.for_epsilon(
                epsilon=epsilon,
                sensitivity=2 * question.lattice.steps,
            )
            return mechanism.select(question.total(source).tolist(), self._bits)

        return self._answer(question, 0, chosen, share)

    @property
    @abstractmethod
    def _quiet_errors(self) -> bool:
        """Whether hidden answers exist, so that messages may not quote a program's own words."""

    def _question(self, function: RowFunction, lattice: Callable[[int], FixedPoint]) -> Question:
        mapped = as_function(function, self._columns)
        allowed = self._plan.functions or not is_callers(mapped)
        if not allowed and not self._quiet_errors:
            raise ParameterError(
                "function",
                "a function, in a study with functions=False",
                expected="a column, or a list of columns",
                remedy="name columns, or make it with zd.Study(..., functions=True): its "
                "certificate then rests on what the function does",
            )
        return ask(
            mapped,
            columns=self._columns,
            probe=self._probe,
            rowwise=self._plan.rowwise,
            lattice=lattice,
            quiet=self._quiet_errors,
            allowed=allowed,
        )

    def _sum(self, question: Question, share: Share) -> Hidden:
        lattice = question.lattice

        def summed(source: Rows, taken: Fraction) -> Floats:
            noisy = self._noised(question.total(source), question.sensitivity_squared, taken)
            return lattice.dequantize(noisy, rows=self._size)

        constant = lattice.dequantize(np.zeros(lattice.dimension, dtype=np.int64), rows=self._size)
        answer = self._answer(question, constant, summed, share)
        return hidden_array(answer[0] if lattice.dimension == 1 else answer)

    def _noised(
        self, sums: IntegerArray, sensitivity_squared: int, share: Fraction
    ) -> IntegerArray:
        noise = RoundedGaussian(
            sensitivity_squared=sensitivity_squared,
            variance=self._plan.variance(sensitivity_squared, share),
        )
        return noise.apply(sums, self._bits)

    def _noised_gram(self, gram: IntegerArray, share: Fraction) -> Floats:
        """Return the symmetric matrix with noise of half the variance beside the diagonal.

        In the Frobenius norm each entry beside the diagonal counts twice, and k kᵀ moves by at most
        √2·steps².
        """
        squared = 2 * GRAM_STEPS**4
        noisy = np.zeros(gram.shape)
        above = np.triu_indices(len(gram), 1)
        noisy[above] = self._noised(gram[above], squared, 2 * share)
        noisy += noisy.T
        noisy[np.diag_indices(len(gram))] = self._noised(gram.diagonal().copy(), squared, share)
        return noisy
