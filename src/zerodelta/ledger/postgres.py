"""Keep a ledger in PostgreSQL, for teams: the connection, the tables and their policies.

The owner of the tables may write any entry; the policies let all other users write debits only.
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

# -- The connection to a PostgreSQL server, and its deadline --------------------------------------
# TCP notices when a machine is gone. It does not notice a server that is still there but never
# answers, and would wait for ever: so each statement has a deadline.

_PATIENCE = 120
"""Seconds to wait for a lock."""
_CONNECTING = 20
"""Seconds to wait for a connection."""
_DEADLINE = 180.0
"""Seconds after which this process gives up a statement that the server has not answered."""
_LOOK = 0.5
"""Seconds between two checks of the deadline."""

_SETTINGS = (
    ("synchronous_commit", "on"),
    ("lock_timeout", f"{_PATIENCE}s"),
    (
        "statement_timeout",
        f"{_PATIENCE + 30}s",
    ),  # so the server gives up before `_DEADLINE`, if it can
    ("idle_in_transaction_session_timeout", "60s"),  # frees the lock of a client that is gone
    ("search_path", "pg_catalog, pg_temp"),  # the tables are always named with their schema
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
    """A connection that is shut down when the server does not answer before the deadline."""

    def __init__(self, url: str) -> None:
        with in_plain_words(url):
            self._connection: Any = _driver().connect(
                url, autocommit=True, connect_timeout=_CONNECTING, **_TCP, **secrets_of(url)
            )
            # only shutdown() is called on this copy, so its address family does not matter
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
                "may lose debits of releases that were already published. Set fsync = on."
            )

    @property
    def open(self) -> bool:
        """Whether this end of the connection is open."""
        return not self._connection.closed

    def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; fail if it is not answered before the deadline."""
        self._until = time.monotonic() + _DEADLINE
        try:
            return self._connection.execute(statement, values or None)
        finally:
            self._until = math.inf

    def _watch(self) -> None:
        """Close the socket once a statement is not answered before its deadline."""
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
def in_plain_words(url: str) -> Iterator[None]:
    """Replace errors of the driver by `LedgerError`s, which repeat nothing of their text."""
    psycopg = _driver()
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        reason = (
            "this user may not write that there. A user who does not own the tables may only debit "
            "an account of the user's own name that the owner opened (analyst=…), and needs GRANT "
            "SELECT, INSERT on the tables (docs/ledger.md)"
        )
    except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure):
        reason = f"others have used it for {_PATIENCE} seconds: try again, or see who uses it"
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
    ):
        reason = (
            "the server does not answer, does not know this user or password, or has no room: "
            "check these (PGPASSWORD, .pgpass), and try again"
        )
    except psycopg.Error:
        raise damaged(url, "PostgreSQL cannot read it") from None
    else:
        return
    raise LedgerError(
        f"the ledger {url} was not used: {reason}. If the connection broke on the way, a debit may "
        "be written without a release: then ledger.history shows it."
    ) from None


# -- The tables of a ledger in PostgreSQL, and the policies of their rows --------------------------
# The owner of the tables may write any entry. All other users, with SELECT and INSERT, may write
# debits of ε > 0 only: the next entry of the chain, in an account of their own name that the owner
# has opened. So an analyst cannot raise a budget, open an account, or take a debit back.

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
"""The checks that need no sums; `Balances` checks the rest when it reads the entry."""

