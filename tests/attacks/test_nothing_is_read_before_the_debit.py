"""Rows in memory that the processor refuses to read: a release that is not paid for touches none.

Each call is made in a child process, which a single read of a cell would kill.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from attacks.public_calls import CALLS, FITTED, NUMBERS, TABLE
from attacks.unreadable import (
    PAID,
    REFUSED,
    SERIES,
    TOUCHED,
    Empty,
    Trap,
    Unreadable,
    ended,
    not_refused,
)
from public import CALLABLE, public
from zerodelta.models import Huber
from zerodelta.training.frank_wolfe import frank_wolfe_pure

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect and fork")

CODES = np.array([0, 1, 2] * 20)
Calls = dict[str, Callable[..., Any]]
VERBS = sorted(
    name
    for name in CALLS
    if name in CALLABLE
    and name not in ("open", "count")  # the number of rows is public there, and costs nothing
    and "ledger" in inspect.signature(public(name)).parameters
)


MANY = 1 << 14
LONG, WIDE = np.resize(NUMBERS, MANY), np.resize(TABLE, (MANY, 3))
MANY_CODES = np.resize(CODES, MANY)
WITHOUT_ROWS = {"select", "purify"}
"""Their first argument was computed from rows, and is no column of cells."""


def arguments(name: str, container: str) -> tuple[Unreadable, tuple[Any, ...], dict[str, Any]]:
    """Return unreadable rows for a verb, and what else it is given."""
    (first, *others), given = CALLS[name]
    if isinstance(first, list) and "universe" in given:
        rows, given = MANY_CODES, {**given, "universe": 3}
    else:
        rows = WIDE if name == "table" or np.ndim(first) == 2 else LONG
    if "domain" in given:
        given = {**given, "domain": {str(place): [0, 1] for place in given["domain"]}}
    if name in ("trimmed_mean", "propose_test_release", "bounded_local_sensitivity"):
        given = {**given, "missing": None}  # all rows count, in a frame too
    return SERIES[container](rows), tuple(others), given


def test_a_read_of_any_container_is_noticed() -> None:
    for container, build in SERIES.items():
        for rows in (LONG, WIDE):
            if (container, rows.ndim) == ("rows of arrays", 1):
                continue  # these are a list of plain numbers
            given = build(rows)
            touched = ended(
                lambda: zd.mean(given.rows, bounds=(0, 100), epsilon=1),  # noqa: B023
                given,
            )
            # a cell of a list is not touched at all: it is missing, by its type
            assert touched == (PAID if given.memory == [] else TOUCHED), container


@pytest.mark.parametrize("name", sorted(set(VERBS) - WITHOUT_ROWS))
def test_no_verb_reads_a_cell_of_any_container_before_it_is_paid_for(name: str) -> None:
    shut: list[Unreadable] = []
    calls: Calls = {}
    for container in SERIES:
        given, others, more = arguments(name, container)
        shut.append(given)

        def call(rows: Any = given.rows, others: Any = others, more: Any = more) -> None:
            if name == "table":
                rows = zd.open(rows, columns={"0": zd.number(0, 100), "1": zd.number(0, 100)})
            public(name)(rows, *others, **more, ledger=Empty())

        calls[container] = call
    assert not_refused(calls, *shut) == []


@pytest.mark.parametrize("name", sorted(WITHOUT_ROWS))
def test_what_was_computed_from_rows_is_not_read_before_it_is_paid_for(name: str) -> None:
    _, given = CALLS[name]
    call = public(name)
    objects = np.empty(3, dtype=object)
    objects.fill(Trap())
    alone = [Trap()] if name == "purify" else []  # scores are a list of them
    for value in (*alone, [Trap(), Trap(), Trap()], objects):
        assert ended(lambda: call(value, **given, ledger=Empty())) == REFUSED  # noqa: B023
    numbers = SERIES["array"](LONG)
    assert ended(lambda: call(numbers.rows, **given, ledger=Empty()), numbers) == REFUSED


def test_no_data_set_reads_a_cell_before_it_is_paid_for() -> None:
    given = {container: build(WIDE) for container, build in SERIES.items()}
    kinds = {"0": zd.number(0, 100), "2": zd.category([0, 1])}
    empty: Any = Empty()
    asked: dict[str, Callable[[Any], Any]] = {
        "mean": lambda people: zd.mean(people, "0", epsilon=1, ledger=empty),
        "where": lambda people: zd.mean(people.where("`0` > 3"), "0", epsilon=1, ledger=empty),
        "mode": lambda people: zd.mode(people, "2", epsilon=1, diagnostics="1/9", ledger=empty),
        "rows": lambda people: zd.synthesize(people[["2"]], epsilon=1, ledger=empty),
    }
    calls = {
        f"{name} of {container}": lambda ask=ask, rows=each.rows: ask(zd.open(rows, columns=kinds))
        for container, each in given.items()
        for name, ask in asked.items()
    }
    assert not_refused(calls, *given.values()) == []


@pytest.mark.parametrize("name", sorted(set(FITTED) - {"BoundedScaler"}))
def test_no_estimator_reads_a_cell_of_any_container_before_it_is_paid_for(name: str) -> None:
    made = getattr(zd.sklearn, name)(**FITTED[name], ledger=Empty())
    plain = (LONG > 50).astype(np.float64)
    shut: list[Unreadable] = []
    calls: Calls = {}
    for container, build in SERIES.items():
        rows, labels = build(WIDE[:, :2]), build(MANY_CODES)
        shut += [rows, labels]
        for which, pair in {
            "both": (rows.rows, labels.rows),
            "labels": (WIDE[:, :2], labels.rows),
            "rows": (rows.rows, plain),
        }.items():
            calls[f"{which} in {container}"] = partial(made.fit, *pair)
    assert not_refused(calls, *shut) == []


def test_no_algorithm_of_the_paper_reads_a_cell_of_any_container_before_it_is_paid_for() -> None:
    few, ball, empty = SERIES["array"](LONG[:512]), zd.Ball(2, 1, norm=1), Empty()
    given: dict[str, Any] = {"epsilon": 1, "ledger": empty}
    regression: dict[str, Any] = {"data_norm": 9, "target_bound": 9, "mixing_weight": "1/9"}
    channel: dict[str, Any] = {"log_delta": -9999, "mixing_weight": "1/9"}
    line: dict[str, Any] = {"loss": Huber(label_bound=1, threshold=1), "domain": ball}
    shut, calls = [few], Calls()
    descent: Callable[..., Any] = frank_wolfe_pure
    calls["channel"] = partial(
        zd.paper.purify_ball, few.rows, ball=zd.Ball(512, 1), **channel, **given
    )
    for container, build in SERIES.items():
        rows, labels, codes = build(WIDE[:, :2]), build(LONG), build(MANY_CODES)
        shut += [rows, labels, codes]
        both = rows.rows, labels.rows
        calls |= {
            f"line, {container}": partial(zd.paper.lattice_adassp, *both, **regression, **given),
            f"mode, {container}": partial(zd.paper.mode, codes.rows, universe=3, **given),
            f"frank wolfe, {container}": partial(
                descent, *both, **line, lipschitz=1, iterations=2, **given
            ),
        }
    assert not_refused(calls, *shut) == []
