"""Synthetic rows with the tables of the real ones: noisy tables, a fit, whole rows (theory C7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.codes import given_rows, row_writer
from zerodelta.tables.distribution import Answers
from zerodelta.tables.domain import (
    MOST_CELLS,
    Domain,
    TableWorkload,
    as_domain,
    as_workload,
    table_domain,
)
from zerodelta.tables.forecast import whole_rows_error
from zerodelta.tables.rounding import whole_rows
from zerodelta.tables.table_methods import tables_plan
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MOST_ROWS = 1 << 32


@debited
def synthesize(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    domain: Any = None,
    epsilon: Rational,
    size: int | None = None,
    workload: Any = None,
    unknown: Any = None,
    method: str = "auto",
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release synthetic rows whose tables resemble those of the rows.

    Use it where a program expects a table of rows; for the frequencies themselves see
    `answer_queries`, which is as private and a little more accurate.

    Parameters
    ----------
    rows : data set, array, list of rows, data frame or Source
        What `zd.open` returns, or one row for each person.
    columns : sequence of str, optional
        The columns of a data set: categories, booleans and dates; by default all.
    domain : mapping
        The public categories of each column, as in `answer_queries`; at most 2^24 combinations.
    epsilon : int, float, Fraction or str
        The privacy parameter.
    size : int, optional
        How many rows to make; by default n, or the public number to plan with where n is private.
    workload, unknown, method : optional
        Which tables are measured, and how: as in `answer_queries`.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used, clipped to the bounds, and unreadable.
    bits : BitSource, optional
        Random bits for tests, which brand the certificate as not private.

    Returns
    -------
    Release
        Its value has the columns of the domain, as the caller's kind of data frame, as an array for
        an array, or for a data set as a dictionary of columns (`pandas.DataFrame(value)`). A
        distribution of largest entropy is fitted to the measured tables, and rounded to whole rows
        without sampling noise.

    Notes
    -----
    **Guarantee**: pure ε-DP (that of the noisy tables; the rest is post-processing), proven.
    **Neighbors**: replace-one (n is public), or what the data set says: one unit, or add-remove
    (one row more or less), which needs half the noise of "laplace".
    **Error**: the expected absolute error of a frequency in the tables of the workload, averaged
    over all cells, and half a row for rounding to `size` rows. What no table of the workload shows,
    such as three columns together for pairs (the default), is as independent as the tables allow.

    Examples
    --------
    >>> people = np.array([["f", "yes"], ["m", "no"]] * 5000)
    >>> release = synthesize(people, domain={0: ["f", "m"], 1: ["no", "yes"]}, epsilon=1, size=4)
    >>> release.value.tolist()
    [['f', 'yes'], ['f', 'yes'], ['m', 'no'], ['m', 'no']]

    """
    chosen, space = table_domain(rows, columns, domain, unknown=unknown)
    question = SynthesisQuestion(
        domain=space,
        workload=as_workload(workload, space),
        size=size,
        unknown=unknown,
        method=method,
        write=row_writer(chosen, space),
        declared=isinstance(rows, Dataset),
    )
    given, facts = given_rows(chosen, space)
    beside = diagnosis(diagnostics, chosen if isinstance(chosen, Dataset) else None)
    return ask(question, given, epsilon=epsilon, bits=bits, beside=beside, facts=facts)


@value
class SynthesisQuestion:
    """Synthetic rows are asked of rows with public categories; `write` makes them of codes."""

    domain: Domain
    workload: TableWorkload
    size: int | None = None
    unknown: Any = None
    method: str = "auto"
    write: Callable[[Integers], Any] = np.asarray
    declared: bool = False
    """Whether the rows are those of a data set."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose the method, and calibrate its noise."""
        domain, workload = self.domain, self.workload
        require(
            domain.cells <= MOST_CELLS,
            "domain",
            f"{domain.cells} combinations of categories",
            expected="at most 2^24: the fitted distribution over all of them is held in memory",
            remedy="leave out columns, group categories, or release tables with answer_queries",
        )
        size = as_count(facts.planned_rows if self.size is None else self.size, "size", minimum=1)
        fits = self.size is None or size <= _MOST_ROWS
        require(fits, "size", size, "at most 2^32 rows", "pass size=10_000, say")

        def value(answers: Answers) -> Any:
            assert answers.fitted is not None
            return self.write(whole_rows(answers.fitted.weights, domain, workload, size))

        return tables_plan(
            domain,
            workload,
            facts=facts,
            epsilon=epsilon,
            unknown=self.unknown,
            method=self.method,
            declared=self.declared,
            whole=True,
            value=value,
            extra_error=whole_rows_error(domain, workload, size),
        )


def synthesis_methods(
    *, epsilon: Rational, n: int, domain: Any, workload: Any = None, size: int | None = None
) -> tuple[Method, ...]:
    """Return the methods that make `size` rows (default: n), best first, by public numbers.

    >>> [m.name for m in synthesis_methods(epsilon=1, n=20_000, domain={"a": 2, "b": 3})[:2]]
    ['counts', 'laplace']
    """
    space = as_domain(domain)
    question = SynthesisQuestion(domain=space, workload=as_workload(workload, space), size=size)
    return tuple(question.plan(Facts(rows=as_count(n, "n", minimum=1)), epsilon).methods)
