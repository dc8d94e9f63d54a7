"""Once a study has published, nothing that it can reach was computed from rows but the release."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from zerodelta.data.arrays import ArraySource
from zerodelta.spaces import Ball, Finite
from zerodelta.study.study import Study
from zerodelta.training.losses import Squared

ROWS = 1237
PASSED_BY = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
"""What belongs to the program and not to the study."""


def reachable(start: Any) -> Iterator[Any]:
    seen, pending = {id(start)}, [start]
    while pending:
        thing = pending.pop()
        yield thing
        for inner in gc.get_referents(thing):
            if id(inner) not in seen and not isinstance(inner, PASSED_BY):
                seen.add(id(inner))
                pending.append(inner)


def holds_rows(study: Study) -> bool:
    """Whether the study reaches anything with one entry for each row."""
    sized = (np.ndarray, list, tuple, dict)
    return any(isinstance(thing, sized) and ROWS in _shape(thing) for thing in reachable(study))


def _shape(thing: Any) -> tuple[int, ...]:
    return thing.shape if isinstance(thing, np.ndarray) else (len(thing),)


def ends_a_block(study: Study) -> None:
    with study:
        study.mean(0)


def is_gone_when(end: Callable[[Study], Any], columns: int = 2, **changes: Any) -> Study:
    """End a study; neither does it reach rows, nor does anything else keep them."""
    rows = np.random.default_rng(0).uniform(0, 1, size=(ROWS, columns))
    source = ArraySource(rows)
    given: dict[str, Any] = {"publish": Finite(4), "rounds": 3, "bounds": (0, 1), **changes}
    study = Study(source, epsilon=1, **given)
    alive = weakref.ref(source)
    del source
    assert holds_rows(study)
    end(study)
    gc.collect()
    assert alive() is None
    assert not holds_rows(study)
    return study


WAYS: dict[str, Callable[[Study], Any]] = {
    "publish": lambda study: study.publish(study.count(0)),
    "run": lambda study: study.run(lambda inside: inside.mean(0) * 4, rehearse=False),
    "fails": lambda study: study.run(lambda inside: 1 / 0, rehearse=False),
    "block": ends_a_block,
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_let_go_with_the_release(way: str) -> None:
    assert is_gone_when(WAYS[way]).release.value in range(4)


@pytest.mark.parametrize("objective", [Squared(label_bound=1), lambda theta, rows: rows[:, :2]])
def test_rows_are_let_go_after_a_descent(objective: Any) -> None:
    def descends(study: Study) -> None:
        study.minimize(objective, label=2, data_norm=1)

    study = is_gone_when(descends, columns=3, publish=Ball(2, 1), rounds=5)
    assert study.release.value.shape == (2,)
