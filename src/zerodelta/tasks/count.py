"""How many rows there are, or have a value: a count with noise, or none where it is public."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise_law import NoiseLaw, NoisySums, Statistic
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, one_column
from zerodelta.spine.release_plan import Measured, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.grouped_data import By
from zerodelta.tasks.table import table_of
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def count(
    rows: Any,
    columns: str | None = None,
    *,
    by: By = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release how many rows there are, or how many have a value in one column.

    Use it for groups, for a filtered data set, for units, and where rows may be added or removed.
    Where the number is public (all rows, under replace-one) it is returned as it is, at ε = 0.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or rows.
    columns : str, optional
        The column whose present cells are counted; by default rows are, whatever is missing.
    by : str, list of str, or dict
        As for `table`: then the value is a table with a line for each group.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        As for `mean`; "skip" counts the present cells of an array of one column.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is an integer, unbiased; it may be negative. By group it is a table, as for
        `zd.table`, of counts that are not negative.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory P1), proven; 0 where the number is public.
    **Neighbors**: replace-one or what the data set says; a filtered count has noise of scale 1/ε.
    **Error**: the expected absolute error, 1/sinh(ε) for one row more or less: about 1/ε.

    Examples
    --------
    >>> import numpy as np
    >>> import zerodelta as zd
    >>> table = np.zeros(100_000, dtype=[("age", np.float64)])
    >>> table["age"] = np.arange(100_000) % 100
    >>> people = zd.open(table, columns={"age": zd.number(0, 120)})
    >>> round(count(people.where("age < 18"), epsilon=1).value, -3)
    18000

    """
    if by is not None:
        require(
            columns is None or isinstance(rows, Dataset),
            "columns",
            columns,
            expected="nothing: rows of a frame are counted by group",
            remedy="open the data with zd.open(…) to count the values of a column",
        )
        one = columns is None or isinstance(columns, str)
        require(one, "columns", columns, "the name of one column", "pass one, or none for rows")
        return table_of(
            rows,
            by=by,
            of={} if columns is None else {columns: ("count",)},
            epsilon=epsilon,
            missing=missing,
            diagnostics=diagnostics,
            bits=bits,
        )
    source = as_source(rows, columns, missing=missing, texts=True)
    beside = diagnosis(diagnostics, source)
    if columns is None and isinstance(source, Dataset):
        source = source.row_itself
    question = CountQuestion(rows_only=columns is None and missing is DEFAULT_MISSING)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class CountQuestion:
    """The number of rows is asked, or of present cells of one column."""

    rows_only: bool = False

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate the noise; none where the number is public."""
        exact = as_usable_epsilon(epsilon)
        some_missing = facts.drops if self.rows_only else facts.may_miss
        if facts.rows is not None and not some_missing:
            return _public(facts.rows)
        one_column(facts)
        noise = PartitionNoise.for_epsilon(epsilon=exact, cells=1, neighbors=facts.neighbors)
        error = noise.error()

        def answer(rows: Rows, bits: BitSource) -> Measured:
            counts = rows.group_sums((), (), 0, None)
            noisy = noise.apply(counts[:, 1], bits)
            sums = _sums(noise.law(unit=Fraction(1)), noisy[:, None], (Fraction(1), Fraction(0)))
            return Measured(value=int(noisy[0]), sums=(sums,))

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=error,
            methods=(Method(name="laplace", error=error, spends="ε on one count", why="optimal"),),
            noise=noise.law(unit=Fraction(1)),
        )


def _public(rows: int) -> ReleasePlan[Rows]:
    """Return the plan that publishes what is public already."""
    none = NoiseLaw(family="geometric", scale=Fraction(1), unit=Fraction(1))
    sums = _sums(none, np.zeros((1, 1), dtype=np.int64), (Fraction(0), Fraction(rows)))
    return ReleasePlan(
        claim=PureDP(0),
        steps=(Step(theorem="public"),),
        answer=lambda _rows, _bits: Measured(value=rows, sums=(sums,)),
        error=0.0,
        public=("the number of rows",),
    )


def _sums(law: NoiseLaw, noisy: IntegerArray, form: tuple[Fraction, Fraction]) -> NoisySums:
    """Return what intervals are made of."""
    counted: dict[str, tuple[str | None, Statistic]] = {"count": (None, "count")}
    return NoisySums(law=law, integers=noisy, forms={None: (form,)}, bounds={}, statistics=counted)
