"""Synthetic rows with the tables of the real ones: noisy tables, a fit, whole rows (theory C7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.methods import Method
from zerodelta.tables.codes import row_writer
from zerodelta.tables.domain import MOST_CELLS, Domain, as_domain, as_workload
from zerodelta.tables.forecast import whole_rows_error
from zerodelta.tables.release_tables import publish
from zerodelta.tables.rounding import whole_rows
from zerodelta.tasks.answer_queries import queries_methods

__all__ = ["synthesis_methods", "synthesize"]


def synthesize(
    rows: Any,
    *,
    domain: Any = None,
    epsilon: Rational,
    size: int | None = None,
    workload: Any = None,
    unknown: Any = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release synthetic rows whose tables resemble those of the rows.

    **Releases**: `size` rows (default: n) of the columns of the domain, as the caller's kind of
    data frame, or as an array for an array. The tables of the workload are measured as in
    `answer_queries`, a distribution of largest entropy is fitted to them, and it is rounded to
    whole rows without sampling noise.
    **Neighbors**: replace-one (n is public).
    **Guarantee**: pure ε-DP (that of the noisy tables; the rest is post-processing), proven.
    **Public**: n; `domain` (categories of each column, at most 2^24 combinations), `workload`, and
    `unknown` as in `answer_queries`; `size`.
    **Error**: the expected absolute error of a frequency in the tables of the workload, averaged
    over all cells, and half a row for rounding to `size` rows. What no table of the workload shows,
    such as three columns together for pairs (the default), is as independent as the tables allow.

    >>> import numpy as np
    >>> people = np.array([["f", "yes"], ["m", "no"]] * 5000)
    >>> release = synthesize(people, domain={0: ["f", "m"], 1: ["no", "yes"]}, epsilon=1, size=100)
    >>> release.value.shape, sorted(set(map(tuple, release.value)))[0]
    ((100, 2), ('f', 'yes'))
    """
    bits = SystemBits() if bits is None else bits
    exact, space = as_usable_epsilon(epsilon), as_domain(domain)
    wanted = as_workload(workload, space)
    _check_cells(space)
    write = row_writer(rows, space)
    count = None if size is None else as_count(size, "size", minimum=1)
    found = publish(
        rows, space, wanted, epsilon=exact, unknown=unknown, method=method, bits=bits, whole=True
    )
    assert found.weights is not None
    if count is None:
        count = rows.rows if isinstance(rows, Source) else len(rows)
    codes = whole_rows(found.weights, space, wanted, count)
    error = found.method.error + whole_rows_error(space, wanted, count)
    return Release(value=write(codes), certificate=found.certificate, error=error)


def synthesis_methods(
    *, epsilon: Rational, n: int, domain: Any, workload: Any = None, size: int | None = None
) -> tuple[Method, ...]:
    """Return the ways to make `size` rows (default: n), best first, by public numbers.

    >>> [m.name for m in synthesis_methods(epsilon=1, n=20_000, domain={"a": 2, "b": 3})[:2]]
    ['counts', 'laplace']
    """
    space = as_domain(domain)
    wanted = as_workload(workload, space)
    _check_cells(space)
    count = as_count(n if size is None else size, "size", minimum=1)
    rounding = whole_rows_error(space, wanted, count)
    return tuple(
        replace(method, error=method.error + rounding)
        for method in queries_methods(epsilon=epsilon, n=n, domain=space, workload=wanted)
    )


def _check_cells(domain: Domain) -> None:
    if domain.cells > MOST_CELLS:
        raise ParameterError(
            "domain",
            f"{domain.cells} combinations of categories",
            expected="at most 2^24: the fitted distribution over all of them is held in memory",
            remedy="leave out columns, group categories, or release tables with answer_queries",
        )
