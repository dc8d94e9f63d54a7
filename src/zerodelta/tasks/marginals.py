"""Release tables of categorical columns (`answer_queries`), or rows with such tables (C7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.errors import require
from zerodelta.exact.arrays import Integers
from zerodelta.exact.rational import Rational, as_count
from zerodelta.marginals.domain import (
    MAXIMUM_CELLS,
    Domain,
    TableWorkload,
    as_domain,
    as_workload,
    row_writer,
    table_domain,
    tabulated_source,
)
from zerodelta.marginals.fit import Answers, whole_rows
from zerodelta.marginals.methods import tables_plan
from zerodelta.marginals.strategies import whole_rows_error
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.release import Release
from zerodelta.spine.plan import Facts, Method, ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.task import (
    CLOSE,
    METHOD,
    NAMES,
    ROWS,
    UNMEASURED,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    simple,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def answer_queries(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    domain: Any = None,
    workload: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release tables of the frequencies with which categories occur together.

    Use it for marginals and contingency tables, like `pandas.crosstab`, but private; for the counts
    of a single column see `histogram`, for synthetic rows `synthesize`.

    Parameters
    ----------
    rows : data set, array, list of rows, data frame or Source
        What `zd.open` returns, or one row for each person. A number and a text that spells it are
        one category.
    columns : sequence of str, optional
        The columns of a data set: categories, booleans and dates; by default all.
    domain : mapping
        The public categories of each column: a list, or N for 0..N-1, by the column's name, or by
        its position in an array. A data set has them declared.
    workload : int or list of tuples of columns, optional
        k for all tables of k columns (default: 2, or 1 of a single column), or the tables.
    unknown : category, optional
        The category as which an out-of-domain value counts, in columns that have this category. In
        other columns it is not counted, and its row is spread evenly over the cells.
    method : {"auto", "k-norm", "counts", "laplace", "mwem"}, default="auto"
        "k-norm": noise on orthogonal coefficients of the tables. "counts", "laplace": noise on all
        cells of all tables, fitted to counts or independent. "mwem": a few tables, chosen and
        measured in rounds. "auto": the least predicted error. After `where`, for units and under
        add-remove the number of rows is private: then "counts" or "laplace" (add-remove:
        "laplace"), and frequencies are fractions of the sum of their noisy cells.

    Returns
    -------
    Release
        Its value maps each tuple of columns to an array of frequencies that add up to 1, with one
        axis for each column, in the order of the domain's categories. If the domain has up to 2^20
        cells and a common distribution fits the noisy tables, all tables are its marginals; else
        each table is a separate distribution.

    Notes
    -----
    **Guarantee**: pure ε-DP (K-norm, P1, rounded-laplace, PF), proven.
    **Neighbors**: replace-one (n is public), or what the data set says: one unit, or add-remove
    (one row more or less), which needs half the noise of "laplace".
    **Error**: the expected absolute error of a frequency, averaged over all cells, as far as public
    numbers tell. It is smaller if the rows are in few cells, and larger with many out-of-domain
    values.

    Examples
    --------
    >>> people = np.array([["f", "yes"], ["m", "no"], ["m", "yes"], ["f", "no"]] * 5000)
    >>> release = answer_queries(people, domain={0: ["f", "m"], 1: ["no", "yes"]}, epsilon=1)
    >>> release.value[0, 1].round(2)
    array([[0.25, 0.25],
           [0.25, 0.25]])

    Of a data set, with the declared categories, and a condition:

    >>> import zerodelta as zd
    >>> rows = np.column_stack([np.arange(60_000) % 3, np.arange(60_000) % 2])
    >>> data = zd.open(rows, columns={"0": zd.category([0, 1, 2]), "1": zd.boolean()})
    >>> answer_queries(data.where("1"), ["0"], epsilon=4).value["0",].round(2)
    array([0.33, 0.33, 0.33])

    """
    chosen, space = table_domain(rows, columns, domain, unknown=unknown)
    question = QueriesQuestion(
        domain=space,
        workload=as_workload(workload, space),
        unknown=unknown,
        method=method,
        declared=isinstance(rows, Dataset),
    )
    return _release(question, chosen, epsilon=epsilon, diagnostics=diagnostics)


def _release(
    question: QueriesQuestion | SynthesisQuestion,
    chosen: Any,
    *,
    epsilon: Rational,
    diagnostics: Rational | None,
) -> Release:
    """Answer the question on the chosen columns."""
    source, facts = tabulated_source(chosen, question.domain)
    diagnosis = as_diagnosis(diagnostics, chosen if isinstance(chosen, Dataset) else None)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis, facts=facts)


@value
class QueriesQuestion:
    """Question for tables of rows with public categories."""

    domain: Domain
    workload: TableWorkload
    unknown: Any = None
    method: str = "auto"
    declared: bool = False
    """Whether the rows are those of a data set."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Plan noisy tables by the best method; their answers are the value."""
        workload = self.workload

        def value(answers: Answers) -> dict[Any, Any]:
            entries = zip(workload.names, workload.orders, workload.tables, strict=True)
            return {
                name: np.ascontiguousarray(answers.table(table).transpose(order))
                for name, order, table in entries
            }

        return tables_plan(
            self.domain,
            workload,
            facts=facts,
            epsilon=epsilon,
            unknown=self.unknown,
            method=self.method,
            declared=self.declared,
            always_fit=False,
            value=value,
        )


