"""Keep a ledger in an SQLite file on a local disk, synced before a debit counts.

A new file is written under another name and linked to its own when it is complete, so that an
empty file is always a damaged one, never one that another process is creating.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import final
from urllib.parse import quote

from zerodelta.errors import LedgerError
from zerodelta.ledger.balances import FORMAT, Row, damaged, too_new
from zerodelta.ledger.store import Store

# -- Places where a file can be a ledger: on a disk of this machine, under one name only ----------
# SQLite keeps a log and shared memory in two files beside the ledger, named after it. Processes
# that see a different log see a different ledger, and could each spend what is left.

_LOCAL = ("ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "apfs")
"""File systems of one machine, whose processes share memory, as WAL needs."""

_ALLOWED = "ZERODELTA_FILE_SYSTEMS"
"""The environment variable that lists further file systems, separated by commas."""

_FILES = ("", "-wal", "-shm")


def file_system(path: str, mounts: str) -> str:
    """Return the type of the file system that holds a path, from the text of /proc/self/mounts.

    >>> file_system("/home/ana/x", "a / ext4 rw 0 0" + chr(10) + "b:/home /home nfs4 rw 0 0")
    'nfs4'
    """
    best, kind = "", ""
    for place, mounted_kind in _mounted(mounts):
        if f"{path}/".startswith(f"{place}/") and len(place) >= len(best):
            best, kind = place, mounted_kind
    return kind


def _mounted(mounts: str) -> Iterator[tuple[str, str]]:
    """Yield the mount points and types of the file systems in /proc/self/mounts."""
    for line in mounts.split("\n"):
        fields = line.split(" ")
        if len(fields) >= 3:  # spaces and backslashes in names are octal escapes
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
            yield place.rstrip("/"), fields[2]


def refuse_remote(path: str) -> None:
    """Refuse a path on a disk that two machines may share, and a file that is mounted by itself.

    Only Linux lists its mounts; elsewhere nothing is refused.
    """
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # not on Linux
        return
    kind = file_system(os.path.realpath(Path(path).parent), mounts)
    allowed = {name.strip() for name in os.environ.get(_ALLOWED, "").split(",")} - {""}
    if kind not in {*_LOCAL, *allowed}:
        raise LedgerError(
            f"the ledger {path} is on a file system that is not known to be local ({kind}): on a "
            "network disk two machines could both spend what is left. Use a local disk or "
            f"PostgreSQL; if this disk is local, set {_ALLOWED}={kind} (docs/ledger.md)."
        )
    if any(place == path for place, _ in _mounted(mounts)):
        raise LedgerError(
            f"the ledger {path} is mounted by itself, like a single file of a container: under its "
            "other name others could spend what is left once more. Instead, mount its folder."
        )


def refuse_links(path: str) -> None:
    """Refuse a file with a second hard link: under that name it would have another WAL."""
    if os.stat(path).st_nlink > 1:  # perhaps the name under which `make_file` wrote it
        for other in Path(path).parent.glob(f"{escape(Path(path).name)}.*.new"):
            with suppress(OSError):
                if other.samefile(path):
                    other.unlink()
    if os.stat(path).st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has a second name (a hard link), under which others could spend "
            "what is left once more: remove that name; find -samefile shows it."
        )


def identities(path: str) -> list[tuple[int, int] | None]:
    """Return device and inode of a ledger's three files, None for one that does not exist."""
    return [_identity(path + end) for end in _FILES]


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, None if it cannot be asked for."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_APPLICATION = 0x7A646C67
"""SQLite's application id in the header of the file: "zdlg" in ASCII."""

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

_COLUMNS = "number, question, body, hash"

_CHECKPOINT_SECONDS = 0.2
"""Seconds after which debits in the WAL are copied to the main file, too."""

_CHECKPOINT_PAGES = 64
"""Pages of the WAL after which they are copied, however soon that is."""

