"""Every container x every odd cell x every way to read: what one cell is changes no other row.

Driven where rows become exact integers. All of them are sums over rows, so a column with an odd
cell must give what the other rows give, plus what the odd row gives by itself: in every container,
with the same types and shapes, no exception and no warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import zerodelta as zd
from data.odd_cells import COLUMNS, ODD, TYPED, held, kept
from data.opening import opened
from zerodelta.data.arrays import ArraySource, as_source
from zerodelta.data.columns import Unread
from zerodelta.data.keys import column, tally
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.marginals.domain import as_domain, code_rows, out_of_domain_codes, row_columns
from zerodelta.mechanisms.ranks import EvenPoints, ListedPoints
from zerodelta.regression.features import Features
from zerodelta.regression.rows import ClassLabels, LabeledRows, Targets
from zerodelta.regression.statistics import exact_statistics
from zerodelta.spine.public_inputs import as_universe

UNIT = FixedPoint.box(dimension=1, lower=-2, upper=2, steps=1000)
LABELS = ["a", 0, 1, 0.5, 0.25, None]
EVEN = EvenPoints(lower=Fraction(-2), upper=Fraction(2), size=33)
LISTED = ListedPoints(points=np.array([-1.0, 0.0, 0.5, 1.0]))

Total = Callable[[Any], Any]


def mean(rows: Any) -> Any:
    return opened(as_source(rows)).sum(0, UNIT)


def histogram(rows: Any) -> Any:
    return tally(rows, as_universe(LABELS)).dense(len(LABELS))


def numbered(rows: Any) -> Any:
    return tally(rows, as_universe(3), unknown=2).dense(3)


def quantile(rows: Any) -> Any:
    values = column(opened(as_source(rows)))
    return np.append(
        np.bincount(EVEN.snap(values), minlength=33), np.bincount(LISTED.snap(values), minlength=4)
    )


def tables(rows: Any) -> Any:
    name = "0" if hasattr(rows, "columns") or hasattr(rows, "column_names") else 0
    if not isinstance(rows, (np.ndarray, list, tuple)) and name == 0:
        rows, name = _one_column(rows), "0"
    domain = as_domain({name: LABELS})
    codes = out_of_domain_codes("a", domain)
    return code_rows(row_columns(rows, domain).read(), domain, codes).table((0,))


def _one_column(rows: Any) -> Any:
    if hasattr(rows, "to_frame"):
        return rows.rename("0").to_frame()
    if isinstance(rows, pd.api.extensions.ExtensionArray):
        return pd.DataFrame({"0": pd.Series(np.asarray(rows), dtype=object)})
    return pa.table({"0": rows})


def targets(rows: Any) -> Any:
    read = Targets((Fraction(-2), Fraction(2)), intercept=True)
    source = LabeledRows(np.ones((_count(rows), 1)), rows, read=read)
    return exact_statistics(Features.of(1, 2, True), opened(source))


def labels(rows: Any) -> Any:
    places = np.nan_to_num(ClassLabels(tuple(LABELS))(rows), nan=-1).astype(np.int64)
    return np.bincount(places + 1, minlength=7)


def study(rows: Any) -> Any:
    kept = opened(ArraySource(rows), keep=True)
    return np.append(kept.sum(0, UNIT), kept.gram(0, UNIT))


def _count(rows: Any) -> int:
    return Unread(rows).rows


NUMBERS: dict[str, Total] = {
    "mean": mean,
    "quantile": quantile,
    "targets": targets,
    "study": study,
}
CATEGORIES: dict[str, Total] = {
    "histogram": histogram,
    "numbered": numbered,
    "tables": tables,
    "labels": labels,
}
"""Every way in which rows are read; what else tasks make of them is in tests/replay."""
BASES: dict[str, list[Any]] = {
    "floats": [0.5, 1.0, 0.25, -1.0],
    "integers": [0, 1, 1, 0],
    "booleans": [True, False, True, True],
    "texts": ["true", "TRUE", "0.5", "1"],
    "short": [np.float32(0.5), np.float32(0.25), np.float32(1), np.float32(0.5)],
}
"""Numbers that are the same in every type: a container may convert them."""


def totals(container: Any, tasks: dict[str, Total]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {name: task(container) for name, task in tasks.items()}


def check(whole: dict[str, Any], rest: dict[str, Any], alone: dict[str, Any]) -> None:
    for name, total in whole.items():
        assert total.dtype == rest[name].dtype, name
        assert total.tolist() == (rest[name] + alone[name]).tolist(), name


@cache
def others(base: str, place: int) -> dict[str, Any]:
    """Return the totals of a list of the other cells."""
    cells = [cell for i, cell in enumerate(BASES[base]) if i != place]
    return totals(cells, NUMBERS | CATEGORIES)


ALONE: dict[int, dict[str, Any]] = {}


def alone(odd: Any) -> dict[str, Any]:
    """Return the totals of one row, the odd cell."""
    if id(odd) not in ALONE or id(odd) not in map(id, ODD.values()):
        ALONE[id(odd)] = totals(single(odd), NUMBERS | CATEGORIES)
    return ALONE[id(odd)]


def single(odd: Any) -> Any:
    column = np.empty(1, dtype=object)
    column[0] = odd
    return column


HARMLESS = {id(kind) for kind in (float, str, bool, type(None))}
NARROW = {
    "int64": "integers",
    "pandas Int64": "integers",
    "bool": "booleans",
    "pandas boolean": "booleans",
}


def cases() -> list[Any]:
    return [
        pytest.param(build, base, id=f"{build}-{base}")
        for build in COLUMNS
        for base in BASES
        if base == NARROW.get(build, base)  # other numbers are converted to these
    ]


@pytest.mark.parametrize(("build", "base"), cases())
def test_an_odd_cell_changes_no_other_row(build: str, base: str) -> None:
    """A typed container may make another cell of the odd one: that one is compared then."""
    tried = 0
    some = 1 if base in ("floats", "texts") else 3  # of the other columns a third of the cells
    for i, odd in enumerate(list(ODD.values())[::some]):
        cells, place = list(BASES[base]), 1 + i % 3
        cells[place] = odd
        if build in ("polars", "polars frame") and id(type(odd)) not in HARMLESS:
            continue  # Polars itself calls methods of cells, and prints what they raise
        if build in TYPED and odd is ODD["nameless"]:
            continue  # NumPy hashes its type to convert it, and leaves the error to a later lookup
        container = held(COLUMNS[build], cells)
        a_row = build in ("list", "tuple") and isinstance(odd, (list, tuple))  # see test_columns
        if container is None or a_row or _is_refused(container):
            continue
        tried += 1
        stays = build not in TYPED or kept(container, place, odd)
        tasks = CATEGORIES if _is_text(container) else NUMBERS | CATEGORIES
        stands = odd if stays else _found(container, place)
        check(totals(container, tasks), others(base, place), alone(stands))
    clean = held(COLUMNS[build], BASES[base])
    if clean is not None and not _is_text(clean):
        found, expected = (totals(rows, NUMBERS) for rows in (clean, list(BASES[base])))
        for name in NUMBERS:
            assert found[name].tolist() == expected[name].tolist()
    assert tried or build in TYPED


@pytest.mark.parametrize("build", [name for name in COLUMNS if name not in TYPED])
def test_a_column_of_one_odd_cell_only_is_read_as_beside_others(build: str) -> None:
    """A library may find a type in cells that are all alike; none is refused because of it."""
    for odd in ODD.values():
        container = held(COLUMNS[build], [odd] * 3)
        a_row = build in ("list", "tuple") and isinstance(odd, (list, tuple))  # see test_columns
        if container is not None and not a_row:
            found, once = totals(container, NUMBERS | CATEGORIES), alone(odd)
            for name, total in found.items():
                assert total.tolist() == (3 * once[name]).tolist(), name


def _found(container: Any, place: int) -> Any:
    """Return what the library made of the odd cell, read from the container itself."""
    return Unread(container).read_column()[place]


def _is_refused(container: Any) -> bool:
    """Tell whether NumPy made an array of times of it, which is refused by its type."""
    return isinstance(container, np.ndarray) and container.dtype.kind in "mM"


def _is_text(container: Any) -> bool:
    """Tell whether a declared type is text, or no number: refused where numbers are needed."""
    try:
        ArraySource(container)
    except zd.errors.ParameterError:
        return True
    return False
