"""The net itself: faults that other libraries had are planted, and freeze and replay tells them.

Each fault is in a task or in the library's own sums, and is found on the neighbors that the small
cover has of any case; without the fault nothing is.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from golden.golden import CASES, asked
from golden.rows import NUMBERS
from golden.seams import mechanisms, names, places
from replay import test_replay
from replay.engine import again, leaks, run
from replay.neighbors import EXTREME, ODD, World, drawn
from replay.premises import FACTS
from zerodelta.data.rows import Rows
from zerodelta.study.plan import StudyPlan

Task = Callable[..., Any]


def _on_numbers(task: Task, **options: Any) -> Any:
    return task(NUMBERS, epsilon=1, **options)


def caught(
    task: Task, case: Task = _on_numbers, *, shown: bool = False, **options: Any
) -> set[str]:
    """Return what tells neighbors apart, of a task that may be new: the first words of lines."""
    one = run(case, task, options, World(), None, shown=shown)
    found: set[str] = set()
    for odd, place in product(range(ODD), (EXTREME, 4, None)):
        world = again(one.world, odd=odd, place=drawn(odd) % 600 if place is None else place)
        two = run(case, task, options, world, one, shown=shown)
        assert world.changed
        found |= {line.partition(":")[0].partition(" of ")[0] for line in leaks(one, two)}
    return found


def honest(rows: Any, *, epsilon: Any, **options: Any) -> Any:
    return zd.mean(rows, bounds=(0, 1), epsilon=epsilon, **options)


def test_without_a_fault_nothing_is_found() -> None:
    assert caught(honest, shown=True) == set()
    for name in FLOAT_SUMS:
        called, options = asked(name)
        assert caught(called, CASES[name], **options) == set()


# -- a float sum ----------------------------------------------------------------------------------

FLOAT_SUMS = {"mean": 11, "table": 11, "covariance": 24, "pca": 24}
"""The bits of a float that is too short for a task's sums: a half, or a single one."""


@pytest.mark.parametrize("name", FLOAT_SUMS)
def test_a_sum_of_floats_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding row by row to a float rounds each time: its last bits move by more than a row does."""
    exact, width = Rows._total, FLOAT_SUMS[name]

    def short(self: Any, function: Any, part: Any, **options: Any) -> Any:
        def added(block: Any) -> Any:
            total = np.zeros(options["shape"])
            for place in range(len(block)):
                fraction, power = np.frexp(total + part(block[place : place + 1]))
                total = np.ldexp(np.rint(np.ldexp(fraction, width)), power - width)
            return total.astype(np.int64)

        return exact(self, function, added, **options)

    monkeypatch.setattr(Rows, "_total", short)
    called, options = asked(name)
    found = caught(called, CASES[name], **options)
    assert found & {"all mechanisms", *names(mechanisms())}
    assert "value" not in found


def test_a_sum_that_is_not_whole_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Rows._total
    monkeypatch.setattr(
        Rows, "_total", lambda self, *a, **o: exact(self, *a, **o).astype(np.float64)
    )
    with pytest.raises(AssertionError, match="whole numbers"):
        caught(honest)


# -- a bound that is read off the rows ------------------------------------------------------------


def within_the_rows(rows: Any, *, epsilon: Any) -> Any:
    """A bound that is the largest row, within limits that are public."""
    finite = rows[np.isfinite(rows)]
    return zd.mean(rows, bounds=(0, float(np.clip(finite.max(), 0.5, 8))), epsilon=epsilon)


def clipped_to_the_rows(rows: Any, *, epsilon: Any) -> Any:
    """Public bounds are stated, and rows divided by the largest of them before."""
    finite = rows[np.isfinite(rows)]
    return zd.mean(rows / np.clip(finite.max(), 0.5, 8), bounds=(0, 1), epsilon=epsilon)


def test_a_bound_that_is_read_off_the_rows_is_found() -> None:
    assert {"record", "other mechanisms were asked"} & caught(within_the_rows)
    found = caught(clipped_to_the_rows)
    assert found & {"KNorm.apply", "PartitionNoise.apply", "all mechanisms"}
    assert "record" not in found


# -- an interval from residuals -------------------------------------------------------------------


def test_an_interval_from_residuals_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = [0.0]

    def task(rows: Any, *, epsilon: Any) -> Any:
        spread[0] = float(np.nan_to_num(np.clip(rows, 0, 1)).std())
        return honest(rows, epsilon=epsilon)

    def interval(release: Any, *_: Any, **__: Any) -> Any:
        return release.value - 2 * spread[0], release.value + 2 * spread[0]

    monkeypatch.setattr(zd.records.Release, "interval", interval)
    assert caught(task, shown=True) == {"intervals"}


def test_a_noise_law_from_residuals_is_found() -> None:
    def task(rows: Any, *, epsilon: Any) -> Any:
        release = honest(rows, epsilon=epsilon)
        spread = 1 + float(np.nan_to_num(np.clip(rows, 0, 1)).std())
        sums = [
            replace(each, law=replace(each.law, scale=each.law.scale * Fraction(spread)))
            for each in release.sums
        ]
        return replace(release, sums=tuple(sums))

    found = caught(task, shown=True)
    assert {"intervals", "sums 0, law", "frame"} <= found
    assert "value" not in found


# -- half the noise -------------------------------------------------------------------------------


def test_a_study_with_half_of_its_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query's mechanism keeps what it says of itself; together they cost too much."""
    variance = StudyPlan.variance
    monkeypatch.setattr(StudyPlan, "variance", lambda *asked: variance(*asked) / 2)
    called, options = asked("Study, count")
    assert caught(called, CASES["Study, count"], **options) == {"all mechanisms"}


