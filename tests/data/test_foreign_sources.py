"""Rows that code of others reads: what is certified then rests on the caller's word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status


@final
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

    def blocks(self) -> Iterator[Block]:
        yield self._table.copy()


COLUMN, TABLE = np.ones((200, 1)), np.ones((200, 2))
UNIT: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}
TASKS: dict[str, tuple[Any, Callable[[Any], Release]]] = {
    "mean": (TABLE, lambda rows: zd.mean(rows, **UNIT)),
    "quantile": (COLUMN, lambda rows: zd.quantile(rows, q=0.5, **UNIT)),
    "median": (COLUMN, lambda rows: zd.median(rows, **UNIT)),
    "trimmed_mean": (COLUMN, lambda rows: zd.trimmed_mean(rows, trim=0.1, **UNIT)),
    "histogram": (COLUMN, lambda rows: zd.histogram(rows, universe=3, epsilon=1)),
    "mode": (COLUMN, lambda rows: zd.mode(rows, universe=3, epsilon=1)),
    "stability": (COLUMN, lambda rows: zd.mode(rows, universe=3, epsilon=1, method="stability")),
    "select": (TABLE, lambda rows: zd.select(rows, **UNIT)),
    "answer_queries": (TABLE, lambda rows: zd.answer_queries(rows, domain={0: 2, 1: 2}, epsilon=1)),
    "synthesize": (TABLE, lambda rows: zd.synthesize(rows, domain={0: 2, 1: 2}, epsilon=1)),
    "kmeans": (TABLE, lambda rows: zd.kmeans(rows, clusters=2, method="lloyd", **UNIT)),
    "decision_tree": (
        TABLE,
        lambda rows: zd.decision_tree(rows, thresholds={0: [0.5]}, epsilon=1),
    ),
    "stepwise": (
        TABLE,
        lambda rows: zd.select_features(
            rows, target=1, size=1, target_bounds=(0, 1), method="stepwise", **UNIT
        ),
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_source_that_is_not_ours_is_asserted_with_its_premise(name: str) -> None:
    table, ask = TASKS[name]
    ours, foreign = ask(ArraySource(table)).certificate, ask(Foreign(table)).certificate
    assert foreign.status is Status.ASSERTED
    assert foreign.assumed == (
        *ours.assumed,
        "the source's own code yields each row by itself, keeps no state and shows nothing",
    )
    assert ours.status is Status.PROVEN
    zd.verify(foreign)
