"""A ledger in PostgreSQL, for teams: the same entries in a table that one writer at a time locks.

The password of a URL is kept by this process alone, apart from the address that ledgers hold; a
process that was started anew takes it from PGPASSWORD or from the file .pgpass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from zerodelta.errors import LedgerError, require_extra
from zerodelta.ledger.chain import Row, damaged
from zerodelta.ledger.store import Store

__all__ = ["PostgresStore", "is_url", "make_tables", "without_password"]

_PASSWORDS: dict[str, str] = {}
"""By address, of this process and those forked from it; in no repr, record or pickle."""

_PATIENCE = "120s"
_MAKING = 0x7A646C67
"""The lock that whoever makes the tables holds."""
_WRITING = 0x7A646C68
"""The lock that whoever writes an entry holds, with the number of the table."""

_SCHEMA = (
    "CREATE TABLE zerodelta_entry (number bigint PRIMARY KEY, question text, "
    "body text NOT NULL, hash text NOT NULL)",
    "CREATE INDEX zerodelta_asked ON zerodelta_entry (question) WHERE question IS NOT NULL",
    "CREATE TABLE zerodelta_saved (number bigint NOT NULL, place text NOT NULL, "
    "digest text NOT NULL, place_number bigint GENERATED ALWAYS AS IDENTITY)",
    "CREATE INDEX zerodelta_places ON zerodelta_saved (number)",
    "CREATE TABLE zerodelta_file (data text NOT NULL, mac text NOT NULL)",
)
_COLUMNS = "number, question, body, hash"


def is_url(address: str) -> bool:
    """Tell whether an address is one of a server."""
    return address.startswith(("postgresql://", "postgres://"))


def without_password(url: str) -> str:
    """Return the URL without its password, which this process remembers.

    >>> without_password("postgresql://ana:secret@db.example/budgets?sslmode=require")
    'postgresql://ana@db.example/budgets?sslmode=require'
    """
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    said = parse_qsl(parts.query, keep_blank_values=True)
    secret = unquote(password) or next((value for key, value in said if key == "password"), "")
    query = urlencode([(k, v) for k, v in said if k not in ("password", "sslpassword")])
    clean = urlunsplit((parts.scheme, f"{name}{at}{host}", parts.path, query, ""))
    if secret:
        _PASSWORDS[clean] = secret
    return clean


@final
class PostgresStore(Store):
    """The entries in one database."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._connection = _connect(url)
        with _said_plainly(url):
            # a number of 32 bits without a sign, as one that has it
            self._table = self._one(
                "SELECT to_regclass('zerodelta_entry')::oid::bigint::bit(32)::int"
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
        with _said_plainly(self.name), self._connection.transaction():
            # by a lock that needs no right to change or delete entries, as a lock of the table does
            self._run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")  # sees what others wrote
            self._run("SELECT pg_advisory_xact_lock(%s, %s::int)", _WRITING, self._table)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a transaction that sees one state."""
        with _said_plainly(self.name), self._connection.transaction():
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def _run(self, asked: str, *values: Any) -> Any:
        return self._connection.execute(asked, values)

    def _one(self, asked: str, *values: Any) -> Any:
        found = self._run(asked, *values).fetchone()
        return None if found is None else found[0]

    def rows(self, after: int) -> Iterator[Row]:
        """Yield the entries after this number, a few thousand at a time."""
        while True:
            found = self._run(
                f"SELECT {_COLUMNS} FROM zerodelta_entry WHERE number > %s "
                "ORDER BY number LIMIT 5000",
                after,
            ).fetchall()
            yield from found
            if len(found) < 5000:
                return
            after = found[-1][0]

    def find(self, number: int) -> Row | None:
        """Return one entry."""
        asked = f"SELECT {_COLUMNS} FROM zerodelta_entry WHERE number = %s"
        found: Row | None = self._run(asked, number).fetchone()
        return found

    def asked(self, question: str) -> list[int]:
        """Return the entries of a question."""
        asked = "SELECT number FROM zerodelta_entry WHERE question = %s ORDER BY number DESC"
        return [number for (number,) in self._run(asked, question)]

    def insert(self, row: Row) -> None:
        """Write an entry."""
        _insert(self._connection, row)

    def note_saved(self, number: int, place: str, digest: str) -> None:
        """Write down where a release was saved."""
        self._run("INSERT INTO zerodelta_saved VALUES (%s, %s, %s)", number, place, digest)

    def saved(self, number: int) -> list[tuple[str, str]]:
        """Return where a release was saved."""
        asked = "SELECT place, digest FROM zerodelta_saved WHERE number = %s ORDER BY place_number"
        return [(str(p), str(d)) for p, d in self._run(asked, number)]

    def note_file(self, data: str, mac: str) -> None:
        """Write down the keyed hash of a file."""
        self._run("INSERT INTO zerodelta_file VALUES (%s, %s)", data, mac)

    def files(self, data: str) -> list[str]:
        """Return the keyed hashes of files of a data set."""
        asked = "SELECT mac FROM zerodelta_file WHERE data = %s"
        return [str(mac) for (mac,) in self._run(asked, data)]

    def check(self) -> None:
        """Look at the number of entries; PostgreSQL checks its pages by itself."""
        with _said_plainly(self.name):
            most = self._one("SELECT max(number) - count(*) FROM zerodelta_entry")
        if most != 0:
            raise damaged(self.name, "entries are missing")

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._connection.close()


def make_tables(url: str, rows: Sequence[Row]) -> bool:
    """Make a ledger with its first entries; False if the database has one already."""
    connection = _connect(url)
    try:
        with _said_plainly(url), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            asked = connection.execute("SELECT to_regclass('zerodelta_entry') IS NOT NULL")
            if asked.fetchone()[0]:
                return False
            for statement in _SCHEMA:
                connection.execute(statement)
            for row in rows:
                _insert(connection, row)
            return True
    finally:
        with suppress(Exception):
            connection.close()


def _driver() -> Any:
    require_extra("psycopg", "postgres")
    return import_module("psycopg")


def _insert(connection: Any, row: Row) -> None:
    connection.execute("INSERT INTO zerodelta_entry VALUES (%s, %s, %s, %s)", row)


def _connect(url: str) -> Any:
    psycopg = _driver()
    given = {"password": _PASSWORDS[url]} if url in _PASSWORDS else {}
    with _said_plainly(url):
        connection: Any = psycopg.connect(url, autocommit=True, connect_timeout=20, **given)
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET lock_timeout = '{_PATIENCE}'")
        (synced,) = connection.execute("SHOW fsync").fetchone()
    if synced != "on":
        connection.close()
        raise LedgerError(
            f"the ledger {url} is on a server with fsync = {quote(synced)}: a power cut there may "
            "lose debits of releases that were made. Set fsync = on."
        )
    return connection


@contextmanager
def _said_plainly(url: str) -> Iterator[None]:
    """Turn the errors of the driver into ours, which repeat nothing of its text."""
    psycopg = _driver()
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        what = "this user may not write there: GRANT SELECT, INSERT on its tables"
    except (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure):
        what = f"others have used it for {_PATIENCE}: ask again, or look who does"
    except (psycopg.OperationalError, psycopg.InterfaceError):
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
