"""A ledger in PostgreSQL, for teams: the same entries in a table that one writer at a time locks.

The owner of the tables may write any entry; everybody else debits, by the policies of the tables
(`postgres_tables.py`). A server that says nothing for longer than anything may take is given up.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, final
from urllib.parse import quote

from zerodelta.errors import LedgerError, require_extra
from zerodelta.ledger.addresses import schema_of, secrets_of
from zerodelta.ledger.chain import Row, damaged
from zerodelta.ledger.postgres_tables import tables_in
from zerodelta.ledger.store import Store

__all__ = ["PostgresStore", "make_tables"]

_PATIENCE = 120
"""Seconds to wait for a lock."""
_CONNECTING = 20
"""Seconds to wait for a connection."""
_DEADLINE = 180.0
"""Seconds after which a statement is given up that the server has not answered, from here."""
_MAKING = 0x7A646C67
"""The lock that whoever makes the tables holds."""
_WRITING = 0x7A646C68
"""The lock that whoever writes an entry holds, with the number of the table."""

_SETTINGS = (
    ("synchronous_commit", "on"),
    ("lock_timeout", f"{_PATIENCE}s"),
    ("statement_timeout", f"{_PATIENCE + 30}s"),  # the server gives up first, if it can
    ("idle_in_transaction_session_timeout", "60s"),  # others need not wait for one who is gone
    ("search_path", "pg_catalog, pg_temp"),  # all else is named with its schema
)
_LINE = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_COLUMNS = "number, question, body, hash"


@final
class PostgresStore(Store):
    """The entries in one database."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        schema = _schema(url)
        self._entry, self._saved, self._file = (
            f"{schema}.zerodelta_{name}" for name in ("entry", "saved", "file")
        )
        self._connection = _connect(url)
        with _said_plainly(url):
            # a number of 32 bits without a sign, as one that has it
            self._table = self._one(
                "SELECT to_regclass(%s)::oid::bigint::bit(32)::int",
                self._entry,
            )
            if self._table is None:
                self.close()
                raise LedgerError(
                    f"there is no ledger at {url}: make it with zd.Ledger(url, budget=…)."
                )

    def usable(self) -> bool:
        """Tell whether the server still answers."""
        try:
            return not self._connection.closed and self._one("SELECT 1") == 1
        except Exception:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the only writer."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"  # sees what others wrote
        with _said_plainly(self.name), self._transaction(begin):
            # by a lock that needs no right to change or delete entries, as a lock of the table does
            self._run("SELECT pg_advisory_xact_lock(%s, %s::int)", _WRITING, self._table)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a transaction that sees one state."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        with _said_plainly(self.name), self._transaction(begin):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._run(begin)
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            with suppress(Exception):
                self._run("ROLLBACK")
            raise

    def _run(self, asked: str, *values: Any) -> Any:
        return _executed(self._connection, asked, values)

    def _one(self, asked: str, *values: Any) -> Any:
        found = self._run(asked, *values).fetchone()
        return None if found is None else found[0]

    def rows(self, after: int) -> Iterator[Row]:
        """Yield the entries after this number, a few thousand at a time."""
        while True:
            found = self._run(
                f"SELECT {_COLUMNS} FROM {self._entry} WHERE number > %s "
                "ORDER BY number LIMIT 5000",
                after,
            ).fetchall()
            yield from found
            if len(found) < 5000:
                return
            after = found[-1][0]

    def find(self, number: int) -> Row | None:
        """Return one entry."""
        asked = f"SELECT {_COLUMNS} FROM {self._entry} WHERE number = %s"
        found: Row | None = self._run(asked, number).fetchone()
        return found

    def last(self) -> int:
        """Return the number of the latest entry."""
        with _said_plainly(self.name):
            number: int = self._one(f"SELECT coalesce(max(number), 0) FROM {self._entry}")
        return number

    def asked(self, question: str) -> list[int]:
        """Return the entries of a question."""
        asked = f"SELECT number FROM {self._entry} WHERE question = %s ORDER BY number DESC"
        return [number for (number,) in self._run(asked, question)]

    def insert(self, row: Row) -> None:
        """Write an entry."""
        self._run(f"INSERT INTO {self._entry} VALUES (%s, %s, %s, %s)", *row)

    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Write down where a release was saved."""
        self._run(f"INSERT INTO {self._saved} VALUES (%s, %s, %s)", number, place, digest)

    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return where a release was saved."""
        asked = f"SELECT place, digest FROM {self._saved} WHERE number = %s ORDER BY place_number"
        return [(str(p), str(d)) for p, d in self._run(asked, number)]

    def note_file(self, data: str, mac: str) -> None:
        """Write down the keyed hash of a file."""
        self._run(f"INSERT INTO {self._file} VALUES (%s, %s)", data, mac)

    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""
        asked = f"SELECT mac FROM {self._file} WHERE data = %s"
        return [str(mac) for (mac,) in self._run(asked, data)]

    def data_of(self, mac: str) -> list[str]:
        """Return the data sets that have a file with this hash."""
        asked = f"SELECT data FROM {self._file} WHERE mac = %s"
        return [str(data) for (data,) in self._run(asked, mac)]

    def check(self) -> None:
        """Look at the number of entries; PostgreSQL checks its pages by itself."""
        with _said_plainly(self.name):
            most = self._one(f"SELECT max(number) - count(*) FROM {self._entry}")
        if most != 0:
            raise damaged(self.name, "entries are missing")

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._connection.close()


