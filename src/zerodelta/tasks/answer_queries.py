"""Marginal tables of categorical columns: the best pure noise, then a fit (theory C7, C10.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.codes import given_rows
from zerodelta.tables.distribution import Answers
from zerodelta.tables.domain import Domain, TableWorkload, as_domain, as_workload, table_domain
from zerodelta.tables.table_methods import tables_plan
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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release tables of how often categories occur together, as frequencies that add up to 1.

    Use it for marginals and contingency tables, like `pandas.crosstab`, but private; for the counts
    of a single column see `histogram`, for whole rows `synthesize`.

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
    epsilon : int, float, Fraction or str
        The privacy parameter.
    unknown : category, optional
        What an out-of-domain value counts as in columns that have this category. Elsewhere it
        counts nowhere, so that its row is spread evenly over the cells ("purified": first cell).
    method : {"auto", "k-norm", "counts", "laplace", "mwem", "purified"}, default="auto"
        Noise on orthogonal coefficients of the tables; on all cells of all tables, fitted to
        counts or independent; a few tables, chosen and measured in rounds; or internal rounds,
        then mixing. "auto" takes the least predicted error. After `where`, for units
        and under add-remove the number of rows is private: then "counts" or "laplace" (add-remove:
        "laplace"), and frequencies are fractions of what their noisy cells add up to.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used, clipped to the bounds, and unreadable.
    bits : BitSource, optional
        Random bits for tests, which brand the certificate as not private.

    Returns
    -------
    Release
        Its value maps each tuple of columns to an array with one axis for each column, in the
        order of the domain's categories. Up to 2^20 cells in the whole domain all tables belong to
        one fitted distribution if there is one near; else each is one by itself.

    Notes
    -----
    **Guarantee**: pure ε-DP (K-norm, P1, rounded-laplace, PF; B1 for "purified"), proven.
    **Neighbors**: replace-one (n is public), or what the data set says: one unit, or add-remove
    (one row more or less), which needs half the noise of "laplace".
    **Error**: the expected absolute error of a frequency, averaged over all cells: what is known
    without the rows; on data close to a few cells it is smaller, with many out-of-domain values
    larger. For "purified" it is a bound.

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
    given, facts = given_rows(chosen, space)
    beside = diagnosis(diagnostics, chosen if isinstance(chosen, Dataset) else None)
    return ask(question, given, epsilon=epsilon, bits=bits, beside=beside, facts=facts)


@value
class QueriesQuestion:
    """Tables are asked of rows with public categories."""

    domain: Domain
    workload: TableWorkload
    unknown: Any = None
    method: str = "auto"
    declared: bool = False
    """Whether the rows are those of a data set."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose the method, and calibrate its noise."""
        asked = self.workload

        def value(answers: Answers) -> dict[Any, Any]:
            return {
                name: np.ascontiguousarray(answers.table(table).transpose(order))
                for name, order, table in zip(asked.names, asked.orders, asked.tables, strict=True)
            }

        return tables_plan(
            self.domain,
            asked,
            facts=facts,
            epsilon=epsilon,
            unknown=self.unknown,
            method=self.method,
            declared=self.declared,
            whole=False,
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
