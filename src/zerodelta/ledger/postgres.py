"""A ledger in PostgreSQL, for teams: its tables, who may do what, and the line to the server.

The owner of the tables may write any entry; everybody else debits, by the policies of the tables
(`postgres_tables.py`).
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, final
from urllib.parse import quote

from zerodelta.errors import LedgerError, require_extra
from zerodelta.ledger.balances import Row, damaged
from zerodelta.ledger.store import Store, schema_of, secrets_of

# -- The line to a PostgreSQL server: what it must promise, and when it is given up ---------------
# TCP knows when a machine is gone. It does not know when a server that is still there says nothing
# any more, and keeps the line open for ever: so each statement has a time until which it is
# answered.

_PATIENCE = 120
"""Seconds to wait for a lock."""
_CONNECTING = 20
"""Seconds to wait for a connection."""
_DEADLINE = 180.0
"""Seconds after which a statement is given up that the server has not answered, from here."""
_LOOK = 0.5
"""Seconds between two looks at whether that time has come."""

_SETTINGS = (
    ("synchronous_commit", "on"),
    ("lock_timeout", f"{_PATIENCE}s"),
    ("statement_timeout", f"{_PATIENCE + 30}s"),  # the server gives up first, if it can
    ("idle_in_transaction_session_timeout", "60s"),  # others need not wait for one who is gone
    ("search_path", "pg_catalog, pg_temp"),  # all else is named with its schema
)
_TCP = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


@final
class Connection:
    """A connection that is hung up when the server has said nothing for too long."""

    def __init__(self, url: str) -> None:
        with said_plainly(url):
            self._connection: Any = _driver().connect(
                url, autocommit=True, connect_timeout=_CONNECTING, **_TCP, **secrets_of(url)
            )
            # of any kind of socket: it is shut down only
            self._copy = socket.fromfd(
                self._connection.fileno(), socket.AF_INET, socket.SOCK_STREAM
            )
            self._until, self._closed = math.inf, threading.Event()
            threading.Thread(target=self._watch, name="zerodelta-ledger", daemon=True).start()
            try:
                for name, value in _SETTINGS:
                    self.run("SELECT set_config(%s, %s, false)", (name, value))
                (synced,) = self.run("SHOW fsync").fetchone()
            except BaseException:
                self.close()
                raise
        if synced != "on":
            self.close()
            raise LedgerError(
                f"the ledger {url} is on a server with fsync = {quote(synced)}: a power cut there "
                "may lose debits of releases that were made. Set fsync = on."
            )

    @property
    def open(self) -> bool:
        """Whether nobody has closed it, as far as is known here."""
        return not self._connection.closed

    def run(self, asked: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; one that is not answered in time fails."""
        self._until = time.monotonic() + _DEADLINE
        try:
            return self._connection.execute(asked, values or None)
        finally:
            self._until = math.inf

    def _watch(self) -> None:
        with self._copy:
            while not self._closed.wait(_LOOK):
                if time.monotonic() > self._until:
                    with suppress(OSError):
                        self._copy.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        with suppress(Exception):
            self._connection.close()


def _driver() -> Any:
    require_extra("psycopg", "postgres")
    return import_module("psycopg")


@contextmanager
def said_plainly(url: str) -> Iterator[None]:
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


# -- The tables of a ledger in PostgreSQL, and what the policies of their rows let others do ------
# Whoever owns the tables writes any entry. Everybody else, given SELECT and INSERT, writes debits
# of ε > 0 and no other entries: the next one in the chain, in an account of one's own name that
# the owner has opened. So an analyst raises no budget, opens no account, and takes no debit back.

_POSITIVE = "~ '^0*[1-9][0-9]*(/0*[1-9][0-9]*)?$'"

_TABLES = (
    "CREATE TABLE {0}.zerodelta_entry (number bigint PRIMARY KEY, question text, "
    "body text NOT NULL, hash text NOT NULL)",
    "CREATE INDEX zerodelta_asked ON {0}.zerodelta_entry (question) WHERE question IS NOT NULL",
    "CREATE INDEX zerodelta_account ON {0}.zerodelta_entry "
    "((body::jsonb ->> 'data'), (body::jsonb ->> 'analyst')) WHERE body::jsonb ->> 'kind' = "
    "'account'",
    "CREATE TABLE {0}.zerodelta_saved (number bigint NOT NULL, place text NOT NULL, "
    "digest text NOT NULL, place_number bigint GENERATED ALWAYS AS IDENTITY)",
    "CREATE INDEX zerodelta_places ON {0}.zerodelta_saved (number)",
    "CREATE TABLE {0}.zerodelta_file (data text NOT NULL, mac text NOT NULL)",
)

