"""The copy of rows that a release reads again: in memory, or in a file without a name."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data.pieces import Keeping, as_one_table, copied_blocks
from zerodelta.data.readers import Reader
from zerodelta.data.units import Bounding
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.study.study import Study
from zerodelta.training.losses import Logistic

pyarrow = pytest.importorskip("pyarrow")

COLUMNS: dict[str, Any] = {"x": zd.number(-1, 1, missing=None), "y": zd.boolean(missing=True)}
LATTICE = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=1 << 20)


def table(rows: int = 150_000) -> Any:
    x = np.sin(np.arange(rows))
    return pyarrow.table({"x": x, "y": x > 0.1})


def power(k: int, block: Any) -> Any:
    return block[:, 0] ** k


def blocks() -> Iterator[Any]:
    yield np.arange(6.0).reshape(3, 2)
    yield np.empty((0, 2))
    yield np.full((1, 2), np.nan)
    yield np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("memory", [None, 10**6, 60, 48, 47, 0])
def test_the_copy_is_the_same_wherever_it_is(memory: int | None) -> None:
    found = copied_blocks(blocks(), Keeping(memory=memory))
    for copy, block in zip(found, blocks(), strict=True):
        np.testing.assert_array_equal(copy, block)
        assert copy.dtype == block.dtype
        assert copy.size == 0 or not copy.flags.writeable
        if copy.size:
            with pytest.raises(ValueError, match="WRIT"):
                copy.setflags(write=True)


def test_a_copy_of_nothing() -> None:
    assert copied_blocks(iter(()), Keeping(memory=0)) == ()
    (empty,) = copied_blocks([np.empty((0, 2))], Keeping(memory=0))
    assert empty.shape == (0, 2)


def test_the_file_is_its_owners_alone_and_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, int]] = []
    original = tempfile.TemporaryFile

    def watched(**options: Any) -> Any:
        file = original(**options)
        made.append((options["dir"], stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)

    def stopped() -> Iterator[Any]:
        yield np.ones((1000, 1))
        assert list(tmp_path.iterdir()) == []
        raise KeyboardInterrupt

    keeping = Keeping(memory=0, folder=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        copied_blocks(stopped(), keeping)
    found = copied_blocks(blocks(), keeping)
    assert made == [(str(tmp_path), 0o600)] * 2
    assert list(tmp_path.iterdir()) == []
    assert len(found) == 4


def test_a_disk_that_fails_says_nothing(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(ParameterError, match="read to the end") as caught:
        copied_blocks(blocks(), Keeping(memory=0, folder=str(gone)))
    assert "gone" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("planned", [0, 1, 3, 4, 5, 100])
def test_rows_together_are_the_same_however_many_were_planned(
    planned: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than were planned go to a file; how many come may be private, so none raises."""
    made: list[int] = []
    original = tempfile.TemporaryFile

    def watched(**options: Any) -> Any:
        file = original(**options)
        made.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    pieces = [np.arange(6.0).reshape(3, 2), np.empty((0, 2)), np.full((1, 2), np.nan)]
    keeping = Keeping(memory=0, folder=str(tmp_path))
    for whole in (False, True):
        found = as_one_table(
            iter(pieces), 2, planned=planned, keeping=keeping, count_is_public=whole
        )
        np.testing.assert_array_equal(found, np.concatenate(pieces))
        assert made == ([] if whole and planned >= 4 else [0o600])
        assert list(tmp_path.iterdir()) == []
        made.clear()


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_folder_without_room_fails_whatever_the_rows(rows: int, tmp_path: Path) -> None:
    """Where memory is limited: how many rows there are, which may be private, decides nothing."""
    gone = str(tmp_path / "gone")
    calls: list[Callable[[], Any]] = [
        lambda: copied_blocks([np.ones((rows, 1))], Keeping(memory=1 << 20, folder=gone)),
        lambda: as_one_table([np.ones((rows, 1))], 1, planned=99, keeping=Keeping(folder=gone)),
        lambda: Bounding(max_rows=1, folder=gone),
    ]
    for call in calls:
        with pytest.raises(ParameterError, match="read to the end") as caught:
            call()
        assert "gone" not in str(caught.value)
        assert caught.value.__context__ is None