_ABANDONED: set[tuple[int, int] | None] = set()
"""Files to which this process has a connection that it can neither use nor close."""


@final
class SqliteStore(Store):
    """The entries of a ledger in one file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path, self._files, self._copied = path, identities(path), float("-inf")
        if self._files[0] in _ABANDONED:
            raise _replaced(path)
        _check_header(path)
        refuse_remote(path)
        with _in_plain_words(path):
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
        """Make writes durable; refuse a file that has other tables or was replaced while opened."""
        run = self._connection.execute
        settings = ("synchronous = FULL", "fullfsync = 1", "trusted_schema = 0")
        for setting in (*settings, f"wal_autocheckpoint = {_CHECKPOINT_PAGES}"):
            run(f"PRAGMA {setting}")
        (mode,) = run("PRAGMA journal_mode").fetchone()
        # database browsers add tables of statistics, which are harmless
        statement = "SELECT sql FROM sqlite_master WHERE type != 'table' OR name NOT IN (?, ?)"
        stored = sorted(sql for (sql,) in run(statement, ("sqlite_stat1", "sqlite_stat4")) if sql)
        if mode != "wal" or stored != sorted(_SCHEMA):
            self._connection.close()
            raise damaged(self._path, "its tables are not those that it was made with")
        opened, self._files = self._files[0], identities(self._path)
        if opened != self._files[0] or None in self._files:
            self._connection.close()
            raise _replaced(self._path)

    def usable(self) -> bool:
        """Tell whether the path still names the files that were opened, without a second link."""
        with suppress(OSError):
            return self._is_there() and os.stat(self._path).st_nlink == 1
        return False

    def _is_there(self) -> bool:
        return identities(self._path) == self._files

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction; fail if the file was replaced meanwhile."""
        with _in_plain_words(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            yield from self._until("COMMIT")
            if not self._is_there():  # others see another file, which lacks this entry
                raise _replaced(self._path)
            if time.monotonic() - self._copied > _CHECKPOINT_SECONDS:
                with suppress(sqlite3.Error):  # the debit is durable in the WAL already
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._copied = time.monotonic()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a read transaction."""
        with _in_plain_words(self._path):
            self._connection.execute("BEGIN")
            yield from self._until("ROLLBACK")

    def _until(self, end: str) -> Iterator[None]:
        """Hold the open transaction and end it by the statement `end`; roll back on any error."""
        try:
            yield
            self._connection.execute(end)
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have rolled the transaction back itself
                self._connection.execute("ROLLBACK")
            raise

    def rows(self, after: int) -> Iterator[Row]:
        """Yield the entries after this number."""
        statement = (
            "SELECT number, question, body, hash FROM entry WHERE number > ? ORDER BY number"
        )
        cursor = self._connection.execute(statement, (after,))
        while rows := cursor.fetchmany(1000):
            yield from rows

    def find(self, number: int) -> Row | None:
        """Return one entry."""
        statement = f"SELECT {_COLUMNS} FROM entry WHERE number = ?"
        row: Row | None = self._connection.execute(statement, (number,)).fetchone()
        return row

    def last(self) -> int:
        """Return the number of the latest entry."""
        with _in_plain_words(self._path):
            (number,) = self._connection.execute("SELECT max(number) FROM entry").fetchone()
        return number or 0

    def entries_of_question(self, question: str) -> list[int]:
        """Return the numbers of the entries that paid for a question."""
        statement = "SELECT number FROM entry WHERE question = ? ORDER BY number DESC"
        return [number for (number,) in self._connection.execute(statement, (question,))]

    def insert(self, row: Row) -> None:
        """Write an entry."""
        self._connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?)", row)

    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Note where a release was saved."""
        self._connection.execute("INSERT INTO saved VALUES (?, ?, ?)", (number, place, digest))

    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return the places and digests under which a release was saved."""
        statement = "SELECT place, digest FROM saved WHERE number = ? ORDER BY rowid"
        return [(str(p), str(d)) for p, d in self._connection.execute(statement, (number,))]

    def note_file(self, data: str, mac: str) -> None:
        """Note the keyed hash of a file."""
        self._connection.execute("INSERT INTO file VALUES (?, ?)", (data, mac))

    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""
        statement = "SELECT mac FROM file WHERE data = ?"
        return [str(mac) for (mac,) in self._connection.execute(statement, (data,))]

    def data_of(self, mac: str) -> list[str]:
        """Return the data sets that have a file with this hash."""
        statement = "SELECT data FROM file WHERE mac = ?"
        return [str(data) for (data,) in self._connection.execute(statement, (mac,))]

    def check(self) -> None:
        """Let SQLite check every page."""
        with _in_plain_words(self._path):
            (verdict,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(self._path, "pages of the file are damaged")

    def close(self) -> None:
        """Close the connection; leave it open for ever if its files were replaced.

        Closing it, SQLite would remove the log by name, and that log may be of a new ledger.
        """
        with suppress(sqlite3.Error):
            if self._is_there():
                self._connection.close()
                return
        _ABANDONED.add(self._files[0])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))


def make_file(path: str, rows: Sequence[Row]) -> bool:
    """Create a ledger with its first entries; return False if a file has that name already."""
    refuse_remote(path)
    if _refuse_orphaned_log(path):
        return False
    new_path = f"{path}.{os.getpid()}.{secrets.token_hex(4)}.new"
    try:
        with _in_plain_words(path):
            os.close(os.open(new_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(new_path, isolation_level=None)) as connection:
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
            _sync(new_path)
            try:
                os.link(new_path, path)
            except FileExistsError:
                return False
            _sync(str(Path(path).parent))
            return True
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(new_path + end)


def _refuse_orphaned_log(path: str) -> bool:
    """Refuse a name that still has the log of a removed ledger; tell whether a ledger is there.

    SQLite would take the entries of that log for changes of the new file.
    """
    logs = [path + end for end in ("-wal", "-shm", "-journal") if os.path.lexists(path + end)]
    if logs and not os.path.lexists(path):  # checked in this order: a log comes after its ledger
        raise LedgerError(
            f"the ledger {path} cannot be created: beside it lies {os.path.basename(logs[0])}, "
            "the log of a ledger that is gone. Put that one back, or choose another name."
        )
    return bool(logs)


def _check_header(path: str) -> None:
    """Refuse a file whose first bytes are not those of a ledger, before SQLite opens it."""
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise _plain_error(path, error) from None
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
        "it, was removed or replaced while this process used it. No row was read; a debit may be "
        "written. Leave these files alone, and ask in a new process (docs/ledger.md)."
    )


@contextmanager
def _in_plain_words(path: str) -> Iterator[None]:
    """Replace errors of SQLite and the system by `LedgerError`s, which say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _plain_error(path, error) from None


def _plain_error(path: str, error: Exception) -> LedgerError:
    """Return a SQLite error as a LedgerError with reason and remedy."""
    text = str(error)
    if isinstance(error, FileNotFoundError):
        reason = "it does not exist: create it with zd.Ledger(path, budget=…), or check the path"
    elif isinstance(error, PermissionError) or "readonly" in text or "unable to open" in text:
        reason = "it, or its folder, is not writable: give this user the right to write both"
    elif "full" in text or "I/O" in text or isinstance(error, OSError):
        reason = "the disk is full or does not work: free some space, and try again"
    elif "locked" in text or "busy" in text:
        reason = f"others have used it for {_PATIENCE:g} seconds: try again, or see who uses it"
    else:
        return damaged(path, "SQLite cannot read it")
    return LedgerError(f"the ledger {path} was not changed: {reason}.")


def _sync(path: str) -> None:
    """Flush a file, or the names in a folder, to the disk, so that a power cut keeps them."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
