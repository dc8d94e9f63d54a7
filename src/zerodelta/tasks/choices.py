"""Release the best of several options (`select`) or the most frequent item (`mode`; C10.1, C5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.cells import LARGEST, number
from zerodelta.data.dataset import Dataset
from zerodelta.data.keys import KeyCounts, tally
from zerodelta.data.rows import Rows
from zerodelta.data.source import Sealed, Source
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_bounds, as_count, as_float, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.key_noise import FOR_COUNTS, KeyNoise, NoisyTop, gap_of, wish_for
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.mechanisms.selection import (
    PermuteAndFlip,
    gap_at,
    worst_gap,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_bool, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.public_inputs import as_universe, unknown_index
from zerodelta.spine.run import ask, run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.distributions import ask_of_items
from zerodelta.tasks.task import (
    EPSILON,
    ITEMS,
    METHOD,
    ROWS,
    Command,
    Forecast,
    Planner,
    Task,
    simple,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The most frequent item: selection on counts, or a test of its lead (theory C10.1, C5) --------

_FEW_ITEMS = 100
"""The largest universe for which asymmetric noise is not considered: up to it permute-and-flip errs
as little in close races and less in others."""


@debited
def mode(
    items: Any,
    columns: str | None = None,
    *,
    universe: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    expected_gap: Rational | None = None,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item of a public universe, like `statistics.mode`, but private.

    Use it if only the winner matters, for any size of the universe: it is never enumerated. For
    all counts see `histogram`.

    Parameters
    ----------
    items : data set, list, array, series, frame or Source
        What `zd.open` returns, or one item for each row, of any type; a number and a text that
        spells it are one item. A missing item is not counted, unless it is in the universe.
    columns : str, optional
        The column of a data set (a category, a boolean or a date) or a frame.
    universe : list or int
        All possible items, or N for the integers 0..N-1, N up to 2^53. Public; for a data set as
        declared, with "missing" and "other" where these are options.
    unknown : item
        The public item as which items outside the universe count; by default they are not counted.
    method : str
        "permute-and-flip" on the counts, "asymmetric" (for more than 100 items: noise whose upper
        tail falls faster, because many items could win by it), "stability" (the mode if its lead is
        clear, else a uniform item), or "auto", the one with the least predicted error.
    expected_gap : number, optional
        The approximate lead of the mode over all other items, known without the rows: methods are
        compared, and the asymmetric one is tuned, at that lead instead of the worst one.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.1; "asymmetric": U, "stability": C5), proven.
    **Neighbors**: replace-one: one count falls by 1, another rises by 1; or what the data set says.
    Under add-remove all counts change in one direction, which needs half the noise.
    **Error**: the largest expected gap between the mode's count and that of the released item.

    Examples
    --------
    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'
    >>> import zerodelta as zd
    >>> drinks = zd.category(["tea", "coffee"], other=True)
    >>> people = zd.open(["tea", "coffee", "tea", None] * 99, columns={"0": drinks})
    >>> mode(people, "0", epsilon=1).value
    'tea'

    """
    return ask_of_items(
        partial(ModeQuestion, method=method, expected_gap=expected_gap),
        items,
        columns,
        universe=universe,
        unknown=unknown,
        epsilon=epsilon,
        diagnostics=diagnostics,
    )


