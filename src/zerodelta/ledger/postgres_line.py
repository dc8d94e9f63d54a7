"""The line to a PostgreSQL server: what it must promise, and when it is given up.

TCP knows when a machine is gone. It does not know when a server that is still there says nothing
any more, and keeps the line open for ever: so each statement has a time until which it is answered.
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
from zerodelta.ledger.addresses import secrets_of
from zerodelta.ledger.chain import damaged

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
class Line:
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
