"""Marginal tables of categorical columns: the best pure noise, then a fit (theory C7, C10.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.methods import Method
from zerodelta.tables.domain import as_domain, as_workload
from zerodelta.tables.release_tables import forecasts, publish

__all__ = ["answer_queries", "queries_methods"]


def answer_queries(
    rows: Any,
    *,
    domain: Any = None,
    workload: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release tables of how often categories occur together, as frequencies that add up to 1.

    **Releases**: a dictionary from each tuple of columns to an array with one axis per column, in
    the order of the domain's categories. Up to 2^20 cells in the whole domain all tables belong to
    one fitted distribution if there is one near; else each is one by itself. `method`: "k-norm"
    (orthogonal coefficients of the tables), "counts" and "laplace" (all cells of all tables),
    "mwem" (a few tables, chosen and measured in rounds), "purified" (hidden rounds, then mixing).
    **Neighbors**: replace-one (n is public).
    **Guarantee**: pure ε-DP (theory R, C10.1; B1 for "purified"), proven.
    **Public**: n; `domain`, the categories of each column (a list, or N for 0..N-1), by name or by
    position in an array; `workload`, k for all tables of k columns (default: 2, or 1 of a single
    column), or a list of tuples of columns. A number and a text that spells it are one category.
    A value outside the domain counts as `unknown` in columns that have this category; elsewhere
    it counts nowhere, so that its row is spread evenly over the cells ("purified": the first cell).
    **Error**: the expected absolute error of a frequency, averaged over all cells: what is known
    without the rows; on data close to a few cells it is smaller, with many values outside the
    domain larger. For "purified" it is a bound.

    >>> people = np.array([["f", "yes"], ["m", "no"], ["m", "yes"], ["f", "no"]] * 5000)
    >>> release = answer_queries(people, domain={0: ["f", "m"], 1: ["no", "yes"]}, epsilon=1)
    >>> release.value[0, 1].round(2)
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    bits = SystemBits() if bits is None else bits
    exact, space = as_usable_epsilon(epsilon), as_domain(domain)
    wanted = as_workload(workload, space)
    found = publish(
        rows, space, wanted, epsilon=exact, unknown=unknown, method=method, bits=bits, whole=False
    )
    value = {
        name: np.ascontiguousarray(found.table(table).transpose(order))
        for name, order, table in zip(wanted.names, wanted.orders, wanted.tables, strict=True)
    }
    return Release(value=value, certificate=found.certificate, error=found.method.error)


def queries_methods(
    *, epsilon: Rational, n: int, domain: Any, workload: Any = None
) -> tuple[Method, ...]:
    """Return the ways to release tables, best first, by public numbers.

    Errors are expected absolute errors of a frequency, averaged over all cells of all tables.

    >>> binary = {column: 2 for column in range(8)}
    >>> methods = queries_methods(epsilon=1, n=20_000, domain=binary)
    >>> [(m.name, round(m.error, 5)) for m in methods[:3]]
    [('k-norm', 0.00068), ('counts', 0.00153), ('laplace', 0.00176)]
    """
    exact, space = as_usable_epsilon(epsilon), as_domain(domain)
    count = as_count(n, "n", minimum=1)
    return forecasts(space, as_workload(workload, space), exact, count)
