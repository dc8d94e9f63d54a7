"""Choosing the best of several options: permute-and-flip, or the exponential mechanism (C10.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.cells import LARGEST, number
from zerodelta.data.dataset import Dataset
from zerodelta.data.given import Given
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_float, as_positive
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.selection import SELECTIONS, selection_methods, worst_gap
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_flag, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_bounds, as_source, bounds_of
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask, run
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_STEPS = 1 << 20
_LIMIT, _TINY = Fraction(LARGEST), 1e-300
_WHOLE = (bool, int, np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"]))
MONOTONE = "between neighboring datasets all scores move in the same direction"
"""The premise of ``monotone=True``."""
SENSITIVITY = "every score has at most the stated sensitivity between neighboring datasets"
"""The premise of stated scores."""


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
    bits: BitSource | None = None,
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
        How far one row can move a score.
    bounds : (lower, upper)
        Of the cells of a table; they are clipped to them. For a data set, by default as declared,
        if that is the same for all columns.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    monotone : bool
        Whether between any two neighbors all stated scores move in the same direction: half the
        noise.
    missing : "skip", None or number
        What a missing cell of a table counts as: "skip" (0, it adds nothing; the default for
        frames), None (none is missing; if one is it counts as the middle of the bounds; the default
        for arrays) or a number. A data set has it declared.
    method : str
        "permute-and-flip", "exponential", or "auto", the one with the least predicted error.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    largest float, an infinity too, counts as that float, and what is no number as 0. Nothing
    raises.
    **Error**: the expected gap between the best score and the released option's, for the scores for
    which it is largest (all others tied); usually much less.

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
        diagnosis(diagnostics, None)
        stated = SelectQuestion(options=listed_options(scores), method=method, **public)
        return run(stated.plan(Facts(rows=None), epsilon), Given(scores), bits=bits)
    source = as_source(scores, columns, missing=missing) if table is None else table
    numbered = isinstance(scores, (np.ndarray, list, tuple))
    options: Sequence[Any] = range(len(source.columns)) if numbered else source.columns
    question = SelectQuestion(options=options, method=method, **public)
    beside = diagnosis(diagnostics, source, bounds=bounds)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


def _common_bounds(table: Source, bounds: Any) -> Any:
    """Return the bounds that all columns share: the scores of options are compared."""
    declared = bounds_of(table, bounds)
    if bounds is not None or declared is None or len(table.columns) == 1:
        return declared
    lower, upper = (set(end) for end in declared)
    require(
        len(lower) == len(upper) == 1,
        "bounds",
        expected="columns that were declared with the same bounds",
        remedy="pass bounds=(lower, upper) for all of them",
    )
    return lower.pop(), upper.pop()


@value
class SelectQuestion:
    """The option with the largest score is asked: a stated one, or the sum of a bounded column."""

    options: Sequence[Any]
    sensitivity: Rational | None = None
    bounds: tuple[Rational, Rational] | None = None
    monotone: bool = False
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Calibrate the selection; `facts` are those of the table, if there is one."""
        exact, count, table = as_usable_epsilon(epsilon), len(self.options), self.bounds is not None
        if table:
            lower, upper = as_bounds(self.bounds)
            self._check_table()
            columns = _Columns.of(lower, upper, count=count)
            moved, monotone = columns.moves(facts)
            width = moved * columns.quantum
        else:
            given = 0 if self.sensitivity is None else self.sensitivity
            moved = width = as_positive(given, "sensitivity")
            as_float(width, "sensitivity")
            monotone = as_flag(self.monotone, "monotone")
        methods = select_methods(epsilon=exact, options=count, sensitivity=width, monotone=monotone)
        chosen = choose(methods, self.method)
        mechanism = SELECTIONS[chosen.name].for_epsilon(
            epsilon=exact, sensitivity=moved, monotone=monotone, neighbors=facts.neighbors
        )
        step, stated = mechanism.step(), (SENSITIVITY, *([MONOTONE] if self.monotone else []))

        def answer(scores: Any, bits: BitSource) -> Any:
            if table:
                found: Any = columns.totals(scores, may_miss=facts.may_miss)
            else:
                listed = scores.values() if isinstance(scores, Mapping) else scores
                found = [exact_score(score) for score in listed]
            return self.options[mechanism.select(found, bits)]

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
        expected = "False for rows: replacing one moves scores up and down"
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
    """Sums of columns in whole quanta: those of a lattice around the middle, moved to start at 0.

    They are moved only where a cell may be missing, which adds nothing.
    """

    lattice: FixedPoint
    offset: int
    quantum: Fraction

    @staticmethod
    def of(lower: Fraction, upper: Fraction, *, count: int) -> _Columns:
        quantum = (upper - lower) / (2 * _STEPS)
        lattice = FixedPoint.box(dimension=count, lower=lower, upper=upper, steps=_STEPS)
        offset = round((lower + upper) / (2 * quantum))
        return _Columns(lattice=lattice, offset=offset, quantum=quantum)

    def moves(self, facts: Facts) -> tuple[Fraction, bool]:
        """Return by how much one row moves a score, and whether it moves all of them one way."""
        low, high = self.offset - _STEPS, self.offset + _STEPS
        if facts.neighbors is Neighbors.ADD_REMOVE:
            return Fraction(max(abs(low), abs(high))), low >= 0 or high <= 0
        if facts.may_miss:
            return Fraction(max(high, 0) - min(low, 0)), False
        return Fraction(2 * _STEPS), False

    def totals(self, rows: Rows, *, may_miss: bool) -> IntegerArray:
        """Return the sum of each column."""
        count = self.lattice.dimension
        total = rows.sum(list(range(count)), self.lattice)
        if not may_miss:
            return total
        ones = FixedPoint.box(dimension=count, lower=-1, upper=1, steps=1)
        present = rows.sum(lambda block: (~np.isnan(block)).astype(np.float64), ones)
        moved: IntegerArray = total.astype(object) + self.offset * present.astype(object)
        return moved