@value
class ModeQuestion:
    """Question for the most frequent item of a public universe."""

    universe: Any
    unknown: Any = None
    method: str = "auto"
    coded: bool = False
    """Whether rows hold the places 0, 1, … of the items in the universe."""
    expected_gap: Rational | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose and calibrate permute-and-flip, asymmetric noise, or a test for a clear lead."""
        exact, related = as_usable_epsilon(epsilon), facts.neighbors
        space = self.universe if self.coded else as_universe(self.universe)
        unknown = None if self.coded else unknown_index(self.unknown, space)
        codes = Finite(space.size) if self.coded else space
        monotone = related is Neighbors.ADD_REMOVE  # a row adds 1 to one count, and nothing else
        methods = mode_methods(
            epsilon=exact,
            n=facts.planned_rows,
            universe=space.size,
            monotone=monotone,
            expected_gap=self.expected_gap,
        )
        chosen = choose(methods, self.method)
        mechanism: ClearLead | PermuteAndFlip | NoisyTop
        if chosen.name == "stability":
            mechanism = ClearLead.for_epsilon(epsilon=exact, items=space.size, neighbors=related)
        elif chosen.name == "asymmetric":
            noise = _noise(exact, space.size, self.expected_gap)
            mechanism = NoisyTop(noise=noise, size=space.size, k=1)
        else:
            mechanism = PermuteAndFlip.for_epsilon(
                epsilon=exact, sensitivity=1, monotone=monotone, neighbors=related
            )

        def answer(items: Any, bits: BitSource) -> Any:
            """Return the option chosen from the counts of all options."""
            counted = tally(items, codes, unknown=unknown)
            if isinstance(mechanism, ClearLead):
                return space.element(mechanism.apply(counted, bits))
            if isinstance(mechanism, NoisyTop):
                ((winner, _),) = mechanism.apply(counted.indices, counted.counts, bits)
                return space.element(winner)
            levels, members = _levels(counted, space)
            winner, place = mechanism.select_member(levels, members, bits)
            return space.element(_member(counted, int(levels[winner]), place))

        return ReleasePlan(
            claim=PureDP(exact, neighbors=related),
            steps=(
                mechanism.noise.step(space.size)
                if isinstance(mechanism, NoisyTop)
                else mechanism.step(),
            ),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the universe of items",),
        )


def mode_methods(
    *,
    epsilon: Rational,
    n: int,
    universe: int,
    monotone: bool = False,
    expected_gap: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods that release a mode, best first; `monotone` means add-remove.

    The error is the largest expected gap between the mode's count and that of the released item, or
    the expected gap if the mode is ahead by `expected_gap`. For the stability test the worst case
    is two items with half of the rows each, because a uniform item hardly occurs in the data.

    >>> [method.name for method in mode_methods(epsilon=1, n=1000, universe=10)]
    ['permute-and-flip', 'stability']
    """
    exact, size = as_usable_epsilon(epsilon), as_count(universe, "universe", minimum=1)
    rows, scale = as_count(n, "n"), (1 if monotone else 2) / exact
    gap = None if expected_gap is None else as_positive(expected_gap, "expected_gap")

    lost = (
        worst_gap(size, scale)
        if gap is None
        else gap_at(size, scale, as_float(gap, "expected_gap"))
    )
    flip = Method(
        name="permute-and-flip",
        error=min(float(rows), lost),
        spends="ε on one choice",
        why="close races cost little: a wrong item is nearly as frequent",
    )
    stability = Method(
        name="stability",
        error=_stability_error(exact, rows, size),
        spends="ε on one test",
        why="a close race is lost to a uniform item of the universe",
    )
    if monotone or size <= _FEW_ITEMS:
        return ranked(flip, stability)
    asymmetric = Method(
        name="asymmetric",
        error=min(float(rows), gap_of(_noise(exact, size, gap), size - 1, gap)),
        spends="ε on all counts together",
        why="many items could win by noise, which falls faster upwards than downwards",
    )
    return ranked(flip, asymmetric, stability)


def _noise(epsilon: Fraction, size: int, expected_gap: Rational | None) -> KeyNoise:
    """Return the noise of the asymmetric method, under replace-one."""
    log_keys = math.log(size)
    wish = FOR_COUNTS if expected_gap is None else wish_for(log_keys, epsilon, expected_gap)
    return KeyNoise.for_epsilon(epsilon=epsilon, log_keys=log_keys, wish=wish)


@lru_cache(maxsize=64)
def _stability_error(epsilon: Fraction, rows: int, size: int) -> float:
    """Return the largest expected gap of a lead test that may fail, over leads of two items.

    A failed test publishes the second item with probability 1/N, and an item that does not occur
    with probability 1 - 2/N.
    """
    if size == 1:
        return 0.0
    test, worst = ClearLead.for_epsilon(epsilon=epsilon, items=size), 0.0
    for gap in sorted({*range(min(rows, 64) + 1), *np.geomspace(1, max(rows, 1), 64).astype(int)}):
        failed = test.fails(int(gap))
        if failed * rows <= worst:  # no gap exceeds the rows, and larger leads fail more rarely
            break
        lost = gap / size + (1 - 2 / size) * (rows + gap) / 2
        worst = max(worst, failed * lost)
    return float(worst)


def _levels(counted: KeyCounts, space: Finite) -> tuple[Any, Any]:
    """Return the distinct counts, 0 included, and the number of items with each count."""
    levels, members = np.unique(counted.counts, return_counts=True)
    unseen = space.size - len(counted.indices)
    if unseen:
        levels, members = np.append(levels, 0), np.append(members, unseen)
    return levels.astype(np.int64), members.astype(np.int64)


