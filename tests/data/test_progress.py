"""Progress: public numbers, on a terminal, after two seconds, and only if it is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data import pieces as progress
from zerodelta.data import rows
from zerodelta.data.isolation import silenced
from zerodelta.data.pieces import with_progress
from zerodelta.exact.fixed_point import FixedPoint

pyarrow = pytest.importorskip("pyarrow")

TENTHS = FixedPoint.box(dimension=1, lower=0, upper=10, steps=100)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)
    monkeypatch.setattr(progress, "BAR_DELAY", 0.0)
    monkeypatch.setattr(progress, "_REFRESH_INTERVAL", 0.0)


@pytest.fixture
def bars(terminal: None, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is told to bars, instead of drawing them."""
    told: list[Any] = []

    class Bar:
        def add_task(self, what: str, *, total: int | None) -> int:
            told.append((what, total))
            return 0

        def update(self, task: int, *, completed: int, refresh: bool) -> None:
            told.append(completed)

        def stop(self) -> None:
            told.append("stopped")

    monkeypatch.setattr(progress, "_bar", Bar)
    return told


def test_items_come_one_by_one_and_the_bar_ends(bars: list[Any]) -> None:
    assert list(with_progress("abc", "letters", 3)) == ["a", "b", "c"]
    assert bars == [("letters", 3), 1, 2, 3, "stopped"]
    bars.clear()
    letters = with_progress("abc", "letters", 3)
    assert [next(letters), next(letters)] == ["a", "b"]
    letters.close()  # as an interrupt would
    assert bars == [("letters", 3), 1, "stopped"]


def test_a_real_bar_goes_to_stderr(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    list(with_progress(range(3), "rounds", 3))
    out, err = capsys.readouterr()
    assert out == ""
    assert "rounds" in err


def test_nobody_is_shown_what_is_not_wanted(
    bars: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> bool:
        bars.clear()
        return list(with_progress(range(3), "rounds", 3)) == [0, 1, 2] and bars == []

    assert not nothing()
    for off in ("0", "false", " OFF ", "no"):
        with monkeypatch.context() as patched:
            patched.setenv("ZERODELTA_PROGRESS", off)
            assert nothing()
    with monkeypatch.context() as patched:
        patched.setattr(zd, "progress", False)
        assert nothing()
    with silenced():  # a program runs
        assert nothing()
    with monkeypatch.context() as patched:
        patched.setattr(progress, "BAR_DELAY", 1e9)
        assert nothing()
    with monkeypatch.context() as patched:
        patched.setattr(progress, "_is_terminal", lambda: False)
        assert nothing()


def test_rows_are_shown_where_their_number_is_public(bars: list[Any]) -> None:
    table = pyarrow.table({"x": np.arange(100_000.0), "who": np.arange(100_000) // 2})
    columns: dict[str, Any] = {"x": zd.number(0, 10)}
    for people in (
        zd.open(table, columns=columns),
        zd.open(table, columns=columns).where("x > 5"),  # the whole is public
    ):
        bars.clear()
        list(opened(people).blocks())
        assert bars[0] == ("rows", 100_000)
        assert bars[-2:] == [100_000, "stopped"]
    bars.clear()
    list(opened(zd.open(table, columns=columns, unit="who", max_rows=1, units=50_000)).blocks())
    assert bars[0] == ("rows", None)
    assert set(bars[1:-1]) == {0}


def test_threads_show_rows_too(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(rows, "processors", lambda: 2)
    table = pyarrow.table({"x": np.arange(100_000.0), "who": np.arange(100_000) // 2})
    columns: dict[str, Any] = {"x": zd.number(0, 10)}
    opened(zd.open(table, columns=columns)).sum(0, TENTHS)
    assert bars[0] == ("rows", 100_000)
    assert bars[-2:] == [100_000, "stopped"]
    bars.clear()
    private = zd.open(table, columns=columns, neighbors="add-remove", expected_rows=50)
    opened(private).sum(0, TENTHS)
    assert bars[0] == ("rows", None)
    assert set(bars[1:-1]) == {0}
