"""A ledger in PostgreSQL, for teams: the same entries in a table that one writer at a time locks.

The owner of the tables may write any entry; everybody else debits, by the policies of the tables
(`postgres_tables.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final

from zerodelta.errors import LedgerError
from zerodelta.ledger.addresses import schema_of
from zerodelta.ledger.chain import Row, damaged
from zerodelta.ledger.postgres_line import Line, said_plainly
from zerodelta.ledger.postgres_tables import tables_in
from zerodelta.ledger.store import Store

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
        self._line = Line(url)
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
    schema, line = _schema(url), Line(url)
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
