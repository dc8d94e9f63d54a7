"""A process that saw a later state demands it: of files put back, of servers that lag behind."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from ledger.spenders import EPSILON, as_a_new_process, charge, in_a_process
from zerodelta.ledger import sqlite as sqlite_store
from zerodelta.ledger.balances import Balances
from zerodelta.ledger.sqlite import SqliteStore
from zerodelta.ledger.store import _MAXIMUM_OPEN, close_all


def put_back(path: str, copy: Path) -> None:
    """Replace a ledger that nobody has open by a copy of it."""
    for end in ("", "-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)
    shutil.copy(copy, path)


@pytest.fixture
def old(path: str, tmp_path: Path) -> Path:
    """A copy of a ledger from before most of it was spent."""
    zd.Ledger(path, budget=1).debit(charge("1/10"))
    close_all()
    return Path(shutil.copy(path, tmp_path / "backup.db"))


def refused(ledger: zd.Ledger, match: str = "old copy was put back") -> None:
    for use in (lambda: ledger.debit(charge()), lambda: ledger.spent, ledger.verify):
        with pytest.raises(zd.errors.LedgerError, match=match):
            use()
    assert str(ledger.line).startswith("budget: unknown")


@pytest.mark.parametrize("when", ["open", "closed"])
def test_a_restored_backup_does_not_make_a_process_forget(path: str, old: Path, when: str) -> None:
    ledger = zd.Ledger(path)
    ledger.debit(charge("9/10"))
    if when == "closed":
        close_all()
    put_back(path, old)
    refused(ledger)
    refused(ledger)  # for good


def test_one_that_was_only_looked_at_is_remembered_too(path: str, old: Path) -> None:
    zd.Ledger(path).debit(charge("9/10"))
    as_a_new_process()
    ledger = zd.Ledger(path)
    assert ledger.remaining == 0
    close_all()
    put_back(path, old)
    refused(ledger)


def test_what_was_written_to_an_old_copy_is_not_what_was_there(path: str, old: Path) -> None:
    """The entry has the same number, and another hash."""
    ledger = zd.Ledger(path)
    ledger.debit(charge("9/10"))
    close_all()
    put_back(path, old)
    in_a_process(
        "import sys, zerodelta as zd\nfrom ledger.spenders import charge\n"
        "zd.Ledger(sys.argv[1]).debit(charge('8/10'))",
        path,
    )
    refused(ledger)


def test_the_later_state_is_accepted_again(path: str, old: Path, tmp_path: Path) -> None:
    ledger = zd.Ledger(path)
    ledger.debit(charge("1/2"))
    close_all()
    later = shutil.copy(path, tmp_path / "later.db")
    put_back(path, old)
    refused(ledger)
    put_back(path, Path(later))
    assert ledger.remaining == Fraction(4, 10)
    ledger.debit(charge("4/10"))


def test_another_ledger_in_its_place_is_refused(path: str, old: Path, tmp_path: Path) -> None:
    ledger = zd.Ledger(path)
    other = tmp_path / "other.db"
    zd.Ledger(other, budget=1).debit(charge("1/1000"))
    zd.Ledger(other).debit(charge("1/1000"))
    close_all()
    put_back(path, other)
    refused(ledger, "another ledger is in its place")


def test_a_connection_that_was_closed_for_others_changes_nothing(
    path: str, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many ledgers the oldest are closed; what was checked of them is not checked again."""
    ledger = zd.Ledger(path)
    ledger.debit(charge("1/2"))
    others = [zd.Ledger(tmp_path / f"{k}.db", budget=1) for k in range(_MAXIMUM_OPEN)]
    assert others[-1].spent == 0
    added: list[int] = []
    real = Balances.add

    def add(self: Balances, row: Any, find: Any) -> Any:
        added.append(1)
        return real(self, row, find)

    monkeypatch.setattr(Balances, "add", add)
    assert ledger.spent == Fraction(6, 10)
    assert added == []
    assert [each.spent for each in others] == [0] * _MAXIMUM_OPEN
    put_back(path, old)
    refused(ledger)


FORKED = """
import os, sys, shutil
import zerodelta as zd
from ledger.spenders import charge, forked, everything
from zerodelta.ledger.balances import Balances
path, old = sys.argv[1:]
ledger = zd.Ledger(path)
ledger.debit(charge("1/2"))
added, real = [], Balances.add
Balances.add = lambda *a: (added.append(1), real(*a))[1]
def child(pipe):
    assert ledger.spent > 0
    told = [len(added)]
    for end in ("", "-wal", "-shm"):
        if os.path.exists(path + end):
            os.unlink(path + end)
    shutil.copy(old, path)
    try:
        ledger.debit(charge("1/2"))
        told.append(0)
    except zd.errors.LedgerError:
        told.append(1)
    os.write(pipe, "\\n".join(map(str, told)).encode())
number, pipe = forked(child)
print(everything(pipe))
os.waitpid(number, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_knows_what_its_parent_has_checked(path: str, old: Path) -> None:
    """It checks nothing again, and refuses an older state as its parent does."""
    assert in_a_process(FORKED, path, old).strip() == "[0, 1]"


def test_an_interrupted_check_begins_anew(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was added up by half is not kept; what was seen is."""
    ledger = zd.Ledger(path, budget=1)
    for _ in range(5):
        ledger.debit(charge())
    as_a_new_process()
    real = Balances._spend

    def halfway(self: Balances, key: Any, amount: Fraction) -> None:
        real(self, key, amount)
        if self.number == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Balances, "_spend", halfway)
    with pytest.raises(KeyboardInterrupt):
        _ = ledger.spent
    monkeypatch.undo()
    assert ledger.spent == 5 * EPSILON


