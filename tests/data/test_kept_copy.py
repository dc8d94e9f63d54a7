"""Rows that are read again: in memory, in a file without a name, by threads, with progress."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import zerodelta as zd
from data.full_releases import RELEASES, made_up
from data.limited_memory import EVERYTHING
from data.opening import opened
from zerodelta.data import pieces as progress
from zerodelta.data import rows
from zerodelta.data.arrays import ArraySource
from zerodelta.data.isolation import silenced
from zerodelta.data.pieces import (
    Keeping,
    as_one_table,
    copied_blocks,
    tally_blocks,
    with_progress,
)
from zerodelta.data.readers import Reader
from zerodelta.data.rows import Blocks, Rows
from zerodelta.data.units import Bounding
from zerodelta.errors import ParameterError
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.study.study import Study
from zerodelta.training.losses import Logistic

pyarrow = pytest.importorskip("pyarrow")

COLUMNS: dict[str, Any] = {"x": zd.number(-1, 1, missing=None), "y": zd.boolean(missing=True)}
LATTICE = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=1 << 20)


def table(rows: int = 70_000) -> Any:
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


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """The folder and the mode of each file that is made."""
    found: list[tuple[Any, int]] = []
    original = tempfile.TemporaryFile

    def watched(**options: Any) -> Any:
        file = original(**options)
        found.append((options["dir"], stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    return found


def test_the_file_is_its_owners_alone_and_has_no_name(
    tmp_path: Path, made: list[tuple[Any, int]]
) -> None:
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


@pytest.mark.parametrize("planned", [0, 1, 3, 4, 5, 100])
def test_rows_together_are_the_same_however_many_were_planned(
    planned: int, tmp_path: Path, made: list[tuple[Any, int]]
) -> None:
    """More rows than were planned go to a file; how many come may be private, so none raises."""
    pieces = [np.arange(6.0).reshape(3, 2), np.empty((0, 2)), np.full((1, 2), np.nan)]
    keeping = Keeping(memory=0, folder=str(tmp_path))
    for whole in (False, True):
        found = as_one_table(
            iter(pieces), 2, planned=planned, keeping=keeping, count_is_public=whole
        )
        np.testing.assert_array_equal(found, np.concatenate(pieces))
        assert made == ([] if whole and planned >= 4 else [(str(tmp_path), 0o600)])
        assert list(tmp_path.iterdir()) == []
        made.clear()


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_a_folder_without_room_fails_whatever_the_rows(rows: int, tmp_path: Path) -> None:
    """Where memory is limited: how many rows there are, which may be private, decides nothing."""
    gone = str(tmp_path / "gone")
    calls: list[Callable[[], Any]] = [
        lambda: copied_blocks([np.ones((rows, 1))], Keeping(memory=1 << 20, folder=gone)),
        lambda: copied_blocks(blocks(), Keeping(memory=0, folder=gone)),
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
    cells = table(90_000).append_column("who", pyarrow.array(np.arange(90_000) % 25_000))
    options: Any = {"columns": COLUMNS, "unit": "who", "max_rows": 2}
    connection = duckdb.connect()
    query = zd.open(connection.from_arrow(cells), memory=memory, folder=tmp_path, **options)
    there, here = (
        np.concatenate(list(opened(people).blocks()))
        for people in (query, zd.open(cells, **options))
    )
    assert len(there) == 50_000
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


# -- threads --------------------------------------------------------------------------------------


UNIT = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=1000)


class Listed:
    def __init__(self) -> None:
        self.found: list[Any] = []

    def add(self, block: Any) -> None:
        self.found.append(int(block[0, 0]))


def counting(start: int, count: int, closed: list[int] | None = None) -> Iterator[Any]:
    try:
        for i in range(start, start + count):
            yield np.full((1, 1), float(i))
    finally:
        if closed is not None:
            closed.append(start)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("sizes", [[], [0], [50], [1] * 20, [0, 3, 40, 0, 7]])
def test_every_block_is_taken_once_and_every_piece_is_closed(
    threads: int, sizes: list[int]
) -> None:
    starts, closed = np.cumsum([0, *sizes]).tolist(), list[int]()
    pieces = [partial(counting, s, n, closed) for s, n in zip(starts, sizes, strict=False)]
    tallies = list(tally_blocks(pieces, Listed, threads=threads))
    assert sorted(i for tally in tallies for i in tally.found) == list(range(sum(sizes)))
    assert len(tallies) == threads
    assert sorted(closed) == sorted(starts[:-1])


def test_what_a_thread_raises_is_raised_and_the_others_stop() -> None:
    closed: list[int] = []

    def failing() -> Iterator[Any]:
        yield np.zeros((1, 1))
        raise LookupError("no more")

    pieces: list[Any] = [failing, *[partial(counting, i * 10**6, 10**6, closed) for i in range(3)]]
    before = [library["num_threads"] for library in threadpool_info()]
    with pytest.raises(LookupError, match="no more"):
        list(tally_blocks(pieces, Listed, threads=2))
    assert threading.active_count() == 1 or not any(
        thread.name.startswith("ThreadPool") for thread in threading.enumerate()
    )
    assert len(closed) <= 1  # of the others at most one was begun, and it was closed
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_an_interrupt_stops_the_threads() -> None:
    begun, closed = threading.Event(), list[int]()

    def endless() -> Iterator[Any]:
        try:
            for _ in range(10**7):  # a minute, should nothing stop it
                begun.set()
                yield np.zeros((1, 1))
        finally:
            closed.append(1)

    class Quick(Listed):
        def add(self, block: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                begun.wait()

    tallies = tally_blocks([endless, partial(counting, 0, 1)], Quick, threads=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
    waiting = threading.Timer(0.1, _interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        list(tallies)
    signal.signal(signal.SIGINT, before)
    assert closed == [1]


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_code_of_the_caller_runs_where_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(rows, "processors", lambda: 4)
    seen: set[int] = set()

    def noted(block: Any) -> Any:
        seen.add(threading.get_ident())
        return block

    table = np.linspace(-1, 1, 999)
    source = ArraySource(table, batch=10)
    total = UNIT.sum(table[:, None]).tolist()
    assert opened(source).sum(noted, UNIT).tolist() == total
    assert seen == {threading.get_ident()}
    assert opened(source).sum(0, UNIT).tolist() == total


def test_sums_beyond_64_bits_are_exact_in_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The number of rows is private here: nothing was checked before the first row."""

    blocks = Blocks(np.array_split(np.ones((3000, 1)), 50), Keeping())
    private = Rows(held=blocks, rows=3, columns=("0",), row_count_is_public=False)
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    for threads in (1, 3):
        monkeypatch.setattr(rows, "processors", lambda found=threads: found)
        for steps in (1 << 30, 1 << 53):  # of which 1023 fit
            box = FixedPoint.box(dimension=1, lower=-1, upper=1, steps=steps)
            assert private.sum([0], box).tolist() == [3000 * steps]
        for steps in (1 << 26, 1 << 50):  # of whose squares 2047 fit, and none
            ball = FixedPoint.ball(dimension=1, bound=1, steps=steps)
            assert private.gram([0], ball).tolist() == [[3000 * steps**2]]


