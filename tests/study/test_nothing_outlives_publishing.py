"""Once a study has published, nothing that it can reach was computed from rows but the release."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

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


def made(**changes: Any) -> Study:
    rows = np.random.default_rng(0).uniform(0, 1, size=(ROWS, 2))
    given: dict[str, Any] = {"publish": Finite(4), "rounds": 3, "bounds": (0, 1)}
    return Study(rows, epsilon=1, **{**given, **changes})


WAYS: dict[str, Callable[[Study], Any]] = {
    "publish": lambda study: study.publish(study.count(0)),
    "run": lambda study: study.run(lambda inside: inside.mean(0) * 4, rehearse=False),
    "fails": lambda study: study.run(lambda inside: 1 / 0, rehearse=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_let_go_with_the_release(way: str) -> None:
    study = made()
    assert holds_rows(study)
    WAYS[way](study)
    assert not holds_rows(study)
    assert study.release.value in range(4)


def test_rows_are_let_go_after_a_descent() -> None:
    study = made(publish=Ball(1, 1), rounds=5)
    assert holds_rows(study)
    study.minimize(Squared(label_bound=1), label=1, data_norm=1)
    assert not holds_rows(study)
