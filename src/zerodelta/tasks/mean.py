"""The mean of bounded rows: K-norm noise in the norm that bounds them (theory R, C10.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.rows import Rows
from zerodelta.errors import is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import LazyForms, NoisySums
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.k_norm_noise import KNorm, as_norm
from zerodelta.mechanisms.moments import EXPECTED, plan_moments
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, bounds_of, each_bounds
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.grouped_data import By
from zerodelta.tasks.mean_lattice import (
    average,
    ends_of,
    inside,
    mean_lattice,
    resolution_of,
    stretch,
)
from zerodelta.tasks.table import grouped_statistic
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NOISE_NORMS = {"laplace": 1.0, "k-norm": 2.0, "k-norm-max": math.inf}
_FITTING = {norm: name for name, norm in _NOISE_NORMS.items()}


@debited
def mean(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    data_norm: Rational | None = None,
    norm: float = 2,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the mean of bounded rows, like `np.mean(rows, axis=0)`, but private.

    Use it for one or several columns, of all rows or by group; where a few rows may be far away
    from all others see `trimmed_mean` and `median`, for several statistics at once `table`.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one or several columns. Rows beyond the bounds are clipped,
        infinities too. The width of a list of rows is that of its first.
    columns : str or list of str, optional
        Which columns of a data set or a frame; by default all.
    by : str, list of str, or dict
        As for `table`: then the value is a table with a line for each group.
    bounds : (lower, upper)
        Of every column, numbers or one for each column (a box), known without the rows; for a data
        set, by default as declared.
    data_norm : number
        Instead of bounds: the largest norm that a row can have.
    norm : 1, 2 or math.inf
        Of which norm `data_norm` is the bound.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        What a missing cell of a frame, list or array counts as: "skip" (nowhere, as in SQL; the
        default for frames), None (none is missing; if one is it counts as the center; the default
        for arrays, with less noise) or a number. A data set has it declared.
    method : str
        "k-norm" (l2), "k-norm-max" (l∞), "laplace" (l1): in which norm noise is drawn, or "auto",
        the one with the least predicted error.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, within the bounds; by group it
        is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory R, C10.4), proven: K-norm noise on the exact integer sum of
    quantized rows; where cells may be missing, on a count and a sum together (theory P, G2), whose
    quotient is the mean, or the middle of the bounds if the noisy count is not positive. With
    `data_norm` a row with a missing cell counts nowhere.
    **Neighbors**: replace-one, where the number of rows is public, or what the data set says.
    **Error**: the expected absolute error of a coordinate, averaged over the columns, in the unit
    of the data; quantizing adds less than a hundredth of it (for n·ε below 2^40).

    Examples
    --------
    >>> release = mean(np.array([20.0, 30.0, 40.0] * 1000), bounds=(0, 100), epsilon=1)
    >>> round(release.value), round(release.error, 4)
    (30, 0.0333)
    >>> mean(np.tile([1.0, 2.0], (10_000, 1)), data_norm=3, epsilon=1).value.round(1)
    array([1., 2.])

    """
    if by is not None:
        require(
            data_norm is None and is_name(method, ["auto"]),
            "data_norm" if data_norm is not None else "method",
            data_norm if data_norm is not None else method,
            expected="bounds and method='auto' by group",
            remedy="pass bounds=(lower, upper)",
        )
        return grouped_statistic(
            "mean",
            rows,
            columns,
            by=by,
            bounds=bounds,
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
            bits=bits,
        )
    source = as_source(rows, columns, missing=missing)
    stated = bounds if data_norm is not None else bounds_of(source, bounds)
    question = MeanQuestion(bounds=stated, data_norm=data_norm, norm=norm, method=method)
    beside = diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class MeanQuestion:
    """A mean is asked of rows within public bounds."""

    bounds: tuple[Any, Any] | None = None
    data_norm: Rational | None = None
    norm: float = 2
    method: str = "auto"

    @property
    def _within(self) -> tuple[tuple[Any, Any] | None, Rational | None, float]:
        return self.bounds, self.data_norm, as_norm(self.norm)

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the norm of the noise, and calibrate it."""
        if facts.may_miss:
            return self._skipping(facts, as_usable_epsilon(epsilon))
        exact, n, dimension = as_usable_epsilon(epsilon), facts.public_rows, facts.width
        lattice = mean_lattice(*self._within, dimension=dimension, n=n, epsilon=exact)
        methods = mean_methods(
            epsilon=exact,
            n=n,
            dimension=dimension,
            norm=lattice.norm,
            bound=average(lattice.bound),
        )
        chosen = choose(methods, self.method)
        norm = _NOISE_NORMS[chosen.name]
        mechanism = KNorm.for_epsilon(
            epsilon=exact,
            norm=norm,
            dimension=dimension,
            sensitivity=2 * lattice.steps * stretch(lattice.norm, norm, dimension),
        )

        def answer(rows: Rows, bits: BitSource) -> Measured:
            total = mechanism.apply(rows.sum(list(range(dimension)), lattice), bits)
            value = inside(lattice.dequantize(total, rows=n) / n, lattice)
            sums = NoisySums(
                law=mechanism.law(unit=lattice.quantum, rows=n),
                integers=total[:, None],
                forms={"": ((Fraction(0), Fraction(n)), (Fraction(1, lattice.steps), Fraction(0)))},
                bounds={"": ends_of(lattice)},
                joint=True,
                statistics={"mean": ("", "mean")},
                labels=facts.columns,
                resolution=resolution_of(lattice),
                rows=n,
            )
            return Measured(value=float(value[0]) if dimension == 1 else value, sums=(sums,))

        return ReleasePlan(
            claim=PureDP(exact),
            steps=(mechanism.step(quantum=lattice.quantum),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the number of rows", "the number of columns", "bounds on the rows"),
            noise=mechanism.law(unit=lattice.quantum, rows=n),
        )

    def _skipping(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan a count and a sum, where the number of cells that count is private."""
        if self.bounds is None and self.data_norm is not None:
            return self._complete_rows(facts, epsilon)
        require(
            self.data_norm is None and is_name(self.method, ("auto", "partition")),
            "data_norm" if self.data_norm is not None else "method",
            self.data_norm if self.data_norm is not None else self.method,
            expected="one public bound, and method='auto', where cells may be missing",
            remedy="pass bounds= or data_norm=, or missing=None if no cell is missing",
        )
        moments = plan_moments(
            epsilon=epsilon,
            bounds=each_bounds(self.bounds, facts.width),
            expected_rows=facts.planned_rows,
            neighbors=facts.neighbors,
        )
        error = float(np.mean(moments.forecast().mean)) * EXPECTED
        spends = "ε on counts and sums together"
        why = "a missing cell counts nowhere; missing=None, if none is missing, needs less noise"

        names, ends = facts.columns, each_bounds(self.bounds, facts.width)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            noisy = moments.noisy(moments.measure(rows, list(range(facts.width))), bits)
            value = moments.estimate(noisy).mean[0]
            sums = NoisySums(
                law=moments.law,
                integers=noisy.reshape(1, -1),
                forms=LazyForms(names, moments.forms),
                bounds=dict(zip(names, ends, strict=True)),
                statistics={name: (name, "mean") for name in names},
                resolution=resolution_of(moments.lattice),
            )
            return Measured(value=float(value[0]) if facts.width == 1 else value, sums=(sums,))

        return ReleasePlan(
            claim=moments.claim,
            steps=moments.steps,
            answer=answer,
            error=error,
            methods=(Method(name="partition", error=error, spends=spends, why=why),),
            public=("the number of columns", "bounds on the rows"),
        )

    def _complete_rows(self, facts: Facts, epsilon: Fraction) -> ReleasePlan[Rows]:
        """Plan the number of complete rows and their sum, with noise in the norm of a row.

        A row is (s, k), s the steps of the lattice, and (0, 0) if a cell of it is missing: two rows
        are 2s apart, as without s, and one is (s, s) from none.
        """
        dimension, n = facts.width, facts.planned_rows
        lattice = mean_lattice(*self._within, dimension=dimension, n=n, epsilon=epsilon)
        name, steps = _FITTING[lattice.norm], lattice.steps
        added = facts.neighbors is Neighbors.ADD_REMOVE
        mechanism = KNorm.for_epsilon(
            epsilon=epsilon,
            norm=lattice.norm,
            dimension=dimension + 1,
            sensitivity=stretch(math.inf, lattice.norm, 2) * steps if added else 2 * steps,
            neighbors=facts.neighbors,
        )
        size = float(average(lattice.bound))
        # of a mean as long as half the bound
        spread = math.hypot(1, 0.5 / math.sqrt(dimension)) * mechanism.error() / (steps * n)
        error = min(spread * size, size)
        why = "a row that lacks a cell counts nowhere; missing=None, if none does, needs less noise"
        method = Method(name=name, error=error, spends="ε on one number and one sum", why=why)
        chosen = choose((method,), self.method)

        def answer(rows: Rows, bits: BitSource) -> Measured:
            present, found = rows.present_sums(list(range(dimension)), lattice, joint=True)
            exact = [int(present[0]) * steps, *map(int, found)]
            noisy = mechanism.apply(np.array(exact, dtype=object), bits)
            number, *total = map(int, noisy)
            value = np.array([size * k / number if number > 0 else 0.0 for k in total])
            clipped = inside(value, lattice)
            ends = (-average(lattice.bound), average(lattice.bound))
            sums = NoisySums(
                law=mechanism.law(unit=Fraction(1)),
                integers=noisy[None, :],
                forms=LazyForms(facts.columns, partial(_forms, dimension, steps)),
                bounds=dict.fromkeys(facts.columns, ends),
                statistics={name: (name, "mean") for name in facts.columns},
                resolution=resolution_of(lattice),
            )
            return Measured(value=float(clipped[0]) if dimension == 1 else clipped, sums=(sums,))

        return ReleasePlan(
            claim=PureDP(epsilon, neighbors=facts.neighbors),
            steps=(mechanism.step(quantum=lattice.quantum),),
            answer=answer,
            error=chosen.error,
            methods=(method,),
            public=("the number of columns", "bounds on the rows"),
        )


