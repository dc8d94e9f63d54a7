"""Nothing is overspent and nothing lost among threads, processes, kills, forks and power cuts."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import zerodelta as zd
from ledger.contention import contend, debits, kill
from ledger.spenders import EPSILON, charge, in_a_process
from zerodelta.ledger import sqlite as sqlite_store
from zerodelta.ledger.store import close_all

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def test_threads_of_processes_spend_exactly_the_budget(path: str) -> None:
    contend(path, processes=4, threads=4, times=50)


@pytest.mark.slow
def test_a_hundred_thousand_reservations(path: str) -> None:
    contend(path, processes=8, threads=4, times=3300)


def test_a_kill_at_any_instant_loses_nothing(path: str) -> None:
    kill(path, times=15)


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing(path: str) -> None:
    kill(path, times=250)


def test_a_child_has_a_connection_of_its_own(path: str, ledger: zd.Ledger) -> None:
    code = (
        "import sys, os\n"
        "import zerodelta as zd\n"
        "from ledger.spenders import EPSILON, charge, everything, forked, spend\n"
        "ledger = zd.Ledger(sys.argv[1])\n"
        "ledger.debit(charge())\n"
        "child, pipe = forked(lambda pipe: spend(ledger, 5, pipe))\n"
        "ledger.debit(charge())\n"
        "assert len(everything(pipe)) == 5\n"
        "os.waitpid(child, 0)\n"
        "print(ledger.spent)\n"
    )
    assert in_a_process(code, path).strip() == str(7 * EPSILON)


def test_a_release_that_is_killed_stays_paid(path: str, ledger: zd.Ledger) -> None:
    code = (
        "import os, sys, signal\n"
        "import numpy as np, zerodelta as zd\n"
        "from zerodelta.exact.bits import SystemBits\n"
        "real, named = SystemBits.read, []\n"
        "def deadly(self, count):\n"
        "    if named: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    named.append('the release, before it is paid for')\n"
        "    return real(self, count)\n"
        "SystemBits.read = deadly\n"
        "ledger = zd.Ledger(sys.argv[1])\n"
        "zd.mean(np.ones(9), bounds=(0, 2), epsilon='1/4', ledger=ledger)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert done.returncode == -9
    assert ledger.spent == Fraction(1, 4)


def test_a_power_cut_leaves_what_was_told(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file and its WAL frozen together; of what was not synced any part is kept, or garbage."""
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_SECONDS", float("inf"))  # all is in the WAL
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_PAGES", 10**6)
    ledger = zd.Ledger(path, budget=1000)
    wal, sizes, numbers = Path(path + "-wal"), [], []
    for _ in range(40):
        numbers.append(ledger.debit(charge()).entry)
        sizes.append(wal.stat().st_size)
    assert sizes == sorted(set(sizes))  # each debit is in the WAL when it is told
    whole, main = wal.read_bytes(), Path(path).read_bytes()
    chance = random.Random(5)
    for cut in range(60):
        place = chance.randrange(len(sizes))
        end = sizes[place]
        more = sizes[place + 1] if place + 1 < len(sizes) else len(whole)
        kept = chance.randint(end, more)
        tail = chance.choice([b"", bytes(4096), chance.randbytes(4096)])
        copy = tmp_path / f"cut-{cut}.db"
        copy.write_bytes(main)
        Path(f"{copy}-wal").write_bytes(whole[:kept] + tail)
        restored = zd.Ledger(copy)
        found = debits(restored)
        assert found[: place + 1] == numbers[: place + 1]
        assert len(found) <= place + 2
        assert restored.verify() == len(found) + 2
        restored.debit(charge())
        assert restored.verify() == len(found) + 3


def test_a_power_cut_in_a_checkpoint_leaves_what_was_told(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any of the pages are written to the file; the WAL is there until all of them are."""
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_SECONDS", float("inf"))
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_PAGES", 10**6)
    ledger = zd.Ledger(path, budget=1000)
    numbers = [ledger.debit(charge()).entry for _ in range(200)]
    before, wal = Path(path).read_bytes(), Path(path + "-wal").read_bytes()
    close_all()  # the last connection writes all pages to the file
    after = Path(path).read_bytes()
    assert len(after) > len(before)
    page, chance = 4096, random.Random(6)
    for cut in range(40):
        pages = [
            (after if chance.random() < 0.5 else before.ljust(len(after), b"\0"))[at : at + page]
            for at in range(0, len(after), page)
        ]
        copy = tmp_path / f"cut-{cut}.db"
        copy.write_bytes(b"".join(pages)[: chance.choice([len(before), len(after)])])
        Path(f"{copy}-wal").write_bytes(wal)
        restored = zd.Ledger(copy)
        assert debits(restored) == numbers
        assert restored.verify() == len(numbers) + 2


def test_a_backup_while_others_write_is_a_ledger(tmp_path: Path, path: str) -> None:
    """As docs/ledger.md says: close, or use SQLite's own backup."""
    import sqlite3

    ledger = zd.Ledger(path, budget=1)
    receipt = ledger.debit(charge())
    with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "copy.db") as copy:
        source.backup(copy)
    source.close()
    copy.close()
    restored = zd.Ledger(tmp_path / "copy.db")
    assert restored.verify(records=[receipt]) == 3
    later = ledger.debit(charge())
    with pytest.raises(zd.errors.LedgerError, match="an old copy was put back"):
        restored.verify(records=[later])
    close_all()
    moved = tmp_path / "moved.db"
    shutil.move(path, moved)
    assert not Path(path + "-wal").exists()
    assert zd.Ledger(moved).verify(records=[receipt, later]) == 4
