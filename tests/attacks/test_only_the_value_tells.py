"""What outlives a release: neither a pickle nor a cache of the library holds a row.

That nothing else of a release tells neighbors apart, beside its noise: tests/replay. (Cells one by
one: tests/data/test_odd_cells.py; estimators: tests/estimators/test_estimators.py; programs in
studies: tests/study/test_nothing_gets_out.py.)
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from attacks.every_release import every, people, run


@every
def test_copies_and_pickles_hold_what_the_release_shows(case: str) -> None:
    """A pickle has the value once, and no cell: not the text, not the number of the row."""
    row = {"age": 48.15162342, "income": 900.0, "member": True, "city": "s3cr3t", "who": 481516}
    release = run(case, people(row))
    data = pickle.dumps(release)
    assert b"s3cr3t" not in data
    assert np.float64(48.15162342).tobytes() not in data
    assert np.float64(48.15162342).tobytes()[::-1] not in data  # as pickle writes a float
    for other in (pickle.loads(data), copy.deepcopy(release), copy.copy(release)):
        assert other.certificate == release.certificate
        assert repr(other) == repr(release)


# -- what the library remembers -------------------------------------------------------------------

ROWS = 1237
OURS = (types.FunctionType, type, types.MethodType)


def remembered() -> Iterator[Any]:
    """All that the library's modules, classes, closures and caches reach."""
    starts = [module for name, module in sys.modules.items() if name.startswith("zerodelta")]
    seen, pending = {id(each) for each in starts}, [vars(module) for module in starts]
    while pending:
        thing = pending.pop()
        yield thing
        for inner in gc.get_referents(thing):
            foreign = isinstance(inner, types.ModuleType) or (
                isinstance(inner, OURS)
                and not str(getattr(inner, "__module__", "")).startswith("zerodelta")
            )
            if id(inner) not in seen and not foreign:
                seen.add(id(inner))
                pending.append(inner)


def holds_rows() -> bool:
    """Whether anything remembered has one entry for each row."""
    for thing in remembered():
        sides = thing.shape if isinstance(thing, np.ndarray) else ()
        kinds: tuple[Any, ...] = (list, tuple, dict, set, bytes)
        for kind in kinds:
            if isinstance(thing, kind):
                sides = (kind.__len__(thing),)  # not what a test's own class says of its length
        if ROWS in sides:
            return True
    return False


@pytest.mark.parametrize(
    "ask",
    [
        lambda rows: zd.mean(rows[:, 0], bounds=(0, 1), epsilon=1),
        lambda rows: zd.median(rows[:, 0], bounds=(0, 1), epsilon=1),
        lambda rows: zd.covariance(rows, bounds=(0, 1), epsilon=1),
        lambda rows: zd.kmeans(rows, clusters=2, bounds=(0, 1), epsilon=1, method="histogram"),
        lambda rows: zd.histogram((rows[:, 0] > 0.5).tolist(), universe=[0, 1], epsilon=1),
        lambda rows: zd.heavy_hitters(
            [str(i) for i in range(ROWS)], universe=zd.text(4, alphabet="0123456789"), epsilon=1
        ),
        lambda rows: zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1]).fit(
            rows, rows[:, 0] > 0.5
        ),
        lambda rows: zd.table(
            zd.open(rows, columns={"0": zd.number(0, 1)}), of={"0": "mean"}, epsilon=1
        ),
    ],
)
def test_no_cache_remembers_rows(ask: Any) -> None:
    ask(np.random.default_rng(3).uniform(0, 1, size=(ROWS, 2)))
    gc.collect()
    assert not holds_rows()


def test_the_test_sees_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zd, "kept", {"x": [np.zeros((ROWS, 2))]}, raising=False)
    assert holds_rows()