# -- progress -------------------------------------------------------------------------------------


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


# -- more rows than fit into memory ---------------------------------------------------------------


pq = pytest.importorskip("pyarrow.parquet")


ROOT = Path(__file__).parents[2]
ALLOWED = 112_000_000
SYSTEM = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
GROUPS, ROWS = 30, 50_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(made_up(3000), folder / "small.parquet")
    size = 0
    with pq.ParquetWriter(folder / "large.parquet", made_up(1).schema) as writer:
        for group in range(GROUPS):
            part = made_up(ROWS, seed=group)
            size += part.nbytes
            writer.write_table(part)
    assert size > 2 * ALLOWED
    return folder


def job(name: str, files: Path, folder: Path) -> str:
    paths = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
    small, large = (str(files / f"{each}.parquet") for each in ("small", "large"))
    command = ["-m", "data.limited_memory", name, small, large, str(ALLOWED), str(folder)]
    done = subprocess.run(
        [sys.executable, *command],
        # Arrow's own allocator reserves memory long before it is needed
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **SYSTEM},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_more_rows_than_fit_into_memory(
    name: str, files: Path, tmp_path: Path
) -> None:
    assert job(name, files, tmp_path) == "released"
    assert not list(tmp_path.iterdir())  # what was kept of the rows had no name


@linux
@pytest.mark.slow
def test_all_rows_at_once_do_not_fit(files: Path, tmp_path: Path) -> None:
    assert job(EVERYTHING, files, tmp_path) == "refused"