def _member(counted: KeyCounts, level: int, place: int) -> int:
    """Return the item at `place` among those with this count, in the order of the universe."""
    if level > 0:
        return int(counted.indices[np.flatnonzero(counted.counts == level)[place]])
    # for each item that occurs, the number of earlier items that do not occur
    unseen_before = counted.indices - np.arange(len(counted.indices))
    return place + int(np.searchsorted(unseen_before, place, side="right"))


_STEPS = 1 << 20
_LIMIT, _TINY = Fraction(LARGEST), 1e-300
_INTEGERS = (bool, int, np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"]))
MONOTONE = "between neighboring datasets all scores move in the same direction"
"""The caller's assertion behind ``monotone=True``."""
SENSITIVITY = "every score has at most the stated sensitivity between neighboring datasets"
"""The caller's assertion behind stated scores."""


@debited
def select(
    scores: Any,
    columns: Sequence[str] | None = None,
    *,
    sensitivity: Rational | None = None,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    monotone: bool = False,
    missing: Any = DEFAULT_MISSING,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the option with (nearly) the largest score, like `np.argmax`, but private.

    Use it for any choice among listed options that are scored on the data; for the most frequent
    item see `mode`, for the best of several models `select_model`.

    Parameters
    ----------
    scores : mapping, sequence, data set, table, frame or Source
        {option: score}, or a sequence of scores, with `sensitivity`; or a data set, or with
        `bounds` a table of rows, whose columns are the options: an option's score is then the sum
        of its column.
    columns : list of str, optional
        Which columns of a data set or a frame.
    sensitivity : number
        By how much one row can change a score.
    bounds : (lower, upper)
        The bounds to which the cells of a table are clipped. For a data set, by default as
        declared, if they are the same for all columns.
    monotone : bool
        Whether between any two neighbors all stated scores change in the same direction, which
        needs half the noise.
    method : str
        "permute-and-flip", or "auto", which is the same.

    Returns
    -------
    Release
        Its value is the name of the option, or its position.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.1). Proven for a table of rows: each value is clipped and
    rounded by itself. For stated scores `sensitivity` and `monotone` are caller-asserted.
    **Neighbors**: replace-one (or whatever `sensitivity` was stated for), or what the data set
    says. Under add-remove, bounds on one side of 0 need half the noise of others as far from it.
    **Public**: the options, `sensitivity` or `bounds`, the number of rows. A score beyond the
    largest float, or infinite, counts as that float, and a score that is not a number as 0. No
    score raises an error.
    **Error**: the expected gap between the best score and that of the released option, for the
    worst scores (all others tied); usually much less.

    Examples
    --------
    >>> select({"tea": 90, "coffee": 10, "milk": 3}, sensitivity=1, epsilon=1).value
    'tea'
    >>> select(np.array([[0.0, 1.0], [0.2, 0.9]] * 500), bounds=(0, 1), epsilon=1).value
    1

    """
    table = as_source(scores, columns, missing=missing) if isinstance(scores, Dataset) else None
    if table is not None and sensitivity is None:
        bounds = _common_bounds(table, bounds)
    public: dict[str, Any] = {"sensitivity": sensitivity, "bounds": bounds, "monotone": monotone}
    require(
        (sensitivity is None) != (bounds is None),
        "sensitivity, bounds",
        (sensitivity, bounds),
        expected="exactly one public input",
        remedy="pass sensitivity= for scores, or bounds=(lower, upper) for a table of rows",
    )
    if bounds is None:
        as_diagnosis(diagnostics, None)
        stated = SelectQuestion(options=listed_options(scores), method=method, **public)
        return run(stated.plan(Facts(rows=None), epsilon), Sealed(scores))
    source = as_source(scores, columns, missing=missing) if table is None else table
    numbered = isinstance(scores, (np.ndarray, list, tuple))
    options: Sequence[Any] = range(len(source.columns)) if numbered else source.columns
    question = SelectQuestion(options=options, method=method, **public)
    diagnosis = as_diagnosis(diagnostics, source, bounds=bounds)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


def _common_bounds(table: Source, bounds: Any) -> Any:
    """Return the common bounds of all columns; different ones are refused, as sums are compared."""
    declared = table.declared_bounds if bounds is None else bounds
    if bounds is not None or declared is None or len(table.columns) == 1:
        return declared
    lower, upper = (set(end) for end in declared)
    require(
        len(lower) == len(upper) == 1,
        "bounds",
        expected="columns that were declared with the same bounds",
        remedy="pass bounds=(lower, upper) for all columns",
    )
    return lower.pop(), upper.pop()


@value
class SelectQuestion:
    """Question for the option with the largest score, stated or the sum of a bounded column."""

    options: Sequence[Any]
    sensitivity: Rational | None = None
    bounds: tuple[Rational, Rational] | None = None
    monotone: bool = False
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Calibrate permute-and-flip on the scores of options, or on sums of a table's columns."""
        exact, count, table = as_usable_epsilon(epsilon), len(self.options), self.bounds is not None
        if table:
            lower, upper = as_bounds(self.bounds)
            self._check_table()
            columns = _Columns.of(lower, upper, count=count)
            sensitivity, monotone = columns.sensitivity(facts)  # in quanta
            real_sensitivity = sensitivity * columns.quantum
        else:
            stated_sensitivity = 0 if self.sensitivity is None else self.sensitivity
            sensitivity = real_sensitivity = as_positive(stated_sensitivity, "sensitivity")
            as_float(real_sensitivity, "sensitivity")
            monotone = as_bool(self.monotone, "monotone")
        methods = select_methods(
            epsilon=exact, options=count, sensitivity=real_sensitivity, monotone=monotone
        )
        chosen = choose(methods, self.method)
        mechanism = PermuteAndFlip.for_epsilon(
            epsilon=exact, sensitivity=sensitivity, monotone=monotone, neighbors=facts.neighbors
        )
        step, stated = mechanism.step(), (SENSITIVITY, *([MONOTONE] if self.monotone else []))

        def answer(scores: Any, bits: BitSource) -> Any:
            """Return the option chosen from its exact score, or from sums of the columns."""
            if table:
                exact_scores: Any = columns.totals(scores, may_miss=facts.may_miss)
            else:
                listed = scores.values() if isinstance(scores, Mapping) else scores
                exact_scores = [exact_score(score) for score in listed]
            return self.options[mechanism.select(exact_scores, bits)]

        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=(step if table else replace(step, status=Status.ASSERTED),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the options", "how far one row can move a score"),
            assumed=() if table else stated,
            bare_rows=table,
        )

    def _check_table(self) -> None:
        """Refuse `monotone`, and a table with fewer than two columns to choose from."""
        expected = "False for rows, because replacing a row moves scores up and down"
        monotone = self.monotone
        require(not monotone, "monotone", monotone, expected=expected, remedy="leave it out")
        require(
            len(self.options) >= 2,
            "columns of rows",
            len(self.options),
            expected="a table with a column for each of at least two options",
            remedy="pass rows of all options, or sensitivity= for a list of scores",
        )


@value
class _Columns:
    """Sums of columns in integer quanta, as the scores of options.

    Where no cell can be missing, quanta are counted from the middle of the bounds: that shifts all
    sums by the same number. Where a cell may be missing, which adds 0, they are counted from 0.
    """

    lattice: FixedPoint
    offset: int
    quantum: Fraction

    @staticmethod
    def of(lower: Fraction, upper: Fraction, *, count: int) -> _Columns:
        """Return the lattice between the bounds, and the number of quanta of its middle."""
        quantum = (upper - lower) / (2 * _STEPS)
        lattice = FixedPoint.box(dimension=count, lower=lower, upper=upper, steps=_STEPS)
        offset = round((lower + upper) / (2 * quantum))
        return _Columns(lattice=lattice, offset=offset, quantum=quantum)

    def sensitivity(self, facts: Facts) -> tuple[Fraction, bool]:
        """Return by how many quanta a row changes a score, and if it changes all in one direction.

        Under add-remove, bounds on one side of 0 make all changes have one sign.
        """
        low, high = self.offset - _STEPS, self.offset + _STEPS
        if facts.neighbors is Neighbors.ADD_REMOVE:
            return Fraction(max(abs(low), abs(high))), low >= 0 or high <= 0
        if facts.may_miss:
            return Fraction(max(high, 0) - min(low, 0)), False
        return Fraction(2 * _STEPS), False

    def totals(self, rows: Rows, *, may_miss: bool) -> IntegerArray:
        """Return the sum of each column, in quanta."""
        count = self.lattice.dimension
        total = rows.sum(list(range(count)), self.lattice)
        if not may_miss:
            return total
        ones = FixedPoint.box(dimension=count, lower=-1, upper=1, steps=1)
        present = rows.sum(lambda block: (~np.isnan(block)).astype(np.float64), ones)
        from_zero: IntegerArray = total.astype(object) + self.offset * present.astype(object)
        return from_zero


def select_methods(
    *, epsilon: Rational, options: int, sensitivity: Rational = 1, monotone: bool = False
) -> tuple[Method, ...]:
    """Return the only method that chooses one of several options.

    Its error is the largest expected gap to the best score (`worst_gap`).

    >>> [method.name for method in select_methods(epsilon=1, options=10)]
    ['permute-and-flip']
    """
    exact, change = as_usable_epsilon(epsilon), as_positive(sensitivity, "sensitivity")
    scale = change * (1 if monotone else 2) / exact
    only = Method(
        name="permute-and-flip",
        error=worst_gap(options, scale),
        spends="ε on one choice",
        why="its gap is stochastically smaller than the exponential mechanism's at equal ε",
    )
    return (only,)


def listed_options(scores: Any) -> Sequence[Any]:
    """Return the options that have stated scores: the names of a mapping, or positions.

    A table is refused by its shape, or by the type of its first entry: each of its rows would count
    as one non-numeric score, and the result would be random.
    """
    numpy = isinstance(scores, np.ndarray) and scores.ndim > 0
    sequence = isinstance(scores, Sequence) and not isinstance(scores, (str, bytes))
    require(
        numpy or sequence or isinstance(scores, Mapping),
        "scores",
        type(scores),
        expected="a sequence of scores, or a mapping {option: score}",
        remedy="pass a list; for a table of rows pass bounds=(lower, upper)",
    )
    plain = numpy and scores.ndim == 1 and scores.dtype != object  # numbers, by the array's type
    listed = scores.values() if isinstance(scores, Mapping) else scores
    first = None if plain else next(iter(listed), None)
    require(
        not issubclass(type(first), (list, tuple, dict, np.ndarray)),  # runs no code of the score
        "scores",
        f"{type(scores).__name__} of {type(first).__name__}",
        expected="one number for each option",
        remedy="add up the rows of each option first, or pass the table of rows with "
        "bounds=(lower, upper) instead of sensitivity=",
    )
    return list(scores) if isinstance(scores, Mapping) else range(len(scores))


def exact_score(score: Any) -> Fraction:
    """Return a score exactly, clipped to the range of floats; 0 if it is not a number.

    Integers, fractions and decimals are not rounded, because a rounded score could change by more
    than the sensitivity. Types are compared by identity, so that no code of a score runs.
    """
    near = number(score)
    if near != near:
        return Fraction(0)
    exact = Fraction(near)
    if any(type(score) is kind for kind in _INTEGERS):
        exact = Fraction(int(score))
    elif type(score) is Fraction or (type(score) is Decimal and _TINY < abs(near) < LARGEST):
        exact = Fraction(score)
    elif type(score) is np.longdouble and abs(near) < LARGEST:
        exact = Fraction(*score.as_integer_ratio())
    return max(-_LIMIT, min(exact, _LIMIT))


# -- What the tasks are, for advice and the command line ------------------------------------------

TASKS: dict[str, Task] = {
    "mode": Task(
        verb=mode,
        page="choices",
        error="rows at most between the most frequent option and this one",
        forecast=Forecast(
            unit="largest expected gap between the mode's count and the released item's",
            call="zd.mode(items, universe={universe}, epsilon={epsilon})",
            methods=lambda numbers: mode_methods(
                **{**numbers, "universe": as_universe(numbers["universe"]).size}
            ),
            needs={**ROWS, "universe": "universe=100"},
            reliable="for the counts that are hardest to tell apart; usually much less",
            blind=lambda numbers: numbers["n"],
            typical={"universe": 100},
        ),
        command=Command(
            columns="one",
            options=METHOD,
            publishes="one option, without its count",
            example="mode people.csv city",
        ),
        planner=Planner(
            title="Most frequent item",
            fields=("n", "universe"),
            people=ITEMS,
            python='people, "item"',
            shell="item",
        ),
    ),
    "select": Task(
        verb=select,
        page="choices",
        error="at most between the largest sum and this one",
        forecast=Forecast(
            unit="largest expected gap between the best score and the chosen one's",
            call="zd.select(scores, sensitivity={sensitivity}, epsilon={epsilon})",
            methods=simple(select_methods),
            needs={"options": "options=10", "epsilon": EPSILON},
            allows={"sensitivity": 1, "monotone": False},
            typical={"options": 10},
            reliable="for the scores that are hardest to tell apart; usually much less",
        ),
        command=Command(
            columns="several",
            options=METHOD,
            publishes="the name of one column",
            example="select votes.csv anna bob carla",
        ),
        planner=Planner(
            title="The best option, by scores",
            fields=("options",),
            people="scores = [0] * {options}  # yours: one row changes each by at most 1\n",
            python="scores, sensitivity=1",
        ),
    ),
}
