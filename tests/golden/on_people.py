"""The golden releases of a whole data set, asked of other rows: a new verb is here by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import MagicMock, patch

import pyarrow as pa

import zerodelta as zd
from golden import rows
from golden.golden import CASES, FILES, asked
from golden.rows import COLUMNS, rows_of

VARIED: list[tuple[str, dict[str, Any]]] = [
    ("answer_queries", {"method": "laplace"}),
    ("kmeans", {"method": "lloyd"}),
    ("kmeans", {"method": "one-center"}),
    ("select_features", {"method": "gram"}),
    ("select_model", {"method": "study"}),
    ("sklearn.LinearRegression, data set", {"method": "huber"}),
    ("sklearn.LinearRegression, data set", {"method": "statistics"}),
    ("sklearn.LogisticRegression, data set", {"method": "descent"}),
    ("sklearn.NearestCentroid, data set", {"block": "l2"}),
]
"""What is read or planned in another way with these options."""


def table() -> Any:
    """Return the rows of the golden releases."""
    return pa.table(rows_of())


@contextmanager
def opening(data: Callable[[dict[str, Any]], Any]) -> Iterator[None]:
    """Let golden cases open other rows."""
    with patch.object(rows, "opened", data):
        yield


def released(case: str, data: Any, **options: Any) -> Any:
    """Release a golden case of this data set, with other options."""
    called, _ = asked(case)

    def changed(*args: Any, **given: Any) -> Any:
        return called(*args, **{**given, **options})

    with opening(lambda _: data):
        found = CASES[case](changed)
    return getattr(found, "release_", found)


def _is_of_a_whole_data_set(case: str) -> bool:
    if ", method=" in case or ", where" in case or case == "count, public":
        return False
    seen: list[dict[str, Any]] = []

    def noted(given: dict[str, Any]) -> Any:
        seen.append(given)
        return zd.open(table(), **given)

    with opening(noted):
        CASES[case](MagicMock())
    return seen == [{"columns": COLUMNS}]


_CASES = [case for file in ("verbs", "estimators", "studies") for case in FILES[file]]
RELEASES: dict[str, Callable[..., Any]] = {
    **{case: partial(released, case) for case in _CASES if _is_of_a_whole_data_set(case)},
    **{
        f"{case}, {' '.join(options.values())}": partial(released, case, **options)
        for case, options in VARIED
    },
}
"""What is released of a data set with the columns of the golden rows, and with which options."""