class Full:
    """A file on a full disk; what is left in its buffer fails when it is closed, too."""

    def write(self, *data: Any) -> int:
        raise OSError(28, "No space left on device: s3cr3t")

    flush = close = fileno = seek = tell = write


def test_a_full_disk_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    monkeypatch.setattr(Full, "tell", lambda _: 0)
    rows = Bounding(max_rows=1, memory=100)
    block = np.ones((1000, 1))
    calls: list[Callable[[], Any]] = [
        lambda: rows.add(0, np.arange(100), [np.arange(100.0)]),
        lambda: copied_blocks([block], Keeping(memory=0)),
        lambda: as_one_table([block], 1, planned=3, keeping=Keeping()),
    ]
    for call in calls:
        with pytest.raises(ParameterError, match="read to the end") as caught:
            call()
        assert "s3cr3t" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("memory", [0, 1000, None])
def test_the_rows_of_a_query_with_units_are_held_beyond_memory(
    memory: int | None, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    cells = table(150_000).append_column("who", pyarrow.array(np.arange(150_000) % 40_000))
    options: Any = {"columns": COLUMNS, "unit": "who", "max_rows": 2}
    connection = duckdb.connect()
    query = zd.open(connection.from_arrow(cells), memory=memory, folder=tmp_path, **options)
    there, here = (
        np.concatenate(list(opened(people).blocks()))
        for people in (query, zd.open(cells, **options))
    )
    assert len(there) == 80_000
    assert sorted(map(tuple, there)) == sorted(map(tuple, here))
    assert list(tmp_path.iterdir()) == []


def test_what_sorts_all_rows_is_refused_by_their_public_number() -> None:
    cells = table(1000)
    people = zd.open(cells, columns=COLUMNS, memory=24 * 1000)
    assert -1 <= zd.trimmed_mean(people, "x", epsilon=1, trim="1/10").value <= 1
    less = zd.open(cells, columns=COLUMNS, memory=24 * 1000 - 1)
    with pytest.raises(ParameterError, match="fit into memory together, 24 bytes each"):
        zd.trimmed_mean(less, "x", epsilon=1, trim="1/10")


def test_memory_and_folder_are_said_when_data_is_opened(tmp_path: Path) -> None:
    people = zd.open(table(10), columns=COLUMNS, memory=5, folder=tmp_path)
    assert (
        people.keeping == people["x"].where("y").keeping == Keeping(memory=5, folder=str(tmp_path))
    )
    assert zd.open(table(10), columns=COLUMNS).keeping == Keeping(memory=1 << 30)
    with pytest.raises(ParameterError, match="folder"):
        zd.open(table(10), columns=COLUMNS, folder=tmp_path / "none")
    bad: Any
    for bad in (-1, 0.5, "much"):
        with pytest.raises(ParameterError, match="memory"):
            zd.open(table(10), columns=COLUMNS, memory=bad)


def test_every_round_reads_the_copy_and_answers_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    answers = []
    for memory in (None, 0, 1 << 20):
        people = zd.open(table(), columns=COLUMNS, memory=memory, folder=tmp_path)
        parts = type(people._base.reader).parts

        def counted(self: Reader, *args: Any, parts: Any = parts, **options: Any) -> Any:
            reads.append("read")
            return parts(self, *args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(type(people._base.reader), "parts", counted)
            rows = opened(people, keep=True)
            sums = [rows.sum(partial(power, k), LATTICE) for k in (1, 2, 3)]
            answers.append([int(total[0]) for total in sums])
    assert answers[0] == answers[1] == answers[2]
    assert reads == ["read"] * 3


def test_gradients_are_alike_from_a_file(tmp_path: Path) -> None:
    from study.stages import gradients_in

    sums = []
    for memory in (None, 0):
        people = zd.open(table(), columns=COLUMNS, memory=memory, folder=tmp_path)
        study = Study(people, epsilon=1, publish=zd.Ball(1, 5), rounds=3)
        _, gradients = gradients_in(study, Logistic(), data_norm=1)
        sums.append([gradients.total(np.array([t])).tolist() for t in (0.0, 0.5, -2.0)])
    assert sums[0] == sums[1]
    assert list(tmp_path.iterdir()) == []