def gone(ledger: zd.Ledger) -> None:
    """Its process does not use it any more."""
    for use in (lambda: ledger.debit(charge()), lambda: ledger.spent, ledger.verify):
        with pytest.raises(zd.errors.LedgerError, match="ask in a new process"):
            use()


def removed(path: str, ends: tuple[str, ...]) -> None:
    for end in ends:
        Path(path + end).unlink()


OTHER = """
import sys, zerodelta as zd
from ledger.spenders import charge
ledger = zd.Ledger(sys.argv[1])
try:
    print(ledger.debit(charge(sys.argv[2])).entry)
except zd.errors.BudgetError:
    print("refused")
"""


@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_files_beside_it_that_were_removed_do_not_double_a_budget(
    path: str, ledger: zd.Ledger, ends: tuple[str, ...]
) -> None:
    """Two processes would write to different logs, and each would spend all."""
    assert ledger.remaining == 1
    removed(path, ends)
    assert in_a_process(OTHER, path, "1/2").strip() == "3"
    gone(ledger)
    assert in_a_process(OTHER, path, "1/2").strip() == "4"
    gone(ledger)
    close_all()  # which removes no log of others
    assert in_a_process(OTHER, path, "1/2").strip() == "refused"


def test_what_one_has_spent_is_in_the_file_when_its_log_is_removed(
    path: str, ledger: zd.Ledger
) -> None:
    ledger.debit(charge("1"))
    removed(path, ("-wal", "-shm"))
    assert in_a_process(OTHER, path, "1").strip() == "refused"
    gone(ledger)


@pytest.mark.parametrize("reader", [True, False])
def test_a_log_that_others_write_to_is_not_removed(
    path: str, ledger: zd.Ledger, reader: bool
) -> None:
    """Nor by the end of a process that had one which was removed."""
    code = (
        "import os, sys, zerodelta as zd\n"
        "from zerodelta.ledger import sqlite as sqlite_store\n"
        "from ledger.spenders import charge, in_a_process\n"
        "path, code = sys.argv[1:]\n"
        "ledger = zd.Ledger(path)\n"
        f"{'' if reader else 'ledger.debit(charge())'}\n"
        "ledger.spent\n"
        "os.unlink(path + '-wal'), os.unlink(path + '-shm')\n"
        "print(in_a_process(code, path))\n"
    )
    other = (
        "import sys, zerodelta as zd\n"
        "from zerodelta.ledger import sqlite as sqlite_store\n"
        "from ledger.spenders import charge\n"
        "sqlite_store._CHECKPOINT_SECONDS = float('inf')\n"  # all that it writes is in the log
        "print(zd.Ledger(sys.argv[1]).debit(charge('9/10')).entry)\n"
    )
    close_all()
    in_a_process(code, path, other)
    assert ledger.spent >= Fraction(9, 10)


def test_a_busy_log_is_written_to_the_file_too(
    path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many pages, however soon that is."""
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_SECONDS", float("inf"))
    for _ in range(200):
        ledger.debit(charge())
    removed(path, ("-wal", "-shm"))
    told = in_a_process("import sys, zerodelta as zd\nprint(zd.Ledger(sys.argv[1]).verify())", path)
    assert int(told) > 202 - sqlite_store._CHECKPOINT_PAGES


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_files_that_are_removed_while_it_writes_are_missed(
    path: str, ledger: zd.Ledger, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at them and the commit: nothing is read for such a debit."""
    real = SqliteStore.insert

    def late(self: SqliteStore, row: Any) -> None:
        real(self, row)
        os.rename(path + end, path + end + ".away")

    monkeypatch.setattr(SqliteStore, "insert", late)
    with pytest.raises(zd.errors.LedgerError, match="was removed or replaced while this process"):
        ledger.debit(charge())


def test_a_hard_link_is_refused(path: str, ledger: zd.Ledger, tmp_path: Path) -> None:
    """Under its second name it has a second log, and a second budget."""
    other = str(tmp_path / "other.db")
    uses: list[Callable[[], Any]] = [
        lambda: ledger.debit(charge("1")),
        lambda: zd.Ledger(other).debit(charge("1")),
        lambda: zd.Ledger(other),
        lambda: zd.Ledger(other, budget=1),
    ]
    ledger.debit(charge("1/2"))
    os.link(path, other)
    for use in uses:
        with pytest.raises(zd.errors.LedgerError, match=r"a second name \(a hard link\)"):
            use()
    os.unlink(other)
    assert ledger.spent == Fraction(1, 2)


def test_a_name_that_is_left_of_its_making_is_removed(path: str, ledger: zd.Ledger) -> None:
    """Whoever made it was killed before that."""
    close_all()
    left = path + ".4711.00ff.new"
    os.link(path, left)
    other = Path(path + ".4711.00fe.new")
    other.write_text("another file")
    assert ledger.spent == 0
    assert not os.path.exists(left)
    assert other.read_text() == "another file"


def test_others_may_write_while_one_catches_up(
    path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is new to a long ledger holds nobody up while it checks all of it."""
    for _ in range(150):
        ledger.debit(charge())
    as_a_new_process()
    checked: list[int] = []
    real = Balances.add

    def add(self: Balances, row: Any, find: Any) -> Any:
        if len(checked) % 50 == 10:
            other = sqlite3.connect(path, isolation_level=None, timeout=0)
            other.execute("BEGIN IMMEDIATE")  # raises if it has to wait
            other.execute("ROLLBACK")
            other.close()
        checked.append(1)
        return real(self, row, find)

    monkeypatch.setattr(Balances, "add", add)
    ledger.debit(charge())
    assert len(checked) == 153
