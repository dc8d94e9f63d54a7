"""A ledger that is not what it was is refused, left as it is, and the message says what to do."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from ledger.spenders import EPSILON, as_a_new_process, charge, in_a_process
from zerodelta.ledger import balances as chain
from zerodelta.ledger import sqlite as sqlite_store
from zerodelta.ledger.balances import START, seal
from zerodelta.ledger.sqlite import file_system
from zerodelta.ledger.store import close_all


@pytest.fixture
def written(path: str) -> Path:
    """A closed ledger with twenty debits, one of them taken back, and an analyst."""
    ledger = zd.Ledger(path, budget=1)
    receipts = [ledger.debit(charge(question=f"q{k}")) for k in range(20)]
    ledger._take_back(receipts[3], "an error")
    ledger.account(analyst="ana", budget="1/2")
    as_a_new_process()
    assert not Path(path + "-wal").exists()
    return Path(path)


def refused(path: Path, match: str, *, verify: bool = False) -> None:
    """It is refused whichever way it is asked, and nothing of it changes."""
    before = hashlib.sha256(path.read_bytes()).digest()

    def asked() -> list[Callable[[], Any]]:
        made = zd.Ledger.__new__(zd.Ledger)
        made._address, made._data, made._analyst = str(path), "data", None
        spend = [lambda: made.debit(charge()), lambda: made.remaining, lambda: zd.Ledger(path)]
        return [*([] if verify else spend), made.verify]

    for ask in asked():
        with pytest.raises(zd.errors.LedgerError, match=match):
            ask()
        as_a_new_process()
    assert hashlib.sha256(path.read_bytes()).digest() == before


def edited(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


ADVICE = "restore the latest backup"


@pytest.mark.parametrize(
    "edit",
    [
        """UPDATE entry SET body = replace(body, '"booked":"1/1000"', '"booked":"1/2000"')""",
        "UPDATE entry SET hash = upper(hash) WHERE number = 7",
        "UPDATE entry SET question = 'other' WHERE number = 7",
        "UPDATE entry SET question = NULL WHERE number = 7",
        "DELETE FROM entry WHERE number = 9",
        "UPDATE entry SET number = 99 WHERE number = 9",
        "UPDATE entry SET body = X'00ff' WHERE number = 9",
        "DELETE FROM entry",
        "DROP INDEX asked",
        "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE number > 2; END",
        "ALTER TABLE entry ADD COLUMN more TEXT",
    ],
)
def test_what_is_edited_by_hand_is_found(written: Path, edit: str) -> None:
    edited(written, edit)
    refused(written, ADVICE)


def test_an_edit_with_a_new_hash_is_found_by_the_next_entry(written: Path) -> None:
    with sqlite3.connect(written) as connection:
        rows = dict(connection.execute("SELECT number, body FROM entry"))
        (before,) = connection.execute("SELECT hash FROM entry WHERE number = 6").fetchone()
        body = json.loads(rows[7]) | {"booked": "1/9000", "epsilon": "1/9000"}
        _, _, text, sealed = seal(7, body, before)
        connection.execute("UPDATE entry SET body = ?, hash = ? WHERE number = 7", (text, sealed))
    connection.close()
    refused(written, "entry 8 does not fit its hash")


OF = {"data": "data", "analyst": None, "time": "9999-01-01T00:00:00Z"}
DEBIT = {
    **OF,
    "kind": "debit",
    "task": "mean()",
    "epsilon": "1/1000",
    "neighbors": "replace",
    "unit": None,
    "booked": "1/1000",
    "question": None,
    "certificate": "",
    "record": "",
}
RETURN = {**OF, "kind": "return", "booked": "1/1000", "of": 7, "reason": "why"}
RAISE = {**OF, "kind": "raise", "limit": "2", "reason": "why"}
ACCOUNT = {**OF, "kind": "account", "limit": "1", "neighbors": "replace", "unit": None}


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in body.items() if each != name}


def appended(path: Path, body: Any) -> None:
    """Write one more entry as whoever knows how to seal one can."""
    with sqlite3.connect(path) as connection:
        number, before = connection.execute(
            "SELECT number, hash FROM entry ORDER BY number DESC LIMIT 1"
        ).fetchone()
        row = seal(number + 1, body, before)
        connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)
    connection.close()


@pytest.mark.parametrize(
    "body",
    [DEBIT, RETURN, RAISE, {**ACCOUNT, "data": "other"}, {**ACCOUNT, "analyst": "bob"}],
)
def test_what_makes_sense_is_added_up(written: Path, body: dict[str, Any]) -> None:
    appended(written, body)
    assert zd.Ledger(written, data="data").verify() == 25


@pytest.mark.parametrize(
    "body",
    [
        {**DEBIT, "booked": "-1"},
        {**DEBIT, "booked": "1/0"},
        {**DEBIT, "booked": 1},
        {**DEBIT, "booked": "0", "epsilon": "0"},
        {**DEBIT, "data": "unknown"},
        {**DEBIT, "booked": "1/100000"},  # less than its ε
        {**DEBIT, "neighbors": "add-remove"},  # which counts twice
        {**DEBIT, "unit": "customer"},
        {**DEBIT, "booked": "1", "epsilon": "1"},  # more than is left
        {**DEBIT, "booked": "1e-3000000", "epsilon": "1e-3000000"},  # takes long to read
        {**DEBIT, "time": "1999-01-01T00:00:00Z"},
        {**DEBIT, "time": "later"},
        {**DEBIT, "time": 9999},
        {**DEBIT, "task": 3},
        *(without(DEBIT, name) for name in ("time", "task", "epsilon", "certificate", "record")),
        {**RETURN, "of": 6},  # once more
        {**RETURN, "booked": "1"},
        {**RETURN, "of": 2},
        {**RETURN, "of": 99},
        {**RETURN, "of": 10**30},
        {**RETURN, "of": float("inf")},
        {**RETURN, "of": "7"},
        {**ACCOUNT},  # once more: what was spent would be forgotten
        {**ACCOUNT, "data": "other", "limit": None},
        {**ACCOUNT, "analyst": "ana"},
        {**ACCOUNT, "data": "other", "analyst": "bob"},
        {**ACCOUNT, "analyst": "bob", "neighbors": "add-remove"},
        {**ACCOUNT, "analyst": "bob", "unit": "customer"},
        {**ACCOUNT, "analyst": ["ana"]},
        {**RAISE, "limit": "1/2"},
        {**RAISE, "limit": None},
        {**RAISE, "data": "unknown"},
        {"kind": "ledger", "format": 1, "id": "again", "time": OF["time"]},
        {**OF, "kind": "gift"},
        OF,
        {},
    ],
)
def test_sealed_nonsense_is_refused(written: Path, body: Any) -> None:
    """Whoever computes the hashes as we do still cannot write what may not be written."""
    appended(written, body)
    refused(written, ADVICE)


def test_a_log_of_another_ledger_is_not_taken_for_changes(tmp_path: Path) -> None:
    """SQLite would: so nothing is made beside it."""
    for end in ("-wal", "-shm", "-journal"):
        path = tmp_path / f"l{end}"
        left = Path(f"{path}{end}")
        left.write_bytes(b"what was spent")
        with pytest.raises(
            zd.errors.LedgerError, match="Put that one back, or choose another name"
        ):
            zd.Ledger(path, budget=1)
        assert not path.exists()
        assert left.read_bytes() == b"what was spent"


def test_a_later_format_is_refused(path: str, written: Path) -> None:
    edited(written, "PRAGMA user_version = 2")
    refused(written, "pip install --upgrade zerodelta")
    other = written.with_name("other.db")
    row = seal(1, {"kind": "ledger", "format": 2, "id": "x", "time": "2026"}, START)
    assert sqlite_store.make_file(str(other), [row])
    refused(other, "pip install --upgrade zerodelta")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 5000, bytes(5000)])
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    refused(path, "no ledger, or was cut off")
    with pytest.raises(zd.errors.LedgerError, match="no ledger"):
        zd.Ledger(path, budget=1)  # nor is it made anew
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    edited(path, "CREATE TABLE entry (number INTEGER)")
    refused(path, "a database of something else")


def test_a_truncated_file_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    page = 4096
    for pages in range(1, len(whole) // page):
        written.write_bytes(whole[: pages * page])
        refused(written, ADVICE)


def test_damaged_bytes_change_no_balance(written: Path) -> None:
    """A flipped byte is refused, or was in a place that says nothing (free space, a counter)."""
    whole = written.read_bytes()
    with zd_open(written) as ledger:
        spent, history = ledger.spent, list(ledger.history)
    chance = random.Random(3)
    found = 0
    for _ in range(150):
        place = chance.randrange(100, len(whole))
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        written.write_bytes(changed)
        with zd_open(written) as ledger:
            try:
                assert ledger.spent == spent
                assert list(ledger.history) == history
            except zd.errors.LedgerError:
                found += 1
    assert found > 20


class zd_open:  # noqa: N801
    """A ledger without a connection before or after."""

    def __init__(self, path: Path) -> None:
        self.ledger = zd.Ledger.__new__(zd.Ledger)
        self.ledger._address, self.ledger._data, self.ledger._analyst = str(path), "data", None

    def __enter__(self) -> zd.Ledger:
        as_a_new_process()
        return self.ledger

    def __exit__(self, *_: object) -> None:
        as_a_new_process()


def test_entries_that_vanish_while_it_is_open_are_missed(path: str, ledger: zd.Ledger) -> None:
    ledger.debit(charge())
    ledger.debit(charge())
    edited(Path(path), "DELETE FROM entry WHERE number = 4")
    with pytest.raises(zd.errors.LedgerError, match="was there and is not any more"):
        ledger.debit(charge())


def test_a_removed_end_is_found_by_records_only(written: Path, tmp_path: Path) -> None:
    ledger = zd.Ledger(written)
    receipt = ledger.debit(charge())
    as_a_new_process()
    edited(written, f"DELETE FROM entry WHERE number = {receipt.entry}")
    assert zd.Ledger(written).verify() == receipt.entry - 1
    saved = tmp_path / "income.json"
    saved.write_text(json.dumps({"value": 3, "record": {"debits": [receipt.to_json()]}}))
    for record in (receipt, receipt.to_json(), saved, str(saved), saved.read_text()):
        with pytest.raises(zd.errors.LedgerError, match="an old copy was put back"):
            zd.Ledger(written).verify(records=[record])
    other = zd.Ledger(tmp_path / "other.db", budget=1)
    with pytest.raises(zd.errors.LedgerError, match="another ledger"):
        other.verify(records=[receipt])
    for odd in (7, "no such file", "{"):
        with pytest.raises(zd.errors.LedgerError, match="record"):
            other.verify(records=[odd])


def test_another_file_at_the_path_is_another_ledger(path: str, ledger: zd.Ledger) -> None:
    ledger.debit(charge("1/2"))
    os.unlink(path)
    with pytest.raises(zd.errors.LedgerError, match="it does not exist"):
        ledger.debit(charge())
    for end in ("-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)
    with pytest.raises(zd.errors.LedgerError, match="another ledger is in its place"):
        zd.Ledger(path, budget=1)
    as_a_new_process()
    assert zd.Ledger(path, budget=1).spent == 0


FULL = """
import resource, sys, zerodelta as zd
from pathlib import Path
from ledger.spenders import charge
ledger = zd.Ledger(sys.argv[1])
ledger.debit(charge())
size = Path(sys.argv[1] + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + int(sys.argv[2]), -1))
told = 1
try:
    while True:
        ledger.debit(charge())
        told += 1
