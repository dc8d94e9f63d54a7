"""Rows that code of others reads: what is certified then rests on the caller's word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import public
import zerodelta as zd
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source, Ticket
from zerodelta.paper import algorithm_12_13 as algorithm_12
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status


class Foreign(Source):
    """A source that somebody else wrote: it could count the rows it has seen."""

    def __init__(self, table: Any) -> None:
        self._table = np.asarray(table, dtype=np.float64)

    @property
    def rows(self) -> int:
        return len(self._table)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(self._table.shape[1]))

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        yield self._table.copy()


PREMISE = "the source's own code yields each row by itself, keeps no state and shows nothing"
COLUMN, TABLE = np.ones((200, 1)), np.ones((200, 2))
UNIT: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}
CELLS: dict[str, Any] = {"domain": {0: 2, 1: 2}, "epsilon": 1}
CHOICE: dict[str, Any] = {"target": 1, "size": 1, "target_bounds": (0, 1), **UNIT}
ITEMS: dict[str, Any] = {"universe": 3, "epsilon": 1}
TREE: dict[str, Any] = {"thresholds": {0: [0.5]}, "epsilon": 1}

VERBS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "mean": (TABLE, UNIT, ("k-norm", "k-norm-max", "laplace")),
    "sum": (TABLE, UNIT, ()),
    "variance": (TABLE, UNIT, ()),
    "std": (COLUMN, UNIT, ()),
    "count": (COLUMN, {"epsilon": 1}, ()),
    "quantile": (COLUMN, {"q": 0.5, **UNIT}, ("permute-and-flip",)),
    "median": (COLUMN, UNIT, ("permute-and-flip",)),
    "quantiles": (COLUMN, {"q": [0.2, 0.8], **UNIT}, ("joint",)),
    "cdf": (COLUMN, {"at": [0.5], **UNIT}, ("counts",)),
    "trimmed_mean": (
        COLUMN,
        {"trim": 0.1, "spread": 0.1, **UNIT},
        ("laplace", "propose-test-release", "smooth-sensitivity"),
    ),
    "histogram": (COLUMN, ITEMS, ("k-norm", "laplace")),
    "mode": (COLUMN, ITEMS, ("permute-and-flip", "stability")),
    "select": (TABLE, UNIT, ("permute-and-flip",)),
    "answer_queries": (TABLE, CELLS, ("k-norm", "counts", "laplace", "mwem")),
    "synthesize": (TABLE, CELLS, ("k-norm", "counts", "laplace", "mwem")),
    "kmeans": (TABLE, {"clusters": 2, **UNIT}, ("histogram", "lloyd", "one-center")),
    "decision_tree": (TABLE, TREE, ()),
    "select_features": (TABLE, CHOICE, ("gram", "stepwise")),
    "covariance": (TABLE, UNIT, ("frobenius", "max")),
    "correlation": (TABLE, UNIT, ("frobenius", "max")),
    "pca": (TABLE, UNIT, ("frobenius", "max")),
}
"""Every verb that reads a `Source`: rows, public inputs, and all of its methods."""

ON_A_WORD = {"bounded_local_sensitivity", "propose_test_release", "select_model", "vote"}
"""Verbs that rest on functions of the caller, with the source among what they are given."""

OF_DATA_SETS = {"heavy_hitters", "table", "top_k"}
"""Verbs that need declared columns: they refuse a source of another's."""

NO_ROWS = {"advise", "calibrate", "compose", "is_purifier", "plan", "purify", "verify"}
NO_ROWS |= {
    "bins",
    "boolean",
    "category",
    "date",
    "fake",
    "load",
    "number",
    "open",
    "read_schema",
    "text",
}

CASES = [
    (verb, method) for verb, (_, _, methods) in VERBS.items() for method in (methods or (None,))
]


def ask(verb: str, rows: Any, method: str | None) -> Release:
    chosen = {} if method is None else {"method": method}
    release: Release = public.public(verb)(rows, **VERBS[verb][1], **chosen)
    return release


def test_every_verb_and_every_method_is_listed() -> None:
    assert public.VERBS.keys() == {*VERBS, *ON_A_WORD, *NO_ROWS, *OF_DATA_SETS}
    with pytest.raises(zd.errors.ParameterError, match=r"zd\.open"):
        zd.table(Foreign(TABLE), of={"0": "mean"}, **UNIT)
    for verb, (table, _, methods) in VERBS.items():
        if methods:
            with pytest.raises(zd.errors.ParameterError) as refused:
                ask(verb, table, "no such method")
            named = set(re.findall(r"['\"]([a-z][a-z0-9-]*)['\"]", str(refused.value)))
            assert named - {"auto"} == set(methods), verb


@pytest.mark.parametrize(("verb", "method"), CASES)
def test_a_source_that_is_not_ours_is_asserted_with_its_premise(
    verb: str, method: str | None
) -> None:
    table = VERBS[verb][0]
    ours = ask(verb, ArraySource(table), method).certificate
    foreign = ask(verb, Foreign(table), method).certificate
    assert foreign.status is Status.ASSERTED
    assert set(foreign.assumed) - set(ours.assumed) == {PREMISE}
    assert foreign.assumed.count(PREMISE) == 1
    assert ours.status is Status.PROVEN
    assert foreign.assertions == 1
    assert foreign.summary.endswith("conditional on 1 caller assertion")
    zd.verify(foreign)


def test_scoring_fixed_candidates_of_a_foreign_source_names_its_premise() -> None:
    release = zd.select_model(
        Foreign(TABLE), {"a": 0, "b": 1}, epsilon=1, score=lambda column, rows: rows[:, column]
    )
    assert release.certificate.status is Status.ASSERTED
    assert PREMISE in release.certificate.assumed


def test_the_paper_mode_of_a_foreign_source_is_asserted() -> None:
    class Iterable(Foreign):
        def __iter__(self) -> Iterator[float]:
            return iter([0.0] * 200)

        def __len__(self) -> int:
            return 200

    for rows in (Foreign(COLUMN), Iterable(COLUMN), ArraySource(COLUMN)):
        for release in (algorithm_12.mode, algorithm_12.embedded_mode):
            certificate = release(rows, universe=3, epsilon=1).certificate
            ours = isinstance(rows, ArraySource)
            assert certificate.status is (Status.PROVEN if ours else Status.ASSERTED)
            assert (PREMISE in certificate.assumed) is not ours
