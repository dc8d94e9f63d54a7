"""How often each item occurs: noise fitted to counts, or Laplace noise (theory C10.4, P1)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.group_keys import Bins, GroupKey, GroupKeys
from zerodelta.data.group_keys import bins as bins_of
from zerodelta.data.items import as_items, tally
from zerodelta.data.kind import Bounds
from zerodelta.data.kinds import Number
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise_law import NoisySums
from zerodelta.exact.rational import Rational, as_count, as_float, as_positive
from zerodelta.mechanisms.counts import CountNoise
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.power_sums import power_sums
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.release import Release
from zerodelta.spaces import Finite
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import (
    as_source,
    as_universe,
    codes_of,
    labels_of,
    needed,
    one_column,
    unknown_index,
)
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask, run
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_ITEMS = 1 << 26
_MOST_JOINT = 1 << 12
"""Beyond so many counts one joint noise vector gains nothing."""


@debited
def histogram(
    items: Any,
    columns: str | None = None,
    *,
    universe: Any = None,
    bins: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release how often each item of a public universe occurs, like `np.bincount`, but private.

    Use it for all counts of one column; for several columns at once see `answer_queries`, for the
    most frequent item alone `mode`.

    Parameters
    ----------
    items : data set, list, array, series, frame or Source
        What `zd.open` returns, or one item for each row, of any type; a number and a text that
        spells it are one item. A missing item counts nowhere, unless it is in the universe.
    columns : str, optional
        Which column of a data set (a category, a boolean or a date) or a frame.
    universe : list or int
        All items there can be, or N for the integers 0..N-1, at most 2^26 items. Public; for a
        data set as declared, with "missing" and "other" where these are options.
    bins : list of numbers, or int
        Instead of a universe, for numbers: public edges, as for `np.histogram` (a bin has its lower
        edge, the last one both; what lies beyond counts nowhere), or how many bins of equal width
        the declared bounds of a data set are cut into.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    unknown : item
        The public item for which items outside the universe count; nowhere if not given.
        If given, the counts add up to the number of items, and one noise less is needed.
    method : str
        "k-norm" (noise fitted to the two counts that one row moves), "laplace", "k-norm-max" (l∞),
        or "auto", the one with the least predicted error; under add-remove "laplace" only.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is an array of integers in the order of the universe (``people.kinds["city"]
        .labels`` of a data set), unbiased; some may be negative (cutting them off is allowed).

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.4, P1), proven.
    **Neighbors**: replace-one, or what the data set says. The counts add up to the number of rows
    only where that is public and every row is in one of them (``other=True``, no filter).
    **Error**: the expected absolute error of a count: (2/ε)·m/(m+1), m noisy counts; Laplace
    1/sinh(ε/2), under add-remove 1/sinh(ε).

    Examples
    --------
    >>> release = histogram([0] * 3000 + [1] * 5000, universe=3, epsilon=1)
    >>> np.round(release.value, -3)
    array([3000, 5000,    0])
    >>> import zerodelta as zd
    >>> people = zd.open(np.arange(9000) % 3, columns={"0": zd.category([0, 1], other=True)})
    >>> np.round(histogram(people, "0", epsilon=1).value, -3)
    array([3000, 3000, 3000])
    >>> ages = zd.open(np.arange(9000) % 90, columns={"0": zd.number(0, 120, missing=None)})
    >>> np.round(histogram(ages, "0", bins=[0, 30, 60, 120], epsilon=1).value, -3)
    array([3000, 3000, 3000])

    """
    if bins is not None:
        cells, cut = _binned(items, columns, bins, universe=universe, unknown=unknown)
        edges = None if cut.bins is None or cut.ends else (cut.bins.edges[0], cut.bins.edges[-1])
        beside = diagnosis(diagnostics, cells, bounds=edges)
        universe = Finite(list(cut.labels))
        numbers = HistogramQuestion(universe=universe, coded=True, cut=cut, method=method)
        return ask(numbers, cells, epsilon=epsilon, bits=bits, beside=beside)
    codes = codes_of(items, columns, unknown=unknown, universe=universe)
    if codes is not None:
        coded = HistogramQuestion(universe=labels_of(codes), coded=True, method=method)
        beside = diagnosis(diagnostics, codes)
        return ask(coded, codes, epsilon=epsilon, bits=bits, beside=beside)
    diagnosis(diagnostics, None)
    source, count = as_items(items, columns)
    question = HistogramQuestion(universe=universe, unknown=unknown, method=method)
    return run(question.plan(Facts(rows=count), epsilon), source, bits=bits)