except zd.errors.LedgerError as error:
    print(told, error)
"""


@pytest.mark.parametrize("room", [0, 100, 5000, 50_000])
def test_a_full_disk_spends_nothing_and_says_so(path: str, ledger: zd.Ledger, room: int) -> None:
    as_a_new_process()
    told, _, said = in_a_process(FULL, path, room).partition(" ")
    assert "was not changed: the disk is full" in said
    assert int(told) * EPSILON <= ledger.spent <= (int(told) + 1) * EPSILON
    ledger.debit(charge())
    ledger.verify()


READ_ONLY = """
import os, sys, zerodelta as zd
from ledger.spenders import charge
Ledger = zd.Ledger
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
made = Ledger.__new__(Ledger)
made._address, made._data, made._analyst = sys.argv[1], "data", None
try:
    made.debit(charge())
except zd.errors.LedgerError as error:
    print(error)
"""


def test_a_read_only_file_is_said_so() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        ledger = zd.Ledger(path, budget=1)
        as_a_new_process()
        before = path.read_bytes()
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        try:
            assert "give this user the right to write both" in in_a_process(READ_ONLY, path)
        finally:
            os.chmod(folder, 0o755)
        assert path.read_bytes() == before
        os.chmod(path, 0o644)
        assert ledger.spent == 0
        as_a_new_process()


def test_a_ledger_is_its_owners(path: str, ledger: zd.Ledger) -> None:
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert [each.name for each in Path(path).parent.iterdir() if each.name.endswith(".new")] == []


def test_a_clock_that_goes_back_does_not(
    ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        years = iter([2030, 2020, 2031])

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(next(cls.years), 1, 1, tzinfo=timezone.utc)

    monkeypatch.setattr(chain, "datetime", Clock)
    times = [ledger.debit(charge()).time[:4] for _ in range(3)]
    assert times == ["2030", "2030", "2031"]
    assert ledger.spent == 3 * EPSILON
    assert ledger.verify() == 5


def test_a_file_system_that_may_be_on_a_network_is_refused(
    path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is named as local or it is not used: nobody can list all that are not."""
    monkeypatch.delenv("ZERODELTA_FILE_SYSTEMS", raising=False)
    for kind in ("nfs4", "cifs", "9p", "fuse.new", "fuseblk"):
        as_a_new_process()
        mounts = f"x / ext4 rw 0 0\nserver:/x {Path(path).parent} {kind} rw 0 0\n"
        monkeypatch.setattr(Path, "read_text", lambda *_, mounts=mounts, **__: mounts)
        for use in (lambda: ledger.spent, lambda: zd.Ledger(path + "2", budget=1)):
            said = rf"\({kind}\).*PostgreSQL.*ZERODELTA_FILE_SYSTEMS={kind}"
            with pytest.raises(zd.errors.LedgerError, match=said):
                use()
    monkeypatch.setenv("ZERODELTA_FILE_SYSTEMS", "bcachefs, fuseblk")
    assert ledger.spent == 0
    for kind in ("ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "apfs"):
        as_a_new_process()
        mounts = f"x {Path(path).parent} {kind} rw 0 0\n"
        monkeypatch.setattr(Path, "read_text", lambda *_, mounts=mounts, **__: mounts)
        assert ledger.spent == 0
    assert file_system("/home/ana/b", "a / ext4 rw\nb /home/an nfs rw\nc /home\\040x cifs rw") == (
        "ext4"
    )


@pytest.mark.parametrize("odd", [" ", "\t", "\n", "\\", "\x0c", "\u2028", "\udcff"])
def test_places_are_those_that_the_system_has_escaped(odd: str) -> None:
    """A server's files are not taken for a disk's because of the name of the folder."""
    written = {" ": "\\040", "\t": "\\011", "\n": "\\012", "\\": "\\134"}.get(odd, odd)
    mounts = f"x / ext4 rw 0 0\nserver:/x /srv/a{written}040b nfs4 rw 0 0\n"
    assert file_system(f"/srv/a{odd}040b/c", mounts) == "nfs4"
    assert file_system("/srv/a", mounts) == "ext4"


def test_names_of_places_are_read_as_the_bytes_they_are(
    path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_a_new_process()
    place = os.path.join(os.fsencode(Path(path).parent), b"\xff")
    os.mkdir(place)
    copy = os.path.join(place, b"x.db")
    shutil.copy(os.fsencode(path), copy)
    mounts = Path(path).with_name("mounts")
    mounts.write_bytes(b"x / ext4 rw 0 0\nserver:/x " + place + b" nfs4 rw 0 0\n")
    real = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda _, **how: real(mounts, **how))
    with pytest.raises(zd.errors.LedgerError, match=r"\(nfs4\)"):
        _ = zd.Ledger(os.fsdecode(copy)).spent


def test_a_file_that_is_mounted_by_itself_is_refused(
    path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that a container is given alone: it has another log under its other name."""
    as_a_new_process()
    mounted = f"x / ext4 rw 0 0\nx {path} ext4 rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: mounted)
    with pytest.raises(zd.errors.LedgerError, match=r"is mounted by itself.*mount its folder"):
        ledger.debit(charge())
    beside = f"x / ext4 rw 0 0\nx {path}2 ext4 rw 0 0\nx {Path(path).parent} ext4 rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: beside)
    ledger.debit(charge())
    assert ledger.spent == EPSILON


def test_patience_ends(path: str, ledger: zd.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_new_process()
    monkeypatch.setattr(sqlite_store, "_PATIENCE", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(zd.errors.LedgerError, match="others have used it"):
        ledger.debit(charge())
    holder.execute("ROLLBACK")
    holder.close()
    ledger.debit(charge())
    assert ledger.spent == EPSILON


@pytest.mark.parametrize("tool", ["ANALYZE", "PRAGMA optimize(0xfffe)", "VACUUM", "REINDEX"])
def test_what_tools_of_sqlite_note_in_a_file_damages_nothing(
    path: str, ledger: zd.Ledger, tool: str
) -> None:
    """Browsers of databases run these; statistics of tables stand in tables of SQLite's own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(tool)
    close_all()
    assert zd.Ledger(path).remaining == 1
    assert ledger.verify() == 2