_DEBIT = f"""
    body::jsonb ->> 'kind' = 'debit'
    AND body::jsonb ->> 'analyst' = current_user
    AND body::jsonb ->> 'number' = number::text
    AND body::jsonb ->> 'epsilon' {_POSITIVE}
    AND body::jsonb ->> 'booked' {_POSITIVE}
    AND question IS NOT DISTINCT FROM body::jsonb ->> 'question'
    AND EXISTS (
        SELECT FROM {{0}}.zerodelta_entry opened
        WHERE opened.body::jsonb ->> 'kind' = 'account'
        AND opened.body::jsonb ->> 'data' = zerodelta_entry.body::jsonb ->> 'data'
        AND opened.body::jsonb ->> 'analyst' = current_user)
    AND hash = (
        SELECT encode(sha256(convert_to(
            earlier.hash || chr(10) || zerodelta_entry.body, 'UTF8')), 'hex')
        FROM {{0}}.zerodelta_entry earlier WHERE earlier.number = zerodelta_entry.number - 1)
"""
"""What is known of a row without adding anything up; the rest is found by whoever reads it."""

_OWN = """
    EXISTS (SELECT FROM {0}.zerodelta_entry paid WHERE paid.number = zerodelta_saved.number
    AND paid.body::jsonb ->> 'analyst' = current_user)
"""

_POLICIES = (
    *(
        f"ALTER TABLE {{0}}.zerodelta_{name} ENABLE ROW LEVEL SECURITY"
        for name in ("entry", "saved", "file")
    ),
    *(
        f"CREATE POLICY zerodelta_read ON {{0}}.zerodelta_{name} FOR SELECT USING (true)"
        for name in ("entry", "saved")
    ),
    f"CREATE POLICY zerodelta_debit ON {{0}}.zerodelta_entry FOR INSERT WITH CHECK ({_DEBIT})",
    f"CREATE POLICY zerodelta_own ON {{0}}.zerodelta_saved FOR INSERT WITH CHECK ({_OWN})",
)


def tables_in(schema: str) -> list[str]:
    """Return the statements that make the tables in a schema, which is a quoted name."""
    return [each.format(schema) for each in (*_TABLES, *_POLICIES)]


_MAKING = 0x7A646C67
"""The lock that whoever makes the tables holds."""
_WRITING = 0x7A646C68
"""The lock that whoever writes an entry holds, with the number of the table."""

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
        self._line = Connection(url)
        with said_plainly(url):
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
            return self._line.open and self._one("SELECT 1") == 1
        except Exception:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the only writer."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"  # sees what others wrote
        with said_plainly(self.name), self._transaction(begin):
            # by a lock that needs no right to change or delete entries, as a lock of the table does
            self._run("SELECT pg_advisory_xact_lock(%s, %s::int)", _WRITING, self._table)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a transaction that sees one state."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        with said_plainly(self.name), self._transaction(begin):
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
        return self._line.run(asked, values)

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
        with said_plainly(self.name):
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
        with said_plainly(self.name):
            most = self._one(f"SELECT max(number) - count(*) FROM {self._entry}")
        if most != 0:
            raise damaged(self.name, "entries are missing")

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


def make_tables(url: str, rows: Sequence[Row]) -> bool:
    """Make a ledger with its first entries; False if the database has one already."""
    schema, line = _schema(url), Connection(url)
    table = f"{schema}.zerodelta_entry"
    try:
        with said_plainly(url):
            line.run("BEGIN")
            line.run("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            (there,) = line.run("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
            if there:
                return False
            for statement in tables_in(schema):
                line.run(statement)
            for row in rows:
                line.run(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)
            line.run("COMMIT")
            return True
    finally:
        line.close()


def _schema(url: str) -> str:
    return f'"{schema_of(url)}"'