_OF_OWN_DEBIT = """
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
    f"CREATE POLICY zerodelta_own ON {{0}}.zerodelta_saved FOR INSERT WITH CHECK ({_OF_OWN_DEBIT})",
)


def tables_in(schema: str) -> list[str]:
    """Return the statements that create the tables in a schema, which is a quoted name."""
    return [statement.format(schema) for statement in (*_TABLES, *_POLICIES)]


_MAKING = 0x7A646C67
"""Number of the advisory lock held while tables are created."""
_WRITING = 0x7A646C68
"""Number of the advisory lock held while an entry is written, beside the number of the table."""

_COLUMNS = "number, question, body, hash"


@final
class PostgresStore(Store):
    """The entries of a ledger in one database."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        schema = _schema(url)
        self._entry, self._saved, self._file = (
            f"{schema}.zerodelta_{name}" for name in ("entry", "saved", "file")
        )
        self._connection = Connection(url)
        with in_plain_words(url):
            # the table's oid, an unsigned integer of 32 bits, as the signed one that locks take
            self._table = self._one(
                "SELECT to_regclass(%s)::oid::bigint::bit(32)::int",
                self._entry,
            )
            if self._table is None:
                self.close()
                raise LedgerError(
                    f"there is no ledger at {url}: create it with zd.Ledger(url, budget=…)."
                )

    def usable(self) -> bool:
        """Tell whether the server still answers."""
        try:
            return self._connection.open and self._one("SELECT 1") == 1
        except Exception:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the only writer, in a transaction that sees what others wrote."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"  # sees what others wrote
        with in_plain_words(self.name), self._transaction(begin):
            # an advisory lock: LOCK TABLE would need the right to change or delete entries
            self._run("SELECT pg_advisory_xact_lock(%s, %s::int)", _WRITING, self._table)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a transaction that sees one state of the tables."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        with in_plain_words(self.name), self._transaction(begin):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """Begin a transaction; commit it at the end, or roll it back on any error."""
        self._run(begin)
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            with suppress(Exception):
                self._run("ROLLBACK")
            raise

    def _run(self, statement: str, *values: Any) -> Any:
        return self._connection.run(statement, values)

    def _one(self, statement: str, *values: Any) -> Any:
        row = self._run(statement, *values).fetchone()
        return None if row is None else row[0]

    def rows(self, after: int) -> Iterator[Row]:
        """Yield the entries after this number, a few thousand at a time."""
        while True:
            batch = self._run(
                f"SELECT {_COLUMNS} FROM {self._entry} WHERE number > %s "
                "ORDER BY number LIMIT 5000",
                after,
            ).fetchall()
            yield from batch
            if len(batch) < 5000:
                return
            after = batch[-1][0]

    def find(self, number: int) -> Row | None:
        """Return one entry."""
        statement = f"SELECT {_COLUMNS} FROM {self._entry} WHERE number = %s"
        row: Row | None = self._run(statement, number).fetchone()
        return row

    def last(self) -> int:
        """Return the number of the latest entry."""
        with in_plain_words(self.name):
            number: int = self._one(f"SELECT coalesce(max(number), 0) FROM {self._entry}")
        return number

    def entries_of_question(self, question: str) -> list[int]:
        """Return the numbers of the entries that paid for a question."""
        statement = f"SELECT number FROM {self._entry} WHERE question = %s ORDER BY number DESC"
        return [number for (number,) in self._run(statement, question)]

    def insert(self, row: Row) -> None:
        """Write an entry."""
        self._run(f"INSERT INTO {self._entry} VALUES (%s, %s, %s, %s)", *row)

    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Note where a release was saved."""
        self._run(f"INSERT INTO {self._saved} VALUES (%s, %s, %s)", number, place, digest)

    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return the places and digests under which a release was saved."""
        statement = (
            f"SELECT place, digest FROM {self._saved} WHERE number = %s ORDER BY place_number"
        )
        return [(str(p), str(d)) for p, d in self._run(statement, number)]

    def note_file(self, data: str, mac: str) -> None:
        """Note the keyed hash of a file."""
        self._run(f"INSERT INTO {self._file} VALUES (%s, %s)", data, mac)

    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""
        statement = f"SELECT mac FROM {self._file} WHERE data = %s"
        return [str(mac) for (mac,) in self._run(statement, data)]

    def data_of(self, mac: str) -> list[str]:
        """Return the data sets that have a file with this hash."""
        statement = f"SELECT data FROM {self._file} WHERE mac = %s"
        return [str(data) for (data,) in self._run(statement, mac)]

    def check(self) -> None:
        """Refuse a table that lacks entries; PostgreSQL checks its pages by itself."""
        with in_plain_words(self.name):
            missing = self._one(f"SELECT max(number) - count(*) FROM {self._entry}")
        if missing != 0:
            raise damaged(self.name, "entries are missing")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def make_tables(url: str, rows: Sequence[Row]) -> bool:
    """Create a ledger with its first entries; return False if the database has one already."""
    schema, connection = _schema(url), Connection(url)
    table = f"{schema}.zerodelta_entry"
    try:
        with in_plain_words(url):
            connection.run("BEGIN")
            connection.run("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            (exists,) = connection.run("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
            if exists:
                return False
            for statement in tables_in(schema):
                connection.run(statement)
            for row in rows:
                connection.run(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)
            connection.run("COMMIT")
            return True
    finally:
        connection.close()


def _schema(url: str) -> str:
    return f'"{schema_of(url)}"'