def queries_methods(
    *, epsilon: Rational, n: int, domain: Any, workload: Any = None
) -> tuple[Method, ...]:
    """Return the methods that release tables, best first, by public numbers.

    Errors are expected absolute errors of a frequency, averaged over all cells of all tables.

    >>> binary = {column: 2 for column in range(8)}
    >>> methods = queries_methods(epsilon=1, n=20_000, domain=binary)
    >>> [(m.name, round(m.error, 5)) for m in methods[:3]]
    [('k-norm', 0.00068), ('counts', 0.00153), ('laplace', 0.00176)]
    """
    space = as_domain(domain)
    question = QueriesQuestion(domain=space, workload=as_workload(workload, space))
    return tuple(question.plan(Facts(rows=as_count(n, "n", minimum=1)), epsilon).methods)


# -- Synthetic rows: noisy tables, a fitted distribution, and complete rows of it (theory C7) -----

_MOST_ROWS = 1 << 32


@partial(debited, like=answer_queries)
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
    **paying: Unpack[Paying],
) -> Release:
    """Release synthetic rows whose tables resemble those of the rows.

    Use it where a program expects a table of rows; for the frequencies themselves see
    `answer_queries`, which is as private and a little more accurate.

    Parameters
    ----------
    rows : data set, array, list of rows, data frame or Source
        What `zd.open` returns, or one row for each person.
    domain : mapping
        The public categories of each column, as in `answer_queries`; at most 2^24 combinations.
    size : int, optional
        The number of synthetic rows; by default n, or `expected_rows` where n is private.

    Returns
    -------
    Release
        Its value has the columns of the domain, as the caller's kind of data frame, as an array for
        an array, or for a data set as a dictionary of columns (`pandas.DataFrame(value)`). The
        distribution of largest entropy is fitted to the measured tables, and rounded to complete
        rows without sampling noise.

    Notes
    -----
    **Guarantee**: pure ε-DP (that of the noisy tables; the rest is post-processing), proven.
    **Neighbors**: replace-one (n is public), or what the data set says: one unit, or add-remove
    (one row more or less), which needs half the noise of "laplace".
    **Error**: the expected absolute error of a frequency in the tables of the workload, averaged
    over all cells, and half a row for rounding to `size` rows. Columns that no table of the
    workload has together, such as three columns by default, are as independent as the tables allow.

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
    return _release(question, chosen, epsilon=epsilon, diagnostics=diagnostics)


@value
class SynthesisQuestion:
    """Question for synthetic rows with public categories; `write` makes them from codes."""

    domain: Domain
    workload: TableWorkload
    size: int | None = None
    unknown: Any = None
    method: str = "auto"
    write: Callable[[Integers], Any] = np.asarray
    declared: bool = False
    """Whether the rows are those of a data set."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Plan noisy tables and the rows made from the distribution fitted to them."""
        domain, workload = self.domain, self.workload
        require(
            domain.cells <= MAXIMUM_CELLS,
            "domain",
            f"{domain.cells} combinations of categories",
            expected="at most 2^24, because the fitted distribution is held in memory",
            remedy="leave out columns, group categories, or release tables with answer_queries",
        )
        size = as_count(facts.planned_rows if self.size is None else self.size, "size", minimum=1)
        fits = self.size is None or size <= _MOST_ROWS
        require(fits, "size", size, "at most 2^32 rows", "pass size=10_000, for example")

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
            always_fit=True,
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


# -- What the tasks are, for advice and the command line ------------------------------------------

_QUERIES = Forecast(
    unit="expected absolute error of a frequency, averaged over all cells of all tables",
    call="zd.answer_queries(rows, domain=…, workload={workload}, epsilon={epsilon})",
    methods=simple(queries_methods),
    reliable=CLOSE,
    needs={**ROWS, "domain": 'domain={"sex": 2, "age": 8}'},
    allows={"workload": None},
    typical={"domain": {"sex": 2, "age": 8}},
)


def _planner(title: str) -> Planner:
    """Return the planner of a task for several binary columns."""
    return Planner(
        title=title,
        fields=("n", "dimension"),
        asks=_binary,
        people=NAMES.replace("zd.number(0, 100)", "zd.boolean()"),
        python="people, names",
        shell="{names}",
    )


def _binary(numbers: Numbers) -> Numbers:
    """Return the numbers of the page with a domain of binary columns."""
    others = {name: number for name, number in numbers.items() if name != "dimension"}
    return {**others, "domain": {f"x{i}": 2 for i in range(min(numbers["dimension"], 20))}}


TASKS: dict[str, Task] = {
    "queries": Task(
        verb=answer_queries,
        page="models",
        error="of a fraction",
        forecast=_QUERIES,
        command=Command(
            columns="several",
            options=("workload", *METHOD),
            publishes="fractions for each combination of options",
            example="queries people.csv city member",
        ),
        planner=_planner("All tables of two binary columns"),
    ),
    "synthesize": Task(
        verb=synthesize,
        page="models",
        forecast=replace(
            _QUERIES,
            call="zd.synthesize(rows, domain=…, workload={workload}, size={size}, "
            "epsilon={epsilon})",
            methods=simple(synthesis_methods),
            reliable=UNMEASURED,
            allows={"workload": None, "size": None},
        ),
        command=Command(
            columns="several",
            options=("size", "workload", *METHOD),
            publishes="made-up rows",
            example="synthesize people.csv city member",
        ),
        planner=_planner("Synthetic rows of binary columns"),
    ),
}