def select_methods(
    *, epsilon: Rational, options: int, sensitivity: Rational = 1, monotone: bool = False
) -> tuple[Method, ...]:
    """Return the methods that choose one of several options, best first.

    Errors are the largest expected gaps to the best score (`worst_gap`).

    >>> [method.name for method in select_methods(epsilon=1, options=10)]
    ['permute-and-flip', 'exponential']
    """
    exact, moved = as_usable_epsilon(epsilon), as_positive(sensitivity, "sensitivity")
    scale = moved * (1 if monotone else 2) / exact
    methods = selection_methods(
        lambda name: worst_gap(options, scale, method=name),
        "its gap is stochastically the smaller at equal ε",
        "never better; its bounded range pays only inside a composition",
    )
    return ranked(*methods)


def listed_options(scores: Any) -> Sequence[Any]:
    """Return the options that have stated scores: the names of a mapping, or positions.

    A table is refused by its shape, or the type of its first entry: each of its rows would count
    as one score that is no number, and the answer would be random.
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
    told = numpy and scores.ndim == 1 and scores.dtype != object  # by the array: nothing is read
    listed = scores.values() if isinstance(scores, Mapping) else scores
    first = None if told else next(iter(listed), None)
    require(
        not issubclass(type(first), (list, tuple, dict, np.ndarray)),  # asks the score nothing
        "scores",
        f"{type(scores).__name__} of {type(first).__name__}",
        expected="one number for each option",
        remedy="add up the rows of each option first, or pass the table of rows with "
        "bounds=(lower, upper) instead of sensitivity=",
    )
    return list(scores) if isinstance(scores, Mapping) else range(len(scores))


def exact_score(score: Any) -> Fraction:
    """Return a score exactly, clipped to the range of floats; 0 if it is no number.

    Integers, fractions and decimals are not rounded: a rounded score could move by more than the
    sensitivity. Types are compared by identity, so that no code of a score runs.
    """
    near = number(score)
    if near != near:
        return Fraction(0)
    exact = Fraction(near)
    if any(type(score) is kind for kind in _WHOLE):
        exact = Fraction(int(score))
    elif type(score) is Fraction or (type(score) is Decimal and _TINY < abs(near) < LARGEST):
        exact = Fraction(score)
    elif type(score) is np.longdouble and abs(near) < LARGEST:
        exact = Fraction(*score.as_integer_ratio())
    return max(-_LIMIT, min(exact, _LIMIT))
