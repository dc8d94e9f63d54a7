"""A ledger in a file on a disk of this machine: SQLite, synced before a debit counts.

The file is made elsewhere and linked to its name when it is complete, so that a file which is
there and empty is one that was damaged, never one that is being made.
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

# -- Whether a file can be a ledger where it is: on a disk of this machine, under one name only ---
# SQLite keeps a log and a memory beside a file, by its name. Processes that see others of these
# see another ledger, and would each spend what is left.

_LOCAL = ("ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "apfs")
"""File systems of one machine, whose processes share memory, as WAL needs."""

_ALLOWED = "ZERODELTA_FILE_SYSTEMS"
"""The variable of the environment that names others, separated by commas."""

_FILES = ("", "-wal", "-shm")


def file_system(path: str, mounts: str) -> str:
    """Return the kind of file system that a path is on, by the text of /proc/self/mounts.

    >>> file_system("/home/ana/x", "a / ext4 rw 0 0" + chr(10) + "b:/home /home nfs4 rw 0 0")
    'nfs4'
    """
    best, kind = "", ""
    for place, found in _mounted(mounts):
        if f"{path}/".startswith(f"{place}/") and len(place) >= len(best):
            best, kind = place, found
    return kind


def _mounted(mounts: str) -> Iterator[tuple[str, str]]:
    """Yield where file systems are mounted, and their kinds."""
    for line in mounts.split("\n"):
        fields = line.split(" ")
        if len(fields) >= 3:  # blanks and backslashes in names are octal
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
            yield place.rstrip("/"), fields[2]


def refuse_remote(path: str) -> None:
    """Refuse a place that two machines may share, and a file that is mounted by itself.

    Where the system does not tell, nobody does.
    """
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # not on Linux
        return
    kind = file_system(os.path.realpath(Path(path).parent), mounts)
    allowed = {each.strip() for each in os.environ.get(_ALLOWED, "").split(",")} - {""}
    if kind not in {*_LOCAL, *allowed}:
        raise LedgerError(
            f"the ledger {path} is on a file system that is not known to be of this machine only "
            f"({kind}): on one of a network two machines may both spend what is left. Use a local "
            f"disk, or PostgreSQL; or, of a local disk, {_ALLOWED}={kind} (docs/ledger.md)."
        )
    if any(place == path for place, _ in _mounted(mounts)):
        raise LedgerError(
            f"the ledger {path} is mounted by itself, as a file that a container is given is: by "
            "its other name others could spend what is left once more. Instead, mount its folder."
        )


def refuse_links(path: str) -> None:
    """Refuse a file with a second name: under that one it would have another WAL."""
    if os.stat(path).st_nlink > 1:  # one that whoever makes it has not removed yet?
        for other in Path(path).parent.glob(f"{escape(Path(path).name)}.*.new"):
            with suppress(OSError):
                if other.samefile(path):
                    other.unlink()
    if os.stat(path).st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has a second name (a hard link), under which others could spend "
            "what is left once more: remove that name, which find -samefile shows."
        )


def identities(path: str) -> list[tuple[int, int] | None]:
    """Return which files stand under a ledger's names."""
    return [_identity(path + end) for end in _FILES]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
