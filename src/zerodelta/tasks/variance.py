"""The variance and the standard deviation of bounded columns, of all rows or by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.kinds import skips
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.release import Release
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source, bounds_of, each_bounds
from zerodelta.spine.run import ask
from zerodelta.tables.asked_columns import AskedColumn
from zerodelta.tables.grouped_data import By
from zerodelta.tasks.table import TableQuestion, grouped_statistic

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def variance(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the variance of bounded columns, like `np.var(rows, axis=0)`, but private.

    Use it for the spread of one or several columns; with means and counts see `table`, in the
    unit of the data `std`.

    Parameters
    ----------
    rows : data set, array, list, series, frame or Source
        What `zd.open` returns, or one or several columns; values are clipped to the bounds.
    columns : str or list of str, optional
        Which columns of a data set or a frame; by default all.
    by : str, list of str, or dict
        As for `table`: then the value is a table with a line for each group.
    bounds : (lower, upper)
        Of every column, known without the rows; for a data set, by default as declared.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    missing : "skip", None or number
        As for `mean`.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used, clipped to the bounds, and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, between 0 and a quarter of the
        squared width of the bounds; by group it is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory P1, P2, G2), proven: noise on exact integer sums of the values
    and their squares. It divides by the count, as `np.var` does.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the expected absolute error, averaged over the columns and over where means may lie.

    Examples
    --------
    >>> import numpy as np
    >>> release = variance(np.array([20.0, 40.0] * 50_000), bounds=(0, 100), epsilon=1)
    >>> round(release.value, -1)
    100.0

    """
    return _spread("variance", rows, columns, by, bounds, epsilon, missing, diagnostics, bits)


@debited
def std(
    rows: Any,
    columns: str | Sequence[str] | None = None,
    *,
    by: By = None,
    bounds: Any = None,
    epsilon: Rational,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the standard deviation of bounded columns, like `np.std(rows, axis=0)`, but private.

    Use it for the spread of one or several columns, in their own unit; it is the root of the
    released `variance`.

    Parameters
    ----------
    rows, columns, by, bounds, epsilon, missing, diagnostics, bits
        As for `variance`.

    Returns
    -------
    Release
        Its value is a number for one column, a vector for several, between 0 and half the width of
        the bounds; by group it is a table, as for `zd.table`.

    Notes
    -----
    **Guarantee**, **Neighbors**: those of `variance`.
    **Error**: the expected absolute error where bounds are three standard deviations away.

    Examples
    --------
    >>> import numpy as np
    >>> release = std(np.array([20.0, 40.0] * 50_000), bounds=(0, 100), epsilon=1)
    >>> round(release.value)
    10

    """
    return _spread("std", rows, columns, by, bounds, epsilon, missing, diagnostics, bits)


def _spread(
    statistic: str,
    rows: Any,
    columns: str | Sequence[str] | None,
    by: By,
    bounds: Any,
    epsilon: Rational,
    missing: Any,
    diagnostics: Rational | None,
    bits: BitSource | None,
) -> Release:
    if by is not None:
        return grouped_statistic(
            statistic,
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
    stated = bounds_of(source, bounds)
    require(source.columns, "columns of rows", 0, "one or more", "pass rows with a column")
    ends = each_bounds(stated, len(source.columns))
    asked = tuple(
        AskedColumn(name=name, bounds=pair, missing=absent, statistics=(statistic,))
        for name, pair, absent in zip(source.columns, ends, _missing(source), strict=True)
    )
    question = TableQuestion(
        keys=GroupKeys(),
        columns=asked,
        complete=not source.drops,
        only=statistic,
    )
    beside = diagnosis(diagnostics, source, bounds=stated)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


def _missing(source: Source) -> list[bool]:
    """Tell for each column whether what is missing there, or was dropped, counts nowhere."""
    if isinstance(source, Dataset) and not source.drops:
        return [skips(kind) for kind in source.kinds.values()]
    return [source.may_miss] * len(source.columns)
