"""Answer internal queries of a study: counts, sums, histograms, moments, gradients, choices.

Each is an exact integer sum with exactly rounded Gaussian noise (theory R), or a noisy argmax, and
takes a share of what was planned (R2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.isolation import Internal, internal_array
from zerodelta.data.kinds import Boolean, Coded, Kind, Number, Text
from zerodelta.data.row_queries import (
    GRAM_STEPS,
    Bounds,
    RowQuery,
    box_lattice,
    is_callers,
    norm_lattice,
    row_query,
)
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, NamedColumns, RowFunction, as_function
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedGaussian, noisy_gram
from zerodelta.study.plan import StudyPlan, rows_to_try
from zerodelta.value import value

# -- Declared columns of a data set, for a study: bounds, codes, made-up rows ---------------------


@value
class Declared:
    """The declared kinds of named columns; an array or a frame has none."""

    names: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> Declared:
        """Return the declared columns of a source."""
        kinds = source.kinds if isinstance(source, Dataset) else {}
        return cls(names=source.columns, kinds=kinds)

    def columns(self, function: RowFunction) -> NamedColumns | None:
        """Return the declared columns that a query names; None if it names none."""
        mapped = as_function(function, self.names) if self.kinds else None
        return mapped if type(mapped) is NamedColumns else None

    def bounds(self, columns: NamedColumns) -> Bounds | None:
        """Return the bounds of columns of numbers or booleans; None for other columns."""
        kinds = [self.kinds[self.names[place]] for place in columns.positions]
        if not all(isinstance(kind, (Number, Boolean)) for kind in kinds):
            return None  # a mean of codes has no meaning
        ends: list[Any] = [kind.bounds for kind in kinds]
        lower, upper = zip(*ends, strict=True)
        return (lower[0], upper[0]) if len(kinds) == 1 else (lower, upper)

    def size(self, keys: RowFunction) -> int:
        """Return the number of codes of a column."""
        named = self.columns(keys)
        size = None
        if named is not None and named.width == 1:
            size = self.kinds[self.names[named.positions[0]]].size
        if size is None:
            raise ParameterError(
                "size",
                None,
                expected="the public number of keys",
                remedy="pass size=, or name a column declared as a category, boolean or date",
            )
        return size

    def rows_to_try(
        self, bounds: Bounds | None, data_norm: Rational | None, example: Any, *, count: int
    ) -> Block:
        """Return made-up rows within the given or the declared bounds, or the caller's example.

        Codes, and declared integers, are whole numbers in them.
        """
        within = self._all_bounds() if bounds is None else bounds
        rows = rows_to_try(self.names, within, data_norm, example, count=count)
        if example is not None:
            return rows
        kinds = [self.kinds.get(name) for name in self.names]
        integer = [isinstance(k, Coded) or (isinstance(k, Number) and k.integer) for k in kinds]
        return np.where(integer, np.floor(rows), rows) if any(integer) else rows

    def _all_bounds(self) -> Bounds | None:
        """Return the declared bounds of all columns, codes' upper ones plus 1; None for arrays."""
        if not self.kinds:
            return None
        kinds = [self.kinds[name] for name in self.names]
        ends: list[Any] = [kind.bounds for kind in kinds]
        upper = [float(end) + isinstance(k, Coded) for (_, end), k in zip(ends, kinds, strict=True)]
        return [float(end) for end, _ in ends], upper


def check_defaults(bounds: Bounds | None, data_norm: Rational | None) -> None:
    """Refuse default bounds, or a norm, that no query could use."""
    if bounds is not None:
        box_lattice(bounds)(1 if np.ndim(bounds[0]) == 0 else len(bounds[0]))
    if data_norm is not None:
        norm_lattice(data_norm, "data_norm")(1)


def rows_of_a_unit(source: Source) -> int:
    """Return the default weight of a unit, in rows, from public numbers.

    It is the maximum, or the expected number of rows of a unit if this is smaller and the rows of
    a unit can be brought together in memory.
    """
    maximum = protection_of(source).max_rows
    if not isinstance(source, Dataset) or source.by_unit is None:
        return maximum
    limit = source.keeping.memory
    fits = limit is None or source.rows * (len(source.columns) + 1) * 8 <= limit
    return source.rows_of_a_unit if fits else maximum