@value
class HistogramQuestion:
    """The counts of all items of a public universe are asked."""

    universe: Any
    unknown: Any = None
    method: str = "auto"
    coded: bool = False
    """Whether rows hold the places 0, 1, … of the items in the universe."""
    cut: GroupKey | None = None
    """How a column of numbers is cut into the items: then rows hold the numbers."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose the noise and calibrate it."""
        exact, related = _as_epsilon(epsilon), facts.neighbors
        space = self.universe if self.coded else as_universe(self.universe)
        read = Finite(space.size) if self.coded else space
        require(
            space.size <= _MOST_ITEMS,
            "universe",
            space.size,
            expected="at most 2^26 items, one count each",
            remedy="group the items, or ask for the mode only",
        )
        unknown = None if self.coded else unknown_index(self.unknown, space)
        n = facts.rows if not facts.may_miss else None
        # every row is in one of the counts, which is then what the others leave of a public number
        follows = space.size - 1 if self.coded else unknown
        complete = follows is not None and n is not None and space.size > 1
        if self.cut is not None and not self.cut.complete:
            complete = False
        methods = histogram_methods(
            epsilon=exact, universe=space.size, complete=complete, neighbors=related
        )
        chosen = choose(methods, self.method)
        noise = _noise(chosen.name, exact, space.size - complete, related)

        def sums(noisy: Any) -> NoisySums:
            return NoisySums(
                law=noise.law(unit=Fraction(1)),
                integers=noisy[:, None],
                forms={None: ((Fraction(1), Fraction(0)),)},
                bounds={},
                joint=isinstance(noise, KNorm),
                statistics={"count": (None, "count")},
                labels=range(space.size) if space.options is None else space.options,
                rows=n,
            )

        def answer(items: Any, bits: BitSource) -> Measured:
            counts: Any
            if self.cut is not None:
                counts, _ = power_sums(items, GroupKeys(keys=(self.cut,)), (), (), (), missing=())
            else:
                counts = tally(items, read, unknown=unknown).dense(space.size)
            if not complete or follows is None or n is None:
                noisy = noise.apply(counts, bits)
                return Measured(value=noisy, sums=(sums(noisy),))
            noisy = noise.apply(np.delete(counts, follows), bits)
            whole = noisy.tolist()
            whole.insert(follows, n - sum(whole))
            zeros = np.zeros(len(whole), dtype=np.int64)
            value = add_exactly(np.array(whole, dtype=object), zeros)
            return Measured(value=value, sums=(replace(sums(noisy), rest=follows),))

        return ReleasePlan(
            claim=PureDP(exact, neighbors=related),
            steps=(noise.step(quantum=None) if isinstance(noise, KNorm) else noise.step(),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the universe of items", *(["the number of items"] if n is not None else [])),
            # the last count of complete ones has the noise of all others together
            noise=None if complete else noise.law(unit=Fraction(1)),
        )


def _binned(
    items: Any, columns: str | None, given: Any, *, universe: Any, unknown: Any
) -> tuple[Source, GroupKey]:
    """Return one column of numbers, and how it is cut into bins."""
    require(
        universe is None and unknown is None,
        "universe, unknown",
        (universe, unknown),
        expected="nothing beside bins",
        remedy="pass bins= for numbers, or universe= for items",
    )
    source = as_source(items, columns)
    one_column(Facts(rows=None, columns=source.columns))
    (name,) = source.columns
    kind = source.kinds[name] if isinstance(source, Dataset) else None
    require(
        kind is None or isinstance(kind, Number),
        "columns",
        name,
        expected="a column of numbers, which can be cut into bins",
        remedy="leave bins out: the column has its own groups",
    )
    ends = None if kind is None else kind.bounds
    cut = given if isinstance(given, Bins) else _edges(given, ends)
    inside = ends is not None and cut.edges[0] <= ends[0] and ends[1] <= cut.edges[-1]
    full = inside and isinstance(kind, Number) and kind.missing != "skip"
    return source, GroupKey(name=name, labels=cut.labels, bins=cut, ends=ends, complete=full)


def _edges(given: Any, ends: Bounds | None) -> Bins:
    """Return the bins of a list of edges, or so many of equal width between declared bounds."""
    if not isinstance(given, int):
        return bins_of(given)
    number = as_count(given, "bins", minimum=1)
    lower, upper = needed(ends, "bounds", "pass bins as a list of edges, or open with zd.open")
    require(number <= _MOST_ITEMS, "bins", number, "at most 2^26 bins", "pass fewer")
    return bins_of([lower + (upper - lower) * Fraction(i, number) for i in range(number + 1)])


def _noise(
    name: str, exact: Fraction, free: int, neighbors: Neighbors
) -> CountNoise | KNorm | PartitionNoise:
    """Return the mechanism on so many counts."""
    if name == "k-norm":
        return CountNoise.for_epsilon(epsilon=exact, dimension=free)
    if name == "k-norm-max":
        return KNorm.for_epsilon(epsilon=exact, norm=math.inf, dimension=free, sensitivity=1)
    return PartitionNoise.for_epsilon(
        epsilon=exact, cells=free, neighbors=neighbors, method="laplace"
    )


def _as_epsilon(value: Rational) -> Fraction:
    """Return ε, of which neither the value nor its inverse, a scale of noise, is beyond floats."""
    exact = as_positive(value, "epsilon")
    as_float(exact, "epsilon")
    as_float(1 / exact, "1/epsilon")
    return exact


def histogram_methods(
    *,
    epsilon: Rational,
    universe: int,
    complete: bool = False,
    neighbors: Neighbors = Neighbors.REPLACE,
) -> tuple[Method, ...]:
    """Return the methods that release counts, best first; `complete`: every item counts somewhere.

    Errors are expected absolute errors of a count.

    >>> [(m.name, round(m.error, 2)) for m in histogram_methods(epsilon=1, universe=2)]
    [('k-norm', 1.31), ('k-norm-max', 1.5), ('laplace', 1.92)]
    """
    exact, size = _as_epsilon(epsilon), as_count(universe, "universe", minimum=1)
    free = max(1, size - bool(complete))
    small = free <= _MOST_JOINT
    errors = {
        name: _noise(name, exact, free, neighbors).error()
        for name in ("k-norm", "laplace", "k-norm-max")
    }
    if neighbors is Neighbors.ADD_REMOVE:
        only = Method(
            name="laplace",
            error=errors["laplace"],
            spends="ε on all counts together, noise for a move of 1 in l1",
            why="a row that comes or goes moves one count",
        )
        return (only,)
    return ranked(
        Method(
            name="k-norm",
            error=errors["k-norm"] if small else math.inf,
            spends="ε on all counts together",
            why="no other K-norm noise covers the moves of two counts with less"
            if small
            else "for so many counts it gains nothing on Laplace noise",
        ),
        Method(
            name="laplace",
            error=errors["laplace"],
            spends="ε on all counts together, noise for a move of 2 in l1",
            why="independent noise for every count",
        ),
        Method(
            name="k-norm-max",
            error=errors["k-norm-max"] if small else math.inf,
            spends="ε on all counts together, noise for a move of 1 in l∞",
            why="its noise grows with the number of counts",
        ),
    )
