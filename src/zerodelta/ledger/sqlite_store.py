"""A ledger in a file: SQLite in WAL mode, every transaction synced to the disk before it counts.

The file is made elsewhere and linked to its name when it is complete, so that a file which is
there and empty is one that was damaged, never one that is being made.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import final
from urllib.parse import quote

from zerodelta.errors import LedgerError
from zerodelta.ledger.balances import too_new
from zerodelta.ledger.chain import FORMAT, Row, damaged
from zerodelta.ledger.local_files import identities, refuse_links, refuse_remote
from zerodelta.ledger.store import Store

_APPLICATION = 0x7A646C67
"""Says "zdlg" in the header of the file."""

_PATIENCE = 120.0
"""Seconds to wait for other processes."""

_SCHEMA = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, question TEXT, body TEXT NOT NULL, "
    "hash TEXT NOT NULL)",
    "CREATE INDEX asked ON entry (question) WHERE question IS NOT NULL",
    "CREATE TABLE saved (number INTEGER NOT NULL, place TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE INDEX places ON saved (number)",
    "CREATE TABLE file (data TEXT NOT NULL, mac TEXT NOT NULL)",
)

_SOON = 0.2
"""Seconds after which a debit is written to the file itself, too, not to the WAL alone."""

_MANY = 64
"""Pages of the WAL after which it is, however soon that is."""

_LEFT: set[tuple[int, int] | None] = set()
"""Files to which this process has a connection that it can neither use nor close."""


@final
class SqliteStore(Store):
    """The entries in one file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path, self._files, self._copied = path, identities(path), float("-inf")
        if self._files[0] in _LEFT:
            raise _replaced(path)
        _check_header(path)
        refuse_remote(path)
        with _said_plainly(path):
            refuse_links(path)
            self._connection = sqlite3.connect(
                f"file:{quote(path)}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=_PATIENCE,
                check_same_thread=False,  # one thread at a time: `using`
            )
            self._prepare()

    def _prepare(self) -> None:
        run = self._connection.execute
        settings = ("synchronous = FULL", "fullfsync = 1", "trusted_schema = 0")
        for setting in (*settings, f"wal_autocheckpoint = {_MANY}"):
            run(f"PRAGMA {setting}")
        (mode,) = run("PRAGMA journal_mode").fetchone()
        # tools that browse a file leave statistics in it, which say nothing of entries
        asked = "SELECT sql FROM sqlite_master WHERE type != 'table' OR name NOT IN (?, ?)"
        stored = sorted(sql for (sql,) in run(asked, ("sqlite_stat1", "sqlite_stat4")) if sql)
        if mode != "wal" or stored != sorted(_SCHEMA):
            self._connection.close()
            raise damaged(self._path, "its tables are not those that it was made with")
        opened, self._files = self._files[0], identities(self._path)
        if opened != self._files[0] or None in self._files:
            self._connection.close()
            raise _replaced(self._path)

    def usable(self) -> bool:
        """Tell whether the files at the path are those that were opened, under no other name."""
        with suppress(OSError):
            return self._is_there() and os.stat(self._path).st_nlink == 1
        return False

    def _is_there(self) -> bool:
        return identities(self._path) == self._files

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction."""
        with _said_plainly(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            yield from self._until("COMMIT")
            if not self._is_there():  # others see another file, where this is not written
                raise _replaced(self._path)
            if time.monotonic() - self._copied > _SOON:
                with suppress(sqlite3.Error):  # it counts already
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._copied = time.monotonic()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a read transaction."""
        with _said_plainly(self._path):
            self._connection.execute("BEGIN")
            yield from self._until("ROLLBACK")

    def _until(self, end: str) -> Iterator[None]:
        try:
            yield
            self._connection.execute(end)
        except BaseException:
            with suppress(sqlite3.Error):  # of a transaction that SQLite has rolled back itself
                self._connection.execute("ROLLBACK")
            raise

    def rows(self, after: int) -> Iterator[Row]:
        """Yield the entries after this number."""
        asked = "SELECT number, question, body, hash FROM entry WHERE number > ? ORDER BY number"
        found = self._connection.execute(asked, (after,))
        while rows := found.fetchmany(1000):
            yield from rows

    def find(self, number: int) -> Row | None:
        """Return one entry."""
        asked = "SELECT number, question, body, hash FROM entry WHERE number = ?"
        found: Row | None = self._connection.execute(asked, (number,)).fetchone()
        return found

    def last(self) -> int:
        """Return the number of the latest entry."""
        with _said_plainly(self._path):
            (number,) = self._connection.execute("SELECT max(number) FROM entry").fetchone()
        return number or 0

    def asked(self, question: str) -> list[int]:
        """Return the entries of a question."""
        asked = "SELECT number FROM entry WHERE question = ? ORDER BY number DESC"
        return [number for (number,) in self._connection.execute(asked, (question,))]

    def insert(self, row: Row) -> None:
        """Write an entry."""
        self._connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)

    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Write down where a release was saved."""
        self._connection.execute("INSERT INTO saved VALUES (?, ?, ?)", (number, place, digest))

    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return where a release was saved."""
        asked = "SELECT place, digest FROM saved WHERE number = ? ORDER BY rowid"
        return [(str(p), str(d)) for p, d in self._connection.execute(asked, (number,))]

    def note_file(self, data: str, mac: str) -> None:
        """Write down the keyed hash of a file."""
        self._connection.execute("INSERT INTO file VALUES (?, ?)", (data, mac))

    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""
        asked = "SELECT mac FROM file WHERE data = ?"
        return [str(mac) for (mac,) in self._connection.execute(asked, (data,))]

    def data_of(self, mac: str) -> list[str]:
        """Return the data sets that have a file with this hash."""
        asked = "SELECT data FROM file WHERE mac = ?"
        return [str(data) for (data,) in self._connection.execute(asked, (mac,))]

    def check(self) -> None:
        """Let SQLite look at every page."""
        with _said_plainly(self._path):
            (said,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if said != "ok":
            raise damaged(self._path, "pages of the file are damaged")

    def close(self) -> None:
        """Close the connection; one whose files are others now is left open for ever.

        To close it SQLite would remove by its name a log that others write to by now.
        """
        with suppress(sqlite3.Error):
            if self._is_there():
                self._connection.close()
                return
        _LEFT.add(self._files[0])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))