def usable_columns(source: Source) -> Source:
    """Return a source without its columns of texts, which a study cannot use."""
    require(
        source.rows >= 1 and source.columns,
        "rows",
        "no rows or no columns",
        expected="at least one row and one column",
        remedy="pass the data as an array of shape (n, columns)",
    )
    if not isinstance(source, Dataset):
        return source
    names = [name for name, kind in source.kinds.items() if not isinstance(kind, Text)]
    require(
        names,
        "columns",
        list(source.columns)[:10],
        expected="at least one column of numbers, categories, booleans or dates",
        remedy="name such a column",
    )
    return source[names] if len(names) < len(source.columns) else source


# -- Sums and means with missing values, so that the number of values is private (theory V, R) ----
# A present value, an integer k with |k| <= s (the lattice's steps), is measured as the pair (s, k),
# a missing one as (0, 0). Two present values differ by at most 2s, and a present one differs from
# a missing one by at most √2 s. So measuring the number of values costs nothing besides their sum,
# and under add-remove (`added`) the squared sensitivity is half.

Noise: TypeAlias = Callable[[IntegerArray, int], IntegerArray]
"""Adds noise to integers for a squared l2 sensitivity."""


def present_sum(query: RowQuery, source: Rows, noise: Noise, *, added: bool = False) -> Floats:
    """Return the noisy sum of present values; a noisy count of them is added if 0 is no end.

    If an end or the middle of the bounds is 0, integers are counted from there: a missing value is
    0, and a change is at most 2s (s, if a row is `added` to a sum from the middle). Otherwise the
    sum is center · count + the sum of differences from the center, and both get noise.
    """
    present, sums = query.present_sums(source)
    starts = [_start(center, quantum, query.lattice.steps) for center, quantum in query.scales()]
    if None not in starts:
        shifted = sums + present.astype(np.object_) * np.array(starts, dtype=np.object_)
        squared = query.sensitivity_squared
        noisy = noise(shifted, squared // 4 if added and not any(starts) else squared)
        quanta = np.array([float(quantum) for _, quantum in query.scales()])
        return np.asarray(noisy.astype(np.float64) * quanta)
    counts, noisy = _noised(query, present, sums, noise, added=added)
    parts = zip(query.scales(), counts, noisy, strict=True)
    return np.array([float(c) * count + float(q) * float(k) for (c, q), count, k in parts])


def present_mean(query: RowQuery, source: Rows, noise: Noise, *, added: bool = False) -> Floats:
    """Return the noisy mean of the present values, within the bounds.

    If their noisy number is not positive, it is the middle of the bounds.
    """
    present, sums = query.present_sums(source)
    counts, noisy = _noised(query, present, sums, noise, added=added)
    steps = query.lattice.steps
    positive = np.where(counts > 0, counts, 1.0)
    means = np.clip(noisy.astype(np.float64) / positive, -steps, steps)
    means = np.where(counts > 0, means, 0.0)
    parts = zip(query.scales(), means, strict=True)
    return np.array([float(center) + float(quantum) * mean for (center, quantum), mean in parts])


def present_rows(query: RowQuery, number: int, noise: Noise) -> float:
    """Return the noisy number of complete rows, at least 1.

    Each counts as s², measured together with its k kᵀ, ‖k‖ <= s. Adding or removing a row changes
    both by at most s², so the pair by √2 s²: no more than replacing a row changes k kᵀ.
    """
    squared = query.lattice.steps**2
    noisy = noise(np.array([number * squared], dtype=np.object_), 2 * squared**2)
    return max(1.0, float(noisy[0]) / squared)


def _noised(
    query: RowQuery, present: IntegerArray, sums: IntegerArray, noise: Noise, *, added: bool
) -> tuple[Floats, IntegerArray]:
    """Return the noisy numbers of present values, and their noisy sums."""
    steps = query.lattice.steps
    numbers = present[:1] if query.joint else present  # joint: a row is present as a whole or not
    scaled = numbers.astype(np.object_) * steps
    squared = query.sensitivity_squared
    both = noise(np.concatenate([scaled, sums]), squared // 2 if added else squared)
    counts = both[: len(numbers)].astype(np.float64) / steps
    return np.broadcast_to(counts, sums.shape), both[len(numbers) :]


def _start(center: Fraction, quantum: Fraction, steps: int) -> int | None:
    """Return the integer to add to a value's integer so that a value of 0 becomes 0.

    None if neither the middle nor an end of the bounds is 0.

    >>> _start(Fraction(5), Fraction(1, 2), 10), _start(Fraction(0), Fraction(1), 4)
    (10, 0)
    """
    return next((k for k in (0, steps, -steps) if center == quantum * k), None)


Share: TypeAlias = Rational | Internal | None
"""The part of the plan that a query takes; it may be computed from internal answers."""


class InternalQueries(ABC):
    """The internal queries of a study; `share` is the part of the plan that a query takes.

    By default that is the plan's next share. A query for which too little remains is answered by a
    public constant: the answer if every row had the center of the bounds.
    """

    _plan: StudyPlan
    _columns: tuple[str, ...]
    _size: int
    _bounds: Bounds | None
    _data_norm: Rational | None
    _boxes: dict[Hashable, FixedPoint]
    _declared: Declared
    """The declared columns, if there are some."""
    _may_miss: bool
    """Whether missing values are skipped, so that the number of values is private."""
    _probe: Floats
    _bits: BitSource

    @abstractmethod
    def _answer(
        self,
        query: RowQuery,
        constant: Callable[[], Any],
        exact: Callable[[Rows, Fraction], Any],
        share: Share,
    ) -> Internal:
        """Return the internal answer; a public constant if the plan does not cover it (C8)."""

    @property
    @abstractmethod
    def _quiet_errors(self) -> bool:
        """Whether internal answers exist, which an error message could then reveal."""

    def count(self, function: RowFunction, *, share: Share = None) -> Internal:
        """Count the rows for which a function is true: an internal answer for the program.

        Parameters
        ----------
        function : column, list of columns or callable
            True (1, not 0) for a row that counts; a callable sees a block of rows.
        share : rational, optional
            The part of the plan to spend on it; by default the next of `rounds`.

        Returns
        -------
        Internal
            The noisy number; it computes like a NumPy scalar and prints as ``<internal>``.

        """
        return self._sum(self._query(function, box_lattice((0, 1), steps=1)), share)

    def sum(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        norm_bound: Rational | None = None,
        share: Share = None,
    ) -> Internal:
        """Sum a function over the rows, clipped to `bounds` or to an l2 norm: an internal answer.

        Parameters
        ----------
        function : column, list of columns or callable
            One number, or d numbers, for each row. A row for which it raises counts as the center
            of the bounds, a NaN as the center of its own coordinate (of a frame or a data set,
            where cells may be missing: nowhere), an infinity as an end.
        bounds : (lower, upper), optional
            Public bounds, numbers or one for each coordinate; by default the study's, or those
            that were declared for the named columns.
        norm_bound : rational, optional
            A public l2 norm to which longer vectors are scaled down, instead of `bounds`.
        share : rational, optional
            As for `count`.

        Returns
        -------
        Internal
            A number, or a vector of d.

        """
        return self._sum(self._bounded(function, bounds, norm_bound), share)

    def mean(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        norm_bound: Rational | None = None,
        share: Share = None,
    ) -> Internal:
        """Average a function over the rows, like `np.mean`: an internal answer.

        Parameters and result are those of `sum`, which is divided by the number of rows. Where
        cells may be missing it is divided by the noisy number of those present, which costs
        nothing more; if that is not positive, the mean is the middle of the bounds.
        """
        query = self._bounded(function, bounds, norm_bound)
        if self._may_miss:
            return self._ratio(query, share)
        return internal_array(self._sum(query, share) / self._size)

    def gradient(self, function: RowFunction, *, clip: Rational, share: Share = None) -> Internal:
        """Average vectors, each scaled down to an l2 norm of `clip`: a step of descent.

        Parameters
        ----------
        function : list of columns or callable
            A vector for each row.
        clip : rational
            The public l2 norm.
        share : rational, optional
            As for `count`.

        Returns
        -------
        Internal
            The noisy mean vector.

        """
        norm_lattice(clip, "clip")  # refuses None, which `mean` takes for the study's bounds
        return self.mean(function, norm_bound=clip, share=share)

    def histogram(
        self, keys: RowFunction, *, size: int | None = None, share: Share = None
    ) -> Internal:
        """Count the rows with each key 0..size-1, like `np.bincount`: an internal answer.

        Parameters
        ----------
        keys : column or callable
            One key for each row; any other key is ignored.
        size : int, optional
            The public number of keys; by default that of a declared category, boolean or date,
            whose codes are the keys.
        share : rational, optional
            As for `count`.

        Returns
        -------
        Internal
            A vector of `size` noisy counts.

        """
        stated = self._declared.size(keys) if size is None else size
        cells = as_count(stated, "size", minimum=1)
        query = self._query(keys, box_lattice((0, cells), steps=1))
        require(
            query.lattice.dimension == 1,
            "keys",
            f"{query.lattice.dimension} values a row",
            expected="one key for each row",
            remedy="return an (n,) array of integers 0..size-1",
        )

        def counted(source: Rows, taken: Fraction) -> IntegerArray:
            counts = source.counts(query.function, cells, rowwise=query.rowwise)
            # a replaced row changes two counts by one each, an added or removed row one
            return self._noised(counts, 1 if self._plan.added else 2, taken)

        return self._answer(query, lambda: np.full(cells, self._size / cells), counted, share)

    def covariance(
        self,
        function: RowFunction | None = None,
        *,
        data_norm: Rational | None = None,
        centered: bool = True,
        share: Share = None,
    ) -> Internal:
        """Return the noisy covariance matrix of rows, or second moment, as an internal answer.

        Parameters
        ----------
        function : list of columns or callable, optional
            A vector for each row; by default all columns.
        data_norm : rational, optional
            The public l2 norm to which longer vectors are scaled down; by default the study's.
        centered : bool, default True
            Half of the share is spent on the mean. If False, all of it is spent on the second
            moments E x xᵀ, which are returned.
        share : rational, optional
            As for `count`.

        Returns
        -------
        Internal
            A symmetric noisy matrix.

        """
        limit = self._data_norm if data_norm is None else data_norm
        lattice = norm_lattice(limit, "data_norm", steps=GRAM_STEPS)
        query = self._query(list(self._columns) if function is None else function, lattice)
        d, unit = query.lattice.dimension, float(as_positive(limit or 0, "data_norm") / GRAM_STEPS)

        def moments(source: Rows, taken: Fraction) -> Floats:
            """Return the noisy second moment, less the product of noisy means if centered."""
            part = taken / 2 if centered else taken
            if self._may_miss:
                number, gram = query.present_gram(source)
                rows = present_rows(query, number, partial(self._noised, share=part))
            else:
                rows, gram = self._size, query.gram(source)
            squared = 2 * GRAM_STEPS**4  # of k kᵀ, in the Frobenius norm
            both = self._noise(squared, part), self._noise(squared, 2 * part)
            second: Floats = noisy_gram(gram, *both, self._bits) * (unit**2 / rows)
            if not centered:
                return second
            squared = query.sensitivity_squared
            squared = squared // 4 if self._plan.added else squared
            first = self._noised(query.total(source, joint=True), squared, part)
            mean = first.astype(np.float64) * (unit / rows)
            covariance: Floats = second - np.outer(mean, mean)
            return covariance

        return self._answer(query, lambda: np.zeros((d, d)), moments, share)

    def select(
        self,
        function: RowFunction,
        *,
        bounds: Bounds | None = None,
        share: Share = None,
    ) -> Internal:
        """Choose the option with (nearly) the largest total score, like `np.argmax`.

        The exponential mechanism with Gumbel noise, which costs ε²/8 of zCDP; the study must have
        been made with ``selects=True``, so that its plan counts that.

        Parameters
        ----------
        function : list of columns or callable
            A score for each option, of each row.
        bounds : (lower, upper), optional
            Public bounds of the scores, to which they are clipped; by default the study's.
        share : rational, optional
            As for `count`.

        Returns
        -------
        Internal
            The index of an option.

        """
        require(
            self._plan.selects,
            "select",
            "a study without selections",
            expected="a study whose plan counts them",
            remedy="make it with zd.Study(..., selects=True)",
        )
        query = self._bounded(function, bounds, None)

        def chosen(source: Rows, taken: Fraction) -> int:
            """Return the place of the option with the largest total, by exponential mechanism."""
            epsilon = self._plan.selection_epsilon(taken)
            if epsilon == 0:  # a tiny share rounds down to ε = 0: a public constant
                return 0
            steps = query.lattice.steps
            mechanism = ExponentialMechanism.for_epsilon(
                epsilon=epsilon, sensitivity=steps if self._plan.added else 2 * steps
            )
            return mechanism.select(query.total(source).tolist(), self._bits)

        return self._answer(query, lambda: 0, chosen, share)

    def _bounded(
        self, function: RowFunction, bounds: Bounds | None, norm_bound: Rational | None
    ) -> RowQuery:
        """Return the query on the lattice between the bounds, or on that of a norm bound."""
        if norm_bound is not None:
            return self._query(function, norm_lattice(norm_bound, "norm_bound"))
        return self._query(function, self._box(function, bounds))

    def _box(self, function: RowFunction, bounds: Bounds | None) -> Callable[[int], FixedPoint]:
        """Return the lattice between the bounds, cached for the study's own and declared ones."""
        if bounds is not None:
            return box_lattice(bounds)
        columns = None if self._bounds is not None else self._declared.columns(function)
        make = box_lattice(self._bounds if columns is None else self._declared.bounds(columns))

        def cached(width: int) -> FixedPoint:
            if (width, columns) not in self._boxes:
                self._boxes[width, columns] = make(width)
            return self._boxes[width, columns]

        return cached

    def _query(self, function: RowFunction, lattice: Callable[[int], FixedPoint]) -> RowQuery:
        """Check a function, try it on made-up rows, and return the query of it."""
        mapped = as_function(function, self._columns)
        allowed = self._plan.functions or not is_callers(mapped)
        require(
            allowed or self._quiet_errors,
            "function",
            "a function, in a study with functions=False",
            expected="a column, or a list of columns",
            remedy="name columns, or make it with zd.Study(..., functions=True): its "
            "certificate then rests on what the function does",
        )
        return row_query(
            mapped,
            columns=self._columns,
            probe=self._probe,
            rowwise=self._plan.rowwise,
            lattice=lattice,
            quiet=self._quiet_errors,
            allowed=allowed,
        )

    def _sum(self, query: RowQuery, share: Share) -> Internal:
        """Return the noisy sum of a query: a number for one coordinate, else a vector."""
        lattice = query.lattice

        def summed(source: Rows, taken: Fraction) -> Floats:
            """Return the noisy sum of the query's values over present rows, in its units."""
            if self._may_miss:
                noise = partial(self._noised, share=taken)
                return present_sum(query, source, noise, added=self._plan.added)
            noisy = self._noised(query.total(source), query.sensitivity_squared, taken)
            return lattice.dequantize(noisy, rows=self._size)

        def constant() -> Floats:
            zeros = np.zeros(lattice.dimension, dtype=np.int64)
            return lattice.dequantize(zeros, rows=self._size)

        answer = self._answer(query, constant, summed, share)
        return internal_array(answer[0] if lattice.dimension == 1 else answer)

    def _ratio(self, query: RowQuery, share: Share) -> Internal:
        """Return the noisy mean of the present values: their noisy sum over their noisy number."""

        def constant() -> Floats:
            return np.array([float(center) for center, _ in query.scales()])

        def divided(source: Rows, taken: Fraction) -> Floats:
            noise = partial(self._noised, share=taken)
            return present_mean(query, source, noise, added=self._plan.added)

        answer = self._answer(query, constant, divided, share)
        return internal_array(answer[0] if query.lattice.dimension == 1 else answer)

    def _noised(
        self, sums: IntegerArray, sensitivity_squared: int, share: Fraction
    ) -> IntegerArray:
        """Return integer sums with the noise that a share pays for."""
        return self._noise(sensitivity_squared, share).apply(sums, self._bits)

    def _noise(self, sensitivity_squared: int, share: Fraction) -> RoundedGaussian:
        """Return the noise that a share of the plan pays for."""
        variance = self._plan.variance(sensitivity_squared, share)
        squared = Fraction(sensitivity_squared)
        return RoundedGaussian(sensitivity_squared=squared, variance=variance)