# -- a message with a count -----------------------------------------------------------------------


def raised(count: int, release: Any) -> Any:
    if count:
        raise zd.errors.ParameterError(
            "rows", expected=f"no missing cells, and not {count}", remedy=""
        )
    return release


def warned(count: int, release: Any) -> Any:
    if count:
        warnings.warn(f"{count} cells are missing", stacklevel=2)
    return release


def printed(count: int, release: Any) -> Any:
    print(f"{count} cells were read as missing")
    return release


def logged(count: int, release: Any) -> Any:
    logging.getLogger("zerodelta").info("%d cells are missing", count)
    return release


def forecast(count: int, release: Any) -> Any:
    return replace(release, error=f"{release.error}; {count} cells were missing")


def recorded(count: int, release: Any) -> Any:
    parameters = {**release.record.parameters, "missing": count}
    return replace(release, record=replace(release.record, parameters=parameters))


def planned(count: int, release: Any) -> Any:
    return replace(release, plan=f"for {count} missing cells")


def written(count: int, release: Any) -> Any:
    Path(tempfile.gettempdir(), f"missing-{count}").touch()
    return release


def typed(count: int, release: Any) -> Any:
    return replace(release, value=release.value.astype(np.float32 if count else np.float64))


TOLD: dict[Task, str] = {
    raised: "refused",
    warned: "raised",
    printed: "printed",
    logged: "logged",
    forecast: "forecast",
    recorded: "record",
    planned: "plan",
    written: "files",
    typed: "value",
}


@pytest.mark.parametrize("tell", TOLD, ids=lambda tell: tell.__name__)
def test_a_message_with_a_count_is_found(tell: Task) -> None:
    def task(rows: Any, *, epsilon: Any) -> Any:
        return tell(int(np.isnan(rows).sum()), honest(rows, epsilon=epsilon))

    assert TOLD[tell] in caught(task)


# -- noise that the net does not know -------------------------------------------------------------


def test_other_noise_than_that_of_mechanisms_is_found() -> None:
    """What is drawn past all mechanisms is not frozen: the value itself differs."""

    def task(rows: Any, *, epsilon: Any) -> Any:
        release = honest(rows, epsilon=epsilon)
        return replace(release, value=np.nan_to_num(np.clip(rows, 0, 1)).mean(axis=0))

    assert "value" in caught(task)


def test_a_new_mechanism_without_a_premise_is_told_where_to_add_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NewNoise:
        def apply(self, sums: Any, bits: Any) -> Any:
            return sums

    every = [*places(), (NewNoise, "apply")]
    monkeypatch.setattr(test_replay, "places", lambda: every)
    with pytest.raises(AssertionError, match=r"NewNoise\.apply adds noise.*premises\.py"):
        test_replay.test_every_mechanism_has_its_premise()
    monkeypatch.setitem(FACTS, "NewNoise.apply", lambda mechanism, sums: sums)
    with pytest.raises(AssertionError, match=r"no case asks .*'NewNoise\.apply'\].*golden"):
        test_replay.test_every_premise_is_asked()
