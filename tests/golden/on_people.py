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

WITH_METHODS = {
    "select_features": "gram",
    "select_model": "study",
    "sklearn.LogisticRegression, data set": "descent",
}
"""Cases that are asked by a study, too; of all others the method does not matter here."""


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
    case: partial(released, case) for case in _CASES if _is_of_a_whole_data_set(case)
} | {
    f"{case}, method={method}": partial(released, case, method=method)
    for case, method in WITH_METHODS.items()
}
"""What is released of a data set with the columns of the golden rows, and with which options."""