def make_file(path: str, rows: Sequence[Row]) -> bool:
    """Make a ledger with its first entries; False if there is a file of that name already."""
    refuse_remote(path)
    if _refuse_left_over(path):
        return False
    made = f"{path}.{os.getpid()}.{secrets.token_hex(4)}.new"
    try:
        with _said_plainly(path):
            os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(made, isolation_level=None)) as connection:
                run = connection.execute
                run("PRAGMA synchronous = FULL")
                (mode,) = run("PRAGMA journal_mode = WAL").fetchone()
                if mode != "wal":
                    raise LedgerError(f"the ledger {path} cannot be made here: SQLite has no WAL.")
                run("BEGIN IMMEDIATE")
                run(f"PRAGMA application_id = {_APPLICATION}")
                run(f"PRAGMA user_version = {FORMAT}")
                for statement in _SCHEMA:
                    run(statement)
                for row in rows:
                    run("INSERT INTO entry VALUES (?, ?, ?, ?)", row)
                run("COMMIT")
            _sync(made)
            try:
                os.link(made, path)
            except FileExistsError:
                return False
            _sync(str(Path(path).parent))
            return True
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(made + end)


def _refuse_left_over(path: str) -> bool:
    """Refuse a name beside which another ledger's log lies; True if that ledger is there itself.

    SQLite would take what is in the log for changes of the new file.
    """
    left = [path + end for end in ("-wal", "-shm", "-journal") if os.path.lexists(path + end)]
    if left and not os.path.lexists(path):  # in this order: a log comes after its ledger
        raise LedgerError(
            f"the ledger {path} cannot be made: {os.path.basename(left[0])} lies there, with what "
            "was spent from a ledger that is gone. Put that one back, or choose another name."
        )
    return bool(left)


def _check_header(path: str) -> None:
    """Refuse what is no ledger by its first bytes, before SQLite looks at it."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise _plainly(path, error) from None
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise damaged(path, "the file is no ledger, or was cut off")
    version = int.from_bytes(head[60:64], "big")
    if int.from_bytes(head[68:72], "big") != _APPLICATION or version < 1:
        raise damaged(path, "the file is a database of something else")
    if version > FORMAT:
        raise too_new(path)


def _replaced(path: str) -> LedgerError:
    return LedgerError(
        f"the ledger {path} cannot be trusted: it, or {os.path.basename(path)}-wal or -shm beside "
        "it, was removed or replaced while this process used it. Nothing was read; a debit may be "
        "written. Leave these files alone, and ask in a new process (docs/ledger.md)."
    )


@contextmanager
def _said_plainly(path: str) -> Iterator[None]:
    """Turn the errors of SQLite and the system into ours, which say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _plainly(path, error) from None


def _plainly(path: str, error: Exception) -> LedgerError:
    said = str(error)
    if isinstance(error, FileNotFoundError):
        what = "there is none: make it with zd.Ledger(path, budget=…), or check the path"
    elif isinstance(error, PermissionError) or "readonly" in said or "unable to open" in said:
        what = "it, or its folder, cannot be written to: give this user the right to write both"
    elif "full" in said or "I/O" in said or isinstance(error, OSError):
        what = "the disk is full or does not work: make room for it, and ask again"
    elif "locked" in said or "busy" in said:
        what = f"others have used it for {_PATIENCE:g} seconds: ask again, or look who does"
    else:
        return damaged(path, "SQLite cannot read it")
    return LedgerError(f"the ledger {path} was not changed: {what}.")


def _sync(path: str) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
