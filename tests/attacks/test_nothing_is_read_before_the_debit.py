"""Rows in memory that the processor refuses to read: a release that is not paid for touches none.

Each call is made in a child process, which a single read of a cell would kill.
"""

from __future__ import annotations

import ctypes
import inspect
import mmap
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from attacks.public_calls import CALLS, FITTED, NUMBERS, TABLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect and fork")

KEPT: list[Any] = []
"""The memory of arrays that nobody may read."""
CODES = np.array([0, 1, 2] * 20)
PAID, REFUSED, OTHER = 0, 1, 2


class Empty:
    """A ledger in which nothing is left."""

    def debit(self, charge: Any) -> NoReturn:
        raise zd.BudgetError("nothing is left")

    def covers(self, other: Any) -> bool:
        return self is other


def shut(array: Any) -> Any:
    """Return a copy that cannot be read."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    buffer = (ctypes.c_char * size).from_buffer(memory)
    KEPT.extend((memory, buffer))
    copy = np.frombuffer(memory, dtype=array.dtype, count=array.size).reshape(array.shape)
    copy[...] = array
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(buffer)), size, 0) == 0
    return copy


def ended(call: Callable[[], Any]) -> int:
    """Return how a call ends in a child: -11 if it reads what is shut."""
    child = os.fork()
    if child == 0:  # pragma: no cover
        end = OTHER
        try:
            call()
            end = PAID
        except zd.BudgetError:
            end = REFUSED
        finally:
            os._exit(end)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_read_is_noticed() -> None:
    rows = shut(NUMBERS)
    assert ended(lambda: rows.sum()) == -11
    assert ended(lambda: zd.mean(rows, bounds=(0, 100), epsilon=1)) == -11


VERBS = sorted(
    name
    for name in CALLS
    if name in zd.__all__
    and name not in ("open", "count")  # the number of rows is public there, and costs nothing
    and "ledger" in inspect.signature(getattr(zd, name)).parameters
)


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_reads_a_row_before_it_is_paid_for(name: str) -> None:
    (first, *others), given = CALLS[name]
    if isinstance(first, list) and "universe" in given:
        first, given = CODES, {**given, "universe": 3}
    if name == "table":
        kinds = {"0": zd.number(0, 100), "1": zd.number(0, 100)}
        rows = zd.open(shut(TABLE), columns=kinds)
    else:
        rows = shut(np.asarray(first))
    call = getattr(zd, name)
    assert ended(lambda: call(rows, *others, **given, ledger=Empty())) == REFUSED


@pytest.mark.parametrize("name", sorted(set(FITTED) - {"BoundedScaler"}))
def test_no_estimator_reads_a_row_before_it_is_paid_for(name: str) -> None:
    rows, labels = shut(TABLE[:, :2]), shut((TABLE[:, 2] > 50).astype(np.float64))
    made = getattr(zd.sklearn, name)(**FITTED[name], ledger=Empty())
    assert ended(lambda: made.fit(rows, labels)) == REFUSED
    frame, series = pd.DataFrame(rows, copy=False), pd.Series(labels, copy=False)
    assert ended(lambda: made.fit(frame, series)) == REFUSED


def test_no_algorithm_of_the_paper_reads_a_row_before_it_is_paid_for() -> None:
    rows, targets, codes = shut(TABLE[:, :2]), shut(TABLE[:, 2]), shut(CODES)
    calls: list[Callable[..., Any]] = [
        lambda **more: zd.paper.lattice_adassp(
            rows, targets, data_norm=9, target_bound=9, mixing_weight="1/9", epsilon=1, **more
        ),
        lambda **more: zd.paper.mode(codes, universe=3, epsilon=1, **more),
        lambda **more: zd.paper.purify_ball(
            targets, ball=zd.Ball(60, 1), epsilon=1, log_delta=-999, mixing_weight="1/9", **more
        ),
    ]
    assert [ended(lambda call=call: call(ledger=Empty())) for call in calls] == [REFUSED] * 3  # type: ignore[misc]