def make_tables(url: str, rows: Sequence[Row]) -> bool:
    """Make a ledger with its first entries; False if the database has one already."""
    schema, connection = _schema(url), _connect(url)
    try:
        with _said_plainly(url):
            _executed(connection, "BEGIN")
            _executed(connection, "SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            table = f"{schema}.zerodelta_entry"
            (there,) = _executed(
                connection, "SELECT to_regclass(%s) IS NOT NULL", (table,)
            ).fetchone()
            if there:
                return False
            for statement in tables_in(schema):
                _executed(connection, statement)
            for row in rows:
                _executed(connection, f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)
            _executed(connection, "COMMIT")
            return True
    finally:
        with suppress(Exception):
            connection.close()


def _schema(url: str) -> str:
    return f'"{schema_of(url)}"'


def _driver() -> Any:
    require_extra("psycopg", "postgres")
    return import_module("psycopg")


def _connect(url: str) -> Any:
    psycopg = _driver()
    with _said_plainly(url):
        connection: Any = psycopg.connect(
            url, autocommit=True, connect_timeout=_CONNECTING, **_LINE, **secrets_of(url)
        )
        for name, value in _SETTINGS:
            _executed(connection, "SELECT set_config(%s, %s, false)", (name, value))
        (synced,) = _executed(connection, "SHOW fsync").fetchone()
    if synced != "on":
        connection.close()
        raise LedgerError(
            f"the ledger {url} is on a server with fsync = {quote(synced)}: a power cut there may "
            "lose debits of releases that were made. Set fsync = on."
        )
    return connection


def _executed(connection: Any, asked: str, values: Sequence[Any] = ()) -> Any:
    """Run a statement; one that is not answered in time fails, whatever keeps the line open."""
    line = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)  # a copy
    watch = threading.Timer(_DEADLINE, _hang_up, [line])
    watch.daemon = True
    watch.start()
    try:
        return connection.execute(asked, values or None)
    finally:
        watch.cancel()
        watch.join()  # so that it does not hang up on another line with the same number
        line.close()


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def _said_plainly(url: str) -> Iterator[None]:
    """Turn the errors of the driver into ours, which repeat nothing of its text."""
    psycopg = _driver()
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        what = (
            "this user may not write that there. One who does not own its tables debits only, in "
            "an account of the user's own name that the owner opened (analyst=…), and needs GRANT "
            "SELECT, INSERT on them (docs/ledger.md)"
        )
    except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure):
        what = f"others have used it for {_PATIENCE} seconds: ask again, or look who does"
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
    ):
        what = (
            "the server does not answer, does not know this user or password, or has no room: "
            "check these (PGPASSWORD, .pgpass), and ask again"
        )
    except psycopg.Error:
        raise damaged(url, "PostgreSQL cannot read it") from None
    else:
        return
    raise LedgerError(
        f"the ledger {url} was not used: {what}. If the server went away in between, a debit may "
        "be written without a release: then ledger.history shows it."
    ) from None