def mean_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    norm: float = math.inf,
    bound: Rational = 1,
) -> tuple[Method, ...]:
    """Return the methods for a mean, best first, for rows within `bound` of a center in `norm`.

    For a box, norm = inf and `bound` is half its width (averaged over the columns). Errors are
    expected absolute errors of a coordinate.

    >>> [m.name for m in mean_methods(epsilon=1, n=1000, dimension=10, norm=2)]
    ['k-norm', 'laplace', 'k-norm-max']
    """
    exact, count = as_usable_epsilon(epsilon), as_count(n, "n", minimum=1)
    d, size = as_count(dimension, "dimension", minimum=1), float(as_positive(bound, "bound"))
    return _forecast(exact, count, d, as_norm(norm), size)


@lru_cache(maxsize=1024)
def _forecast(
    epsilon: Fraction, count: int, d: int, norm: float, size: float
) -> tuple[Method, ...]:
    fits = _FITTING[norm]

    def of(name: str, why: str) -> Method:
        noise = KNorm(norm=_NOISE_NORMS[name], dimension=d, sensitivity=1, scale=1).error()
        moved = 2 * size / count * float(stretch(norm, _NOISE_NORMS[name], d))
        error = min(noise * moved / float(epsilon), size)  # clipped to the bounds
        return Method(name=name, error=error, spends="ε on one sum", why=why)

    reasons = {
        name: "noise in the norm that bounds the rows"
        if name == fits
        else "its norm does not fit the bound: the sensitivity grows with the dimension"
        for name in _NOISE_NORMS
    }
    order = sorted(_NOISE_NORMS, key=lambda name: name != fits)  # in one dimension all are equal
    return ranked(*(of(name, reasons[name]) for name in order))


def _forms(dimension: int, steps: int, column: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the count of complete rows and the sum of a column, of what `_complete_rows` adds."""
    places = range(dimension + 2)
    one = (Fraction(int(place == 0), steps) for place in places)
    return tuple(one), tuple(Fraction(int(place == column + 1), steps) for place in places)
